"""A tree over the records that are left: some go, some move. Its searches are in kd_search.py.

Every block of the tree has up to 16 entries side by side: a leaf its records, a node above
the boxes of its 16 children. So the distances to all entries of a block are one short loop that
the processor works through several at a time, for leaves and nodes alike.

Boxes shrink as records leave, and change as they move. Searches write to scratch arrays of the
tree: for several threads there is :func:`for_thread`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.compile.jit import inlined_subkernel, lean_kernel, lean_subkernel
from microagg.compile.threads import helpers, share_growing, share_with_helpers
from microagg.kernels.halve import halve

WIDTH = 16  # entries of a block
NO_ROW = -1
_MANY = 20_000  # records from which on threads build a tree faster than one


class KdTree(NamedTuple):
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


def build(X: Floats, rows: Any) -> KdTree:
    """Build the tree of some rows of X in O(n log n · d).

    Parameters
    ----------
    X : (n, d) finite doubles; copied into the tree
    rows : the rows of X that the tree holds, by number

    Returns
    -------
    the tree, the caller's; one thread at a time may search or change it, see :func:`for_thread`
    """
    tree = empty_tree(len(rows), *X.shape)
    order, leaves = np.array(rows, dtype=np.intp), tree.count.size
    threads = 1 + (helpers() if len(order) >= _MANY else 0)
    _arrange(X, order, leaves, threads)
    _centre(tree, X, order)

    def work(begin: int, end: int, _: int) -> None:
        _fill(tree, X, order, begin, end)

    share_with_helpers(work, leaves, at_once=leaves // threads + 1)
    _summarise_nodes(tree)
    return tree


def _arrange(X: Floats, rows: Any, leaves: int, threads: int) -> None:
    """Order rows so that any 16, and 16 times 16 …, from the start are close together."""
    keys = np.empty(len(rows))
    small = max(1, leaves // (2 * threads))

    def work(part: tuple[int, int]) -> list[tuple[int, int]]:
        start, stop = part
        box, parts = np.empty((2, X.shape[1])), np.empty((2, 256), np.intp)
        if threads == 1 or stop - start <= small:
            _arrange_part(X, rows, start, stop, 1, keys, box, parts)
            return []
        middle = int(_arrange_part(X, rows, start, stop, stop - start - 1, keys, box, parts))
        return [(start, middle), (middle, stop)]

    if threads == 1:
        work((0, leaves))
    else:
        share_growing(work, [(0, leaves)])


def empty_tree(n: int, all_rows: int, d: int) -> KdTree:
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
    return KdTree(
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


def for_thread(tree: KdTree) -> KdTree:
    """Return the same tree with scratch arrays of its own, so that several threads can search it.

    Records are shared: who removes or moves one changes it for all.
    """
    return tree._replace(
        path=np.empty_like(tree.path),
        keys=np.empty_like(tree.keys),
        mirror=np.empty_like(tree.mirror),
        entry=np.empty_like(tree.entry),
    )


@lean_kernel
def _arrange_part(X, rows, begin, end, most, keys, box, parts):
    """Halve the rows of the leaves begin..end−1 down to parts of ``most`` leaves; return the first cut.

    The last three are scratch: a number for each row, a box, and the leaves of the parts to do.
    """
    first, last, cut = parts[0], parts[1], end
    first[0], last[0], top = begin, end, 1
    while top > 0:
        top -= 1
        start, stop = first[top], last[top]
        if stop - start > most:
            unit = 1  # whole subtrees stay together
            while unit * WIDTH < stop - start:
                unit *= WIDTH
            middle = start + unit * ((-(-(stop - start) // unit) + 1) // 2)
            stop_row = min(stop * WIDTH, rows.size)
            halve(X, rows, start * WIDTH, stop_row, middle * WIDTH, box[0], box[1], keys)
            if start == begin and stop == end:
                cut = middle
            last[top] = middle
            first[top + 1], last[top + 1] = middle, stop
            top += 2
    return cut


@lean_kernel
def _centre(tree, X, rows):
    """Fill in the centre of the rows, and the largest value of each column."""
    for row in rows:
        for j in range(tree.centre.size):
            tree.centre[j] += X[row, j] / rows.size
            tree.largest[j] = max(tree.largest[j], abs(X[row, j]))


@lean_kernel
def _fill(tree, X, rows, begin, end):
    """Fill in the leaves begin..end−1, and what their parents hold of them."""
    for leaf in range(begin, end):
        for a in range(leaf * WIDTH, min((leaf + 1) * WIDTH, rows.size)):
            s, row = a % WIDTH, rows[a]
            radius = 0.0
            for j in range(X.shape[1]):
                tree.values[leaf, j, s] = X[row, j]
                radius += (X[row, j] - tree.centre[j]) ** 2
            tree.rows[leaf, s], tree.radius[leaf, s] = row, radius
            tree.count[leaf] += 1
            tree.leaf_of[row] = leaf
        _summarise(tree, leaf)


@lean_kernel
def _summarise_nodes(tree):
    """Fill in what nodes hold of those below them."""
    for block in range(tree.count.size, tree.parent.size - 1):
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


@inlined_subkernel
def _take_out(tree, row):
    """Take a record out of its leaf, which is returned; boxes stay as they are."""
    leaf, s = _slot(tree, row)
    last = tree.count[leaf] - 1
    tree.rows[leaf, s], tree.radius[leaf, s] = tree.rows[leaf, last], tree.radius[leaf, last]
    for j in range(tree.centre.size):
        tree.values[leaf, j, s] = tree.values[leaf, j, last]
    tree.count[leaf] = last
    return leaf


@lean_subkernel
def _summarise_above(tree, leaf):
    block = leaf
    while tree.parent[block] >= 0 and _summarise(tree, block):
        block = tree.parent[block] + tree.count.size


@lean_subkernel
def remove(tree, row):
    """Take a record, a row number that the tree holds, out of the tree, and shrink the boxes around it."""
    _summarise_above(tree, _take_out(tree, row))


@lean_subkernel
def move(tree, row, point):
    """Give a record other values. It stays in its leaf, so after many moves build a new tree.

    Parameters
    ----------
    tree : written to
    row : a row number that it holds
    point : (d,) the new values; copied
    """
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
    """Take records, ``rows`` that the tree holds, out of the tree at once, for those who search seldom.

    Boxes do not shrink, except those of empty leaves: still right, and much faster.
    """
    for row in rows:
        leaf = _take_out(tree, row)
        if tree.count[leaf] == 0:
            _summarise_above(tree, leaf)
