"""A group around a record: the others that join it, taken from the records that are left."""

from __future__ import annotations

from microagg.compile.no_refcount import lean_subkernel
from microagg.kernels.kd_search import in_order
from microagg.kernels.remaining import nearest_left, nearest_one_left, take


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
        have = nearest_left(left.tree, left.shells, left.X[seed], k - 1, distances, rows)
        in_order(distances, rows, have)
        for a in range(have):
            take(left, rows[a], group)
    else:
        total, centre = moving[0], moving[1]
        for j in range(total.size):
            total[j] = centre[j] = left.X[seed, j]
        for size in range(2, k + 1):
            row = nearest_one_left(left.tree, left.shells, centre, distances, rows)
            take(left, row, group)
            for j in range(total.size):
                total[j] += left.X[row, j]
                centre[j] = total[j] / size
