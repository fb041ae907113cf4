"""IGD: iterative group decomposition.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Take a partition and improve it. *Decompose*: give the records of a group to the groups
          whose centroids are nearest, if that lowers the SSE. *Shrink*: while a group has more than
          k records, give away the one whose leaving lowers the SSE most. Groups that so reach 2k
          records are split. Repeat while the SSE falls.
Cost      O(n²/k · d) an iteration. A heuristic: never worse than where it starts.
Paper     Khomnotai et al. 2018, as described in section 3 of Mortazavi 2020: a solution is refined
          by shrinking or decomposing its groups.
Here      The description leaves much open. We start from MDAV; visit groups by their number; let
          records go to the group of nearest centroid, in the order of their rows, centroids
          following at once; and split a group by sorting it by distance from its record farthest
          from its centroid and cutting that order optimally. Ties go to the lower row or group.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.algorithms.ordering.cut import labels_along
from microagg.algorithms.result import Outcome
from microagg.base.progress import STOP, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_subkernel
from microagg.kernels.distances import squared_distance
from microagg.kernels.labels import canonical_labels, group_means, split_large, sum_of_squares
from microagg.kernels.outside_in import mdav_labels

# An improvement below this share of the SSE is rounding.
_LEAST = 1e-12


@lean_subkernel
def _nearest_other(X, i, centroids, size, g):
    """Return the group other than g with the nearest centroid, and its squared distance."""
    best, distance = -1, np.inf
    for h in range(size.size):
        if h != g and size[h] > 0:
            to = squared_distance(X, i, centroids, h)
            if to < distance:
                best, distance = h, to
    return best, distance


@lean_subkernel
def _move(X, i, centroids, size, g, sign):
    """Let a record join a group, by 1, or leave it, by −1."""
    size[g] += sign
    for j in range(X.shape[1]):
        centroids[g, j] += sign * (X[i, j] - centroids[g, j]) / size[g]


@lean_subkernel
def _decompose(X, members, labels, centroids, size, g, targets):
    """Dissolve group g if that lowers the SSE."""
    gain = 0.0
    for i in members:
        gain += squared_distance(X, i, centroids, g)
    for t in range(members.size):
        h, distance = _nearest_other(X, members[t], centroids, size, g)
        gain -= distance * size[h] / (size[h] + 1)
        targets[t] = h
        _move(X, members[t], centroids, size, h, 1)
    for t in range(members.size):
        if gain > 0.0:
            labels[members[t]] = targets[t]
        else:
            _move(X, members[t], centroids, size, targets[t], -1)
    if gain > 0.0:
        size[g] = 0


@lean_subkernel
def _shrink(X, members, labels, k, centroids, size, g):
    """Let records leave group g for others, the best first, while that lowers the SSE."""
    while size[g] > k:
        most, leaver, target = 0.0, -1, -1
        for i in members:
            if labels[i] == g:
                h, distance = _nearest_other(X, i, centroids, size, g)
                if h >= 0:
                    gain = squared_distance(X, i, centroids, g) * size[g] / (size[g] - 1)
                    gain -= distance * size[h] / (size[h] + 1)
                    if gain > most:
                        most, leaver, target = gain, i, h
        if leaver < 0:
            return
        labels[leaver] = target
        _move(X, leaver, centroids, size, g, -1)
        _move(X, leaver, centroids, size, target, 1)


@kernel
def _pass(X, k, labels, centroids, size, shrink, state):
    """Decompose or shrink all groups; records move at once, so members are looked up anew."""
    n = labels.size
    members, targets = np.empty(n, np.int64), np.empty(n, np.int64)
    for g in range(size.size):
        if state[STOP]:
            return
        if size[g] == 0 or (shrink and size[g] == k) or size[g] == n:
            continue
        m = 0
        for i in range(n):
            if labels[i] == g:
                members[m] = i
                m += 1
        if shrink:
            _shrink(X, members[:m], labels, k, centroids, size, g)
        else:
            _decompose(X, members[:m], labels, centroids, size, g, targets)


def _split_large(X: Floats, k: int, labels: Labels) -> Labels:
    """Split groups of 2k and more: the optimal cut by distance from their farthest record."""

    def parts_of(rows: Any) -> Labels:
        around = X[rows] - X[rows].mean(axis=0)
        far = X[rows[np.einsum("ij,ij->i", around, around).argmax()]]
        order = np.argsort(np.square(X[rows] - far).sum(axis=1), kind="stable")
        return labels_along(np.ascontiguousarray(X[rows]), order, k, new_state())

    labels = canonical_labels(labels)
    split_large(labels, k, parts_of, new_state())
    return canonical_labels(labels)


def igd(X: Floats, k: int, *, state: State | None = None) -> Outcome:
    """Partition by mdav, then decompose and shrink groups while the loss falls.

    >>> igd(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0], [30.5]]), 2).labels.tolist()
    [0, 1, 0, 1, 0, 2, 2]
    """
    state = new_state() if state is None else state
    best = canonical_labels(mdav_labels(X, k, state))
    least = sum_of_squares(X, best)
    while not state[STOP]:
        labels = best
        for shrink in (False, True):
            labels = labels.copy()
            columns = (np.ascontiguousarray(X[:, j]) for j in range(X.shape[1]))
            centroids = np.column_stack([group_means(column, labels) for column in columns])
            size = np.bincount(labels)
            _pass(X, k, labels, np.ascontiguousarray(centroids), size, shrink, state)
            labels = _split_large(X, k, labels)
        loss = sum_of_squares(X, labels)
        if not loss < least * (1 - _LEAST):
            break
        best, least = labels, loss
    return Outcome(best)
