"""On Spark: a table in chunks, spread over the workers of a cluster.

The driver sees summaries, the plan of the chunks, counts and the figures of each chunk, never the
records of a table. What moves between workers are records of a few words (see
:mod:`microagg.engines.encoding`): once to the chunks, once in each round of re-chunking, and once, with the
full rows, to where both meet again. All that runs in Python works on Arrow tables.

Nothing depends on how rows are spread or in which order they come, and a task that is done twice gives the
same: a chunk is solved in the order of the keys of its records, and values find their rows by these keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.aggregates import Shared, Sums
from microagg.engines.chunks import (
    LEAF,
    ChunkPlan,
    broken_requirement,
    in_sample,
    sample_share,
    sound_chunks,
    work_on_chunk,
)
from microagg.engines.encoding import Encoding, Words
from microagg.engines.finishing import added_up, finish_chunk
from microagg.engines.fit import fit
from microagg.engines.one_column import STRETCH, Splits, places_of, plan_places
from microagg.engines.spark.spark_column import cut_column
from microagg.engines.spark.spark_counts import class_sizes
from microagg.engines.spark.spark_frames import (
    Layout,
    by_chunk,
    in_one_task,
    mapped,
    on_spark,
    pack,
    positional,
    reduced,
    unpack,
    word_columns,
    word_schema,
    words_of,
)
from microagg.engines.table_summary import TableSummary
from microagg.engines.verbs import Found
from microagg.measure.known_columns import views_of
from microagg.measure.linkage import SAMPLE_IN_PARTS, Sought
from microagg.measure.row_keys import row_keys
from microagg.plan.plan import Plan
from microagg.plan.sections import Roles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPORT = "report"  # column with the figures of a chunk, at one of its records


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
        choose: Callable[[Words], Words],
        work: Callable[[Iterable[Words]], Found],
    ) -> Found:
        """Bring some records together in one task, and work on them there."""
        layout = self.layout

        def chosen(rows: pa.Table) -> pa.Table:
            return pa.table(word_columns(choose(encoding.words(layout.with_nested_as_text(rows)))))

        few = mapped(self.rows, chosen, word_schema(encoding.width))
        return in_one_task(few, lambda tables: work(map(words_of, tables)))


class Seen(NamedTuple):
    """Some records as an attacker has them, and what they release."""

    keys: Words  # (n, 2) of their rows
    sought: Sought


class ChunkReport(NamedTuple):
    """The figures of a chunk."""

    number: int
    sums: Sums
    seen: Seen


@dataclass(frozen=True, eq=False)
class Grouped:
    """A table whose records have been grouped."""

    parts: SparkParts
    encoding: Encoding
    summary: TableSummary
    roles: Roles
    rounds: int
    """Of re-chunking."""
    unique_before: int
    """Records whose protected values no other has."""
    sums: Sums
    sought: Sought
    """A sample, as an attacker would see it, with the keys of each: (s, key columns)."""
    released: DataFrame
    """What each record releases, by the key of its row; persisted."""

    @property
    def key_columns(self) -> dict[Any, str]:
        """Columns of keys of what an attacker knows, by view, and of confidential columns, by name."""
        return {key: f"v{at}" for at, key in enumerate(_keyed_columns(self.roles))}


def _keyed_columns(roles: Roles) -> dict[Any, list[str]]:
    """Return the columns for each key of a record: views of an attacker, and each confidential column."""
    return {**views_of(roles), **{(name,): [name] for name in roles.confidential}}


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
    with on_spark():
        encoding, summary = fit(parts, plan)
        keyed = _keyed_columns(roles)
        width = encoding.width + len(keyed)
        encode = partial(_encoded, encoding, parts.layout, list(keyed.values()))
        records = mapped(parts.rows, encode, word_schema(width))
        records = records.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            places = _planned(records, encoding, width, leaf or LEAF)
            if isinstance(places, Splits):
                moved, chunks = cut_column(records, encoding, places, width)
                turns, last = 0, partial(_finished_column, encoding)
            else:
                places = _with_sound_chunks(records, encoding, places, width)
                moved, chunks = _moved(records, encoding, places, width)
                turns, last = places.rounds, partial(_finished_chunk, encoding, places)
            alone = [f"w{j}" for j in range(len(encoding.coders) + len(encoding.recoded_columns))]
            unique = class_sizes(records, alone).unique
            released = by_chunk(moved, chunks, last, _schema_of_released(encoding, len(keyed)))
            released = released.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                reports = _reports(released)
            except BaseException:
                released.unpersist()
                raise
        finally:
            records.unpersist()
    sums = added_up(encoding, [chunk.sums for chunk in reports])
    return Grouped(parts, encoding, summary, roles, turns, unique, sums, _sample(reports), released)


def _encoded(
    encoding: Encoding, layout: Layout, keyed: Sequence[list[str]], rows: pa.Table
) -> pa.Table:
    """Turn rows into records: their words, and a key for each of some lists of columns."""
    table = layout.with_nested_as_text(rows)
    words = encoding.words(table)
    if keyed:
        seen, _ = encoding.recoded(table)
        keys = [row_keys([seen.column(name) for name in names])[:, :1] for names in keyed]
        extra = np.hstack(keys)
        kept = encoding.kept(encoding.variables(table))
        words = np.hstack([words, extra if kept is None else extra[kept]])
    return pa.table(word_columns(words))


def _planned(records: DataFrame, encoding: Encoding, width: int, leaf: int) -> ChunkPlan | Splits:
    """Plan the chunks, or stretches, from a sample, in one task."""
    share, stretch = sample_share(encoding.records), STRETCH

    def sampled(rows: pa.Table) -> pa.Table:
        keys = encoding.records_of(words_of(rows)).keys
        return rows.filter(pa.array(in_sample(keys, share)))

    def planned(tables: Iterable[pa.Table]) -> ChunkPlan | Splits:
        none = np.zeros((0, width), np.uint64)
        words = np.concatenate([none, *map(words_of, tables)])
        return plan_places(encoding, words, leaf, stretch)

    return in_one_task(mapped(records, sampled, word_schema(width)), planned)


def _with_sound_chunks(
    records: DataFrame, encoding: Encoding, plan: ChunkPlan, width: int
) -> ChunkPlan:
    """Join chunks that cannot be groups by themselves."""
    if plan.n_places() == 1 or not (plan.rounds or encoding.block.require):
        return plan  # every cell is in one chunk, and large enough
    placed = mapped(records, partial(_assigned, encoding, plan), word_schema(width, "chunk"))
    counts, broken = np.zeros(plan.n_places(), np.int64), [""] * plan.n_places()
    work, schema = partial(_judged, encoding), "chunk long, records long, broken string"
    if encoding.unit is not None or encoding.block.require:
        for found in by_chunk(placed, plan.n_places(), work, schema).collect():
            counts[found.chunk], broken[found.chunk] = found.records, found.broken
    else:
        for found in placed.groupBy("chunk").count().toDF("chunk", "records").collect():
            counts[found.chunk] = found.records

    def broken_by(places: list[int]) -> str:
        if not any(broken[place] for place in places):  # all that is required holds for unions, too
            return ""
        union = placed.where(placed.chunk.isin(places))
        together = by_chunk(union.withColumn("chunk", union.chunk * 0), 1, work, schema)
        return str(together.collect()[0].broken)

    return sound_chunks(encoding, plan, counts, broken_by)


def _assigned(encoding: Encoding, plan: ChunkPlan, rows: pa.Table) -> pa.Table:
    """Add the chunk of each record."""
    return rows.append_column("chunk", pa.array(places_of(encoding, plan, words_of(rows))))


def _judged(encoding: Encoding, number: int, rows: pa.Table) -> pa.Table:
    """Say what the records of a chunk break, as one group, of all that is required."""
    broken = broken_requirement(encoding, words_of(rows))
    return pa.table({"chunk": [number], "records": [rows.num_rows], "broken": [broken]})


def _moved(
    records: DataFrame, encoding: Encoding, plan: ChunkPlan, width: int
) -> tuple[DataFrame, int]:
    """Work on the chunks turn after turn, but for the last; records by chunk, and the number of chunks."""
    moved = mapped(records, partial(_assigned, encoding, plan), word_schema(width, "chunk"))
    schema = word_schema(width, "group", "chunk")
    for turn in range(plan.rounds):
        moved = by_chunk(moved, plan.n_places(turn), partial(_worked, encoding, plan, turn), schema)
    return moved, plan.n_places(plan.rounds)


def _worked(
    encoding: Encoding, plan: ChunkPlan, turn: int, number: int, rows: pa.Table
) -> pa.Table:
    """Return all records of a chunk with their groups, and their chunk in the next turn."""
    groups = rows.column("group").to_numpy() if turn else None
    found = work_on_chunk(encoding, plan, number, words_of(rows), groups, turn)
    return pa.table({**word_columns(found.words), "group": found.groups, "chunk": found.chunks})


def _finished_chunk(encoding: Encoding, plan: ChunkPlan, number: int, rows: pa.Table) -> pa.Table:
    """Return what all records of a chunk release after the last turn."""
    groups = rows.column("group").to_numpy() if plan.rounds else None
    found = work_on_chunk(encoding, plan, number, words_of(rows), groups, plan.rounds)
    return _finished(encoding, number, found.words, found.groups)


def _finished_column(encoding: Encoding, number: int, rows: pa.Table) -> pa.Table:
    """Return what all records release whose groups end in a stretch of one column."""
    words, groups = words_of(rows), rows.column("group").to_numpy()
    records = encoding.records_of(words)
    keys = records.keys
    order = np.lexsort((keys[:, 1], keys[:, 0], records.values[:, 0], groups))
    return _finished(encoding, number, words[order], groups[order])


def _finished(encoding: Encoding, number: int, words: Words, groups: Labels) -> pa.Table:
    """Return what each record of a chunk releases, by the key of its row.

    Records with the same ``values`` release the same in the protected columns, those of a ``class`` also the
    same weight and stratum; ``unit``, ``v0``, ``v1`` … (see :attr:`Grouped.key_columns`) are keys.
    ``whole_group`` is the group of records in the sample of whole groups, −1 of others. At one record stand
    the figures of the chunk.
    """
    found = finish_chunk(encoding, words, groups)
    records, shared = found.records, found.shared
    share = min(1.0, 0.9 * SAMPLE_IN_PARTS / encoding.records)
    chosen = np.flatnonzero(in_sample(records.keys, share))
    some = records.taken(chosen)
    before = encoding.attacker.place(some.values, encoding.original_states(some))
    after = encoding.attacker.place(shared.values[chosen], shared.states[chosen])
    report = ChunkReport(
        number, found.sums, Seen(records.keys[chosen], Sought(before, after, records.extra[chosen]))
    )
    out = shared.words()
    whole = np.full(len(records), -1, dtype=np.int64)
    whole[found.sampled] = (number << 32) + found.labels[found.sampled]
    strata = np.zeros(len(records), np.int64)
    if records.cells is not None:
        strata = encoding.strata[records.cells]
    columns: dict[str, Any] = {
        "h1": np.ascontiguousarray(records.keys[:, 0]).view(np.int64),
        "h2": np.ascontiguousarray(records.keys[:, 1]).view(np.int64),
        "values": _one_word(word_columns(shared._replace(weights=None).words()).values()),
        "class": _one_word([*word_columns(out).values(), strata]),
        "whole_group": whole,
        **word_columns(out, "s"),
    }
    if records.units is not None:
        columns["unit"] = records.units
    columns |= word_columns(np.ascontiguousarray(records.extra), "v")
    first = pa.array([pack(report)], pa.binary())
    columns[_REPORT] = pa.concat_arrays([first, pa.nulls(len(records) - 1, pa.binary())])
    return pa.table(columns)


def _one_word(columns: Iterable[Labels]) -> Labels:
    return np.ascontiguousarray(row_keys([pa.array(one) for one in columns])[:, 0]).view(np.int64)


def _schema_of_released(encoding: Encoding, keyed: int) -> str:
    width = Shared.of_no_record(encoding).words().shape[1]
    names = ["h1", "h2", "values", "class", "whole_group", *(f"s{j}" for j in range(width))]
    names += [*["unit"] * (encoding.unit is not None), *(f"v{j}" for j in range(keyed))]
    return f"{', '.join(f'`{name}` long' for name in names)}, {_REPORT} binary"


def _reports(released: DataFrame) -> list[ChunkReport]:
    """Return the figures of the chunks, by their numbers; Spark works them out here."""
    rows = released.select(_REPORT).where(released[_REPORT].isNotNull()).collect()
    found: list[ChunkReport] = [unpack(bytes(row[0])) for row in rows]
    return sorted(found, key=lambda one: one.number)


def _sample(reports: list[ChunkReport]) -> Sought:
    """Return the sampled records of all chunks, in the order of their keys, no more than wanted."""
    keys = np.concatenate([chunk.seen.keys for chunk in reports])
    order = np.lexsort((keys[:, 1], keys[:, 0]))[:SAMPLE_IN_PARTS]
    parts = zip(*(chunk.seen.sought for chunk in reports), strict=True)
    return Sought(*(np.concatenate(part)[order] for part in parts))
