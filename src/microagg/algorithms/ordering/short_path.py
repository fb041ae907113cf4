"""A short path through the records of a group: cheapest insertion, steps 5 to 11 of RepOrdMic.

The path connects a first record with the farthest of its group; then, again and again, the record
that lengthens it least is inserted where it does so. The paper and where we depart: rep_ord_mic.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.compile.no_refcount import lean_subkernel
from microagg.kernels.distances import distance

# A path may be extended elsewhere at less cost only if rounding could say so, too.
_MARGIN = 1 + 1e-12


class Path(NamedTuple):
    """A path through some records of a group, and those that wait to be inserted."""

    rows: Any  # records on the path, in the order of their insertion
    values: Any  # their values, column by column
    follow: Any  # which one comes next on the path
    length: Any  # how far that is
    waiting_rows: Any
    waiting: Any  # their values, column by column
    cost: Any  # what a waiting record would add to the length of the path, at its best place
    after: Any  # the record on the path after which this place is
    sure: Any  # whether place and cost are known; else the cost is a lower bound
    distance: Any
    to_first: Any


def new_path(X: Floats) -> Path:
    """Make room for a path through any group of the records."""
    n = len(X)
    floats = {name: np.empty(n) for name in ("length", "cost", "distance", "to_first")}
    whole = {name: np.empty(n, np.int64) for name in ("rows", "follow", "waiting_rows", "after")}
    return Path(
        values=np.empty(X.size), waiting=np.empty(X.size), sure=np.empty(n, bool), **floats, **whole
    )


@lean_subkernel
def _distances(X, row, values, size, count, out):
    """Distances of a record to the first ``count`` of ``values``, which stand column by column."""
    for t in range(count):
        out[t] = 0.0
    for j in range(X.shape[1]):
        x, base = X[row, j], j * size
        for t in range(count):
            out[t] += (values[base + t] - x) * (values[base + t] - x)
    for t in range(count):
        out[t] = np.sqrt(out[t])


@lean_subkernel
def _append(X, row, values, rows, size, at):
    rows[at] = row
    for j in range(X.shape[1]):
        values[j * size + at] = X[row, j]


@lean_subkernel
def _begin_path(X, group, first, path):
    """Connect the first record with the farthest of its group; all others wait to be inserted."""
    size = group.size
    for t in range(size):
        _append(X, group[t], path.waiting, path.waiting_rows, size, t)
    _distances(X, first, path.waiting, size, size, path.to_first)
    far = -1
    for t in range(size):
        if group[t] != first and (far < 0 or path.to_first[t] > path.to_first[far]):
            far = t
    last = group[far]
    _append(X, first, path.values, path.rows, size, 0)
    _append(X, last, path.values, path.rows, size, 1)
    path.follow[0], path.follow[1], path.length[0] = 1, -1, path.to_first[far]
    _distances(X, last, path.waiting, size, size, path.distance)
    waiting = 0
    for t in range(size):
        if group[t] != first and t != far:
            _append(X, group[t], path.waiting, path.waiting_rows, size, waiting)
            path.cost[waiting] = (path.to_first[t] + path.distance[t]) - path.length[0]
            path.after[waiting] = 0
            path.sure[waiting] = True
            waiting += 1
    return waiting


@lean_subkernel
def _best_place(X, w, placed, size, path):
    """Find where on the path a waiting record costs least."""
    _distances(X, path.waiting_rows[w], path.values, size, placed, path.distance)
    best, after = np.inf, -1
    for a in range(placed):
        b = path.follow[a]
        if b >= 0:
            cost = (path.distance[a] + path.distance[b]) - path.length[a]
            if cost < best or (cost == best and path.rows[a] < path.rows[after]):
                best, after = cost, a
    path.cost[w], path.after[w], path.sure[w] = best, after, True


@lean_subkernel
def _offer(w, a, cost, path):
    """Tell a waiting record what it would cost on the new piece of the path after a."""
    if cost < path.cost[w]:
        path.cost[w], path.after[w], path.sure[w] = cost, a, True
    elif cost == path.cost[w] and path.sure[w] and path.rows[a] < path.rows[path.after[w]]:
        path.after[w] = a


@lean_subkernel
def _cheapest(X, waiting, placed, size, path):
    """Find the waiting record of least cost, the lowest row of equals."""
    while True:
        at = 0
        for w in range(1, waiting):
            if path.cost[w] < path.cost[at] or (
                path.cost[w] == path.cost[at]
                and (
                    (path.sure[at] and not path.sure[w])
                    or (
                        path.sure[at] == path.sure[w]
                        and path.waiting_rows[w] < path.waiting_rows[at]
                    )
                )
            ):
                at = w
        if path.sure[at]:
            return at
        _best_place(X, at, placed, size, path)


@lean_subkernel
def _split(X, new, a, waiting, placed, size, path):
    """Insert a record after a, and tell the waiting ones of the two new pieces."""
    b = path.follow[a]
    _append(X, new, path.values, path.rows, size, placed)
    path.follow[a], path.follow[placed] = placed, b
    path.length[a] = distance(X, path.rows[a], new)
    path.length[placed] = distance(X, new, path.rows[b])
    longest = max(path.length[a], path.length[placed])
    _distances(X, new, path.waiting, size, waiting, path.distance)
    for w in range(waiting):
        if path.after[w] == a:
            path.sure[w] = False  # its piece is gone: no other is cheaper, which one is open
        to_new = path.distance[w]
        # By the triangle inequality both pieces cost at least this.
        if 2 * (to_new - longest) <= path.cost[w] * _MARGIN:
            row = path.waiting_rows[w]
            _offer(w, a, (distance(X, path.rows[a], row) + to_new) - path.length[a], path)
            to_b = distance(X, path.rows[b], row)
            _offer(w, placed, (to_new + to_b) - path.length[placed], path)


@lean_subkernel
def path_through(X, group, first, path, seq):
    """Write a short path through a group to ``seq``, from a given first record: steps 5 to 11.

    Each waiting record knows its best place and cost. When the piece of the path it would split is
    gone, the cost stays as a lower bound; only if it becomes the least of all is the record
    compared with the whole path.
    """
    size = group.size
    if size == 1:
        seq[0] = first
        return
    waiting, placed = _begin_path(X, group, first, path), 2
    while waiting > 0:
        at = _cheapest(X, waiting, placed, size, path)
        new, a = path.waiting_rows[at], path.after[at]
        waiting -= 1  # the last one takes its place
        _append(X, path.waiting_rows[waiting], path.waiting, path.waiting_rows, size, at)
        path.cost[at], path.after[at] = path.cost[waiting], path.after[waiting]
        path.sure[at] = path.sure[waiting]
        _split(X, new, a, waiting, placed, size, path)
        placed += 1
    a = 0
    for t in range(size):
        seq[t] = path.rows[a]
        a = path.follow[a]
