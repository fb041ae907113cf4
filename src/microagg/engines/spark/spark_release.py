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
from microagg.engines.aggregates import (
    ReleasedValues,
    dealt_columns,
    n_released,
    put_back,
    required,
)
from microagg.engines.encoding import Encoding, PackedRows
from microagg.engines.evidence_at_scale import Sample, measured_at_scale
from microagg.engines.release_counts import CountedColumns, count_release
from microagg.engines.spark.on_spark import BEFORE, Grouped, buckets_of
from microagg.engines.spark.spark_counts import CountsOnSpark, KeysOnSpark
from microagg.engines.spark.spark_frames import (
    MOST_TASKS,
    Layout,
    bundle_schema,
    in_bundles,
    joined,
    mapped,
    numbers_of,
    on_spark,
    pack,
    packed_of,
    reduced,
    unpack,
)
from microagg.engines.write_and_count import counted_file
from microagg.errors import InputError
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import CountedFile, Counts, Measured
from microagg.evidence.sentences import Caution
from microagg.formats.atomic import sha256
from microagg.measure.known_columns import views_of
from microagg.measure.linkage import (
    Linkage,
    ReleasedRows,
    Sought,
    count_near,
    linkage_of,
    merged_counts,
)
from microagg.measure.row_keys import row_keys
from microagg.measure.verify import Verification, count_promises
from microagg.plan.plan import Plan, Promise
from microagg.report.html import check_report_target, write_report
from microagg.report.model import release_model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

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

        units = dict(zip(dealt_columns(self.grouped.encoding)[1:], extra, strict=False))

        def counted_in(frame: DataFrame, promises: Sequence[Promise]) -> list[Verification]:
            with on_spark():
                told = units if frame is self._counted else {}
                return count_promises(CountsOnSpark(frame, told), promises)[0]

        same = data is None or not self.plan.is_swapped or self._has_rows(data)
        if data is not None and not extra:
            verified = counted_in(data, promises)
            return tuple(replace(one, holds=one.holds and same) for one in verified)
        counted = counted_in(self._counted, promises)
        if data is None:
            return tuple(counted)
        in_file = counted_in(data, [promise._replace(unit=None) for promise in promises])
        return tuple(
            replace(
                here,
                holds=same
                and here.holds
                and there.holds
                and (here.records, here.combinations) == (there.records, there.combinations),
            )
            for here, there in zip(counted, in_file, strict=True)
        )

    def _has_rows(self, data: DataFrame) -> bool:
        """Return whether some rows are the released ones by their promised columns, in any order."""
        from pyspark.sql import functions

        names = dict.fromkeys(n for promise in self.plan.promises() for n in promise.columns or ())
        quoted = ["`" + str(name).replace("`", "``") + "`" for name in names]
        total = functions.sum(functions.xxhash64(*quoted).cast("decimal(38,0)"))
        with on_spark():
            here, there = (
                frame.select(total, functions.count("*")).first() for frame in (self._counted, data)
            )
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
                plan=self.plan,
                summary=grouped.summary,
                sums=grouped.sums,
                counts=self._count(),
                linked=_linked(grouped),
                **measures,
            )
            return measured_in_one_task(grouped, measure)

    def _count(self) -> Counts:
        """Count classes by the keys that records have."""
        grouped, encoding, key_of = self.grouped, self.grouped.encoding, self.grouped.key_columns
        rows, roles = KeysOnSpark(grouped.released, records=encoding.records), grouped.roles
        typed = CountsOnSpark(self.data).typed
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

    def counted(self, part: Path, target: Path, verified: Sequence[Verification]) -> CountedFile:
        """Return what was counted in a temporary file, with the figures of all requirements, if it holds."""
        encoding, sums = self.grouped.encoding, self.grouped.sums
        met = required(encoding, sums)
        return counted_file(target, verified, sha256(part), met, encoding.records)

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
    encoding, sampled = grouped.encoding, grouped.sought
    # The records to look for, and the columns of keys that tell released ones from each other.
    sought: dict[str | None, tuple[Sought, str, str | None]]
    sought = {None: (sampled._replace(known=None), "values", None)}
    for view in views_of(grouped.roles):
        assert sampled.known is not None
        column = grouped.key_columns[view]
        keys = np.ascontiguousarray(sampled.known[:, int(column[1:])])
        sought[view] = sampled._replace(known=keys), "class", column

    def counted(rows: pa.Table) -> dict[str | None, Labels]:
        """Count the records in some bundles that are as near to each sought one as its twin."""
        packed, counts = packed_of(rows, "s"), {}
        for view, (wanted, class_column, known_column) in sought.items():
            classes, known = numbers_of(rows.column(class_column)), np.zeros(len(packed), np.int64)
            if encoding.is_swapped:  # rows of a group differ
                classes = np.arange(len(packed))
            if known_column is not None:
                known = numbers_of(rows.column(known_column))
            order = np.lexsort((known, classes))
            ordered = np.column_stack([classes, known])[order]
            begins = np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1)))
            first, sizes = order[begins], np.diff(np.append(begins, len(order)))
            shared = ReleasedValues.of(packed[first], encoding)
            keys = None if known_column is None else known[first].view(np.uint64)
            released = ReleasedRows(shared.values, shared.states, sizes, keys)
            counts[view] = count_near(encoding.attacker, wanted, [released])
        return counts

    def merged(
        one: dict[str | None, Labels], other: dict[str | None, Labels]
    ) -> dict[str | None, Labels]:
        return {view: merged_counts(one[view], other[view]) for view in one}

    near = reduced(grouped.released, counted, merged)
    assert near is not None  # there are records
    return {view: linkage_of(near[view], encoding.records) for view in sought}


def _released_rows(grouped: Grouped) -> tuple[DataFrame, DataFrame]:
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
    words = [name for name in grouped.released.columns if name[0] == "s"]
    values = grouped.released.select("bucket", "h1", "h2", *words)
    work = partial(_put_back, encoding, layout, arrow, unit, secrets.token_bytes(32))
    rows = joined(_keyed_rows(grouped, buckets), values, buckets, work, schema)
    spread = rows.repartition(min(buckets, MOST_TASKS), _ORDER).sortWithinPartitions(_ORDER)
    data = spread.select(*rows.columns[: len(names)]).toDF(*names)
    return data, rows.drop(_ORDER).toDF(*names, *extra)


def _keyed_rows(grouped: Grouped, buckets: int, wanted: PackedRows | None = None) -> DataFrame:
    """Return the rows of the table that are released, with their keys and buckets.

    ``wanted`` are the first halves of the keys of some rows, ascending; None: of all.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    parts, encoding, layout = grouped.parts, grouped.encoding, grouped.parts.layout
    more = [StructField(name, LongType()) for name in ("h1", "h2", "bucket")]
    schema = StructType([*parts.rows.schema.fields[: len(layout.names)], *more])

    def keyed(rows: pa.Table) -> pa.Table:
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

    return mapped(parts.rows, keyed, schema)


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
    nothing = ReleasedValues.of(np.zeros((0, n_released(encoding)), np.uint64), encoding)
    out = put_back(encoding, table, nothing)
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
    types = rows.sparkSession.createDataFrame(arrow.empty_table()).schema
    # What is untouched has the very type that it had, which Arrow may not tell.
    given = dict(zip(layout.names, rows.schema.fields, strict=False))
    for at, name in enumerate([*names, *([] if unit is None else extra)]):
        if arrow.field(at).type == table.schema.field(name).type:
            types.fields[at].dataType = given[name].dataType
    return names, types, arrow, unit, extra


def measured_in_one_task(
    grouped: Grouped, measure: Callable[[Encoding, Sample], Measured]
) -> Measured:
    """Bring the sample of whole groups together in one task, and measure it there."""
    encoding, layout = grouped.encoding, grouped.parts.layout
    words = [name for name in grouped.released.columns if name[0] == "s"]
    names = ["h1", "h2", "whole_group", *words]

    def of_whole_groups(rows: pa.Table) -> pa.Table:
        columns = {name: numbers_of(rows.column(name)) for name in names}
        wanted = columns["whole_group"] >= 0
        columns = {name: column[wanted] for name, column in columns.items()}
        return in_bundles(columns, way="bucket")

    schema = bundle_schema(names, "bucket")
    chosen = mapped(grouped.released.select(*names), of_whole_groups, schema)
    # Keys tell nothing of the records, and go to all workers, so that no row moves that is not wanted.
    rows = _keyed_rows(grouped, 1, grouped.sampled)
    # What is known of the whole table is mostly zeros, which otherwise would have to be sent apart.
    packed_work = pack((encoding, measure))

    def work(rows: pa.Table, values: pa.Table) -> pa.Table:
        known, measure_it = unpack(packed_work)
        packed = packed_of(values, "s")
        before_at, after_at = _matched(rows, values, packed)
        shared = ReleasedValues.of(packed[after_at], known)
        before = layout.table(rows.take(pa.array(before_at)))
        labels = numbers_of(values.column("whole_group"))[after_at]
        sample = Sample(before, put_back(known, before, shared), None, labels, shared)
        return pa.table({"packed": [pack(measure_it(known, sample).without_records())]})

    (row,) = joined(rows, chosen, 1, work, "packed binary").collect()
    measured: Measured = unpack(bytes(row.packed))
    return measured


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
