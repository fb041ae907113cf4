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

from microagg.base.typing import Labels
from microagg.engines.aggregates import Sums, added_up, finish_chunk, n_released
from microagg.engines.chunks import (
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
from microagg.engines.parts import Found
from microagg.engines.spark.spark_frames import (
    Layout,
    bundle_schema,
    by_chunk,
    in_bundles,
    in_one_task,
    mapped,
    numbers_of,
    on_spark,
    pack,
    packed_of,
    positional,
    reduced,
    unpack,
    word_columns,
    word_names,
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

    layout: Layout
    rows: DataFrame
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of columns, such as value labels, as far as a file has some."""
    is_text: bool = False

    @property
    def names(self) -> list[Any]:
        """Names of the columns."""
        return list(self.layout.names)

    def empty(self) -> pa.Table:
        """Return the types of the columns."""
        return self.layout.table(self.rows.limit(0).toArrow())

    def first(self, records: int, work: Callable[[pa.Table], Found]) -> Found | None:
        """Look at the first records: one task reads partition after partition, no more than it needs."""
        layout, fields = self.layout, self.fields

        def look(rows: pa.Table) -> Found:
            head = layout.table(rows)
            typed = [field.with_metadata(fields.get(field.name)) for field in head.schema]
            return work(head.cast(pa.schema(typed)))

        return reduced(self.rows.coalesce(1).limit(records), look, lambda one, _: one)

    def may_have_more_than(self, records: int) -> bool:
        """Tell whether there are further records."""
        return bool(self.rows.limit(records + 1).count() > records)

    def reduce(
        self,
        work: Callable[..., Found],
        merge: Callable[[Found, Found], Found],
        columns: Iterable[Any],
    ) -> Found | None:
        """Summarise batches of some columns, and merge the summaries."""
        wanted = set(columns)
        places = [j for j, name in enumerate(self.layout.names) if name in wanted]
        narrow = self.rows.select(
            *(self.rows[f"c{j}"].alias(f"c{i}") for i, j in enumerate(places))
        )
        names = Layout(tuple(self.layout.names[j] for j in places))
        return reduced(narrow, lambda rows: work(names.table(rows), written=None), merge)

    def gather(
        self,
        encoding: Encoding,
        choose: Callable[[PackedRows], PackedRows],
        work: Callable[[Iterable[PackedRows]], Found],
    ) -> Found:
        """Bring some records together in one task, and work on them there."""
        layout = self.layout

        def chosen(rows: pa.Table) -> pa.Table:
            return in_bundles(
                word_columns(choose(encoding.packed(layout.with_nested_as_text(rows))))
            )

        few = mapped(self.rows, chosen, bundle_schema(word_names(encoding.width)))
        return in_one_task(few, lambda tables: work(map(packed_of, tables)))


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
    """A sample, as an attacker would see it, with the keys of each: (s, key columns)."""
    sampled: PackedRows
    """First halves of the keys of all rows in the sample of whole groups, ascending."""
    released: DataFrame
    """What each record releases, by the key of its row, in bundles; persisted."""

    @property
    def key_columns(self) -> dict[Any, str]:
        """Columns of keys of what an attacker knows, by view, and of confidential columns, by name."""
        return {key: f"v{at}" for at, key in enumerate(_keyed_columns(self.roles))}


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
        encode = partial(_encoded, encoding, parts.layout, keyed)
        records = mapped(parts.rows, encode, bundle_schema(word_names(width)))
        records = records.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            places = _planned(records, encoding, width, leaf or LEAF)
            if places.n_places() > 1 and (places.rounds or encoding.block.require):
                places = _with_sound_chunks(records, encoding, places)
            moved, chunks = _moved(records, encoding, places, width)
            last = partial(_finished_chunk, encoding, secret, places)
            names = ["h1", "h2", "values", "class", "whole_group"]
            names += word_names(n_released(encoding), "s")
            names += [
                *["unit"] * (encoding.unit is not None),
                *word_names(len(keyed), "v"),
                _REPORT,
            ]
            released = by_chunk(moved, chunks, last, bundle_schema(names, "bucket"))
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
    order = np.lexsort((keys[:, 1], keys[:, 0]))[:SAMPLE_IN_PARTS]  # no more than are wanted
    columns = zip(*(report.sought for report in reports), strict=True)
    sought = Sought(*(np.concatenate(column)[order] for column in columns))
    return Grouped(parts, encoding, summary, roles, places.rounds, sums, sought, sampled, released)


def _encoded(
    encoding: Encoding, layout: Layout, keyed: Mapping[Any, list[str]], rows: pa.Table
) -> pa.Table:
    """Turn rows into records: packed, and a key for each of some lists of columns."""
    table = layout.with_nested_as_text(rows)
    packed, (recoded, _), keys = encoding.packed(table), encoding.recoded(table), []
    for key, names in keyed.items():
        seen = table if key == BEFORE else recoded
        keys.append(row_keys([seen.column(name) for name in names])[:, :1])
    extra, kept = np.hstack(keys), encoding.kept(table)
    packed = np.hstack([packed, extra if kept is None else extra[kept]])
    return in_bundles(word_columns(packed))


def _planned(records: DataFrame, encoding: Encoding, width: int, leaf: int) -> ChunkPlan:
    """Plan the chunks from a sample, in one task."""
    share = sample_share(encoding.records)
    if encoding.is_one_column:  # one task cuts it exactly, at the memory of the column of its cell
        leaf = int(encoding.cell_sizes.max())

    def sampled(rows: pa.Table) -> pa.Table:
        packed = packed_of(rows)
        return in_bundles(word_columns(packed[in_sample(encoding.records_of(packed).keys, share)]))

    def planned(tables: Iterable[pa.Table]) -> ChunkPlan:
        none = np.zeros((0, width), np.uint64)
        return plan_chunks(encoding, np.concatenate([none, *map(packed_of, tables)]), leaf)

    some = records if share >= 1.0 else mapped(records, sampled, records.schema)
    return in_one_task(some, planned)


def _with_sound_chunks(records: DataFrame, encoding: Encoding, plan: ChunkPlan) -> ChunkPlan:
    """Join chunks that cannot be groups by themselves, by all records."""
    from pyspark.sql import functions

    placed = mapped(records, partial(_assigned, encoding, plan), records.schema)
    counts, broken = np.zeros(plan.n_places(), np.int64), [""] * plan.n_places()
    work, schema = partial(_judged, encoding), "chunk long, records long, broken string"
    if encoding.unit is not None or encoding.block.require:
        for judged in by_chunk(placed, plan.n_places(), work, schema).collect():
            counts[judged.chunk], broken[judged.chunk] = judged.records, judged.broken
    else:
        bytes_of = placed.groupBy("chunk").agg(functions.sum(functions.octet_length("w0")))
        for chunk, size in bytes_of.collect():
            counts[chunk] = size // 8

    def broken_by(places: list[int]) -> str:
        if not any(broken[place] for place in places):  # all that is required holds for unions, too
            return ""
        union = placed.where(placed.chunk.isin(places))
        together = by_chunk(union.withColumn("chunk", union.chunk * 0), 1, work, schema)
        return str(together.collect()[0].broken)

    return sound_chunks(encoding, plan, counts, broken_by)


def _assigned(encoding: Encoding, plan: ChunkPlan, rows: pa.Table) -> pa.Table:
    """Send each record to its chunk."""
    packed = packed_of(rows)
    return in_bundles(word_columns(packed), plan.places_of(encoding, packed))


def _judged(encoding: Encoding, number: int, rows: pa.Table) -> pa.Table:
    """Say what the records of a chunk break, as one group, of all that is required."""
    packed = packed_of(rows)
    broken = broken_requirement(encoding, packed)
    return pa.table({"chunk": [number], "records": [len(packed)], "broken": [broken]})


def _moved(
    records: DataFrame, encoding: Encoding, plan: ChunkPlan, width: int
) -> tuple[DataFrame, int]:
    """Work on the chunks turn after turn, but for the last; records by chunk, and the number of chunks."""
    moved = mapped(records, partial(_assigned, encoding, plan), records.schema)
    schema = bundle_schema([*word_names(width), "group"])
    for turn in range(plan.rounds):
        moved = by_chunk(moved, plan.n_places(turn), partial(_worked, encoding, plan, turn), schema)
    return moved, plan.n_places(plan.rounds)


def _worked(
    encoding: Encoding, plan: ChunkPlan, turn: int, number: int, rows: pa.Table
) -> pa.Table:
    """Return all records of a chunk with their groups, and their chunk in the next turn."""
    groups = numbers_of(rows.column("group")) if turn else None
    moved = work_on_chunk(encoding, plan, number, packed_of(rows), groups, turn)
    return in_bundles({**word_columns(moved.packed), "group": moved.groups}, moved.chunks)


def _finished_chunk(
    encoding: Encoding, secret: bytes, plan: ChunkPlan, number: int, rows: pa.Table
) -> pa.Table:
    """Return what all records of a chunk release after the last turn, by the keys of their rows.

    Records with the same ``values`` release the same in the protected columns, those of a ``class`` also the
    same weight and stratum; where values are swapped, both are the group. ``unit``, ``v0``, ``v1`` … (see
    :attr:`Grouped.key_columns`) are keys. ``whole_group`` is the group of records in the sample of whole
    groups, −1 of others. At one bundle stand the figures of the chunk.
    """
    groups = numbers_of(rows.column("group")) if plan.rounds else None
    moved = work_on_chunk(encoding, plan, number, packed_of(rows), groups, plan.rounds)
    chunk = finish_chunk(encoding, moved.packed, moved.groups, number, secret)
    records, shared = chunk.records, chunk.shared
    share = min(1.0, 0.9 * SAMPLE_IN_PARTS / encoding.records)
    chosen = np.flatnonzero(in_sample(records.keys, share))
    some = records.taken(chosen)
    before = encoding.attacker.place(some.values, encoding.original_states(some))
    after = encoding.attacker.place(shared.values[chosen], shared.states[chosen])
    report = ChunkReport(
        number,
        chunk.sums,
        records.keys[chosen],
        Sought(before, after, records.extra[chosen]),
        records.keys[chunk.sampled, 0],
    )
    out = shared.packed()
    whole = np.full(len(records), -1, dtype=np.int64)
    whole[chunk.sampled] = (number << 32) + chunk.labels[chunk.sampled]
    first, second = np.ascontiguousarray(records.keys.T).view(np.int64)
    if shared.dealt is not None:
        values = classes = np.ascontiguousarray(shared.dealt[:, 0]).view(np.int64)
    else:
        values = _one_word(word_columns(shared._replace(weights=None).packed()).values())
        classes = _one_word([*word_columns(out).values(), encoding.strata_of(records)])
    columns: dict[str, Labels] = {
        "h1": first,
        "h2": second,
        "values": values,
        "class": classes,
        "whole_group": whole,
        **word_columns(out, "s"),
    }
    if records.units is not None:
        columns["unit"] = records.units
    columns |= word_columns(np.ascontiguousarray(records.extra), "v")
    bundles = in_bundles(columns, np.mod(first, buckets_of(encoding)), "bucket")
    reports = [pack(report), *[None] * (bundles.num_rows - 1)]
    return bundles.append_column(_REPORT, pa.array(reports, pa.binary()))


def buckets_of(encoding: Encoding) -> int:
    """Return in how many buckets rows meet what they release."""
    return -(-encoding.records // _BUCKET)


def _one_word(columns: Iterable[Labels]) -> Labels:
    arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
    return np.ascontiguousarray(row_keys(arrays)[:, 0]).view(np.int64)
