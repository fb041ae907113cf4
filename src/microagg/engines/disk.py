"""From disk: a table in chunks, few of them in memory at a time.

Grouping takes three passes over the input: one summarises it, one draws a sample by the keys of rows, from
which chunks are planned (unless there is but one), and one turns it into records, by chunk, on a shelf of the
scratch folder. Then the chunks are worked on one after the other, turn after turn; what each record releases
goes to a last shelf, by the part of the output it belongs to. Another pass over the input writes the output.
Further ones count what the evidence asks for (release_counts.py). All moves are sequential.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

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
from microagg.engines.parts import Found
from microagg.engines.scratch import Scratch, Shelf
from microagg.engines.table_summary import TableSummary
from microagg.errors import InputError
from microagg.formats.batches import Batch, BatchSource
from microagg.plan.plan import Plan
from microagg.releasing.dealt import SECRET_BYTES

AT_ONCE = 1 << 17  # records of a batch
_BATCHES = 4  # that are put on the shelf together

OnProgress = Callable[[str, int, int], None]
"""Gets a stage, records done and all of them."""


class DiskRun(NamedTuple):
    """A table whose records have been grouped; what they release is on a shelf of the scratch folder."""

    encoding: Encoding
    summary: TableSummary
    numbers: Sequence[int]  # of the chunks, or stretches, that were worked on
    sums: Sums
    sampled: Labels  # (s, 2) rows of whole groups, some of all, and the group of each, by row


def group_from_disk(
    source: BatchSource,
    plan: Plan,
    scratch: Scratch,
    on_progress: OnProgress = lambda stage, done, total: None,
    leaf: int | None = None,
    memory: int = 1 << 30,
) -> DiskRun:
    """Group the records of a table that is read in parts.

    Parameters
    ----------
    source : the table
    plan : with the columns to protect named
    scratch : where records are kept, and where a killed run left off
    on_progress : is called with how far it is; may raise to end the run
    leaf : records in a chunk, about
    memory : bytes that chunks may take, which tells how many are worked on at a time
    """
    leaf = LEAF if leaf is None else leaf
    fitted = scratch.kept("fitted")
    if fitted is None:
        parts = DiskParts(source, on_progress)
        encoding, summary = fit(parts, plan)
        sample = np.zeros((0, encoding.width), dtype=np.uint64)
        if encoding.cell_sizes.max() > (STRETCH if encoding.is_one_column else leaf):
            share = sample_share(encoding.records)
            sample = parts.gather(
                encoding,
                lambda packed: packed[in_sample(encoding.records_of(packed).keys, share)],
                lambda batches: np.concatenate(list(batches)),
            )
        if encoding.is_one_column:
            fitted = encoding, summary, split_column(encoding, sample, STRETCH)
        else:
            fitted = encoding, summary, plan_chunks(encoding, sample, leaf)
        scratch.keep("fitted", fitted)
    encoding, summary, chunk_plan = fitted
    records = STRETCH if isinstance(chunk_plan, Splits) else leaf
    each = COPIES * 8 * records * (encoding.width + 4)
    workers = int(np.clip(memory // each, 1, thread_count()))
    if isinstance(chunk_plan, Splits):
        numbers = _cut_column(source, encoding, chunk_plan, scratch, on_progress, workers)
    else:
        numbers = _work_in_turns(source, encoding, chunk_plan, scratch, on_progress, workers)
    reports = [scratch.kept(f"report-{number}") for number in numbers]
    sums = added_up(encoding, [report[0] for report in reports if report])
    sampled = np.concatenate([report[1] for report in reports if report])
    return DiskRun(encoding, summary, numbers, sums, sampled[np.argsort(sampled[:, 0])])


def _work_in_turns(
    source: BatchSource,
    encoding: Encoding,
    chunk_plan: ChunkPlan,
    scratch: Scratch,
    on_progress: OnProgress,
    workers: int,
) -> list[int]:
    """Work on chunks, turn after turn; return the numbers of those of the last."""
    shelf = scratch.shelf("turn-0")
    if scratch.kept("sound") is None:
        _shelve(source, encoding, chunk_plan, shelf, on_progress)
        chunk_plan = sound_chunks(
            encoding,
            chunk_plan,
            shelf.counts(chunk_plan.n_places()),
            lambda places: broken_requirement(encoding, shelf.take(places)),
        )
        scratch.keep("sound", chunk_plan)
    chunk_plan = scratch.kept("sound")
    for turn in range(chunk_plan.rounds + 1):
        if scratch.kept(f"done-{turn}"):
            continue
        current = scratch.shelf(f"turn-{turn}")
        following = scratch.shelf("released" if turn == chunk_plan.rounds else f"turn-{turn + 1}")
        _work(encoding, chunk_plan, turn, current, following, scratch, on_progress, workers)
        scratch.keep(f"done-{turn}", True)
        current.remove()
    return [number for number, _ in chunk_plan.sources(chunk_plan.rounds)]


def _cut_column(
    source: BatchSource,
    encoding: Encoding,
    splits: Splits,
    scratch: Scratch,
    on_progress: OnProgress,
    workers: int,
) -> list[int]:
    """Cut one column optimally; return the numbers of its stretches."""
    shelf = scratch.shelf("turn-0")
    in_order = scratch.shelf("in order")
    stretches = [(1, (place,)) for place in range(splits.first[-1])]
    if not scratch.kept("ends"):
        _shelve(source, encoding, splits, shelf, on_progress)

        def sort(place: int) -> None:
            packed = shelf.take([place])
            if len(packed) and not in_order.has(place):
                packed = in_value_order(encoding.records_of(packed), packed)
                in_order.put(place, packed, np.full(len(packed), place))

        _in_threads(sort, stretches, workers, on_progress, 0, 2 * len(stretches))
        counts = in_order.counts(splits.first[-1])
        read = in_order.take
        ends = ends_by_stretch(encoding, splits, counts, read, workers, scratch.folder)
        scratch.keep("ends", ends)
        shelf.remove()
    ends = scratch.kept("ends")
    released = scratch.shelf("released")
    cells = np.repeat(np.arange(len(splits.values)), np.diff(splits.first))

    def release(place: int) -> None:
        if not len(ends[place]) or released.has(place):
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
        _release(encoding, place, packed, labels + (place << 32), released, scratch)

    _in_threads(release, stretches, workers, on_progress, len(stretches), 2 * len(stretches))
    return list(range(splits.first[-1]))


def _in_threads(
    work: Callable[..., None],
    tasks: Iterable[tuple[int, tuple[Any, ...]]],
    workers: int,
    on_progress: OnProgress,
    done: int,
    total: int,
) -> None:
    """Do tasks, given as size and arguments, several at a time; report how much is done of all."""

    def counted(*arguments: Any) -> None:
        with at_work():
            work(*arguments)

    with ThreadPoolExecutor(workers, thread_name_prefix="microagg-chunk") as pool:
        waiting = {pool.submit(counted, *arguments): size for size, arguments in tasks}
        try:
            for future in as_completed(waiting):
                future.result()
                done += waiting[future]
                on_progress("grouping", done, total)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


class DiskParts:
    """The records of a file, for the steps of all engines.

    Parameters
    ----------
    source : the file
    on_progress : is called with how far a pass is
    """

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

    def may_have_more_than(self, records: int) -> bool:
        """Tell whether there are further records."""
        return self._source.rows > records

    def reduce(
        self,
        work: Callable[..., Found],
        merge: Callable[[Found, Found], Found],
        columns: Iterable[Any],
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
        self,
        encoding: Encoding,
        choose: Callable[[PackedRows], PackedRows],
        work: Callable[[Iterable[PackedRows]], Found],
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


def _shelve(
    source: BatchSource,
    encoding: Encoding,
    plan: ChunkPlan | Splits,
    shelf: Shelf,
    on_progress: OnProgress,
) -> None:
    """Put all records on a shelf, by chunk."""
    held: list[Any] = []

    def put(number: int) -> None:
        packed = np.concatenate(held)
        held.clear()
        shelf.put(number, packed, plan.places_of(encoding, packed))

    number, total = 0, source.rows
    for at, batch in enumerate(read_ahead(source)):
        number = at // _BATCHES
        if not shelf.has(number):
            packed = _of_batch(batch, encoding.packed, encoding.is_csv)
            rows = batch.first + np.arange(batch.table.num_rows)
            kept = encoding.kept(batch.table)
            rows = rows if kept is None else rows[kept]
            held.append(np.column_stack([packed, rows.astype(np.uint64)]))
            if at % _BATCHES == _BATCHES - 1:
                put(number)
        on_progress("encoding", batch.first + batch.table.num_rows, total)
    if held:
        put(number)


def _work(
    encoding: Encoding,
    plan: ChunkPlan,
    turn: int,
    current: Shelf,
    following: Shelf,
    scratch: Scratch,
    on_progress: OnProgress,
    workers: int,
) -> None:
    """Work on every chunk in one turn, some at a time."""
    counts = current.counts(plan.n_places(turn))
    total = encoding.records * (plan.rounds + 1)

    def work(number: int, places: list[int]) -> None:
        packed = current.take(places)
        groups = None
        if turn:
            groups, packed = packed[:, -1].astype(np.int64), packed[:, :-1]
        moved = work_on_chunk(encoding, plan, number, packed, groups, turn)
        if moved.chunks is not None:
            rows = np.column_stack([moved.packed, moved.groups.astype(np.uint64)])
            following.put(number, rows, moved.chunks)
        else:
            _release(encoding, number, moved.packed, moved.groups, following, scratch)

    tasks = []
    for number, places in plan.sources(turn):
        size = int(counts[places].sum())
        if size and not following.has(number):
            tasks.append((size, (number, places)))
    done = (turn + 1) * encoding.records - sum(size for size, _ in tasks)
    _in_threads(work, tasks, workers, on_progress, done, total)


def _release(
    encoding: Encoding,
    number: int,
    packed: PackedRows,
    groups: Labels,
    released: Shelf,
    scratch: Scratch,
) -> None:
    """Keep what the groups of a chunk release, for the output, and their sums."""
    # A chunk is released once: what is on the shelf is not dealt again, and the secret is kept nowhere.
    chunk = finish_chunk(encoding, packed, groups, number, secrets.token_bytes(SECRET_BYTES))
    row, labels, chosen = chunk.records.extra[:, :1], chunk.labels, chunk.sampled
    sample = np.column_stack([row[chosen, 0].astype(np.int64), groups[chosen]])
    if not encoding.is_swapped:
        first = np.unique(labels, return_index=True)[1]
        sizes = np.bincount(labels).astype(np.uint64)
        of_groups = np.column_stack([chunk.shared.packed()[first], sizes])
        scratch.shelf("groups").put(number, of_groups, np.full(len(first), number))
    scratch.keep(f"report-{number}", (chunk.sums, sample))
    places = (row[:, 0] // np.uint64(AT_ONCE)).astype(np.int64)
    released.put(number, np.hstack([row, chunk.shared.packed()]), places)
