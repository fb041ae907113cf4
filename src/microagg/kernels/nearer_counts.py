"""Count the records that lie as near to a point as its own twin does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.kernels.kd_search import count_within
from microagg.kernels.kd_tree import WIDTH


@lean_kernel
def count_by_tree(X, rows, inner, outer, tree, sizes, count):
    """Set ``count`` of each row to the records as far from it as its radii say; 0 if one is nearer.

    ``sizes`` are the records that a row of the tree stands for.
    """
    for i in rows:
        count[i] = count_within(tree, X[i], inner[i], outer[i], sizes)


@lean_kernel
def count_by_scan(X, rows, inner, outer, points, sizes, begin, end, distance, count):
    """Do the same without a tree: row i is compared with the points from ``begin`` up to ``end``.

    The points are side by side in blocks, see :func:`in_blocks`; ``begin`` and ``end`` are in the order of
    ``rows``; ``distance`` is scratch for a block. Distances are summed as the tree sums them.
    """
    for a in range(rows.size):
        i, nearer = rows[a], 0
        block = begin[a] // WIDTH
        while block * WIDTH < end[a]:
            distance[:] = 0.0
            for j in range(X.shape[1]):
                values, x = points[block, j], X[i, j]
                for s in range(distance.size):
                    distance[s] += (values[s] - x) * (values[s] - x)
            for s in range(distance.size):
                p = block * WIDTH + s
                if distance[s] <= outer[i] and begin[a] <= p < end[a]:
                    nearer = -1 if distance[s] < inner[i] or nearer < 0 else nearer + sizes[p]
            block = block + 1 if nearer >= 0 else end[a]
        count[i] = max(nearer, 0)


def in_blocks(points: Floats) -> Floats:
    """Return the points as WIDTH of them side by side, column by column."""
    n, d = points.shape
    blocks = np.zeros((-(-n // WIDTH), WIDTH, d))
    blocks.reshape(-1, d)[:n] = points
    return np.ascontiguousarray(blocks.transpose(0, 2, 1))


# Find the balls that hold a point: a grid over balls, for few balls and a great many points.
#
# Along up to four coordinates, those in which balls are narrowest, space is cut where the centres have their
# quantiles. Each cell lists the balls that reach into it, and a point is compared with those of its cell. So
# points are looked at one after the other, in any order, and need no tree of their own.

_BINS = {1: 1024, 2: 64, 3: 16, 4: 12}  # along each coordinate, by their number
# Rounding must not leave a point outside of the cells of a ball that holds it.
_MARGIN = 1e-12


class BallGrid(NamedTuple):
    """Cells are numbered by the last coordinate first."""

    chosen: Any  # (g,) coordinates along which cells are cut
    order: Any  # (d,) in which coordinates are compared
    cuts: Any  # (g, bins − 1) ascending
    start: Any  # (cells + 1,) where the list of a cell begins in ``rows``
    rows: Any  # row numbers of balls


def build_grid(centres: Floats, squares: Floats, rows: Any) -> BallGrid:
    """List some rows by cell: of balls with these centres, (n, d), and squared radii, (n,)."""
    rows = np.asarray(rows, dtype=np.intp)
    g = min(centres.shape[1], len(_BINS))
    bins = _BINS[g]
    radius = np.sqrt(squares[rows])[:, None] * (1 + _MARGIN)
    margin = _MARGIN * np.abs(centres[rows]) + radius
    low, high = centres[rows] - margin, centres[rows] + margin
    cuts = np.zeros((bins - 1, centres.shape[1]))
    if len(rows):
        cuts = np.quantile(centres[rows], np.arange(1, bins) / bins, axis=0)
    first, last = (
        np.stack([np.searchsorted(cuts[:, j], ends[:, j], "right") for j in range(ends.shape[1])])
        for ends in (low, high)
    )
    order = np.argsort((last - first).sum(axis=1), kind="stable")
    narrow, others = order[:g], order[g:]
    first, last = (np.ascontiguousarray(ends[narrow]) for ends in (first, last))
    start = np.zeros(bins**g + 1, np.intp)
    _fill(first, last, bins, rows, start, np.empty(0, np.intp))
    listed = np.empty(start[-1], np.intp)
    _fill(first, last, bins, rows, start, listed)
    # In coordinates along which cells are cut, the balls of a cell are near already.
    looked_at = np.concatenate([others, narrow])
    return BallGrid(narrow, looked_at, np.ascontiguousarray(cuts[:, narrow].T), start, listed)


@kernel
def _fill(first, last, bins, rows, start, listed):
    """Count the balls of each cell into ``start``; with room in ``listed``, put them there."""
    g = first.shape[0]
    place = start[:-1].copy()
    at = np.empty(g, np.intp)
    for b in range(rows.size):
        for j in range(g):
            at[j] = first[j, b]
        while True:
            cell = 0
            for j in range(g):
                cell = cell * bins + at[j]
            if listed.size:
                listed[place[cell]] = rows[b]
                place[cell] += 1
            else:
                start[cell + 1] += 1
            j = g - 1  # on to the next cell, as the hand of a clock does
            while j >= 0 and at[j] == last[j, b]:
                at[j] = first[j, b]
                j -= 1
            if j < 0:
                break
            at[j] += 1
    if not listed.size:
        for cell in range(start.size - 1):
            start[cell + 1] += start[cell]


@lean_subkernel
def _cell(chosen, cuts, point):
    cell = 0
    for j in range(chosen.size):
        low, high = 0, cuts.shape[1]
        while low < high:
            middle = (low + high) // 2
            if cuts[j, middle] <= point[chosen[j]]:
                low = middle + 1
            else:
                high = middle
        cell = cell * (cuts.shape[1] + 1) + low
    return cell


@lean_kernel
def count_in_grid(grid, centres, inner, outer, points, sizes, count):
    """Add to ``count`` of each row the sizes of the points that are as far from it as its radii say.

    −1 instead, and for good, where a point is nearer.
    """
    chosen, order, cuts, start, rows = grid.chosen, grid.order, grid.cuts, grid.start, grid.rows
    for p in range(points.shape[0]):
        cell = _cell(chosen, cuts, points[p])
        for a in range(start[cell], start[cell + 1]):
            i = rows[a]
            if count[i] < 0:
                continue
            distance = 0.0
            for j in order:
                distance += (points[p, j] - centres[i, j]) * (points[p, j] - centres[i, j])
                if distance > outer[i]:
                    break
            if distance < inner[i]:
                count[i] = -1
            elif distance <= outer[i]:
                count[i] += sizes[p]
