"""Stata files, written so that storage types, names of value labels and tagged missing values stay.

The layout is that of the formats 118 and 119 (Stata 14 and newer): a header, lists of types, names, formats
and labels, then the records as rows of fixed width. Files of older formats are read, and written as 118.
pyreadstat would write other storage types and names of value labels, and no notes.
"""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import listed
from microagg.formats.file_errors import incomplete
from microagg.formats.statistical import StatisticalFormat, StoredTable
from microagg.tables.file_metadata import ColumnFacts, Labelled


class _Storage(NamedTuple):
    """A storage type: how numpy has it, its code in the file, and how values are shown.

    Of integers also the least and the most that is no missing value.
    """

    dtype: str
    code: int
    format: str
    least: int = 0
    most: int = 0

    @property
    def is_text(self) -> bool:
        return self.dtype[0] == "S" or self is _STRL


_NUMBERS = {
    "int8": _Storage("<i1", 65530, "%8.0g", -127, 100),
    "int16": _Storage("<i2", 65529, "%8.0g", -32_767, 32_740),
    "int32": _Storage("<i4", 65528, "%12.0g", -2_147_483_647, 2_147_483_620),
    "float": _Storage("<f4", 65527, "%9.0g"),
    "double": _Storage("<f8", 65526, "%10.0g"),
}
_STRL = _Storage("<u8", 32768, "%9s")  # text that is stored elsewhere
_LONGEST_STRING = 2045  # longer text is a strL
# Bytes of a name, a format and a label, which end with a zero byte.
_NAME, _FORMAT, _LABEL = 129, 57, 321
_BEGIN, _END = b"<stata_dta>", b"</stata_dta>"
_OLDEST = 118
_WIDE = 119  # differs from 118 in the width of the number of columns alone


class Stata(StatisticalFormat):
    """Stata; formats before 118 are read only."""

    name = "stata"
    words = "a Stata file"
    name_pattern = r"[^\W\d]\w*"
    name_words = "begin with a letter or _ and have letters, digits and _"
    longest_name, name_unit = 32, "signs"
    reserved = "_all _b _coef _cons _n _N _pi _pred _rc _skip"
    reserved += " byte double float if in int long strL using with"
    knows_capitals = True
    largest = 8.98e307
    longest_label, longest_value_label = 320, 32_000
    whole_value_labels = True
    has_tags = True

    def _rewritten(self, facts: Labelled) -> Iterator[str]:
        if 0 < facts.version < _OLDEST:
            yield (
                f"Stata files of format {facts.version} are read, not written: this one is written in format "
                f"{_OLDEST}, for Stata 14 and newer."
            )

    def may_widen(self, column: ColumnFacts, facts: Labelled) -> bool:
        """Return whether text of an old file may take more bytes, now that it is UTF-8."""
        return facts.version < _OLDEST and column.storage == "string"

    def _letters(self, tags: pa.ChunkedArray) -> pa.ChunkedArray:
        letters = super()._letters(tags)
        return pc.if_else(pc.equal(letters, "_"), pa.scalar(None), letters)

    def _look(self, path: Path) -> Labelled:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(1000)
            file.seek(max(size - 100, 0))
            tail = file.read()
        # pyreadstat makes room for all values before it reads the first.
        if _claimed_cells(head) > size:
            raise incomplete(path, "stata", "it claims more records than it has room for")
        if head.startswith(_BEGIN) and _END not in tail:  # which may be its labels alone
            raise incomplete(path, "stata", "its end is missing")
        return Labelled({}, self.name, version=_release(head))

    def _facts(self, path: Path, meta: Any, known: Labelled) -> Labelled:
        lost = [*known.lost]
        unused = sorted(set(meta.value_labels) - set(meta.variable_to_label.values()))
        if unused:
            lost.append(f"the sets of value labels that belong to no column ({listed(unused)})")
        if _count_characteristics(path) > (len(meta.notes) + 1 if meta.notes else 0):
            lost.append("the notes and characteristics of single columns")
        return super()._facts(path, meta, dataclasses.replace(known, lost=tuple(lost)))

    def _column_facts(self, meta: Any, name: str) -> ColumnFacts:
        facts = super()._column_facts(meta, name)
        storage, width = facts.storage, facts.width
        if storage == "string":
            # The width counts a zero byte behind the text; long text that is stored elsewhere has none.
            storage, width = ("string", width - 1) if width else ("string_ref", None)
        return dataclasses.replace(
            facts,
            labels_name=meta.variable_to_label.get(name),
            storage=storage,
            width=width or None,
        )

    def _write(self, path: Path, table: StoredTable) -> None:
        columns, facts = table.columns, table.facts
        stored = {n: _storage_of(table.kinds[n], facts[n], values) for n, values in columns.items()}
        wide = facts.version == _WIDE
        records, long_texts = _records(table, stored, wide)
        label = facts.label.encode()[: _LABEL - 1]
        count = struct.pack("<I" if wide else "<H", len(columns))
        rows = struct.pack("<Q", len(records))
        header = (
            b"<stata_dta><header><release>%d</release><byteorder>LSF</byteorder>"
            % (_WIDE if wide else _OLDEST)
            + b"<K>" + count + b"</K><N>" + rows + b"</N>"
            + b"<label>" + struct.pack("<H", len(label)) + label + b"</label>"
            + b"<timestamp>\0</timestamp></header>"
        )  # fmt: skip
        names, sets = _label_sets(facts, stored)
        shown = {name: facts[name].format or "" for name in columns}
        formats = [shown[n] if shown[n].startswith("%") else stored[n].format for n in columns]
        order = b"\0" * ((4 if wide else 2) * (len(columns) + 1))
        sections: list[tuple[bytes, Any]] = [
            (b"variable_types", b"".join(struct.pack("<H", s.code) for s in stored.values())),
            (b"varnames", b"".join(_cell(n, _NAME) for n in columns)),
            (b"sortlist", order),
            (b"formats", b"".join(_cell(text, _FORMAT) for text in formats)),
            (b"value_label_names", b"".join(_cell(names.get(n, ""), _NAME) for n in columns)),
            (b"variable_labels", b"".join(_cell(facts[n].label or "", _LABEL) for n in columns)),
            (b"characteristics", _characteristics(facts)),
            (b"data", records),
            (b"strls", long_texts),
            (b"value_labels", b"".join(_label_set(name, sets[name]) for name in sets)),
        ]  # fmt: skip
        places = [0, len(header)]
        at = len(header) + len(b"<map>") + 14 * 8 + len(b"</map>")
        for name, content in sections:
            places.append(at)
            at += 2 * len(name) + 5 + (content.nbytes if content is records else len(content))
        places += [at, at + len(_END)]
        with path.open("wb") as file:
            file.write(header + b"<map>" + struct.pack("<14Q", *places) + b"</map>")
            for name, content in sections:
                file.write(b"<" + name + b">")
                file.write(content.tobytes() if content is records else content)
                file.write(b"</" + name + b">")
            file.write(_END)


def _release(head: bytes) -> int:
    """Tell the format of a Stata file from its first bytes; 0 where they are none of one.

    >>> _release(b"<stata_dta><header><release>118</release>"), _release(bytes([115, 2]))
    (118, 115)
    """
    start = b"<stata_dta><header><release>"
    if head.startswith(start):
        digits = head[len(start) : len(start) + 3]
        return int(digits) if digits.isdigit() else 0
    return head[0] if head and 102 <= head[0] <= 116 else 0


def _claimed_cells(head: bytes) -> int:
    """Tell how many values a Stata file claims to hold, from its first bytes; 0 where they do not tell.

    >>> _claimed_cells(bytes([115, 2, 1, 0, 7, 0, 12, 0, 0, 0]))
    84
    """
    if head.startswith(_BEGIN):
        if b"</N>" not in head:
            return 0
        order = "little" if b"<byteorder>LSF" in head else "big"
        columns, rows = (
            int.from_bytes(head[head.find(start) + 3 : head.find(end)], order)  # type: ignore[arg-type]
            for start, end in ((b"<K>", b"</K>"), (b"<N>", b"</N>"))
        )
        return columns * rows
    if not _release(head) or len(head) < 10:
        return 0
    columns, rows = struct.unpack("<HI" if head[1] == 2 else ">HI", head[4:10])
    return int(columns * rows)


def _count_characteristics(path: Path) -> int:
    """Count what a Stata file notes about its table and columns; 0 where its format is an old one."""
    with path.open("rb") as file:
        head = file.read(2000)
        at = head.find(b"<map>")
        if not head.startswith(_BEGIN) or not 0 <= at <= 1000:
            return 0
        order = "<" if b"<byteorder>LSF" in head else ">"
        start, end = struct.unpack_from(f"{order}14Q", head, at + 5)[8:10]
        if not 0 < start < end <= path.stat().st_size:
            return 0
        file.seek(start)
        return file.read(end - start).count(b"<ch>")


def _storage_of(kind: pa.DataType, facts: ColumnFacts, values: Any) -> _Storage:
    """Choose the storage type of a column: that of its Arrow type, or that it had where values fit."""
    if not isinstance(values, np.ndarray):
        longest = max([len(text.encode()) for text in values], default=0)
        if facts.storage == "string_ref" or longest > _LONGEST_STRING:
            return _STRL
        width = min(max(longest, facts.width or 1), _LONGEST_STRING)
        return _Storage(f"S{width}", width, f"%{min(max(width, 9), 244)}s")
    wanted = []
    # Types of Arrow that Stata does not have, so that they do not tell how it stored the values.
    if pa.types.is_temporal(kind) or pa.types.is_string(kind) or pa.types.is_int64(kind):
        wanted = [facts.storage] if facts.storage in _NUMBERS else []
    if pa.types.is_float32(kind) or pa.types.is_float16(kind):
        wanted = ["float"]
    if pa.types.is_integer(kind):
        least = {"int8": 0, "uint8": 1, "int16": 1}.get(str(kind), 2)
        wanted += ["int8", "int16", "int32"][least:]
    present = values[~np.isnan(values)]
    for storage in (_NUMBERS[name] for name in wanted):
        if storage.most and ((present < storage.least) | (present > storage.most)).any():
            continue
        with np.errstate(over="ignore"):
            if (present.astype(storage.dtype).astype(np.float64) == present).all():
                return storage
    return _NUMBERS["double"]


def _cell(text: str, size: int) -> bytes:
    """Text in a field of fixed size, which it must not fill: a zero byte ends it."""
    return text.encode()[: size - 1].ljust(size, b"\0")


def _label_sets(
    facts: Labelled, stored: Mapping[str, _Storage]
) -> tuple[dict[str, str], dict[str, tuple[tuple[Any, str], ...]]]:
    """Name the value labels of each column that has some; equal sets of one name are one."""
    names: dict[str, str] = {}
    sets: dict[str, tuple[tuple[Any, str], ...]] = {}
    for column, storage in stored.items():
        pairs = facts[column].value_labels
        wanted = facts[column].labels_name or (column if pairs else "")
        if not wanted or storage.is_text:
            continue
        name, number = wanted, 1
        while pairs and sets.get(name, pairs) != pairs:
            name, number = f"{wanted[:28]}_{number}", number + 1
        names[column] = name
        if pairs:
            sets[name] = pairs
    return names, sets


def _records(table: StoredTable, stored: Mapping[str, _Storage], wide: bool) -> tuple[Any, bytes]:
    """All records as one array of rows, and the long texts that they point to."""
    rows = len(next(iter(table.columns.values()))) if table.columns else 0
    kinds = [(f"f{j}", storage.dtype) for j, storage in enumerate(stored.values())]
    records = np.zeros(rows, dtype=kinds)
    long_texts: list[bytes] = []
    for j, (name, values) in enumerate(table.columns.items()):
        storage = stored[name]
        if storage is _STRL:
            records[f"f{j}"] = _point_to(values, j + 1, long_texts, wide)
        elif storage.is_text:
            records[f"f{j}"] = [text.encode() for text in values]
        else:
            records[f"f{j}"] = _with_missing(values, table.tags.get(name), storage)
    return records, b"".join(long_texts)


def _with_missing(values: Any, letters: Any, storage: _Storage) -> Any:
    """Numbers with the values that stand for missing: the point, and .a to .z."""
    missing = np.isnan(values)
    which = np.zeros(len(values), dtype=np.int64)
    if letters is not None:
        which[:] = [0 if letter is None else _number(letter) for letter in letters]
    if storage.most:
        whole = np.where(missing, 0, values).astype(np.int64)
        return np.where(missing, storage.most + 1 + which, whole)
    if storage is _NUMBERS["float"]:
        bits = (0x7F000000 + which * 0x800).astype("<u4").view("<f4")
        with np.errstate(over="ignore"):
            return np.where(missing, bits, values.astype("<f4"))
    bits = (0x7FE0000000000000 + which * (1 << 40)).astype("<u8").view("<f8")
    return np.where(missing, bits, values)


def _number(letter: str) -> int:
    """Return the number of Stata's missing value for a letter; the underscore of SAS is 0, the point."""
    return 0 if letter == "_" else ord(letter.lower()) - ord("a") + 1


def _point_to(values: list[str], column: int, long_texts: list[bytes], wide: bool) -> Any:
    """Store each text once, where it first occurs; an empty one is a pointer to nothing."""
    places: dict[str, int] = {"": 0}
    # Two bytes tell the column and six the record; the format 119 has three and five.
    bits = 24 if wide else 16
    pointers = np.zeros(len(values), dtype="<u8")
    for i, text in enumerate(values):
        if text not in places:
            places[text] = column | (i + 1) << bits
            content = text.encode() + b"\0"
            head = struct.pack("<IQBI", column, i + 1, 130, len(content))
            long_texts.append(b"GSO" + head + content)
        pointers[i] = places[text]
    return pointers


def _label_set(name: str, pairs: tuple[tuple[Any, str], ...]) -> bytes:
    """Write a set of value labels; letters are those of tagged missing values."""
    letters = _NUMBERS["int32"].most + 1
    ordered = sorted(
        (letters + _number(v) if isinstance(v, str) else int(v), label.encode() + b"\0")
        for v, label in pairs
    )
    values, texts = zip(*ordered, strict=True)
    ends, n = np.cumsum([len(text) for text in texts]).tolist(), len(values)
    numbers = struct.pack(f"<ii{n}i{n}i", n, ends[-1], 0, *ends[:-1], *values)
    table = numbers + b"".join(texts)
    entry = struct.pack("<i", len(table)) + _cell(name, _NAME) + b"\0" * 3
    return b"<lbl>" + entry + table + b"</lbl>"


def _characteristics(facts: Labelled) -> bytes:
    """Write the notes of the table: their number, and each of them, as a characteristic."""
    parts = []
    for i, text in enumerate([str(len(facts.notes)), *facts.notes] if facts.notes else ()):
        content = _cell("_dta", _NAME) + _cell(f"note{i}", _NAME) + text.encode() + b"\0"
        parts.append(b"<ch>" + struct.pack("<I", len(content)) + content + b"</ch>")
    return b"".join(parts)
