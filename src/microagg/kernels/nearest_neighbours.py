"""The nearest neighbours of all records, from a :class:`~microagg.kernels.block_tree.BlockTree`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.progress import State
from microagg.base.typing import Floats
from microagg.compile.jit import kernel
from microagg.compile.no_refcount import lean_subkernel
from microagg.compile.threads import share_out
from microagg.kernels.block_tree import (
    DEPTH,
    LEAF,
    BlockTree,
    Indices,
    build_tree,
    push_children,
    to_box,
    to_leaf,
)


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
        own = tree.node[leaf]
        wanted[:] = 0.0
        reach[:] = np.inf
        bound = _scan(rows, block, leaf, leaf, wanted, reach, near, where, squares)
        stack[0], gaps[0], top = 0, 0.0, 1
        while top > 0:
            top -= 1
            node = stack[top]
            if gaps[top] > bound or node == own:
                continue
            if child[node] >= 0:
                top = push_children(child[node], low, high, own, bound, stack, gaps, top)
            else:
                to_box(block[leaf], low[node], high[node], wanted)
                other = tree.first[node]
                bound = _scan(rows, block, leaf, other, wanted, reach, near, where, squares)


def nearest_neighbours(tree: BlockTree, m: int, state: State, done: int) -> Neighbours:
    """Find the m nearest of each record, 1 ≤ m < n; the same whatever the number of threads.

    The records done rise by ``done`` on the way.
    """
    n = len(tree.rows)
    lists = Neighbours(np.full((n, m), np.inf), np.full((n, m), -1, dtype=np.intp))
    share_out(
        lambda begin, end, _: _nearest(tree, begin, end, lists),
        len(tree.node),
        state,
        done,
    )
    return lists


def nearest_rows(X: Floats, m: int, state: State, done: int = 0) -> Any:
    """Row numbers of the m nearest of each record, 0 ≤ m < n: an int32 array of shape (n, m).

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    m : how many to find for each
    state, done : progress, which rises by so many records

    Returns
    -------
    (n, m) int32, nearest first, equally near ones by row number

    >>> from microagg.base.progress import new_state
    >>> nearest_rows(np.array([[0.0], [5.0], [1.0]]), 1, new_state()).tolist()
    [[2], [2], [0]]
    """
    near = np.empty((len(X), m), dtype=np.int32)
    if m > 0:
        tree = build_tree(X)
        near[tree.rows] = tree.rows[nearest_neighbours(tree, m, state, done).position]
    return near
