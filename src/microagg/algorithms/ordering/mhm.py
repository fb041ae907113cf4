"""MHM: records in a sequence in which neighbours are near, then cut optimally.

Problem   Put records in a sequence in which neighbours are near, to be cut optimally (cut.py).
npn-mhm   Nearest point next: start at the record farthest from the centroid; go on to the nearest one not
          yet seen. At most O(n²·d), near O(n log n · d) for few columns: the nearest record left is found
          in a tree from which records are taken away. The losses published for it are not
          quite those of the description (docs/papers/mortazavi.md).
mdav-mhm  Partition the records by a method with groups of fixed size, mdav or (cbfs-mhm) centroid, and visit
cbfs-mhm  one group after the other. The cut may then move records between neighbouring groups and give them
          any size from k to 2k−1; it never loses more than the groups did. That of the method, and
          O(n/k) searches in a tree of centroids.
imhm      From the groups of mdav: visit the records group by group, cut that sequence optimally, which
          gives new groups, and so on while the SSE falls. It never rises, since the old groups are
          runs of the new sequence. Normal data of 5,000 to 80,000 records, k = 5, take some dozens of
          iterations and about n^1.3 with 2 columns, 50 to 150 and n^1.4 with 5, 60 to 180 and n^1.5 with 10.
Paper     Domingo-Ferrer, Martínez-Ballesté, Mateo-Sanz & Sebé 2006, as described in sections 1 and
          3 of Mortazavi 2020: "visits all records, group by group". imhm: Mortazavi, Jalili & Gohargazi
          2013, of which the papers at hand say that the cut was used for several columns in an iterative
          optimisation with several parameters (section 3).
Here      Which group comes next and how its records are ordered, the papers at hand do not say. We
          begin with the group of the record farthest from the centroid of all, by distance from
          that record. Next comes the group whose centroid is nearest to the last record, its
          records by distance from the centroid of the group before. Of the ways that we tried
          this comes closest to the published figures. Ties go to the group whose lowest row
          is lower, and to the lower row.
          How imhm's optimisation goes they do not say either, and its published losses are not
          ours (docs/papers/mortazavi.md). We repeat the visit of mdav-mhm, which
          has no parameter. It ends when the SSE falls by less than a ten-millionth, or by less than a
          thousandth in ten iterations together. Without the latter the iterations grow with the table, to
          436 for 80,000 records of 10 columns in place of 175, and the whole as n², for a SSE that is
          1 to 2 % lower. On the reference tables the losses are the same to all digits of the papers.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from microagg.algorithms.fixed_size import centroid
from microagg.algorithms.ordering.cut import Order, labels_along
from microagg.base.progress import DONE, STOP, State, new_state, part
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.kernels.distances import squared_distance
from microagg.kernels.kd_search import nearest, nearest_one
from microagg.kernels.kd_tree import NO_ROW, build, remove
from microagg.kernels.labels import canonical_labels, group_means, sum_of_squares
from microagg.kernels.outside_in import mdav_labels

_FEW_LEFT = 64  # records for which no new tree is built
_LEAST = 1e-7  # by which one iteration of imhm lowers the SSE
_FEW, _WORTHWHILE = 10, 1e-3  # iterations, and by how much they lower it together


@lean_kernel
def _connect_paths(X, tree, link, far_end, tour, placed, ends, distance, row, tell, state):
    """Put paths on the tour, always the one with the nearest end, until ``ends`` are used."""
    while placed < tour.size and ends > 0 and not state[STOP]:
        if tell:
            state[DONE] = placed
        begin = tour[0]
        if placed > 0:
            nearest(tree, X[tour[placed - 1]], 1, distance, row)
            begin = row[0]
        remove(tree, begin)
        ends -= 1
        if far_end[begin] != begin:
            remove(tree, far_end[begin])
            ends -= 1
        before, a = -1, begin
        while a >= 0:
            tour[placed] = a
            placed += 1
            before, a = a, link[a, 0] if link[a, 0] != before else link[a, 1]
    return placed


def connect_paths(
    X: Floats, link: Any, far_end: Any, first: int, tell: bool, state: State
) -> Order:
    """Go through paths of records, from the one that begins with ``first``, always on to the nearest end.

    ``link``, (n, 2), has the neighbours of each record on its path, −1 for none, ``far_end`` the other end of
    the path that ends at a record. ``tell`` counts the records as done.
    """
    n = len(X)
    tour, placed, used = np.zeros(n, dtype=np.int64), 0, np.zeros(n, dtype=bool)
    tour[0] = first
    room = np.empty(1), np.empty(1, np.intp)
    while placed < n and not state[STOP]:
        used[tour[:placed]] = True
        ends = np.flatnonzero((link[:, 1] < 0) & ~used)
        # A tree that is half empty has loose boxes: a new one for each half of what is left.
        many = len(ends) if len(ends) < _FEW_LEFT else (len(ends) + 1) // 2
        tree = build(X, ends)
        placed = _connect_paths(X, tree, link, far_end, tour, placed, many, *room, tell, state)
    return tour


def farthest_from_centroid(X: Floats) -> int:
    """Row of the record farthest from the centroid, the lowest of equals.

    The centroid is rounded: records that differ by no more than that are equals.
    """
    centred = X - X.mean(axis=0)
    distance = np.einsum("ij,ij->i", centred, centred)
    return int((distance >= distance.max() * (1 - 1e-12)).argmax())


def npn_order(X: Floats, k: int, *, state: State | None = None) -> Order:
    """Order records from the one farthest from the centroid on, always to the nearest unseen.

    >>> npn_order(np.array([[0.0], [9.0], [1.0], [7.0]]), 2).tolist()
    [1, 3, 2, 0]
    """
    state = new_state() if state is None else state
    link, far_end = np.full((len(X), 2), -1), np.arange(len(X))  # each record is a path of its own
    return connect_paths(X, link, far_end, farthest_from_centroid(X), True, state)


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
        many = len(left) if len(left) < _FEW_LEFT else (len(left) + 1) // 2
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


def imhm_order(X: Floats, k: int, *, state: State | None = None) -> Order:
    """Order records by the groups of mdav, then by those of the cut, while the loss falls.

    >>> imhm_order(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).tolist()
    [5, 1, 3, 2, 4, 0]
    """
    state = new_state() if state is None else state
    n = len(X)
    with part(state, 1 / 8):
        labels = mdav_labels(X, k, state)
    order: Order = np.arange(n)
    hint, losses = np.full(n, -1), [np.inf]
    for t in count(1):
        if state[STOP]:
            break
        order = visit_groups(X, labels, hint)
        labels = labels_along(X, order, k, new_state())
        losses.append(sum_of_squares(X, labels))
        if _ended(losses):
            state[DONE] = n
            break
        hint[order[:-1]] = order[1:]
        state[DONE] = n // 8 + (n - n // 8) * t // (t + 16)  # some dozens are usual
    return order


def _ended(losses: list[float]) -> bool:
    """Return whether the SSE falls no more, or the last few iterations were hardly worth their time."""
    now = losses[-1]
    if not now < losses[-2] * (1 - _LEAST):
        return True
    return len(losses) > _FEW and not now < losses[-1 - _FEW] * (1 - _WORTHWHILE)
