"""Both tables as a board reads them: totals, medians and categories before and after, and charts as counts.

No bin of a chart has fewer than k records, and none shows an end of the original.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.space import names_of_levels
from microagg.measure.both_tables import Pair
from microagg.measure.estimates import window
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable

DIGITS = 3
"""Digits of figures about originals: enough for a board, too few to compute a record."""
_BINS = 24
_MIDDLE = (0.01, 0.99)
_MOST_LEVELS = 12
OTHERS = "others"
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
    """Summarise each column of ``both`` tables; medians are means of the ``among`` values in the middle.

    >>> from microagg.tables.variable import Variable
    >>> age = Variable("age", "number", np.array([1.0, 2.0, 9.0]))
    >>> both = Pair([age], np.array([[4.0], [4.0], [4.0]]))
    >>> summaries(both, 3)[0].median
    (4.0, 4.0)
    """
    rows = []
    for j, variable in enumerate(both.variables):
        before, after = (int(np.isnan(t[:, j]).sum()) for t in (both.original, both.protected))
        figures = (_categories if variable.is_category else _numbers)(both, j, among)
        row = Summary(str(variable.name), kind=variable.kind, missing=(before, after), **figures)
        rows.append(row)
    return rows


def _numbers(both: Pair, j: int, among: int) -> dict[str, Any]:
    """Return total, mean, median and standard deviation of the values that are there; all 0 if none is."""
    persons = 1.0 if both.weights is None else both.mean_weight  # that a weight of 1 stands for
    figures = [[0.0] * 4, [0.0] * 4]
    for at, table in enumerate((both.original, both.protected)):
        there = ~np.isnan(table[:, j])
        values, w = table[there, j], both.row_weights[there]
        n = len(values)
        if not n:
            continue
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
        in_units = total, base + mean, base + median, math.sqrt(square)
        figures[at] = [figure * unit for figure in in_units]
    totals, means, medians, deviations = zip(*figures, strict=True)
    scale = time_scale(both.before, both.variables[j], both.protected[:, j])
    if scale is None:
        return {"total": totals, "mean": means, "median": medians, "sd": deviations}
    return {
        "mean": tuple(map(scale.words, means)),
        "median": tuple(map(scale.words, medians)),
        "sd": tuple(map(scale.span, deviations)),
    }


def _categories(both: Pair, j: int, among: int) -> dict[str, Any]:
    names = [str(name) for name in names_of_levels(both.variables[j])]
    codes, masses = [], []
    for table in (both.original, both.protected):
        there = ~np.isnan(table[:, j])
        codes.append(table[there, j].astype(np.int64))
        masses.append(np.bincount(codes[-1], both.row_weights[there], len(names)))
    figures = {
        "levels": (len(np.unique(codes[0])), len(np.unique(codes[1]))),
        "changed": both.changed(j),
    }
    if not all(map(len, codes)):
        return figures
    levels = bars(codes, names, among)["levels"]
    named = [names.index(level) for level in levels if level != OTHERS]
    before, after = (mass[named] / mass.sum() for mass in masses)
    off = np.abs(after - before)
    if not off.max(initial=0.0) > _ROUNDING:
        return figures
    # Of two categories both change alike, whatever the order of records leaves of it when rounded.
    most = int(np.argmax(off > off.max() - _ROUNDING))
    moved_share = float(before[most]), float(after[most])
    return {**figures, "moved": names[named[most]], "moved_share": moved_share}


def column(
    variable: Variable, tables: Sequence[Floats], k: int, frame: Frame | None
) -> dict[str, Any]:
    """Return the chart of a column of any kind.

    Parameters
    ----------
    variable : the column, typed
    tables : (n,) its values before and after, or after alone, NaN where missing
    k : least number of records of a bar
    frame : where the column stands; None: dates have no ticks

    Returns
    -------
    dict
        ``cuts`` and ``ends`` of numbers, ``ticks`` of dates, some cuts in words, ``levels`` of categories.
        All have the counts ``before`` and ``after``, of records that have a value.
    """
    there = [values[~np.isnan(values)] for values in tables]
    if variable.is_category:
        names = [str(name) for name in names_of_levels(variable)]
        codes = [values.astype(np.int64) for values in there]
        return bars(codes, names, k, variable.kind == "ordinal")
    if min(map(len, there)) < k:
        return {"levels": [], **_by_table(np.zeros((len(there), 0), np.int64))}
    drawn = distribution(there, k)
    cuts, scale = drawn["cuts"], time_scale(frame, variable, there[-1])
    if scale is not None and cuts:
        at = np.unique(np.linspace(0, len(cuts) - 1, min(len(cuts), 3)).round().astype(int))
        drawn["ticks"] = [[cuts[i], scale.words(cuts[i])] for i in at.tolist()]
    return drawn


_DAY = 86_400
_YEAR = 365.2425  # days
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
# Of dates that lie further apart than this the time of day is of no interest.
_DAYS_THAT_HIDE_HOURS = 60


class TimeScale(NamedTuple):
    """What an instant of a column stands for."""

    seconds: float
    """Length of its unit."""
    origin: int
    what: str
    """"date" (with or without a time), "time" of the day, or "span"."""
    daily: bool
    """Whether it has no time of the day, or one that is of no interest."""

    def words(self, instant: float) -> str:
        """Write an instant.

        >>> TimeScale(86400.0, 19723, "date", True).words(30.2)
        '2024-01-31'
        >>> TimeScale(1.0, 0, "time", False).words(3725.0)
        '01:02'
        """
        if math.isnan(instant):
            return "–"
        seconds = (self.origin + instant) * self.seconds
        if self.what == "span":
            return f"{seconds / _DAY:.4g} days"
        minutes = round(seconds / 60)
        if self.what == "time":
            return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
        if self.daily:
            return str(np.datetime64(round(seconds / _DAY), "D"))
        return str(np.datetime64(minutes, "m")).replace("T", " ")

    def span(self, instants: float) -> str:
        """Write a difference of instants.

        >>> TimeScale(86400.0, 0, "date", True).span(12.34)
        '12.3 days'
        """
        days = instants * self.seconds / _DAY
        if days >= 2 * _YEAR:
            return f"{days / _YEAR:.3g} years"
        if days >= 1 or days == 0:
            return f"{days:.3g} days"
        return f"{24 * days:.3g} hours"


def time_scale(frame: Frame | None, variable: Variable, values: Floats) -> TimeScale | None:
    """Find what the instants of a column of a frame stand for; None if it is not known.

    ``values`` are what is to be written: their range decides about times of the day.
    """
    import pyarrow as pa

    if frame is None or variable.kind != "date":
        return None
    kind: Any = frame.arrow_column(variable.name).type
    if variable.format is not None:
        daily = "%H" not in variable.format
        seconds, what = float(_DAY if daily else 1), "date"
    else:
        daily = bool(pa.types.is_date(kind))
        seconds = float(_DAY) if pa.types.is_date32(kind) else _UNITS[getattr(kind, "unit", "ms")]
        what = "time" if pa.types.is_time(kind) else "date"
        what = "span" if pa.types.is_duration(kind) else what
    there = values[~np.isnan(values)]
    apart = float(np.ptp(there)) * seconds / _DAY if there.size else 0.0
    return TimeScale(seconds, variable.origin, what, daily or apart > _DAYS_THAT_HIDE_HOURS)


def bars(tables: list[Labels], names: list[str], k: int, ordered: bool = False) -> dict[str, Any]:
    """Count categories in one table or two: at most twelve; the rest is put together as others.

    A level that fewer than k records of a table have is not named, unless none has it. If the others are
    fewer than k, the rarest named level is added to them.

    Parameters
    ----------
    tables : level number of each record, for one table or for both
    names : the levels
    k : least number of records of a bar
    ordered : whether bars stand in the order of the levels, and not of their size

    Examples
    --------
    >>> found = bars([np.array([0] * 6 + [1] * 5 + [2])], ["a", "b", "c"], 3)
    >>> found["levels"], found["after"]
    (['a', 'others'], [6, 6])
    """
    m = len(names)  # levels without a name, such as those that a recoding merged, are others
    counts = np.array([np.bincount(codes, minlength=m)[:m] for codes in tables])
    may_name = ((counts >= k) | (counts == 0)).all(axis=0) & (counts > 0).any(axis=0)
    by_size = np.argsort(-counts[0], kind="stable").tolist()
    kept = [level for level in by_size if may_name[level]][:_MOST_LEVELS]
    rest = np.array([*map(len, tables)]) - counts[:, kept].sum(axis=1)
    while kept and (rest[rest < k].any() or (rest.any() and len(kept) == _MOST_LEVELS)):
        rest = rest + counts[:, kept.pop()]
    if rest[rest < k].any():
        rest = np.zeros_like(rest)
    kept = sorted(kept) if ordered else kept
    levels, shown = [names[level] for level in kept], counts[:, kept]
    if rest.any():
        levels, shown = [*levels, OTHERS], np.column_stack([shown, rest])
    return {"levels": levels, **_by_table(shown)}


def distribution(tables: list[Floats], k: int) -> dict[str, Any]:
    """Count one table, or both, in common bins of at least k records of each; the last is the released one.

    Bins are cut by released values alone; the outermost are open, so that no end of the original
    shows. ``ends`` are the least and the greatest released value, which are in the file.
    """
    cuts, ends = bin_cuts(tables[-1]), [float(tables[-1].min()), float(tables[-1].max())]
    counted = np.array(
        [np.bincount(np.searchsorted(cuts, x, "right"), minlength=len(cuts) + 1) for x in tables]
    )
    keep: list[float] = []
    bins = [counted[:, 0]]
    for cut, counts in zip(cuts.tolist(), counted.T[1:], strict=True):
        if bins[-1].min() >= k:
            keep.append(cut)
            bins.append(counts)
        else:
            bins[-1] = bins[-1] + counts
    while len(bins) > 1 and bins[-1].min() < k:  # the rest goes to the bin before
        rest = bins.pop()
        bins[-1] = bins[-1] + rest
        keep.pop()
    return {"cuts": keep, "ends": ends, **_by_table(np.array(bins).T)}


def _by_table(counts: Labels) -> dict[str, list[int]]:
    """Name rows of counts: before and after, or after alone."""
    return dict(zip(("before", "after")[-len(counts) :], counts.tolist(), strict=True))


def bin_cuts(y: Floats) -> Floats:
    """Cut a protected column into bins of equal width; what lies far out goes to the open ones.

    They reach from the quantile 1 % to 99 %, or to the end of the column where that is no farther off
    than a bin is wide: amounts that start at 0 have bins that start there. No cut is at an end.
    """
    least, most = float(y.min()), float(y.max())
    low, high = np.quantile(y, _MIDDLE)
    if not high > low:
        return np.array([low])
    with np.errstate(over="ignore", invalid="ignore"):  # a column may span more than a double holds
        width = (high - low) / _BINS
        low = least if low - least <= width else low
        high = most if most - high <= width else high
        cuts = np.unique(np.linspace(low, high, _BINS + 1))
    return cuts[(cuts > least) & (cuts < most)]
