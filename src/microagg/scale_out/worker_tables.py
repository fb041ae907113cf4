"""What workers of a distributed engine are handed and give: Arrow tables, and errors that hold no values."""

from __future__ import annotations

import functools
import os
import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.errors import MicroaggError, fault_words
from microagg.kernels.threads import limit_threads
from microagg.scale_out.recipe import Words

__all__ = [
    "AT_ONCE",
    "TOLD",
    "Batches",
    "Layout",
    "all_words",
    "gathered",
    "guarded",
    "pack",
    "streaming",
    "unpack",
    "word_columns",
    "words_of",
]

AT_ONCE = 1 << 17  # rows of the tables into which the batches of an engine are gathered
TOLD = "told"  # column of what a block tells of itself, at one of its records

Batches = Iterable[pa.RecordBatch]


def pack(thing: object) -> bytes:
    """Something small for the driver, as bytes; sums over bins are mostly zeros."""
    return zlib.compress(pickle.dumps(thing), 1)


def unpack(given: bytes) -> Any:
    """Read what :func:`pack` wrote."""
    return pickle.loads(zlib.decompress(given))


def guarded(work: Callable[..., Any]) -> Callable[..., Any]:
    """Let errors out only in words that hold no value, and use the processors of one task."""

    @functools.wraps(work)
    def run(*given: Any) -> Any:
        limit_threads(int(os.environ.get("OMP_NUM_THREADS") or 1))  # which engines set for a task
        try:
            return work(*given)
        except MicroaggError:
            raise
        except Exception as error:
            if os.environ.get("MICROAGG_TRACEBACK"):
                raise
            raise MicroaggError(fault_words(error)) from None

    return run


def streaming(work: Callable[..., Iterator[pa.Table]]) -> Callable[..., Iterator[pa.RecordBatch]]:
    """The same for work that goes from batch to batch."""
    step = guarded(lambda found: next(found, None))

    @functools.wraps(work)
    def run(*given: Any) -> Iterator[pa.RecordBatch]:
        found = work(*given)
        while (table := step(found)) is not None:
            yield from table.to_batches()

    return run


@dataclass(frozen=True)
class Layout:
    """The user's columns, and how rows of the engine become a table of these."""

    names: tuple[str, ...]
    nested: tuple[int, ...] = ()
    """Places of lists, maps and records, which are told apart by their text in columns t0, t1, …."""

    def table(self, rows: pa.Table) -> pa.Table:
        """The user's table, with the user's names."""
        return rows.select([f"c{j}" for j in range(len(self.names))]).rename_columns(
            list(self.names)
        )

    def told_apart(self, rows: pa.Table) -> pa.Table:
        """The same with text in the place of nested values, which have no keys."""
        found = self.table(rows)
        for at, j in enumerate(self.nested):
            found = found.set_column(j, self.names[j], rows.column(f"t{at}"))
        return found


def gathered(batches: Batches) -> Iterator[pa.Table]:
    """Tables of about AT_ONCE rows."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= AT_ONCE:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def word_columns(words: Words, letter: str = "w") -> dict[str, Any]:
    """Words as columns of whole numbers."""
    signed = words.view(np.int64)
    return {f"{letter}{j}": np.ascontiguousarray(signed[:, j]) for j in range(words.shape[1])}


def words_of(table: pa.Table, letter: str = "w") -> Words:
    """Read what :func:`word_columns` gave."""
    names = [name for name in table.column_names if name[0] == letter and name[1:].isdigit()]
    names.sort(key=lambda name: int(name[1:]))
    found = np.empty((table.num_rows, len(names)), dtype=np.int64)
    for j, name in enumerate(names):
        found[:, j] = table.column(name).to_numpy()
    return found.view(np.uint64)


def all_words(batches: Batches, width: int) -> Words:
    """The words of all rows of a task, which may have none."""
    held = [words_of(rows) for rows in gathered(batches)]
    return np.concatenate(held) if held else np.zeros((0, width), np.uint64)
