"""Count combinations of values of a table larger than memory.

A record is known by a hash of 128 bits of its values, which depends on them alone: not on the batch, on
chunks, or on whether texts lie in a dictionary. Counting is exact unless two different combinations
have one hash. Among m combinations that happens with a chance of about m²/2¹²⁹: at 10¹⁰ combinations
1.5 · 10⁻¹⁹. Who knows the seed could make such values on purpose, as far as multiplications by known
constants can be undone; a seed drawn at random for each count prevents that.

Hashes are summed up in a table in memory. When it is full, its entries go to files by some bits of
the hash, and each file is counted by itself in the end; one that is again too large is split by the next
bits. Where units are counted, first distinct pairs of a combination and a unit are found in this way,
then the pairs of each combination are counted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microagg.base.typing import Labels
from microagg.errors import InputError
from microagg.formats.batches import Batch, BatchSource
from microagg.kernels.row_hash import hash_bytes, hash_floats, hash_moments, hash_words, start
from microagg.kernels.sum_table import PARTS, put, spread_out
from microagg.measure.classes import simple_values
from microagg.measure.verify import (
    Verification,
    columns_to_count,
    countable,
    finding,
    nothing_to_count,
    why_left_out,
)
from microagg.plan.plan import Promise
from microagg.plan.settings import check_k
from microagg.tables.as_written import values_as_written
from microagg.tables.frame import Frame, choose_columns
from microagg.tables.numbers_in_text import OddCells, count_odd

__all__ = ["ClassSizes", "Counter", "KeySums", "count_out_of_core", "row_keys", "verify_batches"]

Keys = NDArray[np.uint64]

_A_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
_A_DAY = 86400
_FEWEST_SLOTS = 1 << 10
_DEEPEST = 9  # levels of files, after which the bits of a hash are used up
_ROWS_AT_ONCE = 1 << 16
_HEAD = 1000  # records that tell whether a text column is meant to hold numbers
_SOME_ODD = OddCells(0, 1, 0)


def row_keys(columns: Sequence[pa.Array | pa.ChunkedArray], seed: int = 0) -> Keys:
    """Hash the values of each row to 128 bits: an array of shape (n, 2).

    Rows are equal, and have the same key, exactly as :func:`microagg.measure.classes.count_combinations`
    has it: missing is a value, −0 is 0, every NaN is the same. Moments are compared whatever their unit.

    >>> age, city = pa.array([30, 64, 30]), pa.array(["A", None, "A"])
    >>> keys = row_keys([age, city])
    >>> bool((keys[0] == keys[2]).all()), bool((keys[0] == keys[1]).any())
    (True, False)
    >>> bool((keys == row_keys([age, city.dictionary_encode()])).all())
    True
    """
    n = len(columns[0])
    if any(len(column) != n for column in columns):
        raise InputError("Columns of one table have the same number of records; these differ.")
    keys: Keys = start(n, seed)
    for column in columns:
        at = 0
        whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        for chunk in simple_values(whole).chunks:
            if len(chunk):
                _mix_in(chunk, keys[at : at + len(chunk)])
            at += len(chunk)
    return keys


def _mix_in(chunk: pa.Array, keys: Keys) -> None:
    """Mix the values of an array into the keys of its rows."""
    kind = chunk.type
    types = pa.types
    if types.is_string_view(kind) or types.is_binary_view(kind):
        chunk = chunk.cast(pa.large_binary())
    elif types.is_boolean(kind):
        chunk = chunk.cast(pa.uint8())
    elif types.is_floating(kind):
        chunk = chunk.cast(pa.float64())
    elif types.is_null(kind):
        chunk = pa.nulls(len(chunk), pa.int64())
    kind = chunk.type
    valid = _numbers(chunk.buffers()[0], np.uint8) if chunk.null_count else _empty(np.uint8)
    first = chunk.offset
    if types.is_floating(kind):
        values = _of_width(chunk, np.float64)
        hash_floats(values, values.view(np.uint64), valid, first, keys)
    elif types.is_temporal(kind) and not types.is_interval(kind):
        values = _frozen(_of_width(chunk, np.dtype(f"i{kind.bit_width // 8}")).astype(np.int64))
        a_second = -_A_DAY if types.is_date32(kind) else _A_SECOND[getattr(kind, "unit", "ms")]
        hash_moments(values, a_second, valid, first, keys)
    elif _has_offsets(kind):
        hash_bytes(*_texts(chunk), valid, first, keys)
    elif types.is_fixed_size_binary(kind):
        width = kind.byte_width
        data = _of_width(chunk, np.dtype((np.void, width))).view(np.uint8) if width else None
        offsets = _frozen(width * np.arange(len(chunk) + 1))
        hash_bytes(offsets, _empty(np.uint8) if data is None else data, valid, first, keys)
    elif types.is_primitive(kind) or types.is_decimal(kind):
        hash_words(_words(chunk), types.is_uint64(kind), valid, first, keys)
    else:
        raise pa.ArrowNotImplementedError(f"Keys of type {kind}")


def _words(chunk: pa.Array) -> Any:
    """Values of a fixed width as (n, words) numbers of 64 bits, short ones widened."""
    width = chunk.type.bit_width // 8
    if width > 8:
        words = _of_width(chunk, np.dtype((np.void, width))).view(np.uint64)
        return words.reshape(len(chunk), width // 8)
    sign = "u" if pa.types.is_unsigned_integer(chunk.type) else "i"
    values = _of_width(chunk, np.dtype(f"{sign}{width}"))
    return _frozen(values.astype(f"{sign}8", copy=False)).view(np.uint64).reshape(-1, 1)


def _has_offsets(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
    )


def _texts(chunk: pa.Array) -> tuple[Any, Any]:
    """Offsets of the texts of an array, and the bytes they point into."""
    large = pa.types.is_large_string(chunk.type) or pa.types.is_large_binary(chunk.type)
    _, offsets, data = chunk.buffers()
    count = chunk.offset + len(chunk) + 1
    places = np.frombuffer(offsets, np.int64 if large else np.int32, count)[chunk.offset :]
    return _frozen(places.astype(np.int64, copy=False)), _numbers(data, np.uint8)


def _of_width(chunk: pa.Array, kind: Any) -> Any:
    """Values of an array of fixed width, without a copy."""
    return np.frombuffer(chunk.buffers()[1], kind, chunk.offset + len(chunk))[chunk.offset :]


def _numbers(buffer: pa.Buffer | None, kind: Any) -> Any:
    return _empty(kind) if buffer is None or not buffer.size else np.frombuffer(buffer, kind)


def _empty(kind: Any) -> Any:
    return _frozen(np.empty(0, kind))


def _frozen(values: Any) -> Any:
    """An array that is not written to, as those of Arrow: kernels are compiled once for both."""
    values.setflags(write=False)
    return values


class ClassSizes(NamedTuple):
    """How many units, or records, share each combination: classes of combinations shared by equally many."""

    shared_by: Labels
    """Units that share a combination, ascending, each number once."""
    classes: Labels
    """Combinations that are shared by this number of units."""
    records_of: Labels
    """Records of these combinations."""

    @property
    def records(self) -> int:
        """Number of records."""
        return int(self.records_of.sum())

    @property
    def combinations(self) -> int:
        """Number of different combinations."""
        return int(self.classes.sum())

    @property
    def smallest(self) -> int:
        """Units that share the rarest combination; 0 where there is none."""
        return int(self.shared_by[0]) if len(self.shared_by) else 0

    @property
    def histogram(self) -> dict[int, int]:
        """Number of combinations by the units that share one."""
        return dict(zip(self.shared_by.tolist(), self.classes.tolist(), strict=True))

    def records_below(self, k: int) -> int:
        """Records whose combination is shared by fewer than k units."""
        return int(self.records_of[self.shared_by < k].sum())


def count_out_of_core(
    batches: Iterable[tuple[Keys, Keys | None]], scratch: Path, memory: int
) -> ClassSizes:
    """Count how many records, or distinct units, share each key.

    Parameters
    ----------
    batches : pairs of keys (n, 2) of records, see :func:`row_keys`, and keys (n, 2) of their units; None in
        all pairs: every record is a unit
    scratch : folder in which files are made, and taken away, if the keys do not fit into memory
    memory : bytes that tables may take

    >>> ages = row_keys([pa.array([30, 30, 30, 64])])
    >>> count_out_of_core([(ages, None)], Path(), 1 << 20).histogram
    {1: 1, 3: 1}
    >>> homes = row_keys([pa.array([1, 1, 2, 3])])
    >>> count_out_of_core([(ages, homes)], Path(), 1 << 20).histogram
    {1: 1, 2: 1}
    """
    counter: Counter | None = None
    with TemporaryDirectory(prefix="counting-", dir=scratch) as folder:
        for keys, units in batches:
            if counter is None:
                counter = Counter(Path(folder), memory, with_units=units is not None)
            counter.add(keys, units)
        return _tallied(iter(())) if counter is None else counter.counts()


class Counter:
    """Counts one kind of combination, batch by batch.

    ``folder`` is for files, which the caller takes away, if need be after an error.
    """

    def __init__(self, folder: Path, memory: int, with_units: bool) -> None:
        # Pairs of a combination and a unit, while the pairs of each combination are counted.
        share = memory // 2 if with_units else memory
        self._pairs = KeySums(folder, share, words=4, sums=1) if with_units else None
        self._combinations = KeySums(folder, share, words=2, sums=2 if with_units else 1)

    def add(self, keys: Keys, units: Keys | None = None) -> None:
        """Count further records."""
        one = np.ones((len(keys), 1), np.int64)
        if self._pairs is None:
            self._combinations.add(keys, one)
        else:
            assert units is not None
            self._pairs.add(np.hstack([keys, units]), one)

    def counts(self) -> ClassSizes:
        """Return what was counted, once."""
        if self._pairs is not None:
            for pairs, records in self._pairs.results():
                self._combinations.add(
                    np.ascontiguousarray(pairs[:, :2]), np.hstack([records, np.ones_like(records)])
                )
        return _tallied(sums for _, sums in self._combinations.results())


def _tallied(sums: Iterator[Labels]) -> ClassSizes:
    """Put combinations that equally many units share together; sums are records and, where counted, units."""
    found: dict[int, list[int]] = {}
    for some in sums:
        shared_by, at = np.unique(some[:, -1], return_inverse=True)
        classes = np.bincount(at.reshape(-1), minlength=len(shared_by))
        records = np.zeros(len(shared_by), np.int64)
        np.add.at(records, at.reshape(-1), some[:, 0])
        for size, *more in zip(shared_by.tolist(), classes.tolist(), records.tolist(), strict=True):
            sofar = found.setdefault(size, [0, 0])
            sofar[0] += more[0]
            sofar[1] += more[1]
    table = np.array([[size, *found[size]] for size in sorted(found)], np.int64).reshape(-1, 3)
    return ClassSizes(*table.T)


class KeySums:
    """Sums by key: a table in memory, and files of parts of it once it has been full.

    ``depth`` is the number of files, one in the other, that led to these keys.
    """

    def __init__(self, folder: Path, memory: int, words: int, sums: int, depth: int = 0) -> None:
        self._folder, self._memory, self._depth = folder, memory, depth
        self._shape = words, sums
        self._parts: Path | None = None  # folder of the parts that were written out
        self._clear(_FEWEST_SLOTS)

    def _may_have(self, slots: int) -> bool:
        """Whether a table of this size fits: while it grows there is another, and what is written out."""
        return 2 * slots * sum(self._shape) * 8 <= self._memory or self._depth == _DEEPEST

    def _clear(self, slots: int) -> None:
        words, sums = self._shape
        self._keys, self._sums = (
            np.empty((slots, words), np.uint64),
            np.zeros((slots, sums), np.int64),
        )
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
            larger = next((2**i * slots for i in (2, 1) if self._may_have(2**i * slots)), None)
            if larger is None:
                self._write_out()
            else:
                self._grow(larger)

    def results(self) -> Iterator[tuple[Keys, Labels]]:
        """Give all keys and their sums, some at a time, once."""
        if self._parts is None:
            there = self._sums[:, 0] != 0
            yield self._keys[there], self._sums[there]
            self._clear(_FEWEST_SLOTS)
            return
        self._write_out()
        self._clear(_FEWEST_SLOTS)
        for part in range(PARTS):
            yield from self._of_part(self._parts / str(part))

    def _of_part(self, path: Path) -> Iterator[tuple[Keys, Labels]]:
        if not path.exists():
            return
        words, sums = self._shape
        part = KeySums(self._folder, self._memory, words, sums, self._depth + 1)
        with path.open("rb") as file:
            while True:
                rows = np.fromfile(file, np.uint64, _ROWS_AT_ONCE * (words + sums))
                if not len(rows):
                    break
                rows = rows.reshape(-1, words + sums)
                part.add(
                    np.ascontiguousarray(rows[:, :words]),
                    np.ascontiguousarray(rows[:, words:]).view(np.int64),
                )
        path.unlink()
        yield from part.results()

    def _grow(self, slots: int) -> None:
        there = self._sums[:, 0] != 0
        keys, sums = self._keys[there], self._sums[there]
        self._clear(slots)
        _, self._used = put(keys, sums, 0, self._keys, self._sums, 0, slots)

    def _write_out(self) -> None:
        if self._parts is None:
            self._parts = Path(mkdtemp(dir=self._folder))
        rows = np.empty((self._used, sum(self._shape)), np.uint64)
        starts = np.zeros(PARTS + 1, np.int64)
        spread_out(self._keys, self._sums, self._depth, rows, starts)
        for part in range(PARTS):
            if starts[part] < starts[part + 1]:
                with (self._parts / str(part)).open("ab") as file:
                    file.write(rows[starts[part] : starts[part + 1]].tobytes())
        self._sums[:] = 0
        self._used = 0


def verify_batches(
    source: BatchSource,
    promises: Sequence[Promise],
    scratch: Path,
    memory: int,
    units: Mapping[Any, pa.Array] | None = None,
) -> list[Verification]:
    """Count for several promises in one pass over a file; the results are those of ``verify_all``.

    Parameters
    ----------
    source : the file
    promises : what to count
    scratch, memory : see :func:`count_out_of_core`; the promises share the memory
    units : the unit of each record for columns that were dropped from the file
    """
    for one in promises:
        check_k(one.k, sys.maxsize)
    if not promises:
        return []
    given = dict(units or {})
    names = Frame(pa.schema([(name, pa.null()) for name in source.names]).empty_table())
    for one in promises:
        if one.unit is not None and one.unit not in given:
            choose_columns(names, [one.unit])
    chosen, left_out = [], []
    for one in promises:
        # The types of a CSV file are found in a pass of its own, if any promise asks for numbers.
        some, others = columns_to_count(names, lambda: Frame(source.schema.empty_table()), one)
        chosen.append(some)
        left_out.append(others)
    aside = list(dict.fromkeys(name for others in left_out for name in others))
    in_file = [one.unit for one in promises if one.unit is not None and one.unit not in given]
    needed = dict.fromkeys([*(name for some in chosen for name in some), *in_file, *aside])
    with TemporaryDirectory(prefix="counting-", dir=scratch) as folder:
        counters = [
            Counter(Path(folder), memory // len(promises), with_units=one.unit is not None)
            for one in promises
        ]
        why = _Reasons(aside)
        records = 0
        for batch in source.batches(needed):
            for one, some, counter in zip(promises, chosen, counters, strict=True):
                counter.add(*_keys_of(batch, some, one.unit, given, source.is_text))
            why.add(batch)
            records += batch.as_written.num_rows
        if not records:
            raise nothing_to_count()
        for one in promises:
            if one.unit in given:
                _check_units(len(given[one.unit]), records)
        reasons = why.found()
        found = []
        for one, some, others, counter in zip(promises, chosen, left_out, counters, strict=True):
            counts = counter.counts()
            found.append(
                finding(
                    one,
                    some,
                    {name: reasons[name] for name in others},
                    records=records,
                    combinations=counts.combinations,
                    smallest=counts.smallest,
                    below=counts.records_below(one.k),
                )
            )
        return found


def _keys_of(
    batch: Batch, columns: list[Any], unit: Any, given: Mapping[Any, pa.Array], is_text: bool
) -> tuple[Keys, Keys | None]:
    """Keys of the records of a batch, and of their units."""
    written = Frame(batch.as_written)
    own = None
    if unit in given:
        some = given[unit].slice(batch.first, len(written))
        _check_units(len(some), len(written))
        own = row_keys([some])
    elif unit is not None:
        own = row_keys([values_as_written(written, unit, is_text)])
    with countable(written, columns):
        return row_keys([written.arrow_column(name) for name in columns]), own


def _check_units(given: int, records: int) -> None:
    if given != records:
        raise InputError(
            "Units that are given beside a file have one value for each of its records; their number "
            "differs. Give those of this file."
        )


class _Reasons:
    """Why columns are not among the numeric ones, told from all batches."""

    def __init__(self, columns: list[Any]) -> None:
        self._columns = columns
        self._head: Frame | None = None
        self._odd = {name: OddCells() for name in columns}

    def add(self, batch: Batch) -> None:
        if not self._columns:
            return
        if self._head is None:  # whose first records tell what a column is meant to hold
            self._head = Frame(batch.table.slice(0, _HEAD))
        for name in self._columns:
            if self._head.odd_numbers(name, _SOME_ODD) is not None:
                cells = batch.table[name].cast(pa.large_string())
                self._odd[name] = self._odd[name].then(count_odd(cells), batch.first)

    def found(self) -> dict[Any, str]:
        if self._head is None:
            return {}
        return {name: why_left_out(self._head, name, odd) for name, odd in self._odd.items()}
