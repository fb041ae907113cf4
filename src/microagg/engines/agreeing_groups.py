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

from microagg.formats.batches import BatchSource
from microagg.measure.count_classes import Counter, Keys, KeySums, row_keys
from microagg.tables.as_written import values_as_written
from microagg.tables.frame import Frame

__all__ = ["Agreeing", "count_agreeing"]


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
    scratch, memory : see :func:`microagg.measure.count_classes.count_out_of_core`
    """
    found = {}
    with TemporaryDirectory(prefix="agreeing-", dir=scratch) as name:
        folder, share = Path(name), memory // (2 * max(len(columns), 1))
        common = _common_values(source, columns, folder, share)
        all_values = {name: Counter(folder, share, with_units=True) for name in columns}
        rare_values = {
            name: Counter(folder, share, with_units=True) for name in columns if len(common[name])
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


def _apart(classes: Keys, values: Keys, common: Keys, first: int) -> tuple[Keys, Keys]:
    """Make two values of their own of each common one, so that no class of such records has one value."""
    at = np.flatnonzero(np.isin(values[:, 0], common))
    found = np.vstack([values, values[at]])
    row = 2 * (first + at).astype(np.uint64)
    found[at, 1], found[len(values) :, 1] = row, row + np.uint64(1)
    return np.vstack([classes, classes[at]]), found


def _common_values(
    source: BatchSource, columns: Sequence[Any], folder: Path, memory: int
) -> dict[Any, Keys]:
    """Values that at least half of all records have, for each column: none, one, or two halves."""
    often = {name: KeySums(folder, memory, words=2, sums=1) for name in columns}
    records = 0
    for batch in source.batches(list(columns)):
        frame = Frame(batch.as_written)
        records += len(frame)
        one = np.ones((len(frame), 1), np.int64)
        for name in columns:
            often[name].add(_values(frame, name, source.is_text), one)
    found = {}
    for name, own in often.items():
        halves = [keys[2 * sums[:, 0] >= records, 0] for keys, sums in own.results()]
        found[name] = np.concatenate(halves)
    return found
