"""MDAV: maximum distance to the average vector.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Work from the outside in. The record r farthest from the centroid of what is
          left and its k−1 nearest form a group; so do the record s farthest from r and
          its k−1 nearest. With 2k..3k−1 records left one more group is formed around the
          farthest, and the last k..2k−1 records stay together.
Cost      O(n²/k · d) time, O(n·d) memory. A heuristic: no bound on its loss is proved.
Paper     Domingo-Ferrer & Torra 2005 (as MDAV-generic). The steps above are the variant whose
          losses on the reference data sets are the published ones (tests/published.py).
Here      Ties go to the lower row index. s is searched once the group of r is gone: that is
          the farthest record before the removal, unless that one itself went, in
          which case it is the farthest of what is left. The centroid is a running total
          in doubled precision rather than a new sum in every round.
"""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats, Labels
from microagg.kernels.jit import kernel
from microagg.kernels.select import kth_smallest
from microagg.kernels.sums import add_row
from microagg.progress import DONE, STOP, State, new_state


@kernel
def _distances(X, left, m, point, out):  # type: ignore[no-untyped-def]
    """Squared distances of the first m records of ``left`` to a point."""
    for a in range(m):
        total = 0.0
        for j in range(point.size):
            gap = X[left[a], j] - point[j]
            total += gap * gap
        out[a] = total


@kernel
def _take_group(X, left, m, seed, k, high, low, distance, labels, group):  # type: ignore[no-untyped-def]
    """Give ``seed`` (a position in left) and its k−1 nearest a label and remove them.

    ``left`` stays in ascending row order; ``distance`` keeps the distances to the seed of
    those that remain. Returns how many remain.
    """
    _distances(X, left, m, X[left[seed]].copy(), distance)
    distance[seed] = -1.0  # itself first, even among duplicates of a lower index
    limit = kth_smallest(distance[:m].copy(), k)
    ties = k  # members exactly at the limit that still fit: the lowest indices
    for a in range(m):
        if distance[a] < limit:
            ties -= 1
    kept = 0
    for a in range(m):
        row = left[a]
        if distance[a] < limit or (distance[a] == limit and ties > 0):
            if distance[a] == limit:
                ties -= 1
            labels[row] = group
            add_row(high, low, X[row], -1.0)
        else:
            left[kept] = row
            distance[kept] = distance[a]
            kept += 1
    return kept


@kernel
def _farthest_from_centroid(X, left, m, high, low, centroid, distance):  # type: ignore[no-untyped-def]
    for j in range(centroid.size):
        centroid[j] = (high[j] + low[j]) / m
    _distances(X, left, m, centroid, distance)
    return np.argmax(distance[:m])


@kernel
def _mdav(X, k, labels, state):  # type: ignore[no-untyped-def]
    n, d = X.shape
    left = np.arange(n)
    distance = np.empty(n)
    centroid = np.empty(d)
    high, low = np.zeros(d), np.zeros(d)
    for i in range(n):
        add_row(high, low, X[i], 1.0)
    m = n
    group = 0
    while m >= 2 * k:
        if state[STOP]:
            return
        pair = m >= 3 * k
        r = _farthest_from_centroid(X, left, m, high, low, centroid, distance)
        m = _take_group(X, left, m, r, k, high, low, distance, labels, group)
        group += 1
        if pair:
            s = np.argmax(distance[:m])
            m = _take_group(X, left, m, s, k, high, low, distance, labels, group)
            group += 1
        state[DONE] = n - m
    for a in range(m):
        labels[left[a]] = group
    state[DONE] = n


def mdav(X: Floats, k: int, *, progress: State | None = None) -> Labels:
    """Partition by maximum distance to the average vector.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled, n ≥ k
    k : int, at least 1
    progress : shared state of a watched run, see :mod:`microagg.progress`

    Returns
    -------
    int64 array of shape (n,): the group of each record. O(n²/k · d) time.

    >>> mdav(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).tolist()
    [1, 0, 2, 2, 1, 0]
    """
    labels = np.empty(len(X), dtype=np.int64)
    _mdav(X, k, labels, new_state() if progress is None else progress)
    return labels
