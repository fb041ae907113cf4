"""A release on Spark: the rows, and the evidence for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import Counted, Measured
from microagg.evidence.sentences import Caution
from microagg.measure.linkage import Linkage, estimated
from microagg.plan import Plan, Roles
from microagg.report.html import check_report_target, write_report
from microagg.report.model import release_model
from microagg.scale_out.aggregates import Sums
from microagg.scale_out.agreeing import Agreeing
from microagg.scale_out.sampled import Counts, required
from microagg.scale_out.spark import Grouped, on_spark, rules_of
from microagg.scale_out.spark_counts import (
    ClassCounts,
    count_agreeing,
    count_by,
    count_classes,
    count_shared,
)
from microagg.scale_out.spark_evidence import Asked, gather
from microagg.scale_out.workers_release import Rivals
from microagg.verify import Verification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkRelease"]


@dataclass(frozen=True, eq=False)
class SparkRelease:
    """A protected Spark DataFrame, and what is known of it."""

    data: DataFrame
    """The released rows, in any order; each time they are asked for, they are the same."""
    plan: Plan
    _grouped: Grouped = field(repr=False)
    _counted: DataFrame = field(repr=False)
    """``data``, and the unit beside it if that is dropped."""

    @classmethod
    def of(cls, grouped: Grouped) -> SparkRelease:
        """Put what was grouped back into the rows; Spark does so when rows are asked for."""
        with on_spark():
            data, counted = grouped.rows()
        return cls(data, grouped.recipe.given or grouped.recipe.plan, grouped, counted)

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
        return self._grouped.recipe.records

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

        If the unit is dropped, a file does not tell it: units are counted in the rows then, and that the file
        has the same combinations, as many and of as many records.
        """
        (promise,) = self.plan.promises()
        if data is None or len(self._counted.columns) == len(self.data.columns):
            return (count_shared(self._counted if data is None else data, promise),)
        here = count_shared(self._counted, promise)
        there = count_shared(data, promise._replace(unit=None))
        same = (here.records, here.combinations) == (there.records, there.combinations)
        return (replace(here, holds=here.holds and there.holds and same),)

    @cached_property
    def _classes(self) -> tuple[ClassCounts, ClassCounts]:
        """Classes alone and with known columns."""
        recipe, frame = self._grouped.recipe, self._grouped.released
        unit = None if recipe.unit is None else "unit"
        alone = count_classes(frame, ["values"], unit, recipe.k)
        if not self.roles.known:
            return alone, alone
        return alone, count_classes(frame, ["class", "known"], unit, recipe.k)

    @property
    def cautions(self) -> Sequence[Caution]:
        """What to know before the table leaves the house."""
        return self.evidence.cautions

    @cached_property
    def evidence(self) -> Evidence:
        """All that is claimed, counted and measured in the released rows before they are written."""
        return Evidence(self.plan, self.measured())

    def measured(self, **measures: Any) -> Measured:
        """Measure; the parameters are as for :func:`microagg.scale_out.sampled.measured_at_scale`."""
        known = bool(self.roles.known)
        alone, with_known = self._classes
        counts = Counts(
            self._pairs_of(alone),
            alone.below_k,
            self._pairs_of(with_known) if known else None,
            with_known.below_k if known else 0,
            self._grouped.unique_before,
        )
        with on_spark():
            if self.roles.confidential:
                claimed = self._count_claimed(*self.roles.confidential)
                counts = counts._replace(
                    claimed=self._pairs_of(claimed),
                    claimed_below_k=claimed.below_k,
                    stakes={
                        name: self._count_claimed(name).below_k for name in self.roles.confidential
                    },
                    agreeing=self._agreeing(),
                )
            linkage = self._link(False), self._link(True) if known else None
            return gather(self._grouped, Asked(counts, linkage, measures))

    def _agreeing(self) -> dict[str, Agreeing]:
        """Records whose class, told apart by known columns where k holds with them, agrees."""
        (promise,) = self.plan.promises()
        _, with_known = self._classes
        by = [*(promise.columns or ()), *([] if with_known.below_k else self.roles.known)]
        return count_agreeing(self.data, list(dict.fromkeys(by)), list(self.roles.confidential))

    def _count_claimed(self, *confidential: str) -> ClassCounts:
        """Classes of records, if confidential columns were known beside the known ones."""
        recipe = self._grouped.recipe
        (promise,) = self.plan.promises()
        by = [*(promise.columns or ()), *self.roles.known]
        by = list(dict.fromkeys([*by, *confidential]))
        return count_by(self._counted, by, recipe.unit, recipe.k)

    def counted(self, path: str, sha256: str, verification: Sequence[Verification]) -> Counted:
        """Tell what was counted in what was written, with the figures of all requirements."""
        found = required(rules_of(self._grouped.recipe), self.sums)
        return Counted(path, tuple(verification), sha256, found)

    def _pairs_of(self, found: ClassCounts) -> Verification:
        """Classes as a promise of two records finds them: those below are unique."""
        return Verification(
            holds=not found.unique,
            k=2,
            columns=[],
            records=found.records,
            combinations=found.classes,
            smallest=found.smallest,
            records_below_k=found.unique,
        )

    def _link(self, with_known: bool) -> Linkage:
        """Look for the sampled records among what all release."""
        from pyspark.sql import functions as F  # noqa: N812

        grouped = self._grouped
        known = with_known and bool(self.roles.known)
        frame, by = grouped.released, ["class", "known"] if known else ["values"]
        if known:
            wanted = np.ascontiguousarray(grouped.seen.known[:, 0]).view(np.int64)
            frame = frame.where(frame.known.isin(np.unique(wanted).tolist()))
        words = [name for name in frame.columns if name[0] == "s" and name[1:].isdigit()]
        classes = frame.groupBy(*by).agg(
            F.count(F.lit(1)).alias("records"), *(F.first(name).alias(name) for name in words)
        )
        rivals = classes.mapInArrow(
            Rivals(grouped.recipe, grouped.seen, known), "row long, nearer long, as_near long"
        )
        rows = rivals.groupBy("row").agg(F.sum("nearer"), F.sum("as_near")).collect()
        credit = np.array([0.0 if nearer else 1 / as_near for _, nearer, as_near in rows])
        return estimated(credit, self.records)

    def report(self, path: str | Path, **measures: Any) -> None:
        """Write the board's report as an HTML file, and every number of it as JSON beside it.

        ``measures`` are as for :meth:`microagg.release.Release.measure`.
        """
        check_report_target(Path(path))
        found = Evidence(self.plan, self.measured(pictures=True, **measures))
        write_report(release_model(found), Path(path))

    def unpersist(self) -> None:
        """Let Spark forget what it keeps of this release; ``data`` is then worked out anew."""
        self._grouped.released.unpersist()
