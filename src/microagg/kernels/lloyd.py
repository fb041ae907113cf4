"""k-means by Lloyd's iterations from k-means++ seeds, without threads of its own.

scikit-learn's is made for large tables: for a thousand records its checks take longer than the work,
and the last bits of its sums depend on the number of threads. Here the centres stand column by
column, so that the distances of a record to all of them are short loops over neighbours in memory.
"""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats, Labels
from microagg.kernels.jit import kernel

# The clusters are a start for something better: they need not be settled to the last record.
_ITERATIONS = 20


@kernel
def _seed(X, draws, centres, nearest):  # type: ignore[no-untyped-def]
    """k-means++: each centre a record, drawn in proportion to the squared distance to the others."""
    n, d = X.shape
    row = min(int(draws[0] * n), n - 1)
    for i in range(n):
        nearest[i] = np.inf
    for c in range(centres.shape[1]):
        for j in range(d):
            centres[j, c] = X[row, j]
        total = 0.0
        for i in range(n):
            distance = 0.0
            for j in range(d):
                gap = X[i, j] - centres[j, c]
                distance += gap * gap
            nearest[i] = min(nearest[i], distance)
            total += nearest[i]
        if c + 1 < centres.shape[1]:
            rest, row = draws[c + 1] * total, 0
            while row < n - 1 and rest >= nearest[row]:
                rest -= nearest[row]
                row += 1


@kernel
def _assign(X, centres, labels, distance):  # type: ignore[no-untyped-def]
    """Give each record the label of its nearest centre, the lowest of equals; count changes."""
    changed = 0
    for i in range(X.shape[0]):
        for c in range(distance.size):
            distance[c] = 0.0
        for j in range(X.shape[1]):
            x, column = X[i, j], centres[j]
            for c in range(distance.size):
                distance[c] += (column[c] - x) * (column[c] - x)
        best = 0
        for c in range(1, distance.size):
            if distance[c] < distance[best]:
                best = c
        if labels[i] != best:
            labels[i] = best
            changed += 1
    return changed


@kernel
def _move(X, labels, centres, size, sums):  # type: ignore[no-untyped-def]
    """Move each centre to the mean of its records; one without any stays."""
    n, d = X.shape
    for c in range(size.size):
        size[c] = 0
        for j in range(d):
            sums[c, j] = 0.0
    for i in range(n):
        size[labels[i]] += 1
        for j in range(d):
            sums[labels[i], j] += X[i, j]
    for c in range(size.size):
        if size[c] > 0:
            for j in range(d):
                centres[j, c] = sums[c, j] / size[c]


@kernel
def _lloyd(X, draws, labels, centres, nearest, distance, size, sums):  # type: ignore[no-untyped-def]
    _seed(X, draws, centres, nearest)
    for _ in range(_ITERATIONS):
        if _assign(X, centres, labels, distance) == 0:
            break
        _move(X, labels, centres, size, sums)


def k_means(X: Floats, n_clusters: int, rng: np.random.Generator) -> Labels:
    """Cluster records; labels from 0 to n_clusters − 1, not all of which need occur.

    At most 20 iterations of O(n · n_clusters · d) each.

    >>> k_means(np.array([[0.0], [0.1], [5.0]]), 2, np.random.default_rng(0)).tolist()
    [1, 1, 0]
    """
    n, d = X.shape
    labels = np.full(n, -1, dtype=np.int64)
    _lloyd(
        X,
        rng.random(n_clusters),
        labels,
        np.empty((d, n_clusters)),
        np.empty(n),
        np.empty(n_clusters),
        np.empty(n_clusters, dtype=np.int64),
        np.empty((n_clusters, d)),
    )
    return labels
