"""Parquet and Arrow: all that is known about columns has a place."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from microagg.formats.atomic import digest_of
from microagg.formats.file_errors import readable, refuse_what_is_no_file, sound
from microagg.formats.format import FileFormat, Format, Reading
from microagg.formats.layouts import ArrowLayout, ParquetLayout
from microagg.formats.parquet_folders import is_several, parquet_files, read_folder

__all__ = ["Arrow", "Parquet"]


class _OfArrow(Format):
    """A format of one file that Arrow reads."""

    keeps_facts = True

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat, str]:
        """Read a file; Arrow itself opens none whose name is not UTF-8."""
        with path.open("rb") as file:
            digest = digest_of(file) if how.hashed else ""
            table, form = self._load(file, how)
        return table, form, digest

    def _load(self, file: BinaryIO, how: Reading) -> tuple[pa.Table, FileFormat]:
        raise NotImplementedError


class Parquet(_OfArrow):
    """Parquet, one file or a folder or pattern of several."""

    name = "parquet"
    words = "a Parquet file"
    in_batches = True

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat, str]:
        """Read a file, or several as one table."""
        return (Format if is_several(path) else _OfArrow).read(self, path, how)

    def _open(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        for file in parquet_files(path):
            refuse_what_is_no_file(file)
        table, folder = read_folder(path, _read_piece)
        return table, FileFormat(csv=how.csv, folder=folder)

    def _load(self, file: BinaryIO, how: Reading) -> tuple[pa.Table, FileFormat]:
        table, layout = _read_parquet(file)
        return table, FileFormat(csv=how.csv, parquet=layout)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file, or the files of a folder."""
        if path.is_dir():
            form.folder.write(table, path)
            return
        with path.open("wb") as file:
            form.parquet.write(table, file)


class Arrow(_OfArrow):
    """Arrow files, also under the name Feather."""

    name = "arrow"
    words = "an Arrow file"

    def _load(self, file: BinaryIO, how: Reading) -> tuple[pa.Table, FileFormat]:
        table = sound(feather.read_table(file))
        return table, FileFormat(csv=how.csv, arrow=ArrowLayout.of(file))

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file."""
        with path.open("wb") as file:
            form.arrow.write(table, file)


def _read_piece(path: Path) -> tuple[pa.Table, ParquetLayout]:
    with readable(path, "parquet"), path.open("rb") as file:
        return _read_parquet(file)


def _read_parquet(file: BinaryIO) -> tuple[pa.Table, ParquetLayout]:
    with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
        return sound(parquet.read()), ParquetLayout.of(parquet.metadata)
