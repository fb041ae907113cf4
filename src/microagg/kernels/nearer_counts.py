"""Count the records that lie as near to a point as its own twin does."""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats
from microagg.compile.jit import lean_kernel
from microagg.kernels.kd_search import count_within
from microagg.kernels.kd_tree import WIDTH


@lean_kernel
def count_by_tree(X, rows, inner, outer, tree, sizes, count):
    """Set ``count`` of each row to the records as far from it as its radii say; −1 if one is nearer.

    ``sizes`` are the records that a row of the tree stands for.
    """
    for i in rows:
        count[i] = count_within(tree, X[i], inner[i], outer[i], sizes)


@lean_kernel
def count_by_scan(X, rows, inner, outer, points, sizes, begin, end, distance, count):
    """Do the same without a tree: row i is compared with the points from ``begin`` up to ``end``.

    The points are side by side in blocks, see :func:`in_blocks`; ``begin`` and ``end`` are in the order of
    ``rows``; ``distance`` is scratch for a block. Distances are summed as the tree sums them.
    """
    for a in range(rows.size):
        i, nearer = rows[a], 0
        block = begin[a] // WIDTH
        while block * WIDTH < end[a]:
            distance[:] = 0.0
            for j in range(X.shape[1]):
                values, x = points[block, j], X[i, j]
                for s in range(distance.size):
                    distance[s] += (values[s] - x) * (values[s] - x)
            for s in range(distance.size):
                p = block * WIDTH + s
                if distance[s] <= outer[i] and begin[a] <= p < end[a]:
                    nearer = -1 if distance[s] < inner[i] or nearer < 0 else nearer + sizes[p]
            block = block + 1 if nearer >= 0 else end[a]
        count[i] = nearer


def in_blocks(points: Floats) -> Floats:
    """Return the points as WIDTH of them side by side, column by column."""
    n, d = points.shape
    blocks = np.zeros((-(-n // WIDTH), WIDTH, d))
    blocks.reshape(-1, d)[:n] = points
    return np.ascontiguousarray(blocks.transpose(0, 2, 1))
