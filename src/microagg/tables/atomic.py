"""Writing a file so that its name only ever stands for something complete."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from microagg.errors import TableError, shown

__all__ = ["check_target", "replacing", "sha256"]


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``target``, which takes its name when the block succeeds.

    It has the same ending, so that the format can be told from it.

    When the block raises, the temporary file is removed and ``target`` is as it was
    before, be it absent or the very input of the run.
    """
    target = Path(os.path.realpath(target))  # a link keeps pointing to where it does
    check_target(target)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name[:30]}.", suffix=f".part{target.suffix}", dir=target.parent
        )
    except OSError as error:
        raise _cannot_write(target, error) from None
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        part.chmod(_mode_for(target))
        part.replace(target)
    except OSError as error:
        raise _cannot_write(target, error) from error
    finally:
        part.unlink(missing_ok=True)


def check_target(target: Path) -> None:
    """Refuse a place where no file can be made, before any work is done for it."""
    try:
        if target.exists() and not target.is_file():
            raise TableError(
                f"The output must be an ordinary file; {shown(str(target), 300)} is not one. "
                "Choose another name."
            )
        if not target.parent.is_dir():
            raise NotADirectoryError(0, f"there is no folder {shown(str(target.parent), 300)}")
        if not os.access(target.parent, os.W_OK):
            raise PermissionError(0, "the folder is not writable")
    except OSError as error:
        raise _cannot_write(target, error) from None


def sha256(path: Path) -> str:
    """Hash of a file's content, in hexadecimal digits."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mode_for(target: Path) -> int:
    """Permissions of the file that is replaced, or those that a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def _cannot_write(target: Path, error: OSError) -> TableError:
    reason = error.strerror or str(error)
    return TableError(
        f"Cannot write {shown(str(target), limit=300)}: {reason}. Nothing was released; choose a "
        "folder that exists, is writable and has room."
    )
