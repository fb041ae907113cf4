"""What the encoder of a column of numbers is fitted to: a few figures of its values.

They come from values in memory, by :func:`figures_of`, or from the merged statistics of batches, by
:meth:`microagg.encode.batch_statistics.ColumnStatistics.figures`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from microagg.base.typing import Floats
from microagg.encode.scale import Scaling, fit_scale
from microagg.encode.transform import Transform, fit_transform
from microagg.plan.column import Column
from microagg.tables.variable import Variable


@dataclass(frozen=True, eq=False)
class Spread:
    """NumberFigures of numbers, none of them missing."""

    count: int
    weight: float
    """Sum of the weights, which have a mean of 1 over the table."""
    low: float
    high: float
    scaling: Scaling

    @property
    def mean(self) -> float:
        """Weighted mean."""
        return self.low + math.ldexp(float(self.scaling.centre[0]), int(self.scaling.exponent[0]))

    @property
    def length(self) -> float:
        """Root of the weighted sum of squares about the mean, if the scale is that of z-scores."""
        if self.low == self.high:
            return 0.0
        deviation = math.ldexp(float(self.scaling.spread[0]), int(self.scaling.exponent[0]))
        return deviation * math.sqrt(self.count - 1)


class NumberFigures(NamedTuple):
    """NumberFigures of a column of numbers."""

    every: Spread | None
    """Of all values that are there; None: there is none."""
    off_spike: Spread | None = None
    """Of spiked numbers: those off the spike; None: there is none."""
    transform: Transform | None = None
    """For the distance."""
    transformed: Spread | None = None
    """Of the same numbers transformed, of spiked ones those off the spike."""


class Weighed(NamedTuple):
    """Numbers, none of them missing, with their weights."""

    values: Floats
    weights: Floats | None


def spike_of(setting: Column) -> float:
    """Return the value of the spike: that of the plan, or 0."""
    return 0.0 if setting.spike is None else float(setting.spike)


def present(variable: Variable, weights: Floats | None) -> tuple[Weighed, Weighed]:
    """Return the values of a column that are there, and those that count for the distance.

    These are all, of spiked numbers those off the spike.
    """
    there = ~variable.missing
    values, mass = variable.values[there], None if weights is None else weights[there]
    every = Weighed(values, mass)
    if variable.kind != "spiked":
        return every, every
    off = values != spike_of(variable.setting)
    return every, Weighed(values[off], None if mass is None else mass[off])


def figures_of(
    variable: Variable, scale: str = "zscore", weights: Floats | None = None
) -> NumberFigures:
    """Return the figures of a column in memory; ``weights`` have a mean of 1.

    >>> import numpy as np
    >>> found = figures_of(Variable("x", "number", np.array([1.0, np.nan, 3.0])))
    >>> found.every.count, found.every.mean, round(found.every.length, 3)
    (2, 2.0, 1.414)
    """
    every, used = present(variable, weights)
    off = _spread(used, scale) if used is not every else None
    how = variable.setting.transform
    if how is None or not len(used.values):
        return NumberFigures(_spread(every, scale), off)
    transform = fit_transform(used.values, how)
    transformed = _spread(used._replace(values=transform.apply(used.values)), scale)
    return NumberFigures(_spread(every, scale), off, transform, transformed)


def _spread(given: Weighed, scale: str) -> Spread | None:
    values, weights = given
    if not len(values):
        return None
    weight = float(len(values) if weights is None else weights.sum())
    scaling = fit_scale(values.reshape(-1, 1), scale, weights)
    return Spread(len(values), weight, float(scaling.low[0]), float(values.max()), scaling)
