"""MDAV-MHM and CBFS-MHM: visit the records group by group.

Problem   Put records in a sequence in which neighbours are near, to be cut optimally.
Idea      Partition them by a method with groups of fixed size, mdav or centroid, and visit one group
          after the other. The cut may then move records between neighbouring groups
          and give them any size from k to 2k−1; it never loses more than the groups did.
Cost      That of the method, and O(n/k) searches in a tree of centroids. Who visits similar groups again
          and again (imhm.py) keeps lists of the groups nearest to a record, in which nineteen of twenty
          searches then end; groups that are new since the lists were made have a tree of their own.
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

from typing import Any, NamedTuple

import numpy as np

from microagg.groups import Floats, Labels, canonical_labels, group_means
from microagg.kernels.kd_tree import NO_ROW, Tree, build, nearest, nearest_one, remove
from microagg.kernels.lean import lean_kernel, lean_subkernel
from microagg.kernels.mdav import mdav_labels
from microagg.methods.fixed_size.centroid import centroid
from microagg.methods.ordering.cut import Order
from microagg.methods.ordering.npn import farthest_from_centroid
from microagg.progress import STOP, State, new_state

_GROUPS_FOR_A_TREE = 64  # with fewer left no new tree is built
_NEAR = 24  # groups in the list of a record
_NEW_SHARE = 1 / 8  # of the groups: with more that are new, new lists are cheaper


class _Groups(NamedTuple):
    """The groups to visit, by number."""

    labels: Any  # (n,) the group of each record
    members: Any  # (n,) rows group by group, ascending in each
    start: Any  # (groups + 1,) where a group begins there
    centroid: Any  # (groups, d)


class _Lists(NamedTuple):
    """The groups nearest to records, as of an earlier visit."""

    near: Any  # (n, 24) their numbers then, nearest first; −1 first where no list is made; (n, 0): none
    now: Any  # (groups then,) their numbers now, −1 for those that are gone
    then: Tree  # of all their centroids
    new: Tree  # of the centroids of groups that are new since then
    is_new: Any  # (groups,)
    distances: Any  # (24,) scratch
    rows: Any  # (24,) scratch


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


@lean_subkernel
def _make_list(X, lists, row):
    """List the groups nearest to a record, in order: what a search leaves is a heap."""
    distances, rows = lists.distances, lists.rows
    have = nearest(lists.then, X[row], lists.near.shape[1], distances, rows)
    for a in range(1, have):
        distance, group, b = distances[a], rows[a], a
        while b > 0 and (
            distances[b - 1] > distance or (distances[b - 1] == distance and rows[b - 1] > group)
        ):
            distances[b], rows[b] = distances[b - 1], rows[b - 1]
            b -= 1
        distances[b], rows[b] = distance, group
    for a in range(lists.near.shape[1]):
        lists.near[row, a] = rows[a] if a < have else -1


@lean_subkernel
def _next_by_list(X, groups, lists, visited, last):
    """The nearest group not yet visited, or none if all on the list of a record are."""
    if lists.near[last, 0] < 0:
        _make_list(X, lists, last)
    for a in range(lists.near.shape[1]):
        then = lists.near[last, a]
        if then < 0:
            break
        g = lists.now[then]
        if g >= 0 and not visited[g]:
            square = 0.0
            for j in range(X.shape[1]):
                gap = groups.centroid[g, j] - X[last, j]
                square += gap * gap
            return nearest_one(lists.new, X[last], NO_ROW, square, g, -1.0)[1]
    return NO_ROW


@lean_kernel
def _visit(X, tree, groups, lists, at, many, visited, walk, distance, order):
    """Visit ``many`` groups. The tree holds those not yet visited.

    ``at`` says which is next, which was the one before (−1: none), how many records are placed and
    how many groups are visited; ``walk`` holds these in their order.
    """
    g, before, placed, count = at
    begin = count  # those visited from here on are in the tree until it is asked
    point = X[order[0]] if before < 0 else groups.centroid[before]
    for _ in range(many):
        group = groups.members[groups.start[g] : groups.start[g + 1]]
        _place(X, group, point, distance, order[placed : placed + group.size])
        placed += group.size
        visited[g] = True
        walk[count] = g
        count += 1
        if placed == order.size:
            return
        last, before, point, g = order[placed - 1], g, groups.centroid[g], NO_ROW
        if lists.near.shape[1] > 0:
            if lists.is_new[before]:
                remove(lists.new, before)
            g = _next_by_list(X, groups, lists, visited, last)
        if g == NO_ROW:
            while begin < count:
                remove(tree, walk[begin])
                begin += 1
            g = nearest_one(tree, X[last], NO_ROW, np.inf, NO_ROW, -1.0)[1]
    at[0], at[1], at[2], at[3] = g, before, placed, count


class Visits:
    """Visits of many partitions of the same records, in which most groups stay the same."""

    def __init__(self, X: Floats, again: bool = True) -> None:
        self._X = X
        self._first = farthest_from_centroid(X)
        self._near = np.full((len(X), _NEAR if again else 0), -1, dtype=np.int32)
        self._then: tuple[Labels, Labels, Tree] | None = None  # labels, sizes and tree of the lists

    def order(self, labels: Labels) -> Order:
        """Order records group by group, see above."""
        X, labels = self._X, canonical_labels(labels)
        sizes = np.bincount(labels)
        centroids = [group_means(np.ascontiguousarray(column), labels) for column in X.T]
        groups = _Groups(
            labels,
            np.argsort(labels, kind="stable"),
            np.concatenate([[0], np.cumsum(sizes)]),
            np.ascontiguousarray(np.column_stack(centroids)),
        )
        lists = self._lists(groups, sizes)
        order = np.full(len(X), self._first)
        at, distance = np.array([labels[order[0]], -1, 0, 0]), np.empty(sizes.max())
        visited, walk = np.zeros(len(sizes), dtype=bool), np.empty(len(sizes), np.int64)
        while not visited.all():
            left = np.flatnonzero(~visited)
            # A tree that is half empty has loose boxes: a new one for each half of what is left.
            many = len(left) if len(left) < _GROUPS_FOR_A_TREE else (len(left) + 1) // 2
            tree = build(groups.centroid, left)
            _visit(X, tree, groups, lists, at, many, visited, walk, distance, order)
        return order

    def _lists(self, groups: _Groups, sizes: Labels) -> _Lists:
        """The lists, made anew when too many groups are."""
        now = self._still_there(groups, sizes)
        if self._then is None or (now >= 0).sum() < (1 - _NEW_SHARE) * len(sizes):
            tree = build(groups.centroid, np.arange(len(sizes)))
            self._then = groups.labels, sizes, tree
            self._near[:] = -1
            now = np.arange(len(sizes))
        is_new = np.ones(len(sizes), dtype=bool)
        is_new[now[now >= 0]] = False
        new = build(groups.centroid, np.flatnonzero(is_new) if is_new.any() else np.arange(1))
        if not is_new.any():
            _empty(new)
        m = self._near.shape[1]
        room = np.empty(m), np.empty(m, np.intp)
        return _Lists(self._near, now, self._then[2], new, is_new, *room)

    def _still_there(self, groups: _Groups, sizes: Labels) -> Labels:
        """The number now of each group of the lists, −1 for those whose records have parted."""
        if self._then is None:
            return np.empty(0, dtype=np.int64)
        labels, before, _ = self._then
        old = labels[groups.members]
        first = np.minimum.reduceat(old, groups.start[:-1])
        same = (first == np.maximum.reduceat(old, groups.start[:-1])) & (before[first] == sizes)
        now = np.full(len(before), -1)
        now[first[same]] = np.flatnonzero(same)
        return now


@lean_kernel
def _empty(tree):
    """Take the only record away."""
    remove(tree, 0)


def visit_groups(X: Floats, labels: Labels) -> Order:
    """Order records group by group, see above; once, so no lists are kept."""
    return Visits(X, again=False).order(labels)


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
