"""What a pass over a table that is read in parts learns: one summary a batch, merged in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.typing import Floats, Labels
from microagg.encode.batch_statistics import (
    ColumnStatistics,
    Moments,
    Sketch,
    least_keys,
    least_units,
    mass_by_number,
)
from microagg.encode.hierarchy import ancestors
from microagg.encode.missing import distinct_rows
from microagg.encode.number import Transform, present
from microagg.encode.prepare import weights_of
from microagg.encode.strata import stratum_codes
from microagg.grouping.read_table import check_relations, refused_as_missing
from microagg.measure.row_keys import row_keys
from microagg.plan.block import Block
from microagg.plan.column import CATEGORIES
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame, values_as_written
from microagg.tables.numbers_in_text import missing_words
from microagg.tables.variable import Variable, column_of

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
    """Keys of some values of columns with a required number: as many as a group needs."""
    units: dict[tuple[Any, ...], frozenset[int]] = field(default_factory=dict)
    """If k counts units: the least keys of the units of each stratum, at most k."""
    k: int = 1

    def merge(self, other: TableSummary) -> TableSummary:
        """Return what is known of both together."""
        columns, others = self.columns, other.columns
        return TableSummary(
            {name: statistics.merge(others[name]) for name, statistics in columns.items()},
            self.cells + other.cells,
            self.weights.merge(other.weights),
            self.records + other.records,
            {key: keys | other.different[key] for key, keys in self.different.items()},
            least_keys(self.units, other.units, self.k),
            self.k,
        )


def summarise(
    table: pa.Table,
    plan: Plan,
    written: pa.Table | None = None,
    log_units: Mapping[Any, float] | None = None,
) -> TableSummary:
    """Summarise a batch, whose columns are typed as in the whole table.

    ``written`` has the same records as they stand in a CSV file; ``log_units`` are of columns that count by
    their logarithm and have values that are not positive.
    """
    frame, log_units = Frame(table), log_units or {}
    block, k = plan.blocks[0], plan.blocks[0].k or 1
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
    columns, variables = {}, {}
    for name in block.columns or ():
        variable = batch_column(frame, plan, name, written is not None)
        variables[name] = variable
        if variable.kind == "hierarchy":
            ancestors(variable)  # which refuses codes that the hierarchy does not have
        columns[name] = _summary(variable, block, weights, log_units.get(name, 0.0))
        columns[name].check_levels(name)
        if units is not None and columns[name].levels:
            there = ~variable.missing
            levels, numbers = variable.levels, variable.level_numbers[there]
            columns[name].holders = _by_value(numbers, levels, units[there], k)
            columns[name].most_holders = k
    check_relations(plan, frame, variables)
    protected = [variables[name] for name in block.columns or ()]
    cells, which = cells_of(frame, plan, written, protected)
    often = np.bincount(which, minlength=len(cells))
    masses = Moments() if weights is None else Moments().add(weights)
    counted = Counter(dict(zip(cells, often.tolist(), strict=True)))
    in_strata: dict[tuple[Any, ...], frozenset[int]] = {}
    if units is not None:
        number: dict[Any, int] = {}
        strata = np.array([number.setdefault(stratum, len(number)) for stratum, _ in cells])
        in_strata = _by_value(strata[which], list(number), units, k)
    return TableSummary(columns, counted, masses, len(frame), different, in_strata, k)


def batch_column(frame: Frame, plan: Plan, name: Any, is_csv: bool) -> Variable:
    """Read a column of a batch; texts without a kind are categories for now."""
    variable = column_of(frame, plan, name, missing_words(is_csv), in_batches=True)
    if variable.kind == "date":  # counted from the same instant in all batches
        variable = replace(variable, values=variable.values + variable.origin, origin=0)
    if plan.missing.policy == "error" and variable.missing.any():
        raise refused_as_missing(variable)
    return variable


def _summary(
    variable: Variable, block: Block, weights: Floats | None, log_unit: float
) -> ColumnStatistics:
    statistics, missing = ColumnStatistics(variable.kind), variable.missing
    if weights is not None:
        statistics.missing_mass = mass_by_number(variable.states[missing], weights[missing])
    every, used = present(variable, weights)
    if variable.kind in CATEGORIES:
        numbers = every.values.astype(np.int64)
        often = np.bincount(numbers, minlength=len(variable.levels))
        occurring = np.flatnonzero(often).tolist()
        statistics.levels = Counter({variable.levels[at]: int(often[at]) for at in occurring})
        if every.weights is not None:
            masses = mass_by_number(numbers, every.weights)
            statistics.mass = {variable.levels[at]: mass for at, mass in masses.items()}
        return statistics
    statistics.moments.add(*every)
    if used is not every:
        statistics.outside.add(*used)
    if variable.setting.transform == "log":
        statistics.sizes = Sketch.of(np.abs(used.values[used.values != 0]))
        if log_unit or (used.values > 0).all():  # else the unit is found first, from the sizes
            statistics.transform = Transform("log", log_unit)
            used = used._replace(values=statistics.transform.apply(used.values))
            statistics.transformed.add(*used)
    if block.scale == "robust" and variable.kind != "spiked":
        statistics.sketch = Sketch.of(used.values, used.weights)
    if weights is not None:  # an attacker compares records, whatever their weights
        statistics.alike = _summary(variable, block, None, log_unit)
    return statistics


def _by_value(
    numbers: Labels, values: Sequence[Any], units: Labels, k: int
) -> dict[Any, frozenset[int]]:
    """Return the k least units of each value that occurs; ``numbers`` are those of the values."""
    held = least_units(numbers, units, len(values), k)
    return {value: keys for value, keys in zip(values, held, strict=True) if keys}


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
    cells = [(tuple(read[j][1][row[j]] for j in range(s)), tuple(row[s:])) for row in rows.tolist()]
    return cells, which
