"""What a worker needs to know of a table and its plan: fitted once, sent to every process.

A table that is read in parts goes through two passes. The first summarises every batch
(``table_summary.py``); merged, the summaries fix how each column is encoded and which cells there are
(``fit.py``). The second turns batches into *records*, each packed into a few numbers of 64 bits: the values
of the protected columns, weight, unit, cell, what requirements ask for, and a key of the whole row. Records
alone travel between chunks; batches never do.

Nothing here depends on how the table is cut into batches or on the order of its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microagg.base.formatting import names
from microagg.base.typing import Floats, Labels
from microagg.encode.prepare import weights_of
from microagg.encode.recode import Recoder
from microagg.encode.recoded_table import complete_rows, recoded_batch
from microagg.encode.space import Axes
from microagg.encode.steps import Steps
from microagg.engines.table_summary import Cell, batch_column, cells_of
from microagg.grouping.require.from_plan import RULES, RuleContext, amounts_of, asked_columns
from microagg.measure.both_tables import AttackerSpace
from microagg.measure.row_keys import Keys, row_keys
from microagg.measure.utility import LossScale
from microagg.plan.block import Block
from microagg.plan.column import CATEGORIES
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.tables.frame import Frame, values_as_written
from microagg.tables.variable import QUANTITIES, Variable

PackedRows = NDArray[np.uint64]


class Coder(NamedTuple):
    """How one protected column becomes coordinates, and is released."""

    variable: Variable
    """The column without its values: what is known of it from the whole table."""
    axes: Axes
    recoder: Recoder | None
    """Of a recoded column: how it was."""
    before: Variable
    """The column before any recoding, without its values."""
    losses: LossScale
    """Of the column before any recoding."""
    spread: float = 0.0
    steps: Steps = Steps()
    """In which the values of the table move."""


class Records(NamedTuple):
    """Some records, as methods and requirements need them."""

    values: Floats  # (n, columns)
    originals: Floats  # (n, recoded columns) before their recoding
    weights: Floats | None  # as given
    units: Labels | None
    cells: Labels  # number of the stratum and pattern, 0 where there is but one
    asked: PackedRows  # (n, r) of the columns that requirements name
    keys: Keys  # (n, 2) of the whole row
    extra: PackedRows  # (n, …) whatever travels with them

    def __len__(self) -> int:
        return len(self.values)

    def taken(self, rows: Any) -> Records:
        """Return some of them."""
        chosen: list[Any] = [None if part is None else part[rows] for part in self]
        return Records(*chosen)


@dataclass(frozen=True, eq=False)
class Encoding:
    """How batches become records, and records coordinates."""

    plan: Plan
    coders: tuple[Coder, ...]
    cells: Mapping[Cell, int]
    patterns: Labels  # (cells, columns) state of each column
    sizes: Labels  # records of each cell
    attacker: AttackerSpace
    """The space in which an attacker compares records: no weights, scale or importance."""
    mean_weight: float
    weighted: bool
    """Whether weights differ, and count in the objective or in means."""
    records: int
    is_csv: bool = False
    weight_spread: float = 0.0
    """Standard deviation of the weights."""
    moved: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """By key of the row: the cell of records that belong to another one than their pattern says: fit.py."""
    recoders: Mapping[Any, Recoder] = field(default_factory=dict)
    """Columns that are recoded before anything else; the plan is that of the recoded table."""
    given: Plan | None = None
    """The plan as it was given, where it recodes columns."""

    @property
    def block(self) -> Block:
        """The block of columns."""
        return self.plan.blocks[0]

    @property
    def k(self) -> int:
        """Least number of units in a group."""
        return self.block.k or 1

    @property
    def is_swapped(self) -> bool:
        """Whether values are swapped within groups instead of aggregated."""
        return self.block.is_swapped

    @property
    def releases_weight(self) -> bool:
        """Whether the weight is released as the mean of the group or, with swapped values, dealt."""
        return self.plan.weight is not None and self.plan.weight.release == "mean"

    @property
    def weighs(self) -> bool:
        """Whether records weigh differently in the objective."""
        weight = self.plan.weight
        return self.weighted and weight is not None and weight.grouping == "weighted"

    @cached_property
    def cell_numbers(self) -> Labels:
        """Of each cell: the number of what groups may not cross, which patterns are by one policy only."""
        if self.plan.missing.policy in ("pattern", "error", "drop"):
            return np.arange(len(self.sizes))
        return self.strata

    @cached_property
    def strata(self) -> Labels:
        """Number of the stratum of each cell."""
        names = [repr(cell[0]) for cell in self.cells]
        return np.unique(names, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @property
    def cell_sizes(self) -> Labels:
        """Records of each of the parts of the table that groups may not cross."""
        return np.bincount(self.cell_numbers, self.sizes).astype(np.int64)

    def cell_of(self, records: Records) -> Labels:
        """Part of the table that each record is in, and no group may cross."""
        return self.cell_numbers[records.cells]

    @cached_property
    def _widths(self) -> list[int]:
        """Packed numbers of a record in each field of :class:`Records`, what travels with it aside."""
        optional = self.plan.weight is not None, self.unit is not None, len(self.sizes) > 1
        asked = len(asked_columns(self.block.require))
        return [len(self.coders), len(self.recoded_columns), *map(int, optional), asked, 2]

    @property
    def width(self) -> int:
        """Packed numbers of a record, without what travels with it."""
        return sum(self._widths)

    @property
    def unit(self) -> Any:
        """Column of the units that k counts; None: records."""
        return self.plan.unit_of(self.block).column

    @cached_property
    def is_one_column(self) -> bool:
        """Whether the plan asks for the optimal cut of one column of numbers."""
        block, coder = self.block, self.coders[0]
        if len(self.coders) > 1 or self.unit is not None or block.require or self.weighs:
            return False
        # Groups are not merged, and do not mix records with and without a value.
        if block.standing is not None or coder.axes.states is not None:
            return False
        variable, is_plain = coder.variable, not block.options.keys() - {"effort"}
        if variable.kind not in QUANTITIES[:2] or variable.setting.transform is not None:
            return False
        return is_plain and find(block.method).guarantee_for(1, weighted=False) == "exact"

    @property
    def recoded_columns(self) -> list[Recoder]:
        """Recodings of protected columns."""
        return [coder.recoder for coder in self.coders if coder.recoder is not None]

    def recoded(self, table: pa.Table, written: pa.Table | None = None) -> tuple[Any, Any]:
        """Recode a batch, typed and as a CSV file holds it."""
        if not self.recoders:
            return table, written
        frame, written = recoded_batch(Frame(table), written, self.recoders)
        return frame.native, written

    def packed(
        self, table: pa.Table, written: pa.Table | None = None, extra: PackedRows | None = None
    ) -> PackedRows:
        """Turn a batch into packed records, a row each; records to be left out are not among them.

        ``extra`` has numbers of each row of the batch that travel with its record.
        """
        kept = self.kept(table)
        if kept is not None:
            table = table.filter(pa.array(kept))
            written = None if written is None else written.filter(pa.array(kept))
            extra = None if extra is None else extra[kept]
        whole, unrecoded = table if written is None else written, Frame(table)
        table, written = self.recoded(table, written)
        frame = Frame(table)
        text = frame if written is None else Frame(written)
        variables = self.read(frame)
        parts = [np.column_stack([variable.values for variable in variables]).view(np.uint64)]
        originals = (recoder.originals(unrecoded) for recoder in self.recoded_columns)
        parts += [column.view(np.uint64)[:, None] for column in originals]
        if self.plan.weight is not None:
            parts.append(weights_of(frame, self.plan.weight.column).view(np.uint64)[:, None])
        if self.unit is not None:
            parts.append(row_keys([values_as_written(text, self.unit, self.is_csv)])[:, :1])
        keys = row_keys([whole.column(j) for j in range(whole.num_columns)])
        if len(self.sizes) > 1:
            cells, which = cells_of(frame, self.plan, written, variables)
            numbers = np.array([self.cells.get(cell, 0) for cell in cells], np.uint64)[which]
            halves = np.array([key[0] for key in self.moved], dtype=np.uint64)
            for row in np.flatnonzero(np.isin(keys[:, 0], halves)).tolist():
                numbers[row] = self.moved.get(tuple(keys[row].tolist()), numbers[row])
            parts.append(numbers[:, None])
        for kind, name in asked_columns(self.block.require):
            if RULES[kind].sees != "amounts":
                parts.append(row_keys([values_as_written(text, name, self.is_csv)])[:, :1])
                continue
            amounts, asked = amounts_of(frame, name), getattr(self.block.require, kind)[name]
            RULES[kind].make(amounts, asked, RuleContext(names([name]), None))  # refuses wrong ones
            parts.append(amounts.view(np.uint64)[:, None])
        return np.hstack([*parts, keys, *([] if extra is None else [extra])])

    def kept(self, table: pa.Table) -> NDArray[np.bool_] | None:
        """Find the rows of a batch that are released; None: all, which needs no look at them."""
        return complete_rows(Frame(table), self.given or self.plan, self.is_csv)

    def read(self, frame: Frame) -> list[Variable]:
        """Read the protected columns of a batch that is recoded already."""
        settings = {coder.variable.name: coder.variable.setting for coder in self.coders}
        # One plan for all columns: checking a plan takes time linear in the columns it names.
        plan, variables = replace(self.plan, columns={**self.plan.columns, **settings}), []
        for whole in (coder.variable for coder in self.coders):
            variable = batch_column(frame, plan, whole.name, self.is_csv)
            if variable.kind in CATEGORIES:  # get the level numbers of the whole table
                number = {level: at for at, level in enumerate(whole.levels)}
                # Levels that only records have which are left out are none of the table.
                new_numbers = [*(number.get(level, -1) for level in variable.levels), -1]
                numbers = np.array(new_numbers, dtype=np.float64)[variable.level_numbers]
                values = np.where(numbers < 0, np.nan, numbers)
                variable = replace(variable, values=values, levels=whole.levels, rows=whole.rows)
            variables.append(variable)
        return variables

    def records_of(self, packed: PackedRows) -> Records:
        """Read packed records."""
        fields = np.split(packed, np.cumsum(self._widths), axis=1)
        values, originals, weights = (
            np.ascontiguousarray(bits).view(np.float64) for bits in fields[:3]
        )
        units, cells = fields[3].astype(np.int64), fields[4].astype(np.int64)
        return Records(
            values,
            originals,
            weights[:, 0] if weights.shape[1] else None,
            units[:, 0] if units.shape[1] else None,
            cells[:, 0] if cells.shape[1] else np.zeros(len(packed), np.int64),
            *fields[5:],
        )

    def relative_weights(self, records: Records) -> Floats | None:
        """Weights with a mean of 1 over the table; None where all are equal."""
        if records.weights is None or not self.weighted:
            return None
        return np.asarray(records.weights / self.mean_weight)

    def states(self, records: Records) -> Labels:
        """State of each value."""
        return self.patterns[records.cells]

    def original_states(self, records: Records) -> Labels:
        """State that each value came with: what the join of rare patterns blanks was there."""
        return np.where(np.isnan(records.values), self.states(records), 0)

    def coordinates(self, records: Records) -> Floats:
        """Return the coordinates of records, C-contiguous."""
        states: Any = [None] * len(self.coders)
        if any(coder.axes.states is not None for coder in self.coders):
            states = self.states(records).T
        columns = zip(self.coders, records.values.T, states, strict=True)
        blocks = [block for coder, *column in columns for block in coder.axes.place(*column)]
        return np.ascontiguousarray(np.hstack(blocks))
