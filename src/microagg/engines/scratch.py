"""A scratch folder next to the output, for what does not fit into memory.

Records are kept in *shelves*. A shelf has one file for each unit of work that filled it, in which the rows
lie by the place that needs them next, so that a place collects its rows by one read from each
file. A file takes its name when it is complete: a run that was killed goes on from the files that are there.

The folder belongs to one run at a time, to one plan and to one state of the input; a folder of anything else
is removed and made anew. It holds original values, and nobody else can read it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pickle
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.encoding import PackedRows
from microagg.errors import TableError, shown
from microagg.formats.atomic import HAS_LOCKS, lock
from microagg.formats.batches import BatchSource
from microagg.formats.parquet_folders import is_several, parquet_files
from microagg.plan.plan import Plan
from microagg.tables.release_frame import random_order
from microagg.version import VERSION

_OWNER = "run.json"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # no room on the disk, or none for this user


class Scratch:
    """Files of one run; ``found`` says what an earlier run that was killed left behind, if there was one."""

    def __init__(self, folder: Path, found: str = "") -> None:
        self.folder, self.found = folder, found
        self._shelves: dict[str, Shelf] = {}
        self._lock = Lock()

    def kept(self, name: str) -> Any:
        """Return an object that was kept under this name; None: there is none."""
        path = self.folder / name
        if not path.exists():
            return None
        with path.open("rb") as file:
            return pickle.load(file)

    def keep(self, name: str, found: Any) -> None:
        """Keep an object for a run that goes on from here."""
        part = self.folder / f"{name}.part"
        with part.open("wb") as file:
            pickle.dump(found, file)
        part.replace(self.folder / name)

    def shelf(self, name: str) -> Shelf:
        """Return the shelf of this name, the same in all threads."""
        folder = self.folder / name
        with self._lock:
            if name not in self._shelves or not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
                self._shelves[name] = Shelf(folder)
            return self._shelves[name]


class Shelf:
    """Packed rows by the place that needs them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._index: dict[int, tuple[Labels, Labels, int]] = {}
        for path in folder.iterdir():
            if path.suffix == ".part":
                path.unlink()
            else:
                self._read_index(int(path.name))

    def has(self, number: int) -> bool:
        """Tell whether a unit of work has put its rows here."""
        return number in self._index

    def put(self, number: int, packed: PackedRows, places: Labels) -> None:
        """Put the rows of a unit of work here, each for its place."""
        order = np.argsort(places, kind="stable")
        filled, starts = np.unique(places[order], return_index=True)
        ends = np.append(starts, len(packed)).astype(np.int64)
        head = np.array([len(filled), packed.shape[1]], dtype=np.int64)
        part = self.folder / f"{number}.part"
        with part.open("wb") as file:
            for piece in (head, filled.astype(np.int64), ends, packed[order]):
                file.write(np.ascontiguousarray(piece).tobytes())
        part.replace(self.folder / str(number))
        self._index[number] = (filled.astype(np.int64), ends, packed.shape[1])

    def _read_index(self, number: int) -> None:
        with (self.folder / str(number)).open("rb") as file:
            count, width = np.fromfile(file, dtype=np.int64, count=2).tolist()
            places = np.fromfile(file, dtype=np.int64, count=count)
            ends = np.fromfile(file, dtype=np.int64, count=count + 1)
        self._index[number] = (places, ends, width)

    def counts(self, places: int) -> Labels:
        """Rows for each place 0, 1, …."""
        counts = np.zeros(places, dtype=np.int64)
        for filled, ends, _ in self._index.values():
            np.add.at(counts, filled, np.diff(ends))
        return counts

    def take(self, places: list[int]) -> PackedRows:
        """Collect the rows for some places."""
        pieces = []
        for number in sorted(self._index):
            filled, ends, width = self._index[number]
            begin = 8 * (2 + len(filled) + len(ends))
            wanted = [int(np.searchsorted(filled, place)) for place in places]
            at = [
                w
                for w, place in zip(wanted, places, strict=True)
                if w < len(filled) and filled[w] == place
            ]
            if not at:
                continue
            with (self.folder / str(number)).open("rb") as file:
                for place in at:
                    rows = int(ends[place + 1] - ends[place])
                    file.seek(begin + 8 * width * int(ends[place]))
                    pieces.append(np.fromfile(file, np.uint64, rows * width).reshape(rows, width))
        if not pieces:  # such as for a batch whose records are all left out
            width = max((width for _, _, width in self._index.values()), default=0)
            return np.zeros((0, width), dtype=np.uint64)
        return np.concatenate(pieces)

    def remove(self) -> None:
        """Remove all rows."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._index = {}


def in_random_order(
    tables: Iterable[pa.Table],
    folder: Path,
    rows: int,
    memory: int,
    places: Callable[[pa.Table], Labels] | None = None,
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
    memory : bytes of the rows that are held at a time; work on them takes about three times as much
    places : returns the place of each row, 0 to ``n_places`` − 1, such as its folder: rows come by their
        places, in random order within each

    Yields
    ------
    pyarrow.Table
        Parts of the table in its new order, of about ``memory`` bytes or fewer.
    """
    shutil.rmtree(folder, ignore_errors=True)
    held: list[pa.Table] = []
    files: list[Path] = []
    waiting = buckets = 0

    def put_away() -> None:
        files.append(folder / str(len(files)))
        _write_by_bucket(pa.concat_tables(held), files[-1], buckets, places, n_places)
        held.clear()

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
        whole = pa.concat_tables([_bucket_of(path, bucket) for path in files] or held)
        order = random_order(whole.num_rows)
        if places is not None:
            order = order[np.argsort(places(whole)[order], kind="stable")]
        if whole.num_rows:
            yield whole.unify_dictionaries().take(pa.array(order))
    shutil.rmtree(folder, ignore_errors=True)


def _write_by_bucket(
    table: pa.Table,
    path: Path,
    buckets: int,
    places: Callable[[pa.Table], Labels] | None,
    n_places: int,
) -> None:
    """Write rows to a file of Arrow, one batch for each place and bucket, which is drawn for each row."""
    drawn = np.frombuffer(os.urandom(8 * table.num_rows), np.uint64) % np.uint64(buckets)
    if places is not None:
        drawn = drawn + np.uint64(buckets) * places(table).astype(np.uint64)
    order = np.argsort(drawn, kind="stable")
    ends = np.searchsorted(drawn[order], np.arange(n_places * buckets + 1))
    table = table.unify_dictionaries().combine_chunks().take(pa.array(order)).combine_chunks()
    with path.open("wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        for start, end in pairwise(ends.tolist()):
            arrays = [column.chunk(0).slice(start, end - start) for column in table.columns]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=table.schema))


def _bucket_of(path: Path, bucket: int) -> pa.Table:
    with path.open("rb") as file, pa.ipc.open_file(file) as reader:
        return pa.Table.from_batches([reader.get_batch(bucket)])


def check_room(folder: Path, needed: int) -> None:
    """Refuse to begin where the disk has too little room."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise TableError(
            "A table that is read in parts needs room for its columns next to the output, here about "
            f"{needed / 2**30:,.1f} GiB; {shown(str(folder), 300)} has {free / 2**30:,.1f} GiB. Make room, "
            "or write to another disk."
        )


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder that somebody else made or can write to: what is read from it is trusted."""
    status = folder.lstat()
    foreign = False
    if hasattr(os, "getuid"):  # Windows has neither such owners nor such permissions
        foreign = status.st_uid != os.getuid() or bool(status.st_mode & 0o077)
    if not stat.S_ISDIR(status.st_mode) or foreign:
        raise TableError(
            f"Work in parts is kept in a folder of its owner alone; {shown(str(folder), 300)} is there and "
            "is none. Remove it, or write to another folder."
        )


def owner_of(
    source: BatchSource, plan: Plan, numbers: Sequence[Any], digest: str
) -> dict[str, Any]:
    """Return what kept work belongs to: a plan, a version, and a content read in one way.

    ``numbers`` are columns that are read as numbers whatever they look like, ``digest`` is the hash of the
    content.
    """
    return {
        "plan": plan.to_toml(),
        "version": VERSION,
        "csv": asdict(source.format.csv),
        "numbers": sorted(map(str, numbers)),
        "files": [
            str(path)
            for path in (parquet_files(source.path) if is_several(source.path) else [source.path])
        ],
        "sha256": digest,
    }


@contextmanager
def opened_scratch(target: Path, owner: dict[str, Any]) -> Iterator[Scratch]:
    """Yield the scratch folder next to a target, and remove it at the end, whatever happens.

    Only a killed run leaves it behind. Its successor goes on from it if ``owner``, which tells the input
    and the plan, is the same, and else begins anew. A run that does not get the folder leaves it alone:
    another run works in it.

    Parameters
    ----------
    target : the file that the run will write
    owner : what kept work belongs to, see :func:`owner_of`
    """
    folder = target.with_name(f".{target.name[:30]}.scratch")
    with _enough_room(folder), _locked_folder(folder, target):
        try:
            yield Scratch(folder, _begin_anew_unless(folder, owner))
        finally:
            # First: a run that is killed from here on leaves something that nobody goes on from.
            (folder / _OWNER).unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked_folder(folder: Path, target: Path) -> Iterator[None]:
    """Make a folder for this run alone, as long as the block lasts."""
    busy = TableError(
        f"One run at a time writes {shown(str(target), 300)}; another one does now. Wait for it, or choose "
        "another name."
    )
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        _refuse_foreign(folder)
        if not HAS_LOCKS:
            with _held_file(folder.with_suffix(".lock"), busy):
                yield
            return
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not lock(handle, wait=False):
                raise busy
            if os.fstat(handle).st_nlink:
                yield
                return
            # The run that had it removed it between our opening and our locking it: once more.
        finally:
            os.close(handle)


@contextmanager
def _held_file(path: Path, busy: TableError) -> Iterator[None]:
    """Hold a file open. On Windows nobody can remove it then; one that a killed run left can be removed."""
    try:
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except (PermissionError, FileExistsError):
        raise busy from None
    try:
        yield
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


def _begin_anew_unless(folder: Path, owner: dict[str, Any]) -> str:
    """Empty the folder unless it was left by a run with the same owner; say what was there."""
    mine = folder / _OWNER
    known = None
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(mine.read_text(encoding="utf-8"))
    if known == json.loads(json.dumps(owner)):
        return "goes on with the work of a run that was killed"
    mine.unlink(missing_ok=True)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    part = folder / f"{_OWNER}.part"
    part.write_text(json.dumps(owner), encoding="utf-8")
    part.replace(mine)
    if known is None:
        return ""
    return "starts over: a run was killed here, and its source, plan or version has changed since"


@contextmanager
def _enough_room(folder: Path) -> Iterator[None]:
    """Say which disk is full and what to do, where a write finds no room."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise TableError(
            "A table that is read in parts needs room for its columns next to the output; there is no more "
            f"for {shown(str(folder), 300)} ({error.strerror}). Nothing was released. Make room, or write "
            "to another disk."
        ) from None
