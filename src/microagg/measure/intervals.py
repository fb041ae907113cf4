"""Interval disclosure: whose true values lie near the protected ones, in every column.

A record counts if in **all** columns its true value lies in a narrow interval around its protected
value: p percent of a standard deviation wide (SDID, Mateo-Sanz, Sebé & Domingo-Ferrer 2004).
A category is given away if it is the same. Where there was no value there is nothing to give away; a value
that was blanked is not given away.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats
from microagg.errors import InputError, shown
from microagg.kernels.labels import standard_deviation
from microagg.measure.both_tables import Pair

PERCENTS = (1.0, 2.0, 5.0, 10.0, 20.0)
# A difference at the very end of the interval lies in it, whatever the rounding.
_ROUNDING = 1e-12


def check_percents(percents: Iterable[float]) -> tuple[float, ...]:
    """Refuse widths that are no positive numbers."""
    widths = tuple(float(p) for p in percents)
    for p in widths:
        if not 0 < p < np.inf:
            raise InputError(f"The width of an interval is a percentage above 0; got {shown(p)}.")
    return widths


def sd_disclosure(both: Pair, percents: Iterable[float] = PERCENTS) -> dict[float, float]:
    """Return the share of records with |x−x'| ≤ p/100·s in all columns, by p; s of the original column.

    Parameters
    ----------
    both : both tables, rows in the same order
    percents : widths p of the interval
    """
    farthest = np.zeros(len(both))  # over the columns of each record, in standard deviations
    for j, category in enumerate(both.is_category):
        there, x, y = both.both_there[:, j], both.original[:, j], both.protected[:, j]
        farthest[~there & ~np.isnan(x)] = np.inf  # blanked
        if category:
            farthest[there & (x != y)] = np.inf
        else:
            farthest[there] = np.maximum(farthest[there], _moves(x, y, there))
    return {p: float(np.mean(farthest <= p / 100 * (1 + _ROUNDING))) for p in percents}


def _moves(x: Floats, y: Floats, there: NDArray[np.bool_]) -> Floats:
    """|x−x'| in standard deviations of the original column, whatever the weights."""
    spread = standard_deviation(x[~np.isnan(x)])
    with np.errstate(divide="ignore", over="ignore"):
        if spread > 0:
            return np.asarray(np.abs(x[there] - y[there]) / spread)
    # A constant original has no unit: it counts as unchanged, as in every measure.
    return np.zeros(int(there.sum()))
