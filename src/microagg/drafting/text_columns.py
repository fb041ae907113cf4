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

from microagg.drafting import name_words as say
from microagg.drafting.guess import (
    FEW,
    IDENTIFIES,
    MANY,
    Guess,
    Kind,
    Looks,
    NamedProfile,
    distinct_words,
    dropped,
    protected,
    too_many,
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

_TEXT = "names and texts identify single records. renumber puts random numbers in its place."


def guess_texts(column: NamedProfile) -> Guess:
    """Guess what a column of texts is, or of categories by its type."""
    profile, texts = column.profile, column.profile.texts
    assert texts is not None
    words = distinct_words(profile)
    distinct, present = profile.distinct, profile.present
    if texts.dates:
        return _dates(column)
    if column.ordered:
        return protected("category", "ordinal", f"Categories in an order, {words}")
    in_order = _in_order(column)
    if in_order is not None:
        return in_order
    # The id of a sort of things, such as species, of which each stands in many records.
    is_sort = column.named(say.IDENTIFIER) and column.named(say.THINGS) and _classifies(column)
    called = (column.named(say.IDENTIFIER) and not is_sort) or _is_of_people(column)
    if not profile.categorical:
        if texts.digit_codes and not (called or distinct == present):
            return _code(column, f"Digits of one length or after a zero, {words}")
        if texts.odd is not None and not texts.digit_codes and not column.named(say.CODE):
            return _numbers(column)
    if present > 1 and distinct >= _NEARLY_ALL * present:
        if present <= FEW:  # too few to tell
            return too_many(column, protected("category", "nominal", f"Categories, {words}"))
        fact = f"All or nearly all texts differ, {words}"
        if column.named(say.IDENTIFIER) or texts.digit_codes:
            return dropped("identifier", "nominal", fact, IDENTIFIES)
        return dropped("name or text", "nominal", fact, _TEXT)
    if column.named(say.CODE) or is_sort:
        return _code(column, f"Codes by their name, {words}")
    if column.last in say.PLACE:
        return too_many(column, protected("place", "nominal", f"Places by their name, {words}"))
    people = column.last in {*say.HOUSEHOLDS, *say.UNITS}
    if column.last in say.WITH_DIGITS:
        people = texts.with_digits
    if distinct > FEW and (column.named(say.IDENTIFIER) or people) and not _classifies(column):
        return Guess("unit", "repeated identifier", "nominal", f"Ids that repeat, {words}")
    if distinct > FEW and (called or 2 * distinct > present or texts.longest >= _WORDY):
        return dropped("name or text", "nominal", f"Names or texts that repeat, {words}", _TEXT)
    return too_many(column, protected("category", "nominal", f"Categories, {words}"))


def _in_order(column: NamedProfile) -> Guess | None:
    """Guess texts whose order is known; words for missing values among them are codes."""
    texts = column.profile.texts
    assert texts is not None
    apart = tuple(text for text in texts.levels if says_missing(text) or is_apart(text))
    for codes in ((), apart):
        levels = order_of([text for text in texts.levels if text not in codes], column.words)
        if levels is not None:
            fact = f"Texts that have an order, {distinct_words(column.profile)}"
            hint = "The order that was taken is in levels."
            if codes:
                hint += " Words without a place in it are kept apart (missing.codes)."
            return replace(protected("category", "ordinal", fact, hint), levels=levels, codes=codes)
    return None


def _is_of_people(column: NamedProfile) -> bool:
    """Return whether the column is called a name of people; the name of a clinic is a category."""
    others = [word for word in column.words if word not in say.NAME and not word.isdigit()]
    known = {*say.PERSONAL, *say.HOUSEHOLDS, *say.UNITS}
    return column.named(say.NAME) and all(word in known for word in others)


def _classifies(column: NamedProfile) -> bool:
    """Return whether each id of a thing stands in many records, so that ids are categories."""
    profile = column.profile
    people = column.named(say.HOUSEHOLDS, say.UNITS)
    return not people and profile.present > _CLASSIFIES * profile.distinct


def _code(column: NamedProfile, fact: str) -> Guess:
    texts, hint = column.profile.texts, ""
    few = () if texts is None else texts.levels  # none are listed of many
    if not few or any(re.search(r"\d", text) for text in few):
        hint = 'With kind = "hierarchy" the first digits or letters can stand for larger groups.'
    return too_many(column, protected("code", "nominal", fact, hint))


def _dates(column: NamedProfile) -> Guess:
    fact = f"Dates or times written as text, {distinct_words(column.profile)}"
    if column.readable_dates:
        return protected("date", "date", fact)
    as_categories = too_many(column, protected("date", "nominal", fact))
    if as_categories.role == "protect" and column.profile.distinct <= MANY:
        return as_categories
    way_out = "they cannot be read as dates in one way. Write them as 2024-03-31 to protect them."
    return replace(dropped("date", "date", fact, way_out), unreadable=True)


def _numbers(column: NamedProfile) -> Guess:
    """Numbers stored as text, perhaps with words for missing values."""
    profile, texts = column.profile, column.profile.texts
    assert texts is not None
    looks: Looks = "number stored as text"
    odd = f", {texts.odd:,} are no numbers" if texts.odd else ""
    fact = f"Numbers stored as text, {distinct_words(profile)}{odd}"
    codes = tuple(word for word in texts.odd_words if word not in MISSING_WORDS)
    apart = "The words among them are taken as missing (missing.codes)." if codes else ""
    numbers = texts.numbers
    if numbers is not None and len(numbers.levels) <= FEW:
        readable = texts.odd == 0 or bool(texts.odd_words)
        scale_or_counts = "A scale without a gap." if is_scale(column, numbers) else ""
        if not scale_or_counts and thins_out(numbers):
            scale_or_counts = "Counts: larger ones are rarer."
        if readable and scale_or_counts:
            levels = sorted(
                (text for text in texts.levels if text.strip() not in texts.odd_words),
                key=lambda text: float(text.replace(",", ".")),
            )
            ordinal = protected(looks, "ordinal", fact, f"{scale_or_counts} {apart}".strip())
            return replace(ordinal, levels=tuple(levels), codes=codes)
        hint = 'If it is a quantity, say kind = "number".'
        return too_many(column, protected(looks, "nominal", fact, hint))
    if column.reads_as_numbers:
        kind: Kind = "spiked" if numbers is not None and is_spiked(numbers) else "number"
        return replace(protected(looks, kind, fact, apart), codes=codes)
    if 2 * (texts.odd or 0) > profile.present:  # as many words as numbers
        return too_many(
            column, protected("category", "nominal", f"Categories, {distinct_words(profile)}")
        )
    way_out = (
        "cells that are no numbers cannot be averaged. Correct them, or name them in missing.codes with "
        'kind = "number"; for categories say kind = "nominal".'
    )
    return replace(dropped(looks, None, fact, way_out), unreadable=True)


def is_apart(text: str) -> bool:
    """Return whether a text has no place in any order, such as "other" or "did not drive".

    >>> is_apart("Other"), is_apart("did not drive"), is_apart("low")
    (True, True, False)
    """
    key, rules = _key(text), RULES["ranges"]
    return key in rules["apart"].split("|") or key.startswith(
        tuple(rules["apart_beginnings"].split("|"))
    )


def order_of(texts: Sequence[str], called: Sequence[str] = ()) -> tuple[str, ...] | None:
    """Return texts from the lowest to the highest; None if they have no order that the table knows.

    Parameters
    ----------
    texts
        The distinct texts of a column.
    called
        The words of its name; some orders hold only under certain names.

    Examples
    --------
    >>> order_of(["high", "low", "middle"])
    ('low', 'middle', 'high')
    >>> order_of(["65+", "18-24", "25-64", "< 18"])
    ('< 18', '18-24', '25-64', '65+')
    >>> order_of(["1980:1", "1979:4", "1980 Q2"])
    ('1979:4', '1980:1', '1980 Q2')
    >>> order_of(["2am", "10pm", "10am", "2pm"])
    ('2am', '10am', '2pm', '10pm')
    >>> order_of(["A", "B", "C"], called=["dose"])
    ('A', 'B', 'C')
    >>> order_of(["red", "green", "blue"])
    """
    if len(texts) < _FEWEST:
        return None
    ways = (_quarters(texts), _times_of_day(texts), _places_by_range(texts))
    for places in (*_places_by_words(texts, called), *ways):
        if places is not None and len(set(places)) == len(texts):
            ranked = sorted(zip(places, texts, strict=True))
            return tuple(text for _, text in ranked)
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


def _places_by_words(
    texts: Sequence[str], called: Sequence[str]
) -> list[list[tuple[float, float]] | None]:
    """Return where an order of the table places texts, for each order that places all of them."""
    keys = [" ".join(_key(text).replace("_", " ").split()) for text in texts]
    if all(key.isdecimal() for key in keys):  # numbers alone may be codes
        return []
    return [
        [(scale[key], 0.0) for key in keys]
        for names, scale in _scales()
        if all(key in scale for key in keys) and (not names or names & set(called))
    ]


def _quarters(texts: Sequence[str]) -> list[tuple[float, float]] | None:
    """Return years and quarters, such as those of "1980:1" and "1980 Q2"; None if texts are no such times."""
    times = [_QUARTER.fullmatch(text.strip()) for text in texts]
    known = [(float(time[1]), float(time[2])) for time in times if time is not None]
    return known if len(known) == len(texts) else None


def _times_of_day(texts: Sequence[str]) -> list[tuple[float, float]] | None:
    """Return hours and minutes, such as those of "2am" and "10:30 p.m."; None if texts are no such times."""
    times = [_CLOCK.fullmatch(_key(text)) for text in texts]
    known = [
        (float(time[1]) % 12 + 12 * (time[3] == "p"), float(time[2] or 0))
        for time in times
        if time is not None
    ]
    return known if len(known) == len(texts) else None


def _places_by_range(texts: Sequence[str]) -> list[tuple[float, float]] | None:
    """Return the ends of ranges of numbers that do not overlap; None if texts are no such ranges."""
    bare = [_ITEM.sub("", text.strip()) for text in texts]
    letters = {re.split(r"[^A-Za-z]", text)[0] for text in bare}
    shared = len(letters.pop()) if len(letters) == 1 else 0  # the E of E10_49 and E1000
    ranges = [_range(text[shared:]) for text in bare]
    known = [ends for ends in ranges if ends is not None]
    if len(known) < len(texts):
        return None
    if all(low == high for low, high in known) and not _are_amounts(bare):
        return None
    ordered = sorted(known)
    if any(after[0] < before[1] for before, after in pairwise(ordered)):
        return None
    return known


def _are_amounts(texts: Sequence[str]) -> bool:
    """Return whether texts are numbers of the same thing: "0blanks", "1blank"."""
    units = {
        match[1].removesuffix("s") for text in texts if (match := _AMOUNT.fullmatch(_key(text)))
    }
    return len(units) == 1 and all(_AMOUNT.fullmatch(_key(text)) for text in texts)


def _range(text: str) -> tuple[float, float] | None:
    """Return the ends of a range: of "18-24", "under 5", "65 and over", "[10,20)", "none", or one number.

    >>> _range("5,200 to 10,400"), _range("< 5"), _range("65 and over"), _range("none"), _range("red")
    ((5200.0, 10400.0), (-inf, 5.0), (65.0, inf), (-inf, -inf), None)
    """
    key = _key(text)
    if key in RULES["ranges"]["none"].split("|"):
        return -math.inf, -math.inf
    bounds = re.fullmatch(r"[\[(]\s*(-?[\d.]+|-inf)\s*[,;]\s*(-?[\d.]+|inf)\s*[\])]", key)
    if bounds:
        return float(bounds[1]), float(bounds[2])
    numbers = [_value(match, key) for match in _NUMBER.finditer(key)]
    if re.search(r"(?<![\d.,])0\d", key):  # codes after a zero
        return None
    around = [" ".join(part.split()) for part in _NUMBER.split(key)]
    if len(numbers) == 1:
        return _half_open(numbers[0], around)
    if len(numbers) == 2 and re.search(r"\d\s?[km]$", key) and not re.search(r"\d\s?[km].*\d", key):
        numbers[0] *= _THOUSANDS[key[-1]]  # 15 to 24k
    if len(numbers) != 2 or numbers[0] >= numbers[1] or _letters(around[0]):
        return None
    between = _without_unit(around[1])
    return (numbers[0], numbers[1]) if between in _between() else None


def _value(match: re.Match[str], text: str) -> float:
    """Return a number of a text: commas or points before three digits part thousands, k and m multiply."""
    digits = match[0]
    if re.fullmatch(r"\d{1,3}([,.]\d{3})+", digits):
        digits = re.sub(r"[,.]", "", digits)
    after = re.match(r"\s?([km])\b", text[match.end() :])
    return float(digits) * (_THOUSANDS[after[1]] if after else 1.0)


def _half_open(number: float, around: Sequence[str]) -> tuple[float, float] | None:
    """Return the range that words before and after one number make."""
    before, after = (_without_unit(part) for part in around)
    below, above = _phrases("below"), _phrases("above")
    if before in below:
        return -math.inf, number
    if before in above or after in above or any(after.endswith(" " + words) for words in above):
        return number, math.inf
    return (number, number) if not before and len(after.split()) <= 1 else None


def _without_unit(text: str) -> str:
    """Remove signs of money, percent and unit words before or after the words of a range."""
    bare = re.sub(r"[$€£%]|\b(?:usd|eur|euro|euros|k|m)\b", " ", text)
    bare = re.sub(
        r"\b(?:years?|yrs?|jahren?|ans|anos|old|persons?|people|hours?|days?)\b", " ", bare
    )
    return " ".join(bare.split())


def _letters(text: str) -> bool:
    return any(c.isalpha() for c in _without_unit(text))


@cache
def _between() -> frozenset[str]:
    return frozenset(plain(word) for word in RULES["ranges"]["between"].split())


@cache
def _phrases(which: str) -> frozenset[str]:
    """Return phrases that stand before or after a number."""
    return frozenset(plain(phrase).lower() for phrase in RULES["ranges"][which].split("|"))
