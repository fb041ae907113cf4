"""Compiled kernels on disk, for the next process.

numba asks only whether the file of a kernel changed, not those of the kernels that it calls, and it
numbers its files, so that two processes that compile the same kernel for other types at the same time may
overwrite each other's. Here what was compiled counts while no kernel of the package has changed, and a
file is named by the types that it is for.

Anyone who can write such a file decides what this process runs. A folder of another user is refused, a file
that others could have written is compiled anew, and nothing is unpickled before its digest was compared.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import stat
from contextlib import suppress
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.runtime.nrt import rtsys

from microagg.compile.source_digest import stamp
from microagg.errors import InputError, shown

_MAGIC = b"microagg kernel 1\n"
_DIGEST = hashlib.sha256().digest_size

# A numba that lacks one of these is found out here, by the import, and not with the first kernel.
for _of, _names in (
    (IndexDataCacheFile, ("_data_path", "_dump", "_open_for_write")),
    (FunctionCache, ("_guard_against_spurious_io_errors", "_load_overload")),
):
    for _name in _names:
        getattr(_of, _name)


class _Files(IndexDataCacheFile):
    """The files of one kernel, one for each set of types. They replace each other whole."""

    def __init__(self, folder: str, base: str) -> None:
        super().__init__(folder, base, stamp())
        self._base = base

    def _path(self, key: Any) -> str:
        types = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        path: str = self._data_path(f"{self._base}.{types}.nbc")
        return path

    def _head(self, key: Any, content: bytes) -> bytes:
        """Return what stands before the code: what it is for, and its digest."""
        of = repr((self._version, self._source_stamp, key)).encode()
        return _MAGIC + hashlib.sha256(of).digest() + hashlib.sha256(content).digest()

    def load(self, key: Any) -> Any:
        """Return what was compiled for these types, or None."""
        try:
            handle = os.open(self._path(key), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:  # there is none, or a link
            return None
        with open(handle, "rb") as file:
            if not _only_ours(os.fstat(file.fileno())):
                return None
            head = file.read(len(_MAGIC) + 2 * _DIGEST)
            content = file.read()
        return pickle.loads(content) if head == self._head(key, content) else None

    def save(self, key: Any, data: Any) -> None:
        """Keep what was compiled for these types; on a full disk only this process has it."""
        content = self._dump(data)
        with suppress(OSError), self._open_for_write(self._path(key)) as file:
            if hasattr(os, "fchmod"):  # whatever the umask, others do not write here
                os.fchmod(file.fileno(), 0o644)
            file.write(self._head(key, content) + content)


def _only_ours(facts: os.stat_result) -> bool:
    """Return whether a file can only be written by users who could change this package as well."""
    if not hasattr(os, "getuid"):
        return True
    others_write = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISREG(facts.st_mode) and not others_write and facts.st_uid in _trusted()


def _trusted() -> set[int]:
    """Return the users whose code runs here anyway: this one, the administrator, the package's owner."""
    return {os.getuid(), 0, os.stat(__file__).st_uid}


def _refuse_foreign(folder: str) -> None:
    """Refuse a folder in which others could put code, or within which they could replace it.

    Whoever may write to a folder may rename what is in it, whoever owns that, unless the folder is sticky.
    """
    if not hasattr(os, "getuid"):
        return
    named = os.environ.get("NUMBA_CACHE_DIR")
    for path in {folder, named or folder}:
        facts = os.stat(path)
        if facts.st_uid not in _trusted():
            fault = "belongs to another user"
        elif facts.st_mode & stat.S_IWOTH and not facts.st_mode & stat.S_ISVTX:
            fault = "can be written to by every user"
        else:
            continue
        raise InputError(
            "Compiled kernels are kept in a folder of the user who runs them; "
            f"{shown(path, 300)} {fault}, who could put other code there. Set NUMBA_CACHE_DIR to a folder "
            "of your own."
        )


class KernelCache(FunctionCache):
    """Where the machine code of a kernel is kept; a RuntimeError where it cannot be."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        _refuse_foreign(self._cache_path)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code that was compiled for these types, or None.

        numba loads its whole compiler first, and with it scipy.linalg: half a second. Code that is compiled
        needs numba's memory management alone.
        """
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
