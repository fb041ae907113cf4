"""k-means by Lloyd's iterations from records drawn at random, without threads of its own.

scikit-learn's is made for large tables: for a thousand records its checks take longer than the work,
and the last bits of its sums depend on the number of threads. Here the centres stand column by
column, so that the distances of a record to all of them are short loops over neighbours in memory.
"""

from __future__ import annotations

import numpy as np

from microagg.base.progress import STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.no_refcount import lean_kernel, lean_subkernel

# The clusters are a start for something better: they need not be settled to the last record. Iterations
# end when fewer than one record in a thousand changes, and the centres of a large table
# come from a sample of its records.
_ITERATIONS = 100
_SETTLED = 0.001
_SAMPLE = 8192


@lean_kernel
def _assign(X, centres, labels, distance):
    """Give each record the label of its nearest centre, the lowest of equals; count changes."""
    n, d = X.shape
    changed = 0
    for i in range(n):
        for c in range(distance.size):
            distance[c] = 0.0
        for j in range(0, d - 1, 2):  # two columns at a time: half as often is the sum stored
            x, y, one, two = X[i, j], X[i, j + 1], centres[j], centres[j + 1]
            for c in range(distance.size):
                part = distance[c] + (one[c] - x) * (one[c] - x)
                distance[c] = part + (two[c] - y) * (two[c] - y)
        if d % 2 == 1:
            x, one = X[i, d - 1], centres[d - 1]
            for c in range(distance.size):
                distance[c] += (one[c] - x) * (one[c] - x)
        best, least = 0, distance[0]
        for c in range(1, distance.size):
            if distance[c] < least:
                best, least = c, distance[c]
        if labels[i] != best:
            labels[i] = best
            changed += 1
    return changed


@lean_subkernel
def _move(X, labels, centres, size, sums):
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


@lean_kernel
def _lloyd(X, labels, centres, distance, size, sums, state):
    for _ in range(_ITERATIONS):
        if state[STOP] or _assign(X, centres, labels, distance) <= _SETTLED * labels.size:
            break
        _move(X, labels, centres, size, sums)


def k_means(X: Floats, n_clusters: int, rng: np.random.Generator, state: State) -> Labels:
    """Cluster records; labels from 0 to n_clusters − 1, not all of which need occur.

    At most 100 iterations of O(min(n, 8192) · n_clusters · d) each, and one for all records.

    >>> from microagg.base.progress import new_state
    >>> k_means(np.array([[0.0], [0.1], [5.0]]), 2, np.random.default_rng(0), new_state()).tolist()
    [0, 0, 1]
    """
    n, d = X.shape
    drawn = rng.choice(n, size=n_clusters, replace=False)
    sample = X if n <= _SAMPLE else X[np.sort(rng.choice(n, size=_SAMPLE, replace=False))]
    centres, distance = np.ascontiguousarray(X[drawn].T), np.empty(n_clusters)
    labels = np.full(len(sample), -1, dtype=np.int64)
    size, sums = np.empty(n_clusters, dtype=np.int64), np.empty((n_clusters, d))
    _lloyd(sample, labels, centres, distance, size, sums, state)
    if n > _SAMPLE and not state[STOP]:
        labels = np.full(n, -1, dtype=np.int64)
        _assign(X, centres, labels, distance)
    return labels if labels[0] >= 0 and len(labels) == n else np.zeros(n, dtype=np.int64)
