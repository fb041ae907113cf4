"""Numbers and whole numbers: one coordinate, the value over its spread; released is the group's mean.

For the distance alone a number may be transformed: by its logarithm, which makes ratios count instead of
differences, or by its rank. What is released is never transformed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.aggregate import group_aggregates
from microagg.encode.inertia import Corners, Encoder, by_present, present_means
from microagg.encode.scale import Scaling, fit_scale
from microagg.tables.variable import Variable

__all__ = ["Line", "Transform", "encoder", "fit_transform", "release"]


@dataclass(frozen=True, eq=False)
class Line:
    """One coordinate: the value, transformed for the distance, over its spread."""

    transform: Transform
    scaling: Scaling

    def apply(self, values: Floats) -> Floats:
        """Return the coordinates of values; missing ones are 0."""
        there = ~np.isnan(values)
        found = np.zeros((len(values), 1))
        if there.any():
            found[there] = self.scaling.apply(self.transform.apply(values[there]).reshape(-1, 1))
        return found


def encoder(variable: Variable, scale: str, weights: Floats | None = None) -> Encoder:
    """Fit the transform and the spread to the present values."""
    there = ~variable.missing
    if not there.any():
        return Corners(np.zeros((1, 1)))
    values = variable.values[there]
    transform = fit_transform(values, variable.setting.transform)
    column = transform.apply(values).reshape(-1, 1)
    scaling = (
        fit_scale(column, scale) if weights is None else fit_scale(column, scale, weights[there])
    )
    return Line(transform, scaling)


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


def release(
    variable: Variable, labels: Labels, g: int, how: str = "mean", weights: Floats | None = None
) -> Floats:
    """Aggregate the present values of each group, shape (g,); NaN for a group without any."""
    if how == "mean":
        return present_means(variable.values, labels, g, weights)
    return by_present(
        variable.values, labels, g, lambda values, groups, _: group_aggregates(values, groups, how)
    )
