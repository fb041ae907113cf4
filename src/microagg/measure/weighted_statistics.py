"""Statistics of numbers where values are missing or records have weights.

Every figure is over the records where the value is there before and after, a covariance over those where
both columns are. With weights w a mean is Σwx/Σw and a variance m/(m−1)·Σw(x−x̄)²/Σw for m records, so
that equal weights are no weights. Values are z-scores of the original, see :attr:`Pair.scaled`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats
from microagg.measure.both_tables import Pair

__all__ = [
    "absolute_moves",
    "decile_cuts",
    "moments",
    "pairwise",
    "quantiles",
    "total_variation",
    "weighted_quantiles",
]

# A variance below this share of the mean square is rounding.
_ROUNDING = 1e-13


def moments(both: Pair) -> tuple[Floats, Floats, Floats]:
    """Moves of the means in z-scores, ones, and the ratios of the variances; shape (d,) each."""
    shift, ratio = np.zeros(len(both.names)), np.ones(len(both.names))
    for j in range(len(both.names)):
        x, y, w = _column(both, j)
        if len(x) > 1:
            before, after = (float(np.average(values, weights=w)) for values in (x, y))
            shift[j] = after - before
            spread = np.average(np.square(x - before), weights=w)
            changed = np.average(np.square(y - after), weights=w)
            ratio[j] = changed / spread if spread > 0 else 1.0
    return shift, np.ones(len(both.names)), ratio


def absolute_moves(both: Pair) -> Floats:
    """Mean of |x−x'|/s of each column."""
    found = np.zeros(len(both.names))
    for j in range(len(both.names)):
        x, y, w = _column(both, j)
        found[j] = np.average(np.abs(x - y), weights=w) if len(x) else 0.0
    return found


def quantiles(both: Pair, wanted: Floats) -> Floats:
    """|q'−q|/s of each column and each of the quantiles; shape (d, q)."""
    found = np.zeros((len(both.names), len(wanted)))
    for j in range(len(both.names)):
        x, y, w = _column(both, j)
        if len(x):
            found[j] = np.abs(weighted_quantiles(y, w, wanted) - weighted_quantiles(x, w, wanted))
    return found


def weighted_quantiles(values: Floats, w: Floats, wanted: Floats) -> Floats:
    """Quantiles between records whose places are the middles of their weights, from 0 to 1.

    With equal weights that is the usual linear interpolation.

    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.ones(3), np.array([0.25, 1.0])).tolist()
    [1.5, 3.0]
    """
    order = np.lexsort((w, values))
    ordered, mass = values[order], w[order]
    place = np.cumsum(mass) - mass / 2
    place -= place[0]
    return np.interp(wanted, place / place[-1] if place[-1] > 0 else place, ordered)


def total_variation(both: Pair, bins: int) -> Floats:
    """½·Σ|p'−p| over bins of each column, cut at quantiles of the original; shape (d,)."""
    found = np.zeros(len(both.names))
    for j in range(len(both.names)):
        x, y, w = _column(both, j)
        if len(x):
            cuts = decile_cuts(x, w, bins)
            shares = [
                np.bincount(np.searchsorted(cuts, v, "right"), w, len(cuts) + 1) for v in (x, y)
            ]
            found[j] = np.abs(shares[0] - shares[1]).sum() / (2 * w.sum())
    return found


def decile_cuts(x: Floats, w: Floats, bins: int) -> Floats:
    """Values at which a column is cut into bins of about equal weight.

    >>> decile_cuts(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4), 2).tolist()
    [3.0]
    """
    order = np.argsort(x, kind="stable")
    upto = np.cumsum(w[order])
    # Sums of weights that should be the same may differ by rounding.
    wanted = np.arange(1, bins) * upto[-1] / bins * (1 + 1e-12)
    place = np.searchsorted(upto, wanted, "right")
    return np.unique(x[order][np.minimum(place, len(x) - 1)])


def pairwise(
    x: Floats, there: NDArray[np.bool_], w: Floats, own: slice, others: slice
) -> tuple[Floats, Floats]:
    """Covariances and correlations of some columns with others, each over the records that have both.

    Parameters
    ----------
    x : (n, d) values
    there : (n, d) which of them count
    w : (n,) weights
    own, others : which columns
    """
    M = there.astype(np.float64)
    A = np.where(there, x, 0.0)
    wM, wA = M[:, own] * w[:, None], A[:, own] * w[:, None]
    mass, count = wM.T @ M[:, others], M[:, own].T @ M[:, others]
    with np.errstate(divide="ignore", invalid="ignore"):
        down = wA.T @ M[:, others] / mass  # mean of the own column where the other one is there too
        across = wM.T @ A[:, others] / mass
        squares_down = (wA * A[:, own]).T @ M[:, others] / mass
        squares_across = wM.T @ np.square(A[:, others]) / mass
        covariance = wA.T @ A[:, others] / mass - down * across
        spread_down, spread_across = squares_down - down**2, squares_across - across**2
        free = count / np.maximum(count - 1, 1)
        r = covariance / np.sqrt(spread_down * spread_across)
    # Values are in standard deviations: what varies by less than rounding does not vary.
    varies = (spread_down > _ROUNDING * np.maximum(squares_down, 1.0)) & (
        spread_across > _ROUNDING * np.maximum(squares_across, 1.0)
    )
    covariance = np.where(mass > 0, covariance * free, 0.0)
    return covariance, np.clip(np.where(varies & (mass > 0), r, 0.0), -1.0, 1.0)


def _column(both: Pair, j: int) -> tuple[Floats, Floats, Floats]:
    """Scaled values where both are there, before and after, and their weights."""
    there = both.both_there[:, j]
    before, after = both.scaled
    w = np.ones(int(there.sum())) if both.weights is None else both.weights[there]
    return before[there, j], after[there, j], w
