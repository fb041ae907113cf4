"""Improving any partition, in passes over cells of neighbouring groups.

Problem   Given a partition of n records into groups of at least k, find one of lower SSE.
Idea      Split the groups into cells of about a hundred, by halving the table again and again
          across random directions. Anneal each cell by itself (anneal.py), then split anew
          across other directions, so that no border lasts. The temperature falls
          from pass to pass. The best partition seen is returned, never one worse than given.
Cost      O(n) for a pass, but for O(n log n) of splitting. A heuristic.
Paper     None: our own. Pools of neighbouring groups rebuilt at random, with moves and swaps.
Threads   A cell's random numbers depend on the seed, the pass and the cell alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from microagg.groups import Floats, Labels, canonical_labels, sum_of_squares
from microagg.methods.fixed_size.mdav import mdav
from microagg.methods.refine.anneal import anneal
from microagg.progress import DONE, STOP, State, new_state

_GROUPS_IN_A_CELL = 128
# Steps for each group, steps for the whole table on top, passes.
_EFFORT = {"fast": (8, 20_000, 8), "balanced": (40, 120_000, 24), "best": (400, 2_000_000, 80)}
_HOT = 0.3  # starting temperature in units of the mean SSE of a group


def _without_oversized(X: Floats, labels: Labels, k: int) -> Labels:
    """Split groups of 2k or more, which never raises the SSE."""
    labels = canonical_labels(labels)
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    ends = np.cumsum(sizes)
    fresh = len(sizes)
    for g in np.flatnonzero(sizes >= 2 * k):
        rows = order[ends[g] - sizes[g] : ends[g]]
        parts = canonical_labels(mdav(np.ascontiguousarray(X[rows]), k))
        labels[rows] = np.where(parts == 0, g, fresh + parts - 1)
        fresh += int(parts.max())
    return labels


def _cells(centroids: Floats, rng: np.random.Generator) -> list[NDArray[np.intp]]:
    """Split groups into cells of at most so many, by halves across random directions."""
    done: list[NDArray[np.intp]] = []
    todo = [np.arange(len(centroids))]
    while todo:
        groups = todo.pop()
        if len(groups) <= _GROUPS_IN_A_CELL:
            done.append(groups)
            continue
        direction = rng.normal(size=centroids.shape[1])
        # Not always at the half: cells of another pass have other borders also along a line.
        middle = int(len(groups) * rng.uniform(0.4, 0.6))
        order = np.argpartition(centroids[groups] @ direction, middle)
        todo += [np.sort(groups[order[:middle]]), np.sort(groups[order[middle:]])]
    return done


def _pass(
    X: Floats,
    labels: Labels,
    k: int,
    steps: float,
    hot: float,
    cold: float,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor,
    state: State,
) -> Labels:
    """Anneal every cell once; steps are for each group."""
    sizes = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    centroids = np.add.reduceat(X[order], starts) / sizes[:, None]
    cells = _cells(centroids, rng)
    seeds = rng.integers(0, 2**63, size=len(cells))

    def one(cell: NDArray[np.intp], seed: int) -> tuple[NDArray[np.intp], Labels, int]:
        rows = np.concatenate([order[starts[g] : starts[g] + sizes[g]] for g in cell])
        rows.sort()  # so that a cell does not depend on how groups are numbered
        local = canonical_labels(labels[rows])
        turns = int(np.ceil(steps * len(cell)))
        count = anneal(np.ascontiguousarray(X[rows]), local, k, turns, hot, cold, seed, state)
        return rows, local, count

    new, count = np.empty_like(labels), 0
    for rows, local, found in pool.map(one, cells, seeds):
        new[rows] = local + count
        count += found
    return new


def refine(
    X: Floats,
    labels: Labels,
    k: int,
    *,
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int = 0,
    progress: State | None = None,
) -> Labels:
    """Improve a partition by local search; never worse than given.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled
    labels : int64 array of shape (n,), groups of at least k
    k : int
    effort : {"fast", "balanced", "best"}
    time_limit : seconds after which the best partition so far is returned
    random_state : int

    Returns
    -------
    int64 array of shape (n,)
    """
    state = new_state() if progress is None else progress
    ends = np.inf if time_limit is None else time.monotonic() + time_limit
    current = _without_oversized(X, labels, k)
    best, least = current, sum_of_squares(X, current)
    each, extra, passes = _EFFORT[effort]
    rng = np.random.default_rng(random_state)
    n_groups = int(current.max()) + 1
    steps = (each + extra / n_groups) / passes * min(1.0, (32 / k) ** 2)
    hot = _HOT * least / n_groups
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for turn in range(passes):
            if state[STOP] or time.monotonic() > ends or n_groups == 1 or least == 0:
                break
            heat, cool = (1 - turn / passes) ** 2, (1 - (turn + 1) / passes) ** 2
            current = canonical_labels(
                _pass(X, current, k, steps, hot * heat, hot * cool, rng, pool, state)
            )
            sse = sum_of_squares(X, current)
            if sse < least:
                best, least = current, sse
            state[DONE] = len(X) * (turn + 1) // passes
    return best
