"""A group around a record: the others that join it, taken from the records that are left."""

from __future__ import annotations

import numpy as np

from microagg.kernels.kd_search import in_order, nearest, nearest_one
from microagg.kernels.kd_tree import NO_ROW
from microagg.kernels.lean import lean_subkernel
from microagg.kernels.left import take

__all__ = ["form", "gather"]


@lean_subkernel
def form(left, moving, seed, k, group, distances, rows):
    """Give a record and the k−1 that join it a label, and take them away."""
    take(left, seed, group)
    gather(left, moving, seed, k, group, distances, rows)


@lean_subkernel
def gather(left, moving, seed, k, group, distances, rows):
    """Give the k−1 that join a record, which is taken away already, a label, and take them away.

    They leave in the order of joining: the last bits of a running total depend on it.
    """
    if moving is None:
        have = nearest(left.tree, left.X[seed], k - 1, distances, rows)
        in_order(distances, rows, have)
        for a in range(have):
            take(left, rows[a], group)
    else:
        total, centre = moving[0], moving[1]
        for j in range(total.size):
            total[j] = centre[j] = left.X[seed, j]
        for size in range(2, k + 1):
            _, row = nearest_one(left.tree, centre, NO_ROW, np.inf, NO_ROW, -1.0)
            take(left, row, group)
            for j in range(total.size):
                total[j] += left.X[row, j]
                centre[j] = total[j] / size
