"""Shared by all kinds: groups of the values that are present, and coordinates with an inertia of n − 1.

The inertia of a column's coordinates is their sum of squares about the mean. With the same inertia for every
column no unit of measurement decides the groups, and the SSE of a group is a sum over columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import group_means


class Encoder(Protocol):
    """Turns the values of a column into coordinates; fitted to the column as it was given."""

    def apply(self, values: Floats) -> Floats:
        """Return the coordinates of original or released values, shape (n, c); 0 for missing values."""


@dataclass(frozen=True, eq=False)
class Corners:
    """A point for each level of a category."""

    points: Floats  # (levels, c)

    def apply(self, values: Floats) -> Floats:
        """Look up the points of levels."""
        missing = np.isnan(values)
        coordinates = self.points[np.where(missing, 0, values).astype(np.int64)]
        coordinates[missing] = 0.0
        return coordinates


class LevelCounts(NamedTuple):
    """How often each level of a category occurs in a table."""

    often: Floats | Labels  # (levels,) records, or the sum of their weights, which have a mean of 1
    present: int  # records that have a level

    @property
    def inertia(self) -> float:
        """Of the coordinates: m − 1 of m records that have a level; 0 if all have the same."""
        return self.present - 1.0 if np.count_nonzero(self.often) > 1 else 0.0


def count_levels(levels: Labels, m: int, weights: Floats | None = None) -> LevelCounts:
    """Count the m levels of records, −1 where missing.

    Parameters
    ----------
    levels : (n,) number of each record's level, −1 where missing
    m : number of levels
    weights : (n,) of the records; None: each counts as one

    >>> count_levels(np.array([0, 0, 1, -1]), 2)
    LevelCounts(often=array([2, 1]), present=3)
    """
    there = levels >= 0
    w = None if weights is None else weights[there]
    return LevelCounts(np.bincount(levels[there], weights=w, minlength=m), int(there.sum()))


def corners(points: Floats, counts: LevelCounts) -> Corners:
    """Centre the points of levels and scale them together, so that m records have an inertia of m − 1.

    >>> size = corners(np.array([[0.0], [1.0]]), LevelCounts(np.array([2, 1]), 3))
    >>> size.apply(np.array([0.0, 1.0])).round(3).tolist()
    [[-0.577], [1.155]]
    """
    often, present = counts
    # No matrix product: its last digits depend on the processor, and with them the groups.
    centre = (often[:, None] * points).sum(axis=0)
    moved = points - centre / often.sum() if often.sum() else points
    total = float((often * np.square(moved).sum(axis=1)).sum())
    scale = np.sqrt((present - 1) / total) if total > 0 else 0.0
    return Corners(moved * scale)


def by_present(
    values: Floats, labels: Labels, g: int, function: Callable[[Floats, Labels, Labels], Floats]
) -> Floats:
    """Apply a function to the values that are present, by groups; NaN for a group without any.

    The function gets the values, their groups numbered 0, 1, … and their rows.
    """
    rows = np.flatnonzero(~np.isnan(values))
    figures = np.full(g, np.nan)
    if len(rows):
        groups, dense = np.unique(labels[rows], return_inverse=True)
        figures[groups] = function(values[rows], dense.reshape(-1), rows)
    return figures


def present_means(values: Floats, labels: Labels, g: int, weights: Floats | None = None) -> Floats:
    """Return the mean of the present values of each group.

    >>> present_means(np.array([1.0, np.nan, 3.0, np.nan]), np.array([0, 0, 0, 1]), 2).tolist()
    [2.0, nan]
    """

    def means(there: Floats, groups: Labels, rows: Labels) -> Floats:
        return group_means(there, groups, None if weights is None else weights[rows])

    return by_present(values, labels, g, means)
