"""Improving any partition, in passes over patches of neighbouring groups.

Problem   Given a partition of n records into groups of at least k, find one of lower SSE.
Idea      Split the groups into patches of about a hundred, by halving the table again and again
          across random directions (patches.py). Anneal each patch by itself (anneal.py), then split
          anew across other directions, so that no border lasts. The temperature falls
          from pass to pass (search_passes.py). The best partition seen is returned, never a worse one
          than given.
          Large groups are annealed without tables of distances (large.py), before and after which they
          are parted anew two by two (pairs.py).
Cost      O(n) for a pass, but for O(n log n) of splitting. A heuristic.
Paper     None: our own. Pools of neighbouring groups rebuilt at random, with moves and swaps.
Threads   A patch's random numbers depend on the seed, the pass and the patch alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

import time

import numpy as np

from microagg.algorithms.refine.best_search import search_best
from microagg.algorithms.refine.search_passes import AnnealBudget, Run, anneal_table, parted
from microagg.base.progress import DONE, State, new_state, stop_after, tell_best
from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import canonical_labels
from microagg.kernels.mdav_groups import mdav_labels
from microagg.plan.settings import LARGE_K

_BUDGETS = {
    "fast": AnnealBudget(6, 40_000, 100, 5, 0.02, 7, 40),
    "balanced": AnnealBudget(40, 600_000, 1_000, 48, 0.05, 7, 40),
    "best": AnnealBudget(60, 700_000, 1_500, 48, 0.05, 7, 40),  # a turn of many
}
_ANY = 2**62  # no bound on the records of a pool
_LARGE_BUDGETS = {
    "fast": AnnealBudget(2, 20_000, 30, 4, 0.02, 3, _ANY, sweeps=2),
    "balanced": AnnealBudget(16, 250_000, 350, 48, 0.03, 6, _ANY, sweeps=3),
    "best": AnnealBudget(30, 400_000, 600, 48, 0.03, 6, _ANY, sweeps=3),
}


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
        mass = None if weights is None else weights[rows]
        parts = canonical_labels(mdav_labels(np.ascontiguousarray(X[rows]), k, new_state(), mass))
        labels[rows] = np.where(parts == 0, g, fresh + parts - 1)
        fresh += int(parts.max())
    return canonical_labels(labels)


def refine(
    X: Floats,
    labels: Labels,
    k: int,
    *,
    weights: Floats | None = None,
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int | None = 0,
    n_total: int | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    state: State | None = None,
) -> Labels:
    """Improve a partition by local search; never worse than given.

    ``X`` is centred, scaled and C-contiguous; groups have at least k records; ``weights`` have a mean of 1.
    ``n_total`` is the number of records of the table that these are a part of, whose steps are shared out.
    ``span`` says from where to where in the search to go, from 0 to 1: a table in blocks is searched in
    spans, with other borders in each, and what comes before the end may be worse than given.

    >>> X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> refine(X, np.array([0, 1, 0, 1, 0, 1]), 3).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    state = new_state() if state is None else state
    seed = int(np.random.default_rng(random_state).integers(2**62))
    started = time.monotonic()
    budgets = _BUDGETS if k <= LARGE_K else _LARGE_BUDGETS
    run, budget = Run(X, k, seed, state, weights), budgets[effort]
    if n_total is not None:
        budget = budget._replace(table=budget.table * len(X) // n_total)
    best = _without_oversized(X, weights, labels, k)
    least = run.loss(best)
    tell_best(state, least)
    with stop_after(state, time_limit, len(X)):
        if best.max() == 0 or run.over():
            improved = best
        else:
            improved = parted(run, best, budget)
            if effort == "best":
                if k > LARGE_K:  # whose turns alone need not end below the default's
                    improved, _ = anneal_table(run, improved, budgets["balanced"], 0)
                until = None if time_limit is None else started + time_limit
                improved = search_best(run, improved, budget, until)
            else:
                improved, last = anneal_table(run, improved, budget, len(X), span)
                if span[1] < 1.0:
                    best, least = last, np.inf
    if np.isfinite(least) and run.loss(improved) < least:
        best = improved
    state[DONE] = len(X)
    return best
