"""What a column of texts is: categories, codes, dates, places, numbers, or names and free text.

Some texts have an order: words of a scale ("low", "middle", "high") and ranges of numbers ("18-24"). The
words stand in ``rules.toml``. An order is taken only if it places every text of a column, each at another
place: with one text more that nobody can place, the column is nominal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from microagg.drafting import name_words as say
from microagg.drafting.guess import (
    FEW,
    IDENTIFIES,
    MANY,
    Guess,
    Kind,
    Looks,
    NamedProfile,
    dropped,
    protected,
)
from microagg.drafting.name_words import LANGUAGES, RULES, plain
from microagg.drafting.number_columns import is_scale, is_spiked, says_missing, thins_out
from microagg.tables.numbers_in_text import MISSING_WORDS

_NEARLY_ALL = 0.9  # a name may repeat in a few records
_CLASSIFIES = 60  # records for each id, beyond which ids of things are categories
_WORDY = 8  # words from which on a text is written freely

_FEWEST = 3  # levels: two have no middle, so that their order makes no difference
_NUMBER = re.compile(r"\d{1,3}(?:[,.]\d{3})+(?![\d])|\d+(?:\.\d+)?")
_ITEM = re.compile(r"^\(?\d+[.):] +")  # the number of an answer: "1. < HS Grad"
_AMOUNT = re.compile(r"\d+ ?([a-z]{2,})")
_QUARTER = re.compile(r"((?:1[89]|20)\d\d)(?: ?[Qq]|:| ?: ?Q)([1-4])")
_CLOCK = re.compile(r"(1[0-2]|0?[1-9])(?::([0-5]\d))? ?([ap])\.?m\.?")
_THOUSANDS = {"k": 1e3, "m": 1e6}
_UNITS = re.compile(rf"[$€£%]|\b(?:{RULES['ranges']['units']})\b")

_TEXT = "names and texts identify single records. renumber puts random numbers in its place."


def guess_texts(column: NamedProfile) -> Guess:
    """Guess what a column of texts is, or of categories by its type."""
    texts = column.texts
    assert texts is not None
    words, distinct, present = column.distinct_words, column.distinct, column.present
    if texts.dates:
        return _dates(column)
    if column.ordered:
        return protected("category", "ordinal", f"Categories in an order, {words}")
    in_order = _in_order(column)
    if in_order is not None:
        return in_order
    is_id = column.named(say.IDENTIFIER)
    # The id of a sort of things, such as species, of which each stands in many records.
    is_sort = is_id and column.named(say.THINGS) and _classifies(column)
    # The name of a clinic is a category.
    others = {word for word in column.words if not word.isdigit()} - say.NAME
    of_people = others <= {*say.PERSONAL, *say.HOUSEHOLDS, *say.UNITS}
    called = (is_id and not is_sort) or (column.named(say.NAME) and of_people)
    if not column.categorical:
        if texts.digit_codes and not (called or distinct == present):
            return _code(column, f"Digits of one length or after a zero, {words}")
        if texts.odd is not None and not texts.digit_codes and not column.named(say.CODE):
            return _numbers(column)
    if present > 1 and distinct >= _NEARLY_ALL * present:
        if present <= FEW:  # too few to tell
            return protected("category", "nominal", f"Categories, {words}")
        fact = f"All or nearly all texts differ, {words}"
        if is_id or texts.digit_codes:
            return dropped("identifier", "nominal", fact, IDENTIFIES)
        return dropped("name or text", "nominal", fact, _TEXT)
    if column.named(say.CODE) or is_sort:
        return _code(column, f"Codes by their name, {words}")
    if column.last in say.PLACE:
        return protected("place", "nominal", f"Places by their name, {words}")
    people = column.last in {*say.HOUSEHOLDS, *say.UNITS}
    if column.last in say.WITH_DIGITS:
        people = texts.with_digits
    if distinct > FEW and (is_id or people) and not _classifies(column):
        return Guess("unit", "repeated identifier", "nominal", f"Ids that repeat, {words}")
    if distinct > FEW and (called or 2 * distinct > present or texts.longest >= _WORDY):
        return dropped("name or text", "nominal", f"Names or texts that repeat, {words}", _TEXT)
    return protected("category", "nominal", f"Categories, {words}")


def _in_order(column: NamedProfile) -> Guess | None:
    """Guess texts whose order is known; words for missing values among them are codes."""
    texts = column.texts
    assert texts is not None
    beginnings = tuple(_phrases("apart_beginnings"))  # such as "did not drive"
    apart = tuple(
        text
        for text in texts.levels
        if says_missing(text)
        or (key := _key(text)) in _phrases("apart")
        or key.startswith(beginnings)
    )
    for codes in ((), apart):
        levels = order_of([text for text in texts.levels if text not in codes], column.words)
        if levels is not None:
            fact = f"Texts that have an order, {column.distinct_words}"
            hint = "The order that was taken is in levels."
            if codes:
                hint += " Words without a place in it are kept apart (missing.codes)."
            return replace(protected("category", "ordinal", fact, hint), levels=levels, codes=codes)
    return None


def _classifies(column: NamedProfile) -> bool:
    """Return whether each id of a thing stands in many records, so that ids are categories."""
    people = column.named(say.HOUSEHOLDS, say.UNITS)
    return not people and column.present > _CLASSIFIES * column.distinct


def _code(column: NamedProfile, fact: str) -> Guess:
    few = column.texts.levels if column.texts else ()  # none are listed of many
    hint = 'With kind = "hierarchy" the first digits or letters can stand for larger groups.'
    has_digits = not few or any(re.search(r"\d", text) for text in few)
    return protected("code", "nominal", fact, hint if has_digits else "")


def _dates(column: NamedProfile) -> Guess:
    fact = f"Dates or times written as text, {column.distinct_words}"
    if column.readable_dates:
        return protected("date", "date", fact)
    if column.distinct <= MANY and not column.has_too_many:
        return protected("date", "nominal", fact)
    way_out = "they cannot be read as dates in one way. Write them as 2024-03-31 to protect them."
    return replace(dropped("date", "date", fact, way_out), unreadable=True)


def _numbers(column: NamedProfile) -> Guess:
    """Numbers stored as text, perhaps with words for missing values."""
    texts, cells = column.texts, column.odd
    assert texts is not None
    assert texts.odd is not None
    looks: Looks = "number stored as text"
    odd = f", {texts.odd:,} are no numbers" if texts.odd else ""
    fact = f"Numbers stored as text, {column.distinct_words}{odd}"
    codes = tuple(word for word in texts.odd_words if word not in MISSING_WORDS)
    apart = "The words among them are taken as missing (missing.codes)." if codes else ""
    numbers = texts.numbers
    if numbers is not None and len(numbers.levels) <= FEW:
        scale_or_counts = ""
        if is_scale(column, numbers):
            scale_or_counts = "A scale without a gap."
        elif thins_out(numbers):
            scale_or_counts = "Counts: larger ones are rarer."
        if scale_or_counts and (texts.odd == 0 or texts.odd_words):
            levels = sorted(
                (text for text in texts.levels if text.strip() not in texts.odd_words),
                key=lambda text: float(text.replace(",", ".")),
            )
            ordinal = protected(looks, "ordinal", fact, f"{scale_or_counts} {apart}".strip())
            return replace(ordinal, levels=tuple(levels), codes=codes)
        return protected(looks, "nominal", fact, 'If it is a quantity, say kind = "number".')
    # All texts are numbers, except words that stand for missing values.
    if cells is not None and (cells.row is None or (texts.odd_words and cells.count <= texts.odd)):
        kind: Kind = "spiked" if numbers is not None and is_spiked(numbers) else "number"
        return replace(protected(looks, kind, fact, apart), codes=codes)
    if 2 * texts.odd > column.present:  # as many words as numbers
        return protected("category", "nominal", f"Categories, {column.distinct_words}")
    way_out = (
        "cells that are no numbers cannot be averaged. Correct them, or name them in missing.codes with "
        'kind = "number"; for categories say kind = "nominal".'
    )
    if cells is not None and cells.row is not None:
        way_out += f" There are {cells.in_words()}. {cells.hint}"
    return replace(dropped(looks, None, fact, way_out.strip()), unreadable=True)


def order_of(texts: Sequence[str], called: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Return texts from the lowest to the highest; None if they have no order that the table knows.

    ``texts`` are distinct; ``called`` has the words of the column's name, under which alone some orders hold.

    >>> order_of(["high", "low", "middle"])
    ('low', 'middle', 'high')
    >>> order_of(["65+", "18-24", "25-64", "< 18"])
    ('< 18', '18-24', '25-64', '65+')
    >>> order_of(["1980:1", "1979:4", "1980 Q2"])
    ('1979:4', '1980:1', '1980 Q2')
    >>> order_of(["A", "B", "C"], called=["dose"])
    ('A', 'B', 'C')
    >>> order_of(["red", "green", "blue"])
    """
    if len(texts) < _FEWEST:
        return None
    keys = [" ".join(_key(text).replace("_", " ").split()) for text in texts]
    ways: list[Sequence[Any]] = [
        [place_of.get(key) for key in keys]
        for names, place_of in _scales()
        if (not names or names & set(called)) and not all(key.isdecimal() for key in keys)
    ]  # numbers alone may be codes
    quarters = [_QUARTER.fullmatch(text.strip()) for text in texts]
    ways.append([time and (float(time[1]), float(time[2])) for time in quarters])
    ways += [[_clock(text) for text in texts], _ranges(texts)]
    for places in ways:
        if None not in places and len(set(places)) == len(texts):
            return tuple(text for _, text in sorted(zip(places, texts, strict=True)))
    return None


def _key(text: str) -> str:
    """Return a text as the table writes it: small letters, no accents, one blank between words."""
    without_number = _ITEM.sub("", plain(text).lower().strip())
    return " ".join(without_number.replace("’", "'").split())


@cache
def _scales() -> tuple[tuple[frozenset[str], Mapping[str, int]], ...]:
    """Return the place of each text in each order of each language, and the names that the order needs."""
    scales = []
    for entry in RULES["orders"]:
        for language in LANGUAGES:
            places = [place.split("|") for place in entry.get(language, "").split(";")]
            place_of = {_key(text): at for at, same in enumerate(places) for text in same}
            scales.append((frozenset(entry.get("called", "").split()), place_of))
    return tuple(scales)


def _clock(text: str) -> tuple[float, ...] | None:
    """Return the hour and the minute of "2am" or "10:30 p.m."; None if a text is no such time."""
    time = _CLOCK.fullmatch(_key(text))
    if time is None:
        return None
    return float(time[1]) % 12 + 12 * (time[3] == "p"), float(time[2] or 0)


def _ranges(texts: Sequence[str]) -> list[tuple[float, float] | None]:
    """Return the ends of ranges of numbers that do not overlap; None for all if texts are no such ranges."""
    bare = [_ITEM.sub("", text.strip()) for text in texts]
    letters = {re.split(r"[^A-Za-z]", text)[0] for text in bare}
    shared = len(letters.pop()) if len(letters) == 1 else 0  # the E of E10_49 and E1000
    ranges = [_range(text[shared:]) for text in bare]
    ordered = sorted(ends for ends in ranges if ends is not None)
    # Numbers of the same thing: "0blanks", "1blank".
    amounts = [_AMOUNT.fullmatch(_key(text)) for text in bare]
    things = {amount[1].removesuffix("s") if amount else None for amount in amounts}
    are_amounts = len(things) == 1 and None not in things
    if any(after[0] < before[1] for before, after in pairwise(ordered)) or (
        all(low == high for low, high in ordered) and not are_amounts
    ):
        return [None]
    return ranges


def _range(text: str) -> tuple[float, float] | None:
    """Return the ends of a range: of "18-24", "under 5", "65 and over", "[10,20)", "none", or one number.

    >>> _range("5,200 to 10,400"), _range("< 5"), _range("65 and over"), _range("none"), _range("red")
    ((5200.0, 10400.0), (-inf, 5.0), (65.0, inf), (-inf, -inf), None)
    """
    key = _key(text)
    if key in _phrases("none"):
        return -math.inf, -math.inf
    bounds = re.fullmatch(r"[\[(]\s*(-?[\d.]+|-inf)\s*[,;]\s*(-?[\d.]+|inf)\s*[\])]", key)
    if bounds:
        return float(bounds[1]), float(bounds[2])
    numbers = [_value(match, key) for match in _NUMBER.finditer(key)]
    if re.search(r"(?<![\d.,])0\d", key):  # codes after a zero
        return None
    around = [" ".join(_UNITS.sub(" ", part).split()) for part in _NUMBER.split(key)]
    if len(numbers) == 1:
        (before, after), above = around, _phrases("above")
        if before in _phrases("below"):
            return -math.inf, numbers[0]
        if before in above or after in above or after.endswith(tuple(f" {w}" for w in above)):
            return numbers[0], math.inf
        return (numbers[0], numbers[0]) if not before and len(after.split()) <= 1 else None
    if len(numbers) == 2 and re.search(r"\d\s?[km]$", key) and not re.search(r"\d\s?[km].*\d", key):
        numbers[0] *= _THOUSANDS[key[-1]]  # 15 to 24k
    if len(numbers) != 2 or numbers[0] >= numbers[1] or any(c.isalpha() for c in around[0]):
        return None
    return (numbers[0], numbers[1]) if around[1] in _phrases("between") else None


def _value(match: re.Match[str], text: str) -> float:
    """Return a number of a text: commas or points before three digits part thousands, k and m multiply."""
    digits = match[0]
    if re.fullmatch(r"\d{1,3}([,.]\d{3})+", digits):
        digits = re.sub(r"[,.]", "", digits)
    after = re.match(r"\s?([km])\b", text[match.end() :])
    return float(digits) * (_THOUSANDS[after[1]] if after else 1.0)


@cache
def _phrases(which: str) -> frozenset[str]:
    """Return the phrases of an entry of the table about ranges."""
    return frozenset(plain(phrase).lower() for phrase in RULES["ranges"][which].split("|"))
