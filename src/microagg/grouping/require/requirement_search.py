"""Groups that satisfy requirements: a start, the repair, the search.

Problem   Given scaled records, k and requirements, find groups that violate nothing at a low SSE.
Idea      Several starts; the best one goes on: given groups, repaired by merging; groups grown with
          the requirements in mind; for t-closeness, groups with a record of each quantile (merge, start and
          soria_comas in algorithms/required). The search then anneals patches of neighbouring groups in
          passes as algorithms/refine does, but groups have any size from k on, and every group that it
          keeps satisfies everything.
          So the result is never worse, by (violation, SSE), than the repaired groups.
Cost      O(n) for a pass, but for O(n log n) of splitting; a step costs more than without requirements,
          the more so for those that look at all values of a group (t-closeness, dominance). A heuristic.
Threads   A patch's random numbers depend on the seed, the pass and the patch alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from microagg.algorithms.refine.anneal import PoolSettings
from microagg.algorithms.refine.search_passes import AnnealBudget, Run, anneal_in_passes
from microagg.algorithms.required.grow_and_merge import grown, merge
from microagg.algorithms.required.soria_comas import t_first
from microagg.base.progress import DONE, STOP, State, new_state, rest_of, stop_after, tell_best
from microagg.base.typing import Floats, Labels
from microagg.grouping.require.requirement import Requirement, check_feasible, demands_of
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.kernels.require_kinds import (
    ENTROPY,
    EQUAL,
    HIDDEN,
    KIND,
    LARGEST,
    ORDERED,
    P_PERCENT,
    Demands,
)
from microagg.plan.settings import check_effort, check_k, check_time_limit

_BUDGETS = {
    "fast": AnnealBudget(4, 30_000, 60, 5, 0.02, 7, 40),
    "balanced": AnnealBudget(16, 250_000, 700, 32, 0.05, 7, 40),
    "best": AnnealBudget(40, 800_000, 1_500, 48, 0.05, 7, 40),  # a turn of many
}
_RECORDS = 512  # in a pool at most
# How many times longer a step takes, about, for requirements that look at all codes of a pool.
_SLOWER = {ENTROPY: 2, P_PERCENT: 2, LARGEST: 2, HIDDEN: 2, EQUAL: 3, ORDERED: 6}
_QUANTILES = 16_384  # records that groups of quantiles are made of at once: their time is quadratic
_GROWN = 4_096  # records up to which groups are grown in addition to those of quantiles
_TURNS = 4  # of effort best without a time limit
# Groups of mixed columns, which have more coordinates, take longer to settle: this many times the steps for
# a table, up to this many for each group.
_MIXED, _ENOUGH = 8, 150


def _search(
    run: Run,
    demands: Demands,
    labels: Labels,
    effort: str,
    *,
    endless: bool = False,
    n_total: int | None = None,
    mixed: bool = False,
) -> Labels:
    """Anneal groups 0, 1, … under demands; for effort best in several turns, each from the best so far.

    The run has weights and the demands, which the groups satisfy. ``endless`` makes turns until the run is
    stopped; ``n_total`` is the number of records of the table that these are a part of, whose steps are
    shared out; ``mixed`` searches longer where groups are many.
    """
    n, first = len(labels), _BUDGETS[effort]
    if n_total is not None:
        first = first._replace(table=first.table * n // n_total)
    number = _TURNS if effort == "best" else 1
    endless = endless and effort == "best"
    kinds = demands.rule[:, KIND]
    slower = max((_SLOWER.get(int(kind), 1) for kind in kinds), default=1)
    jumps = 0.5 if np.isin(kinds, (ORDERED, EQUAL)).any() else 0.1
    turn = 0
    while not run.state[STOP] and (endless or turn < number):
        budget = first.in_turn(turn)
        sizes = np.bincount(labels)
        mean, largest = n / len(sizes), int(sizes.max())
        # Pools are as large as such groups need.
        most = max(2, min(budget.groups, int(budget.records / mean)))
        pool = min(max(int(2.5 * most * mean), 2 * largest, 4 * run.k, 24), _RECORDS, n)
        # Steps for each group: in a large table every group needs some all the same.
        each, table = budget.each / min(slower, 2), budget.table / mean / len(sizes) / slower
        steps = min(each + table, budget.most / slower)
        if mixed:
            steps = max(steps, min(each + _MIXED * table, _ENOUGH / slower))
        search, records = PoolSettings(most, pool, False, jumps), 0 if endless else n // number
        labels, _ = anneal_in_passes(
            run, labels, budget, search, steps, records, first_turn=turn * 1_000
        )
        turn += 1
    return labels


def _quantile_starts(X: Floats, demands: Demands, k: int, seed: int) -> list[Labels]:
    """Form groups of a record of each quantile of a column, for each column that must be close.

    A large table is dealt into parts at random, each of which has the distribution of the whole.
    """
    n = len(X)
    parts = -(-n // _QUANTILES)
    order = np.arange(n) if parts == 1 else np.random.default_rng(seed).permutation(n)
    starts = []
    for r in np.flatnonzero(demands.rule[:, KIND] == ORDERED):
        labels = np.empty(n, dtype=np.int64)
        for part in range(parts):
            rows = np.sort(order[part::parts])
            here = Demands(
                demands.rule[[r]],
                demands.table,
                np.ascontiguousarray(demands.codes[[r]][:, rows]),
                np.ascontiguousarray(demands.amounts[[r]][:, rows]),
            )
            # Numbered apart: there are at most as many groups as records.
            labels[rows] = part * n + t_first(np.ascontiguousarray(X[rows]), k, here)
        starts.append(canonical_labels(labels))
    return starts


def _checked(
    X: Floats, k: int, requirements: Sequence[Requirement], weights: Floats | None
) -> tuple[Demands, Floats]:
    """Refuse what no groups could satisfy; return the requirements and weights as kernels need them."""
    check_k(k, len(X))
    check_feasible(requirements)
    mass = np.ones(len(X)) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
    return demands_of(requirements, len(X)), mass


def repair(
    X: Floats,
    k: int,
    requirements: Sequence[Requirement],
    labels: Labels,
    *,
    weights: Floats | None = None,
) -> Labels:
    """Merge groups of scaled records until each satisfies all requirements and has k records.

    The arguments are those of :func:`satisfy`. A requirement that the whole table breaks is refused, since no
    groups could satisfy it.

    >>> from microagg.grouping.require.value_rules import Distinct
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0], [14.0], [15.0]])
    >>> diverse = Distinct(np.array([0, 1, 2, 2, 3, 4]), 2)
    >>> repair(X, 2, [diverse], np.array([0, 0, 1, 1, 2, 2])).tolist()
    [0, 0, 1, 1, 1, 1]
    """
    demands, mass = _checked(X, k, requirements, weights)
    return merge(np.ascontiguousarray(X), mass, demands, canonical_labels(labels), k)


def satisfy(
    X: Floats,
    k: int,
    requirements: Sequence[Requirement],
    labels: Labels | None = None,
    *,
    weights: Floats | None = None,
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int | None = 0,
    n_total: int | None = None,
    mixed: bool = False,
    state: State | None = None,
) -> Labels:
    """Find groups of at least k records that satisfy all requirements, at a low SSE.

    It is not above that of :func:`repair` for the same labels, which also refuses the same.

    Parameters
    ----------
    X : (n, d) scaled coordinates, which stay as they are
    k : least number of records of a group
    requirements : rules other than k, made for the same n records
    labels : (n,) groups to begin with; None: the method makes some
    weights : (n,) weights of the records in the SSE; None: all count alike
    effort : "fast", "balanced" or "best"
    time_limit : seconds after which the best groups so far are returned
    n_total : records of the table of which these are a part: it decides the number of steps
    mixed : whether columns are of several kinds; the search is then longer where groups are many
    state : progress, and the wish to stop

    >>> from microagg.grouping.require.value_rules import Units
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> households = Units(np.array([1, 1, 2, 3, 3, 4]), 2)
    >>> satisfy(X, 2, [households]).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    check_effort(effort)
    check_time_limit(time_limit)
    demands, mass = _checked(X, k, requirements, weights)
    X = np.ascontiguousarray(X, dtype=np.float64)
    state = new_state() if state is None else state
    started = time.monotonic()
    seed = int(np.random.default_rng(random_state).integers(2**62))
    starts = [] if labels is None else [canonical_labels(labels)]
    by_quantiles = _quantile_starts(X, demands, k, seed)
    starts += by_quantiles
    # Growing from the outside in meets closeness late: where quantiles meet it, that pays in small tables.
    worth_it = len(X) <= _GROWN or not by_quantiles
    if worth_it and (labels is None or effort != "fast"):
        starts.append(grown(X, mass, demands, k, state))
    repaired = [merge(X, mass, demands, start, k) for start in starts]
    best = min(repaired, key=lambda start: sum_of_squares(X, start, mass))
    tell_best(state, sum_of_squares(X, best, mass))
    searched, remaining = best, rest_of(time_limit, started)
    with stop_after(state, remaining, len(X)):
        if not state[STOP]:
            searched = _search(
                Run(X, k, seed, state, mass, demands),
                demands,
                best,
                effort,
                endless=remaining is not None,
                n_total=n_total,
                mixed=mixed and effort == "balanced",
            )
    # Sums that are kept up to date are rounded: groups right at a threshold are counted again.
    searched = merge(X, mass, demands, searched, k)
    if sum_of_squares(X, searched, mass) < sum_of_squares(X, best, mass):
        best = searched
    state[DONE] = len(X)
    return best
