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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from microagg.base.formatting import names
from microagg.base.typing import Floats, Labels
from microagg.drafting import name_words as say
from microagg.drafting.guess import FEW, MANY, Guess
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
    """Drop protected columns that follow from another protected one.

    Parameters
    ----------
    table
        The records.
    guesses
        What each column looks like, with its role.
    """
    settled = dict(guesses)
    columns = {
        name: _values(table, name, looks)
        for name, looks in guesses.items()
        if looks.role == "protect" and looks.distinct >= 2
    }
    for name, (base, how) in _followers(columns, guesses).items():
        why = f"it follows from {names([base])} ({how}): compute it from the released one."
        settled[name] = replace(
            guesses[name], role="follows", action=f"Dropped: {why}", codes=(), levels=()
        )
    return settled


class _Values(NamedTuple):
    """The values of a column."""

    ranks: Labels
    """Among the distinct values; −1: missing."""
    numbers: Floats | None
    """NaN: missing; None where the values have no order."""
    parts: dict[str, Labels]
    """Of dates: the year, month and so on of each record; −1: missing."""


def _values(table: Frame, name: Any, looks: Guess) -> _Values:
    numbers, parts = None, {}
    if looks.looks_like == "number stored as text" and looks.kind in ("number", "spiked"):
        numbers = np.array([_number(text) for text in table.arrow_column(name).to_pylist()])
    elif table.is_numeric(name):
        numbers = table.doubles(name)
        if looks.looks_like == "date" and looks.distinct > MANY:
            parts = _parts_of(86_400 * _days_as_numbers(numbers))
    elif looks.kind == "date":
        numbers, parts = _dates(table, name)
    if numbers is None:
        codes = codes_as_written(table, name, from_csv=False)
        if looks.levels:
            order = {text: at for at, text in enumerate(looks.levels)}
            texts = table.arrow_column(name).to_pylist()
            codes = np.array([order.get(str(text), -1) for text in texts], dtype=np.int64)
            numbers = np.where(codes < 0, np.nan, codes.astype(np.float64))
        return _Values(codes, numbers, parts)
    ranks = np.full(len(numbers), -1, dtype=np.int64)
    present = np.isfinite(numbers)
    ranks[present] = np.unique(numbers[present], return_inverse=True)[1]
    return _Values(ranks, np.where(present, numbers, np.nan), parts)


def _number(text: Any) -> float:
    try:
        return float(str(text).replace(",", "."))
    except ValueError:
        return np.nan


def _dates(table: Frame, name: Any) -> tuple[Floats | None, dict[str, Labels]]:
    """Return dates as numbers, and their parts."""
    column = table.arrow_column(name)
    try:
        read = instants(column)
    except (InputError, ValueError):
        return None, {}
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
    if not present.any():
        return {}
    seconds = np.floor(np.where(present, values, 0.0)).astype(np.int64)
    moments = seconds.astype("M8[s]")
    days = moments.astype("M8[D]")
    months = moments.astype("M8[M]").astype(np.int64)
    day_of_month = (days - moments.astype("M8[M]").astype("M8[D]")).astype(np.int64)
    parts = {
        "its year": moments.astype("M8[Y]").astype(np.int64) + 5000,
        "its month": months % 12,
        "its quarter": months % 12 // 3,
        "its year and month": months + 50_000,
        "its day": day_of_month,
        "its weekday": (days.astype(np.int64) + 3) % 7,
        "its month and day": months % 12 * 31 + day_of_month,
        "its day of the year": (days - moments.astype("M8[Y]").astype("M8[D]")).astype(np.int64),
        "its hour": seconds // 3600 % 24,
        "its date": days.astype(np.int64) + 10**6,
    }
    return {name: np.where(present, numbers, -1) for name, numbers in parts.items()}


def _followers(
    columns: Mapping[Any, _Values], guesses: Mapping[Any, Guess]
) -> dict[Any, tuple[Any, str]]:
    """Return the columns that follow from another, with that other and how they follow from it."""
    followers: dict[Any, tuple[Any, str]] = {}
    bases: set[Any] = set()

    def add(base: Any, name: Any, how: str) -> None:
        if how and {name, base}.isdisjoint(followers) and name not in bases:
            followers[name] = base, how
            bases.add(base)

    order = sorted(columns, key=lambda name: -guesses[name].distinct)
    for base in (name for name in order if columns[name].parts):
        for name in columns:
            if name != base:
                add(base, name, _part_of_date(columns[base], columns[name]))
    for name, (weight, height) in _products(columns).items():
        add(weight, name, f"with {names([height])}")
    for base, name, how in _formulas(columns, guesses):
        add(base, name, how)
    dates = [name for name in order if guesses[name].looks_like == "date"]
    of_dates = [(base, name) for base in dates for name in dates if base != name]
    for base, name in (*_determined(columns, order), *of_dates):
        if {name, base}.isdisjoint(followers):
            add(*_direction(base, name, columns, guesses))
    return followers


def _part_of_date(date: _Values, other: _Values) -> str:
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


def _determined(columns: Mapping[Any, _Values], order: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return pairs of columns of which the second may follow from the first, by a sample."""
    if not 2 <= len(columns) <= _MOST_COLUMNS:
        return []
    every = list(columns)
    place = {name: at for at, name in enumerate(every)}
    rows = len(columns[every[0]].ranks)
    size = int(min(_SAMPLE, max(300, _WORK / len(every) ** 2)))
    sample = np.arange(0, rows, max(rows // size, 1))
    matrix = np.column_stack([columns[name].ranks[sample] for name in every])
    distinct = np.array([len(np.unique(column[column >= 0])) for column in matrix.T])
    pairs = []
    for base in order:
        if distinct[place[base]] < 2:
            continue
        ordered = np.argsort(columns[base].ranks[sample], kind="stable")
        ranks, others = columns[base].ranks[sample][ordered], matrix[ordered]
        ties, present = ranks[1:] == ranks[:-1], (ranks[1:] >= 0) & (ranks[:-1] >= 0)
        there = (others[1:] >= 0) & (others[:-1] >= 0) & present[:, None]
        changes = (others[1:] != others[:-1]) & there
        at_ties = (changes & ties[:, None]).any(axis=0)
        few_changes = changes.sum(axis=0) < distinct
        repeats = ties.sum() > len(ranks) / 2
        may_follow = (distinct > 1) & ~at_ties & (repeats | few_changes)
        may_follow[place[base]] = False
        pairs += [(base, every[at]) for at in np.flatnonzero(may_follow).tolist()]
    return pairs


def _direction(
    base: Any, name: Any, columns: Mapping[Any, _Values], guesses: Mapping[Any, Guess]
) -> tuple[Any, Any, str]:
    """Return which of two columns is kept, which follows from it, and how; no words: neither."""
    first, second = columns[base], columns[name]
    both = (first.ranks >= 0) & (second.ranks >= 0)
    if both.sum() < max(_FEWEST, len(both) / 2):
        return base, name, ""
    ranks, others = first.ranks[both], second.ranks[both]
    if _determines(ranks, others):
        kinds = {guesses[base].kind, guesses[name].kind}
        is_code = guesses[base].distinct <= FEW or kinds & {"nominal", "ordinal", "boolean"}
        if is_code and _determines(others, ranks):
            return _kept(base, name, guesses)
        # Of a long classification the coarser column keeps what groups lose, so both stay, unless it is
        # called after the finer one, as INDP_CAT after INDP: then a row with both would contradict itself.
        # A measurement of a few values is no reason for another column.
        most = FEW if guesses[base].kind == "nominal" else MANY
        few = guesses[base].distinct <= most and guesses[base].kind not in ("number", "spiked")
        # A school, a place or a team has qualities that are no other words for it.
        few = few and not set(say.words(base)) & (say.ENTITY | say.PLACE)
        both_nominal = guesses[base].kind == guesses[name].kind == "nominal"
        is_called_after = both_nominal and set(say.words(base)) < set(say.words(name))
        if few or is_called_after or guesses[base].looks_like == guesses[name].looks_like == "date":
            return base, name, "each of its values has one"
    if first.numbers is not None and _is_banded(first.numbers[both], others):
        return base, name, "bands of it"
    return base, name, ""


def _kept(first: Any, second: Any, guesses: Mapping[Any, Guess]) -> tuple[Any, Any, str]:
    """Choose one of two columns that say the same: categories before numbers, the first before the second."""
    order = list(guesses)

    def rank(name: Any) -> tuple[bool, bool, int]:
        is_number = guesses[name].kind in ("number", "integer", "spiked")
        is_computed = _is_computed_by_name(name, first if name == second else second)
        return is_number, is_computed, order.index(name)

    kept, gone = sorted((first, second), key=rank)
    return kept, gone, "the same in other words"


def _formulas(
    columns: Mapping[Any, _Values], guesses: Mapping[Any, Guess]
) -> list[tuple[Any, Any, str]]:
    """Return pairs of numbers of which the second is a formula of the first, and the formula."""
    numbers = {
        name: values.numbers
        for name, values in columns.items()
        if values.numbers is not None
        and guesses[name].distinct > FEW
        and guesses[name].kind in ("number", "integer", "spiked")
    }
    pairs = []
    every = list(numbers)
    many = len(every) > _MANY_NUMBERS
    for at, name in enumerate(every):
        for other in every[:at]:
            if many and str(name) not in str(other) and str(other) not in str(name):
                continue
            base, follower = (other, name)
            if _is_computed_by_name(other, name) and not _is_computed_by_name(name, other):
                base, follower = name, other
            how = _formula(numbers[base], numbers[follower])
            if not how:
                base, follower = follower, base
                how = _formula(numbers[base], numbers[follower])
            if how:
                pairs.append((base, follower, how))
    return pairs


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


def _products(columns: Mapping[Any, _Values]) -> dict[Any, tuple[Any, Any]]:
    """Return columns that the table of rules knows as products of two others, if they are."""
    words_of = {"weight": say.WEIGHT, "height": say.HEIGHT}
    products: dict[Any, tuple[Any, Any]] = {}
    numbers = {n: v.numbers for n, v in columns.items() if v.numbers is not None}
    for word, rule in say.RULES["computed"]["products"].items():
        (first, power), (second, other_power) = rule["of"].items()
        for name in (name for name in numbers if word in say.words(name)):
            factors = [
                [n for n in numbers if n != name and words_of[role] & set(say.words(n))]
                for role in (first, second)
            ]
            for pair in product(*factors):
                with np.errstate(all="ignore"):
                    logs = np.log(numbers[name])
                    computed = power * np.log(numbers[pair[0]]) + other_power * np.log(
                        numbers[pair[1]]
                    )
                both = np.isfinite(logs) & np.isfinite(computed)
                if both.sum() < _FEWEST:
                    continue
                correlation = np.corrcoef(logs[both], computed[both])[0, 1]
                if 1 - correlation**2 <= _OF_TWO:
                    products[name] = pair
    return products


def _is_computed_by_name(name: Any, other: Any) -> bool:
    """Return whether a name is that of another column with a prefix or an ending of computed ones.

    >>> _is_computed_by_name("logwage", "wage"), _is_computed_by_name("wage", "logwage")
    (True, False)
    """
    computed, base = (
        say.plain(text).lower().replace("_", "").replace(".", "") for text in (name, other)
    )
    rules = say.RULES["computed"]
    return any(computed == prefix + base for prefix in rules["prefixes"].split()) or any(
        computed == base + ending for ending in rules["endings"].split()
    )
