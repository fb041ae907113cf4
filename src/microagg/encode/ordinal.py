"""Categories with an order: one coordinate, the level's number; released is the level nearest to the mean.

Levels are as far apart as their places in the order, bands of numbers as the means of their values. Only
levels that some record has are released.
With ``release = "median"`` it is the level in the middle of the group, the lower of two different middles:
never a level between them, and never a missing one.
"""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.inertia import (
    Corners,
    Encoder,
    LevelCounts,
    by_present,
    corners,
    present_means,
)
from microagg.tables.variable import Variable


def encoder(variable: Variable, counts: LevelCounts) -> Encoder:
    """Encode the place of a level as one coordinate."""
    points = corners(_places(variable).reshape(-1, 1), counts)
    return Corners(points.points * np.sqrt(variable.share))


def _places(variable: Variable) -> Floats:
    if variable.places is not None:
        return variable.places
    return np.arange(max(len(variable.levels), 1), dtype=np.float64)


def release(variable: Variable, labels: Labels, g: int, weights: Floats | None = None) -> Floats:
    """Return the admissible level nearest to the mean of each group, or to its median.

    Ties are broken by overall frequency, then by order. NaN where all values are missing, or no level is
    admissible.

    >>> size = Variable("size", "ordinal", np.array([0.0, 1.0, 2.0, 2.0]), levels=("S", "M", "L"),
    ...                 rows=np.array([0, 1, 2]))
    >>> release(size, np.array([0, 0, 1, 1]), 2).tolist()
    [0.0, 2.0]
    """
    places = _places(variable)
    at = np.append(places, np.nan)[variable.level_numbers]
    if variable.setting.release == "median":
        middle = _medians(at, labels, g, weights)
    else:
        middle = present_means(at, labels, g, weights)
    occurs = variable.rows >= 0
    if variable.admissible is not None:
        occurs = occurs & variable.admissible
    occurring = np.flatnonzero(occurs)
    released = np.full(g, np.nan)
    there = ~np.isnan(middle)
    if not there.any() or not len(occurring):
        return released
    wanted = middle[there]
    after = np.clip(np.searchsorted(places[occurring], wanted), 1, max(len(occurring) - 1, 1))
    low = occurring[after - 1]
    high = occurring[np.minimum(after, len(occurring) - 1)]
    below, above = np.abs(wanted - places[low]), np.abs(places[high] - wanted)
    tie = np.isclose(below, above, rtol=1e-12, atol=1e-12)
    w = None if weights is None else weights[~variable.missing]
    levels = variable.values[~variable.missing].astype(np.int64)
    counted = np.bincount(levels, weights=w, minlength=len(variable.levels))
    often = counted if variable.often is None else variable.often
    upper = np.where(tie, often[high] > often[low], above < below)
    released[there] = np.where(upper, high, low)
    return released


def _medians(at: Floats, labels: Labels, g: int, weights: Floats | None = None) -> Floats:
    """Return the lower weighted median of each group."""

    def medians(values: Floats, groups: Labels, rows: Labels) -> Floats:
        w = np.ones(len(values)) if weights is None else weights[rows]
        order = np.lexsort((values, groups))
        groups, values, w = groups[order], values[order], w[order]
        upto = np.cumsum(w)
        totals = np.bincount(groups, weights=w)
        before = np.concatenate([[0.0], np.cumsum(totals)[:-1]])
        reached = (upto - before[groups]) >= totals[groups] / 2 * (1 - 1e-12)
        first = np.full(len(totals), len(values))
        np.minimum.at(first, groups[reached], np.flatnonzero(reached))
        return np.asarray(values[first])

    return by_present(at, labels, g, medians)
