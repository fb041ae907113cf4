"""Whether a file that was written holds what was to be in it, beside what was protected."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import shown
from microagg.tables.files import Source
from microagg.tables.labelled import ColumnFacts, Labelled, is_number_or_tag, numbers_and_tags
from microagg.tables.libraries import plain_arrow
from microagg.tables.stata import OLDEST

__all__ = ["difference"]

_OF_VALUES = ("storage", "width")  # which follow new values


def difference(table: pa.Table, back: Source, untouched: Iterable[str]) -> str | None:
    """Say what first differs between a table and the file that it was written to; None: nothing.

    Compared are the names of all columns, the values of those untouched, and the labels, missing codes and
    formats of all that the format of the file has a place for.
    """
    found = back.as_written
    if sorted(found.column_names) != sorted(table.column_names):
        return "its columns have other names"
    if found.num_rows != table.num_rows:
        return f"it has {found.num_rows} of {table.num_rows} records"
    kept = set(untouched)
    for name in table.column_names:
        if name in kept and not _same(table, found, name, back.kind):
            return f"the values of column {shown(name)} are not those that were to be written"
    return _other_fact(Labelled.of(table.schema), back, kept)


def _other_fact(given: Labelled, back: Source, untouched: set[str]) -> str | None:
    own = back.kind in ("parquet", "arrow")
    if not own and given.family != back.kind:
        return None
    found = back.labelled
    for name, facts in given.columns.items():
        for field in dataclasses.fields(ColumnFacts):
            value, other = getattr(facts, field.name), getattr(found[name], field.name)
            if field.name in _OF_VALUES and (name not in untouched or _widened(facts, given)):
                continue
            if field.name == "value_labels":
                value, other = dict(value), dict(other)
            if value not in (None, ()) and value != other:
                what = field.name.replace("_", " ")
                return f"column {shown(name)} has another {what}"
    if (given.label, given.notes) != (found.label, found.notes) and given.family != "sas":
        return "the label or the notes of the table are others"
    return None


def _widened(facts: ColumnFacts, given: Labelled) -> bool:
    """Whether a number of SAS, or text of an old Stata file, took fewer bytes than it does now."""
    if given.family == "sas":
        return facts.storage == "double"
    return given.family == "stata" and given.version < OLDEST and facts.storage == "string"


def _same(table: pa.Table, found: pa.Table, name: str, kind: str) -> Any:
    one, other = _plain(table[name]), _plain(found[name])
    if kind in ("csv", "fixed"):
        # Numbers were turned into text on the way; what was text must be the same.
        text = pa.types.is_string(one.type) or pa.types.is_large_string(one.type)
        return not text or one.cast(pa.string()).fill_null("").equals(other.cast(pa.string()))
    if is_number_or_tag(table.schema.field(name)) and kind in ("stata", "sas"):
        (a, tags), (b, others) = (_numbers_and_tags(t, name) for t in (table, found))
        tags, others = (_letters(letters, kind) for letters in (tags, others))
        return _equal_numbers(a, b) and bool(tags.equals(others))
    if pa.types.is_string(one.type) or pa.types.is_large_string(one.type):
        if kind in ("spss", "sas"):  # which fill text up with blanks
            one, other = (_stripped(column) for column in (one, other))
        return _text(one).equals(_text(other))
    if kind == "excel":
        return _same_in_a_sheet(one, other)
    if one.type == other.type and one.equals(other):
        return True
    if _is_moment(one.type) and _is_moment(other.type):
        return _moments(one).equals(_moments(other))
    if _is_number(one.type) and _is_number(other.type):
        return _equal_numbers(one, other)
    return repr(one.to_pylist()) == repr(other.to_pylist())  # in which NaN is NaN, nested too


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = plain_arrow(column)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([column.cast(pa.large_string()).fill_null("").combine_chunks()])


def _stripped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_rtrim(column.cast(pa.large_string()), " ")


def _numbers_and_tags(table: pa.Table, name: str) -> tuple[Any, Any]:
    if is_number_or_tag(table.schema.field(name)):
        return numbers_and_tags(table[name])
    nothing = pa.chunked_array([pa.nulls(table.num_rows, pa.string())])
    return table[name], nothing


def _letters(tags: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
    """Letters of missing values without capitals, which SAS has and Stata has not."""
    letters = pc.utf8_lower(tags)
    return (
        pc.if_else(pc.equal(letters, "_"), pa.scalar(None), letters) if kind == "stata" else letters
    )


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _equal_numbers(one: Any, other: Any) -> bool:
    a, b = (np.asarray(_doubles(column)) for column in (one, other))
    return bool(np.array_equal(a, b, equal_nan=True))


def _doubles(column: Any) -> Any:
    return column.cast(pa.float64(), safe=False).to_numpy()


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _moments(column: Any) -> Any:
    return pa.chunked_array([column.cast(pa.timestamp("us"), safe=False).combine_chunks()])


def _same_in_a_sheet(one: Any, cells: Any) -> bool:
    if not _is_number(one.type):
        return True
    texts = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
    try:
        return _equal_numbers(one, texts.cast(pa.float64()))
    except pa.ArrowInvalid:
        return False
