"""Numbers and whole numbers: one coordinate, the value over its spread; released is the group's mean.

For the distance alone a number may be transformed: by its logarithm, which makes ratios count instead of
differences, or by its rank. What is released is never transformed. The encoder is fitted to a few figures of
the values. They come from values in memory, by :func:`figures_of`, or from the merged statistics of batches,
by :meth:`microagg.encode.batch_statistics.ColumnStatistics.figures`.

Whole numbers are released as means or rounded. ``nearest`` rounds each group's mean by itself. ``totals``
rounds some means up and some down, so that the total of the column, weighted if there are weights, is kept to
the unit: groups are rounded one after the other, each to the side that makes up for the error so far. The
rest of the error is removed by changing one or two groups by one more.

Spiked numbers: many records have one value, such as no income of some sort; the others are spread out.
Two coordinates split the number without loss: whether it is off the spike, at the distance of the mean of
those off it; and how far it is from that mean, 0 at the spike. Their inertia together is that of the
number itself. Unlike the number they keep a small amount apart from none at all, so that groups are
rarely mixed and a released mean is rarely an amount that nobody has. Released is the mean, which keeps
totals. With ``release = "spike"`` a group of both sorts releases whichever is nearer to its centroid: the
spike, or the mean of those off it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.encode.inertia import Corners, Encoder, present_means
from microagg.encode.scale import Scaling, fit_scale
from microagg.errors import InputError, shown
from microagg.kernels.labels import group_means
from microagg.plan.checks import check_word
from microagg.plan.column import Column
from microagg.plan.settings import AGGREGATES
from microagg.tables.variable import Variable

_DIGITS = 9  # by which groups are told apart where totals are kept
_TRIED = 2_000  # groups that are tried in pairs there
_WIDEST = 1e308  # beyond, differences of doubles are infinite


@dataclass(frozen=True, eq=False)
class Transform:
    """A transform of numbers, for the distance alone.

    "log" is the logarithm where all values are positive; else sign(x)·log(1 + |x|/m) with m the median of
    all |x| > 0, which is as indifferent to the unit. "rank" is the mean rank of equal values.

    >>> Transform("rank", ordered=np.array([7.0, 7.0, 9.0])).apply(np.array([7.0, 9.0])).tolist()
    [1.0, 2.5]
    """

    how: str | None
    unit: float = 1.0  # Of logarithms where some values are not positive; 0 where all are
    ordered: Floats | None = None  # Of ranks: the original values, ascending

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


@dataclass(frozen=True, eq=False)
class Spread:
    """Figures of numbers, none of them missing."""

    count: int
    weight: float  # Sum of the weights, which have a mean of 1 over the table
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
    """Figures of a column of numbers, by which it is encoded."""

    every: Spread | None  # of all values that are there; None: there is none
    off_spike: Spread | None = None  # of spiked numbers: those off the spike
    transform: Transform | None = None  # for the distance
    transformed: Spread | None = None  # the same numbers transformed, without the spike

    @property
    def inertia(self) -> float:
        """Of z-scores: m − 1 of m values; 0 if all are equal."""
        every = self.every
        return 0.0 if every is None or every.low == every.high else every.count - 1.0


class WeightedValues(NamedTuple):
    """Numbers, none of them missing, with their weights."""

    values: Floats
    weights: Floats | None

    def spread(self, scale: str) -> Spread | None:
        """Return their figures; None: there is no number."""
        values, weights = self
        if not len(values):
            return None
        weight = float(len(values) if weights is None else weights.sum())
        scaling = fit_scale(values.reshape(-1, 1), scale, weights)
        return Spread(len(values), weight, float(scaling.low[0]), float(values.max()), scaling)


def spike_of(setting: Column) -> float:
    """Return the value of the spike: that of the plan, or 0."""
    return 0.0 if setting.spike is None else float(setting.spike)


def present(variable: Variable, weights: Floats | None) -> tuple[WeightedValues, WeightedValues]:
    """Return the values of ``variable`` that are there, and those that count for the distance.

    These are all, of spiked numbers those off the spike; each with its ``weights``, (n,), if there are any.
    """
    there = ~variable.missing
    values, mass = variable.values[there], None if weights is None else weights[there]
    every = WeightedValues(values, mass)
    if variable.kind != "spiked":
        return every, every
    off = values != spike_of(variable.setting)
    return every, WeightedValues(values[off], None if mass is None else mass[off])


def figures_of(
    variable: Variable, scale: str = "zscore", weights: Floats | None = None
) -> NumberFigures:
    """Return the figures of a column in memory; ``weights`` have a mean of 1.

    >>> import numpy as np
    >>> figures = figures_of(Variable("x", "number", np.array([1.0, np.nan, 3.0])))
    >>> figures.every.count, figures.every.mean, round(figures.every.length, 3)
    (2, 2.0, 1.414)
    """
    every, used = present(variable, weights)
    figures = NumberFigures(every.spread(scale), None if used is every else used.spread(scale))
    how = variable.setting.transform
    if how is None or not len(used.values):
        return figures
    size = np.abs(used.values)
    if how == "rank":
        transform = Transform(how, ordered=np.sort(used.values))
    elif (used.values > 0).all():
        transform = Transform(how, unit=0.0)
    else:
        transform = Transform(how, unit=float(np.median(size[size > 0])) if size.any() else 1.0)
    transformed = used._replace(values=transform.apply(used.values)).spread(scale)
    return figures._replace(transform=transform, transformed=transformed)


@dataclass(frozen=True, eq=False)
class NumberEncoder:
    """One coordinate: the value, transformed for the distance, over its spread."""

    transform: Transform
    scaling: Scaling

    def apply(self, values: Floats) -> Floats:
        """Return the coordinates of values; missing ones are 0."""
        there = ~np.isnan(values)
        coordinates = np.zeros((len(values), 1))
        if there.any():
            numbers = self.transform.apply(values[there])
            coordinates[there] = self.scaling.apply(numbers.reshape(-1, 1))
        return coordinates


def number_encoder(figures: NumberFigures) -> Encoder:
    """Fit the coordinate to the figures of a column."""
    used = figures.transformed or figures.every
    if used is None:
        return Corners(np.zeros((1, 1)))
    return NumberEncoder(figures.transform or Transform(None), used.scaling)


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
    check_word("aggregate", how, AGGREGATES)
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


def totals(means: Floats, mass: Floats) -> Floats:
    """Round the means of groups so that Σ mass·mean changes by less than half a unit, if that can be.

    Parameters
    ----------
    means : float64 array of shape (g,), NaN for groups without a value
    mass : number of values of each group that are there, or the sum of their weights

    >>> totals(np.array([1.4, 2.5, 3.2]), np.array([5.0, 4.0, 5.0])).tolist()
    [1.0, 2.0, 4.0]
    """
    there = np.flatnonzero(~np.isnan(means) & (mass > 0))
    released = np.rint(means) + 0.0  # −0 becomes 0
    if not len(there):
        return released
    # The heaviest first, so that light groups can make up for the rest; not by the numbers of groups, which
    # differ between engines, nor by last digits, which depend on the order of records.
    weights = np.round(mass[there] / mass[there].max(), _DIGITS)
    order = there[np.lexsort((there, np.round(means[there], _DIGITS), -weights))]
    lower = np.floor(means[order])
    ups, error = [], 0.0
    # Plain floats: one by one, elements of arrays take several times as long.
    for weight, above in zip(mass[order].tolist(), (means[order] - lower).tolist(), strict=True):
        down = error - weight * above
        up = down + weight
        ups.append(above > 0 and abs(up) < abs(down))
        error = up if ups[-1] else down
    released[order] = lower + np.array(ups)
    # Round one or two light groups to the other side to remove the rest of the error; if that is not
    # enough, change them by one more, but to no number below or above all means.
    light = order[::-1][:_TRIED]
    least, most = np.floor(means[there].min()), np.ceil(means[there].max())
    for beyond in (False, True):
        if abs(error) > 0.5:
            up = (released[light] < means[light]) | (beyond & (released[light] < most))
            down = (released[light] > means[light]) | (beyond & (released[light] > least))
            error, steps = _correction(mass[light], error, up, down)
            for index, step in steps:
                released[light[index]] += step
    return released + 0.0


def _correction(
    mass: Floats, error: float, up: NDArray[np.bool_], down: NDArray[np.bool_]
) -> tuple[float, list[tuple[int, float]]]:
    """Find steps of ±1 in at most two groups that remove most of an error."""
    best, steps = error, []
    allowed = ((1.0, np.flatnonzero(up)), (-1.0, np.flatnonzero(down)))
    for first, ones in allowed:
        for at in ones[np.argsort(np.abs(error + first * mass[ones]), kind="stable")[:1]]:
            if abs(error + first * mass[at]) < abs(best) * (1 - 1e-9):
                best, steps = error + first * float(mass[at]), [(int(at), first)]
        for second, others in allowed:
            if len(others) < 2 or not len(ones):
                continue
            # error + first·a + second·b should be 0: look for b nearest to −second·(error + first·a).
            order = others[np.argsort(mass[others], kind="stable")]
            wanted = -second * (error + first * mass[ones])
            near = np.clip(np.searchsorted(mass[order], wanted), 1, len(order) - 1)
            for nearest in (near - 1, near):
                other = order[nearest]
                remaining = error + first * mass[ones] + second * mass[other]
                remaining = np.where(other == ones, np.inf, remaining)
                at = int(np.argmin(np.abs(remaining)))
                if abs(remaining[at]) < abs(best) * (1 - 1e-9):
                    best = float(remaining[at])
                    steps = [(int(ones[at]), first), (int(other[at]), second)]
    return best, steps


@dataclass(frozen=True, eq=False)
class SpikedEncoder:
    """Two coordinates: off the spike or not, and how far from the mean of those off it."""

    spike: float
    transform: Transform
    mean: float
    step: float  # Distance of the spike from the mean of the others, once transformed
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


def spiked_encoder(variable: Variable, figures: NumberFigures) -> Encoder:
    """Fit the two coordinates to an inertia of m − 1, m the values that are there.

    >>> spiked = Variable("x", "spiked", np.array([0.0, 0.0, 2.0, 4.0]))
    >>> spiked_encoder(spiked, figures_of(spiked)).apply(spiked.values).round(2).tolist()
    [[-0.78, 0.0], [-0.78, 0.0], [0.78, -0.52], [0.78, 0.52]]
    """
    every, off, spike = figures.every, figures.off_spike, spike_of(variable.setting)
    if every is None or off is None or off.count == every.count:
        return number_encoder(figures)
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


def release_spiked(
    variable: Variable, labels: Labels, g: int, weights: Floats | None = None
) -> Floats:
    """Return the mean of each group or, with ``release = "spike"``, the nearer of spike and mean off it."""
    values, spike = variable.values, spike_of(variable.setting)
    means = present_means(values, labels, g, weights)
    if variable.setting.release != "spike":
        return means
    off = np.where(variable.missing, np.nan, values != spike)
    share_off = present_means(off, labels, g, weights)
    mean_off = present_means(np.where(off == 1, values, np.nan), labels, g, weights)
    return np.where(np.isnan(means), np.nan, np.where(share_off > 0.5, mean_off, spike))
