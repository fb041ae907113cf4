"""Totals, means, medians, deviations and frequent categories before and after, as a board reads them."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from microagg.base.typing import Floats
from microagg.encode.space import names_of_levels
from microagg.measure.both_tables import Pair
from microagg.measure.chart_data import OTHERS, bars, time_scale
from microagg.measure.estimates import window

_LARGEST = sys.float_info.max
_ROUNDING = 1e-12  # of a share, at most

Numbers = tuple[float, float]


@dataclass(frozen=True)
class Summary:
    """One column before and after; of the values that are there, and by weight where records have weights."""

    column: str
    total: Numbers | None = None
    """Of numbers; with sampling weights that of the population."""
    mean: Numbers | tuple[str, str] | None = None
    """Of numbers, and of dates in words."""
    median: Numbers | tuple[str, str] | None = None
    """Mean of the middle values, at least ``among`` of them, so that it is no record's own."""
    sd: Numbers | tuple[str, str] | None = None
    kind: str = "number"
    missing: tuple[int, int] = (0, 0)
    """Records without a value."""
    levels: tuple[int, int] | None = None
    """Of categories: different ones that occur."""
    moved: str | None = None
    """The category whose share changed most, of those that ``among`` records have; None: none changed."""
    moved_share: Numbers | None = None
    """Share of the records that have it, of those with a value, each record counted once."""
    changed: float | None = None
    """Of categories: share of records whose category changed."""


def summaries(both: Pair, among: int) -> list[Summary]:
    """Summarise each column; medians are means of the ``among`` values in the middle.

    >>> from microagg.tables.variable import Variable
    >>> age = Variable("age", "number", np.array([1.0, 2.0, 9.0]))
    >>> both = Pair([age], np.array([[4.0], [4.0], [4.0]]))
    >>> summaries(both, 3)[0].median
    (4.0, 4.0)
    """
    return [
        (_categories if both.is_category[j] else _numbers)(both, j, among)
        for j in range(len(both.names))
    ]


def _numbers(both: Pair, j: int, among: int) -> Summary:
    tables = both.original[:, j], both.protected[:, j]
    name, kind = str(both.names[j]), both.kinds[j]
    gone = [np.isnan(values) for values in tables]
    w, persons = both.row_weights, 1.0 if both.weights is None else both.mean_weight
    first, second = (
        _four(values[~no], w[~no], among, persons) for values, no in zip(tables, gone, strict=True)
    )
    missing = (int(gone[0].sum()), int(gone[1].sum()))
    total, mean, median, sd = zip(first, second, strict=True)
    if kind == "date":
        scale = time_scale(both.before, both.variables[j], both.protected[:, j])
        if scale is not None:
            return Summary(
                name,
                mean=(scale.words(mean[0]), scale.words(mean[1])),
                median=(scale.words(median[0]), scale.words(median[1])),
                sd=(scale.span(sd[0]), scale.span(sd[1])),
                kind=kind,
                missing=missing,
            )
    return Summary(name, total, mean, median, sd, kind, missing)


def _categories(both: Pair, j: int, among: int) -> Summary:
    names = names_of_levels(both.variables[j])
    w = both.row_weights
    counts, masses, missing = [], [], []
    for table in (both.original, both.protected):
        there = ~np.isnan(table[:, j])
        codes = table[there, j].astype(np.int64)
        width = max(len(names), int(codes.max(initial=0)) + 1)
        counts.append(np.bincount(codes, minlength=width))
        masses.append(np.bincount(codes, weights=w[there], minlength=width).astype(np.float64))
        missing.append(int((~there).sum()))
    same = both.both_there[:, j]
    differ = both.wrong_categories(j)[same]
    moved, moved_share = _moved_most(both, j, list(map(str, names)), masses, among)
    return Summary(
        str(both.names[j]),
        kind=both.kinds[j],
        missing=(missing[0], missing[1]),
        levels=(int(np.count_nonzero(counts[0])), int(np.count_nonzero(counts[1]))),
        moved=moved,
        moved_share=moved_share,
        changed=float(w[same] @ differ / w[same].sum()) if same.any() else 0.0,
    )


def _moved_most(
    both: Pair, j: int, names: list[str], masses: list[Floats], among: int
) -> tuple[str | None, Numbers | None]:
    """Find the category whose share changed most, of those that a picture may name.

    ``masses`` has the weight of each category, before and after.
    """
    codes = [t[~np.isnan(t[:, j]), j].astype(np.int64) for t in (both.original, both.protected)]
    if not all(map(len, codes)):
        return None, None
    levels = bars(codes, names, among)["levels"]
    named = [names.index(level) for level in levels if level != OTHERS]
    before, after = (mass[named] / mass.sum() for mass in masses)
    off = np.abs(after - before)
    if not off.max(initial=0.0) > _ROUNDING:
        return None, None
    # Of two categories both change alike, whatever the order of records leaves of it when rounded.
    most = int(np.argmax(off > off.max() - _ROUNDING))
    return names[named[most]], (float(before[most]), float(after[most]))


def _four(
    values: Floats, w: Floats, among: int, persons: float
) -> tuple[float, float, float, float]:
    """Total, mean, median and standard deviation of the values that are there; all 0 if none is.

    ``persons`` is the number of persons that a weight of 1 stands for, for the total.
    """
    n = len(values)
    if not n:
        return 0.0, 0.0, 0.0, 0.0
    unit = max(float(np.abs(values).max()), 1e-300)
    small = values / unit  # sums of huge values must not overflow
    base = float(small[0])
    moved = small - base  # a large offset must not swallow the digits
    mean = float(np.average(moved, weights=w))
    square = float(np.average(np.square(moved - mean), weights=w)) * n / max(n - 1, 1)
    middle = window(moved, w, 0.5, among)
    median = float(np.average(moved[middle], weights=w[middle]))
    total = (base + mean) * float(w.sum()) * persons
    total = min(max(total, -_LARGEST / unit), _LARGEST / unit)
    return total * unit, (base + mean) * unit, (base + median) * unit, float(np.sqrt(square)) * unit
