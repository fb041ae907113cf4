"""Groups that satisfy requirements: a start, the repair, the search.

Problem   Given scaled records, k and requirements, find groups that violate nothing at a low SSE.
Idea      Several starts; the best one goes on: given groups, repaired by merging (merge.py); groups
          grown with the requirements in mind (start.py); for t-closeness, groups with a record of each
          quantile (soria_comas.py). The search then anneals cells of neighbouring groups as
          methods/refine does, but every group it keeps satisfies all (anneal.py).
          So the result is never worse, by (violation, SSE), than the repaired groups.
Cost      O(n) for a pass, but for O(n log n) of splitting; a step costs more than without requirements,
          the more so for those that look at all values of a group (t-closeness, dominance). A heuristic.
Threads   A cell's random numbers depend on the seed, the pass and the cell alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

import glob
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from microagg.base.progress import DONE, STOP, State, new_state, rest_of, stop_after, tell_best
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError
from microagg.grouping.require.requirement import Requirement, check_feasible, demands_of
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.kernels.require_kinds import (
    ENTROPY,
    EQUAL,
    KIND,
    LARGEST,
    ORDERED,
    P_PERCENT,
    RECURSIVE,
    Demands,
)
from microagg.plan.settings import check_effort, check_k, check_time_limit

__all__ = ["is_compiled", "repair", "satisfy"]


class _Budget(NamedTuple):
    """How long to search."""

    each: float  # steps for each group
    table: int  # steps for the whole table, times the records of a group
    most: int  # steps for each group at most
    passes: int  # at most
    hot: float  # temperature to begin with, in units of the mean SSE of a group and of √steps
    groups: int  # in a pool at most
    records: int  # in a pool, about


_BUDGETS = {
    "fast": _Budget(4, 30_000, 60, 5, 0.02, 7, 40),
    "balanced": _Budget(16, 250_000, 700, 32, 0.05, 7, 40),
    "best": _Budget(40, 800_000, 1_500, 48, 0.05, 7, 40),  # a turn of many
}
_HOTTEST = 1.5
_STEPS_IN_A_PASS = 1.5  # for each group at least: less would not pay for the splitting
_LEAST, _MOST = 16, 128  # groups in a cell
_ROOM = 512  # records in a pool at most
# How many times longer a step takes, about, for requirements that look at all codes of a pool.
_SLOWER = {ENTROPY: 2, RECURSIVE: 2, P_PERCENT: 2, LARGEST: 2, EQUAL: 3, ORDERED: 6}
_HEATS = (0.4, 0.12, 0.24, 0.06)  # shares of the first turn's temperature, for the turns after it
_QUANTILES = (
    16_384  # records that groups of quantiles are made of at once, since their time is quadratic
)
_GROWN = 4_096  # records up to which groups are grown in addition
_TURNS = 4  # of effort best without a time limit
# Groups of mixed columns, which have more coordinates, take longer to settle: the factor for the steps for
# a table, and the largest number of steps for each group.
_MIXED, _ENOUGH = 8, 150


def is_compiled() -> bool:
    """Return whether the search can start at once, without compiling its kernels first."""
    from microagg.algorithms.required.anneal import anneal_cells

    kernel: Any = anneal_cells
    kept = kernel._cache
    if kernel.signatures or not hasattr(kept, "_impl"):
        return bool(kernel.signatures)
    return any(Path(kept._cache_path).glob(f"{glob.escape(kept._impl.filename_base)}.*.nbc"))


def _checked(
    X: Floats,
    k: int,
    requirements: Sequence[Requirement],
    labels: Labels | None,
    weights: Floats | None,
) -> tuple[Demands, Floats]:
    """Refuse what cannot be searched; the requirements and weights as kernels need them."""
    check_k(k, len(X))
    for name, given in (("labels", labels), ("weights", weights)):
        if given is not None and np.shape(given) != (len(X),):
            raise InputError(
                f"{name} have one entry for each record; the table has {len(X)} records, {name} have "
                f"shape {np.shape(given)}. Make both from the same rows."
            )
    check_feasible(requirements)
    if weights is None:
        return demands_of(requirements, len(X)), np.ones(len(X))
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))
    if len(wrong):
        raise InputError(
            f"Weights of records are finite numbers above 0; row {wrong[0]} has another one, "
            f"{len(wrong)} in all. Drop these records or leave the weights out."
        )
    return demands_of(requirements, len(X)), np.ascontiguousarray(weights, dtype=np.float64)


def repair(
    X: Floats,
    k: int,
    requirements: Sequence[Requirement],
    labels: Labels,
    *,
    weights: Floats | None = None,
) -> Labels:
    """Merge groups of scaled records until each satisfies all requirements and has k records.

    Parameters
    ----------
    X : float64 array of shape (n, d), scaled
    k : int, at least 1
    requirements : what every group must satisfy in addition
    labels : int64 array of shape (n,), any groups
    weights : float64 array of shape (n,), above 0; None: all equal

    Returns
    -------
    int64 array of shape (n,): groups 0, 1, … by first appearance, each a union of given ones.

    Raises
    ------
    InputError
        When the whole table breaks a requirement, so that no groups could satisfy it.

    >>> from microagg.grouping.require.value_rules import Distinct
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0], [14.0], [15.0]])
    >>> diverse = Distinct(np.array([0, 1, 2, 2, 3, 4]), 2)
    >>> repair(X, 2, [diverse], np.array([0, 0, 1, 1, 2, 2])).tolist()
    [0, 0, 1, 1, 1, 1]
    """
    from microagg.algorithms.required.merge import merge

    demands, mass = _checked(X, k, requirements, labels, weights)
    return merge(np.ascontiguousarray(X), mass, demands, canonical_labels(labels), k)


class _Run(NamedTuple):
    """What stays the same from pass to pass."""

    X: Floats
    weights: Floats
    demands: Demands
    k: int
    seed: int
    state: State
    mixed: bool  # whether to search longer where groups are many


def _pools(run: _Run, budget: _Budget, labels: Labels) -> tuple[Any, float]:
    """Return how pools are made for groups of this size, and the number of records in one."""
    from microagg.algorithms.required.anneal import Search

    mean = len(labels) / (int(labels.max()) + 1)
    most = max(2, min(budget.groups, int(budget.records / mean)))
    largest = int(np.bincount(labels).max())
    room = min(max(int(2.5 * most * mean), 2 * largest, 4 * run.k, 24), _ROOM, len(labels))
    close = np.isin(run.demands.rule[:, KIND], (ORDERED, EQUAL)).any()
    return Search(most, room, 0.5 if close else 0.1), mean


def _pass(
    run: _Run, old: Any, turn: int, search: Any, steps: float, heat: Any, done: int
) -> tuple[Any, float]:
    """Anneal every cell once, ``steps`` for each group; return the new groups and their SSE."""
    from microagg.algorithms.refine.cells import Fresh, compacted, groups_in_a_cell, split_groups
    from microagg.algorithms.required.anneal import anneal_cells
    from microagg.compile.threads import share_out

    n, d = run.X.shape
    rng = np.random.default_rng([run.seed, turn])
    random = rng.integers(0, 2**63, size=1, dtype=np.uint64)
    n_groups = len(old.centroid)
    groups, first = split_groups(old.centroid, groups_in_a_cell(n_groups, _LEAST, _MOST), random)
    cells = len(first) - 1
    seeds = rng.integers(0, 2**63, size=cells, dtype=np.uint64)
    records = np.append(0, np.cumsum(np.diff(old.start)[groups]))
    places = n // run.k
    new = Fresh(
        records[first], np.empty(n, np.intp), np.zeros(places, np.intp), np.empty((places, d))
    )
    sse = np.full(cells, np.nan)

    def work(begin: int, end: int, _: int) -> None:
        anneal_cells(
            run.X,
            run.weights,
            run.demands,
            old,
            groups,
            first,
            begin,
            end,
            run.k,
            search,
            steps,
            heat,
            seeds,
            new,
            sse,
            run.state,
        )

    share_out(work, cells, run.state, done, at_once=1)
    for cell in np.flatnonzero(np.isnan(sse)):  # stopped: the rest of the cells stay as they are
        work(int(cell), int(cell) + 1, 0)
    return compacted(new), float(sse.sum())


def _anneal(run: _Run, labels: Labels, budget: _Budget, turn: int, records: int) -> Labels:
    """Anneal in passes; return the best partition seen. The records done rise by ``records``."""
    from microagg.algorithms.refine.anneal import Heat
    from microagg.algorithms.refine.cells import grouped, labelled

    least = sum_of_squares(run.X, labels, run.weights)
    n_groups = int(labels.max()) + 1
    best = last = grouped(run.X, labels, n_groups)
    search, mean = _pools(run, budget, labels)
    slower = max((_SLOWER.get(int(kind), 1) for kind in run.demands.rule[:, KIND]), default=1)
    each = budget.each / min(
        slower, 2
    )  # in a large table every group needs some steps all the same
    table = budget.table / mean / n_groups / slower
    steps = min(each + table, budget.most / slower)
    if run.mixed:
        steps = max(steps, min(each + _MIXED * table, _ENOUGH / slower))
    passes = min(budget.passes, int(steps / _STEPS_IN_A_PASS) + 1)
    steps /= passes
    hot = min(budget.hot * np.sqrt(steps * passes), _HOTTEST)
    unit = least / n_groups
    for one in range(passes):
        if run.state[STOP] or least == 0:
            break
        heat = Heat(hot * (1 - one / passes) ** 2, hot * (1 - (one + 1) / passes) ** 2, unit)
        done = records * (one + 1) // passes - records * one // passes
        last, sse = _pass(run, last, turn * 1_000 + one, search, steps, heat, done)
        if sse < least:
            best, least = last, sse
            tell_best(run.state, least)
    return labelled(best)


def _search(
    run: _Run, labels: Labels, effort: str, endless: bool, whole: int | None = None
) -> Labels:
    """Anneal once, or for the best groups again and again, each turn from the best so far."""
    n = len(labels)
    usual = _BUDGETS[effort]
    if whole is not None:
        usual = usual._replace(table=usual.table * n // whole)
    budget = usual
    if effort != "best":
        return _anneal(run, labels, budget, 0, n)
    turn = 0
    while not run.state[STOP] and (endless or turn < _TURNS):
        if turn > 0:
            length = 2 ** ((turn - 1) // 2)
            budget = usual._replace(
                each=usual.each * length,
                table=usual.table * length,
                most=usual.most * length,
                hot=usual.hot * _HEATS[(turn - 1) % len(_HEATS)],
            )
        labels = _anneal(run, labels, budget, turn, 0 if endless else n // _TURNS)
        turn += 1
    return labels


def _quantile_starts(X: Floats, demands: Demands, k: int, seed: int) -> list[Labels]:
    """Groups that take a record of each quantile of a column, for each one that must be close.

    A large table is dealt into parts at random, each with the distribution of the whole.
    """
    from microagg.algorithms.required.soria_comas import t_first

    n = len(X)
    parts = -(-n // _QUANTILES)
    own = np.arange(n) if parts == 1 else np.random.default_rng(seed).permutation(n)
    found = []
    for r in np.flatnonzero(demands.rule[:, KIND] == ORDERED):
        labels = np.empty(n, dtype=np.int64)
        for part in range(parts):
            rows = np.sort(own[part::parts])
            here = Demands(
                demands.rule[[r]],
                demands.table,
                np.ascontiguousarray(demands.codes[[r]][:, rows]),
                np.ascontiguousarray(demands.amounts[[r]][:, rows]),
            )
            # Numbered apart: there are at most as many groups as records.
            labels[rows] = part * n + t_first(np.ascontiguousarray(X[rows]), k, here)
        found.append(canonical_labels(labels))
    return found


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
    whole: int | None = None,
    mixed: bool = False,
    state: State | None = None,
) -> Labels:
    """Find groups of at least k records that satisfy all requirements, at a low SSE.

    Parameters
    ----------
    X : float64 array of shape (n, d), scaled
    k : int, at least 1
    requirements : what every group must satisfy in addition
    labels : int64 array of shape (n,), groups to begin with; None where there are none
    weights : float64 array of shape (n,), above 0: what each record counts in the SSE
    effort : {"fast", "balanced", "best"}
    time_limit : seconds after which the best groups so far are returned
    random_state : seed; None draws a fresh one
    whole : records of the table that these are a part of, whose steps are shared out; None: all of it
    mixed : whether columns are of several kinds: then the search is longer where groups are many
    state : shared state of a watched run, see :mod:`microagg.base.progress`

    Returns
    -------
    int64 array of shape (n,): groups 0, 1, … by first appearance. None violates anything, and the SSE
    is not above that of :func:`repair` for the same labels.

    Raises
    ------
    InputError
        When the whole table breaks a requirement, so that no groups could satisfy it.

    >>> from microagg.grouping.require.value_rules import Units
    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> households = Units(np.array([1, 1, 2, 3, 3, 4]), 2)
    >>> satisfy(X, 2, [households]).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    from microagg.algorithms.required.merge import merge
    from microagg.algorithms.required.start import grown

    check_effort(effort)
    check_time_limit(time_limit)
    demands, mass = _checked(X, k, requirements, labels, weights)
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
    run = _Run(X, mass, demands, k, seed, state, mixed and effort == "balanced")
    left = rest_of(time_limit, started)
    with stop_after(state, left, len(X)):
        found = best if state[STOP] else _search(run, best, effort, left is not None, whole)
    # Sums that are kept up to date are rounded: what stands right at a threshold is looked at anew.
    found = merge(X, mass, demands, found, k)
    if sum_of_squares(X, found, mass) < sum_of_squares(X, best, mass):
        best = found
    state[DONE] = len(X)
    return best
