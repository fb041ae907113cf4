"""From disk: a table in chunks, few of them in memory at a time.

Some passes over the input summarise it (fit.py), one draws a sample by the keys of rows, from which chunks
are planned (unless there is but one), and one turns it into records, by chunk, on a shelf. Then the chunks
are worked on one after the other, turn after turn; what each record releases goes to a last shelf, by the
batch of the input that it belongs to. Another pass over the input writes the output (disk_release.py).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.compile.threads import at_work, thread_count
from microagg.engines.aggregates import Sums, added_up, finish_chunk
from microagg.engines.chunks import (
    COPIES,
    LEAF,
    ChunkPlan,
    broken_requirement,
    in_sample,
    plan_chunks,
    sample_share,
    sound_chunks,
    work_on_chunk,
)
from microagg.engines.encoding import Encoding, PackedRows
from microagg.engines.fit import fit
from microagg.engines.one_column import (
    STRETCH,
    Splits,
    ends_by_stretch,
    in_value_order,
    split_column,
)
from microagg.engines.parts import Choose, Found, Merge
from microagg.engines.scratch import Shelf
from microagg.engines.table_summary import TableSummary
from microagg.errors import InputError
from microagg.formats.batches import Batch, BatchSource
from microagg.plan.plan import Plan
from microagg.releasing.dealt import SECRET_BYTES

AT_ONCE = 1 << 17  # records of a batch

OnProgress = Callable[[str, int, int], None]
"""Gets a stage, records done and all of them."""


def group_from_disk(
    source: BatchSource, plan: Plan, folder: Path, on_progress: OnProgress, memory: int
) -> DiskRun:
    """Group the records of a table that is read in parts, by a plan that names the columns to protect.

    ``folder`` keeps records meanwhile; ``on_progress`` may raise to end the run; ``memory`` bytes may be
    taken by chunks, which tells how many are worked on at a time.
    """
    parts = DiskParts(source, on_progress)
    encoding, summary = fit(parts, plan)
    records = STRETCH if encoding.is_one_column else LEAF
    sample = np.zeros((0, encoding.width), dtype=np.uint64)
    if encoding.cell_sizes.max() > records:
        share = sample_share(encoding.records)
        sample = parts.gather(
            encoding,
            lambda packed: packed[in_sample(encoding.records_of(packed).keys, share)],
            lambda batches: np.concatenate(list(batches)),
        )
    each = COPIES * 8 * records * (encoding.width + 4)
    workers = int(np.clip(memory // each, 1, thread_count()))
    run = DiskRun(
        source, folder, on_progress, encoding, summary, workers, Shelf(folder / "released")
    )
    if encoding.is_one_column:
        run.cut_column(split_column(encoding, sample, records))
    else:
        run.work_in_turns(plan_chunks(encoding, sample, records))
    return run


@dataclass(eq=False)
class DiskRun:
    """A table whose records are being grouped, ``workers`` chunks at a time.

    What they release is on a shelf; ``sums`` and ``sampled`` are read once all are grouped.
    """

    source: BatchSource
    folder: Path
    on_progress: OnProgress
    encoding: Encoding
    summary: TableSummary
    workers: int
    released: Shelf
    """The row of each record and what it releases, by the batch of the input."""
    reports: dict[int, tuple[Sums, Labels]] = field(default_factory=dict)
    """The sums of each chunk, and its records in the sample of whole groups: rows and groups."""

    @cached_property
    def sums(self) -> Sums:
        """The sums of all chunks."""
        return added_up(self.encoding, [sums for _, (sums, _) in sorted(self.reports.items())])

    @cached_property
    def sampled(self) -> Labels:
        """(s, 2) rows of whole groups, some of all, and the group of each, by row."""
        sampled = np.concatenate([rows for _, rows in self.reports.values()])
        return np.asarray(sampled[np.argsort(sampled[:, 0])])

    def work_in_turns(self, plan: ChunkPlan) -> None:
        """Work on all chunks, turn after turn."""
        shelf = self._shelved(plan)
        plan = sound_chunks(
            self.encoding,
            plan,
            shelf.counts(plan.n_places()),
            lambda places: broken_requirement(self.encoding, shelf.take(places)),
        )
        for turn in range(plan.rounds + 1):
            following = Shelf(self.folder / f"turn-{turn + 1}")
            self._work(plan, turn, shelf, following)
            shelf.remove()
            shelf = following

    def _work(self, plan: ChunkPlan, turn: int, shelf: Shelf, following: Shelf) -> None:
        """Work on every chunk in one turn; put the records on a shelf for the next one."""

        def work(number: int, places: list[int]) -> None:
            packed, groups = shelf.take(places), None
            if turn:
                groups, packed = packed[:, -1].astype(np.int64), packed[:, :-1]
            moved = work_on_chunk(self.encoding, plan, number, packed, groups, turn)
            if moved.chunks is None:
                self._release(number, moved.packed, moved.groups)
            else:
                rows = np.column_stack([moved.packed, moved.groups.astype(np.uint64)])
                following.put(number, rows, moved.chunks)

        counts, records = shelf.counts(plan.n_places(turn)), self.encoding.records
        tasks = [(int(counts[places].sum()), (n, places)) for n, places in plan.sources(turn)]
        tasks = [task for task in tasks if task[0]]
        self._in_threads(work, tasks, turn * records, (plan.rounds + 1) * records)

    def cut_column(self, splits: Splits) -> None:
        """Cut one column optimally, stretch by stretch."""
        encoding, shelf = self.encoding, self._shelved(splits)
        in_order = Shelf(self.folder / "in order")
        stretches = [(1, (place,)) for place in range(splits.first[-1])]
        cells = np.repeat(np.arange(len(splits.values)), np.diff(splits.first))

        def sort(place: int) -> None:
            packed = shelf.take([place])
            packed = in_value_order(encoding.records_of(packed), packed)
            in_order.put(place, packed, np.full(len(packed), place))

        def release(place: int) -> None:
            if not len(ends[place]):
                return
            last = int(ends[place][-1])
            parts, before = [in_order.take([place])[:last]], place - 1
            # A group that ends here may begin in stretches before, after the last group that ends in these.
            while before >= 0 and cells[before] == cells[place]:
                parts.insert(0, in_order.take([before])[int(ends[before].max(initial=0)) :])
                if len(ends[before]):
                    break
                before -= 1
            packed = np.concatenate(parts)
            cuts = ends[place] + len(packed) - last
            labels = np.repeat(np.arange(len(cuts)), np.diff(np.append(0, cuts)))
            self._release(place, packed, labels + (place << 32))

        self._in_threads(sort, stretches, 0, 2 * len(stretches))
        shelf.remove()
        ends = ends_by_stretch(encoding, splits, in_order, self.workers, self.folder)
        self._in_threads(release, stretches, len(stretches), 2 * len(stretches))

    def _shelved(self, plan: ChunkPlan | Splits) -> Shelf:
        """Put all records on a shelf, by chunk."""
        encoding, total = self.encoding, self.source.rows
        shelf = Shelf(self.folder / "turn-0")
        for number, batch in enumerate(read_ahead(self.source)):
            end = batch.first + batch.table.num_rows
            rows = np.arange(batch.first, end, dtype=np.uint64)[:, None]
            packed = _of_batch(batch, partial(encoding.packed, extra=rows), encoding.is_csv)
            shelf.put(number, packed, plan.places_of(encoding, packed))
            self.on_progress("encoding", end, total)
        return shelf

    def _release(self, number: int, packed: PackedRows, groups: Labels) -> None:
        """Keep what the groups of a chunk release, for the output, and their sums."""
        secret = secrets.token_bytes(SECRET_BYTES)
        chunk = finish_chunk(self.encoding, packed, groups, number, secret)
        row, chosen = chunk.records.extra[:, :1], chunk.sampled
        sample = np.column_stack([row[chosen, 0].astype(np.int64), groups[chosen]])
        self.reports[number] = chunk.sums, sample
        places = (row[:, 0] // np.uint64(AT_ONCE)).astype(np.int64)
        self.released.put(number, np.hstack([row, chunk.shared.packed()]), places)

    def _in_threads(
        self, work: Callable[..., None], tasks: Iterable[tuple[int, Any]], done: int, total: int
    ) -> None:
        """Do tasks, given as size and arguments, several at a time; report how much is done of all."""

        def counted(*arguments: Any) -> None:
            with at_work():
                work(*arguments)

        with ThreadPoolExecutor(self.workers, thread_name_prefix="microagg-chunk") as pool:
            waiting = {pool.submit(counted, *arguments): size for size, arguments in tasks}
            try:
                for future in as_completed(waiting):
                    future.result()
                    done += waiting[future]
                    self.on_progress("grouping", done, total)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


class DiskParts:
    """The records of a file, for the steps of all engines; ``on_progress`` hears how far a pass is."""

    def __init__(
        self, source: BatchSource, on_progress: OnProgress = lambda stage, done, total: None
    ) -> None:
        self.names, self.is_text = source.names, source.is_text
        self._source, self._on_progress = source, on_progress

    def empty(self) -> pa.Table:
        """Return the types of the columns."""
        return self._source.schema.empty_table()

    def first(self, records: int, work: Callable[[pa.Table], Found]) -> Found | None:
        """Look at the first records."""
        head = next(iter(self._source.batches(at_once=records)), None)
        return None if head is None else work(head.table)

    def reduce(
        self, work: Callable[..., Found], merge: Merge[Found], columns: Iterable[Any]
    ) -> Found | None:
        """Summarise each batch, and merge the summaries."""
        total: Found | None = None
        done, wanted = 0, set(columns)
        for batch in read_ahead(self._source, [name for name in self.names if name in wanted]):
            summary = _of_batch(batch, lambda t, written: work(t, written=written), self.is_text)
            total = summary if total is None else merge(total, summary)
            done += batch.table.num_rows
            self._on_progress("reading", done, self._source.rows)
        return total

    def gather(
        self, encoding: Encoding, choose: Choose, work: Callable[[Iterable[PackedRows]], Found]
    ) -> Found:
        """Bring some records together, and work on them."""
        batches = read_ahead(self._source)
        return work(choose(_of_batch(batch, encoding.packed, self.is_text)) for batch in batches)


def read_ahead(source: BatchSource, columns: list[Any] | None = None) -> Iterator[Batch]:
    """Yield the batches of a table, all columns or some, while a thread reads the next one."""
    batches = iter(source.batches(columns, at_once=AT_ONCE))
    with ThreadPoolExecutor(1, thread_name_prefix="microagg-read") as pool:
        following = pool.submit(next, batches, None)
        while (batch := following.result()) is not None:
            following = pool.submit(next, batches, None)
            yield batch


def _of_batch(batch: Batch, work: Callable[..., Found], is_text: bool) -> Found:
    """Work on a batch; errors count its rows from 1, so that the message says where the batch begins."""
    try:
        return work(batch.table, batch.as_written if is_text else None)
    except InputError as error:
        first = "the first record is row 1"
        if not batch.first or first not in str(error):
            raise
        where = f"row 1 is here row {batch.first + 1:,} of the table, which is read in parts"
        raise InputError(str(error).replace(first, where)) from None
