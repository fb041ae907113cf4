"""Parquet files, one or those of a folder: read as one table, written as they were laid out; and Arrow.

The files in a folder, or those that a pattern matches, have the same columns. Folders named ``year=2024``
give a column, as in Hive.
"""

from __future__ import annotations

import glob
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

from microagg.base.typing import Labels
from microagg.errors import TableError, listed, shown
from microagg.formats.file_errors import does_not_fit, readable, refuse_what_is_no_file, sound
from microagg.formats.format import Format
from microagg.formats.layouts import FileFormat, FolderLayout, ParquetLayout, Piece
from microagg.kernels.labels import combine
from microagg.tables.frame_libraries import decoded

_ENDINGS = (".parquet", ".pq")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}")  # which int64 holds, and writes in the same way
_CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}  # what pyarrow calls them when writing


class Parquet(Format):
    """Parquet, one file or a folder or pattern of several."""

    name = "parquet"
    words = "a Parquet file"
    in_batches = True
    keeps_facts = True

    def read(self, path: Path, file: Any, form: FileFormat) -> tuple[pa.Table, FileFormat]:
        """Read a file, or several as one table."""
        tables: list[pa.Table] = []

        def look(file: Path) -> tuple[pa.Schema, int, ParquetLayout]:
            with opened_parquet(file) as parquet:
                tables.append(sound(parquet.read()))
                return tables[-1].schema, tables[-1].num_rows, layout_of(parquet.metadata)

        if not is_several(path):
            with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
                return sound(parquet.read()), FileFormat(form.csv, layout_of(parquet.metadata))
        _, folder, schema = look_into(path, look)
        whole = pa.concat_tables([t.replace_schema_metadata(schema.metadata) for t in tables])
        for name, column in key_columns(folder.pieces).items():
            whole = whole.append_column(name, column)
        return whole, FileFormat(form.csv, folder=folder)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file, or the files of a folder."""
        pieces, names = form.folder.pieces, table.column_names
        expected = {}
        if sum(piece.rows for piece in pieces) == table.num_rows:
            expected = key_columns(pieces)
        # Columns given by folders in which some record no longer has what its folder tells.
        moved = [k for k in expected if k in names and not table[k].equals(expected[k])]
        write_parquet([table], path, form, table.schema, table.num_rows, moved)


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
            for name, value in folder_keys.items():
                expected = pa.chunked_array([repeated(value, keys[name], some.num_rows)])
                if not some[name].equals(expected):
                    raise TableError(
                        f"The folders of the files tell column {shown(name)}, which was changed. Write "
                        "to one Parquet file, or say that the column changes."
                    )
            yield some.drop_columns(list(folder_keys))
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

    def read(self, path: Path, file: Any, form: FileFormat) -> tuple[pa.Table, FileFormat]:
        """Read a file."""
        return sound(feather.read_table(file)), FileFormat(form.csv)

    def write(self, table: pa.Table, path: Path, form: FileFormat) -> None:
        """Write a file as pyarrow does by default."""
        with path.open("wb") as file:
            feather.write_feather(table, file)


def is_several(path: Path) -> bool:
    """Return whether ``path`` stands for several Parquet files: a folder, or a pattern like a/*.parquet."""
    if path.is_dir():
        return True
    return glob.has_magic(str(path)) and not path.exists() and path.suffix.lower() in _ENDINGS


def parquet_files(path: Path) -> list[Path]:
    """List the Parquet files of a folder or pattern, ``path``, at any depth, in the order of their names."""
    if path.is_dir():
        files = [
            file
            for file in path.rglob("*")
            if file.suffix.lower() in _ENDINGS
            # As everywhere, names that begin so are not data.
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        ]
        where = f"the folder {shown(str(path), 300)} has none"
    else:
        files = [Path(name) for name in glob.glob(str(path), recursive=True)]
        where = f"none matches {shown(str(path), 300)}"
    files = [file for file in files if file.is_file()]
    if not files:
        raise TableError(
            f"A folder or a pattern stands for files whose names end in .parquet; {where}. Name another."
        )
    return sorted(files)


def foreign_file(folder: Path) -> Path | None:
    """Return a file that belongs to no table of Parquet files; None: there is none.

    Names that begin with a dot or an underscore, such as _SUCCESS, are notes of programs that write tables.
    """
    for file in folder.rglob("*"):
        is_ours = file.suffix.lower() in _ENDINGS or file.name[0] in "._"
        if not is_ours and not file.is_dir():
            return file
    return None


def look_into(
    path: Path, look: Callable[[Path], tuple[pa.Schema, int, ParquetLayout]]
) -> tuple[list[Path], FolderLayout, pa.Schema]:
    """Check that Parquet files are one table: the files, how records are spread, the columns.

    ``look`` gives the columns, the records and the layout of one file.
    """
    pieces: list[Piece] = []
    schema: pa.Schema = None
    files = parquet_files(path) if is_several(path) else [path]
    for file in files:
        file_schema, rows, layout = look(file)
        if pieces:
            _refuse_difference(schema, file_schema, files[0], file)
        else:
            schema = file_schema
        within = file.relative_to(path) if path.is_dir() else Path(file.name)
        pairs = [folder.split("=", 1) for folder in within.parts[:-1] if "=" in folder]
        keys = tuple((unquote(k), None if v == _NOTHING else unquote(v)) for k, v in pairs)
        if pieces and [key for key, _ in keys] != [key for key, _ in pieces[0].keys]:
            raise TableError(
                "All files of a folder lie in folders of the same columns, such as year=2024; "
                f"{shown(str(file), 300)} does not. Move it, or name the files by a pattern."
            )
        pieces.append(Piece(within.as_posix(), rows, layout, keys))
    if len({piece.name for piece in pieces}) < len(pieces):  # of a pattern over several folders
        pieces = [Piece(f"{i}-{p.name}", p.rows, p.layout) for i, p in enumerate(pieces)]
    for name, kind in key_types(pieces).items():
        if name in schema.names:
            raise TableError(
                f"The name of a folder gives a column that files do not have; {shown(name)} is in both. "
                "Rename the folders."
            )
        schema = schema.append(pa.field(name, kind))
    return files, FolderLayout(tuple(pieces)), schema


def key_types(pieces: Sequence[Piece]) -> dict[str, pa.DataType]:
    """Types of the columns that names of folders give: whole numbers where all are, else text."""
    types = {}
    for j, (name, _) in enumerate(pieces[0].keys if pieces else ()):
        values = [piece.keys[j][1] for piece in pieces]
        whole = all(value is None or _WHOLE.fullmatch(value) for value in values)
        types[name] = pa.int64() if whole else pa.string()
    return types


def key_columns(pieces: Sequence[Piece]) -> dict[str, pa.ChunkedArray]:
    """Return the columns that names of folders give."""
    return {
        name: pa.chunked_array([repeated(p.keys[j][1], kind, p.rows) for p in pieces], kind)
        for j, (name, kind) in enumerate(key_types(pieces).items())
    }


def key_places(pieces: Sequence[Piece], table: pa.Table) -> Labels | None:
    """Find the folder of each record by what the names of folders tell.

    Parameters
    ----------
    pieces : files of a folder, in their order
    table : records in any order, with the columns that folders give

    Returns
    -------
    int64 (n,) or None
        The place of each record's keys among those of the pieces: records sorted by it can be written to
        the pieces. None: some record has keys that no folder tells, or there are no keys.
    """
    names = [name for name, _ in pieces[0].keys] if pieces else []
    if not names or not set(names) <= set(table.column_names):
        return None
    codes = []
    for j, name in enumerate(names):
        keys = pa.array([piece.keys[j][1] for piece in pieces], pa.string())
        chunks = decoded(table[name]).cast(pa.string()).chunks
        both = pa.chunked_array([keys, *chunks]).combine_chunks().dictionary_encode()
        codes.append(both.indices.fill_null(-1).to_numpy().astype(np.int64))
    labels = combine(codes)  # numbered by first appearance: those of the pieces come first
    places, last = labels[len(pieces) :], labels[: len(pieces)].max()
    return None if (places > last).any() else places


def repeated(value: str | None, kind: pa.DataType, rows: int) -> pa.Array:
    """Return the value that the name of a folder gives, once for each record."""
    typed = int(value) if value is not None and pa.types.is_integer(kind) else value
    return pa.repeat(pa.scalar(typed, kind), rows)


def _refuse_difference(
    expected: pa.Schema, file_schema: pa.Schema, first: Path, file: Path
) -> None:
    if expected.names != file_schema.names:
        missing = [name for name in expected.names if name not in file_schema.names]
        extra = [name for name in file_schema.names if name not in expected.names]
        fact = f"also has {listed(extra)}" if extra else "has them in another order"
        if missing:
            fact = f"lacks {listed(missing)}"
        raise TableError(
            f"Files that are read as one table have the same columns; {shown(str(file), 300)} {fact}, "
            f"compared with {shown(str(first), 300)}. Name the files by a pattern that leaves it out."
        )
    for field, other in zip(expected, file_schema, strict=True):
        if field.type != other.type:
            raise TableError(
                f"Files that are read as one table have columns of the same types; column "
                f"{shown(field.name)} of {shown(str(file), 300)} is {other.type}, in "
                f"{shown(str(first), 300)} it is {field.type}. Convert it, or leave the file out."
            )
