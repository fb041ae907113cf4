"""What the format of a file cannot hold, found out before any work is done for it.

Values that would be lost are refused; labels, formats and other facts that would be are told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import TableError, listed, shown
from microagg.tables.excel import LONGEST_TEXT, MOST_COLUMNS, MOST_ROWS
from microagg.tables.files import FileFormat, Source, kind_of
from microagg.tables.labelled import ColumnFacts, Labelled, is_number_or_tag
from microagg.tables.libraries import plain_arrow
from microagg.tables.stata import LONGEST_NAME, OLDEST

__all__ = ["cannot_hold", "what_is_left"]

_PROGRAMS = {
    "spss": "an SPSS file",
    "stata": "a Stata file",
    "sas": "a SAS transport file",
    "excel": "an Excel file",
    "csv": "a CSV file",
    "fixed": "a file of fixed width",
    "parquet": "a Parquet file",
    "arrow": "an Arrow file",
}
# What a name may be, and how many bytes it may take.
_NAMES: dict[str, tuple[str, int, str]] = {
    "spss": (r"[^\W\d][\w.$#@]*", 64, "begin with a letter and have letters, digits and . _ $ # @"),
    "stata": (
        r"[^\W\d]\w*",
        4 * LONGEST_NAME,
        "begin with a letter or _ and have letters, digits and _",
    ),
    "sas": (
        r"[A-Za-z_][A-Za-z0-9_]*",
        32,
        "begin with a letter or _ and have letters a to z, digits and _",
    ),
}
# Words of the language of a program, which name no column.
_RESERVED = {
    "stata": "_all _b byte _coef _cons double float if in int long _n _N _pi _pred _rc _skip strL using with",
    "spss": "ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH",
    "sas": "",
}
_LONGEST_STRING = {"spss": 32_767, "sas": 32_767, "excel": LONGEST_TEXT}
_LARGEST = {"stata": 8.98e307, "sas": 7.2e75}
_SMALLEST = {"sas": 5.5e-79}
_VALUE_LABEL_LENGTH = {"spss": 120, "stata": 32_000}
_LABEL_LENGTH = {"spss": 255, "stata": 320, "sas": 255}


def what_is_left(source: Source, target: Path, dropped: Iterable[Any] = ()) -> list[str]:
    """Say what of a file that was read its target cannot hold; refuse what would lose values."""
    gone = {name for name in dropped if name in source.as_written.column_names}
    table = source.as_written.drop_columns(list(gone))
    kind = kind_of(target, writing=True) if target.suffix else "parquet"
    if kind == source.kind == "fixed":
        return _about_gaps(source.format)
    found = list(_about_sheets(source, kind))
    if source.is_text:
        table = source.table.drop_columns(list(gone))
    version = 5 if source.labelled.version == 5 and kind == "sas" else 0
    if kind == "fixed":
        raise TableError(
            "A file of fixed width is written at the positions of a description, which only a file of this "
            "kind brings along. Write another format."
        )
    return found + cannot_hold(table, kind, version)


def cannot_hold(table: pa.Table, kind: str, version: int = 0) -> list[str]:
    """Say what a file of some kind cannot hold of a table; refuse what would lose values.

    Parameters
    ----------
    table : with what is told about its columns as metadata, see :class:`Labelled`
    kind : of the file, see :func:`microagg.tables.files.kind_of`
    version : of the format, where it is known

    >>> facts = Labelled({"age": ColumnFacts(label="Age in years")}, "spss")
    >>> table = pa.table({"age": [1]}).cast(facts.on(pa.schema({"age": pa.int64()})))
    >>> cannot_hold(table, "csv")
    ["A CSV file has no place for labels of columns ('age'): they are left out."]
    """
    facts = Labelled.of(table.schema)
    if kind in ("spss", "stata", "sas"):
        _refuse_names(table, kind, version)
        _refuse_equal_names(table, kind)
    if kind in ("spss", "stata", "sas", "excel"):
        for column, values in zip(table.schema, table.columns, strict=True):
            _refuse_values(column, values, kind, version)
    if kind == "excel":
        _refuse_size(table)
    return list(_facts_left(table.schema, facts, kind))


def _refuse_names(table: pa.Table, kind: str, version: int) -> None:
    pattern, longest, words = _NAMES[kind]
    longest = 8 if kind == "sas" and version == 5 else longest
    for name in table.column_names:
        size = len(name) if kind == "stata" else len(name.encode())
        limit = LONGEST_NAME if kind == "stata" else longest
        reserved = _RESERVED[kind].split()
        if (name.upper() if kind == "spss" else name) in reserved:
            raise TableError(
                f"Names of columns in {_PROGRAMS[kind]} are no words of its language; {shown(name)} is one. "
                "Rename the column, or write another format."
            )
        if not re.fullmatch(pattern, name):
            raise TableError(
                f"Names of columns in {_PROGRAMS[kind]} {words}; {shown(name)} does not fit. Rename the "
                "column, or write another format."
            )
        if size > limit:
            raise TableError(
                f"Names of columns in {_PROGRAMS[kind]} have at most {limit} "
                f"{'signs' if kind == 'stata' else 'bytes'}; {shown(name)} has {size}. Rename the column, or "
                "write another format."
            )


def _refuse_equal_names(table: pa.Table, kind: str) -> None:
    different = len({name.lower() for name in table.column_names})
    if kind != "stata" and different < table.num_columns:
        raise TableError(
            f"Names of columns in {_PROGRAMS[kind]} differ in more than capitals; those of this table do "
            "not. Rename the columns, or write another format."
        )


def _refuse_values(column: pa.Field, values: Any, kind: str, version: int) -> None:
    if is_number_or_tag(column):
        return
    values = plain_arrow(values)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    dtype, name = values.type, column.name
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        limit = 200 if kind == "sas" and version == 5 else _LONGEST_STRING.get(kind)
        if limit is not None:
            _refuse_first(
                name,
                pc.greater(pc.binary_length(values), limit),
                f"Text in {_PROGRAMS[kind]} has at most {limit:,} bytes",
                "has longer text",
            )
        return
    if pa.types.is_integer(dtype):
        wide = pa.types.is_int64(dtype) or pa.types.is_uint64(dtype)
        if wide:
            large = pc.or_(
                pc.greater(values, 2**53), pc.less(values, -(2**53) if _signed(dtype) else 0)
            )
            _refuse_first(
                name,
                large,
                f"Whole numbers in {_PROGRAMS[kind]} are exact up to 2^53",
                "has a larger one",
            )
    elif pa.types.is_floating(dtype):
        _refuse_numbers(name, values, kind)
    elif pa.types.is_decimal(dtype):
        exact = np.array([v is None or float(v) == v for v in values.to_pylist()], dtype=bool)
        _refuse_first(
            name,
            pa.array(~exact),
            f"Numbers in {_PROGRAMS[kind]} are doubles",
            "has a decimal number that is none",
        )
    elif not (
        pa.types.is_boolean(dtype)
        or pa.types.is_date(dtype)
        or pa.types.is_timestamp(dtype)
        or pa.types.is_null(dtype)
    ):
        raise TableError(
            f"{_capital(_PROGRAMS[kind])} holds numbers, text and dates; column {shown(name)} of type "
            f"{dtype} does not fit. Write Parquet instead, or drop the column."
        )


def _signed(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_signed_integer(dtype))


def _refuse_numbers(name: str, values: Any, kind: str) -> None:
    doubles = values.cast(pa.float64())
    finite = pc.or_(pc.is_finite(doubles), pc.is_nan(doubles))
    _refuse_first(
        name, pc.invert(finite), f"Numbers in {_PROGRAMS[kind]} are finite", "has an infinite one"
    )
    if kind in _LARGEST:
        large = pc.greater(pc.abs(doubles), _LARGEST[kind])
        rule = f"Numbers in {_PROGRAMS[kind]} go up to {_LARGEST[kind]:.3g}"
        _refuse_first(name, large, rule, "has a larger one")
    if kind in _SMALLEST:
        small = pc.and_(
            pc.less(pc.abs(doubles), _SMALLEST[kind]), pc.not_equal(doubles, pa.scalar(0.0))
        )
        rule = f"Numbers in {_PROGRAMS[kind]} are zero or at least {_SMALLEST[kind]:.3g}"
        _refuse_first(name, small, rule, "has a smaller one")


def _refuse_first(name: str, bad: Any, rule: str, fact: str) -> None:
    row = pc.index(pc.fill_null(bad, False), True).as_py()
    if row >= 0:
        raise TableError(
            f"{rule}; column {shown(name)} {fact} in row {row + 1}. Drop the column, or write another "
            "format, such as Parquet."
        )


def _refuse_size(table: pa.Table) -> None:
    if table.num_rows + 1 > MOST_ROWS or table.num_columns > MOST_COLUMNS:
        raise TableError(
            f"A sheet has at most {MOST_ROWS - 1:,} records and {MOST_COLUMNS:,} columns; the table has "
            f"{table.num_rows:,} and {table.num_columns:,}. Write another format."
        )


def _facts_left(schema: pa.Schema, facts: Labelled, kind: str) -> Iterable[str]:
    """Say which labels, codes and formats have no place."""

    def with_fact(has: Callable[[ColumnFacts], object]) -> list[str]:
        return [name for name, column in facts.columns.items() if has(column)]

    place = f"{_capital(_PROGRAMS[kind])} has no place for"
    own = kind in ("parquet", "arrow")
    same = facts.family == kind
    tagged = [column.name for column in schema if is_number_or_tag(column)]
    if tagged and not same and {facts.family, kind} != {"stata", "sas"}:
        yield (
            f"{place} the letters that tell why a value is missing, such as .a ({listed(tagged)}): these "
            "values are missing without a reason."
        )
    if own:
        return
    left: dict[str, list[str]] = {}
    if kind in ("csv", "excel"):
        left["labels of columns"] = with_fact(lambda c: c.label)
    if kind in ("csv", "excel", "sas") and not same:
        left["labels of values"] = with_fact(lambda c: c.value_labels)
    if kind != "spss":
        left["declarations of missing codes"] = with_fact(lambda c: c.missing)
    if not same:
        left["formats, widths and levels of measurement of another program"] = with_fact(
            lambda c: c.format or c.measure
        )
    if kind == "stata" and not same:
        left["labels of values that are not whole numbers"] = with_fact(
            lambda c: any(not _is_whole(value) for value, _ in c.value_labels)
        )
    longest = _LABEL_LENGTH.get(kind)
    if longest is not None and not same:
        left[f"labels of columns beyond {longest} bytes"] = with_fact(
            lambda c: c.label and len(c.label.encode()) > longest
        )
    longest_value = _VALUE_LABEL_LENGTH.get(kind)
    if longest_value is not None and not same:
        left[f"labels of values beyond {longest_value:,} bytes"] = with_fact(
            lambda c: any(len(label.encode()) > longest_value for _, label in c.value_labels)
        )
    for what, names in left.items():
        if names:
            yield f"{place} {what} ({listed(names, limit=5)}): they are left out."
    if kind in ("csv", "excel") and (facts.label or facts.notes):
        yield f"{place} the label and the notes of a table: they are left out."
    if kind == "stata" and same and 0 < facts.version < OLDEST:
        yield (
            f"Stata files of format {facts.version} are read, not written: this one is written in format "
            f"{OLDEST}, for Stata 14 and newer."
        )
    if kind == "sas" and same:
        short = with_fact(lambda c: c.storage == "double" and (c.width or 8) < 8)
        if short:
            yield (
                f"Numbers of fewer than 8 bytes ({listed(short, limit=5)}) are written with 8; their values "
                "stay the same."
            )
    for lost in facts.lost:
        yield f"{_capital(lost)} cannot be written and are left out."


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) == 1  # the letter of a missing value
    return float(value).is_integer() and abs(value) <= 2_147_483_620


def _about_sheets(source: Source, kind: str) -> Iterable[str]:
    if source.kind != "excel":
        return
    excel = source.format.excel
    if excel.others:
        yield f"Only the sheet {shown(excel.sheet)} is written, without {listed(excel.others, limit=5)}."
    if kind == "excel":
        yield "Values of cells are written; formulas, colours and widths of a sheet are not."


def _about_gaps(form: FileFormat) -> list[str]:
    gaps = [] if form.fixed is None else form.fixed.gaps
    if not gaps:
        return []
    places = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in gaps[:5])
    more = f" and {len(gaps) - 5} more" if len(gaps) > 5 else ""
    return [f"Positions that no column describes ({places}{more}) are written as blanks."]


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]
