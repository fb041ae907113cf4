"""Rounds from the outside in on several processors: threads search ahead, one forms the groups.

Problem   A round of kernels/outside_in.py depends on the one before, and its searches take most of the time.
Idea      The records that will begin the next rounds are known with little doubt: those farthest from the
          centroid now. Threads list for each of them who would join it and who is farthest from it, and
          for the one farthest who would join that one, in a tree that stands still. Then the rounds are made
          one after the other. Records only leave: the nearest that are left of a list of the nearest
          are the nearest of all that are left, and so it is with the farthest. Where too few of a list
          are left the search is made anew, so that groups are those without lists, to the last record.
Lists     With a moving centroid a list has the k−1 that would join, one after the other; if all are
          left they still join. Else it has a few more than k−1, in case some are taken by others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.progress import DONE, STOP, State
from microagg.base.typing import Floats
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.compile.threads import share_with_helpers
from microagg.kernels.kd_search import farthest, in_order, nearest, nearest_of_others, some_farthest
from microagg.kernels.kd_tree import NO_ROW, KdTree, for_thread, remove
from microagg.kernels.remaining import (
    Remaining,
    gather,
    outermost,
    settle_centroid,
    take_but_in_tree,
)
from microagg.kernels.shells import some_farthest_in_shells

_FEW_COLUMNS = 7  # with which searches are so quick that threads cost more than they gain
_APART = 130  # records left for each one of the groups of a batch, so that few take from each other
_EACH = 16  # records of a batch for each thread at most
_LEAST = 16  # the same for all threads: fewer are not worth their while
_FAR = 2  # records in the list of the farthest
_PIECE = 4  # records that a thread takes on at once


class CandidateLists(NamedTuple):
    """Lists of the records that may soon begin groups, those that are to begin rounds first."""

    seeds: Any  # (2·most,) the records; the second half are those farthest from the first
    near: Any  # (2·most, width) who would join each, in order
    far: Any  # (most, _FAR) the farthest from each of the first half
    index: Any  # (n,) where the lists of a record are, if the seed at this place is this record
    waiting: Any  # (2·k·most,) records taken that are still in the tree
    distance: Any  # (most,) scratch


def batch_of(m: int, d: int, k: int, threads: int) -> int:
    """Return how many rounds to search ahead for with m records left; 0 if that would not be faster."""
    batch = min(m // (_APART * k), _EACH * threads)
    return batch if threads > 1 and d > _FEW_COLUMNS and batch >= _LEAST else 0


@lean_subkernel
def _list_joining(tree, distances, moving, X, seed, near):
    """List who would join a record."""
    if moving is None:
        in_order(distances, near, nearest(tree, X[seed], near.size, distances, near))
    else:
        total, centre = moving[0], moving[1]
        for j in range(total.size):
            total[j] = centre[j] = X[seed, j]
        for a in range(near.size):
            near[a] = nearest_of_others(tree, centre, seed, near, a)
            for j in range(total.size):
                total[j] += X[near[a], j]
                centre[j] = total[j] / (a + 2)


@lean_subkernel
def _claim(candidates, far, index):
    """Put the first of the farthest that no other place is for to a place, or else the first.

    Records far out are the farthest from many. Threads may claim one at the same time, or in any order:
    which lists there are decides how long rounds take, not what they find.
    """
    candidates.seeds[index] = far[0]
    for row in far:
        if candidates.seeds[candidates.index[row]] != row:
            candidates.seeds[index] = row
            break
    candidates.index[candidates.seeds[index]] = index


@lean_kernel
def look(tree, distances, moving, X, both, candidates, begin, end, batch):
    """Make the lists of the records begin..end−1 of a batch; tree and ``distances`` are the thread's."""
    lists = batch
    if both is not None:
        lists = 2 * batch
        for a in range(begin, end):
            far, point = candidates.far[a], X[candidates.seeds[a]]
            in_order(distances, far, some_farthest(tree, point, far.size, distances, far))
            _claim(candidates, far, batch + a)
    for half in range(0, lists, batch):
        for a in range(half + begin, half + end):
            _list_joining(tree, distances, moving, X, candidates.seeds[a], candidates.near[a])


@lean_kernel
def choose(remaining, candidates, m, batch):
    """Take the records that are farthest from the centroid of the m left as those to begin rounds."""
    settle_centroid(remaining, m)
    for a in range(candidates.seeds.size):
        candidates.seeds[a] = NO_ROW
    some_farthest_in_shells(
        remaining.shells, remaining.centroid, batch, candidates.distance, candidates.seeds
    )
    for a in range(batch):
        candidates.index[candidates.seeds[a]] = a


@lean_subkernel
def _catch_up(remaining, candidates, waiting):
    """Remove from the tree what was taken."""
    for a in range(waiting):
        remove(remaining.tree, candidates.waiting[a])


@lean_subkernel
def _take(remaining, candidates, waiting, row, group):
    take_but_in_tree(remaining, row, group)
    candidates.waiting[waiting] = row
    return waiting + 1


@lean_subkernel
def _form(remaining, candidates, lists, moving, waiting, seed, k, group, distances, rows):
    """Give a record and the k−1 that join it a label; return how many are still in the tree."""
    waiting = _take(remaining, candidates, waiting, seed, group)
    index, joining = candidates.index[seed], 0
    if index < lists and candidates.seeds[index] == seed:
        for row in candidates.near[index]:
            if joining < k - 1 and remaining.labels[row] < 0:
                rows[joining] = row
                joining += 1
    if joining == k - 1:
        for a in range(joining):
            waiting = _take(remaining, candidates, waiting, rows[a], group)
        return waiting
    _catch_up(remaining, candidates, waiting)
    gather(remaining, moving, seed, k, group, distances, rows)
    return 0


@lean_kernel
def rounds_ahead(remaining, candidates, moving, both, m, k, group, batch, distances, rows, state):
    """Form groups as ``rounds`` does, as long as there are lists of the records that begin a round.

    There are never so few records left that there would be no second group.

    Returns the records left, the number of groups, and whether shells are worn.
    """
    lists = batch if both is None else 2 * batch
    for a in range(lists - 1, -1, -1):  # a record may be in several places
        candidates.index[candidates.seeds[a]] = a
    waiting, worn = 0, False
    while m > remaining.enough and not worn and not state[STOP]:
        first, worn = outermost(remaining, m)
        index = candidates.index[first]
        if index >= batch or candidates.seeds[index] != first:
            break
        seed = first
        while seed >= 0:
            waiting = _form(
                remaining, candidates, lists, moving, waiting, seed, k, group, distances, rows
            )
            m -= k
            group += 1
            second = NO_ROW
            if both is not None and seed == first:
                for row in candidates.far[index]:
                    if second < 0 and remaining.labels[row] < 0:
                        second = row
                if second < 0:
                    _catch_up(remaining, candidates, waiting)
                    second, waiting = farthest(remaining.tree, remaining.X[first]), 0
            seed = second
        state[DONE] = remaining.labels.size - m
    _catch_up(remaining, candidates, waiting)
    return m, group, worn


class Searchers:
    """Threads that search ahead for the rounds of one table."""

    def __init__(self, k: int, both: int | None, moving: Floats | None) -> None:
        self._k, self._both, self._moving = k, both, moving
        self._candidates: CandidateLists | None = None
        # By thread: its tree, and scratch for distances and for a centre.
        self._scratch: dict[int, tuple[KdTree, Floats, Floats | None]] = {}
        self._tree: KdTree | None = None

    def rounds(
        self, remaining: Remaining, m: int, group: int, batch: int, scratch: Any, state: State
    ) -> tuple[int, int, bool]:
        """Make a batch of rounds: the records left, the number of groups, and whether shells are worn."""
        tree, moving, k = remaining.tree, self._moving, self._k
        assert tree is not None  # few records have none, and need no threads
        if self._tree is not tree:
            self._tree = tree
            self._scratch.clear()
        width = k + max(2, k // 5) if moving is None else k - 1  # one place is the record's own
        candidates = self._candidates
        if candidates is None or len(candidates.distance) < batch:
            candidates = self._candidates = CandidateLists(
                seeds=np.full(2 * batch, NO_ROW),
                near=np.empty((2 * batch, width), np.intp),
                far=np.empty((batch, _FAR), np.intp),
                index=np.zeros(len(remaining.X), np.intp),
                waiting=np.empty(2 * k * batch, np.intp),
                distance=np.empty(batch),
            )
        choose(remaining, candidates, m, batch)

        def work(begin: int, end: int, thread: int) -> None:
            if thread not in self._scratch:
                centre = None if moving is None else np.empty_like(moving)
                self._scratch[thread] = for_thread(tree), np.empty(max(width, _FAR)), centre
            look(*self._scratch[thread], remaining.X, self._both, candidates, begin, end, batch)

        share_with_helpers(work, batch, at_once=_PIECE)
        counts: tuple[int, int, bool] = rounds_ahead(
            remaining, candidates, moving, self._both, m, k, group, batch, *scratch, state
        )
        return counts
