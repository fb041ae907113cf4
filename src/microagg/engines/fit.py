"""The encoding of a table, fitted to its summary: how each column is encoded, and which cells there are.

:func:`fit` does so for a table that is read in parts, by the same passes on every engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.encode import nominal
from microagg.encode.batch_statistics import ColumnStatistics
from microagg.encode.inertia import Corners, Encoder
from microagg.encode.number import NumberEncoder, Transform
from microagg.encode.recode import Recoder, recoded_plan
from microagg.encode.recoded_table import check_recoded
from microagg.encode.scale import Scaling, scaling_of
from microagg.encode.space import encoder_of
from microagg.encode.spiked import SpikedEncoder
from microagg.engines.capabilities import check_plan_in_parts
from microagg.engines.complete_plan import no_records
from microagg.engines.encoding import Coder, Encoding
from microagg.engines.rare_patterns import Rare, rare_records, with_rare_joined
from microagg.engines.recode_batches import (
    merged,
    recoded_batch,
    recoded_text,
    recoders_of,
    tallies,
)
from microagg.engines.table_summary import TableSummary, summarise
from microagg.engines.verbs import Parts
from microagg.errors import InputError, shown
from microagg.grouping.require.from_plan import make_requirements
from microagg.grouping.require.requirement import check_feasible
from microagg.measure.coordinates import state_encoder
from microagg.plan.block import Block, Require
from microagg.plan.column import Column
from microagg.plan.plan import Plan
from microagg.plan.settings import check_k
from microagg.tables.variable import Variable

__all__ = ["encoding_of", "fit"]


def fit(parts: Parts, plan: Plan) -> tuple[Encoding, TableSummary]:
    """Summarise a table and fit its encoding; recoded columns and rare patterns need further passes."""
    extra = {*plan.units, *([] if plan.weight is None else [plan.weight.column])}
    recoders: dict[Any, Recoder] = {}
    if plan.coarsened:
        check_recoded(plan, parts.names)
        counted = parts.reduce(partial(tallies, plan=plan), merged, {*plan.coarsened, *extra})
        if counted is not None:
            recoders = recoders_of(plan, counted, parts.empty(), parts.is_text)
    after = recoded_plan(plan, recoders.values())
    roles = plan.roles(parts.names)
    asked = plan.blocks[0].require.distinct
    summary = parts.reduce(
        partial(_recoded_summary, plan=after, recoders=recoders),
        TableSummary.merge,
        {*roles.protected, *roles.strata, *plan.related, *recoders, *extra, *asked},
    )
    if summary is None:
        raise no_records()
    encoding = replace(encoding_of(after, summary, parts.is_text, recoders), given=plan)
    encoding.check_strata()
    _check_feasible(after, summary)
    if Rare(encoding).any:
        encoding = parts.gather(
            encoding, partial(rare_records, encoding), partial(with_rare_joined, encoding)
        )
    return encoding, summary


def _check_feasible(plan: Plan, summary: TableSummary) -> None:
    """Refuse units, different values and weights of which the whole table has fewer than a group needs."""
    block = plan.blocks[0]
    unit = plan.unit_of(block).column

    def seen(name: Any) -> Labels:
        return np.arange(len(summary.different[name]))

    asked = replace(
        block, require=Require(distinct=block.require.distinct, population=block.require.population)
    )
    weights = None if plan.weight is None else np.array([summary.weights.total])
    units = None if unit is None else seen(unit)
    check_feasible(
        make_requirements(asked, units, unit, weights, lambda _, name: (seen(name), False))
    )


def _recoded_summary(
    table: pa.Table, written: pa.Table | None, plan: Plan, recoders: Mapping[Any, Recoder]
) -> TableSummary:
    recoded = recoded_batch(table, recoders)
    text = None if written is None else recoded_text(written, recoded, recoders)
    return summarise(recoded, plan, text)


def encoding_of(
    plan: Plan,
    summary: TableSummary,
    is_csv: bool = False,
    recoders: Mapping[Any, Recoder] | None = None,
) -> Encoding:
    """Fit the encoding of a table to its summary; plan and summary are of the recoded table."""
    recoders = recoders or {}
    check_plan_in_parts(plan)
    block = plan.blocks[0]
    if not summary.records:
        raise no_records()
    check_k(block.k or 1, summary.records)
    uneven = summary.weights.count > 0 and summary.weights.low < summary.weights.high
    mean_weight = summary.weights.mean if summary.weights.count else 1.0
    coders = tuple(
        _coder(name, plan, block, summary.columns[name], mean_weight, uneven, recoders.get(name))
        for name in block.columns or ()
    )
    listed = sorted(summary.cells, key=lambda cell: (repr(cell[0]), cell[1]))
    if plan.missing.policy == "drop":
        listed = [cell for cell in listed if not any(cell[1])]
    columns = len(coders)
    patterns = np.array([cell[1] for cell in listed], dtype=np.int64).reshape(-1, columns)
    sizes = np.array([summary.cells[cell] for cell in listed], dtype=np.int64)
    if not len(sizes):
        raise InputError(
            'missing = "drop" leaves out records with a missing value; every record has one. Say another '
            'policy, such as "pattern".'
        )
    encoders: dict[int, Encoder] = {}
    if plan.missing.policy in ("majority", "fill"):
        for j in np.flatnonzero(patterns.any(axis=0)).tolist():
            often = np.bincount(patterns[:, j], weights=sizes).astype(np.float64)
            encoders[j] = _corners(
                Variable(
                    "", "nominal", np.arange(float(len(often))), levels=tuple(range(len(often)))
                ),
                often,
                int(sizes.sum()),
                block,
            )
    return Encoding(
        plan,
        coders,
        {cell: number for number, cell in enumerate(listed)},
        patterns,
        sizes,
        encoders,
        _seen_states(patterns, sizes),
        mean_weight,
        uneven,
        int(sizes.sum()),
        is_csv,
        recoders=recoders,
    )


def _coder(
    name: Any,
    plan: Plan,
    block: Block,
    found: ColumnStatistics,
    mean_weight: float,
    uneven: bool,
    recoder: Recoder | None = None,
) -> Coder:
    """Fit a column; ``mean_weight`` is that of all records, which count alike unless weights are uneven."""
    setting = plan.column(name)
    kind = setting.kind
    if found.levels and kind is None and None not in found.formats and len(found.formats) == 1:
        raise InputError(
            f"The texts of column {shown(name)} are dates; in a table that is read in parts their kind has "
            "to be said: kind date, or nominal."
        )
    if found.levels:
        kind = kind or found.kind or "nominal"
        levels, often = _levels(name, setting, found, mean_weight if uneven else None)
        variable = Variable(name, kind, np.arange(float(len(levels))), setting, levels=levels)
        variable = variable if recoder is None else recoder.placed(variable)
        present = sum(found.levels.values())
        encoder = seen = _corners(variable, often, present, block)
        if uneven:
            seen = _corners(variable, _levels(name, setting, found, None)[1], present, block)
        own = replace(setting, kind=kind, round="no")
        given = levels, often, _admissible(levels, found, block.k or 1)
        return Coder(name, kind, own, encoder, seen, recoder, mean_weight, *given)
    moments = found.moments
    kind = found.kind or kind or "number"
    encoder = _number(setting, kind == "spiked", block.scale, found, mean_weight)
    seen = _number(setting, kind == "spiked", "zscore", found.alike or found, 1.0)
    return Coder(
        name,
        kind,
        setting,
        encoder,
        seen,
        recoder,
        mean_weight,
        spread=moments.deviation,
        whole=moments.whole,
    )


def _seen_states(patterns: Labels, sizes: Labels) -> dict[int, Encoder]:
    """Coordinates by which an attacker tells missing values apart, of columns that have some and others."""
    found = {}
    for j, states in enumerate(patterns.T):
        often = np.bincount(states, weights=sizes).astype(np.int64)
        if np.count_nonzero(often) > 1:
            found[j] = state_encoder(often)
    return found


def _levels(
    name: Any, setting: Column, found: ColumnStatistics, mean_weight: float | None
) -> tuple[tuple[Any, ...], Floats]:
    """Levels in their order, and how often each occurs, in units of the mean weight."""
    counts: Mapping[Any, Any] = found.levels if mean_weight is None else found.mass
    unit = mean_weight or 1.0
    if setting.levels is None:
        if setting.kind == "ordinal" and any(isinstance(level, str) for level in found.levels):
            raise InputError(
                f"An ordinal column needs its order: column {shown(name)} is text. Give its levels from low "
                "to high."
            )
        levels = tuple(sorted(found.levels))
    else:  # each batch has checked that nothing else occurs, and has shown them in its own type
        shown_as = {str(level).strip(): level for level in found.levels}
        levels = tuple(shown_as.get(str(level).strip(), level) for level in setting.levels)
    return levels, np.array([float(counts.get(level, 0)) / unit for level in levels])


def _admissible(levels: Sequence[Any], found: ColumnStatistics, k: int) -> NDArray[np.bool_]:
    """Which levels at least k units of the table hold, or records where no units are counted."""
    if found.most_holders:
        return np.array([len(found.holders.get(level, ())) >= k for level in levels], dtype=bool)
    return np.array([found.levels.get(level, 0) >= k for level in levels], dtype=bool)


def _corners(variable: Variable, often: Floats, present: int, block: Block) -> Encoder:
    """Fit the corners of a category to counts: an inertia of m − 1 for m records that have a value.

    The encoder is fitted to one record a level, weighted by how often it occurs, and then scaled to the
    number of records.
    """
    m = len(variable.levels)
    if m < 2 or not often.sum():
        return Corners(np.zeros((max(m, 1), 1)))
    weights = often * m / often.sum()
    if variable.kind in ("nominal", "boolean"):
        fitted = nominal.encoder(variable, weights)
    else:
        fitted = encoder_of(variable, block.scale, weights)
    assert isinstance(fitted, Corners)
    return Corners(fitted.points * np.sqrt((present - 1) * m / (often.sum() * (m - 1))))


def _number(
    setting: Column, spiked: bool, scale: str, found: ColumnStatistics, mean_weight: float
) -> Encoder:
    moments = found.moments
    if not moments.count:
        return Corners(np.zeros((1, 1)))
    off = found.outside
    if spiked and 0 < off.count < moments.count:
        if setting.transform is not None:
            raise InputError(
                "In a table that is read in parts a spiked column counts by its values; the plan transforms "
                "one. Leave the transform out, or say engine = memory."
            )
        spike = 0.0 if setting.spike is None else float(setting.spike)
        step, share = off.mean - spike, off.weight / moments.weight
        # The squares of weights with a mean of 1 add up to count − 1.
        total = (step**2 * moments.weight * share * (1 - share) + off.squares) / mean_weight
        factor = float(np.sqrt((moments.count - 1) / total)) if total > 0 else 0.0
        return SpikedEncoder(
            spike, Transform(None), off.mean, step, np.array([step * share, 0.0]), factor
        )
    logarithms = setting.transform == "log"
    used = found.logarithms if logarithms else moments
    quartiles = None
    if scale == "robust":
        quartiles = found.sketch.quantile(0.25), found.sketch.quantile(0.75)
    scaling: Scaling = scaling_of(
        "zscore" if spiked else scale,
        used.low,
        used.high,
        used.mean,
        used.deviation_by(mean_weight),
        quartiles,
    )
    return NumberEncoder(Transform("log" if logarithms else None, unit=0.0), scaling)
