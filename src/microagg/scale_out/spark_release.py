"""A release on Spark: the rows, and the evidence for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from microagg.cautions import about_plan, found_by_known
from microagg.evidence import Verdict
from microagg.findings import Caution, Counted, Required, Threshold, thresholds_of
from microagg.measure.known import KnownRisk
from microagg.measure.linkage import Linkage, estimated
from microagg.measure.summaries import Summary
from microagg.plan import Plan, Roles
from microagg.report.html import check_report_target
from microagg.scale_out.aggregates import Sums
from microagg.scale_out.losses import Loss, loss_of
from microagg.scale_out.sampled import Counts, required
from microagg.scale_out.spark import Grouped, on_spark, rules_of
from microagg.scale_out.spark_counts import ClassCounts, count_classes, count_shared
from microagg.scale_out.spark_report import report_of
from microagg.scale_out.workers_release import Rivals
from microagg.tables.atomic import replacing_all
from microagg.usable import about_use
from microagg.verify import Verification

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["SparkEvidence", "SparkRelease"]


@dataclass(frozen=True)
class SparkEvidence:
    """What is claimed about a release on Spark."""

    verification: tuple[Verification, ...]
    """The promise, counted in the released rows."""
    records: int
    groups: int
    information_loss: float
    """100·SSE/SST of the released values, in percent."""
    group_loss: float
    """The same if each group released its exact centroid."""
    alone: KnownRisk
    """For an attacker who knows the protected columns."""
    with_known: KnownRisk
    """For one who knows the columns left as they are as well."""
    cautions: tuple[Caution, ...]
    required: tuple[Required, ...]
    """What groups satisfy beside k, with the figure of the worst."""
    thresholds: tuple[Threshold, ...]
    """What the plan accepts, and whether the release keeps to it."""
    roles: Roles

    @property
    def holds(self) -> bool:
        """Whether every promise holds."""
        return all(one.holds for one in self.verification) and all(r.passed for r in self.required)

    @property
    def verdict(self) -> Verdict:
        """Green only if k holds for the protected columns alone and with all that is known."""
        if not self.holds or not all(one.passed for one in self.thresholds):
            return "red"
        amber = any(caution.severity == "amber" for caution in self.cautions)
        return "amber" if amber or self.alone.below_k or self.with_known.below_k else "green"

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "verdict": self.verdict,
            "holds": self.holds,
            "verification": [one.as_dict() for one in self.verification],
            "records": self.records,
            "groups": self.groups,
            "information_loss": self.information_loss,
            "group_loss": self.group_loss,
            "risk": {"alone": self.alone.as_dict(), "with_known": self.with_known.as_dict()},
            "required": [asdict(one) for one in self.required],
            "thresholds": [asdict(one) for one in self.thresholds],
            "cautions": [caution.as_dict() for caution in self.cautions],
        }


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
        return cls(data, grouped.recipe.plan, grouped, counted)

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
        """100·SSE/SST of the released values, in percent."""
        return self._loss.overall

    @property
    def group_loss(self) -> float:
        """The same if each group released its exact centroid."""
        grouped = self._grouped
        return loss_of(grouped.recipe, grouped.summary, self.sums.within).overall

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

    @cached_property
    def cautions(self) -> tuple[Caution, ...]:
        """What to know before the table leaves the house."""
        recipe, (_, known) = self._grouped.recipe, self._classes
        found = about_plan(self.plan, self.roles)
        if known.below_k and self.roles.known:
            share = known.below_k / known.records
            who = self.plan.words_of_unit(recipe.unit)
            found.append(found_by_known(recipe.k, share, self.roles.known, who))
        return (*found, *about_use(self._loss.by_column, self._category_changes()))

    @cached_property
    def _loss(self) -> Loss:
        """Loss of the released values."""
        return loss_of(self._grouped.recipe, self._grouped.summary, self.sums.released)

    def _category_changes(self) -> list[Summary]:
        """Share of records whose category changed, as it follows from the loss of each column.

        Without order a changed value costs 2 and the column varies by Gini's index, so that the loss is
        twice the share of changed values over that index.
        """
        found = []
        for coder in self._grouped.recipe.coders:
            own = self._grouped.summary.columns[coder.name]
            counts = np.array([float(mass) for mass in (own.mass or own.levels).values()])
            changed = None
            if coder.kind in ("boolean", "nominal") and len(counts):
                gini = 1 - float(np.square(counts / counts.sum()).sum())
                changed = self._loss.by_column[coder.name] / 100 * gini / 2
            found.append(Summary(str(coder.name), kind=coder.kind, changed=changed))
        return found

    @cached_property
    def evidence(self) -> SparkEvidence:
        """All that is claimed; this counts in the released rows."""
        return self.evidence_of(self.verify())

    def evidence_of(self, verification: Sequence[Verification]) -> SparkEvidence:
        """All that is claimed, with what was counted in the rows or in a file."""
        alone, known = self._classes
        with on_spark():
            risks = [_risk(alone, self._link(False)), _risk(known, self._link(True))]
        return SparkEvidence(
            verification=tuple(verification),
            records=self.records,
            groups=self.n_groups,
            information_loss=self.information_loss,
            group_loss=self.group_loss,
            alone=risks[0],
            with_known=risks[1],
            cautions=self.cautions,
            required=required(rules_of(self._grouped.recipe), self.sums),
            thresholds=tuple(
                thresholds_of(self.plan.accept, self.information_loss, risks[1].linkage)
            ),
            roles=self.roles,
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

    def report(self, path: str | Path) -> None:
        """Write the board's report as an HTML file, and every number of it as JSON beside it."""
        page = Path(path)
        check_report_target(page)
        texts = self.report_texts(self.evidence)
        with replacing_all([page, page.with_suffix(".json")]) as parts:
            for part, text in zip(parts, texts, strict=True):
                part.write_text(text, encoding="utf-8", errors="backslashreplace")

    def report_texts(
        self,
        evidence: SparkEvidence,
        written: tuple[str, str] | None = None,
        source: Mapping[str, str] | None = None,
    ) -> tuple[str, str]:
        """Return the report as a page, and its numbers as JSON; one task makes both of a sample.

        ``written`` are path and hash of what was written, where the promise was counted.
        """
        alone, known = self._classes
        of_classes = [
            replace(
                evidence.verification[0],
                k=2,
                unit=None,
                combinations=one.classes,
                smallest=one.smallest,
                records_below_k=one.unique,
            )
            for one in (alone, known)
        ]
        there = bool(self.roles.known)
        counts = Counts(
            of_classes[0],
            alone.below_k,
            of_classes[1] if there else None,
            known.below_k if there else 0,
            self._grouped.unique_before,
        )
        linkage = evidence.alone.linkage, evidence.with_known.linkage if there else None
        counted = None
        if written is not None:
            counted = Counted(written[0], evidence.verification, written[1], evidence.required)
        with on_spark():
            return report_of(self._grouped, counts, linkage, counted, source)

    def unpersist(self) -> None:
        """Let Spark forget what it keeps of this release; ``data`` is then worked out anew."""
        self._grouped.released.unpersist()


def _risk(found: ClassCounts, linkage: Linkage) -> KnownRisk:
    n = found.records
    return KnownRisk(
        smallest_class=found.smallest,
        mean_class=n / found.classes,
        below_k=found.below_k / n,
        unique=found.unique / n,
        prosecutor=1 / found.smallest,
        marketer=found.classes / n,
        linkage=linkage,
    )
