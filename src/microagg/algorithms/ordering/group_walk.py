"""A walk through all records, group by group: steps 2 to 12 of RepOrdMic, one pass.

A group is passed along a short path (short_path.py); next comes the group of the nearest record not
yet seen. Nearly all of these searches end in lists of neighbours that are made once, the
others ask a tree of the records left, or a list of these while such searches are few. A group that
is the same as in the last walk, entered at the same record, has the same path. The paper: rep_ord_mic.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.ordering.cut import Order
from microagg.algorithms.ordering.short_path import Path, new_path, path_through
from microagg.base.progress import STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.no_refcount import lean_kernel, lean_subkernel
from microagg.kernels.kd_search import nearest_one
from microagg.kernels.kd_tree import NO_ROW, KdTree, build, drop
from microagg.kernels.nearest_neighbours import nearest_rows

NEAR = 32  # neighbours known of each record
_SCANNED_RECORDS = 256  # up to this many left, each is looked at, without a tree
_SEARCHES = 32  # before this many a tree is not worth building


@lean_subkernel
def _scan(X, last, left, seen):
    """Nearest unseen record by a look at all that are left; those seen leave the list.

    The list ends with −1 and is sorted, so that the lowest row of equals is found.
    """
    nearest_row, least, kept = -1, np.inf, 0
    for row in left:
        if row < 0:
            break
        if not seen[row]:
            left[kept] = row
            kept += 1
            total = 0.0
            for j in range(X.shape[1]):
                total += (X[row, j] - X[last, j]) * (X[row, j] - X[last, j])
            if total < least:
                nearest_row, least = row, total
    if kept < left.size:
        left[kept] = -1
    return nearest_row


@lean_kernel
def _members(labels, start, rows):
    """Rows group by group, ascending in each; group g begins at ``start[g]``."""
    start[:] = 0
    for g in labels:
        start[g] += 1
    for g in range(1, start.size):
        start[g] += start[g - 1]
    for row in range(labels.size - 1, -1, -1):
        start[labels[row]] -= 1
        rows[start[labels[row]]] = row


@lean_subkernel
def _path_known(labels, group, first, order, place, size, seq):
    """Copy the path through a group to ``seq`` if the last walk took it from the same record on."""
    at = place[first]
    if size[at] != group.size:
        return False
    for t in range(group.size):
        if labels[order[at + t]] != labels[first]:
            return False
        seq[t] = order[at + t]
    return True


@lean_kernel
def _walk(X, near, search, members, start, labels, path, last_walk, size, seen, order, at, state):
    """Visit groups: steps 3 to 12. ``members`` holds the rows group by group.

    ``at`` is the record to go on with, −1 if it is still to be found, how many are placed, how
    many of those the tree has lost, and how many searches there were. Returns whether a new
    :class:`_UnseenRecords` is needed to go on.
    """
    n = order.size
    before, place, size_before = last_walk.order, last_walk.place, last_walk.size
    current, placed, taken, asked = at
    while not state[STOP]:
        if current >= 0:
            g = labels[current]
            group = members[start[g] : start[g + 1]]
            seq = order[placed : placed + group.size]
            if not _path_known(labels, group, current, before, place, size_before, seq):
                path_through(X, group, current, path, seq)
            size[placed] = group.size
            placed += group.size
            if placed == n:
                return False
            for row in group:
                seen[row] = True
        last, current = order[placed - 1], -1
        for row in near[last]:
            if not seen[row]:
                current = row
                break
        if current >= 0:
            continue
        if n - placed < search.least or asked >= search.most:
            at[0], at[1], at[2], at[3] = -1, placed, placed, asked
            return True
        asked += 1
        if search.left.size > 0:
            current = _scan(X, last, search.left, seen)
            continue
        drop(search.tree, order[taken:placed])
        taken = placed
        # What came next when this record was last asked for is a start, if it is unseen again.
        known, square = last_walk.next[last], np.inf
        if known >= 0 and not seen[known]:
            square = 0.0
            for j in range(X.shape[1]):
                square += (X[known, j] - X[last, j]) * (X[known, j] - X[last, j])
        else:
            known = NO_ROW
        current = nearest_one(search.tree, X[last], NO_ROW, square, known, -1.0)[1]
        last_walk.next[last] = current
    return False


@lean_kernel
def _keep_walk(order, size, last_walk):
    for at in range(order.size):
        last_walk.order[at], last_walk.size[at] = order[at], size[at]
        last_walk.place[order[at]] = at


class _Walk(NamedTuple):
    """The last sequence: a group that is the same again is passed through in the same way."""

    order: Any
    place: Any  # where in it a record is
    size: Any  # of the group that begins at a place; 0 within a group
    next: Any  # what was found by the last search from a record, −1 if there was none


class _UnseenRecords(NamedTuple):
    """Finds the nearest of the records that were unseen when it was made."""

    least: int  # records that must be left, else it is too loose
    most: int  # it is good for the searches up to this one
    tree: KdTree
    left: Any  # the records themselves, if there is no tree worth asking


def _new_search(X: Floats, seen: Any, asked: int) -> _UnseenRecords:
    """Make a tree of the unseen records, or a list of them for few searches or few records.

    As records leave, a tree has more and more empty space. When three in four are gone, a new
    one is made of the rest: all of them together take no longer than the first.
    """
    left = np.flatnonzero(~seen)
    if len(left) <= _SCANNED_RECORDS or asked < _SEARCHES:
        most = len(X) if len(left) <= _SCANNED_RECORDS else _SEARCHES
        return _UnseenRecords(0, most, build(X, left[:1]), left)
    return _UnseenRecords(len(left) // 4, len(X), build(X, left), left[:0])


class WalkBuffers(NamedTuple):
    """What one thread needs to order the records again and again."""

    near: Any  # (n, up to 32) the records nearest to each, never changed
    none: _UnseenRecords  # good for no search at all
    path: Path
    last_walk: _Walk


def new_buffers(near: Any, X: Floats) -> WalkBuffers:
    """Allocate the buffers of one thread; ``near`` is from :func:`neighbour_lists`."""
    n = len(X)
    none = _new_search(X[:1], np.zeros(1, dtype=bool), 0)._replace(most=0)
    order, place, size = (np.zeros(n, np.int64) for _ in range(3))
    walk = _Walk(order, place, size, next=np.full(n, NO_ROW))
    return WalkBuffers(near, none, new_path(X), walk)


def neighbour_lists(X: Floats, state: State) -> Any:
    """List the records nearest to each record; the next one to visit is mostly among them."""
    return nearest_rows(X, min(NEAR, len(X) - 1), state)


def order_by_groups(
    X: Floats, labels: Labels, first: int, buffers: WalkBuffers, state: State
) -> Order:
    """One pass of steps 2 to 12: the sequence of all records, group by group."""
    n = len(X)
    start, members = np.empty(labels.max() + 2, np.int64), np.empty(n, np.int64)
    _members(labels, start, members)
    order, size, seen = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, bool)
    at, search = np.array([first, 0, 0, 0]), buffers.none
    groups = members, start, labels, buffers.path, buffers.last_walk
    while _walk(X, buffers.near, search, *groups, size, seen, order, at, state):
        search = _new_search(X, seen, at[3])
    if not state[STOP]:
        _keep_walk(order, size, buffers.last_walk)
    return order
