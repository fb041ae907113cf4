"""A release on Spark: the rows, and the evidence for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.base.typing import Labels
from microagg.engines.aggregates import ReleasedValues, Sums, required
from microagg.engines.encoding import Encoding
from microagg.engines.evidence_at_scale import measured_at_scale
from microagg.engines.release_counts import CountedColumns, Counts, count_release
from microagg.engines.spark.on_spark import BEFORE, Grouped
from microagg.engines.spark.spark_bundles import numbers_of, packed_of
from microagg.engines.spark.spark_counts import CountsOnSpark, KeysOnSpark
from microagg.engines.spark.spark_frames import on_spark, reduced
from microagg.engines.spark.spark_rows import measured_in_one_task, released_rows
from microagg.engines.write_and_count import refuse_broken
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import CountedFile, Measured
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
from microagg.measure.verify import Verification, count_promises
from microagg.plan.plan import Plan, Promise
from microagg.plan.sections import Roles
from microagg.report.html import check_report_target, write_report
from microagg.report.model import release_model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class SparkRelease:
    """A protected Spark DataFrame, and what is known of it."""

    data: DataFrame
    """The released rows, in random order; each time they are asked for, they are the same."""
    plan: Plan
    _grouped: Grouped = field(repr=False)
    _counted: DataFrame = field(repr=False)
    """``data``, and as extra columns the units that it does not tell, see :func:`released_rows`."""

    @classmethod
    def of(cls, grouped: Grouped) -> SparkRelease:
        """Put what was grouped back into the rows; Spark does so when rows are asked for."""
        with on_spark():
            data, counted = released_rows(grouped)
        return cls(data, grouped.encoding.given or grouped.encoding.plan, grouped, counted)

    @property
    def roles(self) -> Roles:
        """Role of each column."""
        return self._grouped.roles

    @property
    def sums(self) -> Sums:
        """Sums of squares and counts over all records, by column."""
        return self._grouped.sums

    @property
    def records(self) -> int:
        """Released records."""
        return self._grouped.encoding.records

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self.sums.groups

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
        promises = self.plan.promises()
        extra = self._counted.columns[len(self.data.columns) :]
        same = data is None or not self.plan.is_swapped or self._has_rows(data)
        if data is not None and not extra:
            found = self._counted_in(data, promises)
            return tuple(replace(one, holds=one.holds and same) for one in found)
        named = promises
        if self.plan.is_swapped and extra:
            named = [p._replace(unit=name) for p, name in zip(promises, extra, strict=True)]
        counted = self._counted_in(self._counted, named)
        counted = tuple(replace(one, unit=p.unit) for one, p in zip(counted, promises, strict=True))
        if data is None:
            return counted
        in_file = self._counted_in(data, [promise._replace(unit=None) for promise in promises])
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

    def _counted_in(
        self, frame: DataFrame, promises: Sequence[Promise]
    ) -> tuple[Verification, ...]:
        """Count for all promises in some rows."""
        with on_spark():
            return tuple(count_promises(CountsOnSpark(frame), promises)[0])

    @property
    def cautions(self) -> Sequence[Caution]:
        """What to know before the table leaves the house."""
        return self.evidence.cautions

    @cached_property
    def evidence(self) -> Evidence:
        """All that is claimed, counted and measured in the released rows before they are written."""
        limited = self.plan.accept.inference is not None
        return Evidence.of(self.plan, self.measured(attack=limited))

    def measured(self, **measures: Any) -> Measured:
        """Measure; the parameters are as for :func:`microagg.engines.evidence_at_scale.measured_at_scale`."""
        grouped = self._grouped
        with on_spark():
            linked = self._link()
            measure = partial(
                measured_at_scale,
                plan=self.plan,
                summary=grouped.summary,
                sums=grouped.sums,
                counts=self._count(),
                alone=linked[None],
                with_known=linked.get("known"),
                if_claimed=linked.get("claimed"),
                **measures,
            )
            return measured_in_one_task(grouped, measure)

    def _count(self) -> Counts:
        """Count classes by the keys that records have."""
        grouped, encoding, key_of = self._grouped, self._grouped.encoding, self._grouped.key_columns
        rows = KeysOnSpark(grouped.released, records=self.records)
        typed = CountsOnSpark(self.data).typed
        at = CountedColumns(
            values=["values"],
            shared=["class" if self.plan.also_shared() else "values"],
            known=[key_of["known"]] if self.roles.known else [],
            confidential={name: key_of[name,] for name in self.roles.confidential},
            numbers=[name for name in self.roles.confidential if typed.is_numeric(name)],
            unit=None if encoding.unit is None else "unit",
            originals=[key_of[BEFORE]],
        )
        return count_release(rows, at, encoding.k)[1]

    def counted(self, part: Path, target: Path, found: Sequence[Verification]) -> CountedFile:
        """Return what was counted in a temporary file, with the figures of all requirements, if it holds."""
        met = required(self._grouped.encoding, self.sums)
        counted = CountedFile(str(target), tuple(found), sha256(part), met)
        refuse_broken(counted, target, self.records)
        return counted

    def _link(self) -> dict[str | None, Linkage]:
        """Look for the sampled records among all released ones, alone (None) and with what views add."""
        grouped = self._grouped
        sought: dict[str | None, _SoughtBy] = {None: _SoughtBy(grouped.sought._replace(known=None))}
        for view in views_of(self.roles):
            assert grouped.sought.known is not None
            column = grouped.key_columns[view]
            keys = np.ascontiguousarray(grouped.sought.known[:, int(column[1:])])
            sought[view] = _SoughtBy(grouped.sought._replace(known=keys), "class", column)
        near = reduced(grouped.released, partial(_count_near, grouped.encoding, sought), _merged)
        assert near is not None  # there are records
        return {view: linkage_of(near[view], self.records) for view in sought}

    def report(self, path: str | Path, **measures: Any) -> None:
        """Write the board's report as an HTML file, and every number of it as JSON next to it.

        ``measures`` are as for :meth:`microagg.engines.memory.release.Release.measure`.
        """
        check_report_target(Path(path))
        attacks = self.plan.is_swapped or self.plan.accept.inference is not None
        evidence = Evidence.of(self.plan, self.measured(pictures=True, attack=attacks, **measures))
        write_report(release_model(evidence), Path(path))

    def unpersist(self) -> None:
        """Let Spark forget what it keeps of this release; ``data`` is then worked out anew."""
        self._grouped.released.unpersist()


class _SoughtBy(NamedTuple):
    """Records to look for, and the columns that tell released ones from each other."""

    sought: Sought
    classes: str = "values"
    known: str | None = None


def _count_near(
    encoding: Encoding, sought: Mapping[str | None, _SoughtBy], rows: pa.Table
) -> dict[str | None, Labels]:
    """Count, for each view, the records in some bundles that are as near to each sought one as its twin."""
    packed, counts = packed_of(rows, "s"), {}
    for view, wanted in sought.items():
        classes, known = numbers_of(rows.column(wanted.classes)), np.zeros(len(packed), np.int64)
        if encoding.is_swapped:  # rows of a group differ
            classes = np.arange(len(packed))
        order = np.argsort(classes, kind="stable")
        if wanted.known is not None:
            known = numbers_of(rows.column(wanted.known))
            order = np.lexsort((known, classes))
        ordered = np.column_stack([classes, known])[order]
        begins = np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1)))
        first, sizes = order[begins], np.diff(np.append(begins, len(order)))
        shared = ReleasedValues.of(packed[first], encoding)
        keys = None if wanted.known is None else known[first].view(np.uint64)
        released = ReleasedRows(shared.values, shared.states, sizes, keys)
        counts[view] = count_near(encoding.attacker, wanted.sought, [released])
    return counts


def _merged(
    one: dict[str | None, Labels], other: dict[str | None, Labels]
) -> dict[str | None, Labels]:
    """Put together what was counted in two parts of the records."""
    return {view: merged_counts(one[view], other[view]) for view in one}
