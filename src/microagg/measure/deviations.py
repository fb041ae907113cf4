"""How far simple statistics of the protected columns are from those of the original.

All in units of the original: a column's standard deviation s (denominator n−1). Constant columns have no unit
and deviate by 0.

Every figure is over the records that have a value before and after, a correlation over those that have both
columns. With weights w a mean is Σwx/Σw and a variance m/(m−1)·Σw(x−x̄)²/Σw for m records, so that equal
weights are no weights. Values are z-scores of the original, see :attr:`Pair.scaled`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microagg.base.typing import Floats
from microagg.measure.both_tables import Pair

# Quantiles that are compared; further out they are single records rather than a distribution.
QUANTILES = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)
_BINS = 10
_ROWS_AT_ONCE = 256
_CONSTANT = 1e-12  # standard deviations of the original
_ROUNDING = 1e-13  # a variance below this share of the mean square is rounding


def _of_columns(both: Pair, compute: Callable[[Floats, Floats, Floats], object]) -> Floats:
    """Compute figures of each column from its scaled values before and after and their weights."""
    before, after = both.scaled
    figures = []
    for j in range(len(both.names)):
        there = slice(None) if both.is_complete else both.both_there[:, j]
        figures.append(compute(before[there, j], after[there, j], both.row_weights[there]))
    return np.array(figures, dtype=np.float64)


def moments(both: Pair) -> tuple[Floats, Floats]:
    """Return moves of the means in z-scores, and ratios of the variances; shape (d,) each."""

    def of_column(x: Floats, y: Floats, w: Floats) -> tuple[float, float]:
        if len(x) < 2:
            return 0.0, 1.0
        before, after = np.average(x, weights=w), np.average(y, weights=w)
        spread = np.average(np.square(x - before), weights=w)
        changed = np.average(np.square(y - after), weights=w)
        return after - before, changed / spread if spread > 0 else 1.0

    shifts, ratios = _of_columns(both, of_column).reshape(-1, 2).T
    return shifts, ratios


def absolute_moves(both: Pair) -> Floats:
    """Mean of |x−x'|/s of each column."""
    return _of_columns(
        both, lambda x, y, w: np.average(np.abs(x - y), weights=w) if len(x) else 0.0
    )


def quantiles(both: Pair) -> Floats:
    """|q'−q|/s for each column and each of QUANTILES, interpolated linearly; shape (d, 7)."""

    def of_column(x: Floats, y: Floats, w: Floats) -> Floats:
        if not len(x):
            return np.zeros(len(QUANTILES))
        return np.abs(_quantiles(y, w) - _quantiles(x, w))

    return _of_columns(both, of_column).reshape(-1, len(QUANTILES))


def _quantiles(values: Floats, w: Floats) -> Floats:
    """Quantiles between records whose places are the middles of their weights, from 0 to 1.

    With equal weights that is the usual linear interpolation.

    >>> _quantiles(np.array([3.0, 1.0, 2.0]), np.ones(3))[[2, 3]].tolist()
    [1.5, 2.0]
    """
    ordered, mass = _sorted(values, w)
    position = np.cumsum(mass) - mass / 2
    position -= position[0]
    return np.interp(QUANTILES, position / position[-1] if position[-1] > 0 else position, ordered)


def _sorted(values: Floats, w: Floats) -> tuple[Floats, Floats]:
    if w.min() == w.max():  # sorting is several times faster than finding the order
        return np.sort(values), w
    order = np.lexsort((w, values))
    return values[order], w[order]


def total_variation(both: Pair) -> Floats:
    """½·Σ|p'−p| over ten bins of each column, cut at the original's deciles; shape (d,).

    Deciles that coincide, as in a column that is mostly 0, are one cut.
    """

    def of_column(x: Floats, y: Floats, w: Floats) -> float:
        if not len(x):
            return 0.0
        cuts = _deciles(x, w)
        before, after = (
            np.bincount(np.searchsorted(cuts, v, "right"), w, len(cuts) + 1) for v in (x, y)
        )
        return float(np.abs(before - after).sum() / (2 * w.sum()))

    return _of_columns(both, of_column)


def _deciles(x: Floats, w: Floats) -> Floats:
    """Values at which a column is cut into bins of about equal weight."""
    ordered, mass = _sorted(x, w)
    upto = np.cumsum(mass)
    # Sums of weights that should be the same may differ by rounding.
    wanted = np.arange(1, _BINS) * upto[-1] / _BINS * (1 + 1e-12)
    index = np.searchsorted(upto, wanted, "right")
    return np.unique(ordered[np.minimum(index, len(x) - 1)])


def correlations(
    both: Pair, rows: slice = slice(None), columns: slice = slice(None)
) -> tuple[Floats, Floats]:
    """Correlations of both tables, of some columns with others; 0 with a column that is constant.

    Returns
    -------
    before, after : shape (d, d), or that of the rows and columns asked for
    """
    if both.is_complete:
        before, after = (_complete(x, rows, columns) for x in _centred(both))
    else:
        before, after = (_pairwise(both, x, rows, columns) for x in both.scaled)
    return before, after


def correlation_deviation(both: Pair) -> float:
    """Mean of |r'−r| over all pairs of two columns; 0 for one column.

    Some rows of the matrices at a time: with ten thousand columns a whole one takes a gigabyte.
    """
    d = len(both.names)
    total = 0.0
    for start in range(0, d, _ROWS_AT_ONCE):
        rows, columns = slice(start, start + _ROWS_AT_ONCE), slice(start, d)
        before, after = correlations(both, rows, columns)
        total += float(np.triu(np.abs(after - before), 1).sum())
    return total / max(d * (d - 1) / 2, 1)


def _centred(both: Pair) -> tuple[Floats, Floats]:
    """Scaled columns less their means, such that a product of two is their covariance."""
    w = both.row_weights
    root = np.sqrt(w / w.sum())[:, None]
    before, after = ((x - np.average(x, axis=0, weights=w)) * root for x in both.scaled)
    return before, after


def _complete(x: Floats, rows: slice, columns: slice) -> Floats:
    covariances = x[:, rows].T @ x[:, columns]
    spread = np.sqrt(np.einsum("ij,ij->j", x, x))
    # A column that releases one value has no spread except rounding.
    varies = np.outer(spread[rows] > _CONSTANT, spread[columns] > _CONSTANT)
    unit = np.outer(spread[rows], spread[columns])
    ratios = np.divide(covariances, unit, out=np.zeros_like(covariances), where=varies)
    return np.clip(ratios, -1.0, 1.0)


def _pairwise(both: Pair, x: Floats, rows: slice, columns: slice) -> Floats:
    """Correlations, each over the records that have both columns."""
    there, w = both.both_there, both.row_weights
    M = there.astype(np.float64)
    A = np.where(there, x, 0.0)
    wM, wA = M[:, rows] * w[:, None], A[:, rows] * w[:, None]
    mass = wM.T @ M[:, columns]
    with np.errstate(divide="ignore", invalid="ignore"):
        down = (
            wA.T @ M[:, columns] / mass
        )  # mean of a row's column where the other one is there too
        across = wM.T @ A[:, columns] / mass
        squares_down = (wA * A[:, rows]).T @ M[:, columns] / mass
        squares_across = wM.T @ np.square(A[:, columns]) / mass
        covariance = wA.T @ A[:, columns] / mass - down * across
        spread_down, spread_across = squares_down - down**2, squares_across - across**2
        r = covariance / np.sqrt(spread_down * spread_across)
    # Values are in standard deviations: what varies by less than rounding does not vary.
    varies = (spread_down > _ROUNDING * np.maximum(squares_down, 1.0)) & (
        spread_across > _ROUNDING * np.maximum(squares_across, 1.0)
    )
    return np.clip(np.where(varies & (mass > 0), r, 0.0), -1.0, 1.0)
