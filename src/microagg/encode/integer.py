"""Whole numbers: grouped as numbers are, released as means or rounded.

``nearest`` rounds each group's mean by itself. ``totals`` rounds some means up and some down, so that the
total of the column, weighted where there are weights, stays what it was to the unit: groups are rounded one
after the other, each to the side that makes up for the error so far. The rest of the error is removed by
changing one or two groups by one more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats

__all__ = ["nearest", "totals"]

_HALF = 0.5
_TRIED = 2_000  # groups that are tried in pairs


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
    found = nearest(means)
    # The heaviest first, so that light groups can make up for the rest.
    order = there[np.lexsort((there, -mass[there]))]
    error = 0.0
    for at in order:
        low = np.floor(means[at])
        up = error + mass[at] * (low + 1 - means[at])
        down = error + mass[at] * (low - means[at])
        if low == means[at] or abs(down) <= abs(up):
            found[at], error = low, down
        else:
            found[at], error = low + 1, up
    # Round one or two light groups to the other side to remove the rest of the error; if that is not
    # enough, change them by one more.
    light = order[::-1][:_TRIED]
    for beyond in (False, True):
        if abs(error) > _HALF:
            up = beyond | (found[light] <= means[light])
            down = beyond | (found[light] >= means[light])
            error, steps = _correction(mass[light], error, up, down)
            for place, step in steps:
                found[light[place]] += step
    return found + 0.0


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
