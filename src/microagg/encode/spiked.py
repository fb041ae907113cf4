"""Spiked numbers: many records have one value, such as no income of some sort; the others are spread out.

Two coordinates split the number without loss: whether it is off the spike, at the distance of the mean of
those off it; and how far it is from that mean, 0 at the spike. Their inertia together is that of the
number itself. Unlike the number they keep a small amount apart from none at all, so that groups are
rarely mixed and a released mean is rarely an amount that nobody has.

Released is the mean, which keeps totals. With ``release = "spike"`` a group of both sorts releases
whichever is nearer to its centroid: the spike, or the mean of those off it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode import number
from microagg.encode.inertia import Encoder, present_means
from microagg.encode.number import NumberFigures, Transform, spike_of
from microagg.errors import InputError, shown
from microagg.tables.variable import Variable

_WIDEST = 1e308  # beyond, differences of doubles are infinite


@dataclass(frozen=True, eq=False)
class SpikedEncoder:
    """Two coordinates: off the spike or not, and how far from the mean of those off it."""

    spike: float
    transform: Transform
    mean: float
    step: float
    """Distance of the spike from the mean of the others, once transformed."""
    centre: Floats  # (2,)
    scale: float

    def raw(self, values: Floats) -> Floats:
        """Return coordinates before they are centred and scaled."""
        off = ~np.isnan(values) & (values != self.spike)
        C = np.zeros((len(values), 2))
        C[off, 0] = self.step
        C[off, 1] = self.transform.apply(values[off]) - self.mean
        return C

    def apply(self, values: Floats) -> Floats:
        """Return the coordinates of values; missing ones are 0."""
        coordinates = (self.raw(values) - self.centre) * self.scale
        coordinates[np.isnan(values)] = 0.0
        return coordinates


def encoder(variable: Variable, figures: NumberFigures) -> Encoder:
    """Fit the two coordinates to an inertia of m − 1, m the values that are there.

    >>> from microagg.encode.number import figures_of
    >>> spiked = Variable("x", "spiked", np.array([0.0, 0.0, 2.0, 4.0]))
    >>> encoder(spiked, figures_of(spiked)).apply(spiked.values).round(2).tolist()
    [[-0.78, 0.0], [-0.78, 0.0], [0.78, -0.52], [0.78, 0.52]]
    """
    every, off, spike = figures.every, figures.off_spike, spike_of(variable.setting)
    if every is None or off is None or off.count == every.count:
        return number.encoder(figures)
    if max(off.high, spike) / 2 - min(off.low, spike) / 2 > _WIDEST / 2:
        raise InputError(
            f"A spiked column spans at most {_WIDEST:.0e}; {shown(variable.name)} spans more. Give it the "
            "kind number, or divide its values by a constant."
        )
    share, step, transform = off.weight / every.weight, off.mean - spike, Transform(None)
    if figures.transform is not None and figures.transformed is not None:
        off, transform = figures.transformed, figures.transform
        # The spike has no logarithm or rank among the others: it is half their range below them.
        step = off.mean - off.low + max(off.high - off.low, 1.0) / 2
    # The squares of both sorts about the mean of all, and of those off the spike about their own mean.
    between = abs(step) * math.sqrt(every.weight * share * (1 - share))
    length = math.hypot(between, off.length)
    scale = math.sqrt(every.count - 1) / length if length > 0 else 0.0
    # Values that differ by less than a double can be divided by count as equal.
    scale = scale if math.isfinite(scale) else 0.0
    return SpikedEncoder(spike, transform, off.mean, step, np.array([step * share, 0.0]), scale)


def release(variable: Variable, labels: Labels, g: int, weights: Floats | None = None) -> Floats:
    """Return the mean of each group or, with ``release = "spike"``, the nearer of spike and mean off it."""
    means = present_means(variable.values, labels, g, weights)
    if variable.setting.release != "spike":
        return means
    spike = spike_of(variable.setting)
    off = np.where(variable.missing, np.nan, (variable.values != spike).astype(np.float64))
    outside = np.where(off == 1.0, variable.values, np.nan)
    share_off = present_means(off, labels, g, weights)
    mean_off = present_means(outside, labels, g, weights)
    return np.where(np.isnan(means), np.nan, np.where(share_off > 0.5, mean_off, spike))
