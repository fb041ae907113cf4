"""What a column of texts is: categories, codes, dates, places, numbers, or names and free text."""

from __future__ import annotations

from dataclasses import replace

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
from microagg.drafting.missing_codes import says_missing
from microagg.drafting.number_columns import is_scale, is_spiked, thins_out
from microagg.drafting.orders import is_apart, order_of
from microagg.tables.numbers_in_text import MISSING_WORDS

_NEARLY_ALL = 0.9  # a name may repeat in a few records
_CLASSIFIES = 60  # records for each id, beyond which ids of things are categories
_WORDY = 8  # words from which on a text is written freely

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
    called = column.named(say.IDENTIFIER) or _is_of_people(column)
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
    if column.named(say.CODE):
        return _code(column, f"Codes by their name, {words}")
    if column.last in say.PLACE:
        return too_many(column, protected("place", "nominal", f"Places by their name, {words}"))
    people = column.last in {*say.HOUSEHOLDS, *say.UNITS}
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
        levels = order_of([text for text in texts.levels if text not in codes])
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
    odd = f", {texts.odd} are no numbers" if texts.odd else ""
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
