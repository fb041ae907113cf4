"""Bring the columns to a common scale, so that no unit of measurement decides the groups.

Microaggregation is invariant to a shift, so every scale also centres. The shift is
made first and by a value of the column itself: the differences are then the same
doubles whether or not the data carry an offset (data + 1e9 gives the same groups),
and a power of two brings the values to about 1, which is exact and keeps squares
of huge or tiny values from overflowing or vanishing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats
from microagg.compile.threads import share_with_helpers
from microagg.errors import InputError
from microagg.plan.checks import check_word
from microagg.plan.settings import SCALES

# Beyond this a sum of squared differences may overflow.
_LARGEST_RANGE = 1e140
_FEW = 1 << 16  # values that are looked at at a time
ROUNDING = 1e-12  # of a sum of weights, at most
# The interquartile range of a normal distribution with standard deviation 1.
_NORMAL_IQR = 1.3489795003921634


@dataclass(frozen=True)
class Scaling:
    """A scale fitted to data, to be applied to them and to their protected values."""

    low: Floats
    exponent: NDArray[np.intc]
    centre: Floats
    spread: Floats  # infinite for constant columns, which so become 0

    def apply(self, X: Floats) -> Floats:
        """Return the scaled data as a new C-contiguous matrix."""
        Y = np.empty(X.shape)
        low = np.ldexp(self.low, -self.exponent)

        def work(rows: slice) -> None:
            np.ldexp(X[rows], -self.exponent, out=Y[rows])
            Y[rows] -= low
            Y[rows] -= self.centre
            Y[rows] /= self.spread

        _by_rows(work, len(X))
        return Y


def _by_rows(work: Callable[[slice], object], n: int) -> None:
    """Call ``work`` for pieces of n rows, in threads where there are many."""
    share_with_helpers(lambda begin, end, _: work(slice(begin, end)), n, at_once=_FEW)


def fit_scale(X: Floats, how: str = "zscore", weights: Floats | None = None) -> Scaling:
    """Find the centre and the spread of each column.

    Parameters
    ----------
    X : float64 array of shape (n, d), finite
    how : {"zscore", "range", "robust", "none"}
        The spread: the standard deviation (denominator n−1), the range max − min, the
        interquartile range / 1.349 (which equals the standard deviation for normal
        data; a column whose quartiles coincide uses its standard deviation), or 1.
    weights : float64 array of shape (n,) with mean 1, optional
        Mean, standard deviation and quartiles are then weighted, the deviation such that the sum of
        weighted squares of z-scores is n − 1, as it is without weights.

    >>> X = np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]])
    >>> fit_scale(X).apply(X).tolist()
    [[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
    """
    ends: list[Floats] = []
    _by_rows(lambda rows: ends.extend((X[rows].min(axis=0), X[rows].max(axis=0))), len(X))
    low, high = np.min(ends, axis=0), np.max(ends, axis=0)
    exponent = _exponents(how, low, high)
    Y = Scaling(low, exponent, np.zeros(X.shape[1]), np.ones(X.shape[1])).apply(X)
    # A sum of all rows in their order: in pieces it would have other last digits.
    centre = Y.mean(axis=0) if weights is None else _weighted_mean(Y, weights)
    _by_rows(lambda rows: np.subtract(Y[rows], centre, out=Y[rows]), len(Y))
    spread = np.ones(X.shape[1]) if how == "none" else _spread(Y, how, weights)
    spread[low == high] = np.inf
    return Scaling(low, exponent, centre, spread)


def scaling_of(
    how: str,
    low: float,
    high: float,
    mean: float,
    deviation: float,
    quartiles: tuple[float, float] | None = None,
) -> Scaling:
    """Make the scale of one column from its statistics, if its values are not in memory.

    >>> scaling_of("zscore", 1.0, 3.0, 2.0, 1.0).apply(np.array([[1.0], [3.0]])).tolist()
    [[-1.0], [1.0]]
    """
    exponent = _exponents(how, np.array([low]), np.array([high]))
    spread = {"zscore": deviation, "range": high - low, "none": 1.0, "robust": deviation}[how]
    if quartiles is not None and quartiles[1] > quartiles[0]:
        spread = (quartiles[1] - quartiles[0]) / _NORMAL_IQR
    spread = float(np.ldexp(spread, -int(exponent[0]))) if low < high else np.inf
    centre = np.ldexp(np.array([mean]), -exponent) - np.ldexp(np.array([low]), -exponent)
    return Scaling(np.array([low]), exponent, centre, np.array([spread]))


def _exponents(how: str, low: Floats, high: Floats) -> NDArray[np.intc]:
    """Find the powers of two that bring columns to about 1; refuse what cannot be left as it is."""
    check_word("scale", how, SCALES)
    if how != "none":
        return np.frexp(np.maximum(np.abs(low), np.abs(high)))[1]
    if np.any(high / 2 - low / 2 > _LARGEST_RANGE / 2):  # the range itself may overflow
        raise InputError(
            f"scale='none' needs columns with a range of at most {_LARGEST_RANGE:g}, since "
            "squared distances overflow beyond; use scale='zscore' or divide the column."
        )
    return np.zeros(len(low), dtype=np.intc)


def total_squares(X: Floats, how: str = "zscore", weights: Floats | None = None) -> float:
    """Return the sum of squared distances of the scaled records to their mean (SST).

    ``X``, ``how`` and ``weights`` are as for :func:`fit_scale`. Z-scores need not be computed: they have
    n − 1 in each column that is not constant, with weights too.

    >>> total_squares(np.array([[1.0, 7.0], [2.0, 7.0], [3.0, 7.0]]))
    2.0
    """
    if how == "zscore":
        return float(sum(bool((column != column[0]).any()) for column in X.T) * (len(X) - 1))
    Y = fit_scale(X, how, weights).apply(X)
    if weights is None:
        return float(np.square(Y - Y.mean(axis=0)).sum())
    squares = np.square(Y - _weighted_mean(Y, weights))
    return float(np.einsum("i,ij->", weights, squares))


def _weighted_mean(Y: Floats, weights: Floats) -> Floats:
    """Return the mean of each column, computed around its first value so that an offset costs no digits."""
    mean: Floats = Y[0] + np.einsum("i,ij->j", weights, Y - Y[0]) / weights.sum()
    return mean


def _spread(Y: Floats, how: str, weights: Floats | None) -> Floats:
    """Return the spread of each centred column."""
    if how == "range":
        return np.asarray(np.ptp(Y, axis=0))
    weighted = Y if weights is None else weights[:, None] * Y
    deviation = np.sqrt(np.einsum("ij,ij->j", weighted, Y) / max(len(Y) - 1, 1))
    if how == "zscore":
        return np.asarray(deviation)
    shares = np.array([0.25, 0.75])
    if weights is None:
        quartiles = np.quantile(Y, shares, axis=0)
    else:  # the first value of each column at which the weights reach a share, but for rounding
        quartiles = np.empty((2, Y.shape[1]))
        for j, column in enumerate(Y.T):
            order = np.argsort(column, kind="stable")
            reached = np.cumsum(weights[order])
            at = np.searchsorted(reached, shares * reached[-1] * (1 - ROUNDING))
            quartiles[:, j] = column[order[at]]
    between = (quartiles[1] - quartiles[0]) / _NORMAL_IQR
    return np.asarray(np.where(between > 0, between, deviation))
