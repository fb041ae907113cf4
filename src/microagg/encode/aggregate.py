"""The number that a group releases in place of its records' numbers."""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import group_means
from microagg.plan.settings import check_aggregate

__all__ = ["group_aggregates"]


def group_aggregates(column: Floats, labels: Labels, how: str = "mean") -> Floats:
    """Return the aggregate of each group, shape (g,). O(n) for the mean, O(n log n) for the others.

    Parameters
    ----------
    column : float64 array of shape (n,)
    labels : int64 array of shape (n,), groups 0..g-1
    how : {"mean", "median", "midrange", "maximum", "minimum"}
        The median of an even number of values is the midpoint of the middle two.

    >>> group_aggregates(np.array([5.0, 1.0, 2.0, 8.0]), np.array([0, 0, 0, 1]), "median").tolist()
    [2.0, 8.0]
    """
    check_aggregate(how)
    if how == "mean":
        return group_means(column, labels)
    ordered, sizes = column[np.lexsort((column, labels))], np.bincount(labels)
    first = np.cumsum(sizes) - sizes
    last = first + sizes - 1
    low, high = {
        "median": (first + (sizes - 1) // 2, first + sizes // 2),
        "midrange": (first, last),
        "maximum": (last, last),
        "minimum": (first, first),
    }[how]
    low, high = ordered[low], ordered[high]
    # Halves before the sum: the sum of two large values could overflow.
    return np.asarray(np.where(low == high, low, low / 2 + high / 2))
