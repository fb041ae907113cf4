"""Counting and measuring on Spark: figures come from aggregations over the table.

Values are counted as :mod:`microagg.verify` counts them: missing is a value like any other, −0 is 0, every
NaN is the same. Sums are exact, so that figures do not depend on how a table is spread.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.encode.batch_statistics import Moments
from microagg.engines.agreeing_groups import Agreeing
from microagg.engines.evidence_at_scale import Classes
from microagg.engines.spark.spark_frames import on_spark, positional, reduced
from microagg.errors import InputError, listed, shown
from microagg.measure.verify import Verification
from microagg.plan.plan import Promise
from microagg.plan.settings import check_k
from microagg.tables.frame import Frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "ColumnChange",
    "count_agreeing",
    "count_by",
    "count_classes",
    "count_shared",
    "measure_columns",
]


class Counted(NamedTuple):
    """Classes of equal records."""

    classes: Classes
    records: int
    fewest: int
    """Units of the class that has fewest; records where no units are counted."""


def count_classes(frame: DataFrame, by: Sequence[str], unit: str | None, k: int) -> Counted:
    """Count the classes of records that agree in some columns; missing units together are one."""
    from pyspark.sql import functions as F  # noqa: N812

    records = F.count(F.lit(1)).alias("records")
    if unit is None:
        classes = frame.groupBy(*by).agg(records).withColumn("units", F.col("records"))
    else:
        some_missing = F.max(F.col(unit).isNull().cast("int"))
        units = (F.countDistinct(unit) + some_missing).alias("units")
        classes = frame.groupBy(*by).agg(records, units)
    own = F.col("records")
    nothing = F.lit(0)
    row = classes.agg(
        F.count(F.lit(1)),
        F.min("records"),
        F.sum(F.when(own == 1, 1).otherwise(nothing)),
        F.sum(F.when(F.col("units") < k, own).otherwise(nothing)),
        F.sum(own),
        F.min("units"),
    ).first()
    assert row is not None
    if not row[0]:
        raise InputError(
            "Counting needs at least one record; the table has none. Check that it was copied whole."
        )
    return Counted(Classes(*row[:4]), *row[4:])


def count_agreeing(
    frame: DataFrame, shared: Sequence[str], columns: Sequence[str]
) -> dict[str, Agreeing]:
    """Count the records whose class, by the columns that it shares, agrees in each confidential column.

    Missing is a value. What at least half of all records have is no news, and counted apart.
    """
    from pyspark.sql import functions as F  # noqa: N812

    layout, rows = positional(frame)
    by = [layout.place(name) for name in shared]
    found = {}
    for name in columns:
        at = layout.place(name)
        often = rows.groupBy(at).agg(F.count(F.lit(1)).alias("records"))
        total, most = often.agg(F.sum("records"), F.max("records")).first() or (0, 0)
        values = F.countDistinct(at) + F.max(F.col(at).isNull().cast("int"))
        classes = rows.groupBy(*by).agg(
            F.count(F.lit(1)).alias("records"), values.alias("values"), F.max(at).alias("value")
        )
        agreeing = classes.where("values = 1").select("records", "value")
        own = agreeing.agg(F.sum("records")).first()
        agree = int((own and own[0]) or 0)
        harmless = 0
        if 2 * most >= total:  # with two such values the table has no other
            common = often.where(F.col("records") * 2 >= total).select(F.col(at).alias("common"))
            same = agreeing.value.eqNullSafe(common.common)
            known = agreeing.join(common, same).agg(F.sum("records")).first()
            harmless = int((known and known[0]) or 0)
        found[name] = Agreeing(agree - harmless, harmless)
    return found


def count_by(frame: DataFrame, columns: Sequence[str], unit: str | None, k: int) -> Classes:
    """Count the classes of records that agree in some columns of a table."""
    layout, rows = positional(frame)
    places = [layout.place(name) for name in columns]
    return count_classes(rows, places, None if unit is None else layout.place(unit), k).classes


def count_shared(frame: DataFrame, promise: Promise) -> Verification:
    """Count in a Spark DataFrame how many units share each combination of values."""
    check_k(promise.k, sys.maxsize)
    layout, rows = positional(frame)
    columns = list(_numeric(frame) if promise.columns is None else promise.columns)
    columns = [name for name in columns if promise.columns is not None or name != promise.unit]
    missing = [name for name in (*columns, promise.unit) if name not in (*layout.names, None)]
    if missing:
        raise InputError(
            f"Columns to count are columns of the table; {listed(missing)} is none. It has "
            f"{listed(layout.names, 40)}."
        )
    if promise.unit is not None and (promise.unit in columns or not columns):
        raise InputError(
            f"The unit {shown(promise.unit)} is what is counted; name other columns, whose values units "
            "share."
        )

    unit = None if promise.unit is None else layout.place(promise.unit)
    with on_spark():
        found = count_classes(rows, [layout.place(name) for name in columns], unit, promise.k)
    left = {} if promise.columns is not None else _left_out(frame, {*columns, promise.unit})
    return Verification(
        holds=not found.classes.below_k,
        k=promise.k,
        columns=columns,
        records=found.records,
        combinations=found.classes.number,
        smallest=found.fewest,
        records_below_k=found.classes.below_k,
        unit=promise.unit,
        left_out=left,
    )


def _numeric(frame: DataFrame) -> list[str]:
    from pyspark.sql.types import NumericType

    return [field.name for field in frame.schema.fields if isinstance(field.dataType, NumericType)]


def _left_out(frame: DataFrame, counted: set[Any]) -> dict[Any, str]:
    fields = [field for field in frame.schema.fields if field.name not in counted]
    return {field.name: field.dataType.simpleString() for field in fields}


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
    layout, rows = positional(frame)
    narrow = rows.select(
        *(rows[f"c{layout.names.index(name)}"].alias(f"c{j}") for j, name in enumerate(columns))
    )
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
