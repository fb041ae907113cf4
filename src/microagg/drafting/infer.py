"""What the columns of a table look like, and the role that each gets by default.

All open questions are decided in favour of the people in the table: identifiers, names and texts are
dropped, k counts the unit that an identifier names, and everything else is protected by its kind. Types,
value labels and measure levels of a file come first, then names and values together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from microagg.drafting import name_words as say
from microagg.drafting.guess import (
    Guess,
    NamedProfile,
    distinct_words,
    dropped,
    missing_words,
    protected,
)
from microagg.drafting.number_columns import guess_numbers
from microagg.drafting.profile import Profile, profiles
from microagg.drafting.text_columns import guess_texts
from microagg.drafting.unit_and_weight import settle_units, settle_weights
from microagg.errors import InputError
from microagg.tables.dates import dates_in_text
from microagg.tables.frame import Frame
from microagg.tables.numbers_in_text import OddCells


def guess(
    frame: Any,
    *,
    k: int = 5,
    unit: Any = None,
    weight: Any = None,
    names: Collection[Any] | None = None,
    missing_words: Sequence[str] = ("",),
) -> dict[Any, Guess]:
    """Guess what each column of a table is, and its role.

    ``unit`` and ``weight`` are columns that have this role already, so that no other gets it; ``names`` the
    columns to look at, by default all; ``missing_words`` texts that mean missing, such as NA in a CSV file.
    O(n log n) for each column.

    >>> import pandas as pd
    >>> found = guess(pd.DataFrame({"plz": ["01067", "80331", "01067"], "wage": [9.5, 12.25, 11.0]}))
    >>> found["plz"].looks_like, found["plz"].kind, found["wage"].role
    ('code', 'nominal', 'protect')
    """
    table = frame if isinstance(frame, Frame) else Frame(frame)
    index = set(table.index_columns())
    found, counts = {}, {}
    for name, profile in profiles(table, names, missing_words):
        counts[name] = profile.distinct, profile.present
        if name in index:
            found[name] = dropped(
                "identifier", None, "The row labels of a frame of pandas", "they identify records."
            )
        else:
            found[name] = _of_column(table, name, profile, k)
    found = settle_weights(settle_units(table, found, k, unit), unit, weight)
    return {
        name: replace(found[name], distinct=distinct, present=present)
        for name, (distinct, present) in counts.items()
    }


def _of_column(table: Frame, name: Any, profile: Profile, k: int) -> Guess:
    column = NamedProfile(profile, say.words(name), k, profile.ordered)
    if profile.type != "text" or profile.texts is None:
        return _guess(column)
    try:
        readable = profile.texts.dates and dates_in_text(table.arrow_column(name)) is not None
        column = replace(column, ordered=table.is_ordered(name), readable_dates=readable)
    except InputError:  # objects of several types have neither an order nor dates
        return _guess(column)
    if profile.texts.odd is None:
        return _guess(column)
    cells = table.odd_numbers(name)
    found = _guess(replace(column, odd=cells))
    return _with_place(found, cells) if found.looks_like == "number stored as text" else found


def _with_place(found: Guess, odd: OddCells | None) -> Guess:
    """Add where the texts are that are no numbers, in a column of numbers."""
    if odd is None or odd.row is None:
        return found
    return replace(found, action=f"{found.action} There are {odd.in_words()}. {odd.hint}".strip())


def _guess(column: NamedProfile) -> Guess:
    profile = column.profile
    if profile.present == 0:
        return dropped("empty", None, "No value at all", "it holds no information.")
    if profile.distinct == 1:
        return _constant(profile)
    if profile.type == "number":
        return guess_numbers(column)
    if profile.type == "text":
        return guess_texts(column)
    if profile.type == "truth":
        return protected("truth value", "boolean", f"Truth values{missing_words(profile)}")
    if profile.type == "date":
        return protected("date", "date", f"Dates or times, {distinct_words(profile)}")
    why = "lists and records cannot be averaged. Take it apart into columns to protect it."
    return dropped("nested", None, f"Lists or records, {distinct_words(profile)}", why)


def _constant(profile: Profile) -> Guess:
    if not profile.missing and profile.type != "nested":
        return Guess(
            "known",
            "constant",
            None,
            "The same value in all records",
            "Kept: it is the same for everybody.",
        )
    fact = f"The same value wherever it is present{missing_words(profile)}"
    return dropped("constant", None, fact, "it only shows where it is missing.")
