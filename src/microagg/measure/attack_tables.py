"""The columns that an original, a released and a control table have in common, in one numbering.

Tables of any program: columns are matched by name, rows not at all. A column is numbers where all tables have
numbers (or texts that are numbers, or names of bands, which stand at their middle), dates where all have
dates, and categories otherwise, matched by their text. A missing value is a value. Rows are put into an order
that depends on their values and the seed alone, so that the row order of a file plays no part in an attack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Floats, Labels
from microagg.encode.bands import ends_of_label, level_text
from microagg.errors import InputError, listed
from microagg.tables.dates import dates_in_text
from microagg.tables.finite import check_not_infinite
from microagg.tables.frame import Frame
from microagg.tables.frame_libraries import decoded, is_text
from microagg.tables.numbers_in_text import MISSING_WORDS, reads_as_number

_MISSING = -10.0  # kernels/attack_loops.py: far below all coordinates


@dataclass(frozen=True, eq=False)
class AttackTable:
    """One of the tables: the common columns, rows in an order that says nothing."""

    values: Floats
    """(n, d) numbers, seconds of dates, level numbers; NaN where missing."""
    coordinates: Floats
    """(n, d) for Gower's distance: numbers between 0 and 1, level numbers, −10 where missing."""

    def __len__(self) -> int:
        return len(self.values)

    def distinct(self) -> tuple[Floats, Labels]:
        """Return the coordinates of the distinct rows, and how many records have each."""
        ordered = self.coordinates[np.lexsort(self.coordinates.T)]
        begins = np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1)))
        return ordered[begins], np.diff(np.append(begins, len(ordered)))


@dataclass(frozen=True, eq=False)
class AttackTables:
    """What the attacks work on."""

    names: list[Any]
    kinds: list[str]
    """number, date or category, of each common column."""
    original: AttackTable
    released: AttackTable
    control: AttackTable | None
    skipped: list[Any]
    """Common columns that hold neither numbers nor dates nor categories, such as lists."""

    @property
    def every(self) -> list[AttackTable]:
        """All tables."""
        tables = (self.original, self.released, self.control)
        return [table for table in tables if table is not None]

    def varies(self, j: int) -> bool:
        """Return whether a column has two values or more in any of the tables."""
        return len(np.unique(np.concatenate([t.coordinates[:, j] for t in self.every]))) > 1


def attack_tables(
    original: Any, released: Any, control: Any, *, missing_words: Sequence[str] = ("",), seed: int
) -> AttackTables:
    """Read the columns that all tables have.

    Parameters
    ----------
    original, released : frames of any library
    control : a frame of the same kind as ``original``, or None
    missing_words : texts that mean missing in categories; those of CSV files where a file was read
    seed : of the order of rows
    """
    frames = {"original": Frame(original), "released": Frame(released)}
    if control is not None:
        frames["control"] = Frame(control)
    for which, frame in frames.items():
        if not len(frame):
            raise InputError(f"An attack needs records; the {which} table has none.")
    tables = list(frames.values())
    common = [name for name in tables[0].names if all(frame.has(name) for frame in tables)]
    if not common:
        having = "; ".join(f"{which}: {listed(f.names)}" for which, f in frames.items())
        raise InputError(
            f"Columns are matched by name, and the tables have none in common. They have {having}. "
            "Rename the columns of one of them."
        )
    names, kinds, columns, skipped = [], [], [], []
    for name in common:
        try:
            kind, values = _read(tables, name, missing_words)
        except InputError:
            skipped.append(name)
            continue
        names.append(name)
        kinds.append(kind)
        columns.append(values)
    if not names:
        raise InputError(
            "Attacks need columns of numbers, dates or categories; none of the common columns is one: "
            f"{listed(common)}."
        )
    values = [np.column_stack(of_table) for of_table in zip(*columns, strict=True)]
    every = np.vstack(values)
    lows, highs = (end.reduce(every, axis=0) / 2 for end in (np.fmin, np.fmax))
    shuffled = [_shuffled(of_table, kinds, lows, highs, seed) for of_table in values]
    return AttackTables(
        names, kinds, shuffled[0], shuffled[1], shuffled[2] if len(tables) > 2 else None, skipped
    )


def _shuffled(
    values: Floats, kinds: list[str], half_lows: Floats, half_highs: Floats, seed: int
) -> AttackTable:
    coordinates = values.copy()
    for j, (kind, low, high) in enumerate(zip(kinds, half_lows, half_highs, strict=True)):
        if kind != "category":
            coordinates[:, j] = (values[:, j] / 2 - low) / ((high - low) or 1.0)
    coordinates[np.isnan(coordinates)] = _MISSING
    order = np.lexsort(np.column_stack([coordinates, np.nan_to_num(values)]).T)
    order = order[np.random.default_rng(seed).permutation(len(order))]
    return AttackTable(values[order], np.ascontiguousarray(coordinates[order]))


def _read(tables: list[Frame], name: Any, missing_words: Sequence[str]) -> tuple[str, list[Floats]]:
    """Return the kind of a column, and its values in each table."""
    arrays = [decoded(frame.arrow_column(name)) for frame in tables]
    # Digits in text are numbers only where another table has numbers, else codes.
    numeric = any(frame.is_numeric(name) for frame in tables)
    kind = "number" if numeric else "date"
    columns = [
        _numbers(frame, name, array) if numeric else _seconds(array)
        for frame, array in zip(tables, arrays, strict=True)
    ]
    numbers = [values for values in columns if values is not None]
    has_values = numeric or any(array.null_count < len(array) for array in arrays)
    if len(numbers) == len(tables) and has_values:
        for values in numbers:
            check_not_infinite(values, name, "attack")
        return kind, numbers
    codes: list[Labels] = []
    texts: list[list[str]] = []
    for frame, array in zip(tables, arrays, strict=True):
        of_table, levels = np.full(len(frame), -1), list[Any]()
        if array.null_count < len(array):
            of_table, levels = frame.categories(name, missing_words)
        codes.append(of_table)
        texts.append([_text(level) for level in levels])
    every = sorted({text for levels in texts for text in levels})
    number_of = {text: float(at) for at, text in enumerate(every)}
    return "category", [
        np.array([*map(number_of.__getitem__, levels), np.nan])[code]
        for code, levels in zip(codes, texts, strict=True)
    ]


def _numbers(frame: Frame, name: Any, column: Any) -> Floats | None:
    """Return the numbers of a column, NaN where missing; None if it holds other values."""
    if frame.is_numeric(name):
        return frame.doubles(name)
    if column.null_count == len(column):
        return np.full(len(column), np.nan)
    if not is_text(column.type):
        return None
    codes, levels = frame.categories(name, MISSING_WORDS)
    middles = [_middle(str(level).strip()) for level in levels]
    if None in middles:
        return None
    return np.array([*middles, np.nan], dtype=np.float64)[codes]


def _middle(text: str) -> float | None:
    """Return a number, or the middle of a band; None for other texts."""
    if reads_as_number(text):
        return float(text)
    ends = ends_of_label(text)
    if ends is None:
        return None
    low, high = ends
    return low if high == np.inf else high if low == -np.inf else (low + high) / 2


def _seconds(column: Any) -> Floats | None:
    """Return the dates of a column in seconds, NaN where missing; None if it holds other values."""
    if column.null_count == len(column):
        return np.full(len(column), np.nan)
    if is_text(column.type):
        dates = dates_in_text(column)
        if dates is None:
            return None
        column = dates[0]
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"))
    if not pa.types.is_timestamp(column.type):
        return None
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[column.type.unit]
    moments = column.cast(pa.int64()).cast(pa.float64(), safe=False)
    return np.asarray(moments, dtype=np.float64) / per_second  # a null is NaN


def _text(level: Any) -> str:
    """Return a category as text, the same whether a file stores it as number, truth value or text."""
    text = str(level).lower() if isinstance(level, bool) else level_text(level)
    return text.strip().lower() if text.strip().lower() in ("true", "false") else text.strip()
