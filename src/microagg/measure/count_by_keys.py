"""Count classes by the keys of their records, in files where memory is short.

Keys are summed up in a table in memory. When it is full, its entries go to files by some bits of the key,
and each file is counted by itself in the end; one that is again too large is split by the next bits. Where
distinct values are counted, first distinct pairs of a class and a value are found in this way, then the
pairs of each class are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.grouping.require.value_rules import FEWEST_NUMBERS, is_common
from microagg.kernels.sum_table import PARTS, put, spread_out
from microagg.measure.classes import ClassSizes
from microagg.measure.row_keys import Keys, row_keys
from microagg.measure.verify import Question, explaining_kinds
from microagg.tables.frame import Frame, values_as_written

_FEWEST_SLOTS = 1 << 10
_DEEPEST = 9  # levels of files, after which the bits of a key are used up
_ROWS_AT_ONCE = 1 << 16


def keys_of(
    written: Frame,
    asked: Question,
    is_text: bool = False,
    extra: Mapping[Any, pa.Array] | None = None,
) -> list[Keys]:
    """Return keys of the class of each record, and of its distinct value if such are counted.

    Parameters
    ----------
    written : some records, as they stand in the file
    asked : which columns make a class, and which column's distinct values are counted
    is_text : whether a CSV file holds them
    extra : columns that the table itself does not have, such as dropped units
    """
    extra = extra or {}
    with explaining_kinds(written, [name for name in asked.by if name not in extra]):
        columns = [extra[n] if n in extra else written.arrow_column(n) for n in asked.by]
        keys = [row_keys(columns)]
    if asked.distinct in extra:
        keys.append(row_keys([extra[asked.distinct]]))
    elif asked.distinct is not None:
        keys.append(row_keys([values_as_written(written, asked.distinct, is_text)]))
    return keys


class ClassCounter:
    """Counts classes, batch by batch.

    Parameters
    ----------
    folder : for files, which the caller removes, also after an error
    memory : bytes that tables may take
    distinct : whether distinct values are counted in each class
    common : whether to mark classes whose only value is common; needs ``distinct``
    numbers : whether the values are numbers

    >>> ages = np.array([[30, 30], [30, 30], [30, 30], [64, 64]], np.uint64)
    >>> homes = np.array([[1, 1], [1, 1], [2, 2], [3, 3]], np.uint64)
    >>> counter = ClassCounter(Path(), 1 << 20, distinct=True)
    >>> counter.add(ages, homes)
    >>> sorted(counter.sizes().units.tolist())
    [1, 2]
    """

    def __init__(
        self,
        folder: Path,
        memory: int,
        distinct: bool = False,
        common: bool = False,
        numbers: bool = False,
    ) -> None:
        self._numbers = numbers
        share = memory // (1 + distinct + common)
        self._pairs = KeySums(folder, share, width=4, sums=1) if distinct else None
        self._values = KeySums(folder, share, width=2, sums=1) if common else None
        self._classes = KeySums(folder, share, width=2, sums=1 + distinct + common)

    def add(self, keys: Keys, distinct: Keys | None = None) -> None:
        """Count further records by the keys of their classes and of their values."""
        counts = np.ones((len(keys), 1), np.int64)
        if self._pairs is None:
            self._classes.add(keys, counts)
        else:
            assert distinct is not None
            self._pairs.add(np.hstack([keys, distinct]), counts)

    def sizes(self) -> ClassSizes:
        """Return what was counted, once."""
        total, n_values, often, common = 0, 0, list[Labels](), list[Keys]()
        for pairs, records in () if self._pairs is None else self._pairs.results():
            total += int(records.sum())
            added = [records, np.ones_like(records)]
            if self._values is not None:
                self._values.add(np.ascontiguousarray(pairs[:, 2:]), records)
                added.append(pairs[:, 2:3].view(np.int64))  # whose sum over one value is its key
            self._classes.add(np.ascontiguousarray(pairs[:, :2]), np.hstack(added))
        for values, records in () if self._values is None else self._values.results():
            frequent = is_common(records[:, 0], total, self._numbers)
            n_values += len(values)
            often.append(records[frequent, 0])
            common.append(values[frequent, 0])
        if self._values is not None and common:
            many = self._numbers and n_values >= FEWEST_NUMBERS
            frequent = is_common(np.concatenate(often), total, many)
            marked = np.concatenate(common)[frequent].view(np.int64)
        sizes = ClassSizes.of(np.zeros(0, np.int64))
        for _, sums in self._classes.results():
            if self._values is not None:
                sums[:, 2] = np.isin(sums[:, 2], marked)
            sizes = sizes.merge(ClassSizes.of(*sums.T))
        return sizes


class KeySums:
    """Sums by key: a table in memory, and files of parts of it once it has been full.

    ``depth`` is the number of files, one in the other, that led to these keys.
    """

    def __init__(self, folder: Path, memory: int, width: int, sums: int, depth: int = 0) -> None:
        self._folder, self._memory, self._depth = folder, memory, depth
        self._shape = width, sums
        self._parts: Path | None = None  # folder of the parts that were written out
        self._clear(_FEWEST_SLOTS)

    def _clear(self, slots: int) -> None:
        width, sums = self._shape
        self._keys = np.empty((slots, width), np.uint64)
        self._sums = np.zeros((slots, sums), np.int64)
        self._used = 0

    def add(self, entries: Keys, added: Labels) -> None:
        """Add numbers, the first of each row above 0, to the sums of their keys."""
        at = 0
        while True:
            slots = len(self._keys)
            at, self._used = put(
                entries, added, at, self._keys, self._sums, self._used, slots // 8 * 5
            )
            if at == len(entries):
                return
            # Growing needs the old and the new table at once.
            most = self._memory // (2 * sum(self._shape) * 8)
            grown = 4 * slots if 4 * slots <= most or self._depth == _DEEPEST else 2 * slots
            if grown > most and self._depth < _DEEPEST:
                self._write_out()
                continue
            there = self._sums[:, 0] != 0
            keys, sums = self._keys[there], self._sums[there]
            self._clear(grown)
            _, self._used = put(keys, sums, 0, self._keys, self._sums, 0, grown)

    def results(self) -> Iterator[tuple[Keys, Labels]]:
        """Give all keys and their sums, some at a time, once."""
        if self._parts is None:
            there = self._sums[:, 0] != 0
            yield self._keys[there], self._sums[there]
            self._clear(_FEWEST_SLOTS)
            return
        self._write_out()
        self._clear(_FEWEST_SLOTS)
        width, sums = self._shape
        for path in filter(Path.exists, (self._parts / str(number) for number in range(PARTS))):
            inner = KeySums(self._folder, self._memory, width, sums, self._depth + 1)
            with path.open("rb") as file:
                at_once = _ROWS_AT_ONCE * (width + sums)
                while len(words := np.fromfile(file, np.uint64, at_once)):
                    rows = words.reshape(-1, width + sums)
                    inner.add(
                        np.ascontiguousarray(rows[:, :width]),
                        np.ascontiguousarray(rows[:, width:]).view(np.int64),
                    )
            path.unlink()
            yield from inner.results()

    def _write_out(self) -> None:
        if self._parts is None:
            self._parts = Path(mkdtemp(dir=self._folder))
        rows = np.empty((self._used, sum(self._shape)), np.uint64)
        starts = np.zeros(PARTS + 1, np.int64)
        spread_out(self._keys, self._sums, self._depth, rows, starts)
        for number in range(PARTS):
            if starts[number] < starts[number + 1]:
                with (self._parts / str(number)).open("ab") as file:
                    file.write(rows[starts[number] : starts[number + 1]].tobytes())
        self._sums[:] = 0
        self._used = 0
