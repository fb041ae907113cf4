"""Files by their ending: CSV, Parquet, Arrow, Excel, fixed width, SPSS, Stata and SAS."""

from __future__ import annotations

import dataclasses
import stat
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from microagg.errors import MicroaggError, TableError, shown
from microagg.tables.atomic import digest_of, sha256
from microagg.tables.csv import CsvFormat, CsvText, as_typed, refuse_equal_names, write_csv
from microagg.tables.endings import KINDS, kind_by_ending
from microagg.tables.excel import ExcelFormat, read_excel, write_excel
from microagg.tables.fixed_width import FixedFormat, read_fixed, typed_fields, write_fixed
from microagg.tables.folders import FolderLayout, is_several, parquet_files, read_folder
from microagg.tables.labelled import (
    Coded,
    Labelled,
    coded_numbers,
    is_number_or_tag,
    numbers_and_tags,
    typed,
)
from microagg.tables.layouts import ArrowLayout, ParquetLayout
from microagg.tables.libraries import pandas_notes
from microagg.tables.statistical import read_statistical, write_statistical

__all__ = [
    "CsvFormat",
    "FileFormat",
    "Source",
    "completed_csv",
    "does_not_fit",
    "is_folder_target",
    "kind_of",
    "read_file",
    "readable",
    "refuse_what_is_no_file",
    "sound",
    "stands_for_several",
    "write_file",
]

# What files of these kinds hold is read as text, from which numbers are told.
_TEXT = ("csv", "excel", "fixed")
_LABELLED = ("spss", "stata", "sas")


@dataclass(frozen=True)
class FileFormat:
    """How a file is written: each kind of file uses its own part of this."""

    csv: CsvFormat = field(default_factory=CsvFormat)
    parquet: ParquetLayout = field(default_factory=ParquetLayout)
    arrow: ArrowLayout = field(default_factory=ArrowLayout)
    excel: ExcelFormat = field(default_factory=ExcelFormat)
    fixed: FixedFormat | None = None
    folder: FolderLayout = field(default_factory=FolderLayout)

    def for_another(self, csv: CsvFormat | None) -> FileFormat:
        """Return the format for a file of another ending: what was found in a text file is left out."""
        return dataclasses.replace(self, csv=csv or CsvFormat(), excel=ExcelFormat(), fixed=None)


@dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes
    ----------
    as_written : Arrow table; of a CSV file, a sheet and a file of fixed width every column as the text
        that stands in it; of others with the codes and tags that stand for missing values
    format : what was found out about the file, for writing it back in the same way
    kind : of the file, see :func:`kind_of`
    numbers : columns of text that are numbers even if they look like codes
    """

    as_written: pa.Table = field(repr=False)
    format: FileFormat
    kind: str
    numbers: frozenset[str] = frozenset()
    sha256: str = ""
    """Hash of the file as it was read; empty unless asked for."""

    @cached_property
    def table(self) -> pa.Table:
        """The typed table.

        Columns of text that read as numbers are int64 or double; what is declared as missing is null.
        """
        if self.kind == "fixed":
            assert self.format.fixed is not None
            return typed_fields(self.as_written, self.format.fixed, self.numbers)
        if self.is_text:
            return as_typed(self.as_written, self.format.csv.decimal, self.numbers)
        return typed(self.as_written)

    @property
    def is_text(self) -> bool:
        """Whether all columns are kept as text."""
        return self.kind in _TEXT

    @cached_property
    def labelled(self) -> Labelled:
        """Labels, missing codes and formats of the columns, as far as the file tells them."""
        return Labelled.of(self.as_written.schema)

    @property
    def missing_codes(self) -> dict[str, list[Any]]:
        """What stands for a missing value, by column: codes, pairs (low, high), tags such as ``.a``.

        The typed table has null in their place.
        """
        found: dict[str, list[Any]] = {}
        for column in self.as_written.schema:
            codes = list(self.labelled[column.name].missing)
            if is_number_or_tag(column):
                _, tags = numbers_and_tags(self.as_written[column.name])
                codes += [f".{tag}" for tag in sorted(tags.unique().drop_null().to_pylist())]
            if codes:
                found[column.name] = codes
        return found

    def coded(self) -> dict[str, Coded]:
        """Columns of numbers in which something stands for a missing value, with what and where."""
        found = {}
        for column in self.as_written.schema:
            if column.metadata:
                one = coded_numbers(column, self.as_written[column.name], self.table[column.name])
                if one is not None:
                    found[column.name] = one
        return found

    def kept_for(self, kind: str) -> pa.Table | None:
        """Columns as they are written to a file of some kind where nothing changes their values.

        None: as the typed table has them.
        """
        if kind == self.kind:
            return self.as_written if self.is_text or self._has_facts else None
        if self.kind == "excel" and kind == "csv":
            return self.as_written
        if self.is_text or not self._has_facts:
            return None
        tags = {"stata", "sas"}
        if {self.kind, kind} <= tags:
            return self.as_written
        # Numbers that are missing for a reason have no place elsewhere.
        plain = [c.name for c in self.as_written.schema if not is_number_or_tag(c)]
        return self.as_written.select(plain)

    @property
    def _has_facts(self) -> bool:
        return self.kind in _LABELLED or any(
            facts.missing or facts.storage for facts in self.labelled.columns.values()
        )

    def to_the_letter(self, table: pa.Table, changed: Iterable[str]) -> pa.Table:
        """Return ``table``, which has the records of this one, with all columns as written but some.

        >>> text = pa.table({"zip": ["00123"], "paid": ["1.50"]})
        >>> source = Source(text, FileFormat(), "csv")
        >>> released = pa.table({"zip": ["00123"], "paid": [1.5]})
        >>> source.to_the_letter(released, changed=[])["paid"].to_pylist()
        ['1.50']
        """
        kept = self.kept_for(self.kind)
        if kept is None:
            return table
        names = frozenset(kept.column_names).difference(changed)
        for j, name in enumerate(table.column_names):
            if name in names:
                table = table.set_column(j, kept.schema.field(name), kept[name])
        return table


def kind_of(path: Path, writing: bool = False) -> str:
    """Tell the format of a file from the ending of its name.

    csv, parquet, arrow, spss, stata, sas, excel or fixed; a folder, or a pattern such as
    flights/*.parquet, stands for Parquet files.
    """
    if stands_for_several(path):
        return "parquet"
    return kind_by_ending(path, writing)


def stands_for_several(path: Path) -> bool:
    """Whether a path stands for Parquet files; a folder whose name ends as other files do does not."""
    return KINDS.get(path.suffix.lower(), "parquet") == "parquet" and is_several(path)


def is_folder_target(target: Path, source: Path | None = None) -> bool:
    """Whether a target is a folder of Parquet files: there is one, or one is made for such a source."""
    if target.is_dir() and stands_for_several(target):
        return True
    several = source is not None and stands_for_several(source)
    return several and not target.suffix and not target.exists()


def read_file(
    path: Path,
    numbers: Collection[str] | None = None,
    csv: CsvFormat | None = None,
    *,
    sheet: str | None = None,
    like: FileFormat | None = None,
    looked: CsvText | None = None,
    hashed: bool = False,
) -> Source:
    """Read a table.

    Parameters
    ----------
    path : file whose ending tells its format, or a folder or pattern of Parquet files
    numbers : columns of text that are numbers even if they look like codes, such as 00123
    csv : delimiter, encoding and decimal sign of a CSV file, where they are known
    sheet : of an Excel file; the first if left out
    like : the format of a file that was written by :func:`write_file`, to read it back
    looked : the CSV file, if its header was read before
    hashed : whether the hash of the file is wanted
    """
    if not stands_for_several(path):
        refuse_what_is_no_file(path)
    kind = kind_of(path)
    csv = completed_csv(path, csv)
    named = frozenset(numbers or ())
    with readable(path, kind):
        if kind == "csv":
            text = looked or CsvText(path, csv)
            table, digest = text.read(hashed)
            return Source(table, FileFormat(text.form), kind, named, digest)
        if kind in ("parquet", "arrow") and not stands_for_several(path):
            # Arrow itself opens no file whose name is not UTF-8.
            with path.open("rb") as file:
                digest = digest_of(file) if hashed else ""
                table, form = (_read_parquet if kind == "parquet" else _read_arrow)(file)
        else:
            table, form = _read(path, kind, csv, sheet, like)
            digest = sha256(path) if hashed else ""
    refuse_equal_names(path, table.column_names)
    return Source(table, dataclasses.replace(form, csv=csv), kind, named, digest)


def _read(
    path: Path, kind: str, csv: CsvFormat, sheet: str | None, like: FileFormat | None
) -> tuple[pa.Table, FileFormat]:
    """Read a file that a library opens, or several files."""
    if kind in _LABELLED:
        return sound(read_statistical(path, csv.encoding)), FileFormat()
    if kind == "excel":
        table, excel = read_excel(path, sheet if like is None else like.excel.sheet)
        return table, FileFormat(excel=excel)
    if kind == "fixed":
        known = None if like is None or like.fixed is None else like.fixed
        table, fixed = read_fixed(
            path,
            None if known is None else known.description,
            csv.encoding if known is None else known.encoding,
        )
        return table, FileFormat(fixed=fixed)
    for file in parquet_files(path):
        refuse_what_is_no_file(file)
    table, folder = read_folder(path, _read_piece)
    return table, FileFormat(folder=folder)


def _read_piece(path: Path) -> tuple[pa.Table, ParquetLayout]:
    with readable(path, "parquet"), path.open("rb") as file:
        table, form = _read_parquet(file)
    return table, form.parquet


def _read_parquet(file: BinaryIO) -> tuple[pa.Table, FileFormat]:
    with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        form = FileFormat(parquet=ParquetLayout.of(parquet.metadata))
        return sound(parquet.read()), form


def _read_arrow(file: BinaryIO) -> tuple[pa.Table, FileFormat]:
    table = sound(feather.read_table(file))
    return table, FileFormat(arrow=ArrowLayout.of(file))


def sound(table: pa.Table) -> pa.Table:
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


def refuse_what_is_no_file(path: Path) -> None:
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


@contextmanager
def readable(path: Path, kind: str) -> Iterator[None]:
    """Say in words what keeps a file from being read."""
    try:
        yield
    except MicroaggError:
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


def _incomplete(path: Path, kind: str, error: BaseException) -> TableError:
    return TableError(
        f"{shown(str(path), 300)} is no complete {kind} file: {_first_line(error)}. "
        "Check that it was copied whole and that its ending fits its content."
    )


def write_file(table: pa.Table, path: Path, format: FileFormat | None = None) -> None:  # noqa: A002
    """Write a table in the format that the ending of the name tells, laid out as ``format`` says.

    A folder gets Parquet files.
    """
    kind, form = kind_of(path, writing=True), format or FileFormat()
    with does_not_fit(kind):
        if kind == "csv":
            write_csv(table, path, completed_csv(path, form.csv))
        elif kind in _LABELLED:
            write_statistical(table, path, path.suffix.lower())
        elif kind == "excel":
            write_excel(table, path, form.excel)
        elif kind == "fixed":
            if form.fixed is None:
                raise TableError(
                    "A file of fixed width is written at the positions of a description, which only a file "
                    "of this kind brings along. Write another format."
                )
            write_fixed(table, path, form.fixed)
        elif path.is_dir():
            form.folder.write(table, path)
        else:
            layout: Any = form.parquet if kind == "parquet" else form.arrow
            with path.open("wb") as file:
                layout.write(table, file)


@contextmanager
def does_not_fit(kind: str) -> Iterator[None]:
    """Say in words that a table does not fit into a file of some kind."""
    try:
        yield
    except (pa.ArrowException, *_readstat_errors()) as error:
        raise TableError(
            f"The table does not fit into a {kind} file: {_first_line(error)}. "
            "Choose another format or convert that column."
        ) from None


def _readstat_errors() -> tuple[type[BaseException], ...]:
    """Return the classes of errors of pyreadstat, if it was imported."""
    module = sys.modules.get("pyreadstat")
    return () if module is None else (module.ReadstatError, module.PyreadstatError)


def completed_csv(path: Path, csv: CsvFormat | None) -> CsvFormat:
    """Complete a CSV format by what the ending .tsv says."""
    csv = csv or CsvFormat()
    if path.suffix.lower() == ".tsv" and csv.delimiter is None:
        return dataclasses.replace(csv, delimiter="\t")
    return csv


def _first_line(error: BaseException) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return line if line.isprintable() and len(line) <= 300 else type(error).__name__
