"""On Spark: a table in chunks, spread over the workers of a cluster.

The driver sees summaries, the plan of the chunks, counts and the figures of each chunk, never the
records of a table. What moves between workers are packed records (see
:mod:`microagg.engines.encoding`): once to the chunks, once in each round of re-chunking, and once, with the
full rows, to where both meet again. All that runs in Python works on Arrow tables.

Nothing depends on how rows are spread or in which order they come, and a task that is done twice gives the
same: a chunk is solved in the order of the keys of its records, and values find their rows by these keys.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

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
from microagg.engines.parts import Found
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
from microagg.engines.table_summary import TableSummary
from microagg.measure.known_columns import views_of
from microagg.measure.linkage import SAMPLE_IN_PARTS, Sought
from microagg.measure.row_keys import Keys, row_keys
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles
from microagg.releasing.dealt import SECRET_BYTES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
        self,
        work: Callable[..., Found],
        merge: Callable[[Found, Found], Found],
        columns: Iterable[Any],
    ) -> Found | None:
        """Summarise batches of some columns, and merge the summaries."""
        wanted = set(columns)
        names = [name for name in self.names if name in wanted]
        narrow = self.rows.select(*(f"c{self.names.index(name)}" for name in names))
        return reduced(narrow, lambda rows: work(named(rows, names), written=None), merge)

    def gather(
        self,
        encoding: Encoding,
        choose: Callable[[PackedRows], PackedRows],
        work: Callable[[Iterable[PackedRows]], Found],
    ) -> Found:
        """Bring some records together in one task, and work on them there."""
        names = self.names

        def chosen(rows: pa.Table) -> pa.Table:
            return in_bundles(packed=choose(encoding.packed(nested_as_text(named(rows, names)))))

        def work_on(tables: Iterable[pa.Table]) -> Found:
            return work(matrix_of(rows["packed"], encoding.width) for rows in tables)

        return in_one_task(mapped(self.rows, chosen, bundle_schema("packed")), work_on)


class ChunkReport(NamedTuple):
    """The figures of a chunk."""

    number: int
    sums: Sums
    keys: Keys  # (n, 2) of the rows of some records
    sought: Sought  # the same records as an attacker has them, and what they release
    sampled: PackedRows  # first halves of the keys of records in whole groups


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
    """What each record releases, by the key of its row, in bundles (:func:`_finished_chunk`); persisted."""

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
                places = _with_sound_chunks(records, encoding, places, width)
            work = partial(_worked, encoding, places, width)
            moved = mapped(records, partial(_assigned, encoding, places, width), records.schema)
            for turn in range(places.rounds):
                schema = bundle_schema("packed", "group")
                moved = by_way(moved, places.n_places(turn), partial(work, turn), schema)
            last = partial(_finished_chunk, encoding, places, width, secret)
            schema = bundle_schema("released", "keys", _REPORT)
            released = by_way(moved, places.n_places(places.rounds), last, schema)
            released = released.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                rows = released.select(_REPORT).where(released[_REPORT].isNotNull()).collect()
            except BaseException:
                released.unpersist()
                raise
        finally:
            records.unpersist()
    reports: list[ChunkReport] = [unpack(bytes(row[0])) for row in rows]
    reports.sort(key=lambda report: report.number)
    sums = added_up(encoding, [report.sums for report in reports])
    sampled = np.unique(np.concatenate([report.sampled for report in reports]))
    keys = np.concatenate([report.keys for report in reports])
    order = by_key(keys)[:SAMPLE_IN_PARTS]  # no more than are wanted
    columns = zip(*(report.sought for report in reports), strict=True)
    sought = Sought(*(np.concatenate(column)[order] for column in columns))
    return Grouped(parts, encoding, summary, roles, places.rounds, sums, sought, sampled, released)


def _encoded(
    encoding: Encoding, names: list[Any], keyed: Mapping[Any, list[str]], rows: pa.Table
) -> pa.Table:
    """Turn rows into records: packed, and a key for each of some lists of columns."""
    table = nested_as_text(named(rows, names))
    packed, (recoded, _), keys = encoding.packed(table), encoding.recoded(table), []
    for key, columns in keyed.items():
        seen = table if key == BEFORE else recoded
        keys.append(row_keys([seen.column(name) for name in columns])[:, :1])
    extra, kept = np.hstack(keys), encoding.kept(table)
    return in_bundles(packed=np.hstack([packed, extra if kept is None else extra[kept]]))


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


def _with_sound_chunks(
    records: DataFrame, encoding: Encoding, plan: ChunkPlan, width: int
) -> ChunkPlan:
    """Join chunks that cannot be groups by themselves, by all records."""
    from pyspark.sql import functions

    placed = mapped(records, partial(_assigned, encoding, plan, width), records.schema)
    counts, broken = np.zeros(plan.n_places(), np.int64), [""] * plan.n_places()
    work, schema = partial(_judged, encoding, width), "chunk long, records long, broken string"
    if encoding.unit is not None or encoding.block.require:
        for judged in by_way(placed, plan.n_places(), work, schema).collect():
            counts[judged.chunk], broken[judged.chunk] = judged.records, judged.broken
    else:
        bytes_of = placed.groupBy("way").agg(functions.sum(functions.octet_length("packed")))
        for chunk, size in bytes_of.collect():
            counts[chunk] = size // (8 * width)

    def broken_by(places: list[int]) -> str:
        if not any(broken[place] for place in places):  # all that is required holds for unions, too
            return ""
        union = placed.where(placed.way.isin(places))
        together = by_way(union.withColumn("way", union.way * 0), 1, work, schema)
        return str(together.collect()[0].broken)

    return sound_chunks(encoding, plan, counts, broken_by)


def _assigned(encoding: Encoding, plan: ChunkPlan, width: int, rows: pa.Table) -> pa.Table:
    """Send each record to its chunk."""
    packed = matrix_of(rows["packed"], width)
    return in_bundles(plan.places_of(encoding, packed), packed=packed)


def _judged(encoding: Encoding, width: int, number: int, rows: pa.Table) -> pa.Table:
    """Say what the records of a chunk break, as one group, of all that is required."""
    packed = matrix_of(rows["packed"], width)
    broken = broken_requirement(encoding, packed)
    return pa.table({"chunk": [number], "records": [len(packed)], "broken": [broken]})


def _moved(
    encoding: Encoding, plan: ChunkPlan, width: int, turn: int, number: int, rows: pa.Table
) -> Moved:
    """Work on all records of a chunk in one turn."""
    groups = matrix_of(rows["group"], 1)[:, 0].view(np.int64) if turn else None
    return work_on_chunk(encoding, plan, number, matrix_of(rows["packed"], width), groups, turn)


def _worked(
    encoding: Encoding, plan: ChunkPlan, width: int, turn: int, number: int, rows: pa.Table
) -> pa.Table:
    """Return all records of a chunk with their groups, and their chunk in the next turn."""
    moved = _moved(encoding, plan, width, turn, number, rows)
    return in_bundles(moved.chunks, packed=moved.packed, group=moved.groups[:, None])


def _finished_chunk(
    encoding: Encoding, plan: ChunkPlan, width: int, secret: bytes, number: int, rows: pa.Table
) -> pa.Table:
    """Return what all records of a chunk release after the last turn, and the figures of the chunk.

    The matrix ``released`` has the key of the row and what it releases. In ``keys``, records with the same
    ``values`` release the same in the protected columns, those of a ``class`` also the same weight and
    stratum; where values are swapped, both are the group. ``whole_group`` is the group of records in the
    sample of whole groups, −1 of others. The rest are keys of the unit, and of what
    :attr:`Grouped.key_columns` names. At one bundle stand the figures.
    """
    moved = _moved(encoding, plan, width, plan.rounds, number, rows)
    chunk = finish_chunk(encoding, moved.packed, moved.groups, number, secret)
    records, released = chunk.records, chunk.shared
    share = min(1.0, 0.9 * SAMPLE_IN_PARTS / encoding.records)
    chosen = np.flatnonzero(in_sample(records.keys, share))
    some = records.taken(chosen)
    before = encoding.attacker.place(some.values, encoding.original_states(some))
    after = encoding.attacker.place(released.values[chosen], released.states[chosen])
    report = ChunkReport(
        number,
        chunk.sums,
        records.keys[chosen],
        Sought(before, after, records.extra[chosen]),
        records.keys[chunk.sampled, 0],
    )
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


def buckets_of(encoding: Encoding) -> int:
    """Return in how many buckets rows meet what they release."""
    return -(-encoding.records // _BUCKET)


def _one_key(rows: PackedRows) -> PackedRows:
    """Return a number for each row, the same for equal rows."""
    return row_keys([pa.array(column) for column in np.ascontiguousarray(rows.T).view(np.int64)])[
        :, 0
    ]
