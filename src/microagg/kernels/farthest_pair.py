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
from microagg.compile.jit import lean_subkernel
from microagg.kernels.distances import squared_distance
from microagg.kernels.kd_search import farthest

_ROUNDING = 1e-12  # relative, far above what a sum of squares can be off by


class FarthestBounds(NamedTuple):
    """How far the farthest other record can be, for each record."""

    bound: Any  # (n,) squared
    partner: Any  # (n,) the record at that distance; −1 when it is a bound only
    radius: Any  # (n,) distance to a fixed centre
    outward: Any  # (n,) rows by radius, largest first
    heap: Any  # (n,) rows, the largest bound on top, then the lowest row
    counters: Any  # first place of outward that is left; length of the heap


def farthest_bounds(X: Floats) -> FarthestBounds:
    """Begin with all records of X, (n, d) doubles, n ≥ 1: no bound yet."""
    n = len(X)
    radius = np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1))
    outward = np.argsort(-radius, kind="stable")
    return FarthestBounds(
        bound=np.full(n, np.inf),
        partner=np.full(n, -1),
        radius=radius,
        outward=outward,
        heap=np.arange(n),  # equal bounds in row order are a heap
        counters=np.array([0, n]),
    )


@lean_subkernel
def _sift_down(heap, size, bound):
    """Let the top of the heap, whose bound fell, sink to its place."""
    row = heap[0]
    a = 0
    while 2 * a + 1 < size:
        child = 2 * a + 1
        if child + 1 < size:
            left, right = heap[child], heap[child + 1]
            if bound[right] > bound[left] or (bound[right] == bound[left] and right < left):
                child += 1
        below = heap[child]
        if bound[below] < bound[row] or (bound[below] == bound[row] and below > row):
            break
        heap[a] = below
        a = child
    heap[a] = row


@lean_subkernel
def farthest_pair(X, labels, tree, bounds):
    """Return the two rows, the first such pair in row order, that are farthest apart among the records left.

    Parameters
    ----------
    X : (n, d) doubles
    labels : (n,), below 0 for the records left, at least two
    tree : of exactly these; searched
    bounds : of all records, from the last call; brought up to date
    """
    bound, partner, radius, outward, heap, counters = bounds
    while labels[outward[counters[0]]] >= 0:
        counters[0] += 1
    outermost = radius[outward[counters[0]]]
    while True:
        row = heap[0]
        if labels[row] >= 0:
            counters[1] -= 1
            heap[0] = heap[counters[1]]
        elif partner[row] >= 0 and labels[partner[row]] < 0:
            return row, partner[row]
        else:
            partner[row] = -1
            cap = ((radius[row] + outermost) * (1 + _ROUNDING)) ** 2
            if cap < bound[row]:
                bound[row] = cap
            else:
                partner[row] = farthest(tree, X[row])
                bound[row] = squared_distance(X, partner[row], X, row)
        _sift_down(heap, counters[1], bound)
