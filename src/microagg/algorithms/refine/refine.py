"""Improving any partition, in passes over patches of neighbouring groups.

Problem   Given a partition of n records into groups of at least k, find one of lower SSE.
Idea      Split the groups into patches of about a hundred, by halving the table again and again
          across random directions (patches.py). Anneal each patch by itself (anneal.py), then split
          anew across other directions, so that no border lasts. The temperature falls
          from pass to pass (search_passes.py). The best partition seen is returned, never a worse one
          than given.
          Large groups are annealed without tables of distances, before and after which they
          are parted anew two by two (large.py).
Cost      O(n) for a pass, but for O(n log n) of splitting. A heuristic.
Paper     None: our own. Pools of neighbouring groups rebuilt at random, with moves and swaps.
Threads   A patch's random numbers depend on the seed, the pass and the patch alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from microagg.algorithms.refine.patches import grouped, groups_in_a_patch, split_groups
from microagg.algorithms.refine.recombine import RecombineLimits, recombine
from microagg.algorithms.refine.search_passes import (
    IN_A_PATCH,
    AnnealBudget,
    Run,
    anneal_table,
    length_of,
    parted,
)
from microagg.base.progress import DONE, STOP, State, new_state, stop_after, tell_best
from microagg.base.typing import Floats, Labels
from microagg.compile.threads import share_out, thread_count
from microagg.kernels.labels import canonical_labels, split_large
from microagg.kernels.outside_in import mdav_labels
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

    Parameters
    ----------
    X : (n, d) centred and scaled records, C-contiguous; never written to
    labels : (n,) int64, groups of at least k records; never written to
    weights : (n,) above 0, with a mean of 1; None: all weigh the same
    effort : "fast", "balanced" or "best"
    time_limit : seconds after which the best groups so far are returned; None: when the effort is made
    random_state : seed of the random numbers; None draws a fresh one
    n_total : number of records of the table that these are a part of, whose steps are shared out
    span : from where to where in the search to go, from 0 to 1: a table in blocks is searched in spans, with
        other borders in each, and what comes before the end may be worse than given
    state : progress, and the wish to stop

    Returns
    -------
    (n,) int64, the caller's: groups of at least k, numbered by first appearance

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

    def parts_of(rows: Any) -> Labels:
        mass = None if weights is None else weights[rows]
        return canonical_labels(mdav_labels(np.ascontiguousarray(X[rows]), k, new_state(), mass))

    best = canonical_labels(labels).copy()
    split_large(best, k, parts_of, new_state())  # which never raises the SSE
    best = canonical_labels(best)
    least = run.loss(best)
    tell_best(state, least)
    with stop_after(state, time_limit, len(X)):
        if best.max() == 0 or state[STOP]:
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


# The search for the lowest loss: anneals and recombinations by turns.
#
# Problem   As above, when time matters less than loss.
# Idea      Annealing finds good groups everywhere but seldom all of the best at once;
#           recombination (recombine.py) chooses among the groups of several anneals and their
#           variants. By turns: anneal from the best partition, heated up again; then recombine it with the
#           last few, in patches of neighbouring groups that are cut otherwise in every turn.
#           After the first turn pools are three times as large: with many steps for each group they
#           find lower losses in the same time, with few they do not. And turns get longer: one
#           slow anneal goes lower than several quick ones; the last is as long as the remaining time,
#           since one that is cut off while it is hot has found nothing. After a recombination that found
#           nothing the next one is left out; large groups are not recombined, as nothing comes of it.
# Cost      Without a time limit a number of turns that depends on n and k alone, else until time is over.
#           A turn is O(n), but for O(n log n) of cutting.
# Threads   As above, the result does not depend on their number, unless there is a time limit:
#           then threads that would have no patch to anneal do an anneal of their own.

_GROUPS_IN_A_POOL = 26  # to anneal, after the first turn
_RECORDS_IN_A_POOL = 80
_LARGE_GROUPS_IN_A_POOL = 9
_DEARER = 4  # what an anneal of such pools costs, in relation to the first turn's
_IN_TIME = 0.9  # share of the remaining time that a turn may take, judged by the one before
_SHORTEST = 0.1  # of a turn: less would not be worth its heat
_LIMITS = (
    RecombineLimits(20, 30, 120, 100),
    RecombineLimits(40, 60, 240, 500),
    RecombineLimits(80, 120, 480, 5_000),
    RecombineLimits(80, 960, 960, 20_000),  # a patch at once
)
_PARTITIONS = 6  # to recombine at most, with the best
_RECORDS_IN_A_BLOCK = 4_000  # over k: with larger groups the relaxation is harder
_GROUPS = 8_000  # over which many groups the turns are shared out when there is no time limit
_ALONE = 2  # turns without a recombination at first, which has little to choose from then
_TURNS = 4  # the most without a time limit
_EASY = 1_080  # over k²: groups in a patch whose program takes seconds; the solver's branches are no clock


def _recombined(
    run: Run, partitions: list[Labels], limits: RecombineLimits, turn: int, done: int
) -> Labels:
    """Recombine every patch of the first partition once; return new labels."""
    X, k, state, seed = run.X, run.k, run.state, [run.seed, turn]
    labels = partitions[0].copy()
    n_groups = int(labels.max()) + 1
    random = np.random.default_rng(seed).integers(0, 2**63, size=1, dtype=np.uint64)
    old = grouped(X, labels, n_groups)
    groups, first = split_groups(old.centroid, max(2, _RECORDS_IN_A_BLOCK // k**2), random)
    n_patches = len(first) - 1
    before = np.append(0, np.cumsum(np.diff(old.start)[groups]))[first]  # records
    of_partition = [np.bincount(partition) for partition in partitions]

    def work(begin: int, end: int, _: int) -> None:
        for b in range(begin, end):
            mine = groups[first[b] : first[b + 1]]
            rows = np.concatenate([old.rows[old.start[g] : old.start[g + 1]] for g in mine])
            rows.sort()
            inside = [canonical_labels(labels[rows])]
            for partition, size in zip(partitions[1:], of_partition[1:], strict=True):
                values, inverse, count = np.unique(
                    partition[rows], return_inverse=True, return_counts=True
                )
                complete = count == size[values]
                inside.append(np.where(complete, np.cumsum(complete) - 1, -1)[inverse])
            alone = n_patches == 1
            mass = None if run.weights is None else run.weights[rows]
            new = recombine(
                X[rows], inside, k, limits, [*seed, b], state, weights=mass, alone=alone
            )
            labels[rows] = n_groups + before[b] + new  # labels that no other patch has

    share_out(work, n_patches, state, done, at_once=1)
    return canonical_labels(labels)


def _annealed(
    run: Run, labels: Labels, budget: AnnealBudget, turn: int, share: float, walks: int, done: int
) -> list[tuple[Labels, Labels]]:
    """Anneal some times at once, for a share of a turn; return the best partition of each and the last."""
    ends, large = [(labels, labels)] * walks, run.k > LARGE_K
    if turn > 0:
        share /= _DEARER
        budget = budget._replace(
            each=budget.each * _DEARER,
            groups=_LARGE_GROUPS_IN_A_POOL if large else _GROUPS_IN_A_POOL,
            records=budget.records if large else _RECORDS_IN_A_POOL,
        )
    budget = budget.in_turn(turn, share)

    def work(walk: int, _: int, __: int) -> None:
        seed = int(np.random.default_rng([run.seed, turn, walk]).integers(2**62))
        ends[walk] = anneal_table(run._replace(seed=seed), labels, budget, done)

    share_out(work, walks, run.state, at_once=1)
    return ends


def _share(turn: int, took: float, until: float | None) -> float:
    """Return the share of a turn that there is time for, if a turn of length 1 takes ``took`` seconds."""
    if until is None or turn == 0:
        return 1.0
    remaining = _IN_TIME * (until - time.monotonic())
    return float(np.clip(remaining / (took * length_of(turn)), _SHORTEST, 1.0))


def search_best(run: Run, labels: Labels, budget: AnnealBudget, until: float | None) -> Labels:
    """Improve labels 0, 1, … of groups of k to 2k−1 by turns; never worse than given.

    With a time limit, ``until``, it goes on until it is asked to stop.
    """
    endless, took = until is not None, 0.0
    best, least = labels, run.loss(labels)
    n_groups = int(labels.max()) + 1
    number = min(_TURNS, 1 + _GROUPS // n_groups)
    patches = -(-n_groups // groups_in_a_patch(n_groups, *IN_A_PATCH))
    walks = max(1, thread_count() // patches) if endless else 1
    done = 0 if endless else len(run.X) // (2 * number)  # of half a turn
    partitions: list[Labels] = []
    alone = _ALONE if endless else min(_ALONE, number - 1)
    turn, fruitful = 0, True
    while not run.state[STOP] and least > 0 and (endless or turn < number):
        began, share = time.monotonic(), _share(turn, took, until)
        for labels_of_walk, last in _annealed(run, best, budget, turn, share, walks, done):
            partitions = [last, *partitions][:_PARTITIONS]
            sse = run.loss(labels_of_walk)
            if sse < least:
                best, least = labels_of_walk, sse
        took = (time.monotonic() - began) / (length_of(turn) * share)
        limits = _LIMITS[min(turn // 2, len(_LIMITS) - 1)]
        if not endless:
            easy = max(2, _EASY // run.k**2)
            limits = limits._replace(
                groups=min(limits.groups, easy), largest=min(limits.largest, easy)
            )
        if turn >= alone and fruitful and run.k <= LARGE_K:
            best = _recombined(run, [best, *partitions], limits, turn, done)
            before, least = least, run.loss(best)
            fruitful = least < before
        else:
            fruitful = True
        tell_best(run.state, least)
        turn += 1
    return best
