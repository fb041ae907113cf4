"""Which columns are protected, which are left as they were, and what those may give away."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
from typing import Any

from microagg.errors import DisclosureRiskWarning, InputError, listed, shown
from microagg.tables.frames import Frame

__all__ = ["choose_columns", "warn_of_identifiers", "warn_of_numbers_as_text"]

# An untouched column with at least this share of distinct values singles records out.
_NEARLY_ALL = 0.9


def choose_columns(frame: Frame, columns: Iterable[Any] | None) -> list[Any]:
    """Return the columns to work on: those asked for, or all numeric ones."""
    if columns is None:
        index = frame.index_columns()
        chosen = [n for n in frame.names if frame.is_numeric(n) and n not in index]
        if not chosen:
            raise InputError(
                "Microaggregation needs at least one numeric column; the table has none among "
                f"{listed(frame.names)}. Convert a column to numbers first."
            )
        return chosen
    if isinstance(columns, str):
        columns = [columns]
    try:
        chosen = list(columns)
    except TypeError:
        chosen = [columns]
    if not chosen:
        raise InputError(
            "No column was named. Name at least one, or leave columns out for all numeric ones."
        )
    for name in chosen:
        if not frame.has(name):
            raise InputError(
                f"There is no column {shown(name)}; the table has {listed(frame.names, limit=40)}."
            )
    repeated = [name for name, count in Counter(chosen).items() if count > 1]
    if repeated:
        raise InputError(f"Column {shown(repeated[0])} is named twice. Name each column once.")
    return chosen


def warn_of_identifiers(frame: Frame, untouched: Iterable[Any]) -> list[Any]:
    """Warn of untouched columns whose values single records out, and return their names."""
    risky = [name for name in untouched if frame.singles_out(name, _NEARLY_ALL)]
    if frame.index_singles_out(_NEARLY_ALL):
        risky.append("(index)")
    if risky:
        warnings.warn(
            f"All or nearly all values differ in {listed(risky)}, left as in the original: such a "
            "column points to single records whatever is done to the others. Protect or drop it "
            "before release.",
            DisclosureRiskWarning,
            stacklevel=3,
        )
    return risky


def warn_of_numbers_as_text(frame: Frame, untouched: Iterable[Any]) -> None:
    """Warn of columns left as they were only because of a few values that are no numbers."""
    for name in untouched:
        odd = frame.odd_numbers(name)
        if odd is not None:
            hint = (
                " If the comma is a decimal sign, say so: --decimal ," if odd.decimal_comma else ""
            )
            warnings.warn(
                f"Column {shown(name)} was left as in the original, since it holds text, but most of "
                f"its values read as numbers ({odd.in_words()}; the first record is row 1).{hint} If "
                "it is a quantity, fix it and protect it too; name the columns to protect to go "
                "without this warning.",
                DisclosureRiskWarning,
                stacklevel=3,
            )
