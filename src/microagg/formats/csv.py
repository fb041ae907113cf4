"""CSV, read as text so that what is not protected is written back to the letter.

A postal code 00123, an amount 1.50 or an id of 25 digits comes out as it went in.
``tables/numbers_in_text.py`` finds out which columns are numbers. Blank lines are skipped.

A spreadsheet program takes some texts for formulas when it opens a CSV file, and may run them: they are
counted here, and escaped where that is asked for.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import io
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from microagg.base.formatting import plural
from microagg.errors import InputError, TableError, listed, shown
from microagg.formats.format import Format
from microagg.formats.layouts import CsvFormat, FileFormat, completed_csv
from microagg.tables.frame_libraries import decoded, is_text
from microagg.tables.numbers_in_text import in_threads

_DELIMITERS = ",;\t|"
_HEAD_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 20
_LARGEST_BLOCK = 2**31 - 2
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # begins like the mark of UTF-16
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_ROWS_AT_ONCE = 100_000


def _find_out(head: bytes, form: CsvFormat) -> CsvFormat:
    """Fill in delimiter, encoding and line end from the head of the file."""
    encoding = codecs.lookup(form.encoding or "utf-8").name
    for mark, name in _MARKS.items():
        fits = form.encoding is None or name.startswith(encoding) or encoding.startswith(name)
        if fits and head.startswith(mark):
            encoding = name  # the mark is kept
    text = head.decode(encoding, errors="replace").lstrip("\r\n")
    bare = "".join(text.split('"')[::2])  # what stands outside quotes
    line, end = re.match(r"([^\r\n]*)(\r\n|\r|\n|)", bare).groups()  # type: ignore[union-attr]
    candidates = _DELIMITERS.replace(form.decimal, "")
    return dataclasses.replace(
        form,
        delimiter=form.delimiter or max(candidates, key=line.count),
        encoding=encoding,
        newline=end or "\n",
    )


class Csv(Format):
    """CSV, also compressed."""

    name = "csv"
    words = "a CSV file"
    is_text = True
    in_batches = True
    has_formulas = True
    labels = value_labels = False

    def read(self, path: Path, file: Any, form: FileFormat) -> tuple[pa.Table, FileFormat]:
        """Read a file."""
        text = CsvText(path, form.csv, file)
        return text.read(file), FileFormat(text.form)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a table as CSV: shortest numbers that read back the same, quotes where needed."""
        with path.open("wb") as file:
            CsvWriter(file, table.column_names, completed_csv(path, form.csv)).write(table)

    def _same_text(self, written: Any, read_back: Any) -> bool:
        return bool(written.cast(pa.string()).fill_null("").equals(read_back.cast(pa.string())))

    def _same_values(self, written: Any, read_back: Any) -> bool:
        return True  # numbers were turned into text on the way


class CsvText:
    """A CSV file as text: its format and names, and its records at once or some at a time."""

    def __init__(self, path: Path, form: CsvFormat, file: BinaryIO | None = None) -> None:
        self.path = path
        with path.open("rb") if file is None else nullcontext(file) as file:
            self.size = os.fstat(file.fileno()).st_size
            head = file.read(_HEAD_BYTES)
            self.form = _find_out(head, form)
            file.seek(0)
            with self._in_encoding(), _line_reader(file, self.form) as reader:
                names = next((row for row in reader if row), None)
                self._lines = reader.line_num  # that the header takes up
                self._empty = not any(reader)
        if names is None:
            raise TableError(
                f"A CSV file begins with a line of column names; {shown(str(path), 300)} is empty. "
                "Check that it was copied whole."
            )
        self.names: list[str] = names
        lines = max(head.count(self.form.newline[-1].encode()), 1)
        self.about_lines = lines * self.size // max(len(head), 1)
        """Lines of the file, about."""
        refuse_equal_names(path, self.names)
        # A hundred rows or more, so that wide tables do not fall into many pieces.
        self._block = min(max(_BLOCK_BYTES, 100 * sum(map(len, self.names))), _LARGEST_BLOCK)

    def read(self, file: BinaryIO) -> pa.Table:
        """Read all records from the ``file``, which is open."""
        with self._in_encoding():
            if self._empty:
                _refuse_broken_rows(self.path, self.form)
                return pa.schema([(name, pa.string()) for name in self.names]).empty_table()
            while True:
                file.seek(0)
                try:
                    table = pacsv.read_csv(file, **self._options(self.names))
                except pa.ArrowInvalid as error:
                    self._enlarge_block(error)
                else:
                    self._check_end(table)
                    return table

    def pieces(self, columns: Iterable[str] | None = None) -> Iterator[pa.Table]:
        """Read some records at a time, about as many as a block of the file holds.

        A record longer than a block is found after some were handed out: reading goes on behind these
        in larger blocks, also the next time.
        """
        wanted, done = list(self.names if columns is None else columns), 0
        with self._in_encoding():
            if self._empty:
                _refuse_broken_rows(self.path, self.form)
                return
            while True:
                try:
                    for piece in self._parse(wanted, done):
                        done += piece.num_rows
                        yield piece
                    return
                except pa.ArrowInvalid as error:
                    self._enlarge_block(error)

    def _enlarge_block(self, error: pa.ArrowInvalid) -> None:
        """Refuse a file that is damaged; what is left is a value longer than a block."""
        if "UTF8" in str(error):
            raise _not_in_encoding(self.path, self.form, "invalid bytes") from None
        _refuse_broken_rows(self.path, self.form)
        longest = min(self.size, _LARGEST_BLOCK)
        if self._block >= longest:
            raise TableError(f"Cannot read {shown(str(self.path), 300)} as CSV: {error}.") from None
        self._block = min(8 * self._block, longest)

    def _check_end(self, table: pa.Table) -> None:
        """Look for an unclosed quote if the last cell has several lines: one may have begun there."""
        if table.num_rows and "\n" in table[self.names[-1]][-1].as_py():
            _refuse_broken_rows(self.path, self.form)

    def _parse(self, columns: list[str], skip: int) -> Iterator[pa.Table]:
        # The last column is where a quote that was never closed shows.
        parsed = [*columns, *([] if self.names[-1] in columns else [self.names[-1]])]
        piece = None
        # Arrow itself opens no file whose name is not UTF-8.
        with self.path.open("rb") as file, pacsv.open_csv(file, **self._options(parsed)) as reader:
            for batch in reader:
                piece = pa.Table.from_batches([batch])
                if skip < piece.num_rows:
                    yield piece.slice(skip).select(columns)
                skip = max(skip - piece.num_rows, 0)
        if piece is not None:
            self._check_end(piece)

    def _options(self, columns: list[str]) -> dict[str, Any]:
        encoding = self.form.encoding
        return {
            "read_options": pacsv.ReadOptions(
                encoding="utf-8" if encoding == "utf-8-sig" else encoding,  # arrow skips the mark
                column_names=self.names,
                skip_rows=self._lines,
                block_size=self._block,
            ),
            "parse_options": pacsv.ParseOptions(
                delimiter=self.form.delimiter, newlines_in_values=True
            ),
            "convert_options": pacsv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()),
                strings_can_be_null=False,
                include_columns=columns,
            ),
        }

    @contextmanager
    def _in_encoding(self) -> Iterator[None]:
        try:
            yield
        except UnicodeError as error:
            raise _not_in_encoding(self.path, self.form, str(error)) from None


def refuse_equal_names(path: Path, names: Iterable[str]) -> None:
    """Refuse a table in which two columns have one name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise TableError(
            f"Column names must differ; in {shown(str(path), 300)} {listed(repeated)} occurs more than "
            "once. Rename the columns."
        )


@contextmanager
def _line_reader(file: BinaryIO, form: CsvFormat, strict: bool = False) -> Iterator[Any]:
    """Read a file with Python's reader, which is slow but counts lines."""
    limit = csv.field_size_limit(sys.maxsize)  # a value may be of any length
    text = io.TextIOWrapper(file, encoding=form.encoding, newline="")
    try:
        yield csv.reader(text, delimiter=str(form.delimiter), strict=strict)
    finally:
        text.detach()  # the file stays open
        csv.field_size_limit(limit)


def _refuse_broken_rows(path: Path, form: CsvFormat) -> None:
    """Name the first line that does not fit the header."""
    start, columns = 1, 0
    try:
        with path.open("rb") as file, _line_reader(file, form, strict=True) as reader:
            for row in reader:
                columns = columns or len(row)
                if row and len(row) != columns:
                    raise TableError(
                        f"Every row must have as many fields as the header: {shown(str(path), 300)} has "
                        f"{plural(columns, 'column')}, but line {start} has {plural(len(row), 'field')}. "
                        "Fix that line, or give the right --delimiter."
                    )
                start = reader.line_num + 1
    except csv.Error as error:
        raise TableError(
            f"A quote that opens a field must close at its end; in {shown(str(path), 300)} that fails "
            f"in the record that begins on line {start} ({error}). Fix that line."
        ) from None


def _not_in_encoding(path: Path, form: CsvFormat, why: str) -> TableError:
    return TableError(
        f"{shown(str(path), 300)} is not text in the encoding {form.encoding} ({why}). "
        "Give the right one with --encoding, for example latin-1 or cp1252."
    )


class CsvWriter:
    """Writes a CSV file some records at a time; the bytes are the same however many these are."""

    def __init__(self, file: BinaryIO, names: list[str], form: CsvFormat) -> None:
        self._file = file
        self._form = dataclasses.replace(
            form,
            delimiter=form.delimiter or (";" if form.decimal == "," else ","),
            encoding=form.encoding or "utf-8",
        )
        self._encoder = codecs.getincrementalencoder(str(self._form.encoding))()
        header = pa.chunked_array([pa.array(names, pa.large_string())])
        # Quoted is whatever one takes for a delimiter.
        delimiter = str(self._form.delimiter)
        quoted = _quoted(header, _DELIMITERS + delimiter, len(names) == 1)
        self._put((delimiter.join(quoted.to_pylist()) + form.newline).encode())

    def write(self, table: pa.Table) -> None:
        """Write further records, some at a time so that memory stays small."""
        delimiter, alone = str(self._form.delimiter), table.num_columns == 1

        def cells(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
            """Return the cells of a column as they stand in a file, quoted where they need it."""
            text, kind = cell_texts(name, column, self._form), column.type
            is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            return text if is_number and not alone else _quoted(text, delimiter, alone)

        for start in range(0, table.num_rows, _ROWS_AT_ONCE):
            texts = in_threads(cells, table.slice(start, _ROWS_AT_ONCE))
            lines = _joined(*texts, between=delimiter)
            for chunk in _joined(lines, _text(""), between=self._form.newline).chunks:
                # The bytes of a text array lie one after the other.
                _, offsets, data = chunk.buffers()
                ends = memoryview(offsets).cast("q")  # large text has offsets of 8 bytes
                first, last = ends[chunk.offset], ends[chunk.offset + len(chunk)]
                self._put(data.slice(first, last - first))

    def _put(self, block: pa.Buffer | bytes) -> None:
        if self._form.encoding == "utf-8":
            self._file.write(block)
            return
        try:
            self._file.write(self._encoder.encode(str(memoryview(block), "utf-8")))
        except UnicodeEncodeError as error:
            raise TableError(
                f"The encoding {self._form.encoding} has no sign for "
                f"{shown(error.object[error.start])}, which the table contains. Write utf-8 instead."
            ) from None


def _text(value: str) -> pa.Scalar:
    return pa.scalar(value, pa.large_string())


def _joined(*columns: pa.ChunkedArray | pa.Scalar, between: str) -> pa.ChunkedArray:
    """Join texts row by row."""
    return pc.binary_join_element_wise(*columns, _text(between))


def cell_texts(name: str, column: pa.ChunkedArray, form: CsvFormat) -> pa.ChunkedArray:
    """Return the texts that a CSV file has in a column, before they are quoted.

    Parameters
    ----------
    name : of the column, for messages
    column : numbers, texts, dates or truth values; other types are refused
    form : with the sign for decimals
    """
    column = decoded(column)
    kind = column.type
    try:
        if pa.types.is_duration(kind) or isinstance(kind, pa.BaseExtensionType):
            raise pa.ArrowInvalid("would become a bare number")
        text = column.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise TableError(
            f"A CSV file holds numbers, text and dates; column {shown(name)} of type {kind} "
            "does not fit. Write Parquet instead."
        ) from None
    if form.decimal == "," and (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        text = pc.replace_substring(text, ".", ",")
    return pc.fill_null(text, _text(""))


def _quoted(text: pa.ChunkedArray, delimiters: str, alone: bool) -> pa.ChunkedArray:
    """Quote the values that need it: delimiter, quote, line end or outer blanks in them."""
    hexadecimal = "".join(f"\\x{ord(sign):02x}" for sign in delimiters)
    special = f'["\\n\\r{hexadecimal}]|^\\s|\\s$'
    if alone:
        special += "|^$"  # a lone empty field would read as a blank line
    needed = pc.match_substring_regex(text, special)
    if not pc.any(needed).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(needed, _joined(_text('"'), doubled, _text('"'), between=""), text)


_BEGINS = r"^[=+\-@\t\r]"
_HARMLESS = r"^[+\-]?[\d.,\s]*([eE][+\-]?\d+)?\s?%?$"  # numbers, phone numbers, a dash for nothing


def formula_cells(table: pa.Table) -> Counter[str]:
    """Count the cells of each text column of ``table`` that begin like a formula, and names of columns.

    >>> table = pa.table({"note": ["=1+1", "-5", "+49 30 1234", "@SUM(A1)", "a=b"], "x": [1, 2, 3, 4, 5]})
    >>> dict(formula_cells(table))
    {'note': 2}
    """
    counts: Counter[str] = Counter()
    for name, column in zip(table.column_names, table.columns, strict=True):
        cells = int(_like_formula(pa.array([name]))[0].as_py())
        if is_text((texts := decoded(column)).type):
            cells += pc.sum(_like_formula(texts)).as_py() or 0
        if cells:
            counts[name] = cells
    return counts


def with_escaped_formulas(table: pa.Table) -> pa.Table:
    """Return ``table`` with an apostrophe before each text or column name that begins like a formula.

    Categories of text become plain text, as a CSV file has them. A name that exists already gets another
    apostrophe.

    >>> with_escaped_formulas(pa.table({"note": ["=1+1", "-5"]}))["note"].to_pylist()
    ["'=1+1", '-5']
    """
    for at, column in enumerate(table.columns):
        if not is_text((texts := decoded(column)).type):
            continue
        marked = pc.binary_join_element_wise(pa.scalar("'", texts.type), texts, "")
        new = pc.if_else(_like_formula(texts), marked, texts)
        table = table.set_column(at, table.schema.field(at).with_type(new.type), new)
    escaped, all_names = table.column_names, set(table.column_names)
    for at in np.flatnonzero(_like_formula(pa.array(escaped))).tolist():
        while escaped[at] in all_names:
            escaped[at] = f"'{escaped[at]}"
        all_names.add(escaped[at])
    return table.rename_columns(escaped)


def no_formulas(target: Path) -> InputError:
    """Return the error that ``target`` is no file whose text is taken for formulas."""
    return InputError(
        "--escape-formulas (escape_formulas) is about CSV files, whose text a spreadsheet program "
        f"may take for formulas; {shown(str(target), 300)} is none. Leave the setting out."
    )


def _like_formula(texts: Any) -> Any:
    begins = pc.match_substring_regex(texts, _BEGINS)
    return pc.fill_null(pc.and_not(begins, pc.match_substring_regex(texts, _HARMLESS)), False)
