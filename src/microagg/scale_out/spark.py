"""On Spark: a table in blocks, spread over the workers of a cluster.

The driver sees summaries, the plan of the blocks, counts and what each block tells of itself, never the
records of a table. What moves between workers are records of a few words (see
:mod:`microagg.scale_out.recipe`): once to the blocks, once in each round of re-blocking, and once, with the
full rows, to where both meet again. All that runs in Python works on Arrow tables.

Nothing depends on how rows are spread or in which order they come, and a task that is done twice gives the
same: a block is solved in the order of the keys of its records, and values find their rows by these keys.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from microagg import errors
from microagg.draft import Completed
from microagg.encode.recode import Recoder, recoded_plan
from microagg.encode.recoded import check_recoded
from microagg.errors import InputError, MicroaggError, listed
from microagg.plan import Plan, Roles
from microagg.require.requirement import Requirement
from microagg.scale_out.aggregates import Shared, Sums, put_back
from microagg.scale_out.blocks import LEAF, BlockPlan, requirements, sample_share
from microagg.scale_out.completing import DRAFTED, check_constant, no_records
from microagg.scale_out.fitting import recipe_of
from microagg.scale_out.one_column import is_one_column
from microagg.scale_out.rare import Rare
from microagg.scale_out.recipe import Recipe
from microagg.scale_out.recoding import recoders_of
from microagg.scale_out.spark_column import cut_column
from microagg.scale_out.summaries import TableSummary, check_supported
from microagg.scale_out.worker_tables import TOLD, Layout, unpack
from microagg.scale_out.workers import (
    Assign,
    Complete,
    Encode,
    Feasible,
    Finish,
    JoinRare,
    PlanBlocks,
    RareRecords,
    Sampled,
    Seen,
    SomeKeys,
    Summaries,
    Tallied,
    Told,
    Work,
)
from microagg.scale_out.workers_column import FinishColumn
from microagg.scale_out.workers_release import Keyed, Rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

__all__ = [
    "Grouped",
    "completed_on_spark",
    "group_in_spark",
    "on_spark",
    "positional",
    "rules_of",
]

SAMPLE = 2000  # records that are looked for as an attacker would, at most
_BUCKET = 1 << 16  # rows that meet their values at a time, about
_TASKS_A_BLOCK = 4  # so that few blocks share a task by chance
_MOST_TASKS = 4096
# Of Java, which then answers no more, or of a worker.
_GONE = re.compile(
    "Answer from Java side is empty|error occurred while trying to connect|worker exited un"
)
NO_BLOCKS = BlockPlan((), ({},), ())


def _ended() -> MicroaggError:
    return MicroaggError(
        "A process of Spark ended before its work was done, as happens where memory is short. Nothing was "
        "released. Give Spark more memory or smaller blocks of records, and run it again."
    )


@contextmanager
def on_spark() -> Iterator[None]:
    """Let errors that workers raise on purpose out as what they were, and no word about pandas.

    Spark's functions for Arrow warn of each pandas that is newer than they are, and we hand them none.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
            yield
    except (PySparkException, Py4JError) as error:
        found = re.findall(r"^microagg\.errors\.(\w+): (.*)$", str(error), re.MULTILINE)
        if found:
            name, words = found[-1]
            raised = getattr(errors, name, MicroaggError)(words)
        elif _GONE.search(str(error)):
            raised = _ended()
        else:
            raise
    except ConnectionError:  # Java does not answer any more
        raised = _ended()
    else:
        return
    raise raised from None


def positional(frame: DataFrame) -> tuple[Layout, DataFrame]:
    """Columns c0, c1, …, since a name may hold anything, and the text of nested ones beside them."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
    from pyspark.sql import types

    names = tuple(frame.columns)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"A name stands for one column; {listed(twice)} stands for several. Rename them first."
        )
    plain = frame.toDF(*(f"c{j}" for j in range(len(names))))
    kinds = (types.ArrayType, types.MapType, types.StructType)
    nested = tuple(
        j for j, field in enumerate(frame.schema.fields) if isinstance(field.dataType, kinds)
    )
    texts = [F.to_json(F.struct(f"c{j}")).alias(f"t{at}") for at, j in enumerate(nested)]
    return Layout(names, nested), plain.select("*", *texts)


@dataclass(frozen=True, eq=False)
class Grouped:
    """A table whose records have been grouped."""

    recipe: Recipe
    summary: TableSummary
    roles: Roles
    rounds: int
    """Of re-blocking."""
    unique_before: int
    """Records whose protected values no other has."""
    sums: Sums
    seen: Seen
    """A sample, as an attacker would see it."""
    released: DataFrame
    """What each record releases, by the key of its row; persisted."""
    _layout: Layout
    _rows: DataFrame

    def rows(self) -> tuple[DataFrame, DataFrame]:
        """Released rows, and the same with the unit beside them if it is dropped."""
        recipe, layout = self.recipe, self._layout
        buckets = -(-recipe.records // _BUCKET)
        names, schema, arrow, unit = self._schema()
        keyed = self._rows.mapInArrow(
            Keyed(recipe, layout, buckets), _keyed_schema(self._rows, len(layout.names))
        )
        values = self._values(buckets)
        tasks = min(buckets, _MOST_TASKS)
        found = (
            keyed.repartition(tasks, "bucket")
            .groupBy("bucket")
            .cogroup(values.repartition(tasks, "bucket").groupBy("bucket"))
            .applyInArrow(_of_two(Rows(recipe, layout, arrow, unit)), schema)
        )
        if unit is None:
            data = found.toDF(*names)
            return data, data
        whole = found.toDF(*names, layout.names[unit])
        return found.drop(found.columns[-1]).toDF(*names), whole

    def whole_groups(self) -> tuple[DataFrame, DataFrame]:
        """Rows of some groups, all rows of each, and what they release, both with their keys."""
        from pyspark.sql import functions as F  # noqa: N812

        recipe, layout = self.recipe, self._layout
        chosen = self.released.where("whole_group >= 0")
        rows = self._rows.mapInArrow(
            Keyed(recipe, layout, 1), _keyed_schema(self._rows, len(layout.names))
        )
        # Keys tell nothing of the records, and go to all workers, so that no row moves that is not wanted.
        keys = F.broadcast(chosen.select(F.col("h1").alias("wanted")).distinct())
        return rows.join(keys, F.col("h1") == F.col("wanted"), "left_semi"), chosen

    @property
    def layout(self) -> Layout:
        """The user's columns."""
        return self._layout

    def _values(self, buckets: int) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812

        words = [name for name in self.released.columns if re.fullmatch(r"s\d+", name)]
        bucket = F.pmod(F.col("h1"), F.lit(buckets)).alias("bucket")
        return self.released.select("h1", "h2", *words, bucket)

    def _schema(self) -> tuple[list[str], StructType, pa.Schema, int | None]:
        """Names of the released columns, their types for Spark and for Arrow, and where a dropped unit is."""
        session, recipe, layout = self._rows.sparkSession, self.recipe, self._layout
        empty = self._rows.limit(0).toArrow()
        table = layout.table(empty)
        out = put_back(recipe, table, _of_no_record(recipe))
        names, fields = list(out.column_names), list(out.schema)
        unit = None
        if recipe.unit is not None and recipe.unit not in names:
            unit = layout.names.index(recipe.unit)
            fields.append(table.schema.field(recipe.unit))
        arrow = pa.schema([pa.field(f"c{j}", field.type) for j, field in enumerate(fields)])
        found = session.createDataFrame(arrow.empty_table()).schema
        # What is untouched has the very type that it had, which Arrow may not tell.
        given = dict(zip(layout.names, self._rows.schema.fields, strict=False))
        for at, name in enumerate([*names, *([] if unit is None else [layout.names[unit]])]):
            if arrow.field(at).type == table.schema.field(name).type:
                found.fields[at].dataType = given[name].dataType
        return names, found, arrow, unit


def completed_on_spark(
    frame: DataFrame, plan: Plan, fields: Mapping[str, Any] | None = None
) -> Completed:
    """Fill in what a plan leaves open by what the first records look like; a worker looks at them.

    ``fields`` are the metadata of columns, such as value labels, as far as a file has some.
    """
    plan.check_complete()
    check_supported(plan)
    layout, rows = positional(frame)
    plan.roles(layout.names)
    with on_spark():
        # One task that reads partition after partition in their order, and no more of them than it needs.
        head = rows.coalesce(1).limit(DRAFTED)
        done = head.mapInArrow(Complete(plan, layout, fields or {}), "packed binary").collect()
        if not done:
            raise no_records()
        found, constant, looked_at = unpack(bytes(done[0].packed))
        if constant and looked_at == DRAFTED:
            places = tuple(f"c{layout.names.index(name)}" for name in constant)
            told = rows.select(*places).mapInArrow(SomeKeys(places), "packed binary").collect()
            check_constant(constant, (unpack(bytes(row.packed)) for row in told))
    completed: Completed = found
    return completed


def group_in_spark(frame: DataFrame, plan: Plan, leaf: int = LEAF) -> Grouped:
    """Group the records of a Spark DataFrame; what they release is worked out and persisted.

    Parameters
    ----------
    frame : the table
    plan : with the columns to protect named
    leaf : records in a block, about
    """
    from pyspark import StorageLevel

    layout, rows = positional(frame)
    roles = plan.roles(layout.names)
    with on_spark():
        recoders = _recoders(rows, plan, layout)
        after = recoded_plan(plan, recoders.values())
        summary = _summary(rows, after, layout, roles, recoders)
        recipe = replace(recipe_of(after, summary, recoders=recoders), given=plan)
        recipe = _with_rare_joined(rows, recipe, layout)
        recipe.check_cells()
        width = recipe.width + bool(roles.known)
        words = ", ".join(f"w{j} long" for j in range(width))
        encode = Encode(recipe, layout, tuple(roles.known))
        records = rows.mapInArrow(encode, words).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            if is_one_column(recipe):
                moved, places = cut_column(records, recipe, words, _by_block)
                finish: Finish = FinishColumn(recipe, NO_BLOCKS, 0, _share(recipe))
            else:
                blocks = _blocks(records, recipe, words, leaf)
                moved, places = _moved(records, recipe, blocks, words)
                finish = Finish(recipe, blocks, blocks.rounds, _share(recipe))
            alone = [f"w{j}" for j in range(len(recipe.coders) + len(recipe.recoded_columns))]
            unique = records.groupBy(*alone).count().where("count = 1").count()
            released = _released(moved, places, recipe, finish, bool(roles.known))
            released = released.persist(StorageLevel.MEMORY_AND_DISK)
            try:
                told = _told(released)
            except BaseException:
                released.unpersist()
                raise
        finally:
            records.unpersist()
    return Grouped(
        recipe,
        summary,
        roles,
        finish.turn,
        unique,
        _added(told, recipe),
        _sample(told),
        released,
        layout,
        rows,
    )


def rules_of(recipe: Recipe) -> list[Requirement]:
    """What groups must satisfy beside k, of no records in particular."""
    return requirements(recipe, recipe.records_of(np.zeros((0, recipe.width), dtype=np.uint64)))


def _added(told: list[Told], recipe: Recipe) -> Sums:
    """Add up what blocks tell."""
    rules = rules_of(recipe)
    return reduce(lambda one, other: one.merge(other, rules), (block.sums for block in told))


def _narrow(
    rows: DataFrame, plan: Plan, layout: Layout, wanted: Iterable[Any]
) -> tuple[DataFrame, Layout]:
    """Some columns, and those of weight and units."""
    chosen = {*wanted, *plan.units, *([] if plan.weight is None else [plan.weight.column])}
    places = [j for j, name in enumerate(layout.names) if name in chosen]
    narrow = rows.select(*(rows[f"c{j}"].alias(f"c{at}") for at, j in enumerate(places)))
    return narrow, Layout(tuple(layout.names[j] for j in places))


def _recoders(rows: DataFrame, plan: Plan, layout: Layout) -> dict[Any, Recoder]:
    """Fit the recodings of the plan, by a pass of their own if there are any."""
    if not plan.coarsened:
        return {}
    check_recoded(plan, layout.names)
    narrow, names = _narrow(rows, plan, layout, plan.coarsened)
    found = narrow.mapInArrow(Tallied(plan, names), "packed binary").collect()
    head = names.table(narrow.limit(0).toArrow())
    return recoders_of(plan, (unpack(bytes(row.packed)) for row in found), head)


def _summary(
    rows: DataFrame,
    plan: Plan,
    layout: Layout,
    roles: Roles,
    recoders: Mapping[Any, Recoder],
) -> TableSummary:
    """Summarise the columns that matter."""
    wanted = {*roles.protected, *roles.strata, *plan.related, *recoders}
    narrow, names = _narrow(rows, plan, layout, wanted)
    found = narrow.mapInArrow(Summaries(plan, names, recoders), "packed binary").collect()
    if not found:
        raise no_records()
    parts: list[TableSummary] = [unpack(bytes(row.packed)) for row in found]
    return reduce(TableSummary.merge, parts)


def _with_rare_joined(rows: DataFrame, recipe: Recipe, layout: Layout) -> Recipe:
    """Join patterns of missing values that too few units have; if there are any, that is another pass."""
    if not Rare(recipe).any:
        return recipe
    words = ", ".join(f"w{j} long" for j in range(recipe.width))
    records = rows.mapInArrow(Encode(recipe, layout, ()), words)
    few = records.mapInArrow(RareRecords(recipe), words).repartition(1)
    (row,) = few.mapInArrow(JoinRare(recipe), "packed binary").collect()
    found: Recipe = unpack(bytes(row.packed))
    return found


def _blocks(records: DataFrame, recipe: Recipe, words: str, leaf: int) -> BlockPlan:
    """Plan the blocks from a sample, and join those that cannot be groups by themselves."""
    share = sample_share(recipe.records)
    sample = records.mapInArrow(Sampled(recipe, share), words).repartition(1)
    (row,) = sample.mapInArrow(PlanBlocks(recipe, leaf), "plan string").collect()
    plan = BlockPlan.from_json(row.plan)
    if not plan.rounds:
        return plan  # every cell is in one block, and large enough
    placed = records.mapInArrow(Assign(recipe, plan), f"{words}, block long")
    asked = recipe.unit is not None or bool(recipe.block.require)
    feasible, told = Feasible(recipe), "block long, records long, sound boolean"
    counts, alone = np.zeros(plan.n_places(), np.int64), np.ones(plan.n_places(), bool)
    if asked:
        each = _by_block(placed, plan.n_places()).applyInArrow(_of_two(feasible), told).collect()
    else:
        each = placed.groupBy("block").count().toDF("block", "records").collect()
    for found in each:
        counts[found.block] = found.records
        alone[found.block] = found.sound if asked else True

    def sound(places: list[int]) -> bool:
        if int(counts[places].sum()) < recipe.k:
            return False
        if alone[places].all():  # all that can be required holds for unions, too
            return True
        union = placed.where(placed.block.isin(places))
        together = union.withColumn("block", union.block * 0)
        (found,) = together.groupBy("block").applyInArrow(_of_two(feasible), told).collect()
        return bool(found.sound)

    return plan.with_sound(sound)


def _moved(
    records: DataFrame, recipe: Recipe, blocks: BlockPlan, words: str
) -> tuple[DataFrame, int]:
    """Work on the blocks turn after turn, but for the last; records by block, and the number of blocks."""
    moved = records.mapInArrow(Assign(recipe, blocks), f"{words}, block long")
    for turn in range(blocks.rounds):
        moved = _by_block(moved, blocks.n_places(turn)).applyInArrow(
            _of_two(Work(recipe, blocks, turn)), f"{words}, group long, block long"
        )
    return moved, blocks.n_places(blocks.rounds)


def _share(recipe: Recipe) -> float:
    return min(1.0, 0.9 * SAMPLE / recipe.records)


def _released(
    moved: DataFrame, places: int, recipe: Recipe, finish: Finish, known: bool
) -> DataFrame:
    """What each record releases, after the last turn."""
    shared = _of_no_record(recipe).words().shape[1]
    names = ["h1", "h2", "values", "class", "whole_group", *(f"s{j}" for j in range(shared))]
    names += [] if recipe.unit is None else ["unit"]
    names += ["known"] if known else []
    schema = f"{', '.join(f'`{name}` long' for name in names)}, {TOLD} binary"
    last: DataFrame = _by_block(moved, places).applyInArrow(_of_two(finish), schema)
    return last


def _of_no_record(recipe: Recipe) -> Shared:
    """What no record at all releases, which has the shape of what others do."""
    d, weight = len(recipe.coders), recipe.plan.weight
    means = weight is not None and weight.release == "mean"
    return Shared(np.zeros((0, d)), np.zeros((0, d), np.int64), np.zeros(0) if means else None)


def _by_block(frame: DataFrame, blocks: int) -> Any:
    """Records by block; the number of tasks is said, lest Spark join them by their few bytes."""
    return frame.repartition(min(_TASKS_A_BLOCK * blocks, _MOST_TASKS), "block").groupBy("block")


def _of_two(work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """As a plain function of two arguments, which Spark counts."""

    def apply(one: Any, other: Any) -> Any:
        return work(one, other)

    return apply


def _told(released: DataFrame) -> list[Told]:
    """What the blocks tell, by their numbers; this works all out."""
    rows = released.select(TOLD).where(released[TOLD].isNotNull()).collect()
    found: list[Told] = [unpack(bytes(row[0])) for row in rows]
    return sorted(found, key=lambda told: told.number)


def _sample(told: list[Told]) -> Seen:
    """The sampled records of all blocks, in the order of their keys, no more than wanted."""
    whole = Seen(*(np.concatenate(parts) for parts in zip(*(t.seen for t in told), strict=True)))
    order = np.lexsort((whole.keys[:, 1], whole.keys[:, 0]))
    return whole.taken(order[:SAMPLE])


def _keyed_schema(rows: DataFrame, columns: int) -> StructType:
    from pyspark.sql.types import LongType, StructField, StructType

    more = [StructField(name, LongType()) for name in ("h1", "h2", "bucket")]
    return StructType([*rows.schema.fields[:columns], *more])
