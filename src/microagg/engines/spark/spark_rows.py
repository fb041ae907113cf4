"""The rows of a release on Spark: what records release finds its rows by their keys.

Rows of the sample that is measured never come to the driver: what comes are the measures without them.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.aggregates import ReleasedValues, dealt_columns, put_back
from microagg.engines.encoding import Encoding, PackedRows
from microagg.engines.evidence_at_scale import Sample
from microagg.engines.spark.on_spark import Grouped, buckets_of
from microagg.engines.spark.spark_bundles import bundle_schema, in_bundles, numbers_of, packed_of
from microagg.engines.spark.spark_frames import MOST_TASKS, Layout, joined, mapped, pack, unpack
from microagg.errors import InputError
from microagg.evidence.measured import Measured
from microagg.measure.row_keys import row_keys

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


_ORDER = "order"  # column of the random numbers by which rows are ordered


def released_rows(grouped: Grouped) -> tuple[DataFrame, DataFrame]:
    """Return released rows in random order, and in any order with the units that a file does not tell.

    These are the unit if it is dropped, or, of swapped values, the units that had them: one column for each
    promise.

    The order comes from a secret that is drawn here, once: a task that is done twice gives the same.
    """
    from pyspark.sql.types import LongType

    encoding, layout = grouped.encoding, grouped.parts.layout
    buckets = buckets_of(encoding)
    names, schema, arrow, unit, extra = _schema(grouped)
    schema, arrow = schema.add(_ORDER, LongType()), arrow.append(pa.field(_ORDER, pa.int64()))
    values = grouped.released.select("bucket", "h1", "h2", *released_words(grouped.released))
    work = partial(_put_back, encoding, layout, arrow, unit, secrets.token_bytes(32))
    found = joined(_keyed_rows(grouped, buckets), values, buckets, work, schema)
    spread = found.repartition(min(buckets, MOST_TASKS), _ORDER).sortWithinPartitions(_ORDER)
    data = spread.select(*found.columns[: len(names)]).toDF(*names)
    return data, found.drop(_ORDER).toDF(*names, *extra)


def released_words(released: DataFrame) -> list[str]:
    """Columns of what records release, packed."""
    return [name for name in released.columns if re.fullmatch(r"s\d+", name)]


def _keyed_rows(grouped: Grouped, buckets: int, wanted: PackedRows | None = None) -> DataFrame:
    """Return the rows of the table that are released, with their keys and buckets.

    ``wanted`` are the first halves of the keys of some rows, ascending; None: of all.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    rows, layout = grouped.parts.rows, grouped.parts.layout
    more = [StructField(name, LongType()) for name in ("h1", "h2", "bucket")]
    schema = StructType([*rows.schema.fields[: len(layout.names)], *more])
    return mapped(rows, partial(_keyed, grouped.encoding, layout, buckets, wanted), schema)


def _keyed(
    encoding: Encoding, layout: Layout, buckets: int, wanted: PackedRows | None, rows: pa.Table
) -> pa.Table:
    table = layout.with_nested_as_text(rows)
    keys = row_keys([table.column(j) for j in range(table.num_columns)])
    if wanted is not None:
        some = np.flatnonzero(np.isin(keys[:, 0], wanted))
        rows, table, keys = rows.take(pa.array(some)), table.take(pa.array(some)), keys[some]
    kept, keys = encoding.kept(table), keys.view(np.int64)
    out = rows.select([f"c{j}" for j in range(len(layout.names))])
    for at in (0, 1):
        out = out.append_column(f"h{at + 1}", pa.array(np.ascontiguousarray(keys[:, at])))
    # As chunks have it: never below 0.
    out = out.append_column("bucket", pa.array(np.mod(keys[:, 0], buckets)))
    return out if kept is None else out.filter(pa.array(kept))


def _put_back(
    encoding: Encoding,
    layout: Layout,
    schema: pa.Schema,
    unit: int | None,
    secret: bytes,
    rows: pa.Table,
    values: pa.Table,
) -> pa.Table:
    """All rows of a bucket with the values released for them, and a random number for each.

    Both are brought into the order of the keys. Rows with the same key are equal in all columns, so that it
    does not matter which of them gets which of their values. ``unit`` is the place of a dropped unit, to be
    added. The random numbers follow from the secret and the bucket, row by row in the order of the keys.
    """
    packed = packed_of(values, "s")
    order, keys = _by_key(_keys_of(rows, pa.ChunkedArray.to_numpy))
    other, their_keys = _by_key(_keys_of(values, numbers_of), packed)
    if not np.array_equal(keys, their_keys):
        raise _rows_changed()
    rows, shared = rows.take(pa.array(order)), ReleasedValues.of(packed[other], encoding)
    columns = list(put_back(encoding, layout.table(rows), shared).columns)
    if unit is not None:
        columns.append(rows.column(f"c{unit}"))
    if shared.dealt is not None:  # after the group the units that had the values
        donors = np.ascontiguousarray(shared.dealt[:, 1:].T).view(np.int64)
        columns += [pa.chunked_array([pa.array(own)]) for own in donors]
    if rows.num_rows:
        secret += int(rows.column("bucket")[0].as_py()).to_bytes(8, "little", signed=True)
    drawn = hashlib.shake_256(secret).digest(8 * rows.num_rows)
    columns.append(pa.chunked_array([np.frombuffer(drawn, np.int64)]))
    cast = [c.cast(field.type) for c, field in zip(columns, schema, strict=True)]
    return pa.table(cast, schema=schema)


def _keys_of(rows: pa.Table, read: Callable[[pa.ChunkedArray], Labels]) -> Labels:
    """Return the keys of rows, (n, 2)."""
    return np.column_stack([read(rows.column(name)) for name in ("h1", "h2")])


def _by_key(keys: Labels, packed: PackedRows | None = None) -> tuple[Labels, Labels]:
    """Order of the keys, and of the packed values of equal ones, and the sorted keys."""
    order = np.argsort(keys[:, 0], kind="stable")
    first = keys[order, 0]
    if (first[1:] == first[:-1]).any():  # equal rows, mostly
        more = () if packed is None else tuple(packed.T[::-1])
        order = np.lexsort((*more, keys[:, 1], keys[:, 0]))
    return order, keys[order]


def _rows_changed() -> InputError:
    """Say that a table was another one when it was read again."""
    return InputError(
        "A table is read several times and must be the same each time; rows were found that were "
        "not there before. Leave out what is random, or write the table to a file and read that."
    )


def _schema(
    grouped: Grouped,
) -> tuple[list[str], StructType, pa.Schema, int | None, list[str]]:
    """Return names of the released columns, and types of these and of extra columns for Spark and for Arrow.

    Also where a dropped unit is, if it is an extra column, and the names of the extra columns.
    """
    rows, encoding, layout = grouped.parts.rows, grouped.encoding, grouped.parts.layout
    table = grouped.parts.empty()
    out = put_back(encoding, table, ReleasedValues.of_no_record(encoding))
    names, fields = list(out.column_names), list(out.schema)
    unit, extra = None, list[str]()
    if encoding.is_swapped:
        for _, name in dealt_columns(encoding)[1:]:
            extra.append(f"unit of {name}")
            while extra[-1] in (*names, *extra[:-1]):
                extra[-1] += "_"
            fields.append(pa.field(extra[-1], pa.int64()))
    elif encoding.unit is not None and encoding.unit not in names:
        unit = layout.names.index(encoding.unit)
        extra.append(encoding.unit)
        fields.append(table.schema.field(encoding.unit))
    arrow = pa.schema([pa.field(f"c{j}", field.type) for j, field in enumerate(fields)])
    found = rows.sparkSession.createDataFrame(arrow.empty_table()).schema
    # What is untouched has the very type that it had, which Arrow may not tell.
    given = dict(zip(layout.names, rows.schema.fields, strict=False))
    for at, name in enumerate([*names, *([] if unit is None else extra)]):
        if arrow.field(at).type == table.schema.field(name).type:
            found.fields[at].dataType = given[name].dataType
    return names, found, arrow, unit, extra


def measured_in_one_task(
    grouped: Grouped, measure: Callable[[Encoding, Sample], Measured]
) -> Measured:
    """Bring the sample of whole groups together in one task, and measure it there."""
    encoding, layout = grouped.encoding, grouped.parts.layout
    names = ["h1", "h2", "whole_group", *released_words(grouped.released)]
    schema = bundle_schema(names, "bucket")
    chosen = mapped(grouped.released.select(*names), partial(_in_whole_groups, names), schema)
    # Keys tell nothing of the records, and go to all workers, so that no row moves that is not wanted.
    rows = _keyed_rows(grouped, 1, grouped.sampled)
    # What is known of the whole table is mostly zeros, which otherwise would have to be sent apart.
    packed = pack((encoding, measure))

    def work(rows: pa.Table, values: pa.Table) -> pa.Table:
        known, measure_it = unpack(packed)
        measured = measure_it(known, _sample(known, layout, rows, values))
        return pa.table({"packed": [pack(measured.without_records())]})

    (row,) = joined(rows, chosen, 1, work, "packed binary").collect()
    measured: Measured = unpack(bytes(row.packed))
    return measured


def _in_whole_groups(names: Sequence[str], rows: pa.Table) -> pa.Table:
    """Choose the records in the sample of whole groups."""
    columns = {name: numbers_of(rows.column(name)) for name in names}
    wanted = columns["whole_group"] >= 0
    return in_bundles({name: own[wanted] for name, own in columns.items()}, way="bucket")


def _sample(encoding: Encoding, layout: Layout, rows: pa.Table, values: pa.Table) -> Sample:
    """Rows of whole groups, before and after."""
    packed = packed_of(values, "s")
    own, other = _matched(rows, values, packed)
    shared = ReleasedValues.of(packed[other], encoding)
    before = layout.table(rows.take(pa.array(own)))
    labels = numbers_of(values.column("whole_group"))[other]
    return Sample(before, put_back(encoding, before, shared), None, labels, shared)


def _matched(rows: pa.Table, values: pa.Table, packed: PackedRows) -> tuple[Labels, Labels]:
    """Places of rows and of their values, by key; of equal rows as many as have values here."""
    order, theirs = _by_key(_keys_of(rows, pa.ChunkedArray.to_numpy))
    other, wanted = _by_key(_keys_of(values, numbers_of), packed)
    both = np.concatenate([theirs, wanted])
    ranks = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    own, sought = ranks[: len(theirs)], ranks[len(theirs) :]
    at = np.searchsorted(own, sought) + np.arange(len(sought)) - np.searchsorted(sought, sought)
    if not np.array_equal(np.append(own, -1)[np.minimum(at, len(own))], sought):
        raise _rows_changed()
    return order[at], other
