"""The two records left that are farthest apart.

The farthest distance of a record can only shrink as others leave. So the one found earlier is an
upper bound, and exact while that partner is left: only records whose bound is the largest are
searched again, in the tree of the records left. Before its first search a record's bound is by way
of the centre of all: its distance to it and that of the outermost record left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.compile.jit import lean_kernel
from microagg.kernels.distances import squared_distance
from microagg.kernels.heap import Heap, new_heap, put, take_out
from microagg.kernels.kd_search import farthest

_ROUNDING = 1e-12  # relative, far above what a sum of squares can be off by


class FarthestBounds(NamedTuple):
    """How far the farthest other record can be, for each record."""

    heap: Heap  # of rows: the first part of a key is the squared bound, negative
    partner: Any  # (n,) the record at that distance; −1 when it is a bound only
    radius: Any  # (n,) distance to a fixed centre
    outward: Any  # (n,) rows by radius, largest first
    first: Any  # (1,) first place of outward that is left


def farthest_bounds(X: Floats) -> FarthestBounds:
    """Begin with all records of X, (n, d) doubles, n ≥ 1: no bound yet."""
    n = len(X)
    radius = np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1))
    heap = new_heap(n)  # equal bounds in row order are one
    heap.key[:], heap.items[:], heap.index[:] = (-np.inf, 0.0), np.arange(n), np.arange(n)
    heap.size[0] = n
    return FarthestBounds(
        heap=heap,
        partner=np.full(n, -1),
        radius=radius,
        outward=np.argsort(-radius, kind="stable"),
        first=np.zeros(1, np.int64),
    )


@lean_kernel
def farthest_pair(X, labels, tree, bounds):
    """Return the two rows, the first such pair in row order, that are farthest apart among the records left.

    Parameters
    ----------
    X : (n, d) doubles
    labels : (n,), below 0 for the records left, at least two
    tree : of exactly these; searched
    bounds : of all records, from the last call; brought up to date
    """
    heap, partner, radius, outward, first = bounds
    while labels[outward[first[0]]] >= 0:
        first[0] += 1
    outermost = radius[outward[first[0]]]
    while True:
        row = heap.items[0]
        if labels[row] >= 0:
            take_out(heap, row)
            continue
        if partner[row] >= 0 and labels[partner[row]] < 0:
            return row, partner[row]
        partner[row], bound = -1, ((radius[row] + outermost) * (1 + _ROUNDING)) ** 2
        if bound >= -heap.key[row, 0]:
            partner[row] = farthest(tree, X[row])
            bound = squared_distance(X, partner[row], X, row)
        put(heap, row, -bound, 0.0)
