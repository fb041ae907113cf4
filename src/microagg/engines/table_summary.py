"""What a pass over a table that is read in parts learns: one summary a batch, merged in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Floats, Labels
from microagg.encode.batch_statistics import ColumnStatistics, Moments
from microagg.encode.missing import complete_records, distinct_rows
from microagg.encode.prepare import weights_of
from microagg.encode.spiked import spike_of
from microagg.encode.strata import stratum_codes
from microagg.errors import InputError, shown
from microagg.grouping.read_table import check_relations, refused_as_missing
from microagg.measure.row_keys import row_keys
from microagg.plan.block import Block
from microagg.plan.column import CATEGORIES
from microagg.plan.plan import Plan
from microagg.tables.as_written import values_as_written
from microagg.tables.dates import dates_in_text
from microagg.tables.frame import Frame
from microagg.tables.frame_libraries import is_text
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.variable import Variable, variable_of

Cell = tuple[tuple[Any, ...], tuple[int, ...]]
"""The values of the strata, and the state of each protected column."""


@dataclass(eq=False)
class TableSummary:
    """What is known of a table, or of some of its records."""

    columns: dict[Any, ColumnStatistics]
    cells: Counter[Cell]
    weights: Moments
    records: int = 0
    different: dict[Any, frozenset[int]] = field(default_factory=dict)
    """Keys of some values of the unit and of columns with a required number: as many as a group needs."""

    def merge(self, other: TableSummary) -> TableSummary:
        """Return what is known of both together."""
        return TableSummary(
            {name: one.merge(other.columns[name]) for name, one in self.columns.items()},
            self.cells + other.cells,
            self.weights.merge(other.weights),
            self.records + other.records,
            {key: own | other.different[key] for key, own in self.different.items()},
        )


def summarise(table: pa.Table, plan: Plan, written: pa.Table | None = None) -> TableSummary:
    """Summarise a batch.

    Parameters
    ----------
    table : its records, typed as the whole table is
    plan : with the columns to protect named
    written : the same records as they stand in a CSV file
    """
    frame = Frame(table)
    block = plan.blocks[0]
    weights = None if plan.weight is None else weights_of(frame, plan.weight.column)
    unit = plan.unit_of(block).column
    as_read = frame if written is None else Frame(written)

    def keys_of(name: Any) -> Any:
        return row_keys([values_as_written(as_read, name, written is not None)])[:, 0]

    units = None if unit is None else keys_of(unit)
    different = {
        name: frozenset(np.unique(keys_of(name))[:least].tolist())
        for name, least in block.require.distinct.items()
    }
    if units is not None:
        different[unit] = frozenset(np.unique(units)[: block.k].tolist())
    columns, variables = {}, {}
    for name in block.columns or ():
        variable = coded_variable(frame, plan, name, written is not None)
        variables[name] = variable
        columns[name] = _summary(frame, variable, block, weights)
        columns[name].check_levels(name)
        if units is not None and columns[name].levels:
            columns[name].holders = _holders(variable, units, block.k or 1)
            columns[name].most_holders = block.k or 1
    check_relations(plan, frame, variables)
    if plan.missing.policy == "drop":
        complete = complete_records(variables.values())
        if not complete.all():  # all but the number of records is about those that are kept
            kept = pa.array(complete)
            left = None if written is None else written.filter(kept)
            return replace(summarise(table.filter(kept), plan, left), records=len(frame))
    cells = cells_of(frame, plan, written, [variables[name] for name in block.columns or ()])
    found, which = cells
    often = np.bincount(which, minlength=len(found))
    masses = Moments() if weights is None else Moments().add(weights)
    counted = Counter(dict(zip(found, often.tolist(), strict=True)))
    return TableSummary(columns, counted, masses, len(frame), different)


def coded_variable(frame: Frame, plan: Plan, name: Any, is_csv: bool) -> Variable:
    """Read a column of a batch; texts without a kind are categories for now."""
    setting, codes = plan.column(name), plan.missing.codes.get(name, ())
    if (
        setting.kind is None
        and not frame.is_numeric(name)
        and frame.kind_in_words(name) in ("text", "categories")
    ):
        setting = replace(setting, kind="nominal", round="no")
    found = variable_of(frame, name, setting, codes, missing_words(is_csv))
    if found.kind == "date":  # counted from the same instant in all batches
        found = replace(found, values=found.values + found.origin, origin=0)
    if plan.missing.policy == "error" and found.missing.any():
        raise refused_as_missing(found)
    return found


def _summary(
    frame: Frame, variable: Variable, block: Block, weights: Floats | None
) -> ColumnStatistics:
    there = ~variable.missing
    found = ColumnStatistics(variable.kind, missing=int(np.count_nonzero(~there)))
    own = None if weights is None else weights[there]
    if variable.kind in CATEGORIES:
        numbers = variable.level_numbers[there]
        often = np.bincount(numbers, minlength=len(variable.levels))
        occurring = np.flatnonzero(often).tolist()
        found.levels = Counter({variable.levels[at]: int(often[at]) for at in occurring})
        if own is not None:
            for at in occurring:
                found.mass[variable.levels[at]] = Moments().add(own[numbers == at]).exact_total
        column = frame.arrow_column(variable.name)
        if is_text(column.type) and found.levels:
            texts = pa.array(list(found.levels), pa.string())
            seen = dates_in_text(pa.chunked_array([texts]))
            found.formats = frozenset([None if seen is None else seen[1]])
        return found
    values = variable.values[there]
    found.moments.add(values, own)
    setting = variable.setting
    if variable.kind == "spiked":
        off = values != spike_of(setting)
        found.outside.add(values[off], None if own is None else own[off])
    if setting.transform == "log":
        if (values <= 0).any():
            raise InputError(
                "In a table that is read in parts logarithms are of numbers above 0; column "
                f"{shown(variable.name)} has others. Leave the transform out, or say engine = memory."
            )
        found.logarithms.add(np.log(values), own)
    if block.scale == "robust":
        found.sketch.add(np.log(values) if setting.transform == "log" else values)
    if weights is not None:  # an attacker compares records, whatever their weights
        found.alike = _summary(frame, variable, block, None)
    return found


def _holders(variable: Variable, units: Any, k: int) -> dict[Any, frozenset[int]]:
    """Find the k least keys of the units that hold each level of a batch."""
    there = ~variable.missing
    levels, keys = variable.level_numbers[there], units[there]
    order = np.lexsort((keys, levels))
    levels, keys = levels[order], keys[order]
    new = np.append(True, (levels[1:] != levels[:-1]) | (keys[1:] != keys[:-1]))[: len(levels)]
    levels, keys = levels[new], keys[new]
    starts = np.searchsorted(levels, np.arange(len(variable.levels)))
    ends = np.minimum(np.append(starts[1:], len(levels)), starts + k)
    return {
        level: frozenset(keys[start:end].tolist())
        for level, start, end in zip(variable.levels, starts, ends, strict=True)
        if end > start
    }


def cells_of(
    frame: Frame, plan: Plan, written: pa.Table | None, variables: Sequence[Variable]
) -> tuple[list[Cell], Labels]:
    """Find the cells that occur in a batch, and the cell of each record."""
    wanted = plan.strata_of(plan.blocks[0]).columns
    text = None if written is None else Frame(written)
    read = [stratum_codes(frame, name, text) for name in wanted]
    states = [variable.states for variable in variables]
    rows, which = distinct_rows(np.column_stack([*(codes for codes, _ in read), *states]))
    s = len(wanted)
    found = [(tuple(read[j][1][row[j]] for j in range(s)), tuple(row[s:])) for row in rows.tolist()]
    return found, which
