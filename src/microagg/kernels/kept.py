"""Compiled kernels on disk, for the next process.

numba asks only whether the file of a kernel changed, not those of the kernels that it calls, and it
numbers its files, so that two processes that compile the same kernel for other types at the same time may
overwrite each other's. Here what was compiled counts while no kernel of the package has changed, and a
file is named by the types that it is for.
"""

from __future__ import annotations

import hashlib
import pickle
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile

from microagg.kernels.stamp import stamp

__all__ = ["KernelCache"]


class _Files(IndexDataCacheFile):
    """The files of one kernel, one for each set of types. They replace each other whole."""

    def __init__(self, folder: str, base: str) -> None:
        super().__init__(folder, base, stamp())
        self._base = base

    def _path(self, key: Any) -> str:
        types = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        path: str = self._data_path(f"{self._base}.{types}.nbc")
        return path

    def load(self, key: Any) -> Any:
        """Return what was compiled for these types, or None."""
        try:
            with open(self._path(key), "rb") as file:
                if pickle.load(file) != (self._version, self._source_stamp):
                    return None
                return pickle.load(file) if pickle.load(file) == key else None
        except FileNotFoundError:
            return None

    def save(self, key: Any, data: Any) -> None:
        """Keep what was compiled for these types."""
        with self._open_for_write(self._path(key)) as file:
            for part in ((self._version, self._source_stamp), key, data):
                file.write(self._dump(part))


class KernelCache(FunctionCache):
    """Where the machine code of a kernel is kept; a RuntimeError where it cannot be."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base)
