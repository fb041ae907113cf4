"""Facts about a table and its columns in files of statistical packages.

Labels, value labels, missing codes, formats and widths travel as metadata of Arrow fields, so that a
column takes them along wherever it goes, through Parquet too, and one that is dropped takes its own
away. No value of a record is among them.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.typing import Labels
from microagg.errors import TableError, shown
from microagg.tables.frame_libraries import is_text

_PREFIX = b"microagg."
_FILE = b"microagg.file"

# Words with which R, SAS and Stata would tell apart why a number is missing: .a to .z, .A to .Z, ._
_TAG = r"^\.[A-Za-z_]$"


@dataclass(frozen=True)
class ColumnFacts:
    """Facts of a file about one column."""

    label: str | None = None  # what the column holds, in words
    value_labels: tuple[tuple[Any, str], ...] = ()  # of values, or letters of tagged missing ones
    labels_name: str | None = None  # name that Stata gives the set of value labels
    missing: tuple[Any, ...] = ()  # codes for missing values, and ends of ranges of such codes
    format: str | None = None  # how values are shown, in the language of the package
    informat: str | None = None  # how they were entered
    measure: str | None = None  # this and the next two as SPSS knows them
    alignment: str | None = None
    display_width: int | None = None
    storage: str | None = None  # type within the file, such as int8, double or string
    width: int | None = None  # bytes that a value takes in the file

    def as_metadata(self) -> dict[bytes, bytes]:
        """As metadata of an Arrow field: one entry for each fact that is known."""
        facts = dataclasses.asdict(self)
        return {
            _PREFIX + name.encode(): json.dumps(value).encode()
            for name, value in facts.items()
            if value not in (None, ())
        }

    @classmethod
    def of(cls, column: pa.Field) -> ColumnFacts:
        """Read the facts from the metadata of a field; those that are not there are unknown."""
        metadata = column.metadata or {}
        keys = {f.name: _PREFIX + f.name.encode() for f in dataclasses.fields(cls)}
        facts = {
            name: _parsed(metadata[key], column.name)
            for name, key in keys.items()
            if key in metadata
        }
        return cls(**_checked(cls, facts, column.name))

    @property
    def codes(self) -> list[Any]:
        """Single codes that stand for a missing value."""
        return [code for code in self.missing if not isinstance(code, tuple)]

    @property
    def ranges(self) -> list[tuple[float, float]]:
        """Ranges of codes that stand for a missing value."""
        return [code for code in self.missing if isinstance(code, tuple)]


def _parsed(text: bytes, column: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _bad_facts(column) from None


def _checked(of: type, facts: Any, column: str) -> dict[str, Any]:
    """Refuse what are no facts of a dataclass: metadata may come from anybody's file."""
    kinds = {f.name: str(f.type) for f in dataclasses.fields(of)}
    if not isinstance(facts, dict) or not set(facts) <= set(kinds):
        raise _bad_facts(column)
    checked = {}
    for name, value in facts.items():
        kind = kinds[name]
        if kind.startswith("str"):
            good = isinstance(value, str)
        elif kind.startswith("int"):
            good = type(value) is int and abs(value) < 2**31
        else:
            good = kind.startswith("tuple") and isinstance(value, list)
            good = good and all(_is_entry(kind, entry) for entry in value)
        if not good:
            raise _bad_facts(column)
        if isinstance(value, list):
            value = tuple(tuple(v) if isinstance(v, list) else v for v in value)
        checked[name] = value
    return checked


def _is_entry(kind: str, entry: Any) -> bool:
    """Return whether an entry is a text, a labelled code; or, of missing codes, one code or a range."""
    if kind == "tuple[str, ...]":
        return isinstance(entry, str)
    is_pair = isinstance(entry, list) and len(entry) == 2
    if kind == "tuple[tuple[Any, str], ...]":
        return is_pair and isinstance(entry[0], int | float | str) and isinstance(entry[1], str)
    is_range = is_pair and all(isinstance(end, int | float) for end in entry)
    return is_range or isinstance(entry, int | float | str)


def _bad_facts(column: str) -> TableError:
    return TableError(
        "Labels and formats that microagg keeps in a table's metadata are JSON of a known shape; those of "
        f"column {shown(column)} are something else. Take the metadata away, in pyarrow by "
        "field.remove_metadata(), and write the table again."
    )


@dataclass(frozen=True)
class Labelled:
    """Facts of a file of a statistical package."""

    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)
    family: str = ""  # whose language formats are in: spss, stata or sas; "" for none
    label: str = ""  # of the whole table, like the notes
    notes: tuple[str, ...] = ()
    table_name: str = ""  # name that SAS gives the table
    version: int = 0  # of the format of the file, as it counts
    compression: int = 0  # of an SPSS file: 0 none, 1 by bytes, 2 by zlib
    lost: tuple[str, ...] = ()  # facts that cannot be written again, in words

    @classmethod
    def of(cls, schema: pa.Schema) -> Labelled:
        """Read the facts from the metadata of an Arrow schema.

        >>> facts = Labelled({"age": ColumnFacts(label="Age in years")}, "spss", label="Survey")
        >>> schema = facts.on(pa.schema({"age": pa.int64()}))
        >>> Labelled.of(schema) == facts
        True
        """
        columns = {column.name: ColumnFacts.of(column) for column in schema}
        text = (schema.metadata or {}).get(_FILE)
        if text is None:
            return cls(columns)
        table = "the whole table"
        return cls(columns, **_checked(cls, _parsed(text, table), table))

    def on(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with the facts about the table and its columns as metadata."""
        fields = []
        for column in schema:
            others = {k: v for k, v in (column.metadata or {}).items() if not k.startswith(_PREFIX)}
            fields.append(column.with_metadata(others | self[column.name].as_metadata() or None))
        known = {k: v for k, v in vars(self).items() if k != "columns" and v not in ("", 0, ())}
        metadata = {_FILE: json.dumps(known).encode()} if known else {}
        rest = {k: v for k, v in (schema.metadata or {}).items() if k != _FILE}
        return pa.schema(fields, {**rest, **metadata} or None)

    def __getitem__(self, name: str) -> ColumnFacts:
        return self.columns.get(name, _NONE)


_NONE = ColumnFacts()


def is_number_or_tag(column: pa.Field) -> bool:
    """Return whether ``column``, of text, holds numbers and reasons for missing ones, such as .a."""
    storage = ColumnFacts.of(column).storage
    return is_text(column.type) and storage is not None and not storage.startswith("string")


def numbers_and_tags(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Take ``column``, numbers and tags stored as text, apart: doubles, and letters of the tags.

    >>> numbers, tags = numbers_and_tags(pa.chunked_array([["1.5", ".a", None]]))
    >>> numbers.to_pylist(), tags.to_pylist()
    ([1.5, None, None], [None, 'a', None])
    """
    text = column.cast(pa.string())
    tagged = pc.fill_null(pc.match_substring_regex(text, _TAG), False)
    nothing = pa.scalar(None, pa.string())
    numbers = pc.if_else(tagged, nothing, text).cast(pa.float64())
    tags = pc.if_else(tagged, pc.utf8_slice_codeunits(text, 1, 2), nothing)
    return numbers, tags


def typed(table: pa.Table, whole: Mapping[str, bool] | None = None) -> pa.Table:
    """Return ``table`` with null in place of every code and tag that stands for a missing value.

    ``whole`` says of numbers without a type of their own whether they are whole, where the table is a
    part of a larger one (see :func:`whole_columns`).
    """
    described = [(j, column) for j, column in enumerate(table.schema) if column.metadata]
    if not described:
        return table
    columns, fields = list(table.columns), list(table.schema)
    for j, column in described:
        facts = ColumnFacts.of(column)
        if is_number_or_tag(column):
            numbers, _ = numbers_and_tags(columns[j])
            known = None if whole is None else whole.get(column.name)
            columns[j] = as_stored(numbers, facts.storage, known)
            fields[j] = column.with_type(columns[j].type)
        elif facts.missing:
            columns[j] = _without_codes(columns[j], facts)
    return pa.table(columns, schema=pa.schema(fields, table.schema.metadata))


_STORED = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "float": pa.float32()}


def as_stored(numbers: Any, storage: str | None, whole: bool | None = None) -> Any:
    """Return ``numbers``, doubles of Arrow, in the type of what the file stores.

    ``storage`` is that of :class:`ColumnFacts`; ``whole`` tells of numbers without a type of their own
    whether they are whole, None to look at them.
    """
    if storage in _STORED:
        return numbers.cast(_STORED[storage])
    if whole is None:
        whole = are_whole(numbers.drop_null().to_numpy())
    return numbers.cast(pa.int64()) if whole else numbers


def whole_columns(
    schema: pa.Schema, read: Callable[[list[str]], Iterable[pa.Table]]
) -> dict[str, bool]:
    """Tell of each column of numbers and tags whether it has values, and all are whole numbers.

    Columns of numbers with a type of their own are left out.

    Parameters
    ----------
    schema : of a table that is read in batches
    read : returns the batches of some columns; only called if there are such columns
    """
    are_numbers = (column for column in schema if column.metadata and is_number_or_tag(column))
    columns = [c.name for c in are_numbers if ColumnFacts.of(c).storage not in _STORED]
    tests: dict[str, list[bool]] = {name: [] for name in columns}
    for table in read(columns) if columns else ():
        for name in columns:
            values = numbers_and_tags(table[name])[0].drop_null().to_numpy()
            if len(values):
                tests[name].append(are_whole(values))
    return {name: bool(of_batches) and all(of_batches) for name, of_batches in tests.items()}


def are_whole(values: Any) -> bool:
    """Return whether ``values`` are whole numbers that an integer type holds, none of them minus zero."""
    with np.errstate(invalid="ignore"):
        whole = (values == np.floor(values)) & (np.abs(values) <= 2**53)
        return bool(len(values) and (whole & ~((values == 0) & np.signbit(values))).all())


def _without_codes(column: pa.ChunkedArray, facts: ColumnFacts) -> pa.ChunkedArray:
    kind = column.type
    text = is_text(kind)
    if not (text or pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return column
    compared = column if text else column.cast(pa.float64(), safe=False)
    codes = [code for code in facts.codes if isinstance(code, str) == text]
    missing = pc.is_in(compared, value_set=pa.array(codes, compared.type))
    for low, high in () if text else facts.ranges:
        inside = pc.and_(pc.greater_equal(compared, low), pc.less_equal(compared, high))
        missing = pc.or_(missing, pc.fill_null(inside, False))
    return pc.if_else(missing, pa.scalar(None, kind), column)


class Coded(NamedTuple):
    """What stands for missing values in a column, and where."""

    codes: tuple[float | str, ...]  # Numbers, or tags such as ".a"
    tags: Labels  # Number of each record's code, −1: none


def coded_numbers(
    column: pa.Field, as_written: pa.ChunkedArray, typed_column: pa.ChunkedArray
) -> Coded | None:
    """Find the codes and tags of a column of numbers; None where there are none.

    Parameters
    ----------
    column : the field with its facts
    as_written : the column as the file has it, with codes and tags
    typed_column : the same with null in their place, see :func:`typed`
    """
    if is_number_or_tag(column):
        _, letters = numbers_and_tags(as_written)
        letter_codes = letters.combine_chunks().dictionary_encode()
        codes: tuple[float | str, ...] = tuple(
            f".{tag}" for tag in letter_codes.dictionary.to_pylist()
        )
        tags = np.asarray(letter_codes.indices.cast(pa.int64()).fill_null(-1))
    elif pa.types.is_integer(as_written.type) or pa.types.is_floating(as_written.type):
        raw = np.asarray(as_written.cast(pa.float64(), safe=False))
        hidden = np.asarray(typed_column.is_null()) & ~np.isnan(raw)
        values, index = np.unique(raw[hidden], return_inverse=True)
        codes = tuple(values.tolist())
        tags = np.full(len(raw), -1)
        tags[hidden] = index.reshape(-1)
    else:
        return None
    return Coded(codes, tags) if codes else None
