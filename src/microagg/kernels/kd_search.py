"""Searches of a tree over the records that are left: nearest and farthest ones.

Answers are those of a scan over all records, to the last bit and for ties too (lower
row first), whatever the shape of the tree:

- Distances are summed column by column, as a scan does. Rounding never reverses an order, so
  the rounded distance to a box is at most that to any record inside, and needs no margin.
- The record farthest from q is sought near the mirror image of q in a centre c, since
  |x−q|² = 2 |x−c|² + 2 |q−c|² − |x−(2c−q)|².  The first term is at most twice the box's *reach*, the
  last at least the distance of the mirror image to the box. In many dimensions this is far tighter
  than the distance to the farthest corner. It is widened by more than its rounding error.
"""

from __future__ import annotations

import numpy as np

from microagg.compile.jit import lean_subkernel
from microagg.kernels.kd_tree import NO_ROW

_ROUNDING = 16 * np.finfo(np.float64).eps  # of a term of the mirror's bound, with room to spare
_UNDERFLOW = 1e-300  # more than squares can lack that underflow


# The two loops that follow run over ``entry.size`` rather than 16: a loop of known length is
# unrolled by the compiler before it thinks of doing several entries at a time.


@lean_subkernel
def _distances(tree, leaf, point):
    entry = tree.entry
    entry[:] = 0.0
    for j in range(point.size):
        values, x = tree.values[leaf, j], point[j]
        for s in range(entry.size):
            entry[s] += (values[s] - x) * (values[s] - x)


@lean_subkernel
def _distances_to_boxes(tree, node, point, entry):
    entry[:] = 0.0
    for j in range(point.size):
        low, high, x = tree.low[node, j], tree.high[node, j], point[j]
        for s in range(entry.size):
            below, above = low[s] - x, x - high[s]
            gap = below if below > above else above
            gap = gap if gap > 0.0 else 0.0
            entry[s] += gap * gap


@lean_subkernel
def _first(keys):
    """Place and value of the least key."""
    index, least = 0, keys[0]
    for s in range(1, keys.size):
        if keys[s] < least:
            index, least = s, keys[s]
    return index, least


@lean_subkernel
def _after(distance, row, other_distance, other_row):
    """Return whether a record comes after another one in the order by distance, then row."""
    return distance > other_distance or (distance == other_distance and row > other_row)


@lean_subkernel
def keep(distances, rows, have, k, distance, row):
    """Put a record into a heap of the k nearest, last one on top; return how many it holds.

    Parameters
    ----------
    distances, rows : at least (k,), the heap; written to
    have : how many it holds
    k : how many it may hold
    distance, row : the record; equal distances go by row
    """
    if have < k:
        a = have
        while a > 0 and _after(distance, row, distances[(a - 1) // 2], rows[(a - 1) // 2]):
            distances[a], rows[a] = distances[(a - 1) // 2], rows[(a - 1) // 2]
            a = (a - 1) // 2
        distances[a], rows[a] = distance, row
        return have + 1
    if _after(distances[0], rows[0], distance, row):
        _sink(distances, rows, k, distance, row)
    return have


@lean_subkernel
def _sink(distances, rows, size, distance, row):
    """Put a record in the place of the heap's top, and down to where it belongs."""
    a = 0
    while 2 * a + 1 < size:
        child = 2 * a + 1
        if child + 1 < size and _after(
            distances[child + 1], rows[child + 1], distances[child], rows[child]
        ):
            child += 1
        if not _after(distances[child], rows[child], distance, row):
            break
        distances[a], rows[a] = distances[child], rows[child]
        a = child
    distances[a], rows[a] = distance, row


@lean_subkernel
def in_order(distances, rows, have):
    """Sort a heap that a search has left by distance, then row, ascending.

    Parameters
    ----------
    distances, rows : at least (have,), the heap; reordered
    have : how many it holds
    """
    for last in range(have - 1, 0, -1):
        distance, row = distances[last], rows[last]
        distances[last], rows[last] = distances[0], rows[0]
        _sink(distances, rows, last, distance, row)


@lean_subkernel
def _farthest_corner(tree, node, s, point):
    total = 0.0
    for j in range(point.size):
        gap = max(point[j] - tree.low[node, j, s], tree.high[node, j, s] - point[j])
        total += gap * gap
    return total


@lean_subkernel
def _enter(tree, top, node, point, own):
    """Go down to a node: keys of its children, inf for empty ones."""
    tree.path[top] = node
    _distances_to_boxes(tree, node, point, tree.keys[top])
    if own >= 0.0:
        keys, reach = tree.keys[top], tree.reach[node]
        for s in range(keys.size):
            keys[s] -= 2 * (reach[s] + own)


@lean_subkernel
def begin(tree, point):
    """Start a search in ``tree`` for the records nearest to ``point`` (d,), for :func:`next_leaf`."""
    _enter(tree, 0, tree.low.shape[0] - 1, point, -1.0)
    return 0


@lean_subkernel
def next_leaf(tree, top, point, limit, limit_row):
    """Go on to the next leaf that may hold a record before a limit, by distance and then row.

    Parameters
    ----------
    tree : with scratch arrays of this thread; the squared distances of the leaf's records are left in its
        ``entry``
    top : where the search is
    point : (d,), the same in all calls
    limit, limit_row : squared distance and row, no later than in the last call

    Returns
    -------
    the leaf, −1 when there is none; where the search is
    """
    return _next_leaf(tree, top, point, point, -1.0, 0.0, limit, limit_row)


@lean_subkernel
def _next_leaf(tree, top, point, seen_from, own, margin, limit, limit_row):
    """Run the loop of all searches.

    A child's key is the squared distance of its box to the point. In a search for the farthest,
    for which ``own`` is the point's squared distance to the centre and no less than 0, boxes are
    seen from the mirror image and a key is a negative bound, off by no more than ``margin``.
    """
    leaves = tree.count.size
    while top >= 0:
        node = tree.path[top]
        s, key = _first(tree.keys[top])
        if key == np.inf or key > limit + margin:
            top -= 1
            continue
        tree.keys[top, s] = np.inf
        if key + margin >= limit:  # so near that only exact arithmetic can tell
            if own >= 0.0:
                key = -_farthest_corner(tree, node, s, point)
            if _after(key, tree.least[node, s], limit, limit_row):
                continue
        block = tree.first_child[node] + s
        if block >= leaves:
            top += 1
            _enter(tree, top, block - leaves, seen_from, own)
            continue
        _distances(tree, block, point)
        return block, top
    return -1, top


@lean_subkernel
def nearest(tree, point, k, distances, rows):
    """Find the k records nearest to a point, equally near ones by row number.

    They are left in the first places of ``distances`` (squared) and ``rows`` as a heap: the
    last of them first, the others in no order. Returns how many there are, at most k.

    Parameters
    ----------
    tree : of m records, with scratch arrays of this thread
    point : (d,) doubles
    k : how many to find
    distances, rows : at least (k,), of the caller; written to
    """
    if k == 0:
        return 0
    have, top = 0, begin(tree, point)
    limit, limit_row = np.inf, NO_ROW
    while True:
        leaf, top = next_leaf(tree, top, point, limit, limit_row)
        if leaf < 0:
            return have
        for s in range(tree.count[leaf]):
            if tree.entry[s] <= limit:
                have = keep(distances, rows, have, k, tree.entry[s], tree.rows[leaf, s])
                if have == k:
                    limit, limit_row = distances[0], rows[0]


@lean_subkernel
def nearest_one(tree, point, skip, best, best_row, enough):
    """Squared distance and row of the record nearest to a point, other than ``skip``.

    The search starts with a record known already, or inf and NO_ROW, and ends at once when it
    finds one at a distance of at most ``enough``.

    Parameters
    ----------
    tree : with scratch arrays of this thread
    point : (d,) doubles
    skip : a row number, or NO_ROW
    best, best_row : squared distance and row of the record known already
    enough : a squared distance
    """
    top = begin(tree, point)
    while best > enough:
        leaf, top = next_leaf(tree, top, point, best, best_row)
        if leaf < 0:
            break
        for s in range(tree.count[leaf]):
            row = tree.rows[leaf, s]
            if not _after(tree.entry[s], row, best, best_row) and row != skip:
                best, best_row = tree.entry[s], row
    return best, best_row


@lean_subkernel
def nearest_of_others(tree, point, skip, others, count):
    """Row of the record nearest to a point, other than ``skip`` and the first ``count`` of others."""
    best, best_row, top = np.inf, NO_ROW, begin(tree, point)
    while True:
        leaf, top = next_leaf(tree, top, point, best, best_row)
        if leaf < 0:
            return best_row
        for s in range(tree.count[leaf]):
            row = tree.rows[leaf, s]
            if _after(tree.entry[s], row, best, best_row) or row == skip:
                continue
            a = 0
            while a < count and others[a] != row:
                a += 1
            if a == count:
                best, best_row = tree.entry[s], row


@lean_subkernel
def _begin_opposite(tree, point):
    """Start a search for the farthest: the point's squared distance to the centre, and the margin."""
    mirror = tree.mirror
    reach, size = 0.0, 0.0
    for j in range(point.size):
        mirror[j] = 2 * tree.centre[j] - point[j]
        reach += (point[j] - tree.centre[j]) ** 2
        size += (abs(point[j]) + tree.largest[j]) ** 2
    _enter(tree, 0, tree.low.shape[0] - 1, mirror, reach)
    return reach, _ROUNDING * (point.size + 4) * size + _UNDERFLOW


@lean_subkernel
def farthest(tree, point):
    """Row of the record farthest from a point, the lowest of equally far ones; −1 when empty."""
    reach, margin = _begin_opposite(tree, point)
    best, best_row, top = -1.0, NO_ROW, 0
    while True:
        leaf, top = _next_leaf(tree, top, point, tree.mirror, reach, margin, -best, best_row)
        if leaf < 0:
            return best_row
        for s in range(tree.count[leaf]):
            distance, row = tree.entry[s], tree.rows[leaf, s]
            if distance > best or (distance == best and row < best_row):
                best, best_row = distance, row


@lean_subkernel
def some_farthest(tree, point, k, distances, rows):
    """Find the k records farthest from a point, equally far ones by row number.

    They are left as :func:`nearest` leaves its own, with negative distances. Returns how many there are.
    """
    reach, margin = _begin_opposite(tree, point)
    have, top = 0, 0
    limit, limit_row = np.inf, NO_ROW
    while True:
        leaf, top = _next_leaf(tree, top, point, tree.mirror, reach, margin, limit, limit_row)
        if leaf < 0:
            return have
        for s in range(tree.count[leaf]):
            if -tree.entry[s] <= limit:
                have = keep(distances, rows, have, k, -tree.entry[s], tree.rows[leaf, s])
                if have == k:
                    limit, limit_row = distances[0], rows[0]
