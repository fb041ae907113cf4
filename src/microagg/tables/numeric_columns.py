"""Which columns to work on: those asked for, or all numeric ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from microagg.errors import InputError, listed, shown
from microagg.tables.frame import Frame

__all__ = ["choose_columns"]


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
