"""The board's report of a release on Spark: made by one task of a sample of whole groups, read by the driver.

Rows of the sample never come to the driver: what comes is the finished page and its numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from microagg.findings import Counted
from microagg.groups import Labels
from microagg.measure.linkage import Linkage
from microagg.report.html import report_texts
from microagg.scale_out.aggregates import Shared, Sums, put_back
from microagg.scale_out.recipe import Recipe
from microagg.scale_out.sampled import Counts, Sample, evidence_at_scale
from microagg.scale_out.summaries import TableSummary
from microagg.scale_out.worker_tables import Layout, guarded, words_of

if TYPE_CHECKING:
    from microagg.scale_out.spark import Grouped

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, eq=False)
class Report:
    """Rows of whole groups, and what they release → the page and its numbers."""

    recipe: Recipe
    layout: Layout
    summary: TableSummary
    sums: Sums
    counts: Counts
    linkage: tuple[Linkage, Linkage | None]
    counted: Counted | None
    source: Mapping[str, str] | None

    @guarded
    def __call__(self, rows: pa.Table, values: pa.Table) -> pa.Table:
        """Write it."""
        own, other = _matched(rows, values)
        rows, values = rows.take(pa.array(own)), values.take(pa.array(other))
        shared = Shared.of(words_of(values, "s"), len(self.recipe.coders))
        before = self.layout.table(rows)
        sample = Sample(
            before,
            put_back(self.recipe, before, shared),
            None,
            values.column("whole_group").to_numpy(),
            shared,
            np.arange(len(own)),
        )
        evidence, release = evidence_at_scale(
            self.recipe.plan,
            self.recipe,
            self.summary,
            self.sums,
            sample,
            self.counts,
            *self.linkage,
        )
        evidence = replace(evidence, counted=self.counted, source=self.source)
        page, twin = report_texts(release.report_model(evidence))
        return pa.table({"page": [page], "twin": [twin]})


def _matched(rows: pa.Table, values: pa.Table) -> tuple[Labels, Labels]:
    """Places of rows and of their values, by key; of equal rows as many as have values here."""

    def numbered(table: pa.Table) -> tuple[Labels, list[tuple[int, int, int]]]:
        keys = np.column_stack([table.column(name).to_numpy() for name in ("h1", "h2")])
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        seen: dict[tuple[int, int], int] = {}
        told = []
        for one, two in keys[order].tolist():
            seen[one, two] = seen.get((one, two), -1) + 1
            told.append((one, two, seen[one, two]))
        return order, told

    order, theirs = numbered(rows)
    other, wanted = numbered(values)
    place = {key: int(at) for key, at in zip(theirs, order, strict=True)}
    return np.array([place[key] for key in wanted], dtype=np.int64), other


def report_of(
    grouped: Grouped,
    counts: Counts,
    linkage: tuple[Linkage, Linkage | None],
    counted: Counted | None,
    source: Mapping[str, str] | None = None,
) -> tuple[str, str]:
    """Return the page and its numbers as JSON."""
    from pyspark.sql import functions as F  # noqa: N812

    work = Report(
        grouped.recipe,
        grouped.layout,
        grouped.summary,
        grouped.sums,
        counts,
        linkage,
        counted,
        source,
    )

    def apply(rows: Any, values: Any) -> Any:
        return work(rows, values)

    rows, values = (
        frame.withColumn("all", F.lit(0)).groupBy("all") for frame in grouped.whole_groups()
    )
    (found,) = rows.cogroup(values).applyInArrow(apply, "page string, twin string").collect()
    return found.page, found.twin
