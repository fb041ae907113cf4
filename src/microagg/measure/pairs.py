"""Bring an original and its protected twin side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from microagg.errors import InputError, listed
from microagg.groups import Floats
from microagg.tables.frames import Frame, is_frame
from microagg.tables.matrix import as_matrix, columns_matrix
from microagg.tables.roles import choose_columns

__all__ = ["Pair", "pair"]


@dataclass(frozen=True)
class Pair:
    """The same columns of both tables, as matrices of the same shape."""

    names: list[Any]
    original: Floats
    protected: Floats


def pair(original: Any, protected: Any, columns: Iterable[Any] | None = None) -> Pair:
    """Match two tables by column name and row position."""
    if is_frame(original) != is_frame(protected):
        raise InputError("Compare two frames or two arrays; one of each was given.")
    if is_frame(original):
        before, after = Frame(original), Frame(protected)
        if columns is None:
            names = [
                n for n in choose_columns(before, None) if after.has(n) and after.is_numeric(n)
            ]
        else:
            names = choose_columns(before, columns)
            choose_columns(after, names)
        if not names:
            raise InputError(
                f"The tables share no numeric column: {listed(before.names)} against {listed(after.names)}."
            )
        result = Pair(names, columns_matrix(before, names), columns_matrix(after, names))
    else:
        if columns is not None:
            raise InputError("Columns have names in frames only; pick columns of arrays before.")
        first, second = as_matrix(original), as_matrix(protected)
        result = Pair(list(range(first.shape[1])), first, second)
    if result.original.shape != result.protected.shape:
        raise InputError(
            "Both tables must have the same records in the same order; their shapes are "
            f"{result.original.shape} and {result.protected.shape}."
        )
    return result
