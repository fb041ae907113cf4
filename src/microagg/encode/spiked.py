"""Spiked numbers: many records have one value, such as no income of some sort; the others are spread out.

Two coordinates split the number without loss: whether it is off the spike, at the distance of the mean of
those off it; and how far it is from that mean, 0 at the spike. Their inertia together is that of the
number itself. Unlike the number they keep a small amount apart from none at all, so that groups are
rarely mixed and a released mean is rarely an amount that nobody has.

Released is the mean, which keeps totals. With ``release = "spike"`` a group of both sorts releases
whichever is nearer to its centroid: the spike, or the mean of those off it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode import number
from microagg.encode.batch_statistics import ColumnStatistics
from microagg.encode.inertia import Encoder, present_means
from microagg.encode.number import Transform, fit_transform
from microagg.errors import InputError, shown
from microagg.plan.column import Column
from microagg.tables.variable import Variable

_WIDEST = 1e308  # beyond, differences of doubles are infinite


def spike_of(setting: Column) -> float:
    """Return the value of the spike: that of the plan, or 0."""
    return 0.0 if setting.spike is None else float(setting.spike)


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
        found = (self.raw(values) - self.centre) * self.scale
        found[np.isnan(values)] = 0.0
        return found


def encoder(variable: Variable, weights: Floats | None = None) -> Encoder:
    """Fit the two coordinates to an inertia of m − 1, m the values that are there.

    >>> spiked = Variable("x", "spiked", np.array([0.0, 0.0, 2.0, 4.0]))
    >>> encoder(spiked).apply(spiked.values).round(2).tolist()
    [[-0.78, 0.0], [-0.78, 0.0], [0.78, -0.52], [0.78, 0.52]]
    """
    spike, values = spike_of(variable.setting), variable.values
    there = ~variable.missing
    off = there & (values != spike)
    if not off.any() or off[there].all():
        return number.encoder(variable, "zscore", weights)
    if max(values[off].max(), spike) / 2 - min(values[off].min(), spike) / 2 > _WIDEST / 2:
        raise InputError(
            f"A spiked column spans at most {_WIDEST:.0e}; {shown(variable.name)} spans more. Give it the "
            "kind number, or divide its values by a constant."
        )
    transform = fit_transform(values[off], variable.setting.transform)
    outside = transform.apply(values[off])
    mean = float(_average(outside, None if weights is None else weights[off]))
    if variable.setting.transform is None:
        step = mean - spike
    else:
        step = _step_of_transformed(mean, float(outside.min()), float(outside.max()))
    raw = SpikedEncoder(spike, transform, mean, step, np.zeros(2), 1.0)
    C = raw.raw(values)[there]
    w = np.ones(len(C)) if weights is None else weights[there]
    centre = _average(C, w)
    away = C - centre
    exponent = _exponent(away)
    total = float((w * np.square(np.ldexp(away, -exponent)).sum(axis=1)).sum())
    with np.errstate(over="ignore"):
        scale = float(np.ldexp(np.sqrt((len(C) - 1) / total), -exponent)) if total > 0 else 0.0
    # Values that differ by less than a double can be divided by count as equal.
    return replace(raw, centre=centre, scale=scale if np.isfinite(scale) else 0.0)


def from_summary(setting: Column, found: ColumnStatistics, mean_weight: float) -> Encoder:
    """Fit the same to a summary of the column, as :func:`microagg.encode.number.from_summary` does."""
    moments, off = found.moments, found.outside
    if not 0 < off.count < moments.count:
        return number.from_summary(setting, found, "zscore", mean_weight)
    spike, share = spike_of(setting), off.weight / moments.weight
    step = off.mean - spike
    if setting.transform is not None:
        off = found.logarithms
        step = _step_of_transformed(off.mean, off.low, off.high)
    # The squares of weights with a mean of 1 add up to count − 1.
    total = (step**2 * moments.weight * share * (1 - share) + off.squares) / mean_weight
    scale = float(np.sqrt((moments.count - 1) / total)) if total > 0 else 0.0
    transform = Transform(setting.transform, found.log_unit)
    return SpikedEncoder(spike, transform, off.mean, step, np.array([step * share, 0.0]), scale)


def _step_of_transformed(mean: float, low: float, high: float) -> float:
    """Return the distance of the spike from the mean of the others, by their logarithms or ranks.

    The spike has none among the others: it is half their range below them.
    """
    return mean - low + max(high - low, 1.0) / 2


def _exponent(values: Floats) -> int:
    """Return the power of two by which values are divided so that no sum and no square overflows."""
    return int(np.frexp(np.abs(values).max())[1])


def _average(values: Floats, weights: Floats | None) -> Floats:
    """Average over records without overflow."""
    exponent = _exponent(values)
    small = np.average(np.ldexp(values, -exponent), axis=0, weights=weights)
    found: Floats = np.ldexp(small, exponent)
    return found


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
