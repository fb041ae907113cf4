"""Parquet files in a folder, or those that a pattern matches, as one table.

All must have the same columns. Folders named ``year=2024`` give a column, as in Hive.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.errors import TableError, listed, shown
from microagg.formats.layouts import FolderLayout, ParquetLayout, Piece
from microagg.kernels.labels import combine
from microagg.tables.frame_libraries import decoded

_ENDINGS = (".parquet", ".pq")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


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
            and file.is_file()
            # As everywhere, names that begin so are not data.
            and not any(
                folder_name.startswith((".", "_")) for folder_name in file.relative_to(path).parts
            )
        ]
        where = f"the folder {shown(str(path), 300)} has none"
    else:
        files = [Path(name) for name in glob.glob(str(path), recursive=True)]
        files = [file for file in files if file.is_file()]
        where = f"none matches {shown(str(path), 300)}"
    if not files:
        raise TableError(
            f"A folder or a pattern stands for files whose names end in .parquet; {where}. Name another."
        )
    return sorted(files)


def foreign_file(folder: Path) -> Path | None:
    """Return a file that belongs to no table of Parquet files; None: there is none.

    Names that begin with a dot or an underscore, such as _SUCCESS, are notes of programs that write tables.
    """
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return next(
        (f for f in files if f.suffix.lower() not in _ENDINGS and f.name[0] not in "._"), None
    )


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
        keys = tuple(_key(folder_name) for folder_name in within.parts[:-1] if "=" in folder_name)
        names = [key for key, _ in keys]
        if pieces and names != [key for key, _ in pieces[0].keys]:
            raise TableError(
                "All files of a folder lie in folders of the same columns, such as year=2024; "
                f"{shown(str(file), 300)} does not. Move it, or name the files by a pattern."
            )
        pieces.append(Piece(within.as_posix(), rows, layout, keys))
    if len({piece.name for piece in pieces}) < len(pieces):  # of a pattern over several folders
        pieces = [
            Piece(f"{i}-{piece.name}", piece.rows, piece.layout) for i, piece in enumerate(pieces)
        ]
    for name, kind in key_types(pieces).items():
        if name in schema.names:
            raise TableError(
                f"The name of a folder gives a column that files do not have; {shown(name)} is in both. "
                "Rename the folders."
            )
        schema = schema.append(pa.field(name, kind))
    return files, FolderLayout(tuple(pieces)), schema


def _key(part: str) -> tuple[str, str | None]:
    name, _, value = part.partition("=")
    return unquote(name), None if value == _NOTHING else unquote(value)


def key_types(pieces: Sequence[Piece]) -> dict[str, pa.DataType]:
    """Types of the columns that names of folders give: whole numbers where all are, else text."""
    types = {}
    for j, (name, _) in enumerate(pieces[0].keys if pieces else ()):
        values = [piece.keys[j][1] for piece in pieces]
        whole = all(
            value is None
            or (
                value.isascii()
                and value.isdecimal()
                and len(value) < 19
                and str(int(value)) == value
            )
            for value in values
        )
        types[name] = pa.int64() if whole else pa.string()
    return types


def key_columns(pieces: Sequence[Piece]) -> dict[str, pa.ChunkedArray]:
    """Return the columns that names of folders give."""
    return {
        name: pa.chunked_array(
            [repeated(piece.keys[j][1], kind, piece.rows) for piece in pieces], kind
        )
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
        fact = (
            f"lacks {listed(missing)}"
            if missing
            else f"also has {listed(extra)}"
            if extra
            else "has them in another order"
        )
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
