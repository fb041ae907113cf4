"""How far simple statistics of the protected columns are from the original's.

All in units of the original: a column's standard deviation s (denominator n−1), the product of two
of them for a covariance. Constant columns have no unit and deviate by 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microagg.groups import Floats
from microagg.measure.pairs import Pair

__all__ = ["QUANTILES", "Moments", "absolute_moves", "moments", "quantiles", "total_variation"]

# Quantiles that are compared; further out they are single records rather than a distribution.
QUANTILES = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)
BINS = 10


@dataclass(frozen=True)
class Moments:
    """First and second moments of both tables, in z-scores of the original."""

    means: Floats  # (d,) of the protected table; the original's are 0
    before: Floats  # (d, d) covariances, which are the original's correlations
    after: Floats


def moments(both: Pair) -> Moments:
    """Means and covariances of the scaled columns."""
    before, after = both.scaled
    means = after.mean(axis=0)
    centred = after - means
    free = max(len(both) - 1, 1)
    return Moments(means, before.T @ before / free, centred.T @ centred / free)


def correlations(covariances: Floats) -> Floats:
    """Correlations from covariances; 0 with a column that is constant."""
    spread = np.sqrt(np.diag(covariances))
    unit = np.outer(spread, spread)
    found = np.divide(covariances, unit, out=np.zeros_like(covariances), where=unit > 0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def over_pairs(difference: Floats) -> float:
    """Mean of absolute differences over all pairs of two columns; 0 for one column."""
    upper = np.triu_indices(len(difference), 1)
    return float(np.abs(difference[upper]).mean()) if upper[0].size else 0.0


def eigenvalue_deviation(found: Moments) -> float:
    """Σ|λ'−λ|/Σλ over the eigenvalues of both covariance matrices, each in descending order."""
    before, after = np.linalg.eigvalsh(found.before), np.linalg.eigvalsh(found.after)
    total = float(before.sum())
    return float(np.abs(after - before).sum() / total) if total > 0 else 0.0


def absolute_moves(both: Pair) -> Floats:
    """Mean of |x−x'|/s of each column."""
    before, after = both.scaled
    return np.asarray(np.abs(before - after).mean(axis=0))


def quantiles(both: Pair) -> Floats:
    """|q'−q|/s for each column and each of QUANTILES, interpolated linearly; shape (d, 7)."""
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
    before, after = both.sorted
    n = before.shape[1]
    found = np.empty(len(before))
    for j, (x, y) in enumerate(zip(before, after, strict=True)):
        cuts = np.unique(x[np.arange(1, BINS) * n // BINS])
        ends = np.searchsorted(x, cuts), np.searchsorted(y, cuts)
        counts = [np.diff(end, prepend=0, append=n) for end in ends]
        found[j] = np.abs(counts[0] - counts[1]).sum() / (2 * n)
    return found
