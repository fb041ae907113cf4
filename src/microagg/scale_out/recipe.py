"""What a worker needs to know of a table and its plan: fitted once, sent to every process.

A table that is read in parts goes through two passes. The first summarises every batch
(:func:`summarise`); merged, the summaries fix how each column is encoded and which cells there are
(:func:`recipe_of`). The second turns batches into *records*, a few words of 64 bits each: the values of the
protected columns, weight, unit, cell, what requirements ask for, and a key of the whole row. Records alone
travel between blocks; batches never do.

Nothing here depends on how the table is cut into batches or on the order of its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from microagg.encode import nominal
from microagg.encode.inertia import Corners, Encoder
from microagg.encode.missing import distinct_rows
from microagg.encode.number import Line, Transform
from microagg.encode.scale import Scaling, scaling_of
from microagg.encode.space import encoder_of
from microagg.encode.spiked import Split, spike_of
from microagg.encode.summary import Moments, Summary
from microagg.errors import InputError, shown
from microagg.groups import Floats, Labels
from microagg.intake import check_relations, weights_of
from microagg.plan import Block, Column, Plan
from microagg.scale_out.counting import row_keys
from microagg.settings import check_k
from microagg.tables.dates import dates_in_text, is_text
from microagg.tables.exact import values_as_written
from microagg.tables.frames import MISSING_WORDS, Frame
from microagg.tables.variable import CATEGORIES, Variable, variable_of

__all__ = ["Recipe", "Records", "TableSummary", "check_supported", "recipe_of", "summarise"]

Words = NDArray[np.uint64]
_MOST_CODES = 14  # so that the state of a value takes four bits
Cell = tuple[tuple[Any, ...], tuple[int, ...]]
"""The values of the strata, and the state of each protected column."""


def check_supported(plan: Plan) -> None:
    """Refuse what a table that is read in parts cannot have, with the way out."""
    block = plan.blocks[0]
    strange = [name for name in block.columns or () if plan.column(name).kind == "hierarchy"]
    refused = [
        (len(plan.blocks) > 1, "one block of columns", "the plan has several"),
        (
            block.per_column and len(block.columns or ()) > 1,
            "one partition",
            "per_column asks for one a column",
        ),
        (plan.unit_of(block).mode == "together", "units that are counted", "mode is together"),
        (plan.strata_of(block).small == "merge", "strata of k units", "small is merge"),
        (bool(plan.renumber), "identifiers that are dropped", "renumber names some"),
        (plan.shuffle, "rows in the order they came", "shuffle is true"),
        (bool(block.require.closeness), "requirements of a group by itself", "closeness is asked"),
        (bool(strange), "kinds without a hierarchy", "a column is of kind hierarchy"),
        (
            any(plan.column(name).transform == "rank" for name in block.columns or ()),
            "values or their logarithms",
            "a transform is rank",
        ),
        (
            any(plan.column(name).round == "totals" for name in block.columns or ()),
            "values rounded one by one",
            "round is totals",
        ),
        (
            any(len(codes) > _MOST_CODES for codes in plan.missing.codes.values()),
            f"up to {_MOST_CODES} codes for missing values in a column",
            "one has more",
        ),
        (
            block.released != "mean",
            "groups that release means",
            f"the aggregate is {block.released}",
        ),
    ]
    for is_so, rule, fact in refused:
        if is_so:
            raise InputError(
                f"A table that is read in parts has {rule}; {fact}. Leave that out, or say "
                "engine = memory where the table fits."
            )


@dataclass(eq=False)
class TableSummary:
    """What is known of a table, or of some of its records."""

    columns: dict[Any, Summary]
    cells: Counter[Cell]
    weights: Moments
    records: int = 0

    def merge(self, other: TableSummary) -> TableSummary:
        """Return what is known of both together."""
        return TableSummary(
            {name: one.merge(other.columns[name]) for name, one in self.columns.items()},
            self.cells + other.cells,
            self.weights.merge(other.weights),
            self.records + other.records,
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
    columns, variables = {}, {}
    for name in block.columns or ():
        variable = _variable(frame, plan, name, written is not None)
        variables[name] = variable
        columns[name] = _summary(frame, variable, block, weights)
        columns[name].check_levels(name)
    check_relations(plan, frame, variables)
    cells = _cells(frame, plan, written, [variables[name] for name in block.columns or ()])
    found, which = cells
    often = np.bincount(which, minlength=len(found))
    masses = Moments() if weights is None else Moments().add(weights)
    return TableSummary(
        columns, Counter(dict(zip(found, often.tolist(), strict=True))), masses, len(frame)
    )


def _variable(frame: Frame, plan: Plan, name: Any, is_csv: bool) -> Variable:
    """Read a column of a batch; texts of which no kind is said are categories for now."""
    setting, codes = plan.column(name), plan.missing.codes.get(name, ())
    if (
        setting.kind is None
        and not frame.is_numeric(name)
        and frame.kind_in_words(name) in ("text", "categories")
    ):
        setting = replace(setting, kind="nominal")
    words = MISSING_WORDS if is_csv else ("",)
    found = variable_of(frame, name, setting, codes, words)
    if found.kind == "date":  # counted from the same instant in all batches
        found = replace(found, values=found.values + found.origin, origin=0)
    if plan.missing.policy == "error" and found.missing.any():
        raise InputError(
            f"Columns to protect must have no missing values by the policy error; column {shown(name)} has "
            'some. Fill them, or say missing = "pattern".'
        )
    return found


def _summary(frame: Frame, variable: Variable, block: Block, weights: Floats | None) -> Summary:
    there = ~variable.missing
    found = Summary(variable.kind, missing=int(np.count_nonzero(~there)))
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
        if is_text(column) and found.levels:
            texts = pa.array(list(found.levels), pa.string())
            seen = dates_in_text(pa.chunked_array([texts]))
            found.formats = frozenset([None if seen is None else seen[1]])
        return found
    values = variable.values[there]
    found.moments.add(values, own)
    setting = variable.setting
    if variable.kind == "spiked":
        off = values != spike_of(variable)
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
    return found


def _cells(
    frame: Frame, plan: Plan, written: pa.Table | None, variables: Sequence[Variable]
) -> tuple[list[Cell], Labels]:
    """Cells that occur in a batch, and which of them each record is in."""
    wanted = plan.strata_of(plan.blocks[0]).columns
    text = frame if written is None else Frame(written)
    states = np.column_stack([variable.states for variable in variables])
    codes, values = [], []
    for name in wanted:
        own, levels = text.categories(name)
        if (own < 0).any() or (written is not None and (frame.categories(name)[0] < 0).any()):
            raise InputError(
                f"Every record belongs to a stratum; column {shown(name)} is missing in some. Fill it, give "
                'it a value of its own such as "unknown", or drop those records.'
            )
        codes.append(own)
        values.append(levels)
    rows, which = distinct_rows(np.column_stack([*codes, states]))
    s = len(wanted)
    found = [(tuple(values[j][row[j]] for j in range(s)), tuple(row[s:])) for row in rows.tolist()]
    return found, which


class Coder(NamedTuple):
    """How one protected column becomes coordinates, and is released."""

    name: Any
    kind: str
    setting: Column
    levels: tuple[Any, ...]
    often: Floats
    encoder: Encoder
    spread: float
    whole: bool
    format: str | None


class Records(NamedTuple):
    """Some records, as methods and requirements need them."""

    values: Floats  # (n, columns)
    weights: Floats | None  # as given
    units: Labels | None
    cells: Labels | None  # number of the stratum and pattern
    asked: Words  # (n, r) of the columns that requirements name
    keys: Words  # (n, 2) of the whole row
    beside: Words  # (n, …) whatever travels with them

    def __len__(self) -> int:
        return len(self.values)

    def taken(self, rows: Any) -> Records:
        """Return some of them."""
        taken: list[Any] = [None if part is None else part[rows] for part in self]
        return Records(*taken)


@dataclass(frozen=True, eq=False)
class Recipe:
    """How batches become records, and records coordinates."""

    plan: Plan
    coders: tuple[Coder, ...]
    cells: Mapping[Cell, int]
    patterns: Labels  # (cells, columns) state of each column
    sizes: Labels  # records of each cell
    state_encoders: Mapping[int, Encoder]
    """By column: where missing or not is a coordinate of its own."""
    mean_weight: float
    weighted: bool
    """Whether weights differ, and count in the objective or in means."""
    records: int
    is_csv: bool = False
    moved_keys: Words = field(default_factory=lambda: np.zeros((0, 2), dtype=np.uint64))
    """Of rows that belong to another cell than their own pattern says, ascending, see :mod:`.rare`."""
    moved_cells: Labels = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def block(self) -> Block:
        """The block of columns."""
        return self.plan.blocks[0]

    @property
    def k(self) -> int:
        """Least number of units in a group."""
        return self.block.k or 1

    @property
    def has_cells(self) -> bool:
        """Whether records of several cells, or states, have to be told apart."""
        return len(self.sizes) > 1

    @property
    def weighs(self) -> bool:
        """Whether records weigh differently in the objective."""
        weight = self.plan.weight
        return self.weighted and weight is not None and weight.grouping == "weighted"

    @cached_property
    def _apart(self) -> Labels:
        """Of each cell: the number of what groups may not cross, which patterns are by one policy only."""
        if self.plan.missing.policy in ("pattern", "error", "drop"):
            return np.arange(len(self.sizes))
        strata = [repr(cell[0]) for cell in self.cells]
        return np.unique(strata, return_inverse=True)[1].reshape(-1).astype(np.int64)

    @property
    def cell_sizes(self) -> Labels:
        """Records of each of the parts of the table that groups may not cross."""
        return np.bincount(self._apart, self.sizes).astype(np.int64)

    def check_cells(self) -> None:
        """Refuse strata, and patterns of missing values, that fewer than k records have."""
        short = np.flatnonzero(self.cell_sizes < self.k)
        if not len(short):
            return
        cell = list(self.cells)[int(np.flatnonzero(self._apart == short[0])[0])]
        strata = self.plan.strata_of(self.block).columns
        told = [
            f"{shown(name)} = {shown(value)}" for name, value in zip(strata, cell[0], strict=True)
        ]
        more = f", and {len(short) - 1:,} more" if len(short) > 1 else ""
        pattern = [
            str(coder.name) for coder, state in zip(self.coders, cell[1], strict=True) if state
        ]
        if pattern:
            told.append(f"without {', '.join(shown(name) for name in pattern)}")
        raise InputError(
            f"Groups never cross strata or patterns of missing values, so that each needs at least k = "
            f"{self.k} records; {', '.join(told)} has {int(self.cell_sizes[short[0]])}{more}. Lower k, name "
            'coarser strata, or say another policy for missing values, such as "majority".'
        )

    def apart(self, records: Records) -> Labels | None:
        """Part of the table that each record is in, and no group may cross; None: there is but one."""
        return None if records.cells is None else self._apart[records.cells]

    @property
    def asked_columns(self) -> list[tuple[str, Any]]:
        """Requirements that look at a column: their name and the column."""
        asked = self.block.require
        kinds = ("distinct", "entropy", "recursive", "p_percent", "n_k")
        return [(kind, name) for kind in kinds for name in getattr(asked, kind)]

    @property
    def width(self) -> int:
        """Words of a record, without what travels beside."""
        optional = [self.plan.weight, self.unit, self.has_cells or None]
        return (
            len(self.coders)
            + sum(one is not None for one in optional)
            + len(self.asked_columns)
            + 2
        )

    @property
    def unit(self) -> Any:
        """Column of the units that k counts; None: records."""
        return self.plan.unit_of(self.block).column

    def words(self, table: pa.Table, written: pa.Table | None = None) -> Words:
        """Turn a batch into records, one row of words each; records to be left out are not among them."""
        frame = Frame(table)
        text = frame if written is None else Frame(written)
        variables = [self._coded(frame, coder) for coder in self.coders]
        parts = [np.column_stack([variable.values for variable in variables]).view(np.uint64)]
        if self.plan.weight is not None:
            parts.append(weights_of(frame, self.plan.weight.column).view(np.uint64)[:, None])
        if self.unit is not None:
            parts.append(row_keys([values_as_written(text, self.unit, self.is_csv)])[:, :1])
        whole = table if written is None else written
        keys = row_keys([whole.column(j) for j in range(whole.num_columns)])
        if self.has_cells:
            found, which = _cells(frame, self.plan, written, variables)
            number = np.array([self.cells.get(cell, 0) for cell in found], dtype=np.int64)
            parts.append(self._moved(number[which], keys).astype(np.uint64)[:, None])
        for kind, name in self.asked_columns:
            if kind in ("p_percent", "n_k"):
                parts.append(_amounts(frame, name).view(np.uint64)[:, None])
            else:
                parts.append(row_keys([values_as_written(text, name, self.is_csv)])[:, :1])
        parts.append(keys)
        found_words = np.hstack(parts)
        kept = self.kept(variables)
        return found_words if kept is None else found_words[kept]

    def _moved(self, cells: Labels, keys: Words) -> Labels:
        """Cells of records, after rare patterns were joined."""
        if not len(self.moved_cells):
            return cells
        first = self.moved_keys[:, 0]
        at = np.minimum(np.searchsorted(first, keys[:, 0]), len(first) - 1)
        for row in np.flatnonzero(first[at] == keys[:, 0]).tolist():
            place = int(at[row])
            while place < len(first) and first[place] == keys[row, 0]:
                if self.moved_keys[place, 1] == keys[row, 1]:
                    cells[row] = self.moved_cells[place]
                place += 1
        return cells

    def kept(self, variables: Sequence[Variable]) -> NDArray[np.bool_] | None:
        """Which records of a batch are released; None: all."""
        if self.plan.missing.policy != "drop":
            return None
        kept: NDArray[np.bool_] = ~np.any([v.missing for v in variables], axis=0)
        return kept

    def variables(self, table: pa.Table) -> list[Variable]:
        """Read the protected columns of a batch."""
        frame = Frame(table)
        return [self._coded(frame, coder) for coder in self.coders]

    def _coded(self, frame: Frame, coder: Coder) -> Variable:
        """Read a column of a batch, with the level numbers of the whole table."""
        plan = replace(self.plan, columns={**self.plan.columns, coder.name: coder.setting})
        found = _variable(frame, plan, coder.name, self.is_csv)
        if found.kind not in CATEGORIES:
            return found
        number = {level: at for at, level in enumerate(coder.levels)}
        place = np.array([*(number[level] for level in found.levels), -1], dtype=np.float64)
        numbers = place[found.level_numbers]
        return replace(found, values=np.where(numbers < 0, np.nan, numbers), levels=coder.levels)

    def records_of(self, words: Words) -> Records:
        """Read records from their words."""
        at = len(self.coders)
        values = np.ascontiguousarray(words[:, :at]).view(np.float64)
        weights = units = cells = None
        if self.plan.weight is not None:
            weights, at = np.ascontiguousarray(words[:, at]).view(np.float64), at + 1
        if self.unit is not None:
            units, at = words[:, at].astype(np.int64), at + 1
        if self.has_cells:
            cells, at = words[:, at].astype(np.int64), at + 1
        r = len(self.asked_columns)
        asked, keys = words[:, at : at + r], words[:, at + r : at + r + 2]
        return Records(values, weights, units, cells, asked, keys, words[:, at + r + 2 :])

    def relative_weights(self, records: Records) -> Floats | None:
        """Weights with a mean of 1 over the table; None where all are equal."""
        if records.weights is None or not self.weighted:
            return None
        return np.asarray(records.weights / self.mean_weight)

    def states(self, records: Records) -> Labels:
        """State of each value."""
        if records.cells is None:
            return np.broadcast_to(self.patterns[0], records.values.shape)
        return self.patterns[records.cells]

    def released_coordinates(self, values: Floats) -> Floats:
        """Coordinates of values of the protected columns, original or released, without states."""
        found = [
            coder.encoder.apply(np.ascontiguousarray(values[:, j]))
            * np.sqrt(coder.setting.importance)
            for j, coder in enumerate(self.coders)
        ]
        return np.ascontiguousarray(np.hstack(found))

    def coordinates(self, records: Records) -> Floats:
        """Coordinates of records, C-contiguous."""
        states = self.states(records) if self.state_encoders else None
        found = []
        for j, coder in enumerate(self.coders):
            importance = np.sqrt(coder.setting.importance)
            found.append(coder.encoder.apply(records.values[:, j]) * importance)
            if states is not None and j in self.state_encoders:
                state = states[:, j].astype(np.float64)
                found.append(self.state_encoders[j].apply(state) * importance)
        return np.ascontiguousarray(np.hstack(found))


def _amounts(frame: Frame, name: Any) -> Floats:
    if not frame.is_numeric(name):
        raise InputError(
            f"Rules of dominance are about amounts; column {shown(name)} holds {frame.kind_in_words(name)}."
        )
    found = frame.doubles(name)
    if np.isnan(found).any():
        raise InputError(
            f"Rules of dominance need the amount of every record; column {shown(name)} is missing in some. "
            "Fill it or drop those records."
        )
    return found


def recipe_of(plan: Plan, summary: TableSummary, is_csv: bool = False) -> Recipe:
    """Fit the recipe of a table to its summary."""
    check_supported(plan)
    block = plan.blocks[0]
    if not summary.records:
        raise InputError(
            "A table to protect has at least one record; this one has none. Check that it was read whole."
        )
    check_k(block.k or 1, summary.records)
    uneven = summary.weights.count > 0 and summary.weights.low < summary.weights.high
    mean_weight = summary.weights.mean if summary.weights.count else 1.0
    coders = tuple(
        _coder(name, plan, block, summary.columns[name], mean_weight if uneven else None)
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
    return Recipe(
        plan,
        coders,
        {cell: number for number, cell in enumerate(listed)},
        patterns,
        sizes,
        encoders,
        mean_weight,
        uneven,
        int(sizes.sum()),
        is_csv,
    )


def _coder(name: Any, plan: Plan, block: Block, found: Summary, mean_weight: float | None) -> Coder:
    """Fit a column; ``mean_weight`` is that of all records, None where these count alike."""
    setting = plan.column(name)
    kind = setting.kind
    form = None
    if found.levels and kind is None and None not in found.formats and len(found.formats) == 1:
        (form,) = found.formats
        raise InputError(
            f"The texts of column {shown(name)} are dates; in a table that is read in parts their kind has "
            "to be said: kind date, or nominal."
        )
    if found.levels:
        kind = kind or found.kind or "nominal"
        levels, often = _levels(name, setting, found, mean_weight)
        variable = Variable(name, kind, np.arange(float(len(levels))), setting, levels=levels)
        encoder = _corners(variable, often, sum(found.levels.values()), block)
        return Coder(
            name, kind, replace(setting, kind=kind), levels, often, encoder, 0.0, False, form
        )
    moments = found.moments
    kind = kind or found.kind or "number"
    encoder = _number(setting, kind == "spiked", block.scale, found, mean_weight or 1.0)
    return Coder(
        name, kind, setting, (), np.zeros(0), encoder, moments.deviation, moments.whole, form
    )


def _levels(
    name: Any, setting: Column, found: Summary, mean_weight: float | None
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
    setting: Column, spiked: bool, scale: str, found: Summary, mean_weight: float
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
        return Split(spike, Transform(None), off.mean, step, np.array([step * share, 0.0]), factor)
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
    return Line(Transform("log" if logarithms else None, unit=0.0), scaling)
