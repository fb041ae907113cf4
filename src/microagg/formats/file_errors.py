"""What keeps a file from being read or written, found out or said in words."""

from __future__ import annotations

import importlib
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from microagg.errors import MicroaggError, TableError, shown
from microagg.tables.frame_libraries import pandas_notes


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
        raise incomplete(path, kind, _first_line(error)) from None
    except Exception as error:  # whatever a decoder says of foreign bytes
        raise incomplete(path, kind, _first_line(error)) from None


def incomplete(path: Path, kind: str, fact: str) -> TableError:
    """Say that a file is damaged."""
    return TableError(
        f"{shown(str(path), 300)} is no complete {kind} file: {fact}. "
        "Check that it was copied whole and that its ending fits its content."
    )


@contextmanager
def does_not_fit(kind: str) -> Iterator[None]:
    """Say in words that a table does not fit into a file of some kind."""
    try:
        yield
    except Exception as error:
        module = sys.modules.get("pyreadstat")
        of_readstat = () if module is None else (module.ReadstatError, module.PyreadstatError)
        if not isinstance(error, (pa.ArrowException, *of_readstat)):
            raise
        raise TableError(
            f"The table does not fit into a {kind} file: {_first_line(error)}. "
            "Choose another format or convert that column."
        ) from None


def _first_line(error: BaseException) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return line if line.isprintable() and len(line) <= 300 else type(error).__name__


def needed(module: str) -> Any:
    """Import a package that only some files need, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise TableError(
            f"Files of this format need the package {module.partition('.')[0]}, which is not installed. "
            'Install it with: pip install "microagg[files]"'
        ) from None
