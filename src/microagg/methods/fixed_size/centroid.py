"""Centroid-based fixed-size microaggregation, method C.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Work from the outside in, one group at a time: the record farthest from the centroid
          of what is left gathers k−1 others around it, each time the one nearest to the
          centroid of the group so far. The last records, fewer than k, join the nearest groups.
Cost      O(n² · d) time, O(n·d) memory. A heuristic: no bound on its loss is proved.
Paper     Laszlo & Mukherjee 2005, section 4.2 (centroidBasedFixedSize). Its figures for the
          Tarragona data are not those of its own pseudocode; all others are.
Here      Ties go to the lower row index. The centroid of what is left is a running total in
          doubled precision rather than a new sum in every round.
"""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats, Labels
from microagg.kernels.jit import kernel
from microagg.kernels.sums import add_row
from microagg.methods.fixed_size.gather import gather, join_nearest
from microagg.progress import DONE, STOP, State, new_state


@kernel
def _farthest(X, left, m, centre):  # type: ignore[no-untyped-def]
    farthest, most = -1, -1.0
    for a in range(m):
        distance = 0.0
        for j in range(centre.size):
            gap = X[left[a], j] - centre[j]
            distance += gap * gap
        if distance > most:
            farthest, most = left[a], distance
    return farthest


@kernel
def _centroid(X, k, labels, state):  # type: ignore[no-untyped-def]
    n, d = X.shape
    left = np.arange(n)
    high, low, centre = np.zeros(d), np.zeros(d), np.empty(d)
    for i in range(n):
        add_row(high, low, X[i], 1.0)
    m, group = n, 0
    while m >= k:
        if state[STOP]:
            return
        for j in range(d):
            centre[j] = (high[j] + low[j]) / m
        seed = _farthest(X, left, m, centre)
        before = left[:m].copy()
        m = gather(X, left, m, seed, k, labels, group)
        for row in before:
            if labels[row] == group:
                add_row(high, low, X[row], -1.0)
        group += 1
        state[DONE] = n - m
    join_nearest(X, left[:m], labels, group)
    state[DONE] = n


def centroid(X: Floats, k: int, *, progress: State | None = None) -> Labels:
    """Partition by gathering groups around the record farthest from the centroid.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled, n ≥ k
    k : int, at least 1
    progress : shared state of a watched run, see :mod:`microagg.progress`

    Returns
    -------
    int64 array of shape (n,): the group of each record.

    >>> centroid(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).tolist()
    [2, 0, 1, 1, 2, 0]
    """
    labels = np.full(len(X), -1, dtype=np.int64)
    _centroid(X, k, labels, new_state() if progress is None else progress)
    return labels
