"""The nearest of the records that are left: a k-d tree from which records are taken away.

The records are halved along the widest column until a leaf holds a few. Every node knows how many
of its records are left, and the box around them at the time of building. Taking a record away
counts down on the way to its leaf; a search passes by what is empty or too far. When half
the records are gone the tree is built anew from the rest, so that boxes stay tight: all
rebuilding together costs about as much as building once.

A search is exact: rounding is monotone, so that the distance to a box never exceeds the
distance to a record in it. Of equally near records the lower row wins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.kernels.jit import kernel

# Room in a leaf. Its values stand column by column, so that the distances to all its records are
# taken at once; an empty place holds an infinity.
_LEAF = 64
# No tree is deeper.
_DEPTH = 64

# Places of LeftTree.size: records left, records when last built, levels above the leaves.
LEFT, BUILT, LEVELS = range(3)


class LeftTree(NamedTuple):
    """Nodes are numbered as in a heap: the children of a are 2a + 1 and 2a + 2."""

    X: NDArray[np.float64]  # (n, d) all records
    perm: NDArray[np.int64]  # (n,) room for building: rows, leaf by leaf
    start: NDArray[np.int64]  # (nodes,) where in perm the records of a node begin
    held: NDArray[np.int64]  # (nodes,) records left
    box: NDArray[np.float64]  # (nodes, 2, d) least and largest values
    values: NDArray[np.float64]  # (leaves, d, 64)
    rows: NDArray[np.int64]  # (leaves · 64,)
    place: NDArray[np.int64]  # (n,) where in rows a record stands, −1 when it was taken
    size: NDArray[np.int64]  # see above


def new_tree(X: NDArray[np.float64]) -> LeftTree:
    """Build a tree over all rows of X, C-contiguous: O(n log n · d)."""
    n, d = X.shape
    leaves = 1 << (n // _LEAF).bit_length()
    tree = LeftTree(
        X=X,
        perm=np.arange(n),
        start=np.zeros(2 * leaves - 1, dtype=np.int64),
        held=np.zeros(2 * leaves - 1, dtype=np.int64),
        box=np.empty((2 * leaves - 1, 2, d)),
        values=np.empty((leaves, d, _LEAF)),
        rows=np.zeros(leaves * _LEAF, dtype=np.int64),
        place=np.empty(n, dtype=np.int64),
        size=np.array([n, n, 0]),
    )
    fill_tree(tree)
    return tree


def room() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Room for a search: nodes that wait; their distances, and those of the records of a leaf."""
    return np.empty(_DEPTH, dtype=np.int64), np.empty(_DEPTH + _LEAF)


@kernel
def fill_tree(tree):  # type: ignore[no-untyped-def]
    """Build the tree over the first ``size[LEFT]`` rows of ``perm``."""
    X, perm, start, held, size = tree.X, tree.perm, tree.start, tree.held, tree.size
    m = size[LEFT]
    levels = 0
    while (m >> levels) >= _LEAF:
        levels += 1
    size[BUILT], size[LEVELS] = m, levels
    first_leaf = (1 << levels) - 1
    start[0], held[0] = 0, m
    for a in range(2 * first_leaf + 1):
        s, e = start[a], start[a] + held[a]
        widest = _enclose(X, perm, s, e, tree.box[a])
        if a < first_leaf:
            half = s + (e - s) // 2
            _halve(X, widest, perm, s, e - 1, half)
            start[2 * a + 1], held[2 * a + 1] = s, half - s
            start[2 * a + 2], held[2 * a + 2] = half, e - half
        else:
            _settle(tree, a - first_leaf, s, e)


@kernel
def _enclose(X, perm, s, e, box):  # type: ignore[no-untyped-def]
    """Fill in the box around the rows perm[s..e−1]; returns its widest column."""
    for j in range(X.shape[1]):
        box[0, j], box[1, j] = np.inf, -np.inf
    for t in range(s, e):
        for j in range(X.shape[1]):
            box[0, j] = min(box[0, j], X[perm[t], j])
            box[1, j] = max(box[1, j], X[perm[t], j])
    widest = 0
    for j in range(X.shape[1]):
        if box[1, j] - box[0, j] > box[1, widest] - box[0, widest]:
            widest = j
    return widest


@kernel
def _halve(X, j, perm, low, high, target):  # type: ignore[no-untyped-def]
    """Reorder perm[low..high] until the value of what stands at target is in its sorted place."""
    while low < high:
        a, b, c = X[perm[low], j], X[perm[(low + high) // 2], j], X[perm[high], j]
        pivot = max(min(a, b), min(max(a, b), c))
        i, t = low, high
        while i <= t:
            while X[perm[i], j] < pivot:
                i += 1
            while X[perm[t], j] > pivot:
                t -= 1
            if i <= t:
                perm[i], perm[t] = perm[t], perm[i]
                i += 1
                t -= 1
        if target <= t:
            high = t
        elif target >= i:
            low = i
        else:
            break


@kernel
def _settle(tree, leaf, s, e):  # type: ignore[no-untyped-def]
    """Copy the rows perm[s..e−1] into a leaf."""
    values = tree.values[leaf]
    for slot in range(_LEAF):
        row = -1
        if s + slot < e:
            row = tree.perm[s + slot]
            tree.rows[leaf * _LEAF + slot] = row
            tree.place[row] = leaf * _LEAF + slot
        for j in range(values.shape[0]):
            values[j, slot] = tree.X[row, j] if row >= 0 else np.inf


@kernel
def take(tree, row):  # type: ignore[no-untyped-def]
    """Take a record away; it must be there."""
    leaf, slot = tree.place[row] // _LEAF, tree.place[row] % _LEAF
    tree.place[row] = -1
    for j in range(tree.X.shape[1]):
        tree.values[leaf, j, slot] = np.inf
    a = leaf + (1 << tree.size[LEVELS]) - 1
    tree.held[a] -= 1
    while a > 0:
        a = (a - 1) // 2
        tree.held[a] -= 1
    tree.size[LEFT] -= 1
    if 2 * tree.size[LEFT] < tree.size[BUILT] and tree.size[BUILT] > 4 * _LEAF:
        kept = 0
        for at in range((1 << tree.size[LEVELS]) * _LEAF):
            if tree.values[at // _LEAF, 0, at % _LEAF] < np.inf:
                tree.perm[kept] = tree.rows[at]
                kept += 1
        fill_tree(tree)


@kernel
def _to_box(point, box):  # type: ignore[no-untyped-def]
    """Squared distance of a point to a box."""
    total = 0.0
    for j in range(point.size):
        gap = max(box[0, j] - point[j], point[j] - box[1, j], 0.0)
        total += gap * gap
    return total


@kernel
def nearest(tree, point, stack, gap):  # type: ignore[no-untyped-def]
    """Row of the nearest record left, −1 if there is none.

    ``stack`` and ``gap`` are from :func:`room`.
    """
    box, held, values = tree.box, tree.held, tree.values
    first_leaf = (1 << tree.size[LEVELS]) - 1
    best, found = np.inf, -1
    distance = gap[_DEPTH:]
    stack[0], gap[0], top = 0, 0.0, 1
    while top > 0:
        top -= 1
        a, to = stack[top], gap[top]
        while to <= best and held[a] > 0:
            if a >= first_leaf:
                leaf = a - first_leaf
                for slot in range(_LEAF):
                    distance[slot] = 0.0
                for j in range(point.size):
                    for slot in range(_LEAF):
                        y = values[leaf, j, slot] - point[j]
                        distance[slot] += y * y
                for slot in range(_LEAF):
                    if distance[slot] <= best:
                        row = tree.rows[leaf * _LEAF + slot]
                        if distance[slot] < best or row < found:
                            best, found = distance[slot], row
                break
            # Down the nearer side; the other one waits.
            near, far = 2 * a + 1, 2 * a + 2
            to, beyond = _to_box(point, box[near]), _to_box(point, box[far])
            if beyond < to:
                near, far, to, beyond = far, near, beyond, to
            if beyond <= best and held[far] > 0:
                stack[top], gap[top] = far, beyond
                top += 1
            a = near
    return found
