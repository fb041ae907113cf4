"""Improving any partition, in passes over cells of neighbouring groups.

Problem   Given a partition of n records into groups of at least k, find one of lower SSE.
Idea      Split the groups into cells of about a hundred, by halving the table again and again
          across random directions (cells.py). Anneal each cell by itself (anneal.py), then split
          anew across other directions, so that no border lasts. The temperature falls
          from pass to pass. The best partition seen is returned, never one worse than given.
          Large groups are annealed without tables of distances (large.py), before and after which they
          are parted anew two by two (pairs.py).
Cost      O(n) for a pass, but for O(n log n) of splitting. A heuristic.
Paper     None: our own. Pools of neighbouring groups rebuilt at random, with moves and swaps.
Threads   A cell's random numbers depend on the seed, the pass and the cell alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from microagg.algorithms.refine.anneal import Heat, anneal_cells
from microagg.algorithms.refine.cells import (
    Fresh,
    Groups,
    compacted,
    grouped,
    groups_in_a_cell,
    labelled,
    split_groups,
)
from microagg.algorithms.refine.large import anneal_large_cells
from microagg.algorithms.refine.pairs import part_pairs
from microagg.base.progress import DONE, STOP, State, new_state, stop_after, tell_best
from microagg.base.typing import Floats, Labels
from microagg.compile.threads import share_out
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.kernels.mdav_groups import mdav_labels
from microagg.plan.settings import LARGE_K


class Budget(NamedTuple):
    """How long to search."""

    each: float  # steps for each group
    table: float  # steps for the whole table, times k: a step costs about as much as k
    most: float  # steps for each group at most, so that a small table is done at once
    passes: int  # at most
    hot: float  # temperature to begin with, in units of the mean SSE of a group and of √steps
    sweeps: int  # over pairs of large groups, before and after they are annealed
    groups: int  # in a pool at most
    records: int  # in a pool, about


_BUDGETS = {
    "fast": Budget(6, 40_000, 100, 5, 0.02, 0, 7, 40),
    "balanced": Budget(40, 600_000, 1_000, 48, 0.05, 0, 7, 40),
    "best": Budget(60, 700_000, 1_500, 48, 0.05, 0, 7, 40),  # a turn of many
}
_ANY = 2**62  # no bound on the records of a pool
_LARGE_BUDGETS = {
    "fast": Budget(2, 20_000, 30, 4, 0.02, 2, 3, _ANY),
    "balanced": Budget(16, 250_000, 350, 48, 0.03, 3, 6, _ANY),
    "best": Budget(30, 400_000, 600, 48, 0.03, 3, 6, _ANY),
}
_HOTTEST = 1.5
_STEPS_IN_A_PASS = 1.5  # for each group at least: less would not pay for the splitting
_LEAST, _MOST = 16, 128  # groups in a cell


def _plan(budget: Budget, n_groups: int, k: int) -> tuple[int, float]:
    """Number of passes, and steps for each group in one of them."""
    steps = min(budget.each + budget.table / k / n_groups, budget.most)
    passes = min(budget.passes, int(steps / _STEPS_IN_A_PASS) + 1)
    return passes, steps / passes


def _without_oversized(X: Floats, weights: Floats | None, labels: Labels, k: int) -> Labels:
    """Split groups of 2k or more, which never raises the SSE."""
    labels = canonical_labels(labels).copy()
    sizes = np.bincount(labels)
    oversized = np.flatnonzero(sizes >= 2 * k)
    if not len(oversized):
        return labels
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    fresh = len(sizes)
    for g in oversized:
        rows = order[ends[g] - sizes[g] : ends[g]]
        own = None if weights is None else weights[rows]
        parts = canonical_labels(mdav_labels(np.ascontiguousarray(X[rows]), k, new_state(), own))
        labels[rows] = np.where(parts == 0, g, fresh + parts - 1)
        fresh += int(parts.max())
    return canonical_labels(labels)


class Run(NamedTuple):
    """What stays the same from pass to pass."""

    X: Floats
    k: int
    seed: int
    state: State
    weights: Floats | None = None  # (n,); None where all records weigh the same

    def loss(self, labels: Labels) -> float:
        """SSE of a partition."""
        return sum_of_squares(self.X, labels, self.weights)

    def over(self) -> bool:
        """Whether to stop."""
        return bool(self.state[STOP])


def _in_a_cell(n_groups: int) -> int:
    return groups_in_a_cell(n_groups, _LEAST, _MOST)


def cells_of(n_groups: int) -> int:
    """Number of cells in which ``n_groups`` groups are annealed, about."""
    return -(-n_groups // _in_a_cell(n_groups))


def _anneal_all(
    run: Run, old: Groups, turn: int, most: int, steps: float, heat: Heat, done: int
) -> tuple[Groups, float]:
    """Anneal every cell once, ``steps`` for each group; return the new groups and their SSE.

    Pools have ``most`` groups at most. The records done rise by ``done`` on the way.
    """
    n, d = run.X.shape
    rng = np.random.default_rng([run.seed, turn])
    random = rng.integers(0, 2**63, size=1, dtype=np.uint64)
    groups, first = split_groups(old.centroid, _in_a_cell(len(old.centroid)), random)
    cells = len(first) - 1
    seeds = rng.integers(0, 2**63, size=cells, dtype=np.uint64)
    records = np.append(0, np.cumsum(np.diff(old.start)[groups]))
    places = n // run.k
    new = Fresh(
        records[first], np.empty(n, np.intp), np.zeros(places, np.intp), np.empty((places, d))
    )
    sse = np.full(cells, np.nan)

    anneal = anneal_cells if run.k <= LARGE_K else anneal_large_cells

    def work(begin: int, end: int, _: int) -> None:
        anneal(
            run.X,
            run.weights,
            old,
            groups,
            first,
            begin,
            end,
            run.k,
            most,
            steps,
            heat,
            seeds,
            new,
            sse,
            run.state,
        )

    share_out(work, cells, run.state, done, at_once=1, shrinking=True)
    for cell in np.flatnonzero(np.isnan(sse)):  # stopped: the rest of the cells stay as they are
        work(int(cell), int(cell) + 1, 0)
    return compacted(new), float(sse.sum())


def parted(run: Run, labels: Labels, budget: Budget) -> Labels:
    """Part pairs of neighbouring groups anew, where groups are large; never worse than given."""
    if not budget.sweeps or run.over():
        return labels
    found = part_pairs(run.X, run.weights, labels, run.k, budget.sweeps, run.seed, run.state)
    return found if run.loss(found) < run.loss(labels) else labels


def anneal_table(
    run: Run,
    labels: Labels,
    budget: Budget,
    records: int,
    span: tuple[float, float] = (0.0, 1.0),
) -> tuple[Labels, Labels]:
    """Anneal in passes: the best partition seen, and the last. The records done rise by ``records``.

    ``span`` are the passes to make, of all from 0 to 1.
    """
    least = run.loss(labels)
    n_groups = int(labels.max()) + 1
    best = last = grouped(run.X, labels, n_groups)
    passes, steps = _plan(budget, n_groups, run.k)
    most = max(2, min(budget.groups, budget.records // run.k))
    # The more steps there are, the slower it cools, and the more of its order it may lose at first.
    hot = min(budget.hot * np.sqrt(steps * passes), _HOTTEST)
    unit = least / n_groups
    for turn in range(round(span[0] * passes), round(span[1] * passes)):
        if run.over() or least == 0:
            break
        heat = Heat(hot * (1 - turn / passes) ** 2, hot * (1 - (turn + 1) / passes) ** 2, unit)
        done = records * (turn + 1) // passes - records * turn // passes
        last, sse = _anneal_all(run, last, turn, most, steps, heat, done)
        if sse < least:
            best, least = last, sse
            tell_best(run.state, least)
    return parted(run, labelled(best), budget), labelled(last)


def refine(
    X: Floats,
    labels: Labels,
    k: int,
    *,
    weights: Floats | None = None,
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int | None = 0,
    whole: int | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    state: State | None = None,
) -> Labels:
    """Improve a partition by local search; never worse than given.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled
    labels : int64 array of shape (n,), groups of at least k
    k : int, at least 1
    weights : float64 array of shape (n,), above 0 and with mean 1, optional
    effort : {"fast", "balanced", "best"}
    time_limit : seconds after which the best partition so far is returned
    random_state : seed; None draws a fresh one
    whole : records of the table that these are a part of, whose steps are shared out; None: all of it
    span : from where to where in the search to go, of the whole from 0 to 1: a table in blocks is searched in
        spans, with other borders in each; what comes before the end may be worse than given
    state : shared state of a watched run, see :mod:`microagg.base.progress`

    Returns
    -------
    int64 array of shape (n,): the group of each record.

    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> refine(X, np.array([0, 1, 0, 1, 0, 1]), 3).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    from microagg.algorithms.refine.best import search_best  # which is made of this module's passes

    state = new_state() if state is None else state
    seed = int(np.random.default_rng(random_state).integers(2**62))
    started = time.monotonic()
    budgets = _BUDGETS if k <= LARGE_K else _LARGE_BUDGETS
    run, budget = Run(X, k, seed, state, weights), budgets[effort]
    if whole is not None:
        budget = budget._replace(table=budget.table * len(X) // whole)
    best = _without_oversized(X, weights, labels, k)
    least = run.loss(best)
    tell_best(state, least)
    with stop_after(state, time_limit, len(X)):
        if best.max() == 0 or run.over():
            found = best
        else:
            found = parted(run, best, budget)
            if effort == "best":
                if k > LARGE_K:  # whose turns alone need not end below the default's
                    found, _ = anneal_table(run, found, budgets["balanced"], 0)
                until = None if time_limit is None else started + time_limit
                found = search_best(run, found, budget, until)
            else:
                found, last = anneal_table(run, found, budget, len(X), span)
                if span[1] < 1.0:
                    best, least = last, np.inf
    if np.isfinite(least) and run.loss(found) < least:
        best = found
    state[DONE] = len(X)
    return best
