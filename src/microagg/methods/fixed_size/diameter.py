"""Diameter-based fixed-size microaggregation, method D.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Work from the outside in, two groups at a time: each of the two records that are
          farthest apart gathers k−1 others around it, each time the one nearest to the
          centroid of the group so far. With k..2k−1 records left these form the last group;
          fewer than k join the nearest groups.
Cost      O(n²·d) time in practice, O(n·d) memory. A heuristic: no bound on its loss is proved.
Paper     Domingo-Ferrer & Mateo-Sanz 2002, as given by Laszlo & Mukherjee 2005, section 4.2
          (diameterBasedFixedSize), where the farthest pair takes cubic time or an n×n matrix.
Here      Ties go to the lower row indices. When the second record of the pair is in the group
          of the first, no second group is formed in that round, which gives the published figures.

          The farthest distance of a record can only shrink as others leave. So the one found
          earlier is an upper bound, and exact while that partner is left: only records
          whose bound is the largest are searched again.
"""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats, Labels
from microagg.kernels.jit import kernel
from microagg.methods.fixed_size.gather import gather, join_nearest
from microagg.progress import DONE, STOP, State, new_state


@kernel
def _farthest(X, left, m, row):  # type: ignore[no-untyped-def]
    farthest, most = -1, -1.0
    for a in range(m):
        distance = 0.0
        for j in range(X.shape[1]):
            gap = X[left[a], j] - X[row, j]
            distance += gap * gap
        if distance > most:
            farthest, most = left[a], distance
    return farthest, most


@kernel
def _farthest_pair(X, left, m, labels, bound, partner):  # type: ignore[no-untyped-def]
    """The pair that is farthest apart, the lexicographically first of several."""
    while True:
        top = left[0]
        for a in range(1, m):
            if bound[left[a]] > bound[top]:
                top = left[a]
        if labels[partner[top]] < 0:
            return top, partner[top]
        partner[top], bound[top] = _farthest(X, left, m, top)


@kernel
def _diameter(X, k, labels, state):  # type: ignore[no-untyped-def]
    n = X.shape[0]
    left = np.arange(n)
    bound, partner = np.empty(n), np.empty(n, dtype=np.intp)
    for i in range(n):
        if state[STOP]:
            return
        partner[i], bound[i] = _farthest(X, left, n, i)
    m, group = n, 0
    while m >= 2 * k:
        if state[STOP]:
            return
        a, b = _farthest_pair(X, left, m, labels, bound, partner)
        m = gather(X, left, m, a, k, labels, group)
        group += 1
        if labels[b] < 0:
            m = gather(X, left, m, b, k, labels, group)
            group += 1
        state[DONE] = n - m
    if m >= k:
        for row in left[:m]:
            labels[row] = group
    else:
        join_nearest(X, left[:m], labels, group)
    state[DONE] = n


def diameter(X: Floats, k: int, *, progress: State | None = None) -> Labels:
    """Partition by gathering groups around the two records that are farthest apart.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled, n ≥ k
    k : int, at least 1
    progress : shared state of a watched run, see :mod:`microagg.progress`

    Returns
    -------
    int64 array of shape (n,): the group of each record.

    >>> diameter(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).tolist()
    [0, 1, 2, 2, 0, 1]
    """
    labels = np.full(len(X), -1, dtype=np.int64)
    _diameter(X, k, labels, new_state() if progress is None else progress)
    return labels
