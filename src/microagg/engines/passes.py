"""Several passes over a table on disk, each of which must find what the first one found.

A file can be replaced or written to while a long run reads it again and again, and what is kept of a killed
run may be of another file. So the records of every batch are hashed as they are read: the first pass
notes the hashes, and each later one, also that of a run that goes on from kept work, compares.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from microagg.errors import TableError, shown
from microagg.formats.batches import Batch, BatchSource
from microagg.measure.row_keys import Keys, row_keys


def source_changed(path: object) -> TableError:
    """Say that a table is no longer what it was."""
    return TableError(
        "A table that is read in parts is read several times, and must be the same each time; "
        f"{shown(str(path), 300)} changed meanwhile. Nothing was released. Run it again, once nobody writes "
        "to it."
    )


class Passes:
    """Passes over a table; iterating is one of them.

    Parameters
    ----------
    source : the table
    at_once : records of a batch, the same in all passes
    digests : of the batches, where an earlier run had a whole pass

    Attributes
    ----------
    digests : of the batches, after a whole pass
    """

    def __init__(self, source: BatchSource, at_once: int, digests: Sequence[bytes] = ()) -> None:
        self.source, self.digests = source, tuple(digests)
        self._at_once = at_once

    def __iter__(self) -> Iterator[Batch]:
        return (batch for batch, _ in self.with_keys())

    def with_keys(self) -> Iterator[tuple[Batch, Keys]]:
        """Read the table once more; the records in their order, and a key of each."""
        return _read_ahead(self._read())

    def _read(self) -> Iterator[tuple[Batch, Keys]]:
        digests: list[bytes] = []
        for batch in self.source.batches(at_once=self._at_once):
            keys = row_keys(batch.as_written.columns)
            digests.append(hashlib.sha256(keys.tobytes()).digest())
            if self.digests and self.digests[len(digests) - 1 : len(digests)] != (digests[-1],):
                raise source_changed(self.source.path)
            yield batch, keys
        if self.digests and len(digests) < len(self.digests):
            raise source_changed(self.source.path)
        self.digests = tuple(digests)


def _read_ahead(batches: Iterator[tuple[Batch, Keys]]) -> Iterator[tuple[Batch, Keys]]:
    """Yield batches while a thread reads the next one."""
    with ThreadPoolExecutor(1, thread_name_prefix="microagg-read") as pool:
        following = pool.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = pool.submit(next, batches, None)
            yield batch
