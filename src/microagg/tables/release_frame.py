"""The frame that leaves the house: new values in, identifiers out or renumbered; a random order of rows.

Its metadata follow an allowlist: a release needs the types, labels and formats of its columns, and labels of
the codes that some released record has. All other metadata may be about people (a note, the label of a code
that only one record had, what a pipeline wrote into the schema) and is left out.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.pandas_compat import get_logical_type

from microagg.base.typing import Labels
from microagg.errors import listed
from microagg.tables.file_metadata import ColumnFacts, Labelled, is_number_or_tag, numbers_and_tags
from microagg.tables.frame import Frame, codes_as_written
from microagg.tables.frame_libraries import decoded, is_number, is_text, pandas_notes


def released_frame(
    frame: Frame,
    columns: Mapping[Any, Any],
    *,
    drop: Collection[Any] = (),
    renumber: Collection[Any] = (),
    text: Frame | None = None,
) -> Any:
    """Return a native frame of the caller's type, rows in the order given.

    Of metadata it has what a release needs, see :mod:`microagg.tables.release_frame`.

    Parameters
    ----------
    frame : the original table, which stays as it is
    columns : native columns that take the place of those of the same name
    drop : columns to leave out
    renumber : columns of identifiers; numbers in their place are drawn by :func:`random_order`
    text : the same table as a CSV file holds it, in which long ids differ that are one double
    """
    new = dict(columns)
    for name in renumber:
        codes = codes_as_written(frame if text is None else text, name, text is not None)
        numbers = np.append(1 + random_order(int(codes.max(initial=-1)) + 1), 0)
        new[name] = frame.integers_like(name, numbers[codes], codes < 0)
    native = frame.with_columns(new)
    if drop:
        kept = [j for j, name in enumerate(frame.names) if name not in drop]
        native = nw.from_native(native, eager_only=True)[:, kept].to_native()
    if not isinstance(native, pa.Table):  # other frames have no metadata any more
        return native
    for at, field in enumerate(native.schema):
        if field.name in renumber:  # of all facts about the numbers before, only the label stays
            label = {k: v for k, v in (field.metadata or {}).items() if k == _LABEL}
            native = native.set_column(at, field.with_metadata(label or None), native[at])
    return released_table(native)


def random_order(n: int) -> Labels:
    """Draw an order of n rows, all orders with the same chance: which comes first, second, and so on.

    The random numbers are the operating system's, never those of a seed: who knows the seed could undo
    the order.
    """
    # Two of n numbers of 64 bits are equal with a chance of n²/2⁶⁵.
    return np.argsort(np.frombuffer(os.urandom(8 * n), np.uint64)).astype(np.int64)


def reordered(native: Any, order: Labels) -> Any:
    """Return a ``native`` frame of the rows ``order``, in that order."""
    wrapped = nw.from_native(native, eager_only=True)
    result = wrapped[order, :].to_native()
    if wrapped.implementation.is_pandas():
        index = native.index
        automatic = type(index).__name__ == "RangeIndex" and index.name is None
        return result.reset_index(drop=True) if automatic else result
    return result


_PANDAS, _FILE = b"pandas", b"microagg.file"
_FIELD_ID = b"PARQUET:field_id"  # the number of a column, which each Parquet file has
_OWN, _LABEL = b"microagg.", b"microagg.label"

# How pandas names its types, as far as the type of an Arrow column does not settle it.
_PANDAS_TYPES = {"object", "category", "str", "string", "bool", "boolean"}
_PANDAS_TYPES |= {"string[python]", "string[pyarrow]", "string[pyarrow_numpy]"}
_PANDAS_UNITS = re.compile(r"(datetime64|timedelta64)\[(s|ms|us|ns)\]")


def _present(field: pa.Field, column: Any, fact: ColumnFacts) -> set[Any]:
    """Codes of a column, and ranges of missing codes, that some record has."""
    texts, numbers = None, None  # values of other types are never codes
    if is_number_or_tag(field):
        numbers, texts = numbers_and_tags(column)
    else:
        column = decoded(column)
        column = column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column
        if is_text(column.type):
            texts = column
        elif is_number(column.type):
            numbers = column.cast(pa.float64(), safe=False)
    codes = dict.fromkeys([value for value, _ in fact.value_labels] + fact.codes)
    present = set[Any]()
    for values, of_text in ((texts, True), (numbers, False)):
        wanted = [code for code in codes if isinstance(code, str) == of_text]
        if values is not None and wanted:
            listed_codes = pa.array(wanted if of_text else map(float, wanted), values.type)
            at = pc.index_in(values, value_set=listed_codes, skip_nulls=True)
            present |= {wanted[index] for index in at.unique().drop_null().to_pylist()}
    for low, high in () if numbers is None else fact.ranges:
        inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
        if pc.any(inside).as_py():
            present.add((low, high))
    return present


def released_schema(
    schema: pa.Schema, tables: Iterable[pa.Table], rows: int | None = None
) -> pa.Schema:
    """Return a schema with the metadata that a release needs and no other.

    Parameters
    ----------
    schema : of the released table, with the metadata of its source
    tables : its records, in batches; only looked at if a column has labelled or missing codes
    rows : number of records, by which the row numbers of a pandas frame are kept; None: not known
    """
    facts = {column.name: ColumnFacts.of(column) for column in schema}
    coded = {name: fact for name, fact in facts.items() if fact.value_labels or fact.missing}
    present: dict[str, set[Any]] = {name: set() for name in coded}
    for table in tables if coded else ():
        for name, fact in coded.items():
            present[name] |= _present(table.schema.field(name), table[name], fact)
    for name, fact in coded.items():
        facts[name] = dataclasses.replace(
            fact,
            value_labels=tuple(pair for pair in fact.value_labels if pair[0] in present[name]),
            missing=tuple(code for code in fact.missing if code in present[name]),
        )
    fields = []
    for column in schema:
        kept = facts[column.name].as_metadata()
        number = (column.metadata or {}).get(_FIELD_ID, b"")
        if re.fullmatch(rb"-?\d{1,10}", number):
            kept[_FIELD_ID] = number
        bare = column.with_type(_bare(column.type)).remove_metadata()
        fields.append(bare.with_metadata(kept) if kept else bare)
    whole: dict[bytes, bytes] = {}
    notes = pandas_notes(schema)
    if notes:
        whole[_PANDAS] = json.dumps(_released_notes(notes, schema, rows)).encode()
    if _FILE in (schema.metadata or {}):
        file = Labelled.of(schema)
        # Whose formats the columns have, and how the file is written.
        plain = Labelled({}, file.family, version=file.version, compression=file.compression)
        whole |= plain.on(pa.schema([])).metadata or {}
    return pa.schema(fields, whole or None)


def _bare(kind: pa.DataType) -> pa.DataType:
    """Return a type whose inner fields have no metadata."""
    if not kind.num_fields or not _has_inner_metadata(kind):
        return kind
    inner = [kind.field(j) for j in range(kind.num_fields)]
    plain = [field.with_type(_bare(field.type)).remove_metadata() for field in inner]
    if pa.types.is_struct(kind):
        return pa.struct(plain)
    if pa.types.is_map(kind):
        return pa.map_(_bare(kind.key_type), _bare(kind.item_type), kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain[0], kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(plain[0])
    return pa.list_(plain[0]) if pa.types.is_list(kind) else kind


def _has_inner_metadata(kind: pa.DataType) -> bool:
    inner = [kind.field(j) for j in range(kind.num_fields)]
    return any(field.metadata or _has_inner_metadata(field.type) for field in inner)


def _released_notes(notes: Mapping[str, Any], schema: pa.Schema, rows: int | None) -> Any:
    """Write anew what pandas needs to know to make the same frame of a released table."""
    noted = {
        note["field_name"]: note
        for note in notes.get("columns", ())
        if isinstance(note, dict) and isinstance(note.get("field_name"), str)
    }
    columns = [_described(column, noted[column.name]) for column in schema if column.name in noted]
    index: list[Any] = []
    for entry in notes.get("index_columns", ()):
        if isinstance(entry, str):
            index += [entry] if entry in schema.names else []
        elif isinstance(entry, dict) and entry.get("kind") == "range":
            ends: list[Any] = [entry.get(end) for end in ("start", "stop", "step")]
            whole = all(isinstance(end, int) for end in ends) and ends[2]
            if not whole or rows is None or len(range(*ends)) != rows:
                ends = [0, rows or 0, 1]
            name = entry["name"] if isinstance(entry.get("name"), str) else None
            numbers = dict(zip(("start", "stop", "step"), ends, strict=True))
            index.append({"kind": "range", "name": name, **numbers})
    return {
        "index_columns": index,
        "column_indexes": [],
        "columns": columns,
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": None,
    }


def _described(column: pa.Field, noted: Mapping[str, Any]) -> dict[str, Any]:
    kind, name = column.type, noted.get("name", column.name)
    metadata: dict[str, Any] | None = None
    if pa.types.is_dictionary(kind):
        metadata = {"num_categories": None, "ordered": kind.ordered}
    elif pa.types.is_timestamp(kind) and kind.tz is not None:
        metadata = {"timezone": kind.tz}
    elif pa.types.is_decimal(kind):
        metadata = {"precision": kind.precision, "scale": kind.scale}
    return {
        "name": None if name is None else column.name,
        "field_name": column.name,
        "pandas_type": get_logical_type(kind),
        "numpy_type": _numpy_type(kind, noted.get("numpy_type")),
        "metadata": metadata,
    }


def _numpy_type(kind: pa.DataType, noted: Any) -> str:
    """Return the type that pandas noted where it is one of its own for such a column."""
    if pa.types.is_dictionary(kind):
        return str(np.dtype(kind.index_type.to_pandas_dtype()).name)
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    plain = np.dtype(kind.to_pandas_dtype()).name if numeric else "object"
    own = {plain, plain.capitalize(), plain.replace("uint", "UInt"), f"{kind}[pyarrow]"}
    if not isinstance(noted, str) or noted in own or numeric:
        return noted if isinstance(noted, str) and noted in own else plain
    moment = _PANDAS_UNITS.fullmatch(noted)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        moment = re.fullmatch(rf"datetime64\[(s|ms|us|ns), {re.escape(kind.tz)}\]", noted)
    return noted if moment or noted in _PANDAS_TYPES else plain


def with_schema(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return ``table`` with another ``schema`` of the same types, whose metadata may differ."""
    columns = [
        column if column.type.equals(field.type, check_metadata=True) else column.cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def released_table(table: pa.Table) -> pa.Table:
    """Return ``table`` with the metadata that a release needs and no other.

    >>> facts = ColumnFacts(label="Sex", value_labels=((1, "male"), (2, "female")))
    >>> field = pa.field("sex", pa.int64(), metadata=facts.as_metadata())
    >>> table = pa.table([[1, 1, 1]], schema=pa.schema([field], {"author": "Ann"}))
    >>> safe = released_table(table).schema
    >>> safe.metadata, ColumnFacts.of(safe.field("sex")).value_labels
    (None, ((1, 'male'),))
    """
    return with_schema(table, released_schema(table.schema, [table], table.num_rows))


def left_out_words(before: pa.Schema, after: pa.Schema) -> list[str]:
    """Say what metadata tell ``before`` a release and not ``after`` it, as one sentence or none.

    >>> left_out_words(pa.schema([("age", pa.int64())], {"author": "Ann"}), pa.schema([("age", pa.int64())]))
    ["Left out, because a release does not need it: the table's metadata 'author'."]
    """
    sentences = []
    metadata, kept = before.metadata or {}, after.metadata or {}
    names = [key.decode(errors="replace") for key in metadata if key not in {_PANDAS, _FILE, *kept}]
    if names:
        sentences.append(f"the table's metadata {listed(sorted(names), limit=5)}")
    if pandas_notes(before).get("attributes"):
        sentences.append("the attributes of the pandas frame")
    old, new = Labelled.of(before), Labelled.of(after)
    for fact, what in (
        ("label", "the label of the file"),
        ("notes", "the notes of the file"),
        ("table_name", "the name of the table"),
    ):
        sentences += [what] if getattr(old, fact) and not getattr(new, fact) else []
    released = set(after.names)
    same = [name for name in before.names if name in released]
    marked = [name for name in same if _foreign(before.field(name)) - _foreign(after.field(name))]
    if marked:
        sentences.append(f"metadata of columns ({listed(marked, limit=5)})")
    for fact, what in (("value_labels", "labels of codes"), ("missing", "missing codes")):
        fewer = [n for n in same if len(getattr(new[n], fact)) < len(getattr(old[n], fact))]
        if fewer:
            sentences.append(f"{what} that no released record has ({listed(fewer, limit=5)})")
    words = f"Left out, because a release does not need it: {'; '.join(sentences)}."
    return [words] if sentences else []


def _foreign(field: pa.Field) -> set[bytes]:
    keys = {k for k in field.metadata or {} if not k.startswith(_OWN) and k != _FIELD_ID}
    return keys | ({b""} if _has_inner_metadata(field.type) else set())
