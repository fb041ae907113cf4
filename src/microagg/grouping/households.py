"""Whole households move together: each is one record, its members side by side.

Households are grouped with others of the same size (:mod:`microagg.grouping.require.together`), within strata
and patterns of missing values like single records. Members at the same place share their released values with
those of at least k households; a column that is the same for all members of each household stays so, since
it is averaged over all members of the households of a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.formatting import names
from microagg.base.progress import Listener, Progress
from microagg.base.typing import Floats, Labels
from microagg.encode.missing import join_enough, join_rare, rows_of_each
from microagg.encode.space import Space
from microagg.errors import InputError, shown
from microagg.grouping.group_table import group
from microagg.grouping.read_table import Intake, PartInput, check_blanked
from microagg.grouping.require.from_plan import whole_of, within
from microagg.grouping.require.requirement import Requirement, violations_of
from microagg.grouping.require.together import Households, household_records, person_labels
from microagg.grouping.require.value_rules import Units
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.block import Block
from microagg.plan.checks import Name
from microagg.tables.variable import Variable


class Together(NamedTuple):
    """Groups of persons by whole households."""

    partition: Partition
    """Of the persons: those at one place of the households of a group."""
    states: Labels
    """(n, columns) state of each value, with what the join of patterns blanks."""
    of_households: Labels
    """(n,) group of each person's household."""
    shared: list[bool]
    """Of each column, whether all members of each household have the same value."""


def group_households(
    intake: Intake, block: Block, given: PartInput, progress: Listener | None = None
) -> Together:
    """Group the households of a table, each as one record.

    Raises
    ------
    InputError
        If a household lies in two strata, or one of a stratum's sizes cannot be grouped.
    """
    units, n = _checked_units(intake, block), len(intake)
    X = given.space.scaled
    raw_states = np.column_stack([variable.states for variable in given.variables])
    strata = given.cells  # patterns of missing values are those of whole households, see below
    _check_strata(intake.plan.unit_of(block).column, strata, units)
    # k units are in each group anyway.
    required = [one for one in given.requirements if not whole_of(one, Units)]
    k, seed = block.k or 1, intake.plan.seed
    weights = intake.relative_weights
    states = raw_states.copy()
    persons, households = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    top, top_households, done, stopped = 0, 0, 0, False
    first: Partition | None = None
    for one in _classes(X, units, strata, k, required):
        rows = one.rows
        cells, blanked = _patterns(raw_states, one, k, intake, required)
        own = None if weights is None else _mean_weights(weights, rows)

        def watch(so_far: Progress, done: int = done, width: int = rows.shape[1]) -> None:
            if progress is not None:
                progress(Progress(min(done + int(so_far) * width, n)))

        found = group(
            Space(np.ascontiguousarray(one.matrix), "none"),
            block,
            cells,
            weights=own,
            requirements=_by_place(one, cells, required),
            seed=seed,
            progress=watch,
        )
        labels = _with_all_members(one, found.labels, cells, required)
        first = first or found
        stopped = stopped or found.stopped
        exists = rows >= 0
        persons_here = _placed(one, labels)
        persons[rows[exists]] = top + persons_here[exists]
        households[rows[exists]] = (
            top_households + np.broadcast_to(labels[:, None], rows.shape)[exists]
        )
        states[rows[exists]] = blanked[exists]
        top += int(persons_here.max()) + 1
        top_households += int(labels.max()) + 1
        done += int(exists.sum())
    assert first is not None
    check_blanked(raw_states, states, intake.plan)
    labels = canonical_labels(persons)
    total = sum_of_squares(X, np.zeros(n, dtype=np.int64), weights)
    partition = replace(
        first,
        labels=labels,
        scale=block.scale,
        sse=sum_of_squares(X, labels, weights),
        sst=total,
        lower_bound=None,
        stopped=stopped,
    )
    shared = [_is_shared(variable, units) for variable in given.variables]
    return Together(partition, states, canonical_labels(households), shared)


def _checked_units(intake: Intake, block: Block) -> Labels:
    """Return the household of each record; refuse records without one."""
    units = intake.units_of(block)
    assert units is not None
    if (units < 0).any():
        unit = intake.plan.unit_of(block).column
        raise InputError(
            f"Whole units move together, so that every record has one; {shown(unit)} is missing "
            f"in row {int(np.argmax(units < 0)) + 1} (the first record is row 1). Fill it, or drop those "
            "records."
        )
    return units


def _classes(
    X: Floats, units: Labels, strata: Labels, k: int, required: Sequence[Requirement]
) -> Iterator[Households]:
    """Yield the households that are grouped together: those of one stratum and of similar size."""
    for inside in rows_of_each(strata):

        def enough(one: Households, inside: Labels = inside) -> bool:
            one_group = np.zeros(len(one.rows), dtype=np.int64)
            return not len(_short(_of_table(one, inside), one_group, required))

        for one in household_records(X[inside], units[inside], k, enough if required else None):
            yield _of_table(one, inside)


def _of_table(one: Households, inside: Labels) -> Households:
    """Return households of a stratum with the row numbers of the whole table."""
    return one._replace(rows=np.where(one.rows < 0, -1, inside[one.rows]))


def _with_last(rows: Labels) -> Labels:
    """Return the rows of members, with the last member of a household at places that it lacks."""
    last = rows[np.arange(len(rows)), (rows >= 0).sum(axis=1) - 1]
    return np.where(rows < 0, last[:, None], rows)


def _by_place(one: Households, cells: Labels, required: Sequence[Requirement]) -> list[Requirement]:
    """Return the requirements of the members at each place that all households have.

    Where sizes differ, the last such place is shared with all members beyond it: what one member of each
    household alone cannot satisfy there is left to :func:`_with_all_members`.
    """
    smallest = int((one.rows >= 0).sum(axis=1).min())
    parts = [np.flatnonzero(cells == cell) for cell in range(int(cells.max()) + 1)]
    rules = [rule for place in one.rows.T[:smallest] for rule in within(required, place)]
    return [
        rule
        for rule in rules
        if all(own.feasible() for part in parts for own in within([rule], part))
    ]


def _short(one: Households, labels: Labels, required: Sequence[Requirement]) -> Labels:
    """Return groups of households in which members who share values violate a requirement."""
    exists = one.rows >= 0
    groups = np.broadcast_to(labels[:, None], one.rows.shape)[exists]
    persons = canonical_labels(_placed(one, labels)[exists])
    short = violations_of(persons, 1, within(required, one.rows[exists])) > 0
    return np.unique(groups[short[persons]])


def _with_all_members(
    one: Households, labels: Labels, cells: Labels, required: Sequence[Requirement]
) -> Labels:
    """Merge groups of households of several sizes until their last members satisfy the requirements.

    There, the members beyond the smallest size share values with those of its last place, which the search,
    that looks at one member of each household at each place, does not count. What is required is closed
    under union, and a whole cell satisfies it, so that merging ends.
    """
    while required and (one.rows < 0).any():
        short = _short(one, labels, required)
        if not len(short):
            break
        inside = labels == short[0]
        mean = one.matrix[inside].mean(axis=0)
        near = ((one.matrix - mean) ** 2).sum(axis=1)
        near[inside | (cells != cells[inside][0])] = np.inf
        labels = canonical_labels(np.where(inside, labels[np.argmin(near)], labels))
    return labels


def _check_strata(unit: Name, strata: Labels, units: Labels) -> None:
    pairs = np.unique(np.column_stack([units, strata]), axis=0)
    twice = pairs[1:, 0] == pairs[:-1, 0]
    if twice.any():
        rows = np.flatnonzero(units == pairs[1:][twice][0, 0])
        row = int(rows[strata[rows] != strata[rows[0]]][0])
        raise InputError(
            f"Whole units move together, and strata never share a group; the {names([unit])} of "
            f"row {row + 1} (the first record is row 1) has records in two strata. Correct it, or count "
            'units instead: mode = "count".'
        )


def _patterns(
    states: Labels, one: Households, k: int, intake: Intake, required: Sequence[Requirement]
) -> tuple[Labels, Labels]:
    """Return the cells of households by their missing values, and the states after joining rare patterns."""
    # A place that does not exist has the states of some member, so that it makes no pattern of its own.
    filled = _with_last(one.rows)
    wide, whole = states[filled].reshape(len(filled), -1), np.zeros(len(filled), dtype=np.int64)
    if intake.plan.missing.policy != "pattern" or not wide.any():
        return whole, states[filled]

    def satisfied(chosen: Labels) -> bool:
        part = Households(one.matrix[chosen], one.rows[chosen])
        return not len(_short(part, whole[chosen], required))

    joined = join_rare(wide, whole, k)
    if required:
        joined = join_enough(joined, wide, whole, satisfied)
    return joined.cells, joined.states.reshape(*filled.shape, states.shape[1])


def _mean_weights(weights: Floats, rows: Labels) -> Floats:
    exists = rows >= 0
    return np.asarray(np.where(exists, weights[rows], 0.0).sum(axis=1) / exists.sum(axis=1))


def _placed(one: Households, labels: Labels) -> Labels:
    """Return the group of the person at each place of each household, in the shape of the rows."""
    exists = one.rows >= 0
    dense = np.full(one.rows.shape, -1)
    dense[exists] = np.arange(int(exists.sum()))
    local = person_labels([Households(one.matrix, dense)], [labels])
    found = np.zeros(one.rows.shape, dtype=np.int64)
    found[exists] = canonical_labels(local)[dense[exists]]
    return found


def _is_shared(variable: Variable, units: Labels) -> bool:
    """Return whether all members of each household have the same value, and the same state."""
    state = variable.states
    value = np.where(variable.missing, 0.0, variable.values)
    first = np.unique(units, return_index=True)[1]
    own = np.unique(units, return_inverse=True)[1].reshape(-1)
    return bool((value == value[first][own]).all() and (state == state[first][own]).all())
