"""The rows of a release on Spark: what records release finds its rows by their keys.

Rows of the sample that is measured never come to the driver: what comes are the measures without them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.aggregates import Shared, put_back
from microagg.engines.encoding import Encoding
from microagg.engines.evidence_at_scale import Sample
from microagg.engines.spark.on_spark import Grouped
from microagg.engines.spark.spark_frames import Layout, joined, mapped, pack, unpack, words_of
from microagg.errors import InputError
from microagg.evidence.measured import Measured
from microagg.measure.row_keys import row_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_BUCKET = 1 << 16  # rows that meet their values at a time, about


def released_rows(grouped: Grouped) -> tuple[DataFrame, DataFrame]:
    """Return released rows, and the same with the unit as an extra column if it is dropped."""
    from pyspark.sql import functions as F  # noqa: N812

    encoding, layout = grouped.encoding, grouped.parts.layout
    buckets = -(-encoding.records // _BUCKET)
    names, schema, arrow, unit = _schema(grouped)
    bucket = F.pmod(F.col("h1"), F.lit(buckets)).alias("bucket")
    values = grouped.released.select("h1", "h2", *word_names(grouped.released), bucket)
    work = partial(_put_back, encoding, layout, arrow, unit)
    found = joined(_keyed_rows(grouped, buckets), values, buckets, work, schema)
    if unit is None:
        data = found.toDF(*names)
        return data, data
    whole = found.toDF(*names, layout.names[unit])
    return found.drop(found.columns[-1]).toDF(*names), whole


def word_names(released: DataFrame) -> list[str]:
    """Columns of the words of what records release."""
    return [name for name in released.columns if re.fullmatch(r"s\d+", name)]


def _keyed_rows(grouped: Grouped, buckets: int) -> DataFrame:
    """Return the rows of the table that are released, with their keys and buckets."""
    from pyspark.sql.types import LongType, StructField, StructType

    rows, layout = grouped.parts.rows, grouped.parts.layout
    more = [StructField(name, LongType()) for name in ("h1", "h2", "bucket")]
    schema = StructType([*rows.schema.fields[: len(layout.names)], *more])
    return mapped(rows, partial(_keyed, grouped.encoding, layout, buckets), schema)


def _keyed(encoding: Encoding, layout: Layout, buckets: int, rows: pa.Table) -> pa.Table:
    table = layout.with_nested_as_text(rows)
    kept = encoding.kept(encoding.variables(table))
    keys = row_keys([table.column(j) for j in range(table.num_columns)]).view(np.int64)
    out = rows.select([f"c{j}" for j in range(len(layout.names))])
    for at in (0, 1):
        out = out.append_column(f"h{at + 1}", pa.array(np.ascontiguousarray(keys[:, at])))
    # As Spark's pmod has it: never below 0.
    out = out.append_column("bucket", pa.array(np.mod(keys[:, 0], buckets)))
    return out if kept is None else out.filter(pa.array(kept))


def _put_back(
    encoding: Encoding,
    layout: Layout,
    schema: pa.Schema,
    unit: int | None,
    rows: pa.Table,
    values: pa.Table,
) -> pa.Table:
    """All rows of a bucket with the values released for them.

    Both are brought into the order of the keys. Rows with the same key are equal in all columns, so that it
    does not matter which of them gets which of their values. ``unit`` is the place of a dropped unit.
    """
    order, keys = _by_key(rows)
    other, their_keys = _by_key(values)
    if not np.array_equal(keys, their_keys):
        raise _rows_changed()
    rows, values = rows.take(pa.array(order)), values.take(pa.array(other))
    shared = Shared.of(words_of(values, "s"), len(encoding.coders))
    columns = list(put_back(encoding, layout.table(rows), shared).columns)
    if unit is not None:
        columns.append(rows.column(f"c{unit}"))
    cast = [c.cast(field.type) for c, field in zip(columns, schema, strict=True)]
    return pa.table(cast, schema=schema)


def _by_key(rows: pa.Table) -> tuple[Labels, Labels]:
    """Order of the keys, in which values that share a key follow each other, and the sorted keys."""
    keys = np.column_stack([rows.column(name).to_numpy() for name in ("h1", "h2")])
    more = tuple(words_of(rows, "s").T[::-1])
    order = np.lexsort((*more, keys[:, 1], keys[:, 0]))
    return order, keys[order]


def _rows_changed() -> InputError:
    """Say that a table was another one when it was read again."""
    return InputError(
        "A table is read several times and must be the same each time; rows were found that were "
        "not there before. Leave out what is random, or write the table to a file and read that."
    )


def _schema(grouped: Grouped) -> tuple[list[str], StructType, pa.Schema, int | None]:
    """Names of the released columns, their types for Spark and for Arrow, and where a dropped unit is."""
    rows, encoding, layout = grouped.parts.rows, grouped.encoding, grouped.parts.layout
    table = grouped.parts.empty()
    out = put_back(encoding, table, Shared.of_no_record(encoding))
    names, fields = list(out.column_names), list(out.schema)
    unit = None
    if encoding.unit is not None and encoding.unit not in names:
        unit = layout.names.index(encoding.unit)
        fields.append(table.schema.field(encoding.unit))
    arrow = pa.schema([pa.field(f"c{j}", field.type) for j, field in enumerate(fields)])
    found = rows.sparkSession.createDataFrame(arrow.empty_table()).schema
    # What is untouched has the very type that it had, which Arrow may not tell.
    given = dict(zip(layout.names, rows.schema.fields, strict=False))
    for at, name in enumerate([*names, *([] if unit is None else [layout.names[unit]])]):
        if arrow.field(at).type == table.schema.field(name).type:
            found.fields[at].dataType = given[name].dataType
    return names, found, arrow, unit


def measured_in_one_task(
    grouped: Grouped, measure: Callable[[Encoding, Sample], Measured]
) -> Measured:
    """Bring the sample of whole groups together in one task, and measure it there."""
    from pyspark.sql import functions as F  # noqa: N812

    encoding, layout = grouped.encoding, grouped.parts.layout
    chosen = grouped.released.where("whole_group >= 0").withColumn("bucket", F.lit(0))
    # Keys tell nothing of the records, and go to all workers, so that no row moves that is not wanted.
    keys = F.broadcast(chosen.select(F.col("h1").alias("wanted")).distinct())
    rows = _keyed_rows(grouped, 1)
    rows = rows.join(keys, F.col("h1") == F.col("wanted"), "left_semi")
    # What is known of the whole table is mostly zeros, which otherwise would have to be sent apart.
    packed = pack((encoding, measure))

    def work(rows: pa.Table, values: pa.Table) -> pa.Table:
        known, measure_it = unpack(packed)
        measured = measure_it(known, _sample(known, layout, rows, values))
        return pa.table({"packed": [pack(measured.without_records())]})

    (row,) = joined(rows, chosen, 1, work, "packed binary").collect()
    found: Measured = unpack(bytes(row.packed))
    return found


def _sample(encoding: Encoding, layout: Layout, rows: pa.Table, values: pa.Table) -> Sample:
    """Rows of whole groups, before and after."""
    own, other = _matched(rows, values)
    rows, values = rows.take(pa.array(own)), values.take(pa.array(other))
    shared = Shared.of(words_of(values, "s"), len(encoding.coders))
    before = layout.table(rows)
    labels = values.column("whole_group").to_numpy()
    return Sample(before, put_back(encoding, before, shared), None, labels, shared)


def _matched(rows: pa.Table, values: pa.Table) -> tuple[Labels, Labels]:
    """Places of rows and of their values, by key; of equal rows as many as have values here."""
    order, theirs = _by_key(rows)
    other, wanted = _by_key(values)
    both = np.concatenate([theirs, wanted])
    ranks = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    own, sought = ranks[: len(theirs)], ranks[len(theirs) :]
    at = np.searchsorted(own, sought) + np.arange(len(sought)) - np.searchsorted(sought, sought)
    if not np.array_equal(np.append(own, -1)[np.minimum(at, len(own))], sought):
        raise _rows_changed()
    return order[at], other
