"""What a format of files is: how it is read and written, what it cannot hold, what stays the same in it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.errors import TableError, listed, shown
from microagg.formats.layouts import FileFormat
from microagg.tables.file_metadata import ColumnFacts, Labelled, is_number_or_tag
from microagg.tables.frame_libraries import decoded, is_number, is_text


class Format:
    """A format of files; :data:`microagg.formats.files.FORMATS` has one of each."""

    name: ClassVar[str]
    words: ClassVar[str]
    """With its article, for sentences."""
    is_text: ClassVar[bool] = False
    """Whether every column is read as the text that stands in the file."""
    is_program: ClassVar[bool] = False
    """Whether it is a statistical program's: labels and missing codes are part of each file."""
    keeps_facts: ClassVar[bool] = False
    """Whether all that is known about columns has a place, and row labels too."""
    in_batches: ClassVar[bool] = False
    """Whether it can be read and written in batches."""
    limits_values: ClassVar[bool] = False
    """Whether some values or names do not fit."""
    has_formulas: ClassVar[bool] = False
    """Whether a spreadsheet program takes some texts of a file for formulas."""
    has_sheets: ClassVar[bool] = False
    has_tags: ClassVar[bool] = False
    """Whether letters tell why a value is missing."""

    # What has a place.
    labels: ClassVar[bool] = True
    """Whether columns and the table have labels."""
    value_labels: ClassVar[bool] = True
    whole_value_labels: ClassVar[bool] = False
    """Whether only whole numbers, and letters of missing values, have labels."""
    missing_codes: ClassVar[bool] = False
    longest_label: ClassVar[float] = math.inf
    """In bytes."""
    longest_value_label: ClassVar[float] = math.inf
    longest_text: ClassVar[float] = math.inf
    older_limits: ClassVar[Mapping[int, tuple[int, int]]] = {}
    """Bytes of the longest name and the longest text, of versions in which they are shorter."""
    largest: ClassVar[float] = math.inf
    """Largest number."""
    smallest: ClassVar[float] = 0.0
    """Smallest number above zero."""

    def read(self, path: Path, file: Any, form: FileFormat) -> tuple[pa.Table, FileFormat]:
        """Read a file; also return how it is laid out.

        ``file`` is open at its beginning, None for a folder; ``form`` has what somebody said about CSV files
        and the sheet of a workbook.
        """
        raise NotImplementedError

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a table, laid out as ``form`` says."""
        raise NotImplementedError

    def about(self, form: FileFormat, target: Format) -> Iterator[str]:
        """Say what a file of this format holds, apart from its columns, that a target does not get."""
        yield from ()

    def refuse(self, table: pa.Table, version: int = 0) -> None:
        """Refuse names and values that would be lost; ``version`` is that of the format, if known."""
        numbers = f"Numbers in {self.words}"
        for column, column_values in zip(table.schema, table.columns, strict=True):
            if not self.limits_values or is_number_or_tag(column):
                continue
            values = decoded(column_values)
            dtype, faults = values.type, []
            if is_text(dtype):
                limit = self.older_limits.get(version, (0, self.longest_text))[1]
                rule = f"Text in {self.words} has at most {limit:,} bytes"
                faults = [(pc.greater(pc.binary_length(values), limit), rule, "has longer text")]
            elif pa.types.is_int64(dtype) or pa.types.is_uint64(dtype):
                least = -(2**53) if pa.types.is_signed_integer(dtype) else 0
                large = pc.or_(pc.greater(values, 2**53), pc.less(values, least))
                rule = f"Whole numbers in {self.words} are exact up to 2^53"
                faults = [(large, rule, "has a larger one")]
            elif pa.types.is_floating(dtype):
                doubles = values.cast(pa.float64())
                size = pc.abs(doubles)
                small = pc.and_(pc.less(size, self.smallest), pc.not_equal(doubles, pa.scalar(0.0)))
                large, up_to = pc.greater(size, self.largest), f"go up to {self.largest:.3g}"
                at_least = f"are zero or at least {self.smallest:.3g}"
                faults = [
                    (pc.is_inf(doubles), f"{numbers} are finite", "has an infinite one"),
                    (large, f"{numbers} {up_to}", "has a larger one"),
                    (small, f"{numbers} {at_least}", "has a smaller one"),
                ]
            elif pa.types.is_decimal(dtype):
                other = [v is not None and float(v) != v for v in values.to_pylist()]
                bad = pa.array(other, pa.bool_())
                faults = [(bad, f"{numbers} are doubles", "has a decimal number that is none")]
            elif not (
                pa.types.is_integer(dtype)
                or pa.types.is_boolean(dtype)
                or _is_moment(dtype)
                or pa.types.is_null(dtype)
            ):
                raise TableError(
                    f"{_capital(self.words)} holds numbers, text and dates; column {shown(column.name)} of "
                    f"type {dtype} does not fit. Write Parquet instead, or drop the column."
                )
            for bad, rule, fact in faults:
                row = pc.index(pc.fill_null(bad, False), True).as_py()
                if row >= 0:
                    raise TableError(
                        f"{rule}; column {shown(column.name)} {fact} in row {row + 1}. Drop the column, or "
                        "write another format, such as Parquet."
                    )

    def left_out(self, schema: pa.Schema, facts: Labelled) -> Iterator[str]:
        """Say which labels, codes and formats have no place."""
        no_place = f"{_capital(self.words)} has no place for"
        same = facts.family == self.name
        tagged = [column.name for column in schema if is_number_or_tag(column)]
        if tagged and not same and not self.has_tags:
            yield (
                f"{no_place} the letters that tell why a value is missing, such as .a ({listed(tagged)}): "
                "these values are missing without a reason."
            )
        if self.keeps_facts:
            return
        for what, has in self._no_place(same):
            names = [name for name, column in facts.columns.items() if has(column)]
            if names:
                yield f"{no_place} {what} ({listed(names, limit=5)}): they are left out."
        if not self.labels and (facts.label or facts.notes):
            yield f"{no_place} the label and the notes of a table: they are left out."
        if same:
            yield from self._rewritten(facts)
        for lost in facts.lost:
            yield f"{_capital(lost)} cannot be written and are left out."

    def _no_place(self, same: bool) -> Iterator[tuple[str, Callable[[ColumnFacts], object]]]:
        """Name what has no place, and tell which columns have such; ``same``: they come from this format."""
        if not self.labels:
            yield "labels of columns", lambda c: c.label
        if not self.value_labels and not same:
            yield "labels of values", lambda c: c.value_labels
        if not self.missing_codes:
            yield "declarations of missing codes", lambda c: c.missing
        if same:
            return
        other_words = "formats, widths and levels of measurement of another program"
        yield other_words, lambda c: c.format or c.measure
        if self.whole_value_labels:
            fractions = "labels of values that are not whole numbers"
            yield fractions, lambda c: any(not _is_whole(value) for value, _ in c.value_labels)
        most, most_of_value = self.longest_label, self.longest_value_label
        long = f"labels of columns beyond {most} bytes"
        yield long, lambda c: c.label and len(c.label.encode()) > most
        long = f"labels of values beyond {most_of_value:,} bytes"
        yield long, lambda c: any(len(text.encode()) > most_of_value for _, text in c.value_labels)

    def _rewritten(self, facts: Labelled) -> Iterator[str]:
        """Say what of a file of the same format is written otherwise."""
        yield from ()

    def same(self, table: pa.Table, read_back: pa.Table, name: str) -> bool:
        """Return whether a column of a file that was read back holds what was to be written."""
        stored, back = stored_values(table[name]), stored_values(read_back[name])
        return (self._same_text if is_text(stored.type) else self._same_values)(stored, back)

    def _same_text(self, written: Any, read_back: Any) -> bool:
        return _equal_as(written, read_back, pa.large_string())

    def _same_values(self, written: Any, read_back: Any) -> bool:
        if written.type == read_back.type and written.equals(read_back):
            return True
        if _is_moment(written.type) and _is_moment(read_back.type):
            return _equal_as(written, read_back, pa.timestamp("us"))
        if is_number(written.type) and is_number(read_back.type):
            return equal_numbers(written, read_back)
        # In which NaN is NaN, nested too.
        return repr(written.to_pylist()) == repr(read_back.to_pylist())

    def may_widen(self, column: ColumnFacts, facts: Labelled) -> bool:
        """Return whether values of a column may take more bytes than they did."""
        return False


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) == 1  # the letter of a missing value
    return float(value).is_integer() and abs(value) <= 2_147_483_620


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def stored_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as files store it: without runs and dictionaries, truth values as 0 and 1."""
    column = decoded(column)
    return column.cast(pa.int8()) if pa.types.is_boolean(column.type) else column


def _equal_as(written: Any, read_back: Any, kind: pa.DataType) -> bool:
    """Return whether two columns are equal as values of a type; no text is the empty one."""
    one, other = (column.cast(kind, safe=False) for column in (written, read_back))
    if is_text(kind):
        one, other = one.fill_null(""), other.fill_null("")
    return bool(one.equals(other))


def equal_numbers(one: Any, other: Any) -> bool:
    """Return whether two columns hold the same numbers."""
    a, b = (column.cast(pa.float64(), safe=False).to_numpy() for column in (one, other))
    return bool(np.array_equal(a, b, equal_nan=True))


def _is_moment(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
