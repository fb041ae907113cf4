"""Counting on Spark: figures come from aggregations over the table.

A task turns rows into keys of their classes; Spark brings equal keys together. Sums are exact, so that
figures do not depend on how a table is spread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from microagg.engines.spark.spark_frames import mapped, matrix_of, named, nested_as_text, positional
from microagg.grouping.require.value_rules import FEWEST_NUMBERS, is_common
from microagg.measure.classes import ClassSizes
from microagg.measure.count_by_keys import keys_of
from microagg.measure.verify import Question, why_left_out
from microagg.tables.frame import Frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _names_in(questions: Sequence[Question]) -> list[Any]:
    """List the columns that questions ask for, each once."""
    read = (name for asked in questions for name in (*asked.by, asked.distinct))
    return [name for name in dict.fromkeys(read) if name is not None]


def _class_sizes(
    keys: DataFrame, questions: Sequence[Question], common: Mapping[Any, Sequence[int]]
) -> list[ClassSizes]:
    """Count the classes of several questions at the same time.

    All columns of ``keys``, which questions name, are of one type, and none is missing. ``common`` has by
    column the keys of common values, where questions mark classes.
    """
    from pyspark.sql import functions as F  # noqa: N812

    nothing = F.lit(None).cast(keys.schema.fields[0].dataType)
    each = []
    for number, asked in enumerate(questions):
        unit = nothing if asked.distinct is None else F.col(asked.distinct)
        is_known = unit.isin(list(common[asked.distinct])) if asked.common else F.lit(None)
        columns = {
            "question": F.lit(number),
            "key": F.array(*asked.by),
            "unit": unit,
            "common": is_known.cast("long"),
        }
        each.append(F.struct(*(column.alias(name) for name, column in columns.items())))
    figures = {"records": F.count(F.lit(1))}
    if any(asked.distinct is not None for asked in questions):
        figures["units"] = F.countDistinct("unit")
    if common:
        figures["common"] = F.max("common")
    classes = keys.select(F.inline(F.array(*each))).groupBy("question", "key")
    sizes = classes.agg(*(column.alias(name) for name, column in figures.items()))
    counted = sizes.groupBy("question", *figures).agg(F.count(F.lit(1)).alias("classes")).toArrow()
    of_question, sizes_of_each = counted["question"].to_numpy(), []
    for number, asked in enumerate(questions):
        names = ["records", "classes"]
        names += ["units"] * (asked.distinct is not None) + ["common"] * asked.common
        rows = counted.take(pa.array(np.flatnonzero(of_question == number)))
        sizes_of_each.append(ClassSizes.of(**{name: rows[name].to_numpy() for name in names}))
    return sizes_of_each


@dataclass(frozen=True)
class CountsOnSpark:
    """A Spark DataFrame whose records are counted."""

    frame: DataFrame
    units: Mapping[Any, str] = field(default_factory=dict)
    """The columns that have units which no file tells, see :func:`.dealt_columns`."""

    @cached_property
    def written(self) -> Frame:
        """The types of the columns."""
        names, rows = positional(self.frame)
        return Frame(named(rows.limit(0).toArrow(), names))

    @property
    def typed(self) -> Frame:
        """The same."""
        return self.written

    def count(self, questions: Sequence[Question]) -> list[ClassSizes]:
        """Count keys; tasks turn rows into keys, of nested values by their text."""
        every, rows = positional(self.frame)
        questions = [q._replace(distinct=self.units.get(q.distinct, q.distinct)) for q in questions]
        names = _names_in(questions)
        chosen = (rows[f"c{every.index(name)}"] for name in names)
        of_keys = [
            Question([f"k{at}"], None if asked.distinct is None else f"d{at}")
            for at, asked in enumerate(questions)
        ]

        def hashed(rows: pa.Table) -> pa.Table:
            written, columns = Frame(nested_as_text(named(rows, names))), dict[str, Any]()
            for asked, by_key in zip(questions, of_keys, strict=True):
                columns |= dict(zip(_names_in([by_key]), keys_of(written, asked), strict=True))
            for name, keys in columns.items():
                buffer = pa.py_buffer(np.ascontiguousarray(keys))
                rows_of_bytes = pa.Array.from_buffers(pa.binary(16), len(keys), [None, buffer])
                columns[name] = rows_of_bytes.cast(pa.binary())
            return pa.table(columns)

        schema = ", ".join(f"{name} binary" for name in _names_in(of_keys))
        return _class_sizes(mapped(rows.select(*chosen), hashed, schema), of_keys, {})

    def why_left_out(self, columns: Sequence[Any]) -> dict[Any, str]:
        """Name the types; rows have no numbers by which to say where cells are odd."""
        return {name: why_left_out(self.written, name) for name in columns}


@dataclass(frozen=True)
class KeysOnSpark(CountsOnSpark):
    """A Spark DataFrame of bundles with a matrix ``keys``, which has a column of each of some names."""

    names: Sequence[str] = ()
    records: int = 0

    def count(self, questions: Sequence[Question]) -> list[ClassSizes]:
        """Count all questions at the same time, once it is known which values are common."""
        names = self.names

        def apart(rows: pa.Table) -> pa.Table:
            keys = matrix_of(rows["keys"], len(names)).view(np.int64)
            return pa.table(dict(zip(names, keys.T, strict=True)))

        schema = ", ".join(f"{name} long" for name in names)
        keys = mapped(self.frame.select("keys"), apart, schema)
        has_numbers = {asked.distinct: asked.numbers for asked in questions if asked.common}
        common = self._common_values(keys, has_numbers) if has_numbers else {}
        return _class_sizes(keys, questions, common)

    def _common_values(
        self, keys: DataFrame, has_numbers: Mapping[Any, bool]
    ) -> dict[Any, list[int]]:
        """Find the keys of each column that are common; ``has_numbers`` tells which hold numbers."""
        from pyspark.sql import functions as F  # noqa: N812

        each = (
            F.struct(F.lit(name).alias("column"), F.col(name).alias("key")) for name in has_numbers
        )
        often = keys.select(F.inline(F.array(*each))).groupBy("column", "key").count()
        values, any_numbers = {}, any(has_numbers.values())
        if any_numbers:
            values = {
                row["column"]: row["count"] for row in often.groupBy("column").count().collect()
            }
        common: dict[Any, list[int]] = {name: [] for name in has_numbers}
        for row in often.where(is_common(F.col("count"), self.records, any_numbers)).collect():
            name = row["column"]
            are_many = has_numbers[name] and values[name] >= FEWEST_NUMBERS
            if is_common(row["count"], self.records, are_many):
                common[name].append(row["key"])
        return common
