"""Tables larger than memory: Parquet and CSV files read, and written, some records at a time.

A batch has the types of the whole table. A Parquet file tells them; of a CSV file a first pass finds
which columns are numbers, when they are first asked for. Numbers of statistical packages that a Parquet
file keeps as text, for the sake of tags such as ``.a``, are looked at in the same way.

What is written has the bytes that :func:`microagg.formats.files.write_file` gives the whole table, with two
exceptions: a row group that takes more memory than there may be is written as several, and the lists of
categories of a dictionary column are those of the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from microagg.base.formatting import plural
from microagg.errors import InputError, TableError, shown
from microagg.formats.csv import CsvText, CsvWriter, refuse_equal_names
from microagg.formats.file_errors import does_not_fit, readable, refuse_what_is_no_file, sound
from microagg.formats.files import FORMATS, kind_of, stands_for_several
from microagg.formats.layouts import CsvFormat, FileFormat, ParquetLayout, completed_csv
from microagg.formats.parquet import (
    key_types,
    layout_of,
    look_into,
    opened_parquet,
    regrouped,
    repeated,
    write_parquet,
)
from microagg.plan.checks import no_column
from microagg.tables.file_metadata import typed, whole_columns
from microagg.tables.numbers_in_text import NumberTest

AT_ONCE = 1 << 17
# Bytes of a cell of a CSV file as Arrow, without its letters: as text 4 that say where it ends, as a
# number 8, and the delimiter is gone.
_BYTES_OF_A_CELL = 11
# A batch of this many bytes is large enough, however few records it has.
_BATCH_BYTES = 1 << 26
_READ_AHEAD = 1 << 20
_SAMPLE_ROWS = 1 << 13
# A row group that takes more than this as Arrow is written as several.
_LARGEST_GROUP = 1 << 30


@dataclass(frozen=True)
class Batch:
    """Consecutive records of a table.

    Attributes
    ----------
    as_written : as they stand in the file: text of a CSV file, else with the codes of missing values
    first : row number of the first record
    """

    as_written: pa.Table
    first: int
    _typed: Callable[[pa.Table], pa.Table]

    @cached_property
    def table(self) -> pa.Table:
        """The records typed as the whole table is; of a CSV file this may need a pass over it."""
        return self._typed(self.as_written)


class BatchSource:
    """A table on disk, see :func:`open_batches`."""

    kind: ClassVar[str]
    """Of the file, see :func:`microagg.formats.files.kind_of`."""
    path: Path
    names: list[str]
    """Names of the columns."""
    format: FileFormat
    """What was found out about the file, for writing it back in the same way."""
    rows: int
    """Number of records; of a CSV file known after a pass over it."""
    about_rows: int
    """The same, of a CSV file about, by its first lines."""
    bytes_in_memory: int
    """Estimate of what the whole table would take as Arrow; of a CSV file without reading it."""
    schema: pa.Schema
    """Names and types of the typed table."""

    def _pieces(self, columns: list[str], at_once: int) -> Iterator[pa.Table]:
        """Yield records as they stand in the file, some at a time."""
        raise NotImplementedError

    def _typed(self, table: pa.Table) -> pa.Table:
        """Give records the types of the whole table."""
        raise NotImplementedError

    @cached_property
    def head(self) -> pa.Table:
        """The first records as they stand in the file."""
        first = next(self._pieces(self.names, _SAMPLE_ROWS), None)
        return self.schema.empty_table() if first is None else first.slice(0, _SAMPLE_ROWS)

    @property
    def is_text(self) -> bool:
        """Whether all columns are kept as text."""
        return FORMATS[self.kind].is_text

    def batches(
        self, columns: Iterable[str] | None = None, at_once: int = AT_ONCE
    ) -> Iterator[Batch]:
        """Read the records in their order, ``at_once`` at a time, fewer where they are long.

        Memory is that of a batch and a little more, whatever the row groups of the file.
        """
        chosen = self.names if columns is None else list(columns)
        for name in chosen:
            if name not in self.names:
                raise no_column(name, self.names)
        if at_once < 1:
            raise InputError(f"A batch has at least one record; got {shown(at_once)}.")
        if not chosen:
            raise InputError(
                "No column was named. Name at least one, or leave columns out for all."
            )
        first = 0
        for table in regrouped(self._pieces(chosen, at_once), at_once, _BATCH_BYTES):
            yield Batch(table, first, self._typed)
            first += table.num_rows


def open_batches(
    path: Path, csv: CsvFormat | None = None, numbers: Collection[str] = ()
) -> BatchSource:
    r"""Open a table to read it in batches.

    Parameters
    ----------
    path : a Parquet file, a folder or pattern of them, or a CSV file
    csv : how a CSV file is written; None: found out from the file
    numbers : columns of a CSV file that are numbers even if they look like codes, such as 00123

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "few.csv"
    >>> _ = path.write_text("zip,paid\n00123,1\n00456,2.50\n")
    >>> source = open_batches(path)
    >>> source.rows, source.schema.types
    (2, [DataType(string), DataType(double)])
    >>> [(batch.first, batch.as_written["paid"].to_pylist()) for batch in source.batches(at_once=1)]
    [(0, ['1']), (1, ['2.50'])]
    """
    if not stands_for_several(path):
        refuse_what_is_no_file(path)
    kind = kind_of(path)
    csv = completed_csv(path, csv)
    with readable(path, kind):
        if kind == "csv":
            return _CsvBatches(path, csv, numbers)
        if kind == "parquet":
            return _ParquetBatches(path, csv)
    raise TableError(
        f"Tables are read in batches from Parquet and CSV files; {shown(str(path), 300)} is of "
        f"kind {kind}. Write it as Parquet first, or work in memory."
    )


class _CsvBatches(BatchSource):
    kind = "csv"

    def __init__(self, path: Path, csv: CsvFormat, numbers: Collection[str]) -> None:
        self._text = text = CsvText(path, csv)
        self._numbers = frozenset(numbers)
        self.path, self.names, self.format = path, text.names, FileFormat(csv=text.form)
        self.about_rows = text.about_lines - 1  # the header
        # As much as the text of the file and its cells take.
        self.bytes_in_memory = text.size + _BYTES_OF_A_CELL * len(text.names) * text.about_lines

    @cached_property
    def _found(self) -> tuple[int, dict[str, NumberTest]]:
        """Number of records, and what each column is."""
        decimal = self.format.csv.decimal
        tests = {n: NumberTest(decimal, codes_are_text=n not in self._numbers) for n in self.names}
        rows = 0
        for piece in regrouped(self._pieces(self.names, AT_ONCE), AT_ONCE, _BATCH_BYTES):
            rows += piece.num_rows
            for name, test in tests.items():
                test.add(piece[name])
        return rows, tests

    @cached_property
    def rows(self) -> int:  # type: ignore[override]
        """A pass over the file."""
        return self._found[0]

    @cached_property
    def schema(self) -> pa.Schema:
        """A pass over the file."""
        types = self._found[1].items()
        return pa.schema([(n, pa.string() if t.way is None else t.way.kind) for n, t in types])

    def _pieces(self, columns: list[str], at_once: int) -> Iterator[pa.Table]:
        with readable(self.path, "csv"):
            yield from self._text.pieces(columns)

    def _typed(self, table: pa.Table) -> pa.Table:
        tests = self._found[1]
        return pa.table({name: tests[name].convert(table[name]) for name in table.column_names})


class _ParquetBatches(BatchSource):
    """Records of one Parquet file or of several."""

    kind = "parquet"

    def __init__(self, path: Path, csv: CsvFormat) -> None:
        self.path = path
        self._bytes = 0
        self._files, folder, self._stored = look_into(path, self._look)
        self._parts = folder.pieces
        self.format = FileFormat(csv, self._parts[0].layout)
        if stands_for_several(path):
            self.format = FileFormat(csv, folder=folder)
        self.names = list(self._stored.names)
        refuse_equal_names(path, self.names)
        self.rows = self.about_rows = sum(piece.rows for piece in self._parts)

    def _look(self, file: Path) -> tuple[pa.Schema, int, ParquetLayout]:
        with opened_parquet(file) as parquet:
            schema, facts = parquet.schema_arrow, parquet.metadata
            sound(schema.empty_table())
            # As Arrow it takes its pages without compression, or the width of its types.
            pages = sum(facts.row_group(i).total_byte_size for i in range(facts.num_row_groups))
            widths = 0
            for column in schema:
                try:
                    widths += column.type.bit_width
                except ValueError:  # text and lists, which have no width
                    widths += 32
            self._bytes += max(pages, facts.num_rows * widths // 8)
            return schema, facts.num_rows, layout_of(facts)

    @cached_property
    def bytes_in_memory(self) -> int:  # type: ignore[override]
        """What the footers tell, or more where the first records take more: texts repeat in a file."""
        head = self.head
        return int(max(self._bytes, head.nbytes * self.rows // max(head.num_rows, 1)))

    @cached_property
    def _whole(self) -> dict[str, bool]:
        return whole_columns(self._stored, lambda columns: self._pieces(columns, AT_ONCE))

    @cached_property
    def schema(self) -> pa.Schema:
        return self._typed(self._stored.empty_table()).schema

    def _pieces(self, columns: list[str], at_once: int) -> Iterator[pa.Table]:
        keys = key_types(self._parts)
        stored = [name for name in columns if name not in keys]
        schema = pa.schema([self._stored.field(name) for name in columns], self._stored.metadata)
        for file, piece in zip(self._files, self._parts, strict=True):
            folder_keys = dict(piece.keys)
            # Read ahead a little at a time: otherwise a row group is held with all of its columns.
            with opened_parquet(file, buffer_size=_READ_AHEAD, pre_buffer=False) as parquet:
                for batch in parquet.iter_batches(at_once, columns=stored):
                    arrays = [
                        repeated(folder_keys[name], keys[name], batch.num_rows)
                        if name in keys
                        else batch.column(name)
                        for name in columns
                    ]
                    yield sound(pa.table(arrays, schema=schema))

    def _typed(self, table: pa.Table) -> pa.Table:
        return typed(table, self._whole)


def write_batches(
    tables: Iterable[pa.Table],
    path: Path,
    form: FileFormat,
    schema: pa.Schema,
    rows: int,
    changed: Collection[str] = (),
    most: int = _LARGEST_GROUP,
) -> None:
    r"""Write a table from consecutive parts of it, laid out as a format says.

    Parameters
    ----------
    tables : all with this ``schema``, together with this number of ``rows``
    path : a file, or a folder that exists, for Parquet files
    form : the format of the source
    changed : columns that no longer hold what the source had: if folders tell one of them, files get
        other names
    most : bytes from which on a row group is written as several

    >>> import tempfile
    >>> path, ages = Path(tempfile.mkdtemp()) / "few.csv", pa.table({"age": [30, 31, 64]})
    >>> write_batches([ages[:2], ages[2:]], path, FileFormat(), ages.schema, 3)
    >>> path.read_text()
    'age\n30\n31\n64\n'
    """
    kind, written = kind_of(path, writing=True), 0

    def parts() -> Iterator[pa.Table]:
        nonlocal written
        for table in tables:
            if not table.schema.equals(schema):
                raise TableError(
                    "All parts of a table have the columns and types that were announced; these differ. "
                    "Convert them first."
                )
            written += table.num_rows
            yield table.replace_schema_metadata(schema.metadata)

    if kind == "csv":
        with path.open("wb") as file:
            writer = CsvWriter(file, schema.names, completed_csv(path, form.csv))
            for table in parts():
                with does_not_fit(kind):
                    writer.write(table)
    elif kind == "parquet":
        write_parquet(parts(), path, form, schema, rows, changed, most)
    else:
        raise TableError(
            f"Tables are written in batches as Parquet or CSV; {shown(str(path), 300)} is of kind "
            f"{kind}. Choose another ending, or work in memory."
        )
    if rows != written:
        raise TableError(
            f"A table is written with all of its {plural(rows, 'record')}; there were "
            f"{written}. Read the file again: it may have changed."
        )
