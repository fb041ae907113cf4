"""What the centroid and the diameter method share: growing a group, placing what is left over.

Paper     Laszlo & Mukherjee 2005, section 4.2, procedure ``gather``: a group starts with one
          record and takes k−1 times the record nearest to its centroid, which moves with it.
Here      Ties go to the lower row index. Sums of a group are taken in the order of joining.
          Records left over go by the centroids before any of them joined, so that the order of
          rows does not matter; ties go to the older group. The paper leaves both open.
"""

from __future__ import annotations

import numpy as np

from microagg.kernels.jit import kernel


@kernel
def gather(X, left, m, seed, k, labels, group):  # type: ignore[no-untyped-def]
    """Label a group of k grown from ``seed`` and remove it from the first m records of ``left``.

    ``left`` stays in ascending row order. Returns how many remain.
    """
    d = X.shape[1]
    total = X[seed].copy()
    centre = total.copy()
    labels[seed] = group
    for size in range(1, k):
        nearest, least = -1, np.inf
        for a in range(m):
            row = left[a]
            if labels[row] >= 0:
                continue
            distance = 0.0
            for j in range(d):
                gap = X[row, j] - centre[j]
                distance += gap * gap
            if distance < least:
                nearest, least = row, distance
        labels[nearest] = group
        for j in range(d):
            total[j] += X[nearest, j]
            centre[j] = total[j] / (size + 1)
    kept = 0
    for a in range(m):
        if labels[left[a]] < 0:
            left[kept] = left[a]
            kept += 1
    return kept


@kernel
def join_nearest(X, left, labels, n_groups):  # type: ignore[no-untyped-def]
    """Add each record of ``left`` to the group with the nearest centroid."""
    if left.size == 0:
        return
    n, d = X.shape
    total, size = np.zeros((n_groups, d)), np.zeros(n_groups)
    for i in range(n):
        group = labels[i]
        if group >= 0:
            size[group] += 1.0
            for j in range(d):
                total[group, j] += X[i, j]
    for row in left:
        nearest, least = -1, np.inf
        for group in range(n_groups):
            distance = 0.0
            for j in range(d):
                gap = X[row, j] - total[group, j] / size[group]
                distance += gap * gap
            if distance < least:
                nearest, least = group, distance
        labels[row] = nearest
