"""What the columns of a table look like, and the role that each gets by default.

All open questions are decided in favour of the people in the table: identifiers, names and texts are
dropped, k counts the unit that an identifier names, and everything else is protected by its kind. Types,
value labels and measure levels of a file come first, then names and values together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from microagg.base.formatting import plural
from microagg.drafting import name_words as say
from microagg.drafting.computed_columns import settle_computed
from microagg.drafting.guess import Guess, NamedProfile, dropped, protected
from microagg.drafting.number_columns import guess_numbers
from microagg.drafting.profile import profiles
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
    ends = {
        name: (profile.numbers.low, profile.numbers.high)
        for name, profile in columns.items()
        if profile.numbers is not None and profile.numbers.consecutive
    }
    often = Counter(ends.values())
    guesses = {}
    for name, profile in columns.items():
        in_battery = name in ends and often[ends[name]] >= _BATTERY
        column = NamedProfile(profile, say.words(name), k, profile.ordered, battery=in_battery)
        looks = _guess(table, name, column)
        if name in index:
            fact = "The row labels of a frame of pandas"
            looks = dropped("identifier", None, fact, "they identify records.")
        guesses[name] = replace(looks, distinct=profile.distinct, present=profile.present)
    guesses = settle_weights(settle_units(table, guesses, k, unit), unit, weight)
    if names is None:
        undecided = {name: looks for name, looks in guesses.items() if name not in other_roles}
        guesses |= settle_computed(table, undecided)
    return guesses


def _guess(table: Frame, name: Any, column: NamedProfile) -> Guess:
    profile, texts = column.profile, column.profile.texts
    if profile.present == 0:
        return dropped("empty", None, "No value at all", "it holds no information.")
    if profile.distinct == 1 and (profile.missing or profile.type == "nested"):
        fact = f"The same value wherever it is present{profile.missing_words}"
        return dropped("constant", None, fact, "it only shows where it is missing.")
    if profile.distinct == 1:
        why = "Kept: it is the same for everybody."
        return Guess("known", "constant", None, "The same value in all records", why)
    if profile.type == "truth":
        return protected("truth value", "boolean", f"Truth values{profile.missing_words}")
    if profile.type == "date":
        return protected("date", "date", f"Dates or times, {profile.distinct_words}")
    if profile.type == "nested":
        why = "lists and records cannot be averaged. Take it apart into columns to protect it."
        return dropped("nested", None, f"Lists or records, {profile.distinct_words}", why)
    if texts is not None:
        # Only the texts themselves tell an order, dates, and cells that are no numbers.
        with suppress(InputError):  # objects of several types have neither an order nor dates
            readable = texts.dates and dates_in_text(table.arrow_column(name)) is not None
            odd = None if texts.odd is None else table.odd_numbers(name)
            ordered = table.is_ordered(name)
            column = replace(column, ordered=ordered, readable_dates=readable, odd=odd)
    looks = guess_numbers(column) if texts is None else guess_texts(column)
    if looks.role == "protect" and looks.kind == "nominal" and column.has_too_many:
        return looks.dropped(
            f"with fewer than {plural(max(column.k, 2), 'record')} for each value on average, groups could "
            "keep few of them. Have coarser categories to protect it, as by --coarsen COLUMN=rare:20."
        )
    return looks
