"""A k-d tree whose leaves are small blocks of records, searched a whole leaf at a time.

Splits are at the median of the widest column, rounded so that every leaf but the last holds exactly
``LEAF`` records. A leaf stores them column by column: the distances of one record to all records
of a leaf are then loops over neighbouring numbers, which the compiler turns into vector code.
Searches go from leaf to leaf, so that one walk through the tree serves all records of a leaf. No
record is ever taken out: for that there is :mod:`microagg.kernels.kd_tree`.

Bounds are safe in floating point: the distance to a box sums the same terms in the same order as
the distance to any record inside, each rounded from no larger a value. A search that leaves
out only what is *farther* than its bound so finds every record, ties included.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.progress import State
from microagg.base.typing import Floats
from microagg.compile.jit import kernel, lean_subkernel
from microagg.compile.threads import share_out
from microagg.kernels.halve import enclose, halve

LEAF = 32
# Depth-first search holds one node for each level, and there are under 64 of them.
DEPTH = 64

Indices = NDArray[np.intp]


class BlockTree(NamedTuple):
    """Node 0 is the root; the children of a node lie side by side and after it.

    Records are known by their position in the tree: position p is in leaf p // LEAF.
    """

    rows: Indices  # (n,) position -> row of X
    first: Indices  # (nodes,) first leaf of a node
    last: Indices  # (nodes,) the leaf after its last
    child: Indices  # (nodes,) its left child, −1 for a leaf
    low: Floats  # (nodes, d) its bounding box
    high: Floats
    node: Indices  # (leaves,) the node of a leaf
    block: Floats  # (leaves, d, LEAF) records by column; those after the last are infinite


@kernel
def _build(X, tree):
    n, d = X.shape
    keys = np.empty(n)
    tree.first[0], tree.last[0] = 0, tree.node.size
    nodes = 1
    for node in range(tree.child.size):
        first, last = tree.first[node], tree.last[node]
        start, end = first * LEAF, min(last * LEAF, n)
        if last - first == 1:
            tree.child[node] = -1
            tree.node[first] = node
            enclose(X, tree.rows, start, end, tree.low[node], tree.high[node])
            for p in range(start, end):
                for j in range(d):
                    tree.block[first, j, p - start] = X[tree.rows[p], j]
            continue
        middle = (first + last + 1) // 2
        low, high = tree.low[node], tree.high[node]
        halve(X, tree.rows, start, end, middle * LEAF, low, high, keys)
        tree.child[node] = nodes
        tree.first[nodes], tree.last[nodes] = first, middle
        tree.first[nodes + 1], tree.last[nodes + 1] = middle, last
        nodes += 2


def build_tree(X: Floats) -> BlockTree:
    """Build the tree of the rows of X, (n ≥ 1, d), which are copied: O(n log n · d) time, O(n·d) memory."""
    n, d = X.shape
    leaves = -(-n // LEAF)
    nodes = 2 * leaves - 1
    first, last, child = (np.empty(nodes, dtype=np.intp) for _ in range(3))
    tree = BlockTree(
        rows=np.arange(n, dtype=np.intp),
        first=first,
        last=last,
        child=child,
        low=np.empty((nodes, d)),
        high=np.empty((nodes, d)),
        node=np.empty(leaves, dtype=np.intp),
        block=np.full((leaves, d, LEAF), np.inf),
    )
    _build(X, tree)
    return tree


@lean_subkernel
def _between_boxes(low, high, a, b):
    """Squared distance between the boxes of two nodes."""
    total = 0.0
    for j in range(low.shape[1]):
        gap = max(low[a, j] - high[b, j], low[b, j] - high[a, j], 0.0)
        total += gap * gap
    return total


@lean_subkernel
def push_children(child, low, high, seen_from, bound, stack, gaps, top):
    """Put two children that lie within the bound of a node on a stack, the nearer one on top.

    Parameters
    ----------
    child : the left one, the other follows it
    low, high : (nodes, d) boxes of the tree
    seen_from : the node
    bound : a squared distance
    stack, gaps : (DEPTH,) nodes, and their squared distances from ``seen_from``; written to
    top : how many are on the stack

    Returns
    -------
    how many are on the stack now
    """
    near, far = child, child + 1
    gap = _between_boxes(low, high, seen_from, near)
    gap_far = _between_boxes(low, high, seen_from, far)
    if gap_far < gap:
        near, far, gap, gap_far = far, near, gap_far, gap
    if gap_far <= bound:
        stack[top], gaps[top] = far, gap_far
        top += 1
    if gap <= bound:
        stack[top], gaps[top] = near, gap
        top += 1
    return top


@lean_subkernel
def to_box(block, low, high, out):
    """Fill in squared distances of all records of a leaf to a box.

    Here and below loops run to ``out.size``: to the constant LEAF they would be unrolled, not vectorised.

    Parameters
    ----------
    block : (d, LEAF) the records, by column
    low, high : (d,) the box
    out : (LEAF,); filled
    """
    for q in range(out.size):
        out[q] = 0.0
    for j in range(low.size):
        values, least, most = block[j], low[j], high[j]
        for q in range(out.size):
            # Not max(…), which is no vector code.
            below, above = least - values[q], values[q] - most
            gap = below if below > above else above
            gap = gap if gap > 0.0 else 0.0
            out[q] += gap * gap


@lean_subkernel
def to_leaf(block, slot, other, bound, out):
    """Fill in squared distances of one record of a leaf to all records of another, if one is within a bound.

    Parameters
    ----------
    block, slot : (d, LEAF) the record's leaf by column, and its position there
    other : (d, LEAF) the other leaf
    bound : a squared distance
    out : (LEAF,); filled, but for sums that were broken off

    Returns
    -------
    how many are within the bound; 0, before all columns are summed, once none can be
    """
    for q in range(out.size):
        out[q] = 0.0
    d = len(block)
    hits = 0
    for start in range(0, d, 16):
        for j in range(start, min(start + 16, d)):
            value = block[j, slot]
            values = other[j]
            for q in range(out.size):
                gap = values[q] - value
                out[q] += gap * gap
        hits = 0
        for q in range(out.size):
            hits += out[q] <= bound
        if hits == 0:
            return 0
    return hits


# The nearest neighbours of all records.


class Neighbours(NamedTuple):
    """The nearest of each record by position in the tree, nearest first, ties by row."""

    square: Floats  # (n, m) squared distances
    position: Indices  # (n, m)


@lean_subkernel
def _insert(rows, squares, positions, square, position):
    """Put a record into a sorted list if it belongs there, and drop the list's last."""
    s = squares.size
    while s > 0 and (
        squares[s - 1] > square
        or (
            squares[s - 1] == square
            and (positions[s - 1] < 0 or rows[positions[s - 1]] > rows[position])
        )
    ):
        s -= 1
    for t in range(squares.size - 1, s, -1):
        squares[t], positions[t] = squares[t - 1], positions[t - 1]
    if s < squares.size:
        squares[s], positions[s] = square, position


@lean_subkernel
def _scan(rows, block, leaf, other, wanted, reach, near, where, squares):
    """Offer the records of ``other`` to those of ``leaf`` that may have one within reach.

    ``reach`` is the distance of each record's farthest listed neighbour, ``wanted`` the
    reach from which on it may find a nearer one. Returns the largest reach.
    """
    start, end = other * LEAF, min((other + 1) * LEAF, rows.size)
    bound = 0.0
    for slot in range(min(LEAF, rows.size - leaf * LEAF)):
        if wanted[slot] <= reach[slot]:
            p = leaf * LEAF + slot
            if to_leaf(block[leaf], slot, block[other], reach[slot], squares):
                for q in range(start, end):
                    if squares[q - start] <= near[p, -1] and q != p:
                        _insert(rows, near[p], where[p], squares[q - start], q)
                reach[slot] = near[p, -1]
        bound = max(bound, reach[slot])
    return bound


@kernel
def _nearest(tree, begin, end, lists):
    """Fill the lists of the leaves begin..end−1."""
    # Inner functions get arrays: passing tuples of them costs more than what they do.
    rows, child, low, high, block = tree.rows, tree.child, tree.low, tree.high, tree.block
    near, where = lists.square, lists.position
    squares, wanted, reach = np.empty(LEAF), np.empty(LEAF), np.empty(LEAF)
    stack, gaps = np.empty(DEPTH, np.intp), np.empty(DEPTH)
    for leaf in range(begin, end):
        home = tree.node[leaf]
        wanted[:] = 0.0
        reach[:] = np.inf
        bound = _scan(rows, block, leaf, leaf, wanted, reach, near, where, squares)
        stack[0], gaps[0], top = 0, 0.0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if gaps[top] > bound or node == home:
                continue
            if child[node] >= 0:
                top = push_children(child[node], low, high, home, bound, stack, gaps, top)
            else:
                to_box(block[leaf], low[node], high[node], wanted)
                other = tree.first[node]
                bound = _scan(rows, block, leaf, other, wanted, reach, near, where, squares)


def nearest_neighbours(tree: BlockTree, m: int, state: State, done: int) -> Neighbours:
    """Find the nearest of each record, the same whatever the number of threads.

    Parameters
    ----------
    tree : of n records
    m : how many to find for each, 1 ≤ m < n
    state, done : progress, which rises by so many records; the wish to stop

    Returns
    -------
    (n, m) squared distances and positions; not complete where it was asked to stop
    """
    n = len(tree.rows)
    lists = Neighbours(np.full((n, m), np.inf), np.full((n, m), -1, dtype=np.intp))
    share_out(lambda begin, end, _: _nearest(tree, begin, end, lists), len(tree.node), state, done)
    return lists


def nearest_rows(X: Floats, m: int, state: State, done: int = 0) -> tuple[Any, Floats]:
    """Find the m nearest of each record, 0 ≤ m < n.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    m : how many to find for each
    state, done : progress, which rises by so many records

    Returns
    -------
    their row numbers, (n, m) int32, nearest first, equally near ones by row number; and their squared
    distances, (n, m)

    >>> from microagg.base.progress import new_state
    >>> rows, squares = nearest_rows(np.array([[0.0], [5.0], [1.0]]), 1, new_state())
    >>> rows.tolist(), squares.tolist()
    ([[2], [2], [0]], [[1.0], [16.0], [1.0]])
    """
    rows, squares = np.empty((len(X), m), dtype=np.int32), np.empty((len(X), m))
    if m > 0:
        tree = build_tree(X)
        lists = nearest_neighbours(tree, m, state, done)
        rows[tree.rows], squares[tree.rows] = tree.rows[lists.position], lists.square
    return rows, squares
