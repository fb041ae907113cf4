"""What groups release in each column, as arrays that kernels read; without loading any kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

# How a column's loss follows from the values that a group has: released is their mean; the mean rounded to
# the next whole number; the level nearest to the mean; the mean of a spiked column; the spike or the mean
# off it, whichever is nearer; the mode.
MEAN, ROUNDED, NEAREST, SPIKED, NEARER_SORT, MODE = range(6)


class Releases(NamedTuple):
    """What groups of some records release, and what that loses, in units of the coordinates."""

    X: Any  # (n, d) coordinates of columns whose loss is the SSE
    kind: Any  # (columns,) of all other columns
    unit: Any  # (columns,) of a mode: what a record with another level loses; of rounded means: the distance
    # of neighbouring whole numbers; of spiked ones: the distance of the spike from the mean of the others
    origin: Any  # (columns,) of rounded means: the coordinate of some whole number
    points: Any  # (points,) coordinates of levels that may be released, of columns with an order
    start: Any  # (columns + 1,) where the points of a column begin
    level: Any  # (n, columns) of a mode: the level; of spiked columns 0 at the spike; else 1.
    # −1: nothing that counts; −2: a level that may not be released
    value: Any  # (n, columns) coordinate, from the mean of those off the spike where there is one
    blank: Any  # (n, columns) what is lost where a group releases nothing
    majority: Any  # whether a column is released where most records of a group have it; else where any has
