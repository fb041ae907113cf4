"""Interval disclosure: whose true values lie near the protected ones, in every column.

A record counts if in **all** columns its true value lies in a narrow interval around its protected
value: p percent of a standard deviation wide (SDID, Mateo-Sanz, Sebé & Domingo-Ferrer 2004)
or p percent of the records in rank. A category is given away if it is the same. Where there was no
value there is nothing to give away; a value that was blanked is not given away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from microagg.base.typing import Floats, Labels
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
    """Share of records with |x−x'| ≤ p/100·s in all columns, for each p; s is the original column's."""
    return _shares(_worst(both, lambda j: _moves(both, j)), percents)


def rank_disclosure(both: Pair, percents: Iterable[float] = PERCENTS) -> dict[float, float]:
    """Share of records that in all columns have at most p % of the records between x and x'.

    Counted are the original values strictly between the two, so that ties do no harm.
    """
    return _shares(_worst(both, lambda j: _between(both, j)), percents)


def _worst(both: Pair, distances: Callable[[int], Floats]) -> Floats:
    """Largest distance of each record over its columns.

    ``distances`` gives those of a column of numbers, for the records where both values are there.
    """
    worst = np.zeros(len(both))
    for j, category in enumerate(both.is_category):
        there = both.both_there[:, j]
        worst[~there & ~np.isnan(both.original[:, j])] = np.inf  # blanked
        if category:
            worst[there & (both.original[:, j] != both.protected[:, j])] = np.inf
        else:
            worst[there] = np.maximum(worst[there], distances(j))
    return worst


def _moves(both: Pair, j: int) -> Floats:
    """|x−x'| in standard deviations of the original column, whatever the weights."""
    there = both.both_there[:, j]
    x, y = both.original[there, j], both.protected[there, j]
    originals = both.original[:, j]
    spread = standard_deviation(originals[~np.isnan(originals)])
    with np.errstate(divide="ignore", over="ignore"):
        if spread > 0:
            return np.asarray(np.abs(x - y) / spread)
    # A constant original has no unit: it counts as unchanged, as in every measure.
    return np.zeros(len(x))


def _between(both: Pair, j: int) -> Floats:
    """Share of the original values that lie strictly between x and x'."""
    there = both.both_there[:, j]
    x, y = both.original[there, j], both.protected[there, j]
    ordered = np.sort(both.original[~np.isnan(both.original[:, j]), j])
    (x_below, x_upto), (y_below, y_upto) = (_places(values, ordered) for values in (x, y))
    count = np.maximum(y_below - x_upto, x_below - y_upto)
    return np.asarray(np.maximum(count, 0) / max(len(ordered), 1))


def _places(values: Floats, ordered: Floats) -> tuple[Labels, Labels]:
    """Count the ordered numbers below each value, and those up to it."""
    distinct, at = np.unique(values, return_inverse=True)  # sorted queries are found fast
    return np.searchsorted(ordered, distinct)[at], np.searchsorted(ordered, distinct, "right")[at]


def _shares(worst: Floats, percents: Iterable[float]) -> dict[float, float]:
    return {p: float(np.mean(worst <= p / 100 * (1 + _ROUNDING))) for p in percents}
