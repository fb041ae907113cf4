"""On Spark: a table in blocks, spread over the workers of a cluster.

The driver sees summaries, the plan of the blocks, counts and what each block tells of itself, never the
records of a table. What moves between workers are records of a few words (see
:mod:`microagg.engines.encoding`): once to the blocks, once in each round of re-blocking, and once, with the
full rows, to where both meet again. All that runs in Python works on Arrow tables.

Nothing depends on how rows are spread or in which order they come, and a task that is done twice gives the
same: a block is solved in the order of the keys of its records, and values find their rows by these keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.aggregates import Shared, Sums
from microagg.engines.blocks import (
    LEAF,
    BlockPlan,
    in_sample,
    is_feasible,
    sample_share,
    sound_blocks,
    work_on_block,
)
from microagg.engines.encoding import Recipe, Words
from microagg.engines.finishing import added_up, finish_block
from microagg.engines.fit import fit
from microagg.engines.one_column import STRETCH, Splits, places_of, plan_places
from microagg.engines.sought import Sought
from microagg.engines.spark.spark_column import cut_column
from microagg.engines.spark.spark_frames import (
    Layout,
    by_block,
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
from microagg.measure.count_classes import row_keys
from microagg.plan.plan import Plan, Roles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Grouped", "SparkParts", "group_in_spark"]

SAMPLE = 2000  # records that are looked for as an attacker would, at most
_TOLD = "told"  # column of what a block tells of itself, at one of its records


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
        """The types of the columns."""
        return self.layout.table(self.rows.limit(0).toArrow())

    def first(self, records: int, work: Callable[[pa.Table], Found]) -> Found | None:
        """Look at the first records: one task reads partition after partition, no more than it needs."""
        layout, fields = self.layout, self.fields

        def look(rows: pa.Table) -> Found:
            head = layout.table(rows)
            told = [field.with_metadata(fields.get(field.name)) for field in head.schema]
            return work(head.cast(pa.schema(told)))

        return reduced(self.rows.coalesce(1).limit(records), look, lambda one, _: one)

    def may_have_more_than(self, records: int) -> bool:
        """Whether there are further records."""
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
        recipe: Recipe,
        choose: Callable[[Words], Words],
        work: Callable[[Iterable[Words]], Found],
    ) -> Found:
        """Bring some records together in one task, and work on them there."""
        layout = self.layout

        def chosen(rows: pa.Table) -> pa.Table:
            return pa.table(word_columns(choose(recipe.words(layout.told_apart(rows)))))

        few = mapped(self.rows, chosen, word_schema(recipe.width))
        return in_one_task(few, lambda tables: work(map(words_of, tables)))


class Seen(NamedTuple):
    """Some records as an attacker has them, and what they release."""

    keys: Words  # (n, 2) of their rows
    sought: Sought


class Told(NamedTuple):
    """What a block tells of itself."""

    number: int
    sums: Sums
    seen: Seen


@dataclass(frozen=True, eq=False)
class Grouped:
    """A table whose records have been grouped."""

    parts: SparkParts
    recipe: Recipe
    summary: TableSummary
    roles: Roles
    rounds: int
    """Of re-blocking."""
    unique_before: int
    """Records whose protected values no other has."""
    sums: Sums
    sought: Sought
    """A sample, as an attacker would see it."""
    released: DataFrame
    """What each record releases, by the key of its row; persisted."""


def group_in_spark(frame: DataFrame, plan: Plan, leaf: int | None = None) -> Grouped:
    """Group the records of a Spark DataFrame; what they release is worked out and persisted.

    Parameters
    ----------
    frame : the table
    plan : with the columns to protect named
    leaf : records in a block, about
    """
    from pyspark import StorageLevel

    parts = SparkParts(*positional(frame))
    roles = plan.roles(parts.names)
    with on_spark():
        recipe, summary = fit(parts, plan)
        width = recipe.width + bool(roles.known)
        encode = partial(_encoded, recipe, parts.layout, tuple(roles.known))
        records = mapped(parts.rows, encode, word_schema(width))
        records = records.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            places = _planned(records, recipe, width, leaf or LEAF)
            if isinstance(places, Splits):
                moved, blocks = cut_column(records, recipe, places, width)
                turns, last = 0, partial(_finished_column, recipe)
            else:
                places = _with_sound_blocks(records, recipe, places, width)
                moved, blocks = _moved(records, recipe, places, width)
                turns, last = places.rounds, partial(_finished_block, recipe, places)
            alone = [f"w{j}" for j in range(len(recipe.coders) + len(recipe.recoded_columns))]
            unique = records.groupBy(*alone).count().where("count = 1").count()
            released = by_block(moved, blocks, last, _schema_of_released(recipe, bool(roles.known)))
            released = released.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                told = _told(released)
            except BaseException:
                released.unpersist()
                raise
        finally:
            records.unpersist()
    sums = added_up(recipe, [block.sums for block in told])
    return Grouped(parts, recipe, summary, roles, turns, unique, sums, _sample(told), released)


def _encoded(recipe: Recipe, layout: Layout, known: tuple[str, ...], rows: pa.Table) -> pa.Table:
    """Records of rows: their words, and beside them a key of the columns that an attacker knows."""
    table = layout.told_apart(rows)
    words = recipe.words(table)
    if known:
        seen, _ = recipe.recoded(table)
        beside = row_keys([seen.column(name) for name in known])[:, :1]
        kept = recipe.kept(recipe.variables(table))
        words = np.hstack([words, beside if kept is None else beside[kept]])
    return pa.table(word_columns(words))


def _planned(records: DataFrame, recipe: Recipe, width: int, leaf: int) -> BlockPlan | Splits:
    """Plan the blocks, or stretches, from a sample, in one task."""
    share, stretch = sample_share(recipe.records), STRETCH

    def sampled(rows: pa.Table) -> pa.Table:
        keys = recipe.records_of(words_of(rows)).keys
        return rows.filter(pa.array(in_sample(keys, share)))

    def planned(tables: Iterable[pa.Table]) -> BlockPlan | Splits:
        none = np.zeros((0, width), np.uint64)
        words = np.concatenate([none, *map(words_of, tables)])
        return plan_places(recipe, words, leaf, stretch)

    return in_one_task(mapped(records, sampled, word_schema(width)), planned)


def _with_sound_blocks(
    records: DataFrame, recipe: Recipe, plan: BlockPlan, width: int
) -> BlockPlan:
    """Join blocks that cannot be groups by themselves."""
    if not plan.rounds:
        return plan  # every cell is in one block, and large enough
    placed = mapped(records, partial(_assigned, recipe, plan), word_schema(width, "block"))
    counts, alone = np.zeros(plan.n_places(), np.int64), np.ones(plan.n_places(), bool)
    work, schema = partial(_judged, recipe), "block long, records long, sound boolean"
    if recipe.unit is not None or recipe.block.require:
        for found in by_block(placed, plan.n_places(), work, schema).collect():
            counts[found.block], alone[found.block] = found.records, found.sound
    else:
        for found in placed.groupBy("block").count().toDF("block", "records").collect():
            counts[found.block] = found.records

    def feasible(places: list[int]) -> bool:
        if alone[places].all():  # all that can be required holds for unions, too
            return True
        union = placed.where(placed.block.isin(places))
        together = by_block(union.withColumn("block", union.block * 0), 1, work, schema)
        return bool(together.collect()[0].sound)

    return sound_blocks(recipe, plan, counts, feasible)


def _assigned(recipe: Recipe, plan: BlockPlan, rows: pa.Table) -> pa.Table:
    """Records with their block."""
    return rows.append_column("block", pa.array(places_of(recipe, plan, words_of(rows))))


def _judged(recipe: Recipe, number: int, rows: pa.Table) -> pa.Table:
    """Whether all records of a block satisfy, as one group, what is required."""
    sound = is_feasible(recipe, words_of(rows))
    return pa.table({"block": [number], "records": [rows.num_rows], "sound": [bool(sound)]})


def _moved(
    records: DataFrame, recipe: Recipe, plan: BlockPlan, width: int
) -> tuple[DataFrame, int]:
    """Work on the blocks turn after turn, but for the last; records by block, and the number of blocks."""
    moved = mapped(records, partial(_assigned, recipe, plan), word_schema(width, "block"))
    schema = word_schema(width, "group", "block")
    for turn in range(plan.rounds):
        moved = by_block(moved, plan.n_places(turn), partial(_worked, recipe, plan, turn), schema)
    return moved, plan.n_places(plan.rounds)


def _worked(recipe: Recipe, plan: BlockPlan, turn: int, number: int, rows: pa.Table) -> pa.Table:
    """All records of a block with their groups, and their block in the next turn."""
    groups = rows.column("group").to_numpy() if turn else None
    found = work_on_block(recipe, plan, number, words_of(rows), groups, turn)
    return pa.table({**word_columns(found.words), "group": found.groups, "block": found.blocks})


def _finished_block(recipe: Recipe, plan: BlockPlan, number: int, rows: pa.Table) -> pa.Table:
    """What all records of a block release after the last turn."""
    groups = rows.column("group").to_numpy() if plan.rounds else None
    found = work_on_block(recipe, plan, number, words_of(rows), groups, plan.rounds)
    return _finished(recipe, number, found.words, found.groups)


def _finished_column(recipe: Recipe, number: int, rows: pa.Table) -> pa.Table:
    """What all records release whose groups end in a stretch of one column."""
    words, groups = words_of(rows), rows.column("group").to_numpy()
    records = recipe.records_of(words)
    keys = records.keys
    order = np.lexsort((keys[:, 1], keys[:, 0], records.values[:, 0], groups))
    return _finished(recipe, number, words[order], groups[order])


def _finished(recipe: Recipe, number: int, words: Words, groups: Labels) -> pa.Table:
    """What each record of a block releases, by the key of its row.

    Records with the same ``values`` release the same in the protected columns, those of a ``class`` also the
    same weight and stratum; ``unit`` and ``known`` are keys, and ``whole_group`` is the group of records in
    the sample of whole groups, −1 of others. At one record stands what the block tells of itself.
    """
    found = finish_block(recipe, words, groups)
    records, shared = found.records, found.shared
    share = min(1.0, 0.9 * SAMPLE / recipe.records)
    chosen = np.flatnonzero(in_sample(records.keys, share))
    before = recipe.seen_by_attacker(records.values, recipe.original_states(records))[chosen]
    after = recipe.seen_by_attacker(shared.values, shared.states)[chosen]
    known = records.beside[chosen, 0] if records.beside.shape[1] else None
    told = Told(number, found.sums, Seen(records.keys[chosen], Sought(before, after, known)))
    out = shared.words()
    whole = np.full(len(records), -1, dtype=np.int64)
    whole[found.sampled] = (number << 32) + found.labels[found.sampled]
    strata = np.zeros(len(records), np.int64)
    if records.cells is not None:
        strata = recipe.strata[records.cells]
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
    if records.beside.shape[1]:
        columns["known"] = np.ascontiguousarray(records.beside[:, 0]).view(np.int64)
    first = pa.array([pack(told)], pa.binary())
    columns[_TOLD] = pa.concat_arrays([first, pa.nulls(len(records) - 1, pa.binary())])
    return pa.table(columns)


def _one_word(columns: Iterable[Labels]) -> Labels:
    return np.ascontiguousarray(row_keys([pa.array(one) for one in columns])[:, 0]).view(np.int64)


def _schema_of_released(recipe: Recipe, known: bool) -> str:
    width = Shared.of_no_record(recipe).words().shape[1]
    names = ["h1", "h2", "values", "class", "whole_group", *(f"s{j}" for j in range(width))]
    names += ["unit"] * (recipe.unit is not None) + ["known"] * known
    return f"{', '.join(f'`{name}` long' for name in names)}, {_TOLD} binary"


def _told(released: DataFrame) -> list[Told]:
    """What the blocks tell, by their numbers; this works all out."""
    rows = released.select(_TOLD).where(released[_TOLD].isNotNull()).collect()
    found: list[Told] = [unpack(bytes(row[0])) for row in rows]
    return sorted(found, key=lambda told: told.number)


def _sample(told: list[Told]) -> Sought:
    """The sampled records of all blocks, in the order of their keys, no more than wanted."""
    keys = np.concatenate([block.seen.keys for block in told])
    order = np.lexsort((keys[:, 1], keys[:, 0]))[:SAMPLE]
    before, after, known = zip(*(block.seen.sought for block in told), strict=True)
    chosen = None if known[0] is None else np.concatenate(known)[order]
    return Sought(np.concatenate(before)[order], np.concatenate(after)[order], chosen)
