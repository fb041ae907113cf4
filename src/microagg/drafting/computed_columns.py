"""Columns that are computed from others: one is grouped on, and the others follow from it.

Released apart, they would contradict each other: an age of 34 in the group "65+", a log wage that is not the
logarithm of the wage. So one column is kept, and the others are dropped with the reason: they can be computed
again from the released one.

Found are parts of a date (its year, month, weekday), formulas of one number (another unit of it, its
logarithm) or of a product of two (the body mass index), bands of a number, and codes of a few values that
another column determines. Sums of several columns are no reason, since means keep them. All are looked for
in a sample of the records first, and counted in all of them. O(n log n) for each pair that is found, and
O(c² · sample) for c columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.formatting import names
from microagg.base.typing import Floats, Labels
from microagg.drafting import name_words as say
from microagg.drafting.guess import FEW, MANY, Guess
from microagg.drafting.profile import number_of
from microagg.errors import InputError
from microagg.tables.dates import instants
from microagg.tables.frame import Frame, codes_as_written

_MOST_COLUMNS = 300  # beyond it, all pairs of columns would take longer than the grouping
_SAMPLE = 3000
_MANY_NUMBERS = 60  # columns from which on a formula is looked for only between similar names
_WORK = 5e7  # comparisons of columns by sampled records, at most
_FEWEST = 30  # records in which both are present
_RECORDS_OF_A_VALUE = 5  # on average: then it is no accident that equal values go with equal ones
_MINORITY = 10  # records outside the most frequent value
_EXACT = 1e-7  # of the variance that a formula may leave
_OF_TWO = 1e-2  # the same for formulas of two columns, which are measured
_DECIMALS = 6  # to which values may be rounded
_COPY = "the same up to a factor and a constant"
_CURVES: Mapping[str, Callable[[Floats], Floats]] = {
    _COPY: lambda x: x,
    "the logarithm": np.log,
    "the square": np.square,
    "the square root": np.sqrt,
    "the exponential": lambda x: np.exp(np.minimum(x, 700.0)),
    "one divided by it": lambda x: 1 / x,
}


def settle_computed(table: Frame, guesses: Mapping[Any, Guess]) -> dict[Any, Guess]:
    """Drop protected columns of ``table`` that follow from another protected one."""
    columns = [
        _column(table, name, looks)
        for name, looks in guesses.items()
        if looks.role == "protect" and looks.distinct >= 2
    ]
    followers: dict[Any, Guess] = {}
    bases: set[Any] = set()

    def add(base: _Column, column: _Column, how: str) -> None:
        """Let a column follow from another, unless one of them follows or others follow from it."""
        if how and {column.name, base.name}.isdisjoint(followers) and column.name not in bases:
            why = f"it follows from {names([base.name])} ({how}): compute it from the released one."
            followers[column.name] = replace(column.looks.dropped(why), role="follows")
            bases.add(base.name)

    in_order = sorted(columns, key=lambda column: -column.looks.distinct)
    for base, column in product((date for date in in_order if date.parts), columns):
        if base is not column:
            add(base, column, _part_of_date(base, column))
    for index, weight, height in _body_mass_indexes(columns):
        add(weight, index, f"with {names([height.name])}")
    for base, column, how in _formulas(columns):
        add(base, column, how)
    dates = [column for column in in_order if column.looks.looks_like == "date"]
    for base, column in (*_determined(columns), *permutations(dates, 2)):
        if {column.name, base.name}.isdisjoint(followers):
            add(*_direction(base, column, columns))
    return {**guesses, **followers}


class _Column(NamedTuple):
    """A column and its values."""

    name: Any
    looks: Guess
    ranks: Labels
    """Among the distinct values; −1: missing."""
    numbers: Floats | None
    """NaN: missing; None where the values have no order."""
    parts: dict[str, Labels]
    """Of dates: the year, month and so on of each record; −1: missing."""

    @property
    def is_number(self) -> bool:
        return self.looks.kind in ("number", "integer", "spiked")


def _column(table: Frame, name: Any, looks: Guess) -> _Column:
    numbers, parts = None, {}
    if looks.looks_like == "number stored as text" and looks.kind in ("number", "spiked"):
        texts = map(str, table.arrow_column(name).to_pylist())
        numbers = np.array([number_of(text) for text in texts], dtype=np.float64)
    elif table.is_numeric(name):
        numbers = table.doubles(name)
        if looks.looks_like == "date" and looks.distinct > MANY:
            parts = _parts_of(86_400 * _days_as_numbers(numbers))
    elif looks.kind == "date":
        numbers, parts = _dates(table, name)
    elif looks.levels:
        order = {text: float(at) for at, text in enumerate(looks.levels)}
        texts = table.arrow_column(name).to_pylist()
        numbers = np.array([order.get(str(text), np.nan) for text in texts])
    if numbers is None:
        codes = codes_as_written(table, name, from_csv=False)
        return _Column(name, looks, codes, None, parts)
    ranks = np.full(len(numbers), -1, dtype=np.int64)
    present = np.isfinite(numbers)
    ranks[present] = np.unique(numbers[present], return_inverse=True)[1]
    return _Column(name, looks, ranks, np.where(present, numbers, np.nan), parts)


def _dates(table: Frame, name: Any) -> tuple[Floats | None, dict[str, Labels]]:
    """Return dates as numbers, and their parts."""
    column, read = table.arrow_column(name), None
    with suppress(InputError, ValueError):
        read = instants(column)
    if read is None:
        return None, {}
    kind, unit = str(column.type), getattr(column.type, "unit", None)
    if kind.startswith("time") and not kind.startswith("timestamp"):
        return read.values, {}  # times of day
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}.get(unit or "s", 1)
    written_by_day = read.format is not None and "%H" not in read.format
    is_daily = kind.startswith("date32") or written_by_day
    seconds = (read.values + read.origin) * (86_400 if is_daily else 1 / ticks)
    return read.values, _parts_of(seconds)


def _days_as_numbers(numbers: Floats) -> Floats:
    """Return the days since 1970 of numbers such as 20161231; NaN where one is no date."""
    whole = np.nan_to_num(numbers, nan=0.0).astype(np.int64)
    year, month, day = whole // 10_000, whole // 100 % 100, whole % 100
    is_day = (year >= 1800) & (year <= 2100) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (np.where(is_day, year, 1970) - 1970) * 12 + np.where(is_day, month, 1) - 1
    days = months.astype("M8[M]").astype("M8[D]").astype(np.int64) + day - 1
    return np.where(is_day, days.astype(np.float64), np.nan)


def _parts_of(values: Floats) -> dict[str, Labels]:
    """Return the parts of moments that are counted in seconds since 1970."""
    present = np.isfinite(values)
    seconds = np.floor(np.where(present, values, 0.0)).astype(np.int64)
    moments = pa.array(seconds).cast(pa.timestamp("s"))
    year, month, day = (part(moments).to_numpy() for part in (pc.year, pc.month, pc.day))
    of_year = pc.day_of_year(moments).to_numpy()
    parts = {
        "its year": year,
        "its month": month,
        "its quarter": (month - 1) // 3,
        "its year and month": 12 * year + month,
        "its day": day,
        "its weekday": pc.day_of_week(moments).to_numpy(),
        "its month and day": 31 * month + day,
        "its day of the year": of_year,
        "its hour": pc.hour(moments).to_numpy(),
        "its date": 366 * year + of_year,
    }
    return {name: np.where(present, numbers, -1) for name, numbers in parts.items()}


def _part_of_date(date: _Column, other: _Column) -> str:
    """Return which part of a date another column says, in words; nothing if it says none."""
    for how, part in date.parts.items():
        both = np.flatnonzero((part >= 0) & (other.ranks >= 0))
        sample = both[:: max(len(both) // _SAMPLE, 1)]
        if len(both) < _FEWEST or not _is_function(part[sample], other.ranks[sample]):
            continue
        if _determines(part[both], other.ranks[both]):
            return how
    return ""


def _is_function(base: Labels, other: Labels) -> bool:
    """Return whether equal values of one column go with equal ones of the other."""
    levels, which = np.unique(base, return_inverse=True)
    first = np.zeros(len(levels), dtype=np.int64)
    first[which[::-1]] = other[::-1]
    return bool((first[which] == other).all())


def _determines(base: Labels, other: Labels) -> bool:
    """Return whether equal values of one column go with equal ones of the other, and not by accident."""
    levels, which, counts = np.unique(base, return_inverse=True, return_counts=True)
    values, often = np.unique(other, return_counts=True)
    off_the_top = len(base) - counts.max()
    if len(levels) < 2 or len(values) < 2 or off_the_top < _RECORDS_OF_A_VALUE * (len(levels) - 1):
        return False
    if not _is_function(base, other):
        return False
    repeated = counts[which] > 1
    return bool(((other != values[np.argmax(often)]) & repeated).sum() >= _MINORITY)


def _is_banded(base: Floats, other: Labels) -> bool:
    """Return whether a column says in which of several bands a number lies."""
    values, often = np.unique(other, return_counts=True)
    distinct = len(np.unique(base))
    if len(values) < 2 or 3 * len(values) > 2 * distinct or len(base) - often.max() < _MINORITY:
        return False
    if len(base) < _RECORDS_OF_A_VALUE * len(values):
        return False
    ordered = np.lexsort((other, base))
    runs = other[ordered]
    changes = runs[1:] != runs[:-1]
    at_ties = changes & (base[ordered][1:] == base[ordered][:-1])
    return bool(changes.sum() == len(values) - 1 and not at_ties.any())


def _determined(columns: Sequence[_Column]) -> Iterator[tuple[_Column, _Column]]:
    """Yield pairs of columns of which the second may follow from the first, by a sample."""
    if not 2 <= len(columns) <= _MOST_COLUMNS:
        return
    size = int(min(_SAMPLE, max(300, _WORK / len(columns) ** 2)))
    step = max(len(columns[0].ranks) // size, 1)
    matrix = np.column_stack([column.ranks[::step] for column in columns])
    distinct = np.array([len(np.unique(ranks[ranks >= 0])) for ranks in matrix.T])
    for base in sorted(range(len(columns)), key=lambda at: -columns[at].looks.distinct):
        others = matrix[np.argsort(matrix[:, base], kind="stable")]
        ranks = others[:, base]
        ties, present = ranks[1:] == ranks[:-1], (ranks[1:] >= 0) & (ranks[:-1] >= 0)
        there = (others[1:] >= 0) & (others[:-1] >= 0) & present[:, None]
        changes = (others[1:] != others[:-1]) & there
        at_ties = (changes & ties[:, None]).any(axis=0)
        few_changes = changes.sum(axis=0) < distinct
        repeats = ties.sum() > len(ranks) / 2
        may_follow = (distinct[base] > 1) & (distinct > 1) & ~at_ties & (repeats | few_changes)
        may_follow[base] = False
        yield from ((columns[base], columns[at]) for at in np.flatnonzero(may_follow).tolist())


def _direction(
    first: _Column, second: _Column, columns: Sequence[_Column]
) -> tuple[_Column, _Column, str]:
    """Return which of two columns is kept, which follows from it, and how; no words: neither."""
    both = (first.ranks >= 0) & (second.ranks >= 0)
    if both.sum() < max(_FEWEST, len(both) / 2):
        return first, second, ""
    ranks, others = first.ranks[both], second.ranks[both]
    base, follower = first.looks, second.looks
    if _determines(ranks, others):
        kinds = {base.kind, follower.kind}
        is_code = base.distinct <= FEW or not kinds.isdisjoint(("nominal", "ordinal", "boolean"))
        if is_code and _determines(others, ranks):
            # Categories before numbers, what others are computed from, the first of the table.
            pair = [column for column in columns if column is first or column is second]
            kept, gone = sorted(
                pair,
                key=lambda column: (
                    column.is_number,
                    _is_computed_by_name(column.name, (second if column is first else first).name),
                ),
            )
            return kept, gone, "the same in other words"
        # Of a long classification the coarser column keeps what groups lose, so both stay, unless it is
        # called after the finer one, as INDP_CAT after INDP: then a row with both would contradict itself.
        # A measurement of a few values is no reason for another column.
        most = FEW if base.kind == "nominal" else MANY
        few = base.distinct <= most and base.kind not in ("number", "spiked")
        # A school, a place or a team has qualities that are no other words for it.
        few = few and not set(say.words(first.name)) & (say.ENTITY | say.PLACE)
        both_nominal = base.kind == follower.kind == "nominal"
        is_called_after = both_nominal and set(say.words(first.name)) < set(say.words(second.name))
        if few or is_called_after or base.looks_like == follower.looks_like == "date":
            return first, second, "each of its values has one"
    if first.numbers is not None and _is_banded(first.numbers[both], others):
        return first, second, "bands of it"
    return first, second, ""


def _formulas(columns: Sequence[_Column]) -> Iterator[tuple[_Column, _Column, str]]:
    """Yield pairs of numbers of which the second is a formula of the first, and the formula."""
    numbers = [
        c for c in columns if c.is_number and c.looks.distinct > FEW and c.numbers is not None
    ]
    for at, column in enumerate(numbers):
        for other in numbers[:at]:
            one, two = str(column.name), str(other.name)
            if len(numbers) > _MANY_NUMBERS and one not in two and two not in one:
                continue
            pair = (other, column)
            if _is_computed_by_name(two, one) and not _is_computed_by_name(one, two):
                pair = (column, other)
            for base, follower in (pair, pair[::-1]):
                assert base.numbers is not None
                assert follower.numbers is not None
                if how := _formula(base.numbers, follower.numbers):
                    yield base, follower, how
                    break


def _formula(base: Floats, other: Floats) -> str:
    """Return the name of the formula by which one column follows from another; nothing if there is none."""
    both = np.isfinite(base) & np.isfinite(other)
    rows = np.flatnonzero(both)
    if (np.isfinite(other) & ~np.isfinite(base)).any():
        return ""  # values that nothing would stand for
    if len(rows) < max(_FEWEST, len(both) / 2):
        return ""
    sample = rows[:: max(len(rows) // 300, 1)]
    for chosen in (sample, rows):
        x, y = base[chosen], other[chosen]
        how = next((how for how in _CURVES if _fits(x, y, how)), "")
        if not how:
            return ""
    # A column that is there in fewer records says more than its copy: where it is missing.
    return "" if how == _COPY and len(rows) < np.isfinite(base).sum() else how


def _fits(x: Floats, y: Floats, how: str) -> bool:
    """Return whether values are those of a curve, up to a factor, a constant and rounding."""
    with np.errstate(all="ignore"):
        curve = _CURVES[how](x)
        if not np.isfinite(curve).all() or np.ptp(curve) == 0 or np.ptp(y) == 0:
            return False
        curve, centred = curve - curve.mean(), y - y.mean()
        away = centred - curve * ((curve * centred).sum() / (curve * curve).sum())
        spread = centred.std()
        if away.std() ** 2 <= _EXACT * spread**2:
            return True
        digit = 0.0  # the last that values are written with
        for decimals in range(_DECIMALS):
            if np.allclose(y, np.round(y, decimals), rtol=1e-9, atol=10.0 ** -(decimals + 4)):
                digit = 10.0**-decimals
                break
    return bool(np.abs(away).max() <= digit <= spread / 20)


def _body_mass_indexes(columns: Sequence[_Column]) -> Iterator[tuple[_Column, _Column, _Column]]:
    """Yield columns that are, by name and values, a weight divided by the square of a height, with both."""
    called = (
        [c for c in columns if c.numbers is not None and nouns & set(say.words(c.name))]
        for nouns in ({"bmi"}, say.WEIGHT, say.HEIGHT)
    )
    for index, weight, height in product(*called):
        with np.errstate(all="ignore"):
            logs = [np.log(c.numbers) for c in (index, weight, height) if c.numbers is not None]
        values, computed = logs[0], logs[1] - 2 * logs[2]
        both = np.isfinite(values) & np.isfinite(computed)
        if index is not weight and index is not height and both.sum() >= _FEWEST:
            correlation = np.corrcoef(values[both], computed[both])[0, 1]
            if 1 - correlation**2 <= _OF_TWO:
                yield index, weight, height


def _is_computed_by_name(name: Any, other: Any) -> bool:
    """Return whether a name is that of another column with a prefix or an ending of computed ones.

    >>> _is_computed_by_name("logwage", "wage"), _is_computed_by_name("wage", "logwage")
    (True, False)
    """
    computed, base = (re.sub("[_.]", "", say.plain(text).lower()) for text in (name, other))
    rules = say.RULES["computed"]
    by_prefix = (prefix + base for prefix in rules["prefixes"].split())
    return computed in {*by_prefix, *(base + ending for ending in rules["endings"].split())}
