"""A transform of numbers for the distance alone: by logarithms ratios count, by ranks the order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microagg.base.typing import Floats


@dataclass(frozen=True, eq=False)
class Transform:
    """A transform of numbers, for the distance alone."""

    how: str | None
    unit: float = 1.0
    """Of logarithms where some values are not positive; 0 where all are."""
    ordered: Floats | None = None
    """Of ranks: the original values, ascending."""

    def apply(self, values: Floats) -> Floats:
        """Transform numbers, none of them missing."""
        if self.how is None:
            return values
        if self.ordered is not None:
            low = np.searchsorted(self.ordered, values)
            return np.asarray((low + np.searchsorted(self.ordered, values, "right")) / 2)
        if not self.unit:
            return np.log(values)
        return np.asarray(np.sign(values) * np.log1p(np.abs(values) / self.unit))


def fit_transform(values: Floats, how: str | None) -> Transform:
    """Fit a transform to numbers, none of them missing.

    "log" is the logarithm where all values are positive; else sign(x)·log(1 + |x|/m) with m the median of
    all |x| > 0, which is as indifferent to the unit. "rank" is the mean rank of equal values.

    >>> fit_transform(np.array([1.0, 10.0]), "log").apply(np.array([1.0])).tolist()
    [0.0]
    >>> fit_transform(np.array([7.0, 7.0, 9.0]), "rank").apply(np.array([7.0, 9.0])).tolist()
    [1.0, 2.5]
    """
    if how == "rank":
        return Transform(how, ordered=np.sort(values))
    if how is None or (values > 0).all():
        return Transform(how, unit=0.0)
    size = np.abs(values)
    return Transform(how, unit=float(np.median(size[size > 0])) if size.any() else 1.0)
