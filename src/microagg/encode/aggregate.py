"""The value that a group releases in place of its records' values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import group_means
from microagg.plan.settings import check_aggregate

__all__ = ["aggregate"]


def group_medians(column: Floats, labels: Labels) -> Floats:
    """Median of one column in each group; of an even number, the midpoint of the middle two.

    >>> group_medians(np.array([5.0, 1.0, 2.0, 8.0]), np.array([0, 0, 0, 1])).tolist()
    [2.0, 8.0]
    """
    sizes = np.bincount(labels)
    ordered = column[np.lexsort((column, labels))]
    start = np.cumsum(sizes) - sizes
    low = ordered[start + (sizes - 1) // 2]
    high = ordered[start + sizes // 2]
    # Halves before the sum: the sum of two large values could overflow.
    return np.asarray(np.where(low == high, low, low / 2 + high / 2))


def _sorted_ends(column: Floats, labels: Labels) -> tuple[Floats, Floats]:
    """Smallest and largest value of each group."""
    sizes = np.bincount(labels)
    ordered = column[np.lexsort((column, labels))]
    ends = np.cumsum(sizes)
    return ordered[ends - sizes], ordered[ends - 1]


def group_midranges(column: Floats, labels: Labels) -> Floats:
    """Middle between the smallest and the largest value of each group."""
    low, high = _sorted_ends(column, labels)
    return np.asarray(np.where(low == high, low, low / 2 + high / 2))


def group_maxima(column: Floats, labels: Labels) -> Floats:
    """Largest value of each group."""
    return _sorted_ends(column, labels)[1]


def group_minima(column: Floats, labels: Labels) -> Floats:
    """Smallest value of each group."""
    return _sorted_ends(column, labels)[0]


_FUNCTIONS: dict[str, Callable[[Floats, Labels], Floats]] = {
    "mean": group_means,
    "median": group_medians,
    "midrange": group_midranges,
    "maximum": group_maxima,
    "minimum": group_minima,
}


def aggregate(column: Floats, labels: Labels, how: str = "mean") -> Floats:
    """Replace each value of a column by the aggregate of its group.

    Parameters
    ----------
    column : float64 array of shape (n,)
    labels : int64 array of shape (n,), groups 0..g-1
    how : {"mean", "median", "midrange", "maximum", "minimum"}

    Returns
    -------
    float64 array of shape (n,); equal within each group. O(n) for the mean,
    O(n log n) for the others.

    >>> aggregate(np.array([1.0, 2.0, 6.0, 8.0]), np.array([0, 0, 0, 1])).tolist()
    [3.0, 3.0, 3.0, 8.0]
    """
    check_aggregate(how)
    return _FUNCTIONS[how](column, labels)[labels]
