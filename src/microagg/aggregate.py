"""The value that a group releases in place of its records' values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microagg.errors import InputError, listed, shown
from microagg.groups import Floats, Labels, group_means

__all__ = ["AGGREGATES", "aggregate", "check_aggregate"]


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


AGGREGATES: dict[str, Callable[[Floats, Labels], Floats]] = {
    "mean": group_means,
    "median": group_medians,
    "midrange": group_midranges,
    "maximum": group_maxima,
    "minimum": group_minima,
}

# What a group releases when its cost is measured so (Stamm & Schaub 2024, Corollary 7).
AGGREGATE_OF_COST = {
    "sse": "mean",
    "sae": "median",
    "max": "midrange",
    "round-up": "maximum",
    "round-down": "minimum",
}


def check_aggregate(how: str) -> None:
    """Refuse an aggregate that does not exist."""
    if not isinstance(how, str) or how not in AGGREGATES:
        raise InputError(
            f"aggregate={shown(how)} is not known; choose one of {listed(AGGREGATES)}."
        )


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
    return AGGREGATES[how](column, labels)[labels]
