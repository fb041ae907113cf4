"""Parquet files, one or those of a folder: read as one table, written as they were laid out; and Arrow."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from microagg.errors import InputError, TableError, shown
from microagg.formats.file_errors import readable, refuse_what_is_no_file, sound
from microagg.formats.format import Format, Reading
from microagg.formats.layouts import FileFormat, ParquetLayout, Piece
from microagg.formats.parquet_folders import (
    is_several,
    key_columns,
    key_types,
    look_into,
    repeated,
)

_CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}  # what pyarrow calls them when writing


class Parquet(Format):
    """Parquet, one file or a folder or pattern of several."""

    name = "parquet"
    words = "a Parquet file"
    in_batches = True
    keeps_facts = True

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        """Read a file, or several as one table."""
        tables: list[pa.Table] = []
        several = is_several(path)

        def look(file: Path) -> tuple[pa.Schema, int, ParquetLayout]:
            with opened_parquet(file, None if several else how) as parquet:
                tables.append(sound(parquet.read()))
                return tables[-1].schema, tables[-1].num_rows, layout_of(parquet.metadata)

        if not several:
            _, _, layout = look(path)
            return tables[0], FileFormat(csv=how.csv, parquet=layout)
        _, folder, schema = look_into(path, look)
        whole = pa.concat_tables(
            [piece.replace_schema_metadata(schema.metadata) for piece in tables]
        )
        for name, column in key_columns(folder.pieces).items():
            whole = whole.append_column(name, column)
        return whole, FileFormat(csv=how.csv, folder=folder)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file, or the files of a folder."""
        with folder_pieces(path, form, table.schema, table.num_rows, _moved(table, form)) as pieces:
            pieces.write(table)


def _moved(table: pa.Table, form: FileFormat) -> list[str]:
    """Name the columns given by folders in which some record no longer has what its folder tells."""
    pieces = form.folder.pieces
    if sum(piece.rows for piece in pieces) != table.num_rows:
        return []
    expected = key_columns(pieces)
    return [k for k in expected if k in table.column_names and not table[k].equals(expected[k])]


@contextmanager
def opened_parquet(
    file: Path, how: Reading | None = None, **options: Any
) -> Iterator[pq.ParquetFile]:
    """Open a file; what keeps it from being read is said in words."""
    refuse_what_is_no_file(file)
    # Arrow itself opens no file whose name is not UTF-8.
    with readable(file, "parquet"), file.open("rb") as opened:
        if how is not None:
            how.hash(opened)
        with pq.ParquetFile(opened, page_checksum_verification=True, **options) as parquet:
            yield parquet


def layout_of(metadata: Any) -> ParquetLayout:
    """Find the layout in the footer of a file."""
    if not metadata.num_row_groups or not metadata.num_columns:
        return ParquetLayout()
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    codecs = Counter(groups[0].column(j).compression for j in range(metadata.num_columns))
    (codec, _), *_ = codecs.most_common(1)
    return ParquetLayout(_CODECS.get(codec, codec), max(group.num_rows for group in groups) or 1)


def folder_pieces(
    path: Path,
    form: FileFormat,
    schema: pa.Schema,
    rows: int | None,
    changed: Collection[str],
    most: int | None = None,
) -> FolderPieces:
    """Return what writes a table to one file, or to a folder that exists.

    If ``changed`` names a column that folders give, the files get other names.
    """
    if not path.is_dir():
        piece = Piece(path.name, sys.maxsize, form.parquet)
        return FolderPieces((piece,), schema, path.parent, most)
    if rows is None:
        raise InputError(
            "Records are spread over the files of a folder as they were; say how many there are "
            "with rows=."
        )
    keeps_places = not set(form.folder.keys) & set(changed)
    return FolderPieces(form.folder.placed(schema.names, rows, keeps_places), schema, path, most)


class _ParquetPieces:
    """Writes a Parquet file in row groups of the size of a layout, from tables of any sizes.

    What a row group lacks is waited for, so that up to one is in memory, or as much of it as ``most``
    bytes: a row group that takes more is written as several.
    """

    def __init__(
        self, layout: ParquetLayout, schema: pa.Schema, path: Path, most: int | None
    ) -> None:
        with ExitStack() as stack:
            file = stack.enter_context(path.open("wb"))  # Arrow opens only names that are UTF-8
            writer = pq.ParquetWriter(file, schema, compression=layout.codec)
            self._writer = stack.enter_context(writer)
            self._open = stack.pop_all()
        self._size = layout.row_group
        self._waiting: list[pa.Table] = []
        self._records = 0  # of those that wait
        self._most = most

    def close(self, complete: bool = True) -> None:
        """Close the file; if it is to be complete, write what waits first."""
        with self._open:
            if complete and self._records:
                self._put(self._records)

    def write(self, table: pa.Table) -> None:
        """Write further records, or keep them until a row group is full."""
        self._waiting.append(table)
        self._records += table.num_rows
        while self._records >= self._size:
            self._put(self._size)
        if self._most is not None and self._bytes() > self._most:
            self._put(self._records)

    def _bytes(self) -> int:
        return sum(table.nbytes for table in self._waiting)

    def _put(self, records: int) -> None:
        whole = pa.concat_tables(self._waiting)
        # Where a page ends depends on the chunks of a column; with one chunk, on its values alone.
        group = whole.slice(0, records).combine_chunks()
        self._writer.write_table(group, row_group_size=records)
        self._records -= records
        self._waiting = [whole.slice(records)] if self._records else []


class FolderPieces:
    """Writes a table into the files of a folder, from tables of any sizes.

    What the names of the files' folders tell must be what the records have, and is not written.
    """

    def __init__(
        self, pieces: Sequence[Piece], schema: pa.Schema, folder: Path, most: int | None = None
    ) -> None:
        self._keys = key_types(pieces)
        content = [column for column in schema if column.name not in self._keys]
        self._schema = pa.schema(content, schema.metadata)
        self._folder, self._most = folder, most
        self._planned = iter(pieces)
        self._piece: Piece | None = None
        self._lacking = 0  # records that the file at hand lacks
        self._parquet: _ParquetPieces | None = None

    def __enter__(self) -> FolderPieces:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None:
            while self._next():  # files without records
                pass
        elif self._parquet is not None:
            self._parquet.close(complete=False)

    def write(self, table: pa.Table) -> None:
        """Write further records."""
        start = 0
        while start < table.num_rows:
            while not self._lacking:
                if not self._next():
                    raise TableError(
                        "A folder gets as many records as its files had; there are more. "
                        "Write one Parquet file instead."
                    )
            some = table.slice(start, self._lacking)
            assert self._parquet is not None
            self._parquet.write(self._without_keys(some))
            self._lacking -= some.num_rows
            start += some.num_rows

    def _without_keys(self, table: pa.Table) -> pa.Table:
        assert self._piece is not None
        for name, value in self._piece.keys:
            expected = repeated(value, self._keys[name], table.num_rows)
            if not table[name].equals(pa.chunked_array([expected])):
                raise TableError(
                    f"The folders of the files tell column {shown(name)}, which was changed. Write to "
                    "one Parquet file, or say that the column changes."
                )
        return table.drop_columns(list(self._keys))

    def _next(self) -> bool:
        """Go on to the next file; False: there is none."""
        if self._parquet is not None:
            self._parquet.close()
        self._piece = next(self._planned, None)
        self._parquet = None
        if self._piece is None:
            return False
        path = self._folder / self._piece.name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._parquet = _ParquetPieces(self._piece.layout, self._schema, path, self._most)
        self._lacking = self._piece.rows
        return True


class Arrow(Format):
    """Arrow files, also under the name Feather."""

    name = "arrow"
    words = "an Arrow file"
    keeps_facts = True

    def read(self, path: Path, how: Reading) -> tuple[pa.Table, FileFormat]:
        """Read a file; Arrow itself opens none whose name is not UTF-8."""
        with path.open("rb") as file:
            how.hash(file)
            return sound(feather.read_table(file)), FileFormat(csv=how.csv)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file as pyarrow does by default."""
        with path.open("wb") as file:
            feather.write_feather(table, file)
