"""A private folder for uploads and releases: nobody else can look into it, and it is removed at the end.

What a killed server left behind is removed at the next start: nobody holds its lock.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from microagg.formats.atomic import lock

__all__ = ["PrivateFolder"]

_START = "microagg-page-"
_LOCK = "lock"


class PrivateFolder:
    """A folder that only its owner may enter (0700), with files that only he may read (0600)."""

    def __init__(self, within: Path | None = None) -> None:
        within = Path(tempfile.gettempdir()) if within is None else within
        _remove_orphans(within)
        self.path = Path(tempfile.mkdtemp(prefix=_START, dir=within))
        handle = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        lock(handle, wait=False)
        self._lock: int | None = handle
        self._count = 0

    def new(self, what: str) -> Path:
        """Make a folder within."""
        self._count += 1
        path = self.path / f"{what}-{self._count}"
        path.mkdir(0o700)
        return path

    def drop(self, folder: Path) -> None:
        """Remove one of the folders within."""
        shutil.rmtree(folder, ignore_errors=True)

    def remove(self) -> None:
        """Remove all; once more does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _remove_orphans(within: Path) -> None:
    """Remove folders of our own whose server is gone; what belongs to others, and links, stay."""
    own = os.getuid() if hasattr(os, "getuid") else 0
    for path in within.glob(f"{_START}*"):
        with contextlib.suppress(OSError):
            facts = path.lstat()
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != own:
                continue
            handle = os.open(path / _LOCK, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if lock(handle, wait=False):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)
