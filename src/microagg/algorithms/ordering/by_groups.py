"""MDAV-MHM and CBFS-MHM: visit the records group by group.

Problem   Put records in a sequence in which neighbours are near, to be cut optimally.
Idea      Partition them by a method with groups of fixed size, mdav or centroid, and visit one group
          after the other. The cut may then move records between neighbouring groups
          and give them any size from k to 2k−1; it never loses more than the groups did.
Cost      That of the method, and O(n/k) searches in a tree of centroids.
Paper     Domingo-Ferrer, Martínez-Ballesté, Mateo-Sanz & Sebé 2006, as described in sections 1 and
          3 of Mortazavi 2020: "visits all records, group by group".
Here      Which group comes next and how its records are ordered, the papers at hand do not say. We
          begin with the group of the record farthest from the centroid of all, by distance from
          that record. Next comes the group whose centroid is nearest to the last record, its
          records by distance from the centroid of the group before. Of the ways that we tried
          this comes closest to the published figures. Ties go to the group whose lowest row
          is lower, and to the lower row.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.fixed_size.centroid import centroid
from microagg.algorithms.ordering.cut import Order
from microagg.algorithms.ordering.npn import farthest_from_centroid
from microagg.base.progress import STOP, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.kernels.distances import squared_distance
from microagg.kernels.kd_search import nearest_one
from microagg.kernels.kd_tree import NO_ROW, build, remove
from microagg.kernels.labels import canonical_labels, group_means
from microagg.kernels.outside_in import mdav_labels

_GROUPS_FOR_A_TREE = 64  # with fewer left no new tree is built


@lean_subkernel
def _place(X, group, point, distance, order):
    """Write the rows of a group, which ascend, by distance from a point: an insertion sort."""
    for t in range(group.size):
        total = 0.0
        for j in range(point.size):
            gap = X[group[t], j] - point[j]
            total += gap * gap
        s = t
        while s > 0 and distance[s - 1] > total:
            distance[s], order[s] = distance[s - 1], order[s - 1]
            s -= 1
        distance[s], order[s] = total, group[t]


@lean_kernel
def _visit(X, tree, centroids, members, start, labels, hint, at, many, visited, distance, order):
    """Visit ``many`` groups. The tree holds those not yet visited.

    ``at`` says which is next, which was the one before (−1: none) and how many records are placed.
    """
    g, before, placed = at
    point = X[order[0]] if before < 0 else centroids[before]
    for _ in range(many):
        group = members[start[g] : start[g + 1]]
        _place(X, group, point, distance, order[placed : placed + group.size])
        placed += group.size
        visited[g] = True
        remove(tree, g)
        if placed == order.size:
            return
        last, before, point = order[placed - 1], g, centroids[g]
        square, near = np.inf, NO_ROW
        if hint[last] >= 0 and not visited[labels[hint[last]]]:
            near = labels[hint[last]]
            square = squared_distance(centroids, near, X, last)
        g = nearest_one(tree, X[last], NO_ROW, square, near, -1.0)[1]
    at[0], at[1], at[2] = g, before, placed


def visit_groups(X: Floats, labels: Labels, hint: Order | None = None) -> Order:
    """Order records group by group, see above.

    ``hint`` may give for each record one that may come next, −1 if none is known: the search for
    the next group begins with its group. It has no influence on the result.
    """
    labels = canonical_labels(labels)
    members = np.argsort(labels, kind="stable")
    sizes = np.bincount(labels)
    start = np.concatenate([[0], np.cumsum(sizes)])
    centroids = np.column_stack(
        [group_means(np.ascontiguousarray(X[:, j]), labels) for j in range(X.shape[1])]
    )
    centroids = np.ascontiguousarray(centroids)
    order = np.full(len(X), farthest_from_centroid(X))
    hint = np.full(len(X), -1) if hint is None else hint
    at, distance = np.array([labels[order[0]], -1, 0]), np.empty(sizes.max())
    visited = np.zeros(len(sizes), dtype=bool)
    groups = centroids, members, start, labels, hint, at
    while not visited.all():
        left = np.flatnonzero(~visited)
        # A tree that is half empty has loose boxes: a new one for each half of what is left.
        many = len(left) if len(left) < _GROUPS_FOR_A_TREE else (len(left) + 1) // 2
        _visit(X, build(centroids, left), *groups, many, visited, distance, order)
    return order


def mdav_mhm_order(X: Floats, k: int, *, state: State | None = None) -> Order:
    """Order records by the groups of mdav.

    >>> mdav_mhm_order(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).tolist()
    [5, 1, 3, 2, 4, 0]
    """
    state = new_state() if state is None else state
    labels = mdav_labels(X, k, state)
    return np.arange(len(X)) if state[STOP] else visit_groups(X, labels)


def cbfs_mhm_order(X: Floats, k: int, *, state: State | None = None) -> Order:
    """Order records by the groups of centroid, the centroid-based fixed-size method."""
    state = new_state() if state is None else state
    labels = centroid(X, k, state=state).labels
    return np.arange(len(X)) if state[STOP] else visit_groups(X, labels)
