"""The record farthest from a centroid that drifts slowly while records leave.

Records lie in the order of their distance to a reference point, farthest first. From a centroid
that is δ away from it none can be farther than its own distance to the reference plus δ, so a
scan from the outside in ends as soon as that is less than the best one found. The farther the
centroid drifts the longer the scans, and at some point new shells around it are cheaper.

Answers are those of a scan over all records, ties included (lower row first): distances are
summed column by column, and the bound is widened by more than its rounding error. Records lie
in blocks of 16, column by column, so that several distances are computed at a time. Among few records
that makes a look at every block as fast as any tree, from whatever point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.compile.threads import share_with_helpers
from microagg.kernels.distances import squares_to
from microagg.kernels.kd_search import in_order, keep

WIDTH = 16
_ROUNDING = 1e-12  # relative, far above what a sum of squares can be off by
_UNDERFLOW = 1e-160  # more than a distance can lack where its squares underflow
_AT_ONCE = 1 << 14  # records that a thread puts to their places
_PATIENCE = 8  # records looked at for each one left, after which new shells are cheaper


class Shells(NamedTuple):
    """Records by distance to the reference, farthest first."""

    values: Any  # (blocks, d, 16); a record that left is NaN
    rows: Any  # (blocks, 16)
    outer: Any  # (blocks,) largest distance to the reference in the block
    index: Any  # (n,) 16·block + entry, by row number
    reference: Any  # (d,)
    counters: Any  # first block with a record left; records looked at until new shells are cheaper
    distance: Any  # (16,) scratch


def build_shells(X: Floats, rows: Any, centroid: Any, patience: int = _PATIENCE) -> Shells:
    """Order some rows of X by distance to a point, in O(n log n + n·d).

    ``patience`` is how many records may be looked at for each one left before new shells are asked for.
    """
    nearness = np.empty(len(rows))
    share_with_helpers(
        lambda begin, end, _: _measure_rows(X, rows, centroid, nearness, begin, end),
        len(rows),
        at_once=_AT_ONCE,
    )
    order = np.argsort(nearness, kind="stable")
    outer = np.sqrt(-nearness[order[::WIDTH]])
    shells = Shells(
        values=np.full((len(outer), X.shape[1], WIDTH), np.nan),
        rows=np.zeros((len(outer), WIDTH), np.intp),
        outer=outer,
        index=np.empty(len(X), np.intp),
        reference=centroid.copy(),
        counters=np.array([0, patience * len(rows)]),
        distance=np.empty(WIDTH),
    )
    share_with_helpers(
        lambda begin, end, _: _fill(X, rows, order, shells, begin, end), len(rows), at_once=_AT_ONCE
    )
    return shells


@lean_kernel
def _measure_rows(X, rows, point, nearness, begin, end):
    """Squared distances of some rows to a point, negative, so that the farthest is the first."""
    for a in range(begin, end):
        nearness[a] = -squares_to(X, rows[a], point)


@lean_kernel
def _fill(X, rows, order, shells, begin, end):
    """Put the rows begin..end−1 of an order to their places."""
    for a in range(begin, end):
        row = rows[order[a]]
        block, s = a // WIDTH, a % WIDTH
        shells.index[row], shells.rows[block, s] = a, row
        for j in range(X.shape[1]):
            shells.values[block, j, s] = X[row, j]


@lean_subkernel
def leave(shells, row):
    """Take a record away."""
    index = shells.index[row]
    # One column is enough: a sum with NaN is NaN, which is not greater than anything.
    shells.values[index // WIDTH, 0, index % WIDTH] = np.nan


@lean_subkernel
def _drift(shells, centroid):
    """Measure how far the centroid is from the reference."""
    drift = 0.0
    for j in range(centroid.size):
        drift += (centroid[j] - shells.reference[j]) ** 2
    return np.sqrt(drift)


@lean_subkernel
def _farther_than(shells, block, drift):
    """Squared distance to the centroid that no record of a block or of those after it exceeds."""
    return ((shells.outer[block] + drift) * (1 + _ROUNDING) + _UNDERFLOW) ** 2


@lean_subkernel
def _measure(shells, block, centroid):
    """Squared distances of a block's records to the centroid; NaN for those that left."""
    distance = shells.distance
    distance[:] = 0.0
    for j in range(centroid.size):
        values, x = shells.values[block, j], centroid[j]
        for s in range(WIDTH):
            distance[s] += (values[s] - x) * (values[s] - x)


@lean_subkernel
def farthest_in_shells(shells, centroid):
    """Row of the record farthest from the centroid, and whether new shells would be cheaper.

    It may be any other point too, for which more shells are looked at.
    """
    drift, distance = _drift(shells, centroid), shells.distance
    best, best_row = -1.0, -1
    first = shells.counters[0]
    for block in range(first, shells.outer.size):
        if _farther_than(shells, block, drift) < best:
            break
        _measure(shells, block, centroid)
        for s in range(WIDTH):
            if distance[s] > best or (distance[s] == best and shells.rows[block, s] < best_row):
                best, best_row = distance[s], shells.rows[block, s]
        if best_row < 0:
            shells.counters[0] = block + 1
        shells.counters[1] -= WIDTH
    return best_row, shells.counters[1] < 0


@lean_subkernel
def some_farthest_in_shells(shells, centroid, k, distances, rows):
    """Rows of the k records farthest from the centroid, farthest first; returns how many there are.

    Their distances, squared and negative, are left too.
    """
    drift, distance, have = _drift(shells, centroid), shells.distance, 0
    for block in range(shells.counters[0], shells.outer.size):
        if have == k and _farther_than(shells, block, drift) < -distances[0]:
            break
        _measure(shells, block, centroid)
        for s in range(WIDTH):
            if distance[s] >= 0.0:
                have = keep(distances, rows, have, k, -distance[s], shells.rows[block, s])
    in_order(distances, rows, have)
    return have


@lean_subkernel
def nearest_in_shells(shells, point, k, distances, rows):
    """Find the k records nearest to a point in a scan, as ``kd_search.nearest`` does in a tree."""
    if k == 0:
        return 0
    distance, have, limit = shells.distance, 0, np.inf
    for block in range(shells.counters[0], shells.outer.size):
        _measure(shells, block, point)
        for s in range(WIDTH):
            if distance[s] <= limit:  # not so for those that left
                have = keep(distances, rows, have, k, distance[s], shells.rows[block, s])
                if have == k:
                    limit = distances[0]
    return have
