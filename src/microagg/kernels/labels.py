"""Loops over labels: numbering and sums of squares, in one or two passes over the records."""

from __future__ import annotations

import numpy as np

from microagg.kernels.jit import kernel


@kernel
def is_canonical(labels):  # type: ignore[no-untyped-def]
    """Whether groups are numbered 0, 1, 2, … by first appearance already."""
    last = -1
    for label in labels:
        if label > last + 1 or label < 0:
            return False
        if label == last + 1:
            last = label
    return True


@kernel
def renumber(labels, n_groups):  # type: ignore[no-untyped-def]
    """Number groups 0..n_groups−1 anew by first appearance."""
    new = np.full(n_groups, -1)
    out = np.empty_like(labels)
    found = 0
    for i in range(labels.size):
        label = labels[i]
        if new[label] < 0:
            new[label] = found
            found += 1
        out[i] = new[label]
    return out


@kernel
def squares_within(X, labels, n_groups):  # type: ignore[no-untyped-def]
    """Sum of squared distances of the rows of X to the means of their groups.

    Sums are of differences to the first member, so that large offsets do no harm.
    """
    n, d = X.shape
    first = np.full(n_groups, -1)
    sizes = np.zeros(n_groups, dtype=np.int64)
    means = np.zeros((n_groups, d))
    for i in range(n):
        g = labels[i]
        if first[g] < 0:
            first[g] = i
        sizes[g] += 1
        for j in range(d):
            means[g, j] += X[i, j] - X[first[g], j]
    for g in range(n_groups):
        for j in range(d):
            means[g, j] = X[first[g], j] + means[g, j] / sizes[g]
    total = 0.0
    for i in range(n):
        for j in range(d):
            gap = X[i, j] - means[labels[i], j]
            total += gap * gap
    return total
