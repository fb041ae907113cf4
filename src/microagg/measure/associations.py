"""How any two columns of one table go together.

Two numbers by their correlation. A number and a category by the correlation ratio η = √(SS between
categories / SS total). Two categories by Cramér's V = √(χ²/(n·(min(r, c) − 1))) of their table with r rows
and c columns that occur. Each over the records that have both columns, by weight where records have weights;
0 with a column that is constant there. What is ordinal is a category here.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from microagg.base.typing import Floats, Labels

# Tables of two categories with more cells than this for each record are counted by what occurs.
_CELLS_FOR_A_RECORD = 4
_CONSTANT = 1e-14  # of the largest value: a column that varies by less is constant but for rounding
_ROUNDING = 1e-13  # a variance below this share of the mean square is rounding


def associations(
    values: Floats, is_category: Sequence[bool], weights: Floats | None = None
) -> Floats:
    """Return the association of any two columns, O(n) for each pair.

    Parameters
    ----------
    values : (n, d) numbers, and level numbers of categories; NaN where missing
    is_category : whether a column holds level numbers
    weights : (n,) of the records; None: all count alike

    Returns
    -------
    float64 (d, d)
        1 of a column with itself, 0 if the column is constant.

    >>> ages, sexes = np.array([20.0, 30.0, 40.0, 50.0]), np.array([0.0, 0.0, 1.0, 1.0])
    >>> associations(np.column_stack([ages, sexes]), [False, True]).round(3).tolist()
    [[1.0, 0.894], [0.894, 1.0]]
    """
    n, d = values.shape
    mass = np.ones(n) if weights is None else weights
    matrix, there = np.zeros((d, d)), ~np.isnan(values)
    numbers = [j for j in range(d) if not is_category[j]]
    if numbers:
        matrix[np.ix_(numbers, numbers)] = correlations(values[:, numbers], mass)
    for i, j in itertools.combinations_with_replacement(range(d), 2):
        if not (is_category[i] or is_category[j]):
            continue
        rows = there[:, i] & there[:, j]
        x, y, w = values[rows, i], values[rows, j], mass[rows]
        if i == j:
            matrix[i, i] = float(len(x) > 0 and np.ptp(x) > 0)
        elif len(w) > 1:
            matrix[i, j] = matrix[j, i] = _with_category(x, y, (is_category[i], is_category[j]), w)
    return matrix


def correlations(values: Floats, mass: Floats) -> Floats:
    """Return the correlations of numbers (n, d), each over the records that have both columns.

    ``mass`` (n,) is what each record counts.
    """
    there = (~np.isnan(values)).astype(np.float64)
    Z = np.zeros_like(there)  # standard deviations from the mean, 0 where missing
    for j, column in enumerate(values.T):
        moved, shares = centred(_at_most_1(column), mass)
        spread = float(np.sqrt(shares @ np.square(moved)))
        if spread > _CONSTANT:
            Z[:, j] = moved / spread
    total = (there * mass[:, None]).T @ there
    weighted = Z * mass[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = weighted.T @ there / total  # [i, j]: of column i where j is there
        squares = (weighted * Z).T @ there / total
        variance = squares - mean**2
        r = (weighted.T @ Z / total - mean * mean.T) / np.sqrt(variance * variance.T)
    varies = variance > _ROUNDING * np.maximum(squares, 1.0)
    return np.clip(np.where(varies & varies.T & (total > 0), r, 0.0), -1.0, 1.0)


def centred(values: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return values less their mean, and each one's share of all that counts; 0 where one is missing."""
    there = ~np.isnan(values)
    mass = np.where(there, mass, 0.0)
    total = float(mass.sum()) or 1.0
    base = float(values[np.argmax(there)]) if there.any() else 0.0
    moved = np.where(there, values - base, 0.0)  # a large offset must not swallow the digits
    return np.where(there, moved - float(mass @ moved) / total, 0.0), mass / total


def _at_most_1(values: Floats) -> Floats:
    """Divide by a power of two, which changes no digit, so that no difference or square overflows."""
    largest = np.fmax.reduce(np.abs(values), initial=0.0)
    return np.asarray(np.ldexp(values, -np.frexp(largest)[1]))


def cramer(rows: Labels, columns: Labels, mass: Floats) -> float:
    """Return Cramér's V from the row, the column and the mass of each cell that occurs."""
    p, q = np.bincount(rows, mass), np.bincount(columns, mass)
    least = min(np.count_nonzero(p), np.count_nonzero(q)) - 1
    if least < 1:
        return 0.0
    # χ²/n = Σ n_ij²/(n_i·n_j) − 1
    chi = float((np.square(mass) / (p[rows] * q[columns])).sum()) - 1
    return float(np.sqrt(min(max(chi / least, 0.0), 1.0)))


def _with_category(x: Floats, y: Floats, is_category: tuple[bool, bool], w: Floats) -> float:
    """Return the association of two complete columns of which one at least holds level numbers."""
    if not is_category[0]:
        x, y = y, x
    codes = x.astype(np.int64)
    if not all(is_category):
        return _ratio(codes, y, w)
    width = int(y.max()) + 1
    cells, mass = _counted(codes * width + y.astype(np.int64), w)
    return cramer(cells // width, cells % width, mass)


def _ratio(codes: Labels, values: Floats, w: Floats) -> float:
    """Return the correlation ratio of numbers by categories."""
    moved, shares = centred(_at_most_1(values), w)
    total = float(shares @ np.square(moved))
    if total == 0:
        return 0.0
    mass, sums = np.bincount(codes, shares), np.bincount(codes, shares * moved)
    between = float(np.square(sums[mass > 0]) @ (1 / mass[mass > 0]))
    return float(np.sqrt(min(max(between / total, 0.0), 1.0)))


def _counted(codes: Labels, w: Floats) -> tuple[Labels, Floats]:
    """Return the codes that occur, and the sum of the weights of each."""
    if codes.max(initial=0) <= _CELLS_FOR_A_RECORD * len(codes):
        mass = np.bincount(codes, weights=w).astype(np.float64)
        occurs: Labels = np.flatnonzero(np.bincount(codes))
        return occurs, mass[occurs]
    occurs, index = np.unique(codes, return_inverse=True)
    return occurs, np.bincount(index.reshape(-1), weights=w).astype(np.float64)
