"""Files by their ending: CSV, Parquet, Arrow, Excel, SPSS, Stata and SAS."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from microagg.base.formatting import plural
from microagg.errors import TableError, shown
from microagg.formats.addresses import KINDS, kind_by_ending
from microagg.formats.atomic import digest_of, sha256
from microagg.formats.csv import Csv, refuse_equal_names
from microagg.formats.excel import Excel
from microagg.formats.file_errors import does_not_fit, readable, refuse_what_is_no_file
from microagg.formats.format import Format
from microagg.formats.layouts import CsvFormat, ExcelFormat, FileFormat, completed_csv
from microagg.formats.parquet import Arrow, Parquet, is_several
from microagg.formats.sas import Sas
from microagg.formats.spss import Spss
from microagg.formats.stata import Stata
from microagg.tables.file_metadata import (
    Coded,
    ColumnFacts,
    Labelled,
    coded_numbers,
    is_number_or_tag,
    typed,
)
from microagg.tables.numbers_in_text import as_typed

_CLASSES: tuple[type[Format], ...] = (Csv, Parquet, Arrow, Spss, Stata, Sas, Excel)
FORMATS = {kind.name: kind() for kind in _CLASSES}
"""By the name that :mod:`microagg.formats.addresses` gives for an ending."""


@dataclass(frozen=True)
class Source:
    """A file that was read."""

    as_written: pa.Table = field(repr=False)
    """Of a CSV file and a sheet every column as the text that stands in it; of others with the codes and
    tags that stand for missing values."""
    format: FileFormat
    """What was found out about the file, for writing it back in the same way."""
    kind: str
    """Of the file, see :func:`kind_of`."""
    numbers: frozenset[str] = frozenset()
    """Columns of text that are numbers even if they look like codes."""
    sha256: str = ""
    """Hash of the file as it was read; empty unless asked for."""

    @cached_property
    def table(self) -> pa.Table:
        """The typed table.

        Columns of text that read as numbers are int64 or double; what is declared as missing is null.
        """
        if self.is_text:
            return as_typed(self.as_written, self.format.csv.decimal, self.numbers)
        return typed(self.as_written)

    @property
    def is_text(self) -> bool:
        """Whether all columns are kept as text."""
        return FORMATS[self.kind].is_text

    @cached_property
    def labelled(self) -> Labelled:
        """Labels, missing codes and formats of the columns, as far as the file tells them."""
        return Labelled.of(self.as_written.schema)

    def coded(self) -> dict[str, Coded]:
        """Columns of numbers in which something stands for a missing value, with what and where."""
        coded = {
            column.name: coded_numbers(
                column, self.as_written[column.name], self.table[column.name]
            )
            for column in self.as_written.schema
            if column.metadata
        }
        return {name: numbers for name, numbers in coded.items() if numbers is not None}

    def kept_for(self, kind: str) -> pa.Table | None:
        """Columns as they are written to a file of some kind where nothing changes their values.

        None: as the typed table has them.
        """
        own_format = FORMATS[self.kind]
        if own_format.is_text:
            return self.as_written if kind in (self.kind, "csv") else None
        columns = self.labelled.columns.values()
        if not own_format.is_program and not any(c.missing or c.storage for c in columns):
            return None
        if kind == self.kind or (own_format.has_tags and FORMATS[kind].has_tags):
            return self.as_written
        # Numbers that are missing for a reason have no place elsewhere.
        plain = [c.name for c in self.as_written.schema if not is_number_or_tag(c)]
        return self.as_written.select(plain)


def kind_of(path: Path, writing: bool = False) -> str:
    """Tell the format of a file from the ending of its ``path``, see :func:`.kind_by_ending`.

    A folder, or a pattern such as flights/*.parquet, stands for Parquet files. With ``writing`` a format
    that is only read is refused.
    """
    if stands_for_several(path):
        return "parquet"
    return kind_by_ending(path, writing)


def stands_for_several(path: Path) -> bool:
    """Return whether ``path`` stands for Parquet files; a folder named like another file does not."""
    return KINDS.get(path.suffix.lower(), "parquet") == "parquet" and is_several(path)


def is_folder_target(target: Path, source: Path | None = None) -> bool:
    """Return whether ``target`` is a folder of Parquet files: it exists, or the ``source`` is one."""
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
    hashed: bool = False,
) -> Source:
    """Read a table from a file whose ending tells its format.

    Parameters
    ----------
    path : a file, or a folder or pattern of Parquet files
    numbers : columns of text that are numbers even if they look like codes, such as 00123
    csv : how a CSV file is written; None: found out from the file
    sheet : name of the sheet of a workbook; None: the first
    hashed : whether the source has the hash of the file; a file that changes meanwhile is refused
    """
    several = stands_for_several(path)
    if not several:
        refuse_what_is_no_file(path)
    kind, named = kind_of(path), frozenset(numbers or ())

    def state() -> tuple[int, ...]:
        status = path.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns

    before = None if several else state()
    # Arrow itself opens no file whose name is not UTF-8.
    with readable(path, kind), nullcontext() if several else path.open("rb") as file:
        digest = "" if not hashed else sha256(path) if file is None else digest_of(file)
        wanted = FileFormat(completed_csv(path, csv), excel=ExcelFormat(sheet))
        table, form = FORMATS[kind].read(path, file, wanted)
    if hashed and not several and state() != before:
        raise TableError(
            f"A file must stay as it is while it is read; {shown(str(path), 300)} changed meanwhile. "
            "Read it again."
        )
    refuse_equal_names(path, table.column_names)
    return Source(table, form, kind, named, digest)


def write_file(table: pa.Table, path: Path, format: FileFormat | None = None) -> None:  # noqa: A002
    """Write a table in the format that the ending of the name tells.

    Parameters
    ----------
    table : with facts about its columns as metadata, see :class:`Labelled`
    path : a file that is written over, or a folder that exists, which gets Parquet files
    format : how the file is laid out, as :func:`read_file` found it; None: as is usual
    """
    kind, form = kind_of(path, writing=True), format or FileFormat()
    with does_not_fit(kind):
        FORMATS[kind].write(table, path, form)


def what_is_left(source: Source, target: Path, dropped: Iterable[Any] = ()) -> list[str]:
    """Say what of a file that was read its target cannot hold; refuse what would lose values.

    Parameters
    ----------
    source : the file that was read
    target : path of the file or folder to be, whose ending tells the format
    dropped : columns that are not written, and need not fit
    """
    kind = kind_of(target, writing=True) if target.suffix else "parquet"
    sentences = list(FORMATS[source.kind].about(source.format, FORMATS[kind]))
    table = source.table if source.is_text else source.as_written
    gone = {name for name in dropped if name in table.column_names}
    return sentences + cannot_hold(table.drop_columns(list(gone)), kind, source.labelled.version)


def cannot_hold(table: pa.Table, kind: str, version: int = 0) -> list[str]:
    """Say what a file of some kind cannot hold of a table; refuse what would lose values.

    Parameters
    ----------
    table : with facts about its columns as metadata, see :class:`Labelled`
    kind : of the file, see :func:`kind_of`
    version : of the format, as it counts; 0: not known

    >>> facts = Labelled({"age": ColumnFacts(label="Age in years")}, "spss")
    >>> table = pa.table({"age": [1]}).cast(facts.on(pa.schema({"age": pa.int64()})))
    >>> cannot_hold(table, "csv")
    ["A CSV file has no place for labels of columns ('age'): they are left out."]
    """
    FORMATS[kind].refuse(table, version)
    return list(FORMATS[kind].left_out(table.schema, Labelled.of(table.schema)))


def difference(table: pa.Table, back: Source, untouched: Iterable[str]) -> str | None:
    """Say what first differs between a table and the file that it was written to; None: nothing.

    Parameters
    ----------
    table : what was to be written
    back : the file, read back
    untouched : columns whose values are compared; of all columns the names are, and the labels, missing
        codes and formats that the format of the file has a place for
    """
    read_back, file_format = back.as_written, FORMATS[back.kind]
    if sorted(read_back.column_names) != sorted(table.column_names):
        return "its columns have other names"
    if read_back.num_rows != table.num_rows:
        return f"it has {read_back.num_rows:,} of {plural(table.num_rows, 'record')}"
    kept = set(untouched)
    for name in table.column_names:
        if name in kept and not file_format.same(table, read_back, name):
            return f"the values of column {shown(name)} are not those that were to be written"
    written, labelled = Labelled.of(table.schema), back.labelled
    if not file_format.keeps_facts and written.family != back.kind:
        return None
    may_widen = FORMATS.get(written.family, file_format).may_widen
    for name, facts in written.columns.items():
        follows_values = name not in kept or may_widen(facts, written)
        for what in [fact_field.name for fact_field in dataclasses.fields(ColumnFacts)]:
            value, other = getattr(facts, what), getattr(labelled[name], what)
            if what in ("storage", "width") and follows_values:
                continue
            if what == "value_labels":
                value, other = dict(value), dict(other)
            if value not in (None, ()) and value != other:
                return f"column {shown(name)} has another {what.replace('_', ' ')}"
    same = (written.label, written.notes) == (labelled.label, labelled.notes)
    if not same and written.family != "sas":
        return "the label or the notes of the table are others"
    return None
