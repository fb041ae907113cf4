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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats
from microagg.compile.jit import kernel
from microagg.compile.no_refcount import lean_subkernel
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
    """Build the tree of the rows of X, at least one: O(n log n · d) time, O(n·d) memory."""
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
    """Put two children that lie within the bound of a node on the stack, the nearer one on top.

    ``child`` is the left one, ``low`` and ``high`` are the boxes of all nodes; ``gaps`` keeps squared
    distances from the node ``seen_from``. Returns the new top.
    """
    near, far = child, child + 1
    gap = _between_boxes(low, high, seen_from, near)
    other = _between_boxes(low, high, seen_from, far)
    if other < gap:
        near, far, gap, other = far, near, other, gap
    if other <= bound:
        stack[top], gaps[top] = far, other
        top += 1
    if gap <= bound:
        stack[top], gaps[top] = near, gap
        top += 1
    return top


@lean_subkernel
def to_box(block, low, high, out):
    """Squared distances of all records of a leaf to a box.

    Here and below loops run to ``out.size``: to the constant LEAF they would be unrolled, not vectorised.
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
    """Squared distances of one record of a leaf to all records of another.

    Returns how many are within the bound; none, before all columns are summed, once
    none can be.
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
