"""Count, in a file larger than memory, the records whose class discloses a confidential value.

A class agrees in a column if its records have one distinct value, which is counted as distinct units are.
What at least half of all records have is no news: where a column has such a value, each record that has it
counts as a value of its own, so that the classes that still agree are those that disclose.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from microagg.scale_out.counting import Counter, Keys, row_keys
from microagg.tables.batches import BatchSource
from microagg.tables.exact import values_as_written
from microagg.tables.frames import Frame

__all__ = ["Agreeing", "count_agreeing"]

_CANDIDATES = 64  # values that may be what half of all have, after the first pass


class Agreeing(NamedTuple):
    """Records of classes that agree in a confidential column."""

    exact: int
    """In a value that fewer than half of all records have."""
    harmless: int
    """In a value that at least half of all records have."""


def count_agreeing(
    source: BatchSource, shared: Sequence[Any], columns: Sequence[Any], scratch: Path, memory: int
) -> dict[Any, Agreeing]:
    """Count for each confidential column, in two passes over a file.

    Parameters
    ----------
    source : the file
    shared : columns whose equal values make a class
    columns : the confidential ones
    scratch, memory : see :func:`microagg.scale_out.counting.count_out_of_core`
    """
    common = _common_values(source, columns)
    found = {}
    with TemporaryDirectory(prefix="agreeing-", dir=scratch) as folder:
        share = memory // (2 * max(len(columns), 1))
        all_values = {name: Counter(Path(folder), share, with_units=True) for name in columns}
        rare_values = {
            name: Counter(Path(folder), share, with_units=True)
            for name in columns
            if common[name] is not None
        }
        for batch in source.batches([*shared, *columns]):
            frame = Frame(batch.as_written)
            classes = row_keys([frame.arrow_column(name) for name in shared])
            for name in columns:
                values = _values(frame, name, source.is_text)
                all_values[name].add(classes, values)
                if name in rare_values:
                    rare_values[name].add(*_apart(classes, values, common[name], batch.first))
        for name in columns:
            agree = all_values[name].counts().records_below(2)
            exact = rare_values[name].counts().records_below(2) if name in rare_values else agree
            found[name] = Agreeing(exact, agree - exact)
    return found


def _values(frame: Frame, name: Any, is_text: bool) -> Keys:
    return row_keys([values_as_written(frame, name, is_text)])


def _apart(classes: Keys, values: Keys, common: int | None, first: int) -> tuple[Keys, Keys]:
    """Make two values of their own of each common one, so that no class of such records has one value."""
    at = np.flatnonzero(values[:, 0] == np.uint64(common or 0))
    found = np.vstack([values, values[at]])
    row = 2 * (first + at).astype(np.uint64)
    found[at, 1], found[len(values) :, 1] = row, row + np.uint64(1)
    return np.vstack([classes, classes[at]]), found


def _common_values(source: BatchSource, columns: Sequence[Any]) -> dict[Any, int | None]:
    """The value that at least half of all records have, for each column; None where there is none.

    Values that many records have are kept with a lower and an upper bound of their number (Misra & Gries
    1982), which leaves few candidates; these are counted in a second pass.
    """
    counts: dict[Any, dict[int, int]] = {name: {} for name in columns}
    records = 0
    for batch in source.batches(list(columns)):
        frame = Frame(batch.as_written)
        records += len(frame)
        for name in columns:
            _add(counts[name], _values(frame, name, source.is_text))
    wanted = {name: set(found) for name, found in counts.items()}
    exact: dict[Any, dict[int, int]] = {name: {} for name in columns}
    for batch in source.batches(list(columns)):
        frame = Frame(batch.as_written)
        for name in columns:
            keys = _values(frame, name, source.is_text)[:, 0]
            levels, often = np.unique(keys, return_counts=True)
            for level, count in zip(levels.tolist(), often.tolist(), strict=True):
                if level in wanted[name]:
                    exact[name][level] = exact[name].get(level, 0) + count
    return {
        name: next((level for level, count in own.items() if 2 * count >= records), None)
        for name, own in exact.items()
    }


def _add(counts: dict[int, int], values: Keys) -> None:
    """Add to counts of which only those of frequent values are kept."""
    levels, often = np.unique(values[:, 0], return_counts=True)
    for level, count in zip(levels.tolist(), often.tolist(), strict=True):
        counts[level] = counts.get(level, 0) + count
    if len(counts) > _CANDIDATES:
        least = sorted(counts.values(), reverse=True)[_CANDIDATES]
        for level in list(counts):
            counts[level] -= least
            if counts[level] <= 0:
                del counts[level]
