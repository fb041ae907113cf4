"""Parquet files in a folder, or those that a pattern matches, as one table.

All must have the same columns. Folders named ``year=2024`` give a column, as in Hive. Written to a
folder, the records go to files of the same names, as many to each as came from it.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from microagg.errors import TableError, listed, shown
from microagg.tables.layouts import ParquetLayout

__all__ = ["FolderLayout", "Piece", "is_several", "parquet_files", "read_folder"]

_ENDINGS = (".parquet", ".pq")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


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

    def write(self, table: pa.Table, folder: Path) -> None:
        """Write a table into a folder that exists."""
        keys = [key for key, _ in self.pieces[0].keys] if self.pieces else []
        if self._keeps_places(table, keys):
            pieces, content = self.pieces, table.drop_columns(keys)
        else:  # the names of folders would tell what the records no longer do
            pieces = tuple(
                Piece(f"part-{i}.parquet", piece.rows, piece.layout)
                for i, piece in enumerate(self.pieces)
            )
            content = table
        if sum(piece.rows for piece in pieces) != table.num_rows:
            pieces = (Piece("part-0.parquet", table.num_rows, ParquetLayout()),)
            content = table
        start = 0
        for piece in pieces:
            path = folder / piece.name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                piece.layout.write(content.slice(start, piece.rows), file)
            start += piece.rows

    def _keeps_places(self, table: pa.Table, keys: Sequence[str]) -> bool:
        """Whether every record still has what the folder of its file tells."""
        if not keys:
            return True
        if not set(keys) <= set(table.column_names):
            return False
        if sum(piece.rows for piece in self.pieces) != table.num_rows:
            return False
        expected = _key_columns(self.pieces)
        return all(table[key].equals(column) for key, column in expected.items())


def is_several(path: Path) -> bool:
    """Whether a path stands for several Parquet files: a folder, or a pattern such as a/*.parquet."""
    if path.is_dir():
        return True
    return glob.has_magic(str(path)) and not path.exists() and path.suffix.lower() in _ENDINGS


def parquet_files(path: Path) -> list[Path]:
    """List the Parquet files of a folder, at any depth, or of a pattern, in the order of their names."""
    if path.is_dir():
        found = [
            file
            for file in path.rglob("*")
            if file.suffix.lower() in _ENDINGS
            and file.is_file()
            # As everywhere, names that begin so are not data.
            and not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)
        ]
        where = f"the folder {shown(str(path), 300)} has none"
    else:
        found = [Path(name) for name in glob.glob(str(path), recursive=True)]
        found = [file for file in found if file.is_file()]
        where = f"none matches {shown(str(path), 300)}"
    if not found:
        raise TableError(
            f"A folder or a pattern stands for files whose names end in .parquet; {where}. Name another."
        )
    return sorted(found)


def read_folder(path: Path, read: Any) -> tuple[pa.Table, FolderLayout]:
    """Read several Parquet files as one table; ``read`` gives the table and the layout of one."""
    tables: list[pa.Table] = []
    pieces: list[Piece] = []
    files = parquet_files(path)
    for file in files:
        table, layout = read(file)
        if tables:
            _refuse_difference(tables[0].schema, table.schema, files[0], file)
        within = file.relative_to(path) if path.is_dir() else Path(file.name)
        keys = tuple(_key(part) for part in within.parts[:-1] if "=" in part)
        names = [key for key, _ in keys]
        if pieces and names != [key for key, _ in pieces[0].keys]:
            raise TableError(
                "All files of a folder lie in folders of the same columns, such as year=2024; "
                f"{shown(str(file), 300)} does not. Move it, or name the files by a pattern."
            )
        tables.append(table.replace_schema_metadata(tables[0].schema.metadata) if tables else table)
        pieces.append(Piece(within.as_posix(), table.num_rows, layout, keys))
    if len({piece.name for piece in pieces}) < len(pieces):  # of a pattern over several folders
        pieces = [
            Piece(f"{i}-{piece.name}", piece.rows, piece.layout) for i, piece in enumerate(pieces)
        ]
    whole = pa.concat_tables(tables)
    for name, column in _key_columns(pieces).items():
        if name in whole.column_names:
            raise TableError(
                f"The name of a folder gives a column that files do not have; {shown(name)} is in both. "
                "Rename the folders."
            )
        whole = whole.append_column(name, column)
    return whole, FolderLayout(tuple(pieces))


def _key(part: str) -> tuple[str, str | None]:
    name, _, value = part.partition("=")
    return unquote(name), None if value == _NOTHING else unquote(value)


def _key_columns(pieces: Sequence[Piece]) -> dict[str, pa.ChunkedArray]:
    """Return the columns that names of folders give: whole numbers where all are, else text."""
    found = {}
    for j, (name, _) in enumerate(pieces[0].keys if pieces else ()):
        values = [piece.keys[j][1] for piece in pieces]
        whole = all(value is None or str(int(value)) == value for value in values if _digits(value))
        whole = whole and all(value is None or _digits(value) for value in values)
        kind = pa.int64() if whole else pa.string()
        found[name] = pa.chunked_array(
            [
                pa.repeat(
                    pa.scalar(int(value) if whole and value is not None else value, kind),
                    piece.rows,
                )
                for piece, value in zip(pieces, values, strict=True)
            ],
            kind,
        )
    return found


def _digits(value: str | None) -> bool:
    return value is not None and value.isascii() and value.isdecimal() and len(value) < 19


def _refuse_difference(expected: pa.Schema, found: pa.Schema, first: Path, file: Path) -> None:
    if expected.names != found.names:
        missing = [name for name in expected.names if name not in found.names]
        extra = [name for name in found.names if name not in expected.names]
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
    for one, other in zip(expected, found, strict=True):
        if one.type != other.type:
            raise TableError(
                f"Files that are read as one table have columns of the same types; column "
                f"{shown(one.name)} of {shown(str(file), 300)} is {other.type}, in "
                f"{shown(str(first), 300)} it is {one.type}. Convert it, or leave the file out."
            )
