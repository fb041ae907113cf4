"""The evidence of a release on Spark: made by one task of a sample of whole groups, as from disk.

Rows of the sample never come to the driver: what comes is the evidence without them, and the finished report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from microagg.delivery import Gate
from microagg.evidence import Evidence
from microagg.findings import Counted
from microagg.groups import Labels
from microagg.measure.linkage import Linkage
from microagg.measure.pairs import Pair
from microagg.measure.risk import Ask, Risk
from microagg.report.html import report_texts
from microagg.scale_out.aggregates import Shared, Sums, put_back
from microagg.scale_out.recipe import Recipe
from microagg.scale_out.sampled import Counts, Sample, evidence_at_scale
from microagg.scale_out.summaries import TableSummary
from microagg.scale_out.worker_tables import Layout, guarded, pack, unpack, words_of
from microagg.scale_out.workers_release import rows_changed

if TYPE_CHECKING:
    from microagg.scale_out.spark import Grouped

__all__ = ["Asked", "Gathered", "gather"]

T = TypeVar("T")


class Asked(NamedTuple):
    """What the evidence is to be of, beyond what was grouped."""

    counts: Counts
    linkage: tuple[Linkage, Linkage | None]
    counted: Counted | None = None
    """What was found in what was written; None: nothing was written."""
    source: Mapping[str, str] | None = None
    report: bool = False
    """Whether the report is to be made as well."""
    measures: Mapping[str, Any] = {}
    """Analyses and dominance, as for :meth:`microagg.release.Release.measure`."""
    gate: Gate | None = None
    """Decides about what was written; the report says so."""


class Gathered(NamedTuple):
    """What comes to the driver."""

    evidence: Evidence
    report: tuple[str, str] | None
    """The page, and its numbers as JSON."""


class _Whole(NamedTuple):
    """What is known of the whole table."""

    recipe: Recipe
    layout: Layout
    summary: TableSummary
    sums: Sums
    asked: Asked


@dataclass(frozen=True, eq=False)
class Gather:
    """Rows of whole groups, and what they release → the evidence, and the report if that is asked for."""

    packed: bytes
    """What is known of the whole table, mostly zeros, which otherwise would have to be sent apart."""

    @guarded
    def __call__(self, rows: pa.Table, values: pa.Table) -> pa.Table:
        """Measure, and write the report."""
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
        evidence, release = evidence_at_scale(
            recipe.plan,
            recipe,
            whole.summary,
            whole.sums,
            sample,
            asked.counts,
            *asked.linkage,
            **asked.measures,
        )
        evidence = replace(evidence, counted=asked.counted, source=asked.source)
        if asked.gate is not None:
            evidence = asked.gate.judged(evidence)
        report = report_texts(release.report_model(evidence)) if asked.report else None
        return pa.table({"packed": [pack(Gathered(_without_records(evidence), report))]})


def _without_records(evidence: Evidence) -> Evidence:
    """Return evidence that says the same without the records that it was measured in."""
    evidence.as_dict()  # measures are computed when they are first asked for: here, where the records are
    both = evidence._pair
    none = np.zeros((0, len(both.names)))
    empty = Pair(
        both.names,
        none,
        none,
        variables=None if both.variables is None else [],
        weights=None if both.weights is None else np.zeros(0),
    )
    parts = []
    for part in evidence.parts:
        partition = replace(part.partition, labels=np.zeros(0, np.int64))
        parts.append(part._replace(rows=np.zeros(0, np.int64), partition=partition))
    return _replaced(
        evidence,
        parts=parts,
        utility=_replaced(evidence.utility, _pair=empty),
        alone=_risk_without_records(evidence.alone, empty),
        _pair=empty,
    )


def _risk_without_records(risk: Risk, empty: Pair) -> Risk:
    found = _replaced(risk, _pair=empty, _ask=Ask(k=risk._ask.k))
    found.__dict__.pop("class_sizes", None)
    if found.individual is not None:
        by_units = found.individual.household
        if by_units is not None:
            by_units = replace(by_units, by_record=np.zeros(0))
        found.__dict__["individual"] = replace(
            found.individual, by_record=np.zeros(0), household=by_units
        )
    return found


def _replaced(thing: T, **changes: Any) -> T:
    """Replace fields of a frozen object and keep what it has computed."""
    found: T = replace(thing, **changes)  # type: ignore[type-var]
    names = {field.name for field in fields(thing)}  # type: ignore[arg-type]
    found.__dict__.update({k: v for k, v in thing.__dict__.items() if k not in names})
    return found


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


def gather(grouped: Grouped, asked: Asked) -> Gathered:
    """Return the evidence, and the report if that is asked for."""
    from pyspark.sql import functions as F  # noqa: N812

    whole = _Whole(grouped.recipe, grouped.layout, grouped.summary, grouped.sums, asked)
    work = Gather(pack(whole))

    def apply(rows: Any, values: Any) -> Any:
        return work(rows, values)

    rows, values = (
        frame.withColumn("all", F.lit(0)).groupBy("all") for frame in grouped.whole_groups()
    )
    (row,) = rows.cogroup(values).applyInArrow(apply, "packed binary").collect()
    found: Gathered = unpack(bytes(row.packed))
    return found
