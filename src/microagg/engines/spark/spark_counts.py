"""Counting and measuring on Spark: figures come from aggregations over the table.

A task turns rows into keys of their classes; Spark brings equal keys together. Sums are exact, so that
figures do not depend on how a table is spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from microagg.encode.batch_statistics import Moments
from microagg.engines.spark.spark_frames import (
    Layout,
    mapped,
    on_spark,
    positional,
    reduced,
    word_columns,
    word_schema,
)
from microagg.errors import InputError, listed, shown
from microagg.measure.agreement import is_common
from microagg.measure.classes import ClassSizes
from microagg.measure.count_by_keys import keys_of
from microagg.measure.verify import Question, Verification, count_promises, why_left_out
from microagg.plan.plan import Promise
from microagg.tables.frame import Frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def class_sizes(
    keys: DataFrame, by: Sequence[str], distinct: Sequence[str] = (), common: bool = False
) -> ClassSizes:
    """Count classes by columns of keys.

    Parameters
    ----------
    keys : a row for each record, without missing keys
    by : columns that are equal in a class
    distinct : columns whose distinct combinations are counted in each class; none: records are
    common : whether to mark classes whose only value of the first of these is common
    """
    from pyspark.sql import functions as F  # noqa: N812

    records = F.count(F.lit(1)).alias("records")
    figures = [records]
    if distinct:
        figures.append(F.countDistinct(*distinct).alias("units"))
    if common:
        half = is_common(F.col("records"), keys.count())
        rows = keys.groupBy(distinct[0]).agg(records).where(half).collect()
        has_it = F.max(distinct[0]).isin([row[0] for row in rows])
        figures.append(has_it.cast("long").alias("common"))
    classes = keys.groupBy(*by).agg(*figures)
    sizes = classes.groupBy(*classes.columns[len(by) :]).agg(F.count(F.lit(1)).alias("classes"))
    found = sizes.toArrow()
    return ClassSizes.of(**{name: found[name].to_numpy() for name in found.column_names})


@dataclass(frozen=True)
class CountsOnSpark:
    """A Spark DataFrame whose records are counted."""

    frame: DataFrame
    are_keys: bool = False
    """Whether its columns are keys already."""
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
        found = []
        for asked in questions:
            keys, by = self.frame, asked.by
            distinct = [] if asked.distinct is None else [asked.distinct]
            if not self.are_keys:
                keys = _hashed(self.frame, asked, [*by, *distinct])
                by, distinct = ["w0", "w1"], ["w2", "w3"] if distinct else []
            found.append(class_sizes(keys, by, distinct, asked.common))
        return found

    def why_left_out(self, columns: Sequence[Any]) -> dict[Any, str]:
        """Name the types; rows have no numbers by which to say where cells are odd."""
        return {name: why_left_out(self.written, name) for name in columns}


def _hashed(frame: DataFrame, asked: Question, columns: Sequence[str]) -> DataFrame:
    """Turn rows into the keys of their classes and of their distinct values."""
    layout, rows = _narrow(frame, columns)

    def hashed(rows: pa.Table) -> pa.Table:
        return pa.table(word_columns(np.hstack(keys_of(Frame(layout.table(rows)), asked))))

    return mapped(rows, hashed, word_schema(2 if asked.distinct is None else 4))


def count_shared(frame: DataFrame, promise: Promise) -> Verification:
    """Count in a Spark DataFrame how many units share each combination of values."""
    with on_spark():
        return count_promises(CountsOnSpark(frame), [promise])[0][0]


def _narrow(frame: DataFrame, columns: Sequence[str]) -> tuple[Layout, DataFrame]:
    """Select some columns, nested ones as text."""
    layout, rows = positional(frame)
    own = (rows[layout.place(name)].alias(f"c{j}") for j, name in enumerate(columns))
    return Layout(tuple(columns)), rows.select(*own)


def _numeric(frame: DataFrame) -> list[str]:
    from pyspark.sql.types import NumericType

    return [field.name for field in frame.schema.fields if isinstance(field.dataType, NumericType)]


@dataclass(frozen=True)
class ColumnChange:
    """A column of numbers before and after."""

    name: str
    mean_before: float
    mean_after: float
    deviation_before: float
    deviation_after: float

    @property
    def loss(self) -> float:
        """Share of the variance that is gone, in percent: 100·SSE/SST where groups release their means.

        The squares about the mean are those within groups and those between; the second are what is left.
        """
        if not self.deviation_before:
            return 0.0
        return 100 * (1 - (self.deviation_after / self.deviation_before) ** 2)


def measure_columns(
    original: DataFrame, protected: DataFrame, columns: Iterable[str] | None = None
) -> dict[str, ColumnChange]:
    """Compare columns of numbers of two tables, whose rows may be in any order.

    By default all columns that are numbers in both.
    """
    both = [name for name in _numeric(original) if name in set(_numeric(protected))]
    chosen = both if columns is None else list(columns)
    odd = [name for name in chosen if name not in both]
    if odd or not chosen:
        raise InputError(
            f"Columns to compare are numbers in both tables; {listed(odd) or 'no column'} is not in both. "
            f"There are {listed(both, 40) or 'none'}."
        )
    before, after = _moments(original, chosen), _moments(protected, chosen)
    if before[0].count != after[0].count:
        raise InputError(
            "Tables to compare have values for as many records; the original has "
            f"{before[0].count:,} in {shown(chosen[0])} and the protected one {after[0].count:,}."
        )
    return {
        name: ColumnChange(name, x.mean, y.mean, x.deviation, y.deviation)
        for name, x, y in zip(chosen, before, after, strict=True)
    }


def _moments(frame: DataFrame, columns: Sequence[str]) -> list[Moments]:
    _, narrow = _narrow(frame, columns)
    with on_spark():
        found = reduced(narrow, _moments_of, _merged_moments)
    if found is None:
        raise InputError(
            "Measuring needs at least one record; a table has none. Check that it was copied whole."
        )
    return found


def _moments_of(rows: pa.Table) -> list[Moments]:
    frame = Frame(rows)
    values = [frame.doubles(name) for name in frame.names]
    return [Moments().add(own[~np.isnan(own)]) for own in values]


def _merged_moments(one: list[Moments], other: list[Moments]) -> list[Moments]:
    return [a.merge(b) for a, b in zip(one, other, strict=True)]
