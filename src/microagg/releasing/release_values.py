"""What groups release in each column: the value, its state, and the column in its own type.

A group releases the admissible value nearest to its centroid (:mod:`microagg.encode`), rounded as the
plan says. It depends on the group alone, so that all its records share it. Where a group has no value,
it releases a missing one, and a code for missing only if all its records have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.compile.threads import share_with_helpers
from microagg.encode.missing import group_states
from microagg.encode.space import names_of_levels, released_values, with_admissible
from microagg.encode.steps import Steps
from microagg.errors import InputError, shown
from microagg.kernels.labels import standard_deviation
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.releasing.dealt import Dealt
from microagg.releasing.rounding import Rounding, round_related, rounded, rounding_of
from microagg.releasing.swap import Swapping, deal, drawn_category, share_block
from microagg.tables.dates import to_arrow
from microagg.tables.frame import Frame
from microagg.tables.variable import QUANTITIES, Variable

_THREADS = 3  # that work on columns


Aggregated = tuple[Floats, Labels]
"""(n, columns) values and states."""
Rounded = Callable[[int, Floats], Floats]


class Earlier(Protocol):
    """What earlier releases of the same people have to say about the values of groups."""

    labels: Labels
    """(n,) base group of each record; groups are unions of them."""

    def settle(
        self,
        variables: Sequence[Variable],
        of_base: Aggregated,
        of_unions: Aggregated,
        rounded: Rounded,
    ) -> Aggregated:
        """Return what is released, from what base groups and groups would, and a rounding of columns."""


class MissingCounts(NamedTuple):
    """Counts of values of one column that are not the aggregate of present values."""

    missing: int
    """Missing before."""
    blanked: int
    """Values that are released as missing."""
    filled: int
    """Missing values in whose place the group's value is released."""
    codes_lost: int
    """Codes for missing that are released as plainly missing."""

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
    dealt: Dealt | None = None
    """Where values are swapped: what was dealt to the rows of each group."""


def release_block(
    frame: Frame,
    variables: Sequence[Variable],
    states: Labels,
    labels: Labels,
    block: Block,
    plan: Plan,
    weights: Floats | None = None,
    of_households: tuple[Labels, Sequence[bool]] | None = None,
    units: Labels | None = None,
    swapping: Swapping | None = None,
    earlier: Earlier | None = None,
    cells: Labels | None = None,
) -> Released:
    """Release the columns of a block by the groups of its records.

    Parameters
    ----------
    frame : the table, in whose types columns are released
    variables : the columns, of all n records
    states : (n, columns) state of each value, with what the join of patterns blanked
    labels : (n,) group of each record
    block, plan : with what groups release, digits and relations
    weights : (n,) with a mean of 1; None: all records count alike
    of_households : where whole households move together, (n,) the group of each record's household, and for
        each column whether a household has one value, which is averaged over whole groups of households
    units : (n,) unit of each record; a category that fewer than k of them hold is not released
    swapping : with the random numbers, if the block asks for some
    earlier : where earlier releases of the same people have a say in it
    cells : (n,) records of different ones, such as strata, never share a group: rounding keeps their totals
    """
    roundings = []
    for variable in variables:
        numbers = np.zeros(0) if variable.is_category else variable.values[~variable.missing]
        spread = standard_deviation(numbers) if variable.kind in QUANTITIES else 0.0
        own = Steps.of(numbers)
        rounding = rounding_of(variable, plan, block, own, spread, weights is not None)
        if rounding.whole:
            frame.check_roundable(variable.name, numbers)
        roundings.append(rounding)
    groups = [labels] * len(variables)
    if of_households is not None:
        groups = [of_households[0] if shared else labels for shared in of_households[1]]
    able = variables
    if not block.is_swapped:
        able = [with_admissible(variable, block.k or 1, units) for variable in variables]
    values, released, dealt = release_records(
        able, states, groups, block, plan, weights, roundings, units, swapping, cells
    )
    if earlier is not None and dealt is None:
        of_base = values, released
        if earlier.labels is not labels:
            base = [earlier.labels] * len(able)
            of_base = release_records(
                able, states, base, block, plan, weights, roundings, units, swapping
            )[:2]

        def rounded(j: int, numbers: Floats) -> Floats:
            return roundings[j].nearest(numbers)

        values, released = earlier.settle(variables, of_base, (values, released), rounded)
    columns, missing_counts = {}, {}
    for j, variable in enumerate(variables):
        # What is missing moves with the dealing, and is as often there afterwards.
        new_states = released[:, j] if dealt is None else dealt.before[j][1]
        missing_counts[variable.name] = MissingCounts.of(variable.states, new_states)
        make = _native_category if variable.is_category else native_column
        columns[variable.name] = make(
            frame, variable, values[:, j], released[:, j], roundings[j].whole
        )
    return Released(values, released, np.column_stack(groups), missing_counts, columns, dealt)


def release_records(
    variables: Sequence[Variable],
    states: Labels,
    groups: Sequence[Labels],
    block: Block,
    plan: Plan,
    weights: Floats | None,
    roundings: Sequence[Rounding],
    units: Labels | None = None,
    swapping: Swapping | None = None,
    cells: Labels | None = None,
) -> tuple[Floats, Labels, Dealt | None]:
    """Release columns by the groups of records, on all engines: aggregates, or swapped values.

    Parameters
    ----------
    variables : the columns, of all n records or of those of a chunk, with the levels that may be released
    states : (n, columns) state of each value, with what the join of patterns blanked
    groups : for each column, (n,) the group of each record
    block, plan : with the aggregate, digits, policy of missing values and relations
    weights : (n,) with a mean of 1 over the whole table; None: all records count alike
    roundings : for each column, how it is rounded, see :func:`.rounding.rounding_of`
    units : (n,) unit of each record; None: every record is one
    swapping : with the random numbers and strata, if values are swapped or groups release the category of
        a random member
    cells : (n,) records of different ones never share a group

    Returns
    -------
    (n, columns) released values in the numbering of the variables, NaN for missing, (n, columns) states, and
    of swapped values what was dealt
    """
    if swapping is not None and block.is_swapped:
        dealt = _swap(variables, states, groups[0], block, plan, units, roundings, swapping)
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
        values[:, j], released[:, j] = release_column(
            variables[j], states[:, j], groups[j], plan, block, weights, alone, cells
        )
        if block.draws and variables[j].is_category and swapping is not None:
            drawn = drawn_category(
                variables[j], states[:, j], groups[j], units, block.k or 1, swapping
            )[groups[j]]
            there = (released[:, j] == 0) & ~np.isnan(drawn)
            values[there, j] = drawn[there]

    by_columns(release, len(variables))
    if plan.relations and plan.digits is None:
        together = [
            rounding.steps if is_bound else None
            for is_bound, rounding in zip(bound, roundings, strict=True)
        ]
        names = [v.name for v in variables]
        values = round_related(values, names, together, plan, weights is not None)
    return values, released, None


def by_columns(work: Callable[[int], None], columns: int) -> None:
    """Call ``work`` with the number of each of some ``columns``, in a few threads, which all take memory."""

    def on_some(begin: int, end: int, _: int) -> None:
        for j in range(begin, end):
            work(j)

    share_with_helpers(on_some, columns, at_once=-(-columns // _THREADS))


def _swap(
    variables: Sequence[Variable],
    states: Labels,
    labels: Labels,
    block: Block,
    plan: Plan,
    units: Labels | None,
    roundings: Sequence[Rounding],
    swapping: Swapping,
) -> Dealt:
    """Share the values of columns and deal them to the rows of their groups; see :func:`release_records`."""
    names = [variable.name for variable in variables]
    rounding_by = dict(zip(names, roundings, strict=True))

    def in_digits(variable: Variable, values: Floats, are_means: bool) -> Floats:
        rounding = rounding_by[variable.name]
        by_default = are_means and variable.name not in plan.related
        always = variable.kind == "date" or rounding.whole or plan.digits is not None
        return (rounding.nearest(values) if always or by_default else values) + 0.0

    bundles = [[names.index(name) for name in bundle] for bundle in plan.bundles_of(block)]
    shared = share_block(
        variables,
        states,
        labels,
        swapping.strata,
        units,
        block,
        in_digits,
        swapping.requirements,
        bundles,
    )
    if swapping.frozen is not None:
        shared = swapping.frozen(variables, shared)
    return deal(shared, names, labels, swapping, bundles)


def release_column(
    variable: Variable,
    states: Labels,
    labels: Labels,
    plan: Plan,
    block: Block,
    weights: Floats | None,
    rounding: Rounding,
    cells: Labels | None,
) -> tuple[Floats, Labels]:
    """Return the released value of each record in a column, in the numbering of the variable, and its state.

    ``states`` includes values that the join of patterns blanked; rounding keeps the totals of ``cells``.
    """
    g = int(labels.max()) + 1
    # What the join of patterns blanked is missing for its whole group.
    new_states = group_states(states[:, None], labels, g, plan.missing.policy)[:, 0]
    values = released_values(variable, labels, g, block.released, weights)
    # A group without an admissible value releases a missing one.
    new_states = np.where((new_states == 0) & np.isnan(values), 1, new_states)
    values = rounded(values, variable, labels, weights, rounding, cells)
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
    texts = coded.any() and any(isinstance(code, str) for code in variable.codes)
    if frame.is_numeric(name) and not texts:
        if coded.any():
            numbers = np.array([float(code) for code in variable.codes])
            values = np.where(coded, numbers[np.where(coded, state - 2, 0)], values)
        return frame.numbers_like(name, values, whole)
    kind = frame.arrow_column(name).type
    if variable.kind == "date":
        array = to_arrow(values, kind, variable.origin, variable.format)
    else:
        array = _texts_of_numbers(values)
        array = array if frame.is_numeric(name) else array.cast(kind)
    if coded.any():
        array = with_codes(array, state, variable.codes)
    return frame.arrow_like(name, array)


def _native_category(
    frame: Frame, variable: Variable, values: Floats, state: Labels, whole: bool
) -> Any:
    import pyarrow as pa

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


def _texts_of_numbers(values: Floats) -> Any:
    import pyarrow as pa

    texts = [
        None if np.isnan(v) else (str(int(v)) if v == int(v) else repr(v)) for v in values.tolist()
    ]
    return pa.array(texts, pa.string())


def with_codes(array: Any, state: Labels, codes: Sequence[Any]) -> Any:
    """Put ``codes`` of missing values into ``array``, a column of text, where ``state``, (n,), says so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array([str(codes[s - 2]) if s >= 2 else None for s in state.tolist()], array.type)
    return pc.if_else(pa.array(state >= 2), texts, array)
