"""Files by their ending: CSV, Parquet and Arrow."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from microagg.errors import TableError, shown
from microagg.tables.csv import CsvFormat, read_csv, write_csv

__all__ = ["CsvFormat", "kind_of", "read_file", "write_file"]

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
    path: Path, columns: Iterable[str] | None = None, csv: CsvFormat | None = None
) -> tuple[pa.Table, CsvFormat]:
    """Read a table; of a CSV file, ``columns`` (None: all) become numbers where they can.

    Returns the table and the CSV format to write it back with.
    """
    if path.is_dir():
        raise TableError(f"{shown(str(path), 300)} is a folder; name one file.")
    csv = csv_format(path, csv)
    kind = kind_of(path)
    try:
        if kind == "csv":
            return read_csv(path, columns, csv)
        if kind == "parquet":
            with pq.ParquetFile(path) as file:
                return file.read(), csv
        return feather.read_table(path, memory_map=False), csv
    except FileNotFoundError:
        raise TableError(f"There is no file {shown(str(path), 300)}.") from None
    except pa.ArrowException as error:
        raise TableError(
            f"{shown(str(path), 300)} is no complete {kind} file: {_first_line(error)}. "
            "Check that it was copied whole and that its ending fits its content."
        ) from None
    except OSError as error:
        raise TableError(
            f"Cannot read {shown(str(path), 300)}: {error.strerror or _first_line(error)}."
        ) from None


def write_file(table: pa.Table, path: Path, csv: CsvFormat | None = None) -> None:
    """Write a table in the format that the ending of the name tells."""
    kind = kind_of(path)
    try:
        if kind == "csv":
            write_csv(table, path, csv_format(path, csv))
        elif kind == "parquet":
            pq.write_table(table, path)
        else:
            feather.write_feather(table, path)
    except pa.ArrowException as error:
        raise TableError(
            f"The table does not fit into a {kind} file: {_first_line(error)}. "
            "Choose another format or convert that column."
        ) from None


def csv_format(path: Path, csv: CsvFormat | None) -> CsvFormat:
    """Complete a CSV format by what the ending .tsv says."""
    csv = csv or CsvFormat()
    if path.suffix.lower() == ".tsv" and csv.delimiter is None:
        return dataclasses.replace(csv, delimiter="\t")
    return csv


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
