"""A release on Spark: the rows, which find what they release by their keys, and the evidence for them.

Rows of the sample that is measured never come to the driver: what comes are the measures without them.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.aggregates import ReleasedValues, dealt_columns, n_released, put_back
from microagg.engines.encoding import Encoding, PackedRows
from microagg.engines.evidence_at_scale import Sample, measured_at_scale
from microagg.engines.release_counts import CountedColumns, count_release
from microagg.engines.spark.on_spark import BEFORE, Grouped, buckets_of
from microagg.engines.spark.spark_counts import CountsOnSpark, KeysOnSpark
from microagg.engines.spark.spark_frames import (
    MOST_TASKS,
    bundle_schema,
    in_bundles,
    joined,
    mapped,
    matrix_of,
    named,
    nested_as_text,
    on_spark,
    pack,
    reduced,
    unpack,
)
from microagg.errors import InputError
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import Counts, Measured
from microagg.evidence.sentences import Caution
from microagg.measure.known_columns import views_of
from microagg.measure.linkage import Linkage, ReleasedRows, count_near, linkage_of, merged_counts
from microagg.measure.row_keys import row_keys
from microagg.measure.verify import Verification, count_promises
from microagg.plan.plan import Plan
from microagg.report.html import check_report_target, write_report
from microagg.report.model import release_model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ORDER = "order"  # column of the random numbers by which rows are ordered


@dataclass(frozen=True, eq=False)
class SparkRelease:
    """A protected Spark DataFrame, and what is known of it."""

    data: DataFrame
    """The released rows, in random order; each time they are asked for, they are the same."""
    plan: Plan
    grouped: Grouped = field(repr=False)
    """Groups, figures and what records release."""
    _counted: DataFrame = field(repr=False)
    """``data``, and as extra columns the units that it does not tell, see :func:`_released_rows`."""

    @classmethod
    def of(cls, grouped: Grouped) -> SparkRelease:
        """Put what was grouped back into the rows; Spark does so when rows are asked for."""
        with on_spark():
            data, counted = _released_rows(grouped)
        return cls(data, grouped.encoding.given or grouped.encoding.plan, grouped, counted)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.grouped.sums.groups.number

    @property
    def information_loss(self) -> float:
        """What was lost, in percent, as the evidence has it."""
        return self.evidence.utility.information_loss

    def verify(self, data: DataFrame | None = None) -> tuple[Verification, ...]:
        """Count in the released rows, or in what was read back from a file, whether the promise holds.

        If the unit is dropped, or values are swapped, a file does not tell the units that share a value:
        units are counted in the rows then, and that the file has the same combinations, as many and of as
        many records. If values are swapped, the file must have the same rows of protected values, and so in
        each group the lists that were dealt.
        """
        promises, extra = self.plan.promises(), self._counted.columns[len(self.data.columns) :]
        frame = self._counted if data is None or extra else data
        units = dict(zip(dealt_columns(self.grouped.encoding)[1:], extra, strict=False))
        with on_spark():
            counted = in_file = count_promises(CountsOnSpark(frame, units), promises)[0]
            if data is None:
                return tuple(counted)
            same = not self.plan.is_swapped or self._has_rows(data)
            if extra:
                of_records = [promise._replace(unit=None) for promise in promises]
                in_file = count_promises(CountsOnSpark(data), of_records)[0]
        verified = []
        for here, there in zip(counted, in_file, strict=True):
            alike = (here.records, here.combinations) == (there.records, there.combinations)
            verified.append(replace(here, holds=same and alike and here.holds and there.holds))
        return tuple(verified)

    def _has_rows(self, data: DataFrame) -> bool:
        """Return whether some rows are the released ones by their promised columns, in any order."""
        from pyspark.sql import functions

        names = dict.fromkeys(n for promise in self.plan.promises() for n in promise.columns or ())
        quoted = ["`" + str(name).replace("`", "``") + "`" for name in names]
        total = functions.sum(functions.xxhash64(*quoted).cast("decimal(38,0)"))
        both = (self._counted, data)
        here, there = (frame.select(total, functions.count("*")).first() for frame in both)
        return bool(here == there)

    @property
    def cautions(self) -> Sequence[Caution]:
        """What to know before the table leaves the house."""
        return self.evidence.cautions

    @cached_property
    def evidence(self) -> Evidence:
        """All that is claimed, counted and measured in the released rows before they are written."""
        return Evidence.of(self.plan, self.measured())

    def measured(self, **measures: Any) -> Measured:
        """Measure; the parameters are as for :func:`microagg.engines.evidence_at_scale.measured_at_scale`."""
        grouped = self.grouped
        with on_spark():
            measure = partial(
                measured_at_scale,
                summary=grouped.summary,
                sums=grouped.sums,
                counts=self._count(),
                linked=_linked(grouped),
                **measures,
            )
            return measured_in_one_task(grouped, measure)

    def _count(self) -> Counts:
        """Count classes by the keys that records have."""
        grouped, roles, key_of = self.grouped, self.grouped.roles, self.grouped.key_columns
        encoding, typed = grouped.encoding, CountsOnSpark(self.data).typed
        rows = KeysOnSpark(grouped.released, {}, grouped.keys, encoding.records)
        at = CountedColumns(
            values=["values"],
            shared=["class" if self.plan.also_shared() else "values"],
            known=[key_of["known"]] if roles.known else [],
            confidential={name: key_of[name,] for name in roles.confidential},
            numbers=[name for name in roles.confidential if typed.is_numeric(name)],
            unit=None if encoding.unit is None else "unit",
            originals=[key_of[BEFORE]],
        )
        return count_release(rows, at, encoding.k)[1]

    def report(self, path: str | Path, **measures: Any) -> None:
        """Write the board's report as an HTML file, and every number of it as JSON next to it.

        ``measures`` are as for :meth:`microagg.engines.memory.release.Release.measure`.
        """
        check_report_target(Path(path))
        evidence = Evidence.of(self.plan, self.measured(pictures=True, **measures))
        write_report(release_model(evidence), Path(path))

    def unpersist(self) -> None:
        """Let Spark forget what it keeps of this release; ``data`` is then worked out anew."""
        self.grouped.released.unpersist()


def _linked(grouped: Grouped) -> dict[str | None, Linkage]:
    """Look for the sampled records among all released ones, alone (None) and with what views add."""
    encoding, sought, n_keys = grouped.encoding, grouped.sought, len(grouped.keys)
    views = views_of(grouped.roles)
    columns = [grouped.keys.index(grouped.key_columns[view]) for view in views]

    def counted(rows: pa.Table) -> Labels:
        """Count, by view, the records in some bundles that are as near to each sought one as its twin."""
        keys = matrix_of(rows["keys"], n_keys)
        values, states = ReleasedValues.of(_read_released(rows, encoding)[:, 2:], encoding)[:2]
        alone = ReleasedRows(values, states)
        counts = [count_near(encoding.attacker, sought._replace(known=None), [alone])]
        for view, column in enumerate(columns):
            wanted = sought._replace(known=sought.known[:, view])
            known = alone._replace(known=keys[:, column])
            counts.append(count_near(encoding.attacker, wanted, [known]))
        return np.array(counts)

    near = reduced(grouped.released, counted, merged_counts)
    assert near is not None  # there are records
    linked = [linkage_of(counts, encoding.records) for counts in near]
    return dict(zip([None, *views], linked, strict=True))


def _read_released(rows: pa.Table, encoding: Encoding) -> PackedRows:
    """Return the key of each record in some bundles, in two columns, and what the record releases."""
    return matrix_of(rows["released"], 2 + n_released(encoding))


def _released_rows(grouped: Grouped) -> tuple[DataFrame, DataFrame]:
    """Return released rows in random order, and in any order with the units that a file does not tell.

    These are the unit if it is dropped, or, of swapped values, the units that had them: one column for each
    promise.

    The order comes from a secret that is drawn here, once: a task that is done twice gives the same.
    """
    from pyspark.sql.types import LongType

    parts, encoding, buckets = grouped.parts, grouped.encoding, buckets_of(grouped.encoding)
    table = parts.empty()
    nothing = ReleasedValues.of(np.zeros((0, n_released(encoding)), np.uint64), encoding)
    out = put_back(encoding, table, nothing)
    names, fields = list(out.column_names), list(out.schema)
    unit, extra = None, list[str]()  # where a dropped unit is, and the names of extra columns
    if encoding.is_swapped:
        for _, name in dealt_columns(encoding)[1:]:
            extra.append(f"unit of {name}")
            while extra[-1] in (*names, *extra[:-1]):
                extra[-1] += "_"
            fields.append(pa.field(extra[-1], pa.int64()))
    elif encoding.unit is not None and encoding.unit not in names:
        unit = parts.names.index(encoding.unit)
        extra.append(encoding.unit)
        fields.append(table.schema.field(encoding.unit))
    arrow = pa.schema([pa.field(f"c{j}", field.type) for j, field in enumerate(fields)])
    schema = parts.rows.sparkSession.createDataFrame(arrow.empty_table()).schema
    # What is untouched has the very type that it had, which Arrow may not tell.
    types_given = dict(zip(parts.names, parts.rows.schema.fields, strict=True))
    for at, name in enumerate([*names, *([] if unit is None else extra)]):
        if arrow.field(at).type == table.schema.field(name).type:
            schema.fields[at].dataType = types_given[name].dataType
    schema, arrow = schema.add(_ORDER, LongType()), arrow.append(pa.field(_ORDER, pa.int64()))
    values = grouped.released.select("way", "released")
    work = partial(_put_back, encoding, parts.names, arrow, unit, secrets.token_bytes(32))
    rows = joined(_keyed_rows(grouped, buckets), values, buckets, work, schema)
    spread = rows.repartition(min(buckets, MOST_TASKS), _ORDER).sortWithinPartitions(_ORDER)
    data = spread.select(*rows.columns[: len(names)]).toDF(*names)
    return data, rows.drop(_ORDER).toDF(*names, *extra)


def _keyed_rows(grouped: Grouped, buckets: int, wanted: PackedRows | None = None) -> DataFrame:
    """Return the rows of the table that are released, with their keys and buckets.

    ``wanted`` are the first halves of the keys of some rows, ascending; None: of all.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    parts, encoding, names = grouped.parts, grouped.encoding, grouped.parts.names
    more = [StructField(name, LongType()) for name in ("h1", "h2", "way")]
    schema = StructType([*parts.rows.schema.fields, *more])

    def keyed(rows: pa.Table) -> pa.Table:
        table = nested_as_text(named(rows, names))
        keys = row_keys([table.column(j) for j in range(table.num_columns)])
        if wanted is not None:
            some = np.flatnonzero(np.isin(keys[:, 0], wanted))
            rows, table, keys = rows.take(pa.array(some)), table.take(pa.array(some)), keys[some]
        kept, (first, second) = encoding.kept(table), np.ascontiguousarray(keys.view(np.int64).T)
        # Buckets are those that chunks have: never below 0.
        for name, column in (("h1", first), ("h2", second), ("way", np.mod(first, buckets))):
            rows = rows.append_column(name, pa.array(column))
        return rows if kept is None else rows.filter(pa.array(kept))

    return mapped(parts.rows, keyed, schema)


def _put_back(
    encoding: Encoding,
    names: list[str],
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
    keys, packed = _keys_of(rows), _read_released(values, encoding)
    order, theirs = _by_key(keys), _by_key(packed)
    if not np.array_equal(keys[order], packed[theirs, :2]):
        raise InputError(_ROWS_CHANGED)
    rows, shared = rows.take(pa.array(order)), ReleasedValues.of(packed[theirs, 2:], encoding)
    columns = list(put_back(encoding, named(rows, names), shared).columns)
    if unit is not None:
        columns.append(rows.column(f"c{unit}"))
    if shared.dealt is not None:  # after the group the units that had the values
        donors = np.ascontiguousarray(shared.dealt[:, 1:].T).view(np.int64)
        columns += [pa.chunked_array([pa.array(own)]) for own in donors]
    if rows.num_rows:
        secret += int(rows.column("way")[0].as_py()).to_bytes(8, "little", signed=True)
    drawn = hashlib.shake_256(secret).digest(8 * rows.num_rows)
    columns.append(pa.chunked_array([np.frombuffer(drawn, np.int64)]))
    cast = [c.cast(field.type) for c, field in zip(columns, schema, strict=True)]
    return pa.table(cast, schema=schema)


def _keys_of(rows: pa.Table) -> PackedRows:
    """Return the keys of rows, (n, 2)."""
    return np.column_stack([rows.column(name).to_numpy() for name in ("h1", "h2")]).view(np.uint64)


def _by_key(packed: PackedRows) -> Labels:
    """Return the order of rows by their keys, which come first, and equal ones by what follows."""
    return np.lexsort(packed.T[::-1])


_ROWS_CHANGED = (
    "A table is read several times and must be the same each time; rows were found that were not there "
    "before. Leave out what is random, or write the table to a file and read that."
)


def measured_in_one_task(
    grouped: Grouped, measure: Callable[[Encoding, Sample], Measured]
) -> Measured:
    """Bring the sample of whole groups together in one task, and measure it there."""
    encoding, given, names = grouped.encoding, grouped.parts.names, grouped.keys

    def of_whole_groups(rows: pa.Table) -> pa.Table:
        groups = matrix_of(rows["keys"], len(names))[:, names.index("whole_group")]
        wanted = groups.view(np.int64) >= 0
        released = _read_released(rows, encoding)[wanted]
        return in_bundles(released=released, group=groups[wanted][:, None])

    schema = bundle_schema("released", "group")
    chosen = mapped(grouped.released, of_whole_groups, schema)
    # Keys tell nothing of the records, and go to all workers, so that no row moves that is not wanted.
    rows = _keyed_rows(grouped, 1, grouped.sampled)
    # What is known of the whole table is mostly zeros, which otherwise would have to be sent apart.
    packed_work = pack((encoding, measure))

    def work(rows: pa.Table, values: pa.Table) -> pa.Table:
        known, measure_it = unpack(packed_work)
        packed = _read_released(values, known)
        before_at, after_at = _matched(_keys_of(rows), packed)
        shared = ReleasedValues.of(packed[after_at, 2:], known)
        before = named(rows.take(pa.array(before_at)), given)
        labels = matrix_of(values["group"], 1)[after_at, 0].view(np.int64)
        sample = Sample(before, put_back(known, before, shared), None, labels, shared)
        return pa.table({"packed": [pack(measure_it(known, sample).without_records())]})

    (row,) = joined(rows, chosen, 1, work, "packed binary").collect()
    measured: Measured = unpack(bytes(row.packed))
    return measured


def _matched(keys: PackedRows, packed: PackedRows) -> tuple[Labels, Labels]:
    """Places of rows and of their values, by key; of equal rows as many as have values here."""
    order, other = _by_key(keys), _by_key(packed)
    both = np.concatenate([keys[order], packed[other, :2]])
    ranks = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    own, sought = ranks[: len(keys)], ranks[len(keys) :]
    at = np.searchsorted(own, sought) + np.arange(len(sought)) - np.searchsorted(sought, sought)
    if not np.array_equal(np.append(own, -1)[np.minimum(at, len(own))], sought):
        raise InputError(_ROWS_CHANGED)
    return order[at], other
