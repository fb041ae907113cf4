"""Parquet files, one or those of a folder: read as one table, written as they were laid out; and Arrow."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from microagg.errors import TableError, shown
from microagg.formats.file_errors import does_not_fit, readable, refuse_what_is_no_file, sound
from microagg.formats.format import Format
from microagg.formats.layouts import CsvFormat, FileFormat, ParquetLayout, Piece
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

    def read(
        self, path: Path, file: Any, csv: CsvFormat, sheet: str | None
    ) -> tuple[pa.Table, FileFormat]:
        """Read a file, or several as one table."""
        tables: list[pa.Table] = []

        def look(file: Path) -> tuple[pa.Schema, int, ParquetLayout]:
            with opened_parquet(file) as parquet:
                tables.append(sound(parquet.read()))
                return tables[-1].schema, tables[-1].num_rows, layout_of(parquet.metadata)

        if not is_several(path):
            with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
                return sound(parquet.read()), FileFormat(csv, layout_of(parquet.metadata))
        _, folder, schema = look_into(path, look)
        whole = pa.concat_tables(
            [piece.replace_schema_metadata(schema.metadata) for piece in tables]
        )
        for name, column in key_columns(folder.pieces).items():
            whole = whole.append_column(name, column)
        return whole, FileFormat(csv, folder=folder)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file, or the files of a folder."""
        write_parquet([table], path, form, table.schema, table.num_rows, _moved(table, form))


def _moved(table: pa.Table, form: FileFormat) -> list[str]:
    """Name the columns given by folders in which some record no longer has what its folder tells."""
    pieces = form.folder.pieces
    if sum(piece.rows for piece in pieces) != table.num_rows:
        return []
    expected = key_columns(pieces)
    return [k for k in expected if k in table.column_names and not table[k].equals(expected[k])]


@contextmanager
def opened_parquet(file: Path, **options: Any) -> Iterator[pq.ParquetFile]:
    """Open a file; what keeps it from being read is said in words."""
    refuse_what_is_no_file(file)
    # Arrow itself opens no file whose name is not UTF-8.
    with (
        readable(file, "parquet"),
        file.open("rb") as opened,
        pq.ParquetFile(opened, page_checksum_verification=True, **options) as parquet,
    ):
        yield parquet


def layout_of(metadata: Any) -> ParquetLayout:
    """Find the layout in the footer of a file."""
    if not metadata.num_row_groups or not metadata.num_columns:
        return ParquetLayout()
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    codecs = Counter(groups[0].column(j).compression for j in range(metadata.num_columns))
    (codec, _), *_ = codecs.most_common(1)
    return ParquetLayout(_CODECS.get(codec, codec), max(group.num_rows for group in groups) or 1)


def write_parquet(
    tables: Iterable[pa.Table],
    path: Path,
    form: FileFormat,
    schema: pa.Schema,
    rows: int,
    changed: Collection[str],
    most: float = math.inf,
) -> None:
    """Write a table that comes in parts to one file, or to the files of a folder that exists.

    What the names of the files' folders tell must be what the ``rows`` records have, and is not written. If
    ``changed`` names a column that folders give, the files get other names. Up to one row group is in
    memory, or ``most`` bytes of it: one that takes more is written as several.
    """
    pieces: Sequence[Piece] = (Piece(path.name, sys.maxsize, form.parquet),)
    folder = path.parent
    if path.is_dir():
        pieces, folder = form.folder.placed(schema.names, changed, rows), path
    keys, source = key_types(pieces), iter(tables)
    content = pa.schema([c for c in schema if c.name not in keys], schema.metadata)
    rest = schema.empty_table()

    def records(most_rows: int, folder_keys: Mapping[str, str | None]) -> Iterator[pa.Table]:
        """Yield the next records, without what the folder of their file tells."""
        nonlocal rest
        while most_rows and (rest.num_rows or (rest := next(source, None)) is not None):
            some, rest = rest.slice(0, most_rows), rest.slice(most_rows)
            most_rows -= some.num_rows
            yield _without_keys(some, folder_keys, keys)
        rest = schema.empty_table() if rest is None else rest

    for piece in pieces:
        file = folder / piece.name
        file.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            opened = stack.enter_context(file.open("wb"))  # Arrow opens only names that are UTF-8
            with does_not_fit("parquet"):
                writer = pq.ParquetWriter(opened, content, compression=piece.layout.codec)
                stack.enter_context(writer)
            lines = records(piece.rows, dict(piece.keys))
            for group in regrouped(lines, piece.layout.row_group, most):
                # Where a page ends depends on the chunks of a column; with one chunk, on its values alone.
                with does_not_fit("parquet"):
                    writer.write_table(group.combine_chunks(), row_group_size=group.num_rows)
    if next(records(1, {}), None) is not None:
        raise TableError(
            "A folder gets as many records as its files had; there are more. "
            "Write one Parquet file instead."
        )


def _without_keys(
    table: pa.Table, folder_keys: Mapping[str, str | None], types: Mapping[str, pa.DataType]
) -> pa.Table:
    for name, value in folder_keys.items():
        expected = repeated(value, types[name], table.num_rows)
        if not table[name].equals(pa.chunked_array([expected])):
            raise TableError(
                f"The folders of the files tell column {shown(name)}, which was changed. Write to "
                "one Parquet file, or say that the column changes."
            )
    return table.drop_columns(list(folder_keys))


def regrouped(tables: Iterable[pa.Table], rows: int, most: float) -> Iterator[pa.Table]:
    """Join and cut ``tables`` so that each has ``rows`` records, the last one fewer.

    Tables of ``most`` bytes are large enough, however few records they have. No value is copied, so that a
    table may have several chunks.
    """
    waiting: list[pa.Table] = []
    records = size = 0
    for table in tables:
        waiting.append(table)
        records += table.num_rows
        size += table.nbytes
        if records < rows and size < most:
            continue
        whole = pa.concat_tables(waiting)
        start = 0
        while records - start >= rows:
            yield whole.slice(start, rows)
            start += rows
        rest = whole.slice(start)
        if rest.nbytes >= most:
            yield rest
            rest = rest.slice(rest.num_rows)
        waiting = [rest] if rest.num_rows else []
        records, size = rest.num_rows, rest.nbytes
    if records:
        yield pa.concat_tables(waiting)


class Arrow(Format):
    """Arrow files, also under the name Feather."""

    name = "arrow"
    words = "an Arrow file"
    keeps_facts = True

    def read(
        self, path: Path, file: Any, csv: CsvFormat, sheet: str | None
    ) -> tuple[pa.Table, FileFormat]:
        """Read a file."""
        return sound(feather.read_table(file)), FileFormat(csv)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file as pyarrow does by default."""
        with path.open("wb") as file:
            feather.write_feather(table, file)
