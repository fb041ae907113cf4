"""How two columns of one table go together: correlations of numbers, Cramér's V of categories.

Cramér's V is √(χ²/(n·(min(r, c) − 1))) of a table with r rows and c columns that occur. Records count by
their weight, and a correlation is over the records that have both columns; 0 with a column that is constant
there.
"""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats, Labels

_CONSTANT = 1e-14  # of the largest value: a column that varies by less is constant but for rounding
_ROUNDING = 1e-13  # a variance below this share of the mean square is rounding


def correlations(values: Floats, mass: Floats) -> Floats:
    """Return the correlations of columns, each over the records that have both.

    Parameters
    ----------
    values : (n, d) numbers, NaN where missing
    mass : (n,) what each record counts

    Returns
    -------
    float64 (d, d)
        1 of a column with itself, 0 if the column is constant.

    >>> X = np.array([[20.0, 1.0], [30.0, 3.0], [40.0, np.nan], [50.0, 1.0]])
    >>> correlations(X, np.ones(4)).round(3).tolist()
    [[1.0, -0.189], [-0.189, 1.0]]
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
