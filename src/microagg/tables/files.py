"""Files by their ending: CSV, Parquet and Arrow."""

from __future__ import annotations

import dataclasses
import stat
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from microagg.errors import TableError, shown
from microagg.tables.csv import CsvFormat, as_typed, read_csv, refuse_equal_names, write_csv
from microagg.tables.layouts import ArrowLayout, ParquetLayout
from microagg.tables.libraries import pandas_notes

__all__ = ["CsvFormat", "FileFormat", "Source", "kind_of", "read_file", "write_file"]

_KINDS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


@dataclass(frozen=True)
class FileFormat:
    """How a file is written: each kind of file uses its own part of this."""

    csv: CsvFormat = field(default_factory=CsvFormat)
    parquet: ParquetLayout = field(default_factory=ParquetLayout)
    arrow: ArrowLayout = field(default_factory=ArrowLayout)

    def for_another(self, csv: CsvFormat | None) -> FileFormat:
        """Return the format for a file of another ending: what was found in a CSV file is left out."""
        return dataclasses.replace(self, csv=csv or CsvFormat())


@dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes
    ----------
    as_written : Arrow table; of a CSV file, every column as the text that stands in it
    format : what was found out about the file, for writing it back in the same way
    numbers : columns of a CSV file that are numbers even if they look like codes
    """

    as_written: pa.Table = field(repr=False)
    format: FileFormat
    kind: str
    numbers: frozenset[str] = frozenset()

    @cached_property
    def table(self) -> pa.Table:
        """The typed table: columns of a CSV file that read as numbers are int64 or double."""
        if self.kind != "csv":
            return self.as_written
        return as_typed(self.as_written, self.format.csv.decimal, self.numbers)

    def to_the_letter(self, table: pa.Table, changed: Iterable[str]) -> pa.Table:
        """Return ``table``, which has the records of this one, with all columns as written but some.

        >>> text = pa.table({"zip": ["00123"], "paid": ["1.50"]})
        >>> source = Source(text, FileFormat(), "csv")
        >>> released = pa.table({"zip": ["00123"], "paid": [1.5]})
        >>> source.to_the_letter(released, changed=[])["paid"].to_pylist()
        ['1.50']
        """
        if self.kind != "csv":
            return table
        kept = frozenset(self.as_written.column_names).difference(changed)
        pairs = zip(table.column_names, table.columns, strict=True)
        return pa.table({n: self.as_written[n] if n in kept else column for n, column in pairs})


def kind_of(path: Path) -> str:
    """Tell the format of a file from the ending of its name."""
    try:
        return _KINDS[path.suffix.lower()]
    except KeyError:
        raise TableError(
            f"The ending of a file's name tells its format; {shown(str(path), 300)} has none that is "
            f"known. Use one of {' '.join(_KINDS)}."
        ) from None


def read_file(
    path: Path, numbers: Collection[str] | None = None, csv: CsvFormat | None = None
) -> Source:
    """Read a table.

    Parameters
    ----------
    path : CSV, Parquet or Arrow file
    numbers : columns of a CSV file that are numbers even if they look like codes, such as 00123
    csv : delimiter, encoding and decimal sign of a CSV file, where they are known
    """
    _refuse_what_is_no_file(path)
    csv = _csv_format(path, csv)
    kind = kind_of(path)
    try:
        if kind == "csv":
            table, csv = read_csv(path, csv)
            return Source(table, FileFormat(csv), kind, frozenset(numbers or ()))
        read = _read_parquet if kind == "parquet" else _read_arrow
        table, form = read(path)
    except TableError:
        raise
    except MemoryError:  # a damaged file may ask for more than any machine has
        raise TableError(
            f"A table is read as a whole; {shown(str(path), 300)} asks for more memory than there is. "
            "Check that it was copied whole, or read fewer columns or records into a smaller file."
        ) from None
    except OSError as error:
        if error.strerror:
            raise TableError(f"Cannot read {shown(str(path), 300)}: {error.strerror}.") from None
        raise _incomplete(path, kind, error) from None
    except Exception as error:  # whatever a decoder says of foreign bytes
        raise _incomplete(path, kind, error) from None
    refuse_equal_names(path, table.column_names)
    return Source(table, dataclasses.replace(form, csv=csv), kind)


def _read_parquet(path: Path) -> tuple[pa.Table, FileFormat]:
    # Arrow itself opens no file whose name is not UTF-8.
    with path.open("rb") as file, pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        form = FileFormat(parquet=ParquetLayout.of(parquet.metadata))
        return _sound(parquet.read()), form


def _read_arrow(path: Path) -> tuple[pa.Table, FileFormat]:
    with path.open("rb") as file:
        table = _sound(feather.read_table(file))
        return table, FileFormat(arrow=ArrowLayout.of(file))


def _sound(table: pa.Table) -> pa.Table:
    """Check all that would otherwise end in a crash when the values are used."""
    table.validate(full=True)
    for column in table.schema:
        _check_words(column)
    pandas_notes(table.schema)
    return table


def _check_words(column: pa.Field) -> None:
    """Raise an error if a name or a time zone in a column or within it is no text."""
    kind = column.type
    _ = column.name, str(kind), kind.tz if pa.types.is_timestamp(kind) else None
    for j in range(kind.num_fields):
        _check_words(kind.field(j))


def _refuse_what_is_no_file(path: Path) -> None:
    """Refuse folders, pipes, sockets and devices, which may never end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise TableError(f"There is no file {shown(str(path), 300)}.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TableError(f"Cannot read {shown(str(path), 300)}: {reason}.") from None
    if stat.S_ISDIR(mode):
        raise TableError(f"{shown(str(path), 300)} is a folder; name one file.")
    if not stat.S_ISREG(mode):
        raise TableError(
            f"A table is read from an ordinary file; {shown(str(path), 300)} is a pipe, a socket or a "
            "device. Copy what comes from it into a file first."
        )


def _incomplete(path: Path, kind: str, error: BaseException) -> TableError:
    return TableError(
        f"{shown(str(path), 300)} is no complete {kind} file: {_first_line(error)}. "
        "Check that it was copied whole and that its ending fits its content."
    )


def write_file(table: pa.Table, path: Path, format: FileFormat | None = None) -> None:  # noqa: A002
    """Write a table in the format that the ending of the name tells, laid out as ``format`` says."""
    kind, form = kind_of(path), format or FileFormat()
    try:
        if kind == "csv":
            write_csv(table, path, _csv_format(path, form.csv))
            return
        layout: Any = form.parquet if kind == "parquet" else form.arrow
        with path.open("wb") as file:
            layout.write(table, file)
    except pa.ArrowException as error:
        raise TableError(
            f"The table does not fit into a {kind} file: {_first_line(error)}. "
            "Choose another format or convert that column."
        ) from None


def _csv_format(path: Path, csv: CsvFormat | None) -> CsvFormat:
    """Complete a CSV format by what the ending .tsv says."""
    csv = csv or CsvFormat()
    if path.suffix.lower() == ".tsv" and csv.delimiter is None:
        return dataclasses.replace(csv, delimiter="\t")
    return csv


def _first_line(error: BaseException) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return line if line.isprintable() and len(line) <= 300 else type(error).__name__
