"""What groups release: values and states of columns, in their own types; the mean weight, merged strata.

A group releases the admissible value nearest to its centroid (:mod:`microagg.encode`), rounded as the
plan says. It depends on the group alone, so that all its records share it. Where a group has no value,
it releases a missing one, and a code for missing only if all its records have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from microagg.base.typing import Floats, Labels
from microagg.compile.threads import share_with_helpers
from microagg.encode.categories import modes
from microagg.encode.missing import group_states
from microagg.encode.space import names_of_levels, released_values, with_admissible
from microagg.encode.steps import Steps, usual_steps
from microagg.errors import InputError, shown
from microagg.grouping.read_table import Intake, PartInput
from microagg.kernels.labels import canonical_labels, group_means, standard_deviation
from microagg.plan.block import Block
from microagg.plan.plan_settings import EXACT
from microagg.releasing.dealt import Dealt, dealt_rows
from microagg.releasing.rounding import Rounding, round_related, rounding_of
from microagg.releasing.swap import (
    Holders,
    ReleaseTerms,
    Swapping,
    drawn_category,
    share_numbers,
    swap_block,
)
from microagg.tables.dates import to_arrow
from microagg.tables.frame import Frame
from microagg.tables.variable import QUANTITIES, Variable

_THREADS = 3  # that work on columns


Aggregated = tuple[Floats, Labels]
"""(n, columns) values and states."""
Rounded = Callable[[int, Floats], Floats]
Settle = Callable[[Sequence[Variable], Aggregated, Aggregated, Rounded], Aggregated]
"""What is released, by what base groups and groups would release, and by a rounding of columns."""


class MissingCounts(NamedTuple):
    """Counts of values of one column that are not the aggregate of present values."""

    missing: int  # Missing before
    blanked: int  # Values that are released as missing
    filled: int  # Missing values in whose place the group's value is released
    codes_lost: int  # Codes for missing that are released as plainly missing

    @classmethod
    def of(cls, before: Labels, after: Labels) -> MissingCounts:
        """Count in the states of a column, (n,), before and after."""
        is_there = before == 0
        return cls(
            int(np.count_nonzero(before)),
            int(np.count_nonzero(is_there & (after != 0))),
            int(np.count_nonzero(~is_there & (after == 0))),
            int(np.count_nonzero((before >= 2) & (after == 1))),
        )


@dataclass(frozen=True, eq=False)
class Released:
    """Released columns of one block."""

    values: Floats  # (n, columns), in the numbering of the variables; NaN: missing
    states: Labels  # (n, columns)
    groups: Labels  # (n, columns) group of each record, by which a column was aggregated
    missing_counts: Mapping[Any, MissingCounts]
    columns: Mapping[Any, Any]  # native columns by name
    dealt: Dealt | None = None  # Where values are swapped: what was dealt to the rows of each group


def release_block(
    frame: Frame,
    variables: Sequence[Variable],
    states: Labels,
    labels: Labels,
    terms: ReleaseTerms,
    of_households: tuple[Labels, Sequence[bool]] | None = None,
    earlier: tuple[Labels, Settle] | None = None,
) -> Released:
    """Release the columns of a block by the groups of its records.

    Parameters
    ----------
    frame : the table, in whose types columns are released
    variables : the columns, of all n records
    states : (n, columns) state of each value, with what the join of patterns blanked
    labels : (n,) group of each record
    terms : block, plan and what else decides; a category that fewer than k units hold is not released
    of_households : where whole households move together, (n,) the group of each record's household, and for
        each column whether a household has one value, which is averaged over whole groups of households
    earlier : where earlier releases of the same people have a say in it, (n,) the base group of each record,
        of which groups are unions, and what settles the values
    """
    block, weighted = terms.block, terms.weights is not None
    roundings = []
    for variable in variables:
        numbers = np.zeros(0) if variable.is_category else variable.values[~variable.missing]
        spread = standard_deviation(numbers) if variable.kind in QUANTITIES else 0.0
        steps = Steps.of(numbers)
        roundings.append(rounding_of(variable, terms.plan, block, steps, spread, weighted))
        # Beyond this integers are not all doubles, so that a rounded mean need not be a valid value.
        if roundings[-1].whole and np.abs(numbers).max(initial=0) > 2**53:
            raise InputError(
                f"Rounding needs whole numbers up to 2^53; column {shown(variable.name)} has larger ones. "
                "Release its means unrounded, or leave it out."
            )
    groups = [labels] * len(variables)
    if of_households is not None:
        groups = [of_households[0] if shared else labels for shared in of_households[1]]
    able = variables
    if not block.is_swapped:
        able = [with_admissible(variable, block.k or 1, terms.units) for variable in variables]
    values, released, dealt = release_records(able, states, groups, roundings, terms)
    if earlier is not None and dealt is None:
        (base, settle), of_base = earlier, (values, released)
        if base is not labels:
            base_terms = terms._replace(cells=None)
            of_base = release_records(able, states, [base] * len(able), roundings, base_terms)[:2]

        def rounded(j: int, numbers: Floats) -> Floats:
            return roundings[j].nearest(numbers)

        values, released = settle(variables, of_base, (values, released), rounded)
    columns, missing_counts = {}, {}
    for j, variable in enumerate(variables):
        # What is missing moves with the dealing, and is as often there afterwards.
        new_states = released[:, j] if dealt is None else dealt.before[j][1]
        missing_counts[variable.name] = MissingCounts.of(variable.states, new_states)
        column = frame, variable, values[:, j], released[:, j]
        columns[variable.name] = (
            _native_category(*column)
            if variable.is_category
            else native_column(*column, roundings[j].whole)
        )
    return Released(values, released, np.column_stack(groups), missing_counts, columns, dealt)


def release_records(
    variables: Sequence[Variable],
    states: Labels,
    groups: Sequence[Labels],
    roundings: Sequence[Rounding],
    terms: ReleaseTerms,
) -> tuple[Floats, Labels, Dealt | None]:
    """Release columns by the groups of records, on all engines: aggregates, or swapped values.

    Returned are (n, columns) values in the numbering of the variables, NaN for missing, (n, columns) states,
    and of swapped values what was dealt.

    Parameters
    ----------
    variables : the columns, of all n records or of those of a chunk, with the levels that may be released
    states : (n, columns) state of each value, with what the join of patterns blanked
    groups : for each column, (n,) the group of each record
    roundings : for each column, how it is rounded, see :func:`.rounding.rounding_of`
    terms : block, plan and what else decides
    """
    block, plan, swapping = terms.block, terms.plan, terms.swapping
    if swapping is not None and block.is_swapped:
        dealt = swap_block(variables, states, groups[0], roundings, swapping, terms)
        return *dealt.released(len(variables)), dealt
    values = np.empty((len(states), len(variables)))
    released = np.empty(values.shape, dtype=np.int64)
    # Columns that relations bind are rounded together, but for whole numbers.
    bound = [
        plan.digits is None and not r.whole and v.name in plan.related and v.kind != "date"
        for v, r in zip(variables, roundings, strict=True)
    ]

    def release(j: int) -> None:
        alone = Rounding() if bound[j] else roundings[j]
        column = variables[j], states[:, j], groups[j]
        values[:, j], released[:, j] = release_column(*column, alone, terms)
        if block.draws and variables[j].is_category and swapping is not None:
            drawn = drawn_category(*column, terms.units, block.k or 1, swapping)[groups[j]]
            there = (released[:, j] == 0) & ~np.isnan(drawn)
            values[there, j] = drawn[there]

    by_columns(release, len(variables))
    if plan.relations and plan.digits is None:
        together = [r.steps if at else None for at, r in zip(bound, roundings, strict=True)]
        names = [v.name for v in variables]
        values = round_related(values, names, together, plan, terms.weights is not None)
    return values, released, None


def by_columns(work: Callable[[int], None], columns: int) -> None:
    """Call ``work`` with the number of each of some ``columns``, in a few threads, which all take memory."""
    at_once = -(-columns // _THREADS)
    share_with_helpers(
        lambda begin, end, _: [*map(work, range(begin, end))], columns, at_once=at_once
    )


def release_column(
    variable: Variable, states: Labels, labels: Labels, rounding: Rounding, terms: ReleaseTerms
) -> tuple[Floats, Labels]:
    """Return the released value of each record in a column, in the numbering of the variable, and its state.

    ``states`` includes values that the join of patterns blanked.
    """
    g = int(labels.max()) + 1
    # What the join of patterns blanked is missing for its whole group.
    new_states = group_states(states[:, None], labels, g, terms.plan.missing.policy)[:, 0]
    values = released_values(variable, labels, g, terms.block.released, terms.weights)
    # A group without an admissible value releases a missing one.
    new_states = np.where((new_states == 0) & np.isnan(values), 1, new_states)
    values = rounding.of_groups(values, variable, labels, terms.weights, terms.cells)
    values[new_states != 0] = np.nan
    return values[labels], new_states[labels]


def native_column(
    frame: Frame, variable: Variable, values: Floats, state: Labels, whole: bool
) -> Any:
    """Make the released column of a quantity or a date, in the type of the original.

    Parameters
    ----------
    frame : the table, or a batch of it
    variable : the column as it was read
    values : (n,) released values, NaN where missing
    state : (n,) their states, see :attr:`Variable.states`
    whole : whether all values are whole numbers, see :class:`.rounding.Rounding`
    """
    name = variable.name
    coded = state >= 2
    has_texts = coded.any() and any(isinstance(code, str) for code in variable.codes)
    if frame.is_numeric(name) and not has_texts:
        if coded.any():
            numbers = np.array([float(code) for code in variable.codes])
            values = np.where(coded, numbers[np.where(coded, state - 2, 0)], values)
        return frame.numbers_like(name, values, whole)
    kind = frame.arrow_column(name).type
    if variable.kind == "date":
        array = to_arrow(values, kind, variable.origin, variable.format)
    else:
        numbers_or_none = (None if np.isnan(v) else v for v in values.tolist())
        texts = [
            v if v is None else str(int(v)) if v == int(v) else repr(v) for v in numbers_or_none
        ]
        array = pa.array(texts, pa.string())
        array = array if frame.is_numeric(name) else array.cast(kind)
    if coded.any():
        array = with_codes(array, state, variable.codes)
    return frame.arrow_like(name, array)


def _native_category(frame: Frame, variable: Variable, values: Floats, state: Labels) -> Any:
    levels = np.where(np.isnan(values), -1, np.nan_to_num(values)).astype(np.int64)
    if levels.max(initial=-1) >= len(variable.levels):  # nodes, which no record has
        if frame.kind_in_words(variable.name) not in ("text", "categories"):
            raise InputError(
                f"Nodes of a hierarchy are text, which stands in a column of text; {shown(variable.name)} "
                f"holds {frame.kind_in_words(variable.name)}. Turn it into text first, or release leaves."
            )
        names = [str(name) for name in names_of_levels(variable)]
        array = pa.array([None if level < 0 else names[level] for level in levels], pa.string())
        array = with_codes(array, state, variable.codes) if (state >= 2).any() else array
        return frame.arrow_like(variable.name, array)
    rows = np.where(levels < 0, -1, np.append(variable.rows, -1)[levels])
    if (state >= 2).any():
        assert variable.tags is not None
        of_tag = np.full(len(variable.codes), -1)
        coded = np.flatnonzero(variable.tags >= 0)[::-1]
        of_tag[variable.tags[coded]] = coded
        rows = np.where(state >= 2, of_tag[np.maximum(state - 2, 0)], rows)
    return frame.take(variable.name, rows)


def with_codes(array: Any, state: Labels, codes: Sequence[Any]) -> Any:
    """Put ``codes`` of missing values into ``array``, a column of text, where ``state``, (n,), says so."""
    texts = pa.array([str(codes[s - 2]) if s >= 2 else None for s in state.tolist()], array.type)
    return pc.if_else(pa.array(state >= 2), texts, array)


def released_weights(
    weights: Floats, labels: Labels, spread: float, terms: ReleaseTerms
) -> tuple[Floats, tuple[Floats, Labels] | None]:
    """Return the weight that each record releases; if it was dealt, also the values and who had each.

    It is the mean of the group, so that Σw is kept for every union of groups. Where values are swapped it is
    dealt like a column, since a mean weight would name the group: values that k units of the stratum share.
    Means are rounded to a millionth of ``spread``, unless the plan says that digits are exact.

    Parameters
    ----------
    weights : (n,) of all records, or of those of a chunk
    labels : (n,) group of each record
    spread : standard deviation of the weights of the whole table
    terms : plan and block with digits and k, units and swapping

    >>> from microagg.plan.plan import Plan
    >>> weights, labels = np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1])
    >>> released_weights(weights, labels, 2.0, ReleaseTerms(Block(k=1), Plan()))[0].tolist()
    [2.0, 2.0, 5.0]
    """
    # Mean weights are not weighted themselves: a millionth of the spread will do.
    steps, swapping = None if terms.plan.digits == EXACT else usual_steps(spread), terms.swapping

    def in_digits(means: Floats) -> Floats:
        return means if steps is None else steps.nearest(means)

    if swapping is None or not terms.block.is_swapped:
        return in_digits(group_means(weights, labels))[labels], None
    holders = Holders(canonical_labels(swapping.strata), terms.units, terms.block.k or 1)
    shared = share_numbers(weights, holders, in_digits)
    donors = dealt_rows(labels, swapping.secret, f"{swapping.part}/weight")
    return shared[donors], (shared, donors)


def released_strata(
    intake: Intake, block: Block, given: PartInput, labels: Labels, households: Labels | None = None
) -> Labels:
    """Return the stratum with which each record is released, as a number.

    Where small strata were merged, all records of a group have the stratum that most of them had; where whole
    households move together, that of the group of households. The arguments are those of
    :func:`release_weight_and_strata`.
    """
    strata = intake.strata_of(block)
    if strata is None:
        return np.zeros(len(intake), dtype=np.int64)
    if not given.strata_merged:
        return strata
    groups = labels if households is None else households
    return _merged_strata(strata, groups, block.k or 1, intake.units_of(block))


def release_weight_and_strata(
    intake: Intake,
    block: Block,
    given: PartInput,
    labels: Labels,
    households: Labels | None,
    swapping: Swapping | None = None,
    of_entry: Floats | None = None,
) -> tuple[dict[Any, Any], int, tuple[Any, Floats, Labels] | None]:
    """Return the weight and the strata that change, by name, and how many records change their stratum.

    If the weight was dealt, also its name, its values before, and the record whose value each row got.

    For the weight see :func:`released_weights`, for strata :func:`released_strata`.

    Parameters
    ----------
    intake : the table, n records
    block : by whose groups weight and strata are released
    given : its columns as they were grouped
    labels : (n,) group of each record
    households : (n,) group of each record's household, if whole households move together
    swapping : with the random numbers, if values are swapped
    of_entry : (n,) mean weights that earlier releases of the same people have settled
    """
    frame, plan = intake.frame, intake.plan
    columns: dict[Any, Any] = {}
    dealt: tuple[Any, Floats, Labels] | None = None
    if plan.weight is not None and plan.weight.release == "mean" and intake.weights is not None:
        name = plan.weight.column
        spread, units = standard_deviation(intake.weights), intake.units_of(block)
        weights = intake.weights if of_entry is None else of_entry
        terms = ReleaseTerms(block, plan, units=units, swapping=swapping)
        new, of_donors = released_weights(weights, labels, spread, terms)
        dealt = None if of_donors is None else (name, *of_donors)
        # Rounded to the type of the column, as decimals are, they would not keep the totals.
        columns[name] = frame.doubles_like(name, new)
    recoded = 0
    strata = intake.strata_of(block)
    if given.strata_merged and strata is not None:
        released = released_strata(intake, block, given, labels, households)
        recoded = int(np.count_nonzero(released != strata))
        first = np.unique(strata, return_index=True)[1]
        for name in plan.strata_of(block).columns:
            columns[name] = frame.take(name, first[released])
    return columns, recoded, dealt


def _merged_strata(strata: Labels, labels: Labels, k: int, units: Labels | None) -> Labels:
    """Return the released stratum of each record: the most frequent one of its group with at least k units.

    If a group has none, it releases the largest such stratum of the table; if there is none at all, its own
    most frequent one.
    """
    column = Variable(
        "", "nominal", strata.astype(np.float64), levels=(*range(int(strata.max()) + 1),)
    )
    able = with_admissible(column, k, units)
    g = int(labels.max()) + 1
    of_group = released_values(able, labels, g)
    assert able.admissible is not None
    if not able.admissible.any():
        of_group = modes(strata, labels, g)
    often = np.where(able.admissible, np.bincount(strata), -1)
    return np.where(np.isnan(of_group), np.argmax(often), of_group).astype(np.int64)[labels]
