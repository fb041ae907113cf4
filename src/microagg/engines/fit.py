"""The encoding of a table, fitted to its summary: how each column is encoded, and which cells there are.

:func:`fit` does so for a table that is read in parts, by the same passes on every engine. The last of them is
about patterns of missing values that too few records have. Such records are few, whatever the size of the
table: they are collected, with some records of each common pattern of their stratum, the ones with the lowest
keys, and joined in memory as :mod:`microagg.encode.missing` does it. What comes of it is a short list: keys
of rows, and the cell that each belongs to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.encode.batch_statistics import ColumnStatistics
from microagg.encode.categories import nominal_encoder
from microagg.encode.inertia import Encoder, LevelCounts
from microagg.encode.missing import join_patterns
from microagg.encode.number import NumberEncoder, Transform
from microagg.encode.recode import Recoder, recoded_plan
from microagg.encode.recoded_table import (
    Recoded,
    Tallies,
    check_recoded,
    complete_rows,
    fit_recoders,
    recoded_batch,
    tally_columns,
)
from microagg.encode.scale import Scaling
from microagg.encode.space import Axes, fitted_encoder, with_admissible
from microagg.encode.strata import stratum_too_small
from microagg.engines.chunks import broken_requirement, by_key, requirements
from microagg.engines.encoding import Coder, Encoding, PackedRows
from microagg.engines.parts import Choose, Parts
from microagg.engines.table_summary import TableSummary, summarise
from microagg.errors import InputError
from microagg.grouping.read_table import (
    check_blanked,
    check_no_identifier,
    no_complete_record,
    no_records,
)
from microagg.grouping.require.from_plan import can_be_group, make_requirements
from microagg.grouping.require.requirement import check_feasible
from microagg.measure.both_tables import AttackerSpace, state_encoders
from microagg.measure.row_keys import row_keys
from microagg.measure.utility import LossScale
from microagg.plan.block import Require
from microagg.plan.column import Column
from microagg.plan.plan import Plan
from microagg.plan.settings import check_k
from microagg.tables.dates import dates_in_text
from microagg.tables.frame import Frame, values_as_written
from microagg.tables.variable import Variable, no_order

_NONE = np.zeros(0)  # values, where only what is known about a column matters
_LENT = 256  # records of each common pattern that may join a rare one, times k at least
_FEW = 64  # times k: patterns of fewer records may have too few units


def fit(parts: Parts, plan: Plan) -> tuple[Encoding, TableSummary]:
    """Summarise a table and fit its encoding; recoded columns and rare patterns need further passes."""
    extra = {*plan.units, *([] if plan.weight is None else [plan.weight.column])}
    recoders: dict[Any, Recoder] = {}
    if plan.coarsened:
        check_recoded(plan, parts.names)
        columns = {*plan.coarsened, *extra}
        if plan.missing.policy == "drop":  # incomplete records are not counted
            columns |= {*(plan.blocks[0].columns or ())}

        def tallies(table: pa.Table, written: pa.Table | None) -> Tallies:
            frame, units = Frame(table), None
            if plan.units:  # by keys, which are the same in all batches
                text = frame if written is None else Frame(written)
                values = values_as_written(text, plan.units[0], written is not None)
                units = row_keys([values])[:, 0].view(np.int64)
            return tally_columns(frame, plan, written is not None, units)

        def merge(first: Tallies, second: Tallies) -> Tallies:
            return {name: tally.merge(second[name]) for name, tally in first.items()}

        counted = parts.reduce(tallies, merge, columns)
        if counted is not None:
            recoders = fit_recoders(plan, counted, Frame(parts.empty()), parts.is_text)
    after = recoded_plan(plan, recoders.values())
    roles = plan.roles(parts.names)
    asked = plan.blocks[0].require.distinct
    columns = {*roles.protected, *roles.strata, *plan.related, *recoders, *extra, *asked}

    def summary_by(after: Plan, log_units: Mapping[Any, float]) -> TableSummary:
        def of_batch(table: pa.Table, written: pa.Table | None) -> TableSummary:
            # Nothing here may hold on to the table: Spark sends this to its workers.
            records, kept = table.num_rows, complete_rows(Frame(table), plan, written is not None)
            if kept is not None:
                table = table.filter(pa.array(kept))
                written = None if written is None else written.filter(pa.array(kept))
            recoded, text = recoded_batch(Frame(table), written, recoders)
            return replace(summarise(recoded.native, after, text, log_units), records=records)

        merged = parts.reduce(of_batch, TableSummary.merge, columns)
        if merged is None:
            raise no_records()
        return merged

    summary = summary_by(after, {})
    dates = _dates_in_text(parts, after, summary)
    log_units = {}  # of columns with values that are not positive: their median, see Transform
    for name, column in summary.columns.items():
        used = column.outside if column.kind == "spiked" else column.moments
        if len(column.sizes.keys) and used.low <= 0:
            log_units[name] = column.sizes.quantile(0.5)
    if dates or log_units:  # which only the whole table tells
        after = replace(after, columns={**after.columns, **dates})
        summary = summary_by(after, log_units)
    encoding = replace(encoding_of(after, summary, parts.is_text, recoders), given=plan)
    _check_groups(after, summary)
    return join_rare_patterns(parts, encoding), summary


def _dates_in_text(parts: Parts, plan: Plan, summary: TableSummary) -> dict[Any, Column]:
    """Give columns the kind date if the plan names none and all their texts are dates written in one way."""
    dates = {}
    for name, column in summary.columns.items():
        setting, texts = plan.column(name), list(column.levels)
        if setting.kind is not None or not all(isinstance(text, str) for text in texts):
            continue
        if dates_in_text(pa.chunked_array([pa.array(texts, pa.string())])) is not None:
            dates[name] = replace(setting, kind="date")
    if dates:  # which types that list their categories are not taken for
        types = Frame(parts.empty())
        dates = {
            name: column for name, column in dates.items() if types.kind_in_words(name) == "text"
        }
    return dates


def encoding_of(
    plan: Plan,
    summary: TableSummary,
    is_csv: bool = False,
    recoders: Mapping[Any, Recoder] | None = None,
) -> Encoding:
    """Fit the encoding of a table to its summary; plan and summary are of the recoded table."""
    recoders = recoders or {}
    block = plan.blocks[0]
    if not summary.records:
        raise no_records()
    check_k(block.k or 1, summary.records)
    uneven = summary.weights.count > 0 and summary.weights.low < summary.weights.high
    mean_weight = summary.weights.mean if summary.weights.count else 1.0
    columns = block.columns or ()
    listed = sorted(summary.cells, key=lambda cell: (repr(cell[0]), cell[1]))
    patterns = np.array([cell[1] for cell in listed], dtype=np.int64).reshape(-1, len(columns))
    sizes = np.array([summary.cells[cell] for cell in listed], dtype=np.int64)
    if not len(sizes):
        raise no_complete_record()
    records = int(sizes.sum())
    states = [np.bincount(column, weights=sizes).astype(np.int64) for column in patterns.T]
    mixed = plan.missing.policy in ("majority", "fill")
    coders, seen = [], []
    for name, often in zip(columns, states, strict=True):
        statistics = summary.columns[name]
        of_states = None
        if mixed and len(often) > 1:
            gone = statistics.missing_mass  # weight of the records in each state but 0, there
            there = summary.weights.total - sum(gone.values())
            masses = [float(there), *(float(gone.get(s, 0)) for s in range(1, len(often)))]
            by_weight = np.array(masses) / mean_weight
            counts = LevelCounts(by_weight if uneven else often, records)
            of_states = nominal_encoder(len(often), counts)
        coder, encoder = _coder(
            name, plan, statistics, of_states, mean_weight, uneven, recoders.get(name)
        )
        coders.append(coder)
        seen.append(encoder)
    return Encoding(
        plan,
        tuple(coders),
        {cell: number for number, cell in enumerate(listed)},
        patterns,
        sizes,
        AttackerSpace(tuple(seen), state_encoders(states)),
        mean_weight,
        uneven,
        records,
        is_csv,
        weight_spread=summary.weights.deviation if summary.weights.count else 0.0,
        recoders=recoders,
    )


def _coder(
    name: Any,
    plan: Plan,
    statistics: ColumnStatistics,
    of_states: Encoder | None,
    mean_weight: float,
    uneven: bool,
    recoder: Recoder | None,
) -> tuple[Coder, Encoder]:
    """Fit a column, for the grouping and for an attacker, who compares records whatever their weights.

    ``mean_weight`` is that of all records, which count alike unless weights are uneven.
    """
    setting, block = plan.column(name), plan.blocks[0]
    levels: tuple[Any, ...] = ()
    if statistics.levels:
        kind = setting.kind or statistics.kind or "nominal"
        if setting.levels is not None:
            # Each batch has checked that nothing else occurs, and has shown them in its own type.
            shown_as = {str(level).strip(): level for level in statistics.levels}
            levels = tuple(shown_as.get(str(level).strip(), level) for level in setting.levels)
        elif setting.kind == "ordinal" and any(isinstance(x, str) for x in statistics.levels):
            raise no_order(name)
        else:
            levels = tuple(sorted(statistics.levels))
        counts = statistics.counted(levels)
        assert isinstance(counts, LevelCounts)
        check_no_identifier(name, kind, setting, len(statistics.levels), counts.present)
        of_kind, occurs = replace(setting, kind=kind, round="no"), np.where(counts.often > 0, 0, -1)
        variable = Variable(name, kind, _NONE, of_kind, levels, occurs)
        variable = with_admissible(variable, block.k or 1, held=statistics.held)
        variable = variable if recoder is None else recoder.placed(variable)
    else:
        variable = Variable(name, statistics.kind or setting.kind or "number", _NONE, setting)
    by_weight = mean_weight if uneven else None
    scale = "zscore" if variable.kind == "spiked" else block.scale
    fitted = statistics.counted(levels, by_weight, scale)
    if isinstance(fitted, LevelCounts):
        variable = replace(variable, often=fitted.often.astype(np.float64))
    axes = Axes(fitted_encoder(variable, fitted), of_states, setting.importance)
    # Digits are rounded by the spread of records that count alike, as in memory.
    spread = (statistics.alike or statistics).moments.deviation
    if recoder is None:
        before, losses = variable, LossScale.of(variable, statistics.counted(levels, by_weight))
    else:
        before, losses = _original(recoder, variable.kind, mean_weight)
    coder = Coder(variable, axes, recoder, before, losses, spread, statistics.moments.steps)
    return coder, fitted_encoder(variable, statistics.counted(levels))


def _original(recoder: Recoder, kind: str, mean_weight: float) -> tuple[Variable, LossScale]:
    """Return a column as it was before it was recoded to a kind, and what its losses are measured by."""
    kind = kind if kind == "hierarchy" else "nominal"
    occurs = np.zeros(len(recoder.levels), dtype=np.int64)
    before = Variable(recoder.name, kind, _NONE, recoder.before, recoder.levels, occurs)
    if recoder.counts_levels:
        often = np.array([recoder.parts[level].weight / mean_weight for level in before.levels])
        counts = LevelCounts(often, sum(part.count for part in recoder.parts.values()))
        return before, LossScale.of(Recoded(recoder, before).before, counts)
    every, total = recoder.every, recoder.every.squares / mean_weight
    centred = Scaling(np.array([every.mean]), np.zeros(1, np.intc), np.zeros(1), np.ones(1))
    inertia = every.count - 1.0 if total > 0 else 0.0
    return before, LossScale(inertia, total, NumberEncoder(Transform(None), centred))


def _check_groups(plan: Plan, summary: TableSummary) -> None:
    """Refuse a table, and strata, that have fewer units, values or weights than one group needs."""
    block, unit = plan.blocks[0], plan.unit_of(plan.blocks[0]).column
    require = Require(distinct=block.require.distinct, population=block.require.population)
    weights = None if plan.weight is None else np.array([float(summary.weights.total)])
    # Of each stratum k units are known, if it has so many: then the table has them, too.
    units = None if unit is None else np.arange(len(frozenset().union(*summary.units.values())))

    def look(_: str, name: Any) -> tuple[Any, bool]:
        return np.arange(len(summary.different[name])), False

    check_feasible(make_requirements(replace(block, require=require), units, unit, weights, look))
    columns, k = plan.strata_of(block).columns, block.k or 1
    sizes = Counter({stratum: len(keys) for stratum, keys in summary.units.items()})
    if unit is None:
        for (stratum, _), records in summary.cells.items():
            sizes[stratum] += records
    if columns and min(sizes.values()) < k:
        raise stratum_too_small(columns, sizes, k, plan.words_of_unit(unit))


def _records_to_join(encoding: Encoding) -> Choose | None:
    """Return what chooses the records that are needed to join rare patterns; None: none has to be joined."""
    by_pattern = encoding.plan.missing.policy == "pattern" and len(encoding.sizes) > 1
    if not by_pattern or not encoding.patterns.any():
        return None
    most = _held_at_most(encoding)
    rare = np.flatnonzero(encoding.sizes < encoding.k * (1 if encoding.unit is None else _FEW))
    small = rare
    if encoding.block.require:  # small patterns may have to join others, too
        small = np.flatnonzero(encoding.sizes <= most)
    near = np.isin(encoding.strata, encoding.strata[np.union1d(rare, small)])
    if not near.any():
        return None
    common = np.setdiff1d(np.flatnonzero(near), rare)

    def choose(packed: PackedRows) -> PackedRows:
        """Return all records of rare cells, and of common ones in their strata those with the lowest keys."""
        cells = encoding.records_of(packed).cells
        needed = [packed[np.isin(cells, rare)]]
        for cell in np.intersect1d(cells, common).tolist():
            held = packed[cells == cell]
            if len(held) > most:
                held = held[by_key(encoding.records_of(held).keys)[:most]]
            needed.append(held)
        return np.concatenate(needed)

    return choose


def join_rare_patterns(parts: Parts, encoding: Encoding) -> Encoding:
    """Join rare patterns by blanking; refuse too many blanks, after strata that cannot be groups at all."""
    choose = _records_to_join(encoding)
    if choose is None:
        return encoding

    def join(batches: Iterable[PackedRows]) -> tuple[Encoding, int]:
        none = np.zeros((0, encoding.width), np.uint64)
        needed = reduce(lambda held, packed: choose(np.concatenate([held, packed])), batches, none)
        return _with_rare_joined(encoding, needed)

    def broken_by_strata(batches: Iterable[PackedRows]) -> str:
        return broken_requirement(encoding, np.concatenate(list(batches)), by_strata=True)

    joined, blanked = parts.gather(encoding, choose, join)
    try:
        check_blanked(encoding.patterns, encoding.sizes, blanked, encoding.plan)
    except InputError:
        if encoding.block.require:  # which a table or a stratum may break even as one group
            broken = parts.gather(encoding, lambda packed: packed, broken_by_strata)
            if broken:
                raise InputError(broken) from None
        raise
    return joined


def _held_at_most(encoding: Encoding) -> int:
    """Return the records of a common pattern that are held; all of one that has no more."""
    return max(_LENT, 8 * encoding.k)


def _with_rare_joined(encoding: Encoding, packed: PackedRows) -> tuple[Encoding, int]:
    """Return the encoding by which no pattern has fewer than k units, and the fewest values to blank for it.

    ``packed`` are the records of :func:`_records_to_join`; those whose pattern was changed move to the cell
    of the new one.
    """
    records = encoding.records_of(packed)
    # In the order of keys, so that it does not matter how the records came.
    records = records.taken(by_key(records.keys))
    strata = np.unique(encoding.strata[records.cells], return_inverse=True)[1]
    units = None if records.units is None else np.unique(records.units, return_inverse=True)[1]
    states = encoding.patterns[records.cells]
    rules = requirements(encoding, records) if encoding.block.require else None
    joined = join_patterns(
        states,
        strata,
        encoding.k,
        units,
        encoding.coordinates(records),
        None if rules is None else partial(can_be_group, rules),
        encoding.sizes[records.cells] > _held_at_most(encoding),
    )
    listed, cells, sizes = list(encoding.cells), dict(encoding.cells), encoding.sizes.tolist()
    moved: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero((joined.states != states).any(axis=1)).tolist():
        old = int(records.cells[row])
        new = cells.setdefault((listed[old][0], tuple(joined.states[row].tolist())), len(cells))
        sizes += [0] * (len(cells) - len(sizes))
        sizes[old] -= 1
        sizes[new] += 1
        moved[tuple(records.keys[row].tolist())] = new
    patterns = np.array([pattern for _, pattern in cells], dtype=np.int64)
    changed = replace(encoding, cells=cells, patterns=patterns, moved=moved)
    return replace(changed, sizes=np.array(sizes, np.int64)), joined.blanked
