"""Numbers and whole numbers: one coordinate, the value over its spread; released is the group's mean.

For the distance alone a number may be transformed: by its logarithm, which makes ratios count instead of
differences, or by its rank. What is released is never transformed.

Whole numbers are released as means or rounded. ``nearest`` rounds each group's mean by itself. ``totals``
rounds some means up and some down, so that the total of the column, weighted if there are weights, is kept to
the unit: groups are rounded one after the other, each to the side that makes up for the error so far. The
rest of the error is removed by changing one or two groups by one more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.encode.inertia import Corners, Encoder, by_present, present_means
from microagg.encode.number_figures import NumberFigures
from microagg.encode.scale import Scaling
from microagg.encode.transform import Transform
from microagg.kernels.labels import group_means
from microagg.plan.settings import check_aggregate
from microagg.tables.variable import Variable

_HALF = 0.5
_DIGITS = 9  # by which groups are told apart
_TRIED = 2_000  # groups that are tried in pairs


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
            coordinates[there] = self.scaling.apply(
                self.transform.apply(values[there]).reshape(-1, 1)
            )
        return coordinates


def encoder(found: NumberFigures) -> Encoder:
    """Fit the coordinate to the figures of a column."""
    used = found.transformed or found.every
    if used is None:
        return Corners(np.zeros((1, 1)))
    return NumberEncoder(found.transform or Transform(None), used.scaling)


def release(
    variable: Variable, labels: Labels, g: int, how: str = "mean", weights: Floats | None = None
) -> Floats:
    """Aggregate the present values of each group, shape (g,); NaN for a group without any."""
    if how == "mean":
        return present_means(variable.values, labels, g, weights)
    return by_present(
        variable.values, labels, g, lambda values, groups, _: group_aggregates(values, groups, how)
    )


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


def nearest(means: Floats) -> Floats:
    """Round each mean to the nearest whole number; NaN stays, and −0 becomes 0."""
    return np.rint(means) + 0.0


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
    released = nearest(means)
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
        if abs(error) > _HALF:
            up = (released[light] < means[light]) | (beyond & (released[light] < most))
            down = (released[light] > means[light]) | (beyond & (released[light] > least))
            error, steps = _correction(mass[light], error, up, down)
            for place, step in steps:
                released[light[place]] += step
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
            for place in (near - 1, near):
                other = order[place]
                remaining = error + first * mass[ones] + second * mass[other]
                remaining = np.where(other == ones, np.inf, remaining)
                at = int(np.argmin(np.abs(remaining)))
                if abs(remaining[at]) < abs(best) * (1 - 1e-9):
                    best = float(remaining[at])
                    steps = [(int(ones[at]), first), (int(other[at]), second)]
    return best, steps
