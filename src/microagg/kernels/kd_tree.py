"""A tree over the records that are left: nearest and farthest ones; some go, some move.

Every block of the tree has up to 16 entries side by side: a leaf its records, a node above
the boxes of its 16 children. So the distances to all entries of a block are one short loop that
the processor works through several at a time, for leaves and nodes alike.

Answers are those of a scan over all records, to the last bit and for ties too (lower
row first), whatever the shape of the tree:

- Distances are summed column by column, as a scan does. Rounding never reverses an order, so
  the rounded distance to a box is at most that to any record inside, and needs no margin.
- The record farthest from q is sought near the mirror image of q in a centre c, since
  |x−q|² = 2 |x−c|² + 2 |q−c|² − |x−(2c−q)|².  The first term is at most twice the box's *reach*, the
  last at least the distance of the mirror image to the box. In many dimensions this is far tighter
  than the distance to the farthest corner. It is widened by more than its rounding error.

Boxes shrink as records leave, and change as they move. Searches write to scratch arrays of the
tree: for several threads there is :func:`for_thread`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.groups import Floats
from microagg.kernels.halve import halve
from microagg.kernels.lean import lean_kernel, lean_subkernel

__all__ = [
    "NO_ROW",
    "Tree",
    "begin",
    "build",
    "count_within",
    "drop",
    "empty_tree",
    "farthest",
    "for_thread",
    "move",
    "nearest",
    "nearest_one",
    "next_leaf",
    "remove",
]

WIDTH = 16  # entries of a block
NO_ROW = -1
_ROUNDING = 16 * np.finfo(np.float64).eps  # of a term of the mirror's bound, with room to spare


class Tree(NamedTuple):
    """Blocks are numbered from the leaves up, the root last; ``low[b]`` is of block leaves + b."""

    values: Any  # (leaves, d, 16) the records of a leaf
    rows: Any  # (leaves, 16) their row numbers
    radius: Any  # (leaves, 16) their squared distances to the centre
    count: Any  # (leaves,) how many are left
    leaf_of: Any  # (n,) by row number
    low: Any  # (nodes, d, 16) boxes of the children; empty ones are inf .. −inf
    high: Any  # (nodes, d, 16)
    reach: Any  # (nodes, 16) largest radius in the child, −inf when empty
    least: Any  # (nodes, 16) least row number in the child
    first_child: Any  # (nodes,) block number
    parent: Any  # (blocks,) node number, −1 for the root
    centre: Any  # (d,)
    largest: Any  # (d,) largest absolute value of a column
    path: Any  # (levels,) the nodes from the root to where a search is
    keys: Any  # (levels, 16) bounds of their children, inf for those done with
    mirror: Any  # (d,) of the point asked for
    entry: Any  # (16,) distance or bound of each entry of the block at hand


def build(X: Floats, rows: Any) -> Tree:
    """Build the tree of some rows of X in O(n log n · d)."""
    tree = empty_tree(len(rows), *X.shape)
    keys, box, parts = np.empty(len(rows)), np.empty((2, X.shape[1])), np.empty((2, 256), np.intp)
    _fill(tree, X, np.array(rows, dtype=np.intp), keys, box, parts)
    return tree


def empty_tree(n: int, all_rows: int, d: int) -> Tree:
    """Make room for the tree of n out of all rows."""
    leaves = -(-n // WIDTH)
    widths = [leaves]
    while widths[-1] > 1 or len(widths) == 1:
        widths.append(-(-widths[-1] // WIDTH))
    blocks, nodes = sum(widths), sum(widths[1:])
    starts = np.cumsum([0, *widths])
    first_child, parent = np.empty(nodes, np.intp), np.full(blocks, -1, np.intp)
    for height in range(1, len(widths)):
        level = np.arange(widths[height])
        first_child[starts[height] - leaves + level] = starts[height - 1] + WIDTH * level
        below = np.arange(widths[height - 1])
        parent[starts[height - 1] + below] = starts[height] - leaves + below // WIDTH
    return Tree(
        values=np.full((leaves, d, WIDTH), np.nan),
        rows=np.zeros((leaves, WIDTH), np.intp),
        radius=np.zeros((leaves, WIDTH)),
        count=np.zeros(leaves, np.intp),
        leaf_of=np.empty(all_rows, np.intp),
        low=np.full((nodes, d, WIDTH), np.inf),
        high=np.full((nodes, d, WIDTH), -np.inf),
        reach=np.full((nodes, WIDTH), -np.inf),
        least=np.full((nodes, WIDTH), all_rows),
        first_child=first_child,
        parent=parent,
        centre=np.zeros(d),
        largest=np.zeros(d),
        path=np.empty(len(widths), np.intp),
        keys=np.empty((len(widths), WIDTH)),
        mirror=np.empty(d),
        entry=np.empty(WIDTH),
    )


def for_thread(tree: Tree) -> Tree:
    """The same tree with scratch arrays of its own, so that several threads can search it."""
    return tree._replace(
        path=np.empty_like(tree.path),
        keys=np.empty_like(tree.keys),
        mirror=np.empty_like(tree.mirror),
        entry=np.empty_like(tree.entry),
    )


@lean_subkernel
def _arrange(X, rows, keys, box, parts):
    """Order rows so that any 16, and 16 times 16 …, from the start are close together.

    The last three are scratch: a number for each row, a box, and the leaves of the parts to do.
    """
    first, last = parts[0], parts[1]
    first[0], last[0], top = 0, -(-rows.size // WIDTH), 1
    while top > 0:
        top -= 1
        start, stop = first[top], last[top]
        if stop - start == 1:
            continue
        unit = 1  # halve by whole subtrees
        while unit * WIDTH < stop - start:
            unit *= WIDTH
        middle = start + unit * ((-(-(stop - start) // unit) + 1) // 2)
        end = min(stop * WIDTH, rows.size)
        halve(X, rows, start * WIDTH, end, middle * WIDTH, box[0], box[1], keys)
        last[top] = middle
        first[top + 1], last[top + 1] = middle, stop
        top += 2


@lean_kernel
def _fill(tree, X, rows, keys, box, parts):
    n, d = rows.size, X.shape[1]
    _arrange(X, rows, keys, box, parts)
    for j in range(d):
        total, largest = 0.0, 0.0
        for row in rows:
            total += X[row, j] / n
            largest = max(largest, abs(X[row, j]))
        tree.centre[j], tree.largest[j] = total, largest
    for a in range(n):
        leaf, s, row = a // WIDTH, a % WIDTH, rows[a]
        radius = 0.0
        for j in range(d):
            tree.values[leaf, j, s] = X[row, j]
            radius += (X[row, j] - tree.centre[j]) ** 2
        tree.rows[leaf, s], tree.radius[leaf, s] = row, radius
        tree.count[leaf] += 1
        tree.leaf_of[row] = leaf
    for block in range(tree.parent.size - 1):
        _summarise(tree, block)


@lean_subkernel
def _summarise(tree, block):
    """Write the box, reach and least row of a block to its parent; say whether any changed."""
    node = tree.parent[block]
    s = block - tree.first_child[node]
    leaves = tree.count.size
    child = block - leaves
    reach, least = -np.inf, tree.leaf_of.size
    if child < 0:
        for e in range(tree.count[block]):
            reach, least = max(reach, tree.radius[block, e]), min(least, tree.rows[block, e])
    else:
        for e in range(WIDTH):
            reach, least = max(reach, tree.reach[child, e]), min(least, tree.least[child, e])
    changed = reach != tree.reach[node, s] or least != tree.least[node, s]
    tree.reach[node, s], tree.least[node, s] = reach, least
    for j in range(tree.centre.size):
        low, high = np.inf, -np.inf
        if child < 0:
            for e in range(tree.count[block]):
                low = min(low, tree.values[block, j, e])
                high = max(high, tree.values[block, j, e])
        else:
            for e in range(WIDTH):
                low, high = min(low, tree.low[child, j, e]), max(high, tree.high[child, j, e])
        if low != tree.low[node, j, s] or high != tree.high[node, j, s]:
            tree.low[node, j, s], tree.high[node, j, s] = low, high
            changed = True
    return changed


@lean_subkernel
def _slot(tree, row):
    leaf = tree.leaf_of[row]
    s = 0
    while tree.rows[leaf, s] != row:
        s += 1
    return leaf, s


@lean_subkernel
def _summarise_above(tree, leaf):
    block = leaf
    while tree.parent[block] >= 0 and _summarise(tree, block):
        block = tree.parent[block] + tree.count.size


@lean_subkernel
def remove(tree, row):
    """Take a record away."""
    leaf, s = _slot(tree, row)
    last = tree.count[leaf] - 1
    tree.rows[leaf, s], tree.radius[leaf, s] = tree.rows[leaf, last], tree.radius[leaf, last]
    for j in range(tree.centre.size):
        tree.values[leaf, j, s] = tree.values[leaf, j, last]
    tree.count[leaf] = last
    _summarise_above(tree, leaf)


@lean_subkernel
def move(tree, row, point):
    """Give a record other values. It stays in its leaf, so after many moves build a new tree."""
    leaf, s = _slot(tree, row)
    radius = 0.0
    for j in range(point.size):
        tree.values[leaf, j, s] = point[j]
        tree.largest[j] = max(tree.largest[j], abs(point[j]))
        radius += (point[j] - tree.centre[j]) ** 2
    tree.radius[leaf, s] = radius
    _summarise_above(tree, leaf)


@lean_subkernel
def drop(tree, rows):
    """Take many records away at once, for those who search seldom.

    Boxes do not shrink, except those of empty leaves: still right, and much faster.
    """
    held, values, radius = tree.rows, tree.values, tree.radius
    count, leaf_of = tree.count, tree.leaf_of
    for row in rows:
        leaf = leaf_of[row]
        last = count[leaf] - 1
        s = 0
        while held[leaf, s] != row:
            s += 1
        held[leaf, s], radius[leaf, s] = held[leaf, last], radius[leaf, last]
        for j in range(values.shape[1]):
            values[leaf, j, s] = values[leaf, j, last]
        count[leaf] = last
        block = leaf
        while last == 0 and tree.parent[block] >= 0 and _summarise(tree, block):
            block = tree.parent[block] + count.size


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
    place, least = 0, keys[0]
    for s in range(1, keys.size):
        if keys[s] < least:
            place, least = s, keys[s]
    return place, least


@lean_subkernel
def _after(distance, row, other_distance, other_row):
    """Whether a record comes after another one in the order by distance, then row."""
    return distance > other_distance or (distance == other_distance and row > other_row)


@lean_subkernel
def _keep(distances, rows, have, k, distance, row):
    """Put a record into a heap of the k nearest, last one on top; return how many it holds."""
    if have < k:
        a = have
        while a > 0 and _after(distance, row, distances[(a - 1) // 2], rows[(a - 1) // 2]):
            distances[a], rows[a] = distances[(a - 1) // 2], rows[(a - 1) // 2]
            a = (a - 1) // 2
        distances[a], rows[a] = distance, row
        return have + 1
    if _after(distances[0], rows[0], distance, row):
        a = 0
        while 2 * a + 1 < k:
            child = 2 * a + 1
            if child + 1 < k and _after(
                distances[child + 1], rows[child + 1], distances[child], rows[child]
            ):
                child += 1
            if not _after(distances[child], rows[child], distance, row):
                break
            distances[a], rows[a] = distances[child], rows[child]
            a = child
        distances[a], rows[a] = distance, row
    return have


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
    """Start a search for the nearest at the root; returns where it is, for :func:`next_leaf`."""
    _enter(tree, 0, tree.low.shape[0] - 1, point, -1.0)
    return 0


@lean_subkernel
def next_leaf(tree, top, point, limit, limit_row):
    """Go on to the next leaf that may hold a record before ``limit``, by distance and then row.

    The squared distances of its records are left in ``tree.entry``. Returns the leaf, −1 when
    there is none, and where the search is.
    """
    return _next_leaf(tree, top, point, point, -1.0, 0.0, limit, limit_row)


@lean_subkernel
def _next_leaf(tree, top, point, seen_from, own, margin, limit, limit_row):
    """The loop of all searches.

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
                have = _keep(distances, rows, have, k, tree.entry[s], tree.rows[leaf, s])
                if have == k:
                    limit, limit_row = distances[0], rows[0]


@lean_subkernel
def nearest_one(tree, point, skip, best, best_row, enough):
    """Squared distance and row of the record nearest to a point, other than ``skip``.

    The search starts with a record known already, or inf and NO_ROW, and ends at once when it
    finds one at a distance of at most ``enough``.
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
def count_within(tree, point, inner, outer, sizes):
    """Count the records up to a squared distance of ``outer``; 0, at once, if one is under ``inner``.

    A row counts as many times as ``sizes`` says.
    """
    found, top = 0, begin(tree, point)
    while True:
        leaf, top = next_leaf(tree, top, point, outer, tree.leaf_of.size)
        if leaf < 0:
            return found
        for s in range(tree.count[leaf]):
            if tree.entry[s] < inner:
                return 0
            if tree.entry[s] <= outer:
                found += sizes[tree.rows[leaf, s]]


@lean_subkernel
def farthest(tree, point):
    """Row of the record farthest from a point, the lowest of equally far ones; −1 when empty."""
    mirror = tree.mirror
    own, size = 0.0, 0.0
    for j in range(point.size):
        mirror[j] = 2 * tree.centre[j] - point[j]
        own += (point[j] - tree.centre[j]) ** 2
        size += (abs(point[j]) + tree.largest[j]) ** 2
    margin = _ROUNDING * (point.size + 4) * size
    best, best_row, top = -1.0, -1, 0
    _enter(tree, 0, tree.low.shape[0] - 1, mirror, own)
    while True:
        leaf, top = _next_leaf(tree, top, point, mirror, own, margin, -best, best_row)
        if leaf < 0:
            return best_row
        for s in range(tree.count[leaf]):
            distance, row = tree.entry[s], tree.rows[leaf, s]
            if distance > best or (distance == best and row < best_row):
                best, best_row = distance, row
