"""What the columns of a table look like, and the role that each gets by default.

All open questions are decided in favour of the people in the table: identifiers, names and texts are
dropped, k counts the unit that an identifier names, and everything else is protected by its kind. Types,
value labels and measure levels of a file come first, then names and values together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from microagg.drafting import name_words as say
from microagg.drafting.computed_columns import settle_computed
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

_BATTERY = 3  # columns with the same range from which on their numbers are answers on one scale


def guess(
    frame: Any,
    *,
    k: int = 5,
    unit: Any = None,
    weight: Any = None,
    names: Collection[Any] | None = None,
    other_roles: Collection[Any] = (),
    missing_words: Sequence[str] = ("",),
) -> dict[Any, Guess]:
    """Guess what each column of a table is, and its role.

    O(n log n) for each column.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
    k : least group size
    unit, weight : columns that have this role already, so that no other gets it
    names : columns to look at, by default all; then none is found to follow from another
    other_roles : columns whose role somebody decided, from which none follows
    missing_words : texts that mean missing, such as NA in a CSV file

    Returns
    -------
    dict
        By name, in the order of the table.

    >>> import pandas as pd
    >>> found = guess(pd.DataFrame({"plz": ["01067", "80331", "01067"], "wage": [9.5, 12.25, 11.0]}))
    >>> found["plz"].looks_like, found["plz"].kind, found["wage"].role
    ('code', 'nominal', 'protect')
    """
    table = frame if isinstance(frame, Frame) else Frame(frame)
    index = set(table.index_columns())
    columns = dict(profiles(table, names, missing_words))
    # Ranges of whole numbers without a gap that several columns share, as answers do.
    often = Counter(map(_ends, columns.values()))
    batteries = {ends for ends, count in often.items() if ends and count >= _BATTERY}
    guesses = {}
    for name, profile in columns.items():
        looks = _of_column(table, name, profile, k, _ends(profile) in batteries)
        if name in index:
            fact = "The row labels of a frame of pandas"
            looks = dropped("identifier", None, fact, "they identify records.")
        guesses[name] = replace(looks, distinct=profile.distinct, present=profile.present)
    guesses = settle_weights(settle_units(table, guesses, k, unit), unit, weight)
    if names is None:
        undecided = {name: looks for name, looks in guesses.items() if name not in other_roles}
        guesses |= settle_computed(table, undecided)
    return {
        name: replace(guesses[name], distinct=profile.distinct, present=profile.present)
        for name, profile in columns.items()
    }


def _ends(profile: Profile) -> tuple[float, float] | None:
    numbers = profile.numbers
    return None if numbers is None or not numbers.consecutive else (numbers.low, numbers.high)


def _of_column(table: Frame, name: Any, profile: Profile, k: int, in_battery: bool) -> Guess:
    column = NamedProfile(profile, say.words(name), k, profile.ordered, battery=in_battery)
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
    looks = _guess(replace(column, odd=cells))
    if not looks.unreadable or cells is None or cells.row is None:
        return looks
    where = f"There are {cells.in_words()}. {cells.hint}"
    return replace(looks, action=f"{looks.action} {where}".strip())


def _guess(column: NamedProfile) -> Guess:
    profile = column.profile
    if profile.present == 0:
        return dropped("empty", None, "No value at all", "it holds no information.")
    if profile.distinct == 1 and (profile.missing or profile.type == "nested"):
        fact = f"The same value wherever it is present{missing_words(profile)}"
        return dropped("constant", None, fact, "it only shows where it is missing.")
    if profile.distinct == 1:
        why = "Kept: it is the same for everybody."
        return Guess("known", "constant", None, "The same value in all records", why)
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
