"""What the centroid and the diameter method share: growing a group, placing what is left over.

Paper     Laszlo & Mukherjee 2005, section 4.2, procedure ``gather``: a group starts with one
          record and takes k−1 times the record nearest to its centroid, which moves with it.
Here      Ties go to the lower row index. Sums of a group are taken in the order of joining.
          Records left over go by the centroids before any of them joined, so that the order of
          rows does not matter; ties go to the older group. The paper leaves both open.
"""

from __future__ import annotations

import numpy as np

from microagg.kernels.jit import kernel, subkernel
from microagg.kernels.kd_tree import NO_ROW, nearest_one
from microagg.kernels.left import take


@subkernel
def gather(left, seed, k, group):
    """Label a group of k grown from ``seed`` and take it away."""
    total = left.X[seed].copy()
    centre = total.copy()
    take(left, seed, group)
    for size in range(2, k + 1):
        _, row = nearest_one(left.tree, centre, NO_ROW, np.inf, NO_ROW, -1.0)
        take(left, row, group)
        for j in range(total.size):
            total[j] += left.X[row, j]
            centre[j] = total[j] / size


@kernel
def join_nearest(X, labels, n_groups):
    """Give each record without a label that of the group with the nearest centroid."""
    n, d = X.shape
    total, size = np.zeros((n_groups, d)), np.zeros(n_groups)
    for i in range(n):
        if labels[i] >= 0:
            size[labels[i]] += 1.0
            for j in range(d):
                total[labels[i], j] += X[i, j]
    for i in range(n):
        if labels[i] >= 0:
            continue
        least = np.inf
        for group in range(n_groups):
            distance = 0.0
            for j in range(d):
                gap = X[i, j] - total[group, j] / size[group]
                distance += gap * gap
            if distance < least:
                labels[i], least = group, distance
