"""Records that wait on disk, next to the output, for what does not fit into memory."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.encoding import PackedRows
from microagg.errors import TableError, shown
from microagg.formats.atomic import private_folder
from microagg.tables.release_frame import random_order

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no room on the disk, or none for this user


@contextmanager
def scratch_folder(target: Path) -> Iterator[Path]:
    """Yield a private folder next to a target, which is removed at the end, whatever happens.

    Only a killed run leaves it behind; the next one for the same target removes it. A full disk is named.
    """
    start = f".{target.name[:30]}.scratch-"
    try:
        with private_folder(target.parent, start) as folder:
            yield folder
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise TableError(
            "A table that is read in parts needs room for its columns next to the output; there is no more "
            f"for {shown(str(target.with_name(start)), 300)}… ({error.strerror}). Nothing was released. Make "
            "room, or write to another disk."
        ) from None


class Shelf:
    """Packed rows by the place that needs them, in a new folder.

    There is a file for each unit of work that put rows here, in which they lie by place, so that a place
    collects its rows by one read from each file.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self._folder = folder
        # Of each file the places that have rows there, where these begin, and the width of a row.
        self._index: dict[int, tuple[Labels, Labels, int]] = {}

    def put(self, number: int, packed: PackedRows, places: Labels) -> None:
        """Put the rows of a unit of work here, each for its place."""
        order = np.argsort(places, kind="stable")
        filled, starts = np.unique(places[order], return_index=True)
        with (self._folder / str(number)).open("wb") as file:
            file.write(packed[order].tobytes())  # which says why, if it cannot
        self._index[number] = filled, np.append(starts, len(packed)), packed.shape[1]

    def counts(self, places: int) -> Labels:
        """Rows for each place 0, 1, …."""
        counts = np.zeros(places, dtype=np.int64)
        for filled, starts, _ in self._index.values():
            counts[filled] += np.diff(starts)
        return counts

    def take(self, places: list[int]) -> PackedRows:
        """Collect the rows for some places."""
        pieces = []
        for number, (filled, starts, width) in sorted(self._index.items()):
            pieces.append(np.zeros((0, width), dtype=np.uint64))
            for at in np.flatnonzero(np.isin(filled, places)).tolist():
                begin, end = starts[at : at + 2].tolist()
                file, offset = self._folder / str(number), 8 * width * begin
                rows = np.fromfile(file, np.uint64, width * (end - begin), offset=offset)
                pieces.append(rows.reshape(-1, width))
        return np.concatenate(pieces)

    def remove(self) -> None:
        """Remove all rows."""
        shutil.rmtree(self._folder, ignore_errors=True)


def in_random_order(
    tables: Iterable[pa.Table],
    folder: Path,
    rows: int,
    memory: int,
    places: Callable[[pa.Table], Any] | None = None,
    n_places: int = 1,
) -> Iterator[pa.Table]:
    """Bring all rows of a table that does not fit into memory into random order.

    Each row goes to a bucket drawn at random, and the rows of a bucket are brought into random order when all
    of them are there: every order of the table has the same chance. Random numbers are the operating
    system's, as in :func:`microagg.tables.release_frame.random_order`.

    Parameters
    ----------
    tables : the table in consecutive parts
    folder : for the rows that wait; what is there is removed
    rows : of the whole table
    memory : bytes of rows held at a time, about; parts that are yielded are no larger. Work on them takes
        three times as much.
    places : returns the place of each row, 0 to ``n_places`` − 1, such as its folder: rows come by their
        places, in random order within each
    """
    shutil.rmtree(folder, ignore_errors=True)
    held: list[pa.Table] = []
    files: list[Path] = []
    waiting = buckets = 0

    def put_away() -> None:
        """Write what is held to a file of Arrow, one batch for each place and bucket, drawn for each row."""
        table = pa.concat_tables(held)
        held.clear()
        drawn = np.frombuffer(os.urandom(8 * table.num_rows), np.uint64) % np.uint64(buckets)
        if places is not None:
            drawn = drawn + np.uint64(buckets) * places(table).astype(np.uint64)
        order = np.argsort(drawn, kind="stable")
        ends = np.searchsorted(drawn[order], np.arange(n_places * buckets + 1))
        table = table.unify_dictionaries().combine_chunks().take(pa.array(order)).combine_chunks()
        files.append(folder / str(len(files)))
        with files[-1].open("wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            for start, end in pairwise(ends.tolist()):
                arrays = [column.chunk(0).slice(start, end - start) for column in table.columns]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=table.schema))

    for table in tables:
        held.append(table)
        waiting += table.nbytes
        if waiting < memory:
            continue
        if not files:
            folder.mkdir(mode=0o700)
            seen = sum(table.num_rows for table in held)
            buckets = min(1 + waiting * rows // (seen * max(memory, 1)), rows)
        put_away()
        waiting = 0
    if files and held:
        put_away()
    for bucket in range(n_places * buckets if files else 1):
        for path in files:
            with path.open("rb") as file, pa.ipc.open_file(file) as reader:
                held.append(pa.Table.from_batches([reader.get_batch(bucket)]))
        whole = pa.concat_tables(held)
        held.clear()
        order = random_order(whole.num_rows)
        if places is not None:
            order = order[np.argsort(places(whole)[order], kind="stable")]
        if whole.num_rows:
            yield whole.unify_dictionaries().take(pa.array(order))
    shutil.rmtree(folder, ignore_errors=True)


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin where the disk has too little room."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise TableError(
            "A table that is read in parts needs room for its columns next to the output, here about "
            f"{needed / 2**30:,.1f} GiB; {shown(str(folder), 300)} has {free / 2**30:,.1f} GiB. Make room, "
            "or write to another disk."
        )
