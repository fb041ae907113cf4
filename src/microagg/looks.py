"""What the columns of a table look like, each with a reason that says what to do about it.

A guess takes the values and the name together, and where both are silent it errs towards leaving a column
and saying so: a mean of codes is nonsense, a column left and told of is seen and named. For columns that
are left the reason names the kind by which they can be protected too.

Rules are asked in order and the first that answers decides. Reasons hold counts, never values.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from microagg.tables import name_words as say
from microagg.tables.dates import dates_in_text
from microagg.tables.frames import Frame, OddCells
from microagg.tables.profile import Numbers, Profile, profiles

__all__ = ["Guess", "guess"]

Role = Literal["protect", "known"]
Looks = Literal[
    "quantity",
    "identifier",
    "repeated identifier",
    "weight",
    "code",
    "category",
    "truth value",
    "date",
    "place",
    "text",
    "number stored as text",
    "constant",
    "empty",
    "nested",
]
Kind = Literal["number", "integer", "boolean", "nominal", "ordinal", "date"]

_FEW = 12  # distinct whole numbers that may be codes or small counts, at most
_MANY = 30  # records from which on a shape of the values is no accident
_NEARLY_ALL = 0.9  # an id may repeat in a few records
_SPREAD = 20  # times the mean: beyond that, weights are not those of bodies
_MANY_ZEROS = 0.25  # share of records from which on zeros are a spike

_TO_BE_TOLD = (
    "identifier",
    "repeated identifier",
    "weight",
    "code",
    "quantity",  # left for another reason, such as infinite values
    "number stored as text",
)


@dataclass(frozen=True)
class Guess:
    """What a column looks like."""

    role: Role
    """"protect", or "known": left as it is and taken as known to an attacker."""
    looks_like: Looks
    kind: Kind | None
    """What its values are; None for values that are no single ones."""
    reason: str
    """Why, and what to do about it, in words without values of records."""

    @property
    def to_be_told(self) -> bool:
        """Whether a column was left that a person may have wanted protected, dropped or renumbered."""
        return self.role != "protect" and self.looks_like in _TO_BE_TOLD


def guess(frame: Any) -> dict[Any, Guess]:
    """Guess what each column of a table is.

    O(n log n) for each column.

    Examples
    --------
    >>> import pandas as pd
    >>> found = guess(pd.DataFrame({"plz": ["01067", "80331", "01067"], "wage": [9.5, 12.25, 11.0]}))
    >>> found["plz"].looks_like, found["wage"].role
    ('code', 'protect')
    """
    table = frame if isinstance(frame, Frame) else Frame(frame)
    index = set(table.index_columns())
    found = {}
    for name, profile in profiles(table):
        if name in index:
            found[name] = _left("identifier", None, "The row labels of a frame of pandas", _DROP)
        else:
            found[name] = _guess(
                _Column(profile, say.words(name), *_in_order(table, name, profile))
            )
        if found[name].looks_like == "number stored as text":
            found[name] = _with_place(found[name], table.odd_numbers(name))
    return found


def _in_order(table: Frame, name: Any, profile: Profile) -> tuple[bool, bool]:
    """Whether texts have an order: that of their type, and that of dates which can be read."""
    if profile.type != "text" or profile.texts is None:
        return False, False
    readable = profile.texts.dates and dates_in_text(table.arrow_column(name)) is not None
    return table.is_ordered(name), readable


def _with_place(found: Guess, odd: OddCells | None) -> Guess:
    """Tell where the cells are that keep a column of numbers from being one."""
    if odd is None:
        return found
    hint = (
        " If the comma is a decimal sign, say so: --decimal , for a CSV file." * odd.decimal_comma
    )
    return replace(found, reason=f"{found.reason} There are {odd.in_words()}.{hint}")


@dataclass(frozen=True)
class _Column:
    """What the rules see: the profile, and the words of the name."""

    profile: Profile
    words: tuple[str, ...]
    ordered: bool = False
    readable_dates: bool = False

    def named(self, *known: Container[str]) -> bool:
        return any(word in those for those in known for word in self.words)

    @property
    def last(self) -> str:
        """The last word, which says what a thing is; numbers behind it only tell things apart."""
        return next((word for word in reversed(self.words) if not word.isdigit()), "")

    @property
    def first(self) -> str:
        return self.words[0] if self.words else ""


_DROP = "It may point to single records: drop or renumber it."
_UNIT = (
    "If it numbers persons, households or firms, name it as unit, so that k counts them, and drop or "
    "renumber it."
)
_NO_MEAN = "Its mean would say nothing"
_WEIGHT = (
    "If it tells how many of the population a record stands for, name it as weight: totals stay exact, "
    "and it is released as the mean of its group. If it is a quantity, name it in columns; else drop it, "
    "since left as it is it may point to few records."
)
_PROBABILITY = (
    "If it is the chance of a record to be drawn, one divided by it is a weight, which keeps totals "
    "exact; left as it is, it may point to few records."
)
_FINDS = "Left as it is, it helps to find a record"


def _protect_as(kind: str) -> str:
    return f'add it to the columns with kind = "{kind}"'


_CODE = (
    f'{_NO_MEAN}. To protect it, {_protect_as("nominal")}, or "ordinal" if larger means more; if it is a '
    "quantity, name it in columns."
)
_PLACE_CODE = (
    f'{_NO_MEAN}, and it helps to find a record: {_protect_as("nominal")}, or "hierarchy" if the first '
    "digits are larger places; or drop it."
)
_DIGITS = (
    f'{_NO_MEAN}. To protect it, {_protect_as("nominal")}, or "hierarchy" if the first digits stand for '
    "more than the whole code."
)
_DATE = f"{_FINDS}: {_protect_as('date')}, or drop it."
_YEAR = f"{_FINDS}: {_protect_as('integer')}, or drop it."
_NO_DATE = f"{_FINDS}: turn it into dates such as 2024-03-31 and add it to the columns, or drop it."
_COORDINATES = f"{_FINDS}: add both coordinates to the columns, or drop them."
_CATEGORY = f"{_FINDS}: {_protect_as('nominal')}, or drop it."
_ORDERED = f"{_FINDS}: {_protect_as('ordinal')}, or drop it."
_TRUTH = f"{_FINDS}: {_protect_as('boolean')}, or drop it."
_TEXT_NUMBERS = f"If it is a quantity, {_protect_as('number')}."
_ODD_NUMBERS = (
    f"If it is a quantity, {_protect_as('number')} and name the others in missing.codes, or correct them; if "
    'it is a category, the kind is "nominal", or "ordinal" with its levels.'
)


def _guess(column: _Column) -> Guess:
    profile = column.profile
    if profile.present == 0:
        return _left("empty", None, "No value at all", "Drop it.")
    if profile.distinct == 1:
        where = "wherever it is present" if profile.missing else "in all records"
        return _left("constant", None, f"The same value {where}", "It tells nothing apart.")
    if profile.type == "number":
        return _of_numbers(column)
    if profile.type == "text":
        return _of_text(column)
    if profile.type == "truth":
        return _left("truth value", "boolean", f"Truth values{_missing(profile)}", _TRUTH)
    if profile.type == "date":
        return _left("date", "date", f"Dates or times, {_distinct(profile)}", _DATE)
    return _left(
        "nested", None, f"Lists or records, {_distinct(profile)}", "Drop it or take it apart."
    )


def _of_numbers(column: _Column) -> Guess:
    profile, numbers = column.profile, column.profile.numbers
    if numbers is None:
        return _left("empty", None, "No finite number at all", "Drop it.")
    for rule in _RULES:
        found = rule(column, numbers)
        if found is not None:
            return found
    kind: Kind = "integer" if numbers.whole else "number"
    words = "whole numbers" if numbers.whole else "numbers with decimals"
    if numbers.infinite:
        return _left(
            "quantity",
            kind,
            f"A quantity with {numbers.infinite} infinite values",
            "They have no mean: replace them or leave those records out, and name it in columns.",
        )
    reason = f"A quantity: {words}, {_distinct(profile)}."
    if column.last in say.WEIGHT:
        reason += (
            " If it is the weight of a sample, name it as weight and take it out of the columns."
        )
    elif _zeros(numbers) >= _MANY_ZEROS and profile.distinct > _FEW:
        reason += f' {_zeros(numbers):.0%} are 0: kind = "spiked" keeps none apart from a little.'
    elif numbers.whole and profile.distinct <= _FEW:
        reason += " Taken as counts or amounts; if they are codes, take it out of the columns."
    return Guess("protect", "quantity", kind, reason)


def _zeros(numbers: Numbers) -> float:
    """Share of the records that are 0."""
    return float(numbers.counts[numbers.levels == 0].sum() / numbers.counts.sum())


def _two_values(column: _Column, numbers: Numbers) -> Guess | None:
    if column.profile.distinct > 2:
        return None
    return _left("code", "nominal", f"Two different numbers{_missing(column.profile)}", _CODE)


def _calendar(column: _Column, numbers: Numbers) -> Guess | None:
    """Years, months, days, hours, and dates written as one number."""
    if not numbers.whole:
        return None
    low, high = numbers.low, numbers.high
    words = f"{_distinct(column.profile)}"
    many = column.profile.present >= 20
    named_year = column.named(say.YEAR)
    if (named_year and ((low >= 1000 and high <= 2200) or (low >= 40 and high <= 99))) or (
        many and low >= 1900 and high <= 2035 and not column.named(say.MEASURE, say.COUNT)
    ):
        return _left("date", "integer", f"Years, {words}", _YEAR)
    ends = [say.PARTS_OF_DATES[word] for word in column.words if word in say.PARTS_OF_DATES]
    if any(first <= low and high <= last for first, last in ends):
        return _left("date", "integer", f"Parts of dates or times of day, {words}", _YEAR)
    levels = numbers.levels
    month, day = levels // 100 % 100, levels % 100
    dates = low >= 18000101 and high <= 21001231 and _within(month, 1, 12) and _within(day, 1, 31)
    months = low >= 180001 and high <= 210012 and _within(day, 1, 12)
    clock = low >= 0 and high <= 2400 and _within(day, 0, 59) and (levels >= 100).sum() >= 60
    if many and (dates or months or clock):
        return _left(
            "date", "integer", f"Dates or times of day written as numbers, {words}", _NO_DATE
        )
    return None


def _coordinates(column: _Column, numbers: Numbers) -> Guess | None:
    ends = [say.COORDINATE[word] for word in column.words if word in say.COORDINATE]
    inside = any(-end <= numbers.low and numbers.high <= end for end in ends)
    if not inside or numbers.whole:
        return None
    return _left(
        "place", "number", f"Coordinates of a place, {_distinct(column.profile)}", _COORDINATES
    )


def _identifiers(column: _Column, numbers: Numbers) -> Guess | None:
    """Numbers that stand for records or for what records are about."""
    if not numbers.whole:
        return None
    distinct, present = column.profile.distinct, column.profile.present
    called = column.named(say.IDENTIFIER) or (
        column.last in say.NUMBER and column.last != "numbers"
    )
    entity = column.last in say.ENTITY and numbers.low >= 1 and not column.named(say.MEASURE)
    if distinct == present:
        from_the_start = numbers.low in (0, 1)
        fact = "none twice"
        if numbers.consecutive and from_the_start and present >= 5:
            fact = "one for each record without a gap"
        elif numbers.rising and (present >= 100 or (present >= _MANY and numbers.straight > 0.99)):
            fact = "none twice and rising from row to row"
        elif present >= _MANY and from_the_start and numbers.high < 1.5 * present:
            fact = "none twice, from the first on with few gaps"
        elif not (called or entity):
            return None
        return _left("identifier", "integer", f"Whole numbers, {fact}", _DROP)
    if called and (distinct > _FEW or distinct >= _NEARLY_ALL * present):
        fact = "by their name identifiers"
    elif entity and distinct > _FEW:
        fact = "by their name those of what the records are about"
    elif distinct >= 10 and numbers.rising and _numbers_neighbours(numbers):
        fact = "each in neighbouring rows only and rising"
    else:
        return None
    return _left(
        "repeated identifier",
        "integer",
        f"Whole numbers, {_distinct(column.profile)}, {fact}",
        _UNIT,
    )


def _numbers_neighbours(numbers: Numbers) -> bool:
    """Whether rising numbers look like those of groups of rows: without a gap, or all equally often."""
    often = numbers.counts
    return (numbers.consecutive and numbers.low in (0, 1)) or bool((often == often[0]).all())


def _weights(column: _Column, numbers: Numbers) -> Guess | None:
    profile = column.profile
    if numbers.low < 0 or profile.distinct < 3:
        return None
    probability = column.named({"prob", "probability"}) and numbers.high <= 1
    called = column.named(say.WEIGHT) or probability
    if column.named(say.WEIGHT_ONLY) or (called and column.named(say.SAMPLING)):
        fact = "by its name"
    elif called and not numbers.whole and 0.99 < numbers.mean < 1.01:
        fact = "by its name and its mean of one"
    elif called and not numbers.whole and numbers.high > _SPREAD * numbers.mean:
        fact = "by its name and how much it varies"
    elif (
        profile.present >= 500
        and numbers.low > 0
        and 20 * profile.distinct <= profile.present
        and 5 * (numbers.counts >= 5).sum() >= 4 * profile.distinct
        and not column.named(say.MEASURE)
        and numbers.long_fractions > 0.5
    ):
        fact = "few fractions of many digits, each shared by many records"
    else:
        return None
    words = f"A weight, or a figure of a region or class: {fact}, {_distinct(profile)}"
    return _left("weight", "number", words, _PROBABILITY if probability else _WEIGHT)


def _codes(column: _Column, numbers: Numbers) -> Guess | None:
    """Few distinct numbers that stand for something; small counts are told from them."""
    profile = column.profile
    words = f"Whole numbers, {_distinct(profile)}"
    measured = column.named(say.MEASURE, say.COUNT)
    if numbers.whole and column.named(say.CODE):
        return _left("code", "nominal", f"{words}, by their name codes", _CODE)
    if numbers.whole and column.last in say.PLACE and numbers.low >= 1 and not measured:
        return _left("code", "nominal", f"{words}, by their name those of places", _PLACE_CODE)
    if profile.distinct == 3 < profile.present and not column.named(say.COUNTED, say.COUNT):
        return _left("code", "nominal", f"Three different numbers{_missing(profile)}", _CODE)
    if not numbers.whole:
        return None
    if column.last in say.SORT and profile.distinct <= _MANY and numbers.low >= 0:
        return _left("code", "nominal", f"{words}, by their name sorts of something", _CODE)
    if profile.distinct > _FEW:
        return None
    if column.named(say.COUNTED, say.MEASURE) or column.first in say.COUNT:
        return None
    if numbers.low in (0, 1) and numbers.high <= _FEW:
        fact = "few, and not the fewer the larger they are, as counts would be"
        return None if _falls_off(numbers) else _left("code", "nominal", f"{words}, {fact}", _CODE)
    if profile.distinct < 6 and profile.present >= _MANY:
        return _left("code", "nominal", f"{words}, each in many records", _CODE)
    return None


def _falls_off(numbers: Numbers) -> bool:
    """Whether frequencies rise to a top among the low numbers and fall to a thin end, as counts do."""
    often = numbers.counts
    least = 5 if numbers.low == 0 else 8  # answers on a scale go from 1 to 7
    top = int(np.argmax(often))
    # Neighbours of a thin end may differ by chance.
    chance = 2 * np.sqrt(often[1:] + often[:-1])
    steps = np.diff(often)
    return bool(
        len(often) >= least
        and 2 * top < len(often)
        and (steps[:top] >= -chance[:top]).all()
        and (steps[top:] <= chance[top:]).all()
        and 10 * often[-1] <= often[top]
    )


_RULES: tuple[Callable[[_Column, Numbers], Guess | None], ...] = (
    _two_values,
    _calendar,
    _coordinates,
    _weights,
    _identifiers,
    _codes,
)


def _of_text(column: _Column) -> Guess:
    profile, texts = column.profile, column.profile.texts
    assert texts is not None
    words = _distinct(profile)
    if texts.dates:
        way_out = _DATE if column.readable_dates else _NO_DATE
        return _left("date", "date", f"Dates or times written as text, {words}", way_out)
    if column.ordered:
        return _left("category", "ordinal", f"Categories in an order, {words}", _ORDERED)
    called = column.named(say.IDENTIFIER, say.NAME)
    distinct, present = profile.distinct, profile.present
    if texts.digit_codes and not (called or distinct == present):
        return _left("code", "nominal", f"Digits of one length or after a zero, {words}", _DIGITS)
    if column.named(say.CODE):
        return _left("code", "nominal", f"Codes by their name, {words}", _CATEGORY)
    if column.last in say.PLACE:
        return _left("place", "nominal", f"Places by their name, {words}", _CATEGORY)
    if texts.odd is not None and not texts.digit_codes:
        odd = f"; {texts.odd} are no numbers" if texts.odd else ""
        return _left(
            "number stored as text",
            None,
            f"Numbers stored as text, {words}{odd}",
            _ODD_NUMBERS if texts.odd else _TEXT_NUMBERS,
        )
    if present > 1 and distinct >= _NEARLY_ALL * present:
        return _left("identifier", "nominal", f"All or nearly all texts differ, {words}", _DROP)
    if distinct > _FEW and (called or 2 * distinct > present or column.last in say.ENTITY):
        return _left("repeated identifier", "nominal", f"Names or ids that repeat, {words}", _UNIT)
    return _left("category", "nominal", f"Categories, {words}", _CATEGORY)


def _left(looks_like: Looks, kind: Kind | None, fact: str, way_out: str) -> Guess:
    return Guess("known", looks_like, kind, f"{fact}. {way_out}")


def _distinct(profile: Profile) -> str:
    return f"{profile.distinct} distinct in {profile.present} records{_missing(profile)}"


def _missing(profile: Profile) -> str:
    return f", {profile.missing} missing" if profile.missing else ""


def _within(values: Any, low: float, high: float) -> bool:
    return bool((values >= low).all() and (values <= high).all())
