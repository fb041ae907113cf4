"""Starts for groups under requirements, and the search that improves them.

As without requirements, patches of neighbouring groups are annealed in passes (refine/search_passes.py);
but groups have any size from k on, and every group that is kept satisfies everything.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.refine.anneal import PoolSettings
from microagg.algorithms.refine.search_passes import AnnealBudget, Run, anneal_in_passes, length_of
from microagg.algorithms.required.soria_comas import t_first
from microagg.algorithms.required.start import grown
from microagg.base.progress import State
from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import canonical_labels
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

_BUDGETS = {
    "fast": AnnealBudget(4, 30_000, 60, 5, 0.02, 7, 40),
    "balanced": AnnealBudget(16, 250_000, 700, 32, 0.05, 7, 40),
    "best": AnnealBudget(40, 800_000, 1_500, 48, 0.05, 7, 40),  # a turn of many
}
_RECORDS = 512  # in a pool at most
# How many times longer a step takes, about, for requirements that look at all codes of a pool.
_SLOWER = {ENTROPY: 2, P_PERCENT: 2, LARGEST: 2, HIDDEN: 2, EQUAL: 3, ORDERED: 6}
_QUANTILES = (
    16_384  # records that groups of quantiles are made of at once, since their time is quadratic
)
_GROWN = 4_096  # records up to which groups are grown in addition to those of quantiles
_TURNS = 4  # of effort best without a time limit
# Groups of mixed columns, which have more coordinates, take longer to settle: this many times the steps for
# a table, up to this many for each group.
_MIXED, _ENOUGH = 8, 150


def _pools(run: Run, demands: Demands, budget: AnnealBudget, labels: Labels) -> PoolSettings:
    """Return how pools are made for groups as large as these."""
    mean = len(labels) / (int(labels.max()) + 1)
    most = max(2, min(budget.groups, int(budget.records / mean)))
    largest = int(np.bincount(labels).max())
    records = min(max(int(2.5 * most * mean), 2 * largest, 4 * run.k, 24), _RECORDS, len(labels))
    close = np.isin(demands.rule[:, KIND], (ORDERED, EQUAL)).any()
    return PoolSettings(most, records, False, 0.5 if close else 0.1)


def _steps(demands: Demands, budget: AnnealBudget, labels: Labels, mixed: bool) -> float:
    """Return how many steps to make for each group."""
    n_groups = int(labels.max()) + 1
    slower = max((_SLOWER.get(int(kind), 1) for kind in demands.rule[:, KIND]), default=1)
    each = budget.each / min(
        slower, 2
    )  # in a large table every group needs some steps all the same
    table = budget.table / (len(labels) / n_groups) / n_groups / slower
    steps = min(each + table, budget.most / slower)
    if mixed:
        steps = max(steps, min(each + _MIXED * table, _ENOUGH / slower))
    return steps


def search_required(
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
    turn = 0
    while not run.over() and (endless or turn < number):
        budget = first.in_turn(turn).times(length_of(turn))
        search, steps = _pools(run, demands, budget, labels), _steps(demands, budget, labels, mixed)
        records = 0 if endless else n // number
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


def starts_for(
    X: Floats,
    weights: Floats,
    demands: Demands,
    k: int,
    given: Labels | None,
    effort: str,
    seed: int,
    state: State,
) -> list[Labels]:
    """Return groups to begin with, which may violate demands: those given and our own.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous
    weights : (n,) above 0
    demands : of the same n records
    k : least number of records
    given : (n,) groups to begin with
    effort, seed : as for :func:`search_required`
    state : the wish to stop

    Returns
    -------
    at least one partition, each (n,) int64 numbered by first appearance
    """
    starts = [] if given is None else [canonical_labels(given)]
    by_quantiles = _quantile_starts(X, demands, k, seed)
    starts += by_quantiles
    # Growing from the outside in meets closeness late: where quantiles meet it, that pays in small tables.
    worth_it = len(X) <= _GROWN or not by_quantiles
    if worth_it and (given is None or effort != "fast"):
        starts.append(grown(X, weights, demands, k, state))
    return starts
