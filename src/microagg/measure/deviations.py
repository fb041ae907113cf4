"""How far simple statistics of the protected columns are from the original's.

All in units of the original: a column's standard deviation s (denominator n−1), the product of two
of them for a covariance. Constant columns have no unit and deviate by 0. Where values are missing or
weighted, see :mod:`microagg.measure.weighted_statistics`.
"""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats
from microagg.measure import weighted_statistics as partial
from microagg.measure.both_tables import Pair

__all__ = [
    "QUANTILES",
    "absolute_moves",
    "correlations",
    "eigenvalue_deviation",
    "moments",
    "over_pairs",
    "quantiles",
    "total_variation",
]

# Quantiles that are compared; further out they are single records rather than a distribution.
QUANTILES = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)
BINS = 10
_ROWS_AT_ONCE = 256
_CONSTANT = 1e-12  # standard deviations of the original


def moments(both: Pair) -> tuple[Floats, Floats, Floats]:
    """Means of the protected columns, and variances of both tables', all in z-scores; shape (d,) each."""
    if not both.is_plain:
        return partial.moments(both)
    before, after = _centred(both)
    return both.scaled[1].mean(axis=0), _squares(before), _squares(after)


def correlations(both: Pair) -> tuple[Floats, Floats]:
    """Correlations of both tables, shape (d, d); 0 with a column that is constant."""
    if not both.is_plain:
        return _pairwise(both, slice(None), slice(None))[1]
    before, after = (
        _correlations(x.T @ x, np.sqrt(_squares(x)), np.sqrt(_squares(x))) for x in _centred(both)
    )
    return before, after


def over_pairs(both: Pair) -> tuple[float, float]:
    """Mean of |c'−c| and of |r'−r| over all pairs of two columns; 0 for one column.

    Some rows of the matrices at a time: with ten thousand columns a whole one takes a gigabyte.
    """
    tables = _centred(both) if both.is_plain else ()
    spreads = [np.sqrt(_squares(x)) for x in tables]
    d = len(both.names)
    sums = np.zeros(2)
    for start in range(0, d, _ROWS_AT_ONCE):
        own, later = slice(start, start + _ROWS_AT_ONCE), slice(start, d)
        if both.is_plain:
            covariances = [x[:, own].T @ x[:, later] for x in tables]
            shares = [
                _correlations(c, s[own], s[later])
                for c, s in zip(covariances, spreads, strict=True)
            ]
        else:
            covariances, shares = map(list, _pairwise(both, own, later))
        for i, (x, y) in enumerate((covariances, shares)):
            sums[i] += np.triu(np.abs(y - x), 1).sum()
    covariance, correlation = (sums / max(d * (d - 1) / 2, 1)).tolist()
    return covariance, correlation


def eigenvalue_deviation(both: Pair) -> float:
    """Σ|λ'−λ|/Σλ over the eigenvalues of both covariance matrices, each in descending order.

    With more columns than records, XᵀX has the eigenvalues of XXᵀ and zeros, which do not deviate.
    """
    if not both.names:
        return 0.0
    if both.is_plain:
        products = [x.T @ x if x.shape[1] <= len(x) else x @ x.T for x in _centred(both)]
    else:
        products = list(_pairwise(both, slice(None), slice(None))[0])
    before, after = map(np.linalg.eigvalsh, products)
    total = float(before.sum())
    return float(np.abs(after - before).sum() / total) if total > 0 else 0.0


def _pairwise(
    both: Pair, own: slice, others: slice
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Covariances before and after, and correlations, of some columns with others."""
    w = np.ones(len(both)) if both.weights is None else both.weights
    (c, r), (later_c, later_r) = (
        partial.pairwise(table, both.both_there, w, own, others) for table in both.scaled
    )
    return (c, later_c), (r, later_r)


def _centred(both: Pair) -> tuple[Floats, Floats]:
    """Scaled columns less their means, divided by √(n−1): a product of two is their covariance."""
    before, after = both.scaled  # the original's means are 0
    root = np.sqrt(max(len(both) - 1, 1))
    return before / root, (after - after.mean(axis=0)) / root


def _squares(x: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", x, x))


def _correlations(covariances: Floats, down: Floats, across: Floats) -> Floats:
    unit = np.outer(down, across)
    # A column that releases one value has, but for rounding, no spread.
    varies = np.outer(down > _CONSTANT, across > _CONSTANT)
    found = np.divide(covariances, unit, out=np.zeros_like(covariances), where=varies)
    return np.asarray(np.clip(found, -1.0, 1.0))


def absolute_moves(both: Pair) -> Floats:
    """Mean of |x−x'|/s of each column."""
    if not both.is_plain:
        return partial.absolute_moves(both)
    before, after = both.scaled
    return np.asarray(np.abs(before - after).mean(axis=0))


def quantiles(both: Pair) -> Floats:
    """|q'−q|/s for each column and each of QUANTILES, interpolated linearly; shape (d, 7)."""
    if not both.is_plain or not both.names:
        return partial.quantiles(both, np.array(QUANTILES))
    before, after = both.sorted
    return np.abs(_quantiles(after) - _quantiles(before))


def _quantiles(ordered: Floats) -> Floats:
    place = (ordered.shape[1] - 1) * np.array(QUANTILES)
    low = np.floor(place).astype(np.intp)
    high = np.ceil(place).astype(np.intp)
    return np.asarray(ordered[:, low] + (place - low) * (ordered[:, high] - ordered[:, low]))


def total_variation(both: Pair) -> Floats:
    """½·Σ|p'−p| over ten bins of each column, cut at the original's deciles; shape (d,).

    Deciles that coincide, as in a column that is mostly 0, are one cut.
    """
    if not both.is_plain or not both.names:
        return partial.total_variation(both, BINS)
    before, after = both.sorted
    n = before.shape[1]
    found = np.empty(len(before))
    for j, (x, y) in enumerate(zip(before, after, strict=True)):
        cuts = np.unique(x[np.arange(1, BINS) * n // BINS])
        ends = np.searchsorted(x, cuts), np.searchsorted(y, cuts)
        counts = [np.diff(end, prepend=0, append=n) for end in ends]
        found[j] = np.abs(counts[0] - counts[1]).sum() / (2 * n)
    return found
