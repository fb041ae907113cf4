"""A walk through all records, group by group: steps 2 to 12 of RepOrdMic, one pass.

A group is passed along a short path (``path_through``); next comes the group of the nearest record not
yet seen. The paper, and what this costs: rep_ord_mic.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.ordering.cut import Order
from microagg.base.progress import STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.kernels.block_tree import nearest_rows
from microagg.kernels.distances import distance
from microagg.kernels.kd_search import nearest_one
from microagg.kernels.kd_tree import NO_ROW, KdTree, build, drop

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
def _walk(X, buffers, search, members, start, labels, size, seen, order, at, state):
    """Visit groups: steps 3 to 12. ``members`` holds the rows group by group.

    ``at`` is the record to go on with, −1 if it is still to be found, how many are placed, how
    many of those the tree has lost, and how many searches there were. Returns whether a new
    :class:`_UnseenRecords` is needed to go on.
    """
    n, near = order.size, buffers.near
    before, place, size_before = buffers.order, buffers.place, buffers.size
    current, placed, dropped, asked = at
    while not state[STOP]:
        if current >= 0:
            g = labels[current]
            group = members[start[g] : start[g + 1]]
            seq = order[placed : placed + group.size]
            if not _path_known(labels, group, current, before, place, size_before, seq):
                path_through(X, group, current, buffers.path, seq)
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
        drop(search.tree, order[dropped:placed])
        dropped = placed
        current = nearest_one(search.tree, X[last], NO_ROW, np.inf, NO_ROW, -1.0)[1]
    return False


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
    """What one thread needs to order the records again and again.

    The last three are the last sequence: a group that is the same again is passed through in the same way.
    """

    near: Any  # (n, up to 32) the records nearest to each, never changed
    path: Path
    order: Any
    place: Any  # where in it a record is
    size: Any  # of the group that begins at a place; 0 within a group


def new_buffers(near: Any, X: Floats) -> WalkBuffers:
    """Allocate the buffers of one thread; ``near`` is from :func:`neighbour_lists`."""
    n = len(X)
    floats = {name: np.empty(n) for name in ("length", "cost", "distance", "to_first")}
    whole = {name: np.empty(n, np.int64) for name in ("rows", "follow", "waiting_rows", "after")}
    path = Path(
        values=np.empty(X.size), waiting=np.empty(X.size), sure=np.empty(n, bool), **floats, **whole
    )
    return WalkBuffers(near, path, *np.zeros((3, n), np.int64))


def neighbour_lists(X: Floats, state: State) -> Any:
    """List the records nearest to each record; the next one to visit is mostly among them."""
    return nearest_rows(X, min(NEAR, len(X) - 1), state)[0]


def order_by_groups(
    X: Floats, labels: Labels, first: int, buffers: WalkBuffers, state: State
) -> Order:
    """One pass of steps 2 to 12: the sequence of all records, group by group."""
    n = len(X)
    start, members = np.empty(labels.max() + 2, np.int64), np.empty(n, np.int64)
    _members(labels, start, members)
    order, size, seen = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, bool)
    at, search = np.array([first, 0, 0, 0]), _new_search(X, seen, 0)
    while _walk(X, buffers, search, members, start, labels, size, seen, order, at, state):
        search = _new_search(X, seen, at[3])
    if not state[STOP]:
        buffers.order[:], buffers.size[:], buffers.place[order] = order, size, np.arange(n)
    return order


# A short path through the records of a group: cheapest insertion, steps 5 to 11 of RepOrdMic.
#
# The path connects a first record with the farthest of its group; then, again and again, the record
# that lengthens it least is inserted where it does so. The paper and where we depart: rep_ord_mic.py.

# A path may be extended elsewhere at less cost only if rounding could say so, too.
_MARGIN = 1 + 1e-12


class Path(NamedTuple):
    """A path through some records of a group, and those that wait to be inserted."""

    rows: Any  # records on the path, in the order of their insertion
    values: Any  # their values, column by column
    follow: Any  # which one comes next on the path
    length: Any  # how far that is
    waiting_rows: Any
    waiting: Any  # their values, column by column
    cost: Any  # what a waiting record would add to the length of the path, at its best place
    after: Any  # the record on the path after which this place is
    sure: Any  # whether place and cost are known; else the cost is a lower bound
    distance: Any
    to_first: Any


@lean_subkernel
def _distances(X, row, values, size, count, out):
    """Distances of a record to the first ``count`` of ``values``, which stand column by column."""
    for t in range(count):
        out[t] = 0.0
    for j in range(X.shape[1]):
        x, base = X[row, j], j * size
        for t in range(count):
            out[t] += (values[base + t] - x) * (values[base + t] - x)
    for t in range(count):
        out[t] = np.sqrt(out[t])


@lean_subkernel
def _append(X, row, values, rows, size, at):
    rows[at] = row
    for j in range(X.shape[1]):
        values[j * size + at] = X[row, j]


@lean_subkernel
def _begin_path(X, group, first, path):
    """Connect the first record with the farthest of its group; all others wait to be inserted."""
    size = group.size
    for t in range(size):
        _append(X, group[t], path.waiting, path.waiting_rows, size, t)
    _distances(X, first, path.waiting, size, size, path.to_first)
    far = -1
    for t in range(size):
        if group[t] != first and (far < 0 or path.to_first[t] > path.to_first[far]):
            far = t
    last = group[far]
    _append(X, first, path.values, path.rows, size, 0)
    _append(X, last, path.values, path.rows, size, 1)
    path.follow[0], path.follow[1], path.length[0] = 1, -1, path.to_first[far]
    _distances(X, last, path.waiting, size, size, path.distance)
    waiting = 0
    for t in range(size):
        if group[t] != first and t != far:
            _append(X, group[t], path.waiting, path.waiting_rows, size, waiting)
            path.cost[waiting] = (path.to_first[t] + path.distance[t]) - path.length[0]
            path.after[waiting] = 0
            path.sure[waiting] = True
            waiting += 1
    return waiting


@lean_subkernel
def _offer(w, a, cost, path):
    """Tell a waiting record what it would cost on the new piece of the path after a."""
    if cost < path.cost[w]:
        path.cost[w], path.after[w], path.sure[w] = cost, a, True
    elif cost == path.cost[w] and path.sure[w] and path.rows[a] < path.rows[path.after[w]]:
        path.after[w] = a


@lean_subkernel
def _cheapest(X, waiting, placed, size, path):
    """Find the waiting record of least cost, the lowest row of equals."""
    while True:
        at = 0
        for w in range(1, waiting):
            if path.cost[w] < path.cost[at] or (
                path.cost[w] == path.cost[at]
                and (
                    (path.sure[at] and not path.sure[w])
                    or (
                        path.sure[at] == path.sure[w]
                        and path.waiting_rows[w] < path.waiting_rows[at]
                    )
                )
            ):
                at = w
        if path.sure[at]:
            return at
        # Where on the path it costs least.
        _distances(X, path.waiting_rows[at], path.values, size, placed, path.distance)
        best, after = np.inf, -1
        for a in range(placed):
            b = path.follow[a]
            if b >= 0:
                cost = (path.distance[a] + path.distance[b]) - path.length[a]
                if cost < best or (cost == best and path.rows[a] < path.rows[after]):
                    best, after = cost, a
        path.cost[at], path.after[at], path.sure[at] = best, after, True


@lean_subkernel
def _split(X, new, a, waiting, placed, size, path):
    """Insert a record after a, and tell the waiting ones of the two new pieces."""
    b = path.follow[a]
    _append(X, new, path.values, path.rows, size, placed)
    path.follow[a], path.follow[placed] = placed, b
    path.length[a] = distance(X, path.rows[a], new)
    path.length[placed] = distance(X, new, path.rows[b])
    longest = max(path.length[a], path.length[placed])
    _distances(X, new, path.waiting, size, waiting, path.distance)
    for w in range(waiting):
        if path.after[w] == a:
            path.sure[w] = False  # its piece is gone: no other is cheaper, which one is open
        to_new = path.distance[w]
        # By the triangle inequality both pieces cost at least this.
        if 2 * (to_new - longest) <= path.cost[w] * _MARGIN:
            row = path.waiting_rows[w]
            _offer(w, a, (distance(X, path.rows[a], row) + to_new) - path.length[a], path)
            to_b = distance(X, path.rows[b], row)
            _offer(w, placed, (to_new + to_b) - path.length[placed], path)


@lean_subkernel
def path_through(X, group, first, path, seq):
    """Write a short path through a group to ``seq``, from a given first record: steps 5 to 11.

    Each waiting record knows its best place and cost. When the piece of the path it would split is
    gone, the cost stays as a lower bound; only if it becomes the least of all is the record
    compared with the whole path.
    """
    size = group.size
    if size == 1:
        seq[0] = first
        return
    waiting, placed = _begin_path(X, group, first, path), 2
    while waiting > 0:
        at = _cheapest(X, waiting, placed, size, path)
        new, a = path.waiting_rows[at], path.after[at]
        waiting -= 1  # the last one takes its place
        _append(X, path.waiting_rows[waiting], path.waiting, path.waiting_rows, size, at)
        path.cost[at], path.after[at] = path.cost[waiting], path.after[waiting]
        path.sure[at] = path.sure[waiting]
        _split(X, new, a, waiting, placed, size, path)
        placed += 1
    a = 0
    for t in range(size):
        seq[t] = path.rows[a]
        a = path.follow[a]
