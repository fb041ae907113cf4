"""How a file is laid out, as it was found or as it is to be written: the part of each format.

What is kept is what a reader pays or relies on: compression, pieces, delimiters, positions. What is computed
from the values, such as statistics or a sort order, is not.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from microagg.errors import TableError, shown
from microagg.plan.job_settings import CsvSettings


@dataclass(frozen=True)
class CsvFormat(CsvSettings):
    """How a CSV file is written: delimiter, encoding, decimal sign, line end.

    None means: found out from the file, or the usual when writing.
    """

    newline: str = "\n"

    def check_together(self) -> None:
        """Refuse what no CSV file has."""
        if self.delimiter in ("\\t", "tab"):  # as people type it
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and not re.fullmatch(
            r'(?!["\n\r])[\x01-\x7f]', self.delimiter
        ):
            raise TableError(
                f"The delimiter must be one ASCII character, and no quote or line end; got "
                f"{shown(self.delimiter)}. Usual ones are , ; | and the tabulator."
            )
        if self.decimal not in (".", ","):
            raise TableError(f"The decimal sign must be . or , ; got {shown(self.decimal)}.")
        if self.decimal == self.delimiter:
            raise TableError(
                f"The delimiter and the decimal sign must differ; both are {shown(self.decimal)}. "
                "Files with decimal commas usually have the delimiter ; ."
            )
        # Python knows codecs that are made for other things (hex, idna, unicode_escape). In an encoding of
        # text each sign of ASCII takes one unit, after a byte order mark in some.
        if self.encoding is None:
            return
        signs = "".join(map(chr, range(32, 127))) + "\t\r\n\\u0041"
        n = len(signs)
        try:
            encoded = signs.encode(self.encoding)
            plain = encoded.decode(self.encoding) == signs
        except (LookupError, ValueError):
            encoded, plain = b"", False
        if not plain or len(encoded) not in (n, n + 3, 2 * n, 2 * n + 2, 4 * n, 4 * n + 4):
            raise TableError(
                f"The encoding must be one of text files; {shown(self.encoding)} is not known as such. Try "
                "utf-8, latin-1 or cp1252."
            )


class ParquetLayout(NamedTuple):
    """The most common codec of a Parquet file, and the records of its largest row group."""

    codec: str = "SNAPPY"
    row_group: int = 1 << 20


@dataclass(frozen=True)
class Piece:
    """One file of a folder: its path within, its records, its layout, and what its folders tell."""

    name: str
    rows: int
    layout: ParquetLayout
    keys: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class FolderLayout:
    """How a table is spread over files; without pieces it is written as one file."""

    pieces: tuple[Piece, ...] = ()

    @property
    def keys(self) -> list[str]:
        """Columns that the names of folders give."""
        return [key for key, _ in self.pieces[0].keys] if self.pieces else []

    def keeps_places(self, names: Sequence[str], changed: Collection[str], rows: int) -> bool:
        """Return whether records can be written to the folders of their keys: none is changed or gone."""
        keys, values = set(self.keys), [piece.keys for piece in self.pieces]
        if not keys or keys - set(names) or keys & set(changed):
            return False
        runs = sum(before != after for before, after in itertools.pairwise(values)) + 1
        return runs == len(set(values)) and sum(piece.rows for piece in self.pieces) == rows

    def placed(
        self, names: Sequence[str], changed: Collection[str], rows: int
    ) -> tuple[Piece, ...]:
        """Pieces for a table of these columns and records, of which some columns were changed."""
        if not self.pieces or sum(piece.rows for piece in self.pieces) != rows:
            return (Piece("part-0.parquet", rows, ParquetLayout()),)
        if set(self.keys) <= set(names) - set(changed):
            return self.pieces
        # The names of folders would tell what the records no longer do.
        return tuple(
            Piece(f"part-{i}.parquet", piece.rows, piece.layout)
            for i, piece in enumerate(self.pieces)
        )


@dataclass(frozen=True)
class ExcelFormat:
    """The sheet that a table stands in, and what its cells are."""

    sheet: str | None = None
    """Name; None for the first one when reading, Sheet1 when writing."""
    kinds: tuple[tuple[str, str], ...] = ()
    """Name of each column and what its cells are: number, text, truth, date, time or mixed."""
    others: tuple[str, ...] = ()
    """The other sheets of the file."""


@dataclass(frozen=True)
class FileFormat:
    """How a file is written: each kind of file uses its own part of this."""

    csv: CsvFormat = field(default_factory=CsvFormat)
    parquet: ParquetLayout = field(default_factory=ParquetLayout)
    excel: ExcelFormat = field(default_factory=ExcelFormat)
    folder: FolderLayout = field(default_factory=FolderLayout)

    def for_another(self, csv: CsvFormat | None) -> FileFormat:
        """Return the format for a file of another ending: what was found in a text file is left out."""
        return dataclasses.replace(self, csv=csv or CsvFormat(), excel=ExcelFormat())


def completed_csv(path: Path, csv: CsvFormat | None) -> CsvFormat:
    """Complete the format ``csv``, None for the usual one, by what the ending of ``path`` says: .tsv."""
    csv = csv or CsvFormat()
    if path.suffix.lower() == ".tsv" and csv.delimiter is None:
        return dataclasses.replace(csv, delimiter="\t")
    return csv
