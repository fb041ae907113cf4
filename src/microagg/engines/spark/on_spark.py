"""On Spark: a table in chunks, spread over the workers of a cluster.

The driver sees summaries, the plan of the chunks, counts and the figures of each chunk, never the
records of a table. What moves between workers are packed records (see
:mod:`microagg.engines.encoding`): once to the chunks, once in each round of re-chunking, and once, with the
full rows, to where both meet again. All that runs in Python works on Arrow tables.

Nothing depends on how rows are spread or in which order they come, and a task that is done twice gives the
same: a chunk is solved in the order of the keys of its records, and values find their rows by these keys.
"""

from __future__ import annotations

import operator
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.compile.threads import limit_threads
from microagg.compile.warm import AFTER_GROUPING, Warming, lacking, needed, notes_folder
from microagg.engines.aggregates import Sums, added_up, finish_chunk
from microagg.engines.chunks import (
    LEAF,
    ChunkPlan,
    Moved,
    broken_requirement,
    by_key,
    in_sample,
    plan_chunks,
    sample_share,
    sound_chunks,
    work_on_chunk,
)
from microagg.engines.encoding import Encoding, PackedRows
from microagg.engines.fit import fit
from microagg.engines.parts import Choose, Found, Merge
from microagg.engines.spark.spark_frames import (
    bundle_schema,
    by_way,
    in_bundles,
    in_one_task,
    mapped,
    matrix_of,
    named,
    nested_as_text,
    on_spark,
    pack,
    positional,
    reduced,
    unpack,
)
from microagg.engines.spark.spark_session import is_local
from microagg.engines.table_summary import TableSummary
from microagg.formats.atomic import lock
from microagg.measure.known_columns import views_of
from microagg.measure.linkage import SAMPLE_IN_PARTS, Sought
from microagg.measure.row_keys import row_keys
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.releasing.dealt import SECRET_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BEFORE = "before"  # key of the protected values of a record as they came, before any recoding
_REPORT = "report"  # column with the figures of a chunk, at one of its bundles
_BUCKET = 1 << 16  # rows that meet their values at a time, about


@dataclass(frozen=True, eq=False)
class SparkParts:
    """The rows of a Spark DataFrame, for the steps of all engines."""

    names: list[Any]
    rows: DataFrame
    """With columns c0, c1, …."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of columns, such as value labels, as far as a file has some."""
    is_text: bool = False

    def empty(self) -> pa.Table:
        """Return the types of the columns."""
        return named(self.rows.limit(0).toArrow(), self.names)

    def first(self, records: int, work: Callable[[pa.Table], Found]) -> Found | None:
        """Look at the first records: one task reads partition after partition, no more than it needs."""
        names, fields = self.names, self.fields

        def look(rows: pa.Table) -> Found:
            head = named(rows, names)
            typed = [field.with_metadata(fields.get(field.name)) for field in head.schema]
            return work(head.cast(pa.schema(typed)))

        return reduced(self.rows.coalesce(1).limit(records), look, lambda one, _: one)

    def reduce(
        self, work: Callable[..., Found], merge: Merge[Found], columns: Iterable[Any]
    ) -> Found | None:
        """Summarise batches of some columns, and merge the summaries."""
        wanted = set(columns)
        names = [name for name in self.names if name in wanted]
        narrow = self.rows.select(*(f"c{self.names.index(name)}" for name in names))
        return reduced(narrow, lambda rows: work(named(rows, names), written=None), merge)

    def gather(
        self, encoding: Encoding, choose: Choose, work: Callable[[Iterable[PackedRows]], Found]
    ) -> Found:
        """Bring some records together in one task, and work on them there."""
        names = self.names

        def chosen(rows: pa.Table) -> pa.Table:
            return in_bundles(packed=choose(encoding.packed(nested_as_text(named(rows, names)))))

        def work_on(tables: Iterable[pa.Table]) -> Found:
            return work(matrix_of(rows["packed"], encoding.width) for rows in tables)

        return in_one_task(mapped(self.rows, chosen, bundle_schema("packed")), work_on)


@dataclass(frozen=True, eq=False)
class Grouped:
    """A table whose records have been grouped."""

    parts: SparkParts
    encoding: Encoding
    summary: TableSummary
    roles: Roles
    rounds: int
    """Of re-chunking."""
    sums: Sums
    sought: Sought
    """A sample, as an attacker would see it, with the keys of each: (s, keyed columns)."""
    sampled: PackedRows
    """First halves of the keys of all rows in the sample of whole groups, ascending."""
    released: DataFrame
    """What each record releases, by the key of its row, in bundles (:meth:`_Chunks.finished`); persisted."""

    @property
    def key_columns(self) -> dict[Any, str]:
        """Columns of keys of what an attacker knows, by view, and of confidential columns, by name."""
        return {key: f"v{at}" for at, key in enumerate(_keyed_columns(self.roles))}

    @property
    def keys(self) -> list[str]:
        """Columns of the matrix ``keys`` of what is released."""
        units = ["unit"] * (self.encoding.unit is not None)
        return ["values", "class", "whole_group", *units, *self.key_columns.values()]


def _keyed_columns(roles: Roles) -> dict[Any, list[str]]:
    """Return the columns for each key of a record: views of an attacker, confidential ones, originals."""
    claimed = {(name,): [name] for name in roles.confidential}
    return {**views_of(roles), **claimed, BEFORE: list(roles.protected)}


def group_in_spark(frame: DataFrame, plan: Plan, leaf: int | None = None) -> Grouped:
    """Group the records of a Spark DataFrame; what they release is worked out and persisted.

    Parameters
    ----------
    frame : the table
    plan : with the columns to protect named
    leaf : records in a chunk, about
    """
    from pyspark import StorageLevel

    parts = SparkParts(*positional(frame))
    roles = plan.roles(parts.names)
    # Drawn once, here: a task that is done twice deals values in the same way.
    secret = secrets.token_bytes(SECRET_BYTES)
    with on_spark():
        encoding, summary = fit(parts, plan)
        keyed = _keyed_columns(roles)
        width = encoding.width + len(keyed)
        encode = partial(_encoded, encoding, parts.names, keyed)
        records = mapped(parts.rows, encode, bundle_schema("packed"))
        records = records.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            places = _planned(records, encoding, width, leaf or LEAF)
            if places.n_places() > 1 and (places.rounds or encoding.block.require):
                places = _with_sound_chunks(records, _Chunks(encoding, places, width, secret))
            chunks, rounds = _Chunks(encoding, places, width, secret), places.rounds
            moved = mapped(records, chunks.assigned, records.schema)
            schema = bundle_schema("packed", "group")
            for turn in range(rounds):
                moved = by_way(moved, places.n_places(turn), partial(chunks.worked, turn), schema)
            schema = bundle_schema("released", "keys", _REPORT)
            released = by_way(moved, places.n_places(rounds), chunks.finished, schema)
            released = released.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                rows = released.select(_REPORT).where(released[_REPORT].isNotNull()).collect()
            except BaseException:
                released.unpersist()
                raise
        finally:
            records.unpersist()
    reports = sorted((unpack(bytes(row[0])) for row in rows), key=operator.itemgetter(0))
    _, sums, keys, sought, sampled = zip(*reports, strict=True)
    order = by_key(np.concatenate(keys))[:SAMPLE_IN_PARTS]  # no more than are wanted
    return Grouped(
        parts,
        encoding,
        summary,
        roles,
        rounds,
        added_up(encoding, sums),
        Sought(*(np.concatenate(column)[order] for column in zip(*sought, strict=True))),
        np.unique(np.concatenate(sampled)),
        released,
    )


def _encoded(
    encoding: Encoding, names: list[Any], keyed: Mapping[Any, list[str]], rows: pa.Table
) -> pa.Table:
    """Turn rows into records: packed, and a key for each of some lists of columns."""
    table = nested_as_text(named(rows, names))
    (recoded, _), keys = encoding.recoded(table), []
    for key, columns in keyed.items():
        seen = table if key == BEFORE else recoded
        keys.append(row_keys([seen.column(name) for name in columns])[:, :1])
    return in_bundles(packed=encoding.packed(table, extra=np.hstack(keys)))


def _planned(records: DataFrame, encoding: Encoding, width: int, leaf: int) -> ChunkPlan:
    """Plan the chunks from a sample, in one task."""
    share = sample_share(encoding.records)
    if encoding.is_one_column:  # one task cuts it exactly, at the memory of the column of its cell
        leaf = int(encoding.cell_sizes.max())

    def sampled(rows: pa.Table) -> pa.Table:
        packed = matrix_of(rows["packed"], width)
        return in_bundles(packed=packed[in_sample(encoding.records_of(packed).keys, share)])

    def planned(tables: Iterable[pa.Table]) -> ChunkPlan:
        sample = [matrix_of(rows["packed"], width) for rows in tables]
        return plan_chunks(encoding, np.concatenate(sample), leaf)

    some = records if share >= 1.0 else mapped(records, sampled, records.schema)
    return in_one_task(some, planned)


def _with_sound_chunks(records: DataFrame, chunks: _Chunks) -> ChunkPlan:
    """Join chunks that cannot be groups by themselves, by all records."""
    from pyspark.sql import functions

    encoding, plan = chunks.encoding, chunks.plan
    placed = mapped(records, chunks.assigned, records.schema)
    counts, broken = np.zeros(plan.n_places(), np.int64), [""] * plan.n_places()
    schema = "chunk long, records long, broken string"
    if encoding.unit is not None or encoding.block.require:
        for judged in by_way(placed, plan.n_places(), chunks.judged, schema).collect():
            counts[judged.chunk], broken[judged.chunk] = judged.records, judged.broken
    else:
        bytes_of = placed.groupBy("way").agg(functions.sum(functions.octet_length("packed")))
        for chunk, size in bytes_of.collect():
            counts[chunk] = size // (8 * chunks.width)

    def broken_by(places: list[int]) -> str:
        if not any(broken[place] for place in places):  # all that is required holds for unions, too
            return ""
        union = placed.where(placed.way.isin(places))
        together = by_way(union.withColumn("way", union.way * 0), 1, chunks.judged, schema)
        return str(together.collect()[0].broken)

    return sound_chunks(encoding, plan, counts, broken_by)


class _Chunks(NamedTuple):
    """The chunks of a table, as every worker has them: its methods work on the records of bundles."""

    encoding: Encoding
    plan: ChunkPlan
    width: int  # packed numbers of a record, with its keys
    secret: bytes  # by which values are swapped

    def assigned(self, rows: pa.Table) -> pa.Table:
        """Send each record to its chunk."""
        packed = matrix_of(rows["packed"], self.width)
        return in_bundles(self.plan.places_of(self.encoding, packed), packed=packed)

    def judged(self, number: int, rows: pa.Table) -> pa.Table:
        """Say what the records of a chunk break, as one group, of all that is required."""
        packed = matrix_of(rows["packed"], self.width)
        broken = broken_requirement(self.encoding, packed)
        return pa.table({"chunk": [number], "records": [len(packed)], "broken": [broken]})

    def moved(self, turn: int, number: int, rows: pa.Table) -> Moved:
        """Work on all records of a chunk in one turn."""
        packed = matrix_of(rows["packed"], self.width)
        groups = matrix_of(rows["group"], 1)[:, 0].view(np.int64) if turn else None
        return work_on_chunk(self.encoding, self.plan, number, packed, groups, turn)

    def worked(self, turn: int, number: int, rows: pa.Table) -> pa.Table:
        """Return all records of a chunk with their groups, and their chunk in the next turn."""
        moved = self.moved(turn, number, rows)
        return in_bundles(moved.chunks, packed=moved.packed, group=moved.groups[:, None])

    def finished(self, number: int, rows: pa.Table) -> pa.Table:
        """Return what all records of a chunk release after the last turn, and the figures of the chunk.

        The matrix ``released`` has the key of the row and what it releases. In ``keys``, records with the
        same ``values`` release the same in the protected columns, those of a ``class`` also the same weight
        and stratum; where values are swapped, both are the group. ``whole_group`` is the group of records in
        the sample of whole groups, −1 of others. The rest are keys of the unit, and of what
        :attr:`Grouped.key_columns` names. At one bundle stand the figures: the number of the chunk, its sums,
        keys of the rows of some records, these as an attacker has them with what they release, and the first
        halves of the keys of records in whole groups.
        """
        encoding, moved = self.encoding, self.moved(self.plan.rounds, number, rows)
        chunk = finish_chunk(encoding, moved.packed, moved.groups, number, self.secret)
        records, released = chunk.records, chunk.shared
        share = min(1.0, 0.9 * SAMPLE_IN_PARTS / encoding.records)
        chosen = np.flatnonzero(in_sample(records.keys, share))
        some = records.taken(chosen)
        before = encoding.attacker.place(some.values, encoding.original_states(some))
        after = encoding.attacker.place(released.values[chosen], released.states[chosen])
        sought = Sought(before, after, records.extra[chosen])
        sampled = records.keys[chunk.sampled, 0]
        report = number, chunk.sums, records.keys[chosen], sought, sampled
        whole = np.full(len(records), -1, dtype=np.int64)
        whole[chunk.sampled] = (number << 32) + chunk.labels[chunk.sampled]
        if released.dealt is not None:
            values = classes = released.dealt[:, 0]
        else:
            values = _one_key(released._replace(weights=None).packed())
            strata = encoding.strata[records.cells].view(np.uint64)
            classes = _one_key(np.column_stack([released.packed(), strata]))
        units = [] if records.units is None else [records.units.view(np.uint64)]
        keys = [values, classes, whole.view(np.uint64), *units, records.extra]
        bundles = in_bundles(
            np.mod(records.keys[:, 0].view(np.int64), buckets_of(encoding)),
            released=np.hstack([records.keys, released.packed()]),
            keys=np.column_stack(keys),
        )
        reports = [pack(report), *[None] * (bundles.num_rows - 1)]
        return bundles.append_column(_REPORT, pa.array(reports, pa.binary()))


def is_warm(session: SparkSession, plan: Plan) -> bool:
    """Tell whether the Spark of ``session`` runs here, and can group by ``plan`` without compiling.

    What is used after that, a command may be compiling meanwhile.
    """
    parts = needed(plan, None, bound=False, engine="spark")
    before = [part for part in parts if part not in AFTER_GROUPING]
    return is_local(session.sparkContext.master) and not lacking(before)


def warm_executors(session: SparkSession, plan: Plan) -> int:
    """Compile what a plan needs on every machine; return how many kernels were compiled, on all of them.

    Kernels are compiled when they are first called, and kept on disk for all processes of a machine: each
    worker would begin with a minute or two of compiling, all of them the same. Spark spreads the tasks over
    its executors as it likes, most often over all; a machine that got none compiles when its work begins.
    """
    context = session.sparkContext
    tasks = context.defaultParallelism
    at_once = int(context.getConf().get("spark.executor.cores", "1"))
    processes = tasks if is_local(context.master) else at_once
    parts = tuple(needed(plan, None, bound=False, engine="spark"))

    def compiled(_: pa.Table) -> int:
        """Compile what is not there yet, one task of a machine at a time, with the processors of all."""
        limit_threads(processes)
        folder = notes_folder()
        if folder is None:
            return 0
        handle = os.open(folder / "warming.lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            lock(handle)  # others of this machine wait, and find all done
            with Warming() as warming:
                new = warming.ask(parts)
                warming.wait()
            return len(new)
        finally:
            os.close(handle)

    with on_spark():
        return reduced(session.range(0, tasks, 1, tasks), compiled, operator.add) or 0


def buckets_of(encoding: Encoding) -> int:
    """Return in how many buckets rows meet what they release."""
    return -(-encoding.records // _BUCKET)


def _one_key(rows: PackedRows) -> PackedRows:
    """Return a number for each row, the same for equal rows."""
    return row_keys([pa.array(column) for column in np.ascontiguousarray(rows.T).view(np.int64)])[
        :, 0
    ]
