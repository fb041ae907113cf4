"""The search for the lowest loss: anneals and recombinations by turns.

Problem   As for refine.py, when time matters less than loss.
Idea      Annealing (refine.py) finds good groups everywhere but seldom all of the best at once;
          recombination (recombine.py) chooses among the groups of several anneals and their
          variants. By turns: anneal from the best partition, heated up again; then recombine it with the
          last few, in patches of neighbouring groups that are cut otherwise in every turn.
          After the first turn pools are three times as large: with many steps for each group they
          find lower losses in the same time, with few they do not. And turns get longer: one
          slow anneal goes lower than several quick ones; the last is as long as the remaining time,
          since one that is cut off while it is hot has found nothing. After a recombination that found
          nothing the next one is left out; large groups are not recombined, as nothing comes of it.
Cost      Without a time limit a number of turns that depends on n and k alone, else until time is over.
          A turn is O(n), but for O(n log n) of cutting.
Threads   As in refine.py, the result does not depend on their number, unless there is a time limit:
          then threads that would have no patch to anneal do an anneal of their own.
"""

from __future__ import annotations

import time

import numpy as np

from microagg.algorithms.refine.patches import grouped, split_groups
from microagg.algorithms.refine.recombine import RecombineLimits, recombine
from microagg.algorithms.refine.search_passes import (
    AnnealBudget,
    Run,
    anneal_table,
    length_of,
    patches_of,
)
from microagg.base.progress import tell_best
from microagg.base.typing import Labels
from microagg.compile.threads import share_out, thread_count
from microagg.kernels.labels import canonical_labels
from microagg.plan.settings import LARGE_K

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
    labels = partitions[0]
    random = np.random.default_rng(seed).integers(0, 2**63, size=1, dtype=np.uint64)
    old = grouped(X, labels, int(labels.max()) + 1)
    groups, first = split_groups(old.centroid, max(2, _RECORDS_IN_A_BLOCK // k**2), random)
    n_patches = len(first) - 1
    before = np.append(0, np.cumsum(np.diff(old.start)[groups]))[first]  # records
    patch, number = np.repeat(np.arange(n_patches), np.diff(first)), np.empty_like(groups)
    number[groups] = before[patch] + np.arange(len(groups)) - first[patch]
    labels = number[labels]  # as different from those of other patches as the new ones will be
    of_partition = [np.bincount(other) for other in partitions]

    def work(begin: int, end: int, _: int) -> None:
        for b in range(begin, end):
            mine = groups[first[b] : first[b + 1]]
            rows = np.concatenate([old.rows[old.start[g] : old.start[g + 1]] for g in mine])
            rows.sort()
            inside = [canonical_labels(labels[rows])]
            for other, size in zip(partitions[1:], of_partition[1:], strict=True):
                values, place, count = np.unique(
                    other[rows], return_inverse=True, return_counts=True
                )
                complete = count == size[values]
                inside.append(np.where(complete, np.cumsum(complete) - 1, -1)[place])
            alone = n_patches == 1
            mass = None if run.weights is None else run.weights[rows]
            new = recombine(
                X[rows], inside, k, limits, [*seed, b], state, weights=mass, alone=alone
            )
            labels[rows] = before[b] + new

    share_out(work, n_patches, state, done, at_once=1)
    return canonical_labels(labels)


def _longer(budget: AnnealBudget, turn: int, large: bool, share: float) -> AnnealBudget:
    """Return the budget of a later turn, or of a share of it."""
    length = length_of(turn) * share
    if turn > 0:
        length /= _DEARER
        budget = budget.in_turn(turn)._replace(
            each=budget.each * _DEARER,
            groups=_LARGE_GROUPS_IN_A_POOL if large else _GROUPS_IN_A_POOL,
            records=budget.records if large else _RECORDS_IN_A_POOL,
        )
    return budget.times(length)


def _annealed(
    run: Run, labels: Labels, budget: AnnealBudget, turn: int, share: float, walks: int, done: int
) -> list[tuple[Labels, Labels]]:
    """Anneal some times at once; return the best partition of each and the last."""
    ends = [(labels, labels)] * walks

    def work(walk: int, _: int, __: int) -> None:
        seed = int(np.random.default_rng([run.seed, turn, walk]).integers(2**62))
        longer = _longer(budget, turn, run.k > LARGE_K, share)
        ends[walk] = anneal_table(run._replace(seed=seed), labels, longer, done)

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
    walks = max(1, thread_count() // patches_of(n_groups)) if endless else 1
    done = 0 if endless else len(run.X) // (2 * number)  # of half a turn
    partitions: list[Labels] = []
    alone = _ALONE if endless else min(_ALONE, number - 1)
    turn, fruitful = 0, True
    while not run.over() and least > 0 and (endless or turn < number):
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
