"""Texts that have an order: words of a scale ("low", "middle", "high") and ranges of numbers ("18-24").

The words stand in ``rules.toml``. An order is taken only if it places every text of a column, each at another
place: with one text more that nobody can place, the column is nominal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

from microagg.drafting.name_words import LANGUAGES, RULES, plain

_FEWEST = 3  # levels: two have no middle, so that their order makes no difference
_NUMBER = re.compile(r"\d{1,3}(?:[,.]\d{3})+(?![\d])|\d+(?:\.\d+)?")
_ITEM = re.compile(r"^\(?\d+[.):] +")  # the number of an answer: "1. < HS Grad"
_QUARTER = re.compile(r"((?:1[89]|20)\d\d)(?: ?[Qq]|:| ?: ?Q)([1-4])")
_THOUSANDS = {"k": 1e3, "m": 1e6}


def is_apart(text: str) -> bool:
    """Return whether a text has no place in any order, such as "other" or "did not drive".

    >>> is_apart("Other"), is_apart("did not drive"), is_apart("low")
    (True, True, False)
    """
    key, rules = _key(text), RULES["ranges"]
    return key in rules["apart"].split("|") or key.startswith(
        tuple(rules["apart_beginnings"].split("|"))
    )


def order_of(texts: Sequence[str]) -> tuple[str, ...] | None:
    """Return texts from the lowest to the highest; None if they have no order that the table knows.

    Parameters
    ----------
    texts
        The distinct texts of a column.

    Examples
    --------
    >>> order_of(["high", "low", "middle"])
    ('low', 'middle', 'high')
    >>> order_of(["65+", "18-24", "25-64", "< 18"])
    ('< 18', '18-24', '25-64', '65+')
    >>> order_of(["1980:1", "1979:4", "1980 Q2"])
    ('1979:4', '1980:1', '1980 Q2')
    >>> order_of(["red", "green", "blue"])
    """
    if len(texts) < _FEWEST:
        return None
    for places in (*_places_by_words(texts), _quarters(texts), _places_by_range(texts)):
        if places is not None and len(set(places)) == len(texts):
            ranked = sorted(zip(places, texts, strict=True))
            return tuple(text for _, text in ranked)
    return None


def _key(text: str) -> str:
    """Return a text as the table writes it: small letters, no accents, one blank between words."""
    without_number = _ITEM.sub("", plain(text).lower().strip())
    return " ".join(without_number.replace("’", "'").split())


@cache
def _scales() -> tuple[Mapping[str, int], ...]:
    """Return the place of each text in each order of each language."""
    scales = []
    for entry in RULES["orders"]:
        for language in LANGUAGES:
            places = [place.split("|") for place in entry.get(language, "").split(";")]
            scales.append({_key(text): at for at, same in enumerate(places) for text in same})
    return tuple(scales)


def _places_by_words(texts: Sequence[str]) -> list[list[tuple[float, float]] | None]:
    """Return where an order of the table places texts, for each order that places all of them."""
    keys = [" ".join(_key(text).replace("_", " ").split()) for text in texts]
    if all(key.isdecimal() for key in keys):  # numbers alone may be codes
        return []
    return [
        [(scale[key], 0.0) for key in keys]
        for scale in _scales()
        if all(key in scale for key in keys)
    ]


def _quarters(texts: Sequence[str]) -> list[tuple[float, float]] | None:
    """Return years and quarters, such as those of "1980:1" and "1980 Q2"; None if texts are no such times."""
    times = [_QUARTER.fullmatch(text.strip()) for text in texts]
    known = [(float(time[1]), float(time[2])) for time in times if time is not None]
    return known if len(known) == len(texts) else None


def _places_by_range(texts: Sequence[str]) -> list[tuple[float, float]] | None:
    """Return the ends of ranges of numbers that do not overlap; None if texts are no such ranges."""
    bare = [_ITEM.sub("", text.strip()) for text in texts]
    letters = {re.split(r"[^A-Za-z]", text)[0] for text in bare}
    shared = len(letters.pop()) if len(letters) == 1 else 0  # the E of E10_49 and E1000
    ranges = [_range(text[shared:]) for text in bare]
    known = [ends for ends in ranges if ends is not None]
    if len(known) < len(texts) or all(low == high for low, high in known):
        return None
    ordered = sorted(known)
    if any(after[0] < before[1] for before, after in pairwise(ordered)):
        return None
    return known


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
