"""The measures of a release on Spark: made by one task of a sample of whole groups, as from disk.

Rows of the sample never come to the driver: what comes are the measures without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.evidence.measured import Measured
from microagg.groups import Labels
from microagg.measure.linkage import Linkage
from microagg.scale_out.aggregates import Shared, Sums, put_back
from microagg.scale_out.recipe import Recipe
from microagg.scale_out.sampled import Counts, Sample, measured_at_scale
from microagg.scale_out.summaries import TableSummary
from microagg.scale_out.worker_tables import Layout, guarded, pack, unpack, words_of
from microagg.scale_out.workers_release import rows_changed

if TYPE_CHECKING:
    from microagg.scale_out.spark import Grouped

__all__ = ["Asked", "gather"]


class Asked(NamedTuple):
    """What is to be measured, beyond what was grouped."""

    counts: Counts
    linkage: tuple[Linkage, Linkage | None]
    measures: Mapping[str, Any] = {}
    """As for :func:`microagg.scale_out.sampled.measured_at_scale`."""


class _Whole(NamedTuple):
    """What is known of the whole table."""

    recipe: Recipe
    layout: Layout
    summary: TableSummary
    sums: Sums
    asked: Asked


@dataclass(frozen=True, eq=False)
class Gather:
    """Rows of whole groups, and what they release → the measures."""

    packed: bytes
    """What is known of the whole table, mostly zeros, which otherwise would have to be sent apart."""

    @guarded
    def __call__(self, rows: pa.Table, values: pa.Table) -> pa.Table:
        """Measure."""
        whole: _Whole = unpack(self.packed)
        recipe, asked = whole.recipe, whole.asked
        own, other = _matched(rows, values)
        rows, values = rows.take(pa.array(own)), values.take(pa.array(other))
        shared = Shared.of(words_of(values, "s"), len(recipe.coders))
        before = whole.layout.table(rows)
        sample = Sample(
            before,
            put_back(recipe, before, shared),
            None,
            values.column("whole_group").to_numpy(),
            shared,
            np.arange(len(own)),
        )
        measured = measured_at_scale(
            recipe.given or recipe.plan,
            recipe,
            whole.summary,
            whole.sums,
            sample,
            asked.counts,
            *asked.linkage,
            **asked.measures,
        )
        return pa.table({"packed": [pack(measured.without_records())]})


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
    if not place.keys() >= set(wanted):
        raise rows_changed()
    return np.array([place[key] for key in wanted], dtype=np.int64), other


def gather(grouped: Grouped, asked: Asked) -> Measured:
    """Measure what was grouped."""
    from pyspark.sql import functions as F  # noqa: N812

    whole = _Whole(grouped.recipe, grouped.layout, grouped.summary, grouped.sums, asked)
    work = Gather(pack(whole))

    def apply(rows: Any, values: Any) -> Any:
        return work(rows, values)

    rows, values = (
        frame.withColumn("all", F.lit(0)).groupBy("all") for frame in grouped.whole_groups()
    )
    (row,) = rows.cogroup(values).applyInArrow(apply, "packed binary").collect()
    found: Measured = unpack(bytes(row.packed))
    return found
