"""Categories without and with an order.

Without order, and of truth values, any two levels are equally far apart; released is the mode.
A level is a corner of a regular simplex, which needs one coordinate fewer than there are levels and has
the distances of one-hot columns. Scaled to an inertia of n − 1 it is one-hot/√γ, where
γ = n/(n−1)·(1 − Σp²) is Gini's index of the column; the SSE of a group is its size times its Gini index,
over γ. For two levels that is the z-score. With the mode, a group loses 1 − share of the mode for each
record, at most twice its Gini index: SSE ≤ loss of the release ≤ 2·SSE.

Of more than 64 levels the simplex is projected at random to 64 coordinates, which keeps all distances to
about an eighth; losses are measured from the categories all the same.

With an order there is one coordinate, the level's number; released is the level nearest to the mean.
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
    count_levels,
    present_means,
)
from microagg.tables.variable import Variable

MOST_COORDINATES = 64
_SEED = 20061  # of the projection: the same for the same number of levels, whatever the plan's seed


def nominal_encoder(levels: int, counts: LevelCounts) -> Encoder:
    """Make the ``levels`` of a category, or states of values, with their ``counts``, corners of a simplex."""
    return corners(simplex(levels), counts)


def simplex(m: int) -> Floats:
    """Return the corners of a regular simplex with edges √2, shape (m, m − 1), projected beyond 64.

    >>> simplex(2).round(3).tolist()
    [[-0.707], [0.707]]
    """
    if m <= 1:
        return np.zeros((max(m, 1), 1))
    if m - 1 > MOST_COORDINATES:
        chance = np.random.default_rng(_SEED)
        return np.asarray(chance.standard_normal((m, MOST_COORDINATES)) / np.sqrt(MOST_COORDINATES))
    points = np.zeros((m, m - 1))
    for j in range(1, m):  # Helmert's contrasts: level j against all before it
        points[:j, j - 1] = -1 / np.sqrt(j * (j + 1))
        points[j, j - 1] = j / np.sqrt(j * (j + 1))
    return points


def release_mode(
    variable: Variable, labels: Labels, g: int, weights: Floats | None = None
) -> Floats:
    """Return the most frequent admissible level of each group, shape (g,); NaN: no record has one."""
    levels = variable.level_numbers
    if variable.admissible is not None:
        levels = np.where(np.append(variable.admissible, False)[levels], levels, -1)
    return modes(levels, labels, g, weights, variable.often)


def modes(
    codes: Labels,
    labels: Labels,
    g: int,
    weights: Floats | None = None,
    often: Floats | None = None,
) -> Floats:
    """Return the most frequent category of each group; ties go by overall frequency, then by order.

    Parameters
    ----------
    codes : (n,) int64, numbers of levels, −1 where missing
    labels : (n,) int64, groups 0..g−1
    g : number of groups
    weights : (n,) above 0
    often : (levels,) overall frequency, if these are not all records

    >>> modes(np.array([1, 0, 0, 1, 1, -1]), np.array([0, 0, 1, 1, 1, 2]), 3).tolist()
    [1.0, 1.0, nan]
    """
    return best_of_groups(*levels_of_groups(codes, labels, weights, often), g)


def levels_of_groups(
    codes: Labels, labels: Labels, weights: Floats | None, often: Floats | None, m: int = 0
) -> tuple[Labels, Labels, Floats, Floats]:
    """List the pairs of a group and a level that occur, with their weights, and the weight of each level.

    ``m`` is the number of levels; the other arguments are those of :func:`modes`.
    """
    there = codes >= 0
    codes, labels = codes[there], labels[there]
    w = np.ones(len(codes)) if weights is None else weights[there]
    overall: Floats = np.bincount(codes, w, m).astype(np.float64) if often is None else often
    m = max(len(overall), 1)
    pairs, which = np.unique(labels * m + codes, return_inverse=True)
    mass: Floats = np.bincount(which.reshape(-1), w).astype(np.float64)
    return pairs // m, pairs % m, mass, overall


def best_of_groups(
    groups: Labels, levels: Labels, score: Floats, overall: Floats, g: int
) -> Floats:
    """Return the level of the highest score in each group; ties go by overall frequency, then by order.

    ``groups``, ``levels`` and ``score`` are of the pairs to choose from, ``overall`` is of the levels. The
    result has shape (g,), NaN for a group without any.
    """
    released = np.full(g, np.nan)
    best = np.lexsort((levels, -overall[levels], -score, groups))
    first = np.unique(groups[best], return_index=True)[1]
    released[groups[best][first]] = levels[best][first]
    return released


def ordinal_encoder(variable: Variable, counts: LevelCounts) -> Encoder:
    """Encode the place of a level as one coordinate."""
    points = corners(_places(variable).reshape(-1, 1), counts).points
    return Corners(points * np.sqrt(variable.share))


def _places(variable: Variable) -> Floats:
    if variable.places is not None:
        return variable.places
    return np.arange(max(len(variable.levels), 1), dtype=np.float64)


def release_level(
    variable: Variable, labels: Labels, g: int, weights: Floats | None = None
) -> Floats:
    """Return the admissible level nearest to the mean of each group, or to its median.

    Ties are broken by overall frequency, then by order. NaN where all values are missing, or no level is
    admissible.

    >>> size = Variable("size", "ordinal", np.array([0.0, 1.0, 2.0, 2.0]), levels=("S", "M", "L"),
    ...                 rows=np.array([0, 1, 2]))
    >>> release_level(size, np.array([0, 0, 1, 1]), 2).tolist()
    [0.0, 2.0]
    """
    places = _places(variable)
    at = np.append(places, np.nan)[variable.level_numbers]
    middle_of = _medians if variable.setting.release == "median" else present_means
    middle = middle_of(at, labels, g, weights)
    occurring = np.flatnonzero(variable.releasable)
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
    often = variable.often
    if often is None:
        counts = count_levels(variable.level_numbers, len(variable.levels), weights)
        often = counts.often.astype(np.float64)
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
