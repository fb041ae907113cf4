"""Measures of a table that is never in memory as a whole.

What is promised, lost and shared is counted over all records: sums of squares, moments, missing values and
requirements come from the chunks, classes from the written file. What needs records side by side
(distributions, correlations, the columns that do harm) is measured in a sample of *whole groups*: in it
every class is complete, so that shares of records are estimated without bias. Linkage is that of a
sample of records against all released groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.algorithms.result import Partition
from microagg.base.typing import Floats, Labels
from microagg.drafting.draft import Completed
from microagg.encode.batch_statistics import Moments, Share
from microagg.encode.recoded_table import loss_by_recoding
from microagg.encode.space import names_of_levels
from microagg.engines.aggregates import ReleasedValues, Sums
from microagg.engines.encoding import Encoding
from microagg.engines.memory.control_group import Attacked, attacks_for_evidence
from microagg.engines.memory.table import Table
from microagg.engines.release_counts import Counts
from microagg.engines.table_summary import TableSummary
from microagg.evidence.measured import Measured, Part
from microagg.evidence.measuring import Measuring
from microagg.grouping.read_table import take_in
from microagg.kernels.labels import canonical_labels
from microagg.measure.attack import OnProgress
from microagg.measure.before_and_after import Summary
from microagg.measure.column_losses import Losses
from microagg.measure.known_columns import KnownRisk
from microagg.measure.linkage import Linkage, Sought, sample_for
from microagg.measure.pairing import chance_at_most
from microagg.measure.row_keys import Keys
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.settings import settings_of
from microagg.releasing.release_values import MissingCounts
from microagg.tables.frame import Frame


@dataclass(frozen=True, eq=False)
class PartitionInChunks(Partition):
    """A partition whose ``labels`` are those of a sample of whole groups."""

    all_groups: int = 0
    least: int = 0
    most: int = 0

    @property
    def n_groups(self) -> int:
        """Number of groups of the whole table."""
        return self.all_groups

    @property
    def smallest(self) -> int:
        """Records of the smallest group of the whole table."""
        return self.least

    @property
    def largest(self) -> int:
        """Records of the largest group of the whole table."""
        return self.most


class Sample(NamedTuple):
    """Some records, in whole groups, before and after."""

    before: pa.Table
    after: pa.Table  # all columns that the release has
    text: pa.Table | None  # the records as they stand in a CSV file
    labels: Labels
    shared: ReleasedValues


def _measuring(
    plan: Plan, encoding: Encoding, sample: Sample, sums: Sums, counts: Counts
) -> Measuring:
    """Return the sampled records, ready to be measured."""
    squares = np.array([c.losses.total * c.setting.importance for c in encoding.coders])
    intake = take_in(Frame(sample.before), plan, sample.text, fitted=encoding.recoders)
    method = find(encoding.block.method)
    partition = PartitionInChunks(
        labels=canonical_labels(sample.labels),
        k=encoding.k,
        method=method.name,
        scale=encoding.block.scale,
        options=settings_of(method, dict(encoding.block.options), plan.seed),
        sse=float(sums.within @ squares),
        sst=float(squares.sum()),
        seconds=0.0,
        weighted=encoding.weighs,
        all_groups=sums.groups,
        least=sums.smallest,
        most=sums.largest,
    )
    names, before = [coder.name for coder in encoding.coders], sample.before
    rows = np.arange(len(sample.labels))
    # Measures need the columns that the release no longer has, too.
    has = set(sample.after.column_names)
    tables = [sample.after if name in has else before for name in before.column_names]
    fields = [
        table.schema.field(name) for table, name in zip(tables, before.column_names, strict=True)
    ]
    schema = pa.schema(fields, sample.after.schema.metadata)
    columns = [table[field.name] for table, field in zip(tables, fields, strict=True)]
    cells = {name: MissingCounts(*sums.cells[j].tolist()) for j, name in enumerate(names)}
    return Measuring(
        plan,
        intake,
        [Part(rows, names, partition, encoding.n_coordinates)],
        Frame(pa.table(columns, schema=schema)),
        _in_levels(intake, encoding, sample.shared.values),
        sample.shared.states,
        np.repeat(partition.labels[:, None], len(names), axis=1),
        cells,
        records=encoding.records,
        counted_below_k=counts.known.records_below(encoding.k) / encoding.records,
    )


def _in_levels(intake: Any, encoding: Encoding, values: Floats) -> Floats:
    """Give released values the level numbers and origins that the columns of the sample have."""
    renumbered = values.copy()
    for j, coder in enumerate(encoding.coders):
        variable = intake.variables[coder.name]
        if coder.levels:
            known, released = names_of_levels(variable), names_of_levels(coder.variable)
            place = {level: at for at, level in reversed(list(enumerate(known)))}
            numbers = [place.get(name, len(known) + at) for at, name in enumerate(released)]
            there = ~np.isnan(values[:, j])
            renumbered[there, j] = np.array(numbers, dtype=np.float64)[
                values[there, j].astype(np.int64)
            ]
        elif coder.kind == "date":
            renumbered[:, j] = values[:, j] - variable.origin
    return renumbered


def sought(encoding: Encoding, sample: Sample, keys: Keys | None = None) -> Sought:
    """Choose some of the sampled records to be linked; ``keys`` are of the known values of each."""
    # All where memory would, else some, evenly over the rows.
    n = len(sample.labels)
    wanted = sample_for(n, in_parts=True) or n
    chosen = np.unique(np.linspace(0, n - 1, wanted).astype(np.int64))
    variables = encoding.variables(sample.before.take(pa.array(chosen)))
    before = encoding.attacker.place(
        np.column_stack([v.values for v in variables]),
        np.column_stack([v.states for v in variables]),
    )
    shared = sample.shared
    after = encoding.attacker.place(shared.values[chosen], shared.states[chosen])
    return Sought(before, after, None if keys is None else keys[chosen])


def measured_at_scale(
    encoding: Encoding,
    sample: Sample,
    *,
    plan: Plan,
    summary: TableSummary,
    sums: Sums,
    counts: Counts,
    alone: Linkage,
    with_known: Linkage | None,
    if_claimed: Linkage | None,
    pictures: bool = False,
    together: Sequence[Any] = (),
    attack: bool = False,
    progress: OnProgress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **measures: Any,
) -> Measured:
    """Measure a release: what was counted in all records as such, all else in the sample.

    ``pictures`` tells whether a report is to be drawn; ``together`` are dropped units whose rows lie together
    in a file whose order is kept; ``attack`` tells whether the sample is attacked with controls,
    ``progress`` and ``should_stop`` are of the attacks;
    ``measures`` are as for :meth:`microagg.engines.memory.release.Release.measure`.
    """
    n, k = encoding.records, encoding.k
    measuring = _measuring(plan, encoding, sample, sums, counts)
    known = claimed = KnownRisk.of(counts.known, k, with_known or alone)
    if counts.claimed is not None:
        assert if_claimed is not None
        claimed = KnownRisk.of(counts.claimed, k, if_claimed)
    sampled = measuring.measured(known, claimed, **measures)
    agreements = {
        # Close values are estimated from the sample.
        name: replace(counts.agreeing[name], close=math.ceil(figures.close * n / figures.of))
        for name, figures in sampled.signs.agreements.items()
    }
    names, lost = losses_of(encoding, sums)
    attacked = _attacked(sample, measuring, progress, should_stop) if attack else Attacked(None)
    swap = sampled.swap
    if swap is not None:
        lost = lost._replace(
            released=lost.within
        )  # rows are nobody's, so that only groups have a loss
        if measuring.is_sample:
            swap = swap._replace(alone=counts.unique_before)
            if swap.chance is not None and not plan.keep_order:
                swap = swap._replace(chance=chance_at_most(counts.known))
    return replace(
        sampled,
        signs=replace(
            sampled.signs,
            agreements=agreements,
            uncounted_rows=[
                *sampled.signs.uncounted_rows,
                *(together if measuring.is_sample else ()),
            ],
        ),
        utility=replace(
            sampled.utility,
            information_loss=lost.overall(lost.released),
            by_column=dict(zip(names, (100 * lost.released).tolist(), strict=True)),
            group_loss=lost.overall(lost.within),
            group_loss_by_column=dict(zip(names, (100 * lost.within).tolist(), strict=True)),
        ),
        alone=sampled.alone.of_all(
            alone,
            smallest_class=counts.alone.smallest,
            below_k=counts.alone.records_below(k) / n,
            unique_before=counts.unique_before / n,
            unique_after=counts.alone.unique / n,
            blind_guess=1 / n,
            diversity={
                name: replace(figures, agreement=agreements.get(name, figures.agreement))
                for name, figures in sampled.alone.diversity.items()
            },
        ),
        stakes=counts.stakes,
        swap=swap,
        attacks=attacked.attacks,
        not_attacked=attacked.refused,
        dropped=summary.records - n,
        summaries=_summaries(sampled.summaries, encoding, summary, sums),
        pictures=measuring.pictures() if pictures else None,
    )


def losses_of(encoding: Encoding, sums: Sums) -> tuple[list[Any], Losses]:
    """Return the losses of all protected or recoded columns, and the names of these."""
    names = [coder.name for coder in encoding.coders]
    inertia = [coder.setting.importance * coder.losses.inertia for coder in encoding.coders]
    shares = [*zip(sums.within, sums.released, inertia, strict=True)]
    for name, recoder in encoding.recoders.items():
        if name not in names:  # a stratum, or a column left as it is
            lost, weight = loss_by_recoding(recoder)
            names.append(name)
            shares.append((lost, lost, weight))
    return names, Losses(*np.array(shares).T)


def _attacked(
    sample: Sample,
    measuring: Measuring,
    progress: OnProgress | None,
    should_stop: Callable[[], bool],
) -> Attacked:
    """Attack the sample: a part of it is put aside, and the rest protected in memory by the same plan."""
    table = Table(Frame(sample.before), sample.text)
    plan = replace(measuring.plan, analyses=(), keep_order=None)
    return attacks_for_evidence(
        table.frame,
        measuring.intake.units,
        lambda rows: table.taken(rows).protected(Completed(plan, None)).data,
        plan,
        measuring.parts[0].partition.labels,
        missing_words=table.missing_words,
        progress=progress,
        should_stop=should_stop,
    )


def _summaries(
    sampled: Sequence[Summary], encoding: Encoding, summary: TableSummary, sums: Sums
) -> list[Summary]:
    """Put totals, means and deviations of all records in place of those of the sample."""
    summaries = []
    for j, (of_sample, coder) in enumerate(zip(sampled, encoding.coders, strict=False)):
        after = sums.after[j]
        before: Moments | Share = summary.columns[coder.name].moments
        if coder.recoder is not None:
            before = coder.recoder.every
        missing = (int(sums.cells[j][0]), encoding.records - after.count)
        nothing = not (before.count and after.count)  # every value is missing, or was blanked
        if coder.levels or coder.kind == "date" or nothing:
            summaries.append(replace(of_sample, missing=missing) if not coder.levels else of_sample)
            continue
        # Weights of released values have a mean of 1.
        scale = encoding.mean_weight if encoding.weighted else 1.0
        summaries.append(
            replace(
                of_sample,
                total=(before.total, after.total * scale),
                mean=(before.mean, after.mean),
                sd=(before.deviation, after.deviation),
                missing=missing,
            )
        )
    return [*summaries, *sampled[len(summaries) :]]  # recoded columns that are not protected
