"""The nearest record of another group: a k-d tree whose points may move and be read by many threads.

Rows are halved along their widest column until a leaf holds a few; its values stand column by
column, so that the distances to all of them are one short loop that the processor works
through several at a time.

Answers are those of a scan over all rows, to the last bit and for ties too (lower row first).
Rounding never reverses an order, so the rounded distance to a box is at most that to any point
inside. Among many equal points a search ends early, since every node knows its least row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.groups import Floats
from microagg.kernels.jit import kernel

__all__ = [
    "NearTree",
    "Room",
    "enclose",
    "forget",
    "move",
    "nearest",
    "new_room",
    "new_tree",
    "split_rows",
]

_LEAF = 16


class NearTree(NamedTuple):
    """Nodes are numbered as in a heap: the children of a are 2a + 1 and 2a + 2."""

    values: Any  # (leaves, d, 16), inf in empty places
    rows: Any  # (leaves, 16)
    box: Any  # (nodes, 2, d) least and largest values
    least: Any  # (nodes,) least row
    place: Any  # (n,) 16·leaf + slot, by row


class Room(NamedTuple):
    """What a search writes to; one for each thread."""

    nodes: Any
    gaps: Any
    entry: Any


def new_room() -> Room:
    """Make room for searches."""
    return Room(np.empty(64, np.intp), np.empty(64), np.empty(_LEAF))


def new_tree(X: Floats, rows: Any) -> NearTree:
    """Build the tree of some rows of X, at least one: O(n log n · d)."""
    n, d = len(rows), X.shape[1]
    leaves = 1
    while leaves * _LEAF < n:
        leaves *= 2
    tree = NearTree(
        values=np.full((leaves, d, _LEAF), np.inf),
        rows=np.full((leaves, _LEAF), len(X), dtype=np.intp),
        box=np.empty((2 * leaves - 1, 2, d)),
        least=np.empty(2 * leaves - 1, np.intp),
        place=np.empty(len(X), np.intp),
    )
    _fill(tree, X, np.array(rows, dtype=np.intp), np.empty((2 * leaves - 1, 2), np.intp))
    return tree


@kernel
def split_rows(X, rows, start, stop, target, j):  # type: ignore[no-untyped-def]
    """Reorder rows[start:stop] so that those before ``target`` are lower in column j.

    Equal values go by row number. Hoare's quickselect.
    """
    low, high = start, stop - 1
    while low < high:
        pivot = rows[(low + high) // 2]
        value = X[pivot, j]
        a, b = low, high
        while a <= b:
            while X[rows[a], j] < value or (X[rows[a], j] == value and rows[a] < pivot):
                a += 1
            while X[rows[b], j] > value or (X[rows[b], j] == value and rows[b] > pivot):
                b -= 1
            if a <= b:
                rows[a], rows[b] = rows[b], rows[a]
                a += 1
                b -= 1
        if target <= b:
            high = b
        elif target >= a:
            low = a
        else:
            break


@kernel
def enclose(X, rows, start, stop, box):  # type: ignore[no-untyped-def]
    """Fill in the box around rows[start:stop]; return its widest column."""
    for j in range(X.shape[1]):
        box[0, j] = box[1, j] = X[rows[start], j]
    for a in range(start + 1, stop):
        for j in range(X.shape[1]):
            box[0, j] = min(box[0, j], X[rows[a], j])
            box[1, j] = max(box[1, j], X[rows[a], j])
    widest = 0
    for j in range(X.shape[1]):
        if box[1, j] - box[0, j] > box[1, widest] - box[0, widest]:
            widest = j
    return widest


@kernel
def _fill(tree, X, rows, span):  # type: ignore[no-untyped-def]
    nodes = tree.least.size
    leaves = tree.rows.shape[0]
    span[0, 0], span[0, 1] = 0, rows.size
    for node in range(nodes):
        start, stop = span[node, 0], span[node, 1]
        widest = enclose(X, rows, start, stop, tree.box[node])
        if node < leaves - 1:
            middle = (start + stop) // 2
            split_rows(X, rows, start, stop, middle, widest)
            span[2 * node + 1, 0], span[2 * node + 1, 1] = start, middle
            span[2 * node + 2, 0], span[2 * node + 2, 1] = middle, stop
            continue
        leaf = node - (leaves - 1)
        tree.least[node] = X.shape[0]
        for a in range(start, stop):
            row = rows[a]
            tree.rows[leaf, a - start] = row
            tree.place[row] = leaf * _LEAF + a - start
            tree.least[node] = min(tree.least[node], row)
            for j in range(X.shape[1]):
                tree.values[leaf, j, a - start] = X[row, j]
    for node in range(leaves - 2, -1, -1):
        tree.least[node] = min(tree.least[2 * node + 1], tree.least[2 * node + 2])


@kernel
def forget(tree, row):  # type: ignore[no-untyped-def]
    """Take a row away."""
    place = tree.place[row]
    for j in range(tree.values.shape[1]):
        tree.values[place // _LEAF, j, place % _LEAF] = np.inf


@kernel
def move(tree, row, point):  # type: ignore[no-untyped-def]
    """Give a row other values. Boxes grow to hold them and never shrink."""
    place = tree.place[row]
    for j in range(point.size):
        tree.values[place // _LEAF, j, place % _LEAF] = point[j]
    node = place // _LEAF + tree.rows.shape[0] - 1
    while True:
        for j in range(point.size):
            tree.box[node, 0, j] = min(tree.box[node, 0, j], point[j])
            tree.box[node, 1, j] = max(tree.box[node, 1, j], point[j])
        if node == 0:
            break
        node = (node - 1) // 2


@kernel
def _to_box(box, point):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(point.size):
        gap = max(box[0, j] - point[j], point[j] - box[1, j], 0.0)
        total += gap * gap
    return total


@kernel
def nearest(tree, point, group, own, best, found, room):  # type: ignore[no-untyped-def]
    """Squared distance and row of the nearest row that is not in group ``own``.

    ``best`` and ``found`` are what is known already (else inf and a row beyond all); rows equally
    near come in again only if they are lower.
    """
    first_leaf = tree.rows.shape[0] - 1
    nodes, gaps, entry = room.nodes, room.gaps, room.entry
    nodes[0], gaps[0], top = 0, _to_box(tree.box[0], point), 1
    while top > 0:
        top -= 1
        node, gap = nodes[top], gaps[top]
        while gap < best or (gap == best and tree.least[node] < found):
            if node >= first_leaf:
                leaf = node - first_leaf
                for s in range(entry.size):
                    entry[s] = 0.0
                for j in range(point.size):
                    values, x = tree.values[leaf, j], point[j]
                    for s in range(entry.size):
                        entry[s] += (values[s] - x) * (values[s] - x)
                for s in range(entry.size):
                    if entry[s] <= best and entry[s] < np.inf:
                        row = tree.rows[leaf, s]
                        if (entry[s] < best or row < found) and group[row] != own:
                            best, found = entry[s], row
                break
            near, far = 2 * node + 1, 2 * node + 2
            gap, beyond = _to_box(tree.box[near], point), _to_box(tree.box[far], point)
            if beyond < gap or (beyond == gap and tree.least[far] < tree.least[near]):
                near, far, gap, beyond = far, near, beyond, gap
            if beyond <= best:
                nodes[top], gaps[top] = far, beyond
                top += 1
            node = near
    return best, found
