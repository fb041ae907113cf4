"""Categories without order, and truth values: any two levels are equally far apart; released is the mode.

A level is a corner of a regular simplex, which needs one coordinate fewer than there are levels and has
the distances of one-hot columns. Scaled to an inertia of n − 1 it is one-hot/√γ, where
γ = n/(n−1)·(1 − Σp²) is Gini's index of the column; the SSE of a group is its size times its Gini index,
over γ. For two levels that is the z-score. With the mode, a group loses 1 − share of the mode for each
record, at most twice its Gini index: SSE ≤ loss of the release ≤ 2·SSE.

Of more than 64 levels the simplex is projected at random to 64 coordinates, which keeps all distances to
about an eighth; losses are measured from the categories all the same.
"""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.inertia import Encoder, LevelCounts, corners
from microagg.tables.variable import Variable

MOST_COORDINATES = 64
_SEED = 20061  # of the projection: the same for the same number of levels, whatever the plan's seed


def encoder(levels: int, counts: LevelCounts) -> Encoder:
    """Make the levels of a category, or the states of values, corners of a simplex.

    States are: there, missing, missing with a code.

    >>> encoder(2, LevelCounts(np.array([2, 2]), 4)).apply(np.array([0.0, 1.0])).round(3).tolist()
    [[-0.866], [0.866]]
    """
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


def release(variable: Variable, labels: Labels, g: int, weights: Floats | None = None) -> Floats:
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

    ``often`` is the overall frequency, if these are not all records.

    Parameters
    ----------
    codes : (n,) int64, numbers of levels, −1 where missing
    labels : (n,) int64, groups 0..g−1
    g : number of groups
    weights : (n,) above 0
    often : (levels,)

    Returns
    -------
    (g,) doubles, numbers of levels; NaN for a group without any

    >>> modes(np.array([1, 0, 0, 1, 1, -1]), np.array([0, 0, 1, 1, 1, 2]), 3).tolist()
    [1.0, 1.0, nan]
    """
    there = codes >= 0
    released = np.full(g, np.nan)
    if not there.any():
        return released
    codes, labels = codes[there], labels[there]
    w = np.ones(len(codes)) if weights is None else weights[there]
    overall = np.bincount(codes, weights=w) if often is None else often
    m = len(overall)
    pairs, place = np.unique(labels * m + codes, return_inverse=True)
    mass = np.bincount(place.reshape(-1), weights=w)
    group, level = pairs // m, pairs % m
    best = np.lexsort((level, -overall[level], -mass, group))
    first = np.unique(group[best], return_index=True)[1]
    released[group[best][first]] = level[best][first]
    return released
