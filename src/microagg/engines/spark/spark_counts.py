"""Counting on Spark: figures come from aggregations over the table.

A task turns rows into keys of their classes; Spark brings equal keys together. Sums are exact, so that
figures do not depend on how a table is spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.engines.spark.spark_bundles import unbundled, word_names
from microagg.engines.spark.spark_frames import Layout, mapped, on_spark, positional
from microagg.grouping.require.value_rules import FEWEST_NUMBERS, is_common
from microagg.measure.classes import ClassSizes
from microagg.measure.count_by_keys import keys_of
from microagg.measure.verify import Question, Verification, count_promises, why_left_out
from microagg.plan.plan import Promise
from microagg.tables.frame import Frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _Classes(NamedTuple):
    """Classes to count, by columns of keys."""

    by: Sequence[str]
    """Columns that are equal in a class."""
    distinct: Sequence[str] = ()
    """Columns whose distinct combinations are counted in each class; none: records are."""
    common: Sequence[int] | None = None
    """Values of the first of these that are common, where classes that have one are to be marked."""


def _class_sizes(keys: DataFrame, wanted: Sequence[_Classes]) -> list[ClassSizes]:
    """Count several kinds of classes at the same time; all of them have distinct columns, or none.

    ``keys`` has a row for each record, without missing keys.
    """
    from pyspark.sql import functions as F  # noqa: N812

    by = [f"k{j}" for j in range(max(len(one.by) for one in wanted))]
    distinct = [f"d{j}" for j in range(len(wanted[0].distinct))]
    marked = wanted[0].common is not None
    each = []
    for number, one in enumerate(wanted):
        row = {"kind": F.lit(number), **dict.fromkeys(by, F.lit(0).cast("long"))}
        row |= dict(
            zip([*by[: len(one.by)], *distinct], map(F.col, [*one.by, *one.distinct]), strict=True)
        )
        if one.common is not None:
            row["common"] = F.col(one.distinct[0]).isin(list(one.common)).cast("long")
        each.append([column.alias(name) for name, column in row.items()])
    rows = keys.select(*each[0])
    if len(each) > 1:
        rows = keys.select(F.inline(F.array(*(F.struct(*row) for row in each))))
    figures = {"records": F.count(F.lit(1))}
    if distinct:
        figures["units"] = F.countDistinct(*distinct)
    if marked:
        figures["common"] = F.max("common")
    classes = rows.groupBy("kind", *by).agg(*(own.alias(name) for name, own in figures.items()))
    sizes = classes.groupBy("kind", *figures).agg(F.count(F.lit(1)).alias("classes"))
    found = {
        name: column.to_numpy()
        for name, column in zip(sizes.columns, sizes.toArrow().columns, strict=True)
    }
    kinds = found.pop("kind")
    return [
        ClassSizes.of(**{name: own[kinds == number] for name, own in found.items()})
        for number in range(len(wanted))
    ]


def _common_values(
    frame: DataFrame, columns: Sequence[str], numbers: Sequence[bool], records: int
) -> list[list[int]]:
    """Find the keys of each column that are common.

    ``numbers`` tells which columns hold numbers; ``records`` is the number of all records.
    """
    from pyspark.sql import functions as F  # noqa: N812

    each = (F.struct(F.lit(at).alias("at"), F.col(c).alias("key")) for at, c in enumerate(columns))
    often = unbundled(frame, columns).select(F.inline(F.array(*each))).groupBy("at", "key").count()
    common: list[list[int]] = [[] for _ in columns]
    distinct = {}
    if any(numbers):
        distinct = {row["at"]: row["count"] for row in often.groupBy("at").count().collect()}
    for row in often.where(is_common(F.col("count"), records, any(numbers))).collect():
        at = row["at"]
        many = numbers[at] and distinct[at] >= FEWEST_NUMBERS
        if is_common(row["count"], records, many):
            common[at].append(row["key"])
    return common


@dataclass(frozen=True)
class CountsOnSpark:
    """A Spark DataFrame whose records are counted."""

    frame: DataFrame
    units: Mapping[Any, pa.Array] = field(default_factory=dict)

    @cached_property
    def written(self) -> Frame:
        """The types of the columns."""
        layout, rows = positional(self.frame)
        return Frame(layout.table(rows.limit(0).toArrow()))

    @property
    def typed(self) -> Frame:
        """The same."""
        return self.written

    def count(self, questions: Sequence[Question]) -> list[ClassSizes]:
        """Count keys; tasks turn rows into keys."""
        sizes = []
        for asked in questions:
            distinct = [] if asked.distinct is None else [asked.distinct]
            keys = _hashed(self.frame, asked, [*asked.by, *distinct])
            sizes += _class_sizes(keys, [_Classes(["w0", "w1"], ["w2", "w3"] if distinct else [])])
        return sizes

    def why_left_out(self, columns: Sequence[Any]) -> dict[Any, str]:
        """Name the types; rows have no numbers by which to say where cells are odd."""
        return {name: why_left_out(self.written, name) for name in columns}


@dataclass(frozen=True)
class KeysOnSpark(CountsOnSpark):
    """A Spark DataFrame of bundles, whose columns are keys already."""

    records: int = 0

    def count(self, questions: Sequence[Question]) -> list[ClassSizes]:
        """Count questions of one form at the same time."""
        forms: dict[tuple[bool, bool], list[int]] = {}
        for at, asked in enumerate(questions):
            forms.setdefault((asked.distinct is not None, asked.common), []).append(at)
        sizes: dict[int, ClassSizes] = {}
        for (has_distinct, common), places in forms.items():
            some = [questions[at] for at in places]
            wanted = [_Classes(asked.by, [asked.distinct][: int(has_distinct)]) for asked in some]
            names = dict.fromkeys(name for one in wanted for name in (*one.by, *one.distinct))
            keys = unbundled(self.frame, list(names))
            if common:
                often = _common_values(
                    self.frame,
                    [asked.distinct for asked in some],
                    [asked.numbers for asked in some],
                    self.records,
                )
                wanted = [one._replace(common=own) for one, own in zip(wanted, often, strict=True)]
            sizes |= dict(zip(places, _class_sizes(keys, wanted), strict=True))
        return [sizes[at] for at in range(len(questions))]


def _hashed(frame: DataFrame, asked: Question, columns: Sequence[str]) -> DataFrame:
    """Turn rows into the keys of their classes and of their distinct values; nested ones go by their text."""
    names = word_names(2 if asked.distinct is None else 4)
    whole, rows = positional(frame)
    layout = Layout(tuple(columns))
    rows = rows.select(*(rows[whole.place(name)].alias(f"c{j}") for j, name in enumerate(columns)))

    def hashed(rows: pa.Table) -> pa.Table:
        packed = np.hstack(keys_of(Frame(layout.table(rows)), asked)).view(np.int64)
        return pa.table(dict(zip(names, np.ascontiguousarray(packed.T), strict=True)))

    return mapped(rows, hashed, ", ".join(f"{name} long" for name in names))


def count_shared(frame: DataFrame, promise: Promise) -> Verification:
    """Count in a Spark DataFrame how many units share each combination of values."""
    with on_spark():
        return count_promises(CountsOnSpark(frame), [promise])[0][0]
