"""Measures of a table that is never in memory as a whole.

What is promised, lost and shared is counted over all records: sums of squares, moments, missing values and
requirements come from the chunks, classes from the written file. What needs records side by side
(distributions, correlations, the columns that do harm) is measured in a sample of *whole groups*: in it
every class is complete, so that shares of records are estimated without bias. Linkage is that of a
sample of records against all released groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
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
from microagg.engines.table_summary import TableSummary
from microagg.evidence.measured import AllRecords, Counts, Measured, Part
from microagg.evidence.measuring import Measuring
from microagg.grouping.read_table import take_in
from microagg.kernels.labels import canonical_labels
from microagg.measure.attack import OnProgress
from microagg.measure.linkage import Linkage, Sought, sample_for
from microagg.measure.row_keys import Keys
from microagg.measure.utility import Losses
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.settings import settings_of
from microagg.releasing.release_values import MissingCounts
from microagg.tables.frame import Frame


class Sample(NamedTuple):
    """Some records, in whole groups, before and after."""

    before: pa.Table
    after: pa.Table  # all columns that the release has
    text: pa.Table | None  # the records as they stand in a CSV file
    labels: Labels
    shared: ReleasedValues


def _measuring(
    plan: Plan, encoding: Encoding, sample: Sample, sums: Sums, counted: AllRecords
) -> Measuring:
    """Return the sampled records, ready to be measured."""
    squares = np.array([c.losses.total * c.variable.setting.importance for c in encoding.coders])
    intake = take_in(Frame(sample.before), plan, sample.text, fitted=encoding.recoders)
    method, block = find(encoding.block.method), encoding.block
    partition = Partition(
        labels=canonical_labels(sample.labels),
        k=encoding.k,
        method=method.name,
        scale=block.scale,
        options=settings_of(method, dict(block.options), plan.seed),
        sse=float(sums.within @ squares),
        sst=float(squares.sum()),
        seconds=0.0,
        weighted=encoding.weighs,
        counted=sums.groups,
    )
    names, rows = [coder.variable.name for coder in encoding.coders], np.arange(len(sample.labels))
    # Measures need the columns that the release no longer has, too.
    after = dict(zip(sample.after.column_names, sample.after.columns, strict=True))
    cells = {name: MissingCounts(*sums.cells[j].tolist()) for j, name in enumerate(names)}
    return Measuring(
        plan,
        intake,
        [Part(rows, names, partition, sum(sum(coder.axes.widths) for coder in encoding.coders))],
        Frame(intake.frame.with_columns(after)),
        _in_levels(intake, encoding, sample.shared.values),
        sample.shared.states,
        np.repeat(partition.labels[:, None], len(names), axis=1),
        cells,
        counted=counted,
    )


def _in_levels(intake: Any, encoding: Encoding, values: Floats) -> Floats:
    """Give released values the level numbers and origins that the columns of the sample have."""
    renumbered = values.copy()
    for j, coder in enumerate(encoding.coders):
        variable = intake.variables[coder.variable.name]
        if coder.variable.levels:
            known, released = names_of_levels(variable), names_of_levels(coder.variable)
            place = {level: at for at, level in reversed(list(enumerate(known)))}
            numbers = [place.get(name, len(known) + at) for at, name in enumerate(released)]
            there = np.flatnonzero(~np.isnan(values[:, j]))
            renumbered[there, j] = np.array(numbers)[values[there, j].astype(np.int64)]
        elif coder.variable.kind == "date":
            renumbered[:, j] = values[:, j] - variable.origin
    return renumbered


def sought(encoding: Encoding, sample: Sample, keys: Keys | None = None) -> Sought:
    """Choose some of the sampled records to be linked; ``keys`` are of the known values of each."""
    # All where memory would, else some, evenly over the rows.
    n, place = len(sample.labels), encoding.attacker.place
    wanted = sample_for(n, in_parts=True) or n
    chosen = np.unique(np.linspace(0, n - 1, wanted).astype(np.int64))
    variables = encoding.read(Frame(encoding.recoded(sample.before.take(pa.array(chosen)))[0]))
    values, states = zip(*((v.values, v.states) for v in variables), strict=True)
    before = place(np.column_stack(values), np.column_stack(states))
    after = place(sample.shared.values[chosen], sample.shared.states[chosen])
    return Sought(before, after, None if keys is None else keys[chosen])


def measured_at_scale(
    encoding: Encoding,
    sample: Sample,
    *,
    summary: TableSummary,
    sums: Sums,
    counts: Counts,
    linked: Mapping[str | None, Linkage],
    pictures: bool = False,
    together: Sequence[Any] = (),
    progress: OnProgress | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    **measures: Any,
) -> Measured:
    """Measure a release: what was counted in all records as such, all else in the sample.

    ``counts``, ``linked`` and ``together`` are fields of :class:`.AllRecords`; ``pictures`` tells whether a
    board's report is to be drawn; ``progress`` and ``should_stop`` are of the attacks with controls, made if
    the plan limits what they find or the board reads about swapping; ``measures`` are as for
    :meth:`microagg.engines.memory.release.Release.measure`.
    """
    plan, coders = encoding.given or encoding.plan, encoding.coders
    inertia = [coder.variable.setting.importance * coder.losses.inertia for coder in coders]
    losses = [*zip(sums.within, sums.released, inertia, strict=True)]
    protected = {coder.variable.name for coder in coders}
    for name, recoder in encoding.recoders.items():
        if name not in protected:  # a stratum, or a column left as it is
            lost, weight = loss_by_recoding(recoder)
            losses.append((lost, lost, weight))
    counted = AllRecords(
        records=encoding.records,
        dropped=summary.records - encoding.records,
        counts=counts,
        linked=linked,
        losses=Losses(*np.array(losses).T),
        totals=_totals(encoding, summary, sums),
        together=together,
    )
    measuring = _measuring(plan, encoding, sample, sums, counted)
    attacked = Attacked(None)
    if plan.accept.inference is not None or (plan.is_swapped and pictures):
        # A part of the sample is put aside, and the rest protected in memory by the same plan.
        table = Table(Frame(sample.before), sample.text)
        attacked = attacks_for_evidence(
            measuring.intake,
            plan,
            measuring.parts[0].partition.labels,
            lambda plan, rows: table.taken(rows).protected(Completed(plan, None)).data,
            progress,
            should_stop,
        )
    return replace(
        measuring.measured(**measures),
        attacks=attacked.attacks,
        not_attacked=attacked.refused,
        pictures=measuring.pictures() if pictures else None,
    )


def _totals(
    encoding: Encoding, summary: TableSummary, sums: Sums
) -> dict[Any, dict[str, tuple[float, float]]]:
    """Return totals, means, deviations and missing values of all records, of columns that have them."""
    totals: dict[Any, dict[str, tuple[float, float]]] = {}
    # Weights of released values have a mean of 1.
    scale = encoding.mean_weight if encoding.weighted else 1.0
    for coder, cells, after in zip(encoding.coders, sums.cells, sums.after, strict=True):
        name = coder.variable.name
        if coder.variable.levels:
            continue
        totals[name] = {"missing": (int(cells[0]), encoding.records - after.count)}
        before: Moments | Share = summary.columns[name].moments
        if coder.recoder is not None:
            before = coder.recoder.every
        if coder.variable.kind != "date" and before.count and after.count:
            totals[name] |= {
                "total": (float(before.total), after.total * scale),
                "mean": (before.mean, after.mean),
                "sd": (before.deviation, after.deviation),
            }
    return totals
