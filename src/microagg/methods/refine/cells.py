"""Cells of neighbouring groups, each annealed by itself: no two of them touch the same record."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.kernels.halve import select
from microagg.kernels.jit import inner, kernel
from microagg.methods.refine.pool import draw

GROUPS_IN_A_CELL = 128  # to anneal


class Cells(NamedTuple):
    """The records of cell c are rows[first[c] : first[c + 1]], group after group."""

    rows: Any  # (n,)
    first: Any  # (cells + 1,)


@inner
def _by_group(labels, n_groups):  # type: ignore[no-untyped-def]
    """List the rows of group 0, 1, …; group g is at start[g] up to start[g + 1]."""
    start = np.zeros(n_groups + 1, np.intp)
    for label in labels:
        start[label + 1] += 1
    for g in range(n_groups):
        start[g + 1] += start[g]
    rows, at = np.empty(labels.size, np.intp), start.copy()
    for i in range(labels.size):
        rows[at[labels[i]]] = i
        at[labels[i]] += 1
    return rows, start


@inner
def _centroids(X, rows, start):  # type: ignore[no-untyped-def]
    n_groups, d = start.size - 1, X.shape[1]
    centroid = np.zeros((n_groups, d))
    for g in range(n_groups):
        for a in range(start[g], start[g + 1]):
            for j in range(d):
                centroid[g, j] += X[rows[a], j]
        for j in range(d):
            centroid[g, j] /= start[g + 1] - start[g]
    return centroid


@inner
def _halve(centroid, groups, start, stop, keys, random):  # type: ignore[no-untyped-def]
    """Reorder groups[start:stop] in two parts along the line through two of them; return the cut.

    Not at the very middle, so that the cells of the next pass have other borders.
    """
    one = groups[start + int(draw(random) * (stop - start))]
    other = groups[start + int(draw(random) * (stop - start))]
    for a in range(start, stop):
        keys[a] = 0.0
        for j in range(centroid.shape[1]):
            keys[a] += centroid[groups[a], j] * (centroid[other, j] - centroid[one, j])
    middle = start + int((0.4 + 0.2 * draw(random)) * (stop - start))
    select(keys, groups, start, stop, middle)
    return middle


@kernel
def split(X, labels, n_groups, most, random):  # type: ignore[no-untyped-def]
    """Split the groups 0, 1, … into cells of at most so many neighbours.

    The labels become the number of the cell's first record, plus 0, 1, … for its groups.
    """
    rows, start = _by_group(labels, n_groups)
    centroid = _centroids(X, rows, start)
    groups, keys = np.arange(n_groups), np.empty(n_groups)
    cells = Cells(np.empty(labels.size, np.intp), np.empty(n_groups + 1, np.intp))
    ends = np.empty(64, np.intp)  # of what is still to be split, the nearest on top
    ends[0], top, at, count, filled = n_groups, 1, 0, 0, 0
    while top > 0:
        stop = ends[top - 1]
        if stop - at > most:
            ends[top] = _halve(centroid, groups, at, stop, keys, random)
            top += 1
            continue
        cells.first[count] = filled
        for a in range(at, stop):
            g = groups[a]
            for b in range(start[g], start[g + 1]):
                cells.rows[filled] = rows[b]
                labels[rows[b]] = cells.first[count] + a - at
                filled += 1
        at, count, top = stop, count + 1, top - 1
    cells.first[count] = filled
    return Cells(cells.rows, cells.first[: count + 1])
