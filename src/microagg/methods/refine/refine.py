"""Improving any partition, in passes over cells of neighbouring groups.

Problem   Given a partition of n records into groups of at least k, find one of lower SSE.
Idea      Split the groups into cells of about a hundred, by halving the table again and again
          across random directions. Anneal each cell by itself (anneal.py), then split anew
          across other directions, so that no border lasts. The temperature falls
          from pass to pass. The best partition seen is returned, never one worse than given.
Cost      O(n) for a pass, but for O(n log n) of splitting. A heuristic. Groups of more than 256
          records are only split, since the distances within a pool are held in memory.
Paper     None: our own. Pools of neighbouring groups rebuilt at random, with moves and swaps.
Threads   A cell's random numbers depend on the seed, the pass and the cell alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from microagg.groups import Floats, Labels, canonical_labels, sum_of_squares
from microagg.kernels.threads import share_out
from microagg.methods.fixed_size.mdav import mdav
from microagg.methods.refine.cells import GROUPS_IN_A_CELL, anneal_cells, split
from microagg.progress import DONE, STOP, State, new_state, stop_after, tell_best


class Budget(NamedTuple):
    """How long to search."""

    each: int  # steps for each group
    table: int  # steps for the whole table, times k: a step costs about as much as k
    most: int  # steps for each group at most, so that a small table is done at once
    passes: int
    hot: float  # temperature to begin with, in units of the mean SSE of a group


_BUDGETS = {
    "fast": Budget(6, 40_000, 100, 5, 0.05),
    "balanced": Budget(40, 350_000, 600, 24, 0.3),
}
_LARGE = 32  # from this k on a step costs as much as k², and there are fewer of them
_TOO_LARGE = 256  # the distances within a pool would fill the memory


def _steps(budget: Budget, n_groups: int, k: int) -> float:
    """Steps for each group in one pass."""
    wanted = min(budget.each + budget.table / k / n_groups, budget.most)
    return wanted * min(1.0, (_LARGE / k) ** 2) / budget.passes


def _without_oversized(X: Floats, labels: Labels, k: int) -> Labels:
    """Split groups of 2k or more, which never raises the SSE."""
    labels = canonical_labels(labels).copy()
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    fresh = len(sizes)
    for g in np.flatnonzero(sizes >= 2 * k):
        rows = order[ends[g] - sizes[g] : ends[g]]
        parts = canonical_labels(mdav(np.ascontiguousarray(X[rows]), k))
        labels[rows] = np.where(parts == 0, g, fresh + parts - 1)
        fresh += int(parts.max())
    return canonical_labels(labels)


class _Heat(NamedTuple):
    """Temperatures at the beginning and the end of a pass, in the unit of SSE."""

    hot: float
    cold: float


def _pass(
    X: Floats,
    labels: Labels,
    k: int,
    steps: float,
    heat: _Heat,
    seed: list[int],
    state: State,
    done: int,
) -> Labels:
    """Anneal every cell once, so many steps for each group; return new labels.

    The progress rises by ``done`` on the way.
    """
    labels = labels.copy()
    rng = np.random.default_rng(seed)
    random = rng.integers(0, 2**63, size=1, dtype=np.uint64)
    cells = split(X, labels, int(labels.max()) + 1, GROUPS_IN_A_CELL, random)
    seeds = rng.integers(0, 2**63, size=len(cells.first) - 1, dtype=np.uint64)
    share_out(
        lambda begin, end, _: anneal_cells(
            X, labels, k, cells, begin, end, steps, heat, seeds, state
        ),
        len(seeds),
        state,
        done,
        at_once=1,
    )
    return canonical_labels(labels)


def anneal_table(
    X: Floats, labels: Labels, k: int, budget: Budget, seed: list[int], state: State, done: int
) -> tuple[Labels, Labels]:
    """Anneal the labels 0, 1, … of groups of k to 2k−1 in passes: the best found, and the last.

    The progress rises by ``done`` on the way.
    """
    best, least = labels, sum_of_squares(X, labels)
    current, n_groups = labels, int(labels.max()) + 1
    steps, unit = _steps(budget, n_groups, k), budget.hot * least / n_groups
    for turn in range(budget.passes):
        if state[STOP] or n_groups == 1 or least == 0:
            break
        heat = _Heat(
            unit * (1 - turn / budget.passes) ** 2, unit * (1 - (turn + 1) / budget.passes) ** 2
        )
        share = done * (turn + 1) // budget.passes - done * turn // budget.passes
        current = _pass(X, current, k, steps, heat, [*seed, turn], state, share)
        sse = sum_of_squares(X, current)
        if sse < least:
            best, least = current, sse
            tell_best(state, least)
    return best, current


def refine(
    X: Floats,
    labels: Labels,
    k: int,
    *,
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int | None = 0,
    progress: State | None = None,
) -> Labels:
    """Improve a partition by local search; never worse than given.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled
    labels : int64 array of shape (n,), groups of at least k
    k : int, at least 1
    effort : {"fast", "balanced", "best"}
    time_limit : seconds after which the best partition so far is returned
    random_state : seed; None draws a fresh one
    progress : shared state of a watched run, see :mod:`microagg.progress`

    Returns
    -------
    int64 array of shape (n,): the group of each record.

    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> refine(X, np.array([0, 1, 0, 1, 0, 1]), 3).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    from microagg.methods.refine.best import search_best  # which is made of this module's passes

    state = new_state() if progress is None else progress
    current = _without_oversized(X, labels, k)
    tell_best(state, sum_of_squares(X, current))
    seed = int(np.random.default_rng(random_state).integers(2**62))
    with stop_after(state, time_limit, len(X)):
        if k > _TOO_LARGE:
            best = current
        elif effort == "best":
            best = search_best(X, current, k, seed, time_limit is not None, state)
        else:
            best, _ = anneal_table(X, current, k, _BUDGETS[effort], [seed], state, len(X))
    state[DONE] = len(X)
    return best
