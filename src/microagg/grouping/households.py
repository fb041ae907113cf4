"""Whole households move together: each is one record, its members side by side.

Problem   Where persons of a household are protected one by one, their groups overlap: who finds one member
          by what is known of the household finds the others. And values of a household, such as its income,
          come out differently for its members.
Idea      The members' values are laid side by side: a household of three with columns a and b is one
          record a₁ b₁ a₂ b₂ a₃ b₃. Households are grouped with others of the same size, so that there is no
          padding, within strata and patterns of missing values like single records; the members at one place
          of the households of a group share their released values. A column that is the same for all members
          of each household stays so, since it is averaged over all members of the households of a group.
          A size with fewer than k households, or whose households as one group do not satisfy what is
          required other than k, is pooled with the next smaller one (or larger, for the smallest): there, the
          places of a smaller household that do not exist are filled with its own last member, who counts
          once more for the distance but has only one row. In a group of households of several sizes the
          members beyond the smallest size share the values of its last place, so that every value is
          still shared by persons of all its households.
Order     Which member stands first must not depend on the order of rows: members are sorted by their
          values, column by column, in descending order; only members with equal values are taken in the
          order of rows, and exchanging them changes nothing.
Cost      O(n log n), besides the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.formatting import names, plural
from microagg.base.progress import Listener, Progress
from microagg.base.typing import Floats, Labels
from microagg.encode.missing import join_patterns, rows_of_each
from microagg.encode.space import Space
from microagg.errors import InputError, shown
from microagg.grouping.group_table import group
from microagg.grouping.one_cell import Problem
from microagg.grouping.read_table import Intake, PartInput, check_blanked
from microagg.grouping.require.from_plan import can_be_group, whole_of, within
from microagg.grouping.require.requirement import Requirement, violations_of
from microagg.grouping.require.value_rules import Units
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.block import Block
from microagg.tables.finite import first_row


class Households(NamedTuple):
    """Households of one class of sizes: a record of each."""

    matrix: Floats  # (households, members·columns)
    rows: Labels  # (households, members) the row of each member, −1 where there is none

    def places(self, labels: Labels) -> Labels:
        """Return a number, equal for persons who share values, of each place; in the shape of the rows.

        ``labels`` is the group of each household. Where its households are of several sizes, members beyond
        the smallest size share the last place of that.
        """
        width = self.rows.shape[1]
        smallest = np.full(int(labels.max()) + 1, width)
        np.minimum.at(smallest, labels, (self.rows >= 0).sum(axis=1))
        position = np.minimum(np.arange(width), smallest[labels][:, None] - 1)
        return np.asarray(labels[:, None] * width + position)


def household_records(
    X: Floats,
    households: Labels,
    k: int = 1,
    enough: Callable[[Households], bool] | None = None,
    rows: Labels | None = None,
) -> list[Households]:
    """Lay the members of each household side by side; list one class for each size, the smallest first.

    A class that was pooled has the largest of its sizes. Households are in the order of their first rows.

    Parameters
    ----------
    X : (n, d) the scaled persons
    households : (n,) household of each
    k : least number of households of a class
    enough : tells whether a class, as one group, satisfies the requirements other than k
    rows : of the persons to take, ascending; None: all

    >>> X = np.array([[30.0], [8.0], [40.0], [50.0], [7.0]])
    >>> for alike in household_records(X, np.array([1, 1, 2, 3, 3])):
    ...     print(alike.matrix.tolist(), alike.rows.tolist())
    [[40.0]] [[2]]
    [[30.0, 8.0], [50.0, 7.0]] [[0, 1], [3, 4]]
    """
    rows = np.arange(len(X)) if rows is None else rows
    _, first, household, sizes = np.unique(
        households[rows], return_index=True, return_inverse=True, return_counts=True
    )
    household = household.reshape(-1)
    if len(sizes) < k:
        raise InputError(
            f"k={k} needs at least {plural(k, 'household')}; the table has {len(sizes):,}. Lower k or add "
            "households."
        )
    # The last key sorts first: household, then the columns from the first on, descending.
    order = rows[np.lexsort((*(-X[rows].T[::-1]), household))]
    start = np.cumsum(sizes) - sizes

    def side_by_side(chosen: Labels) -> Households:
        chosen = chosen[np.argsort(first[chosen])]
        position = np.arange(int(sizes[chosen].max()))
        exists = position < sizes[chosen][:, None]
        member = start[chosen][:, None] + np.minimum(position, sizes[chosen][:, None] - 1)
        person = order[member]
        matrix = np.ascontiguousarray(X[person].reshape(len(chosen), -1))
        return Households(matrix, np.where(exists, person, -1))

    # The largest sizes are the first to be pooled with the next smaller ones.
    classes: list[Labels] = []
    waiting = np.empty(0, dtype=np.int64)
    for size in np.unique(sizes)[::-1]:
        waiting = np.concatenate([waiting, np.flatnonzero(sizes == size)])
        if len(waiting) >= k and (enough is None or enough(side_by_side(waiting))):
            classes.append(waiting)
            waiting = waiting[:0]
    if len(waiting) and not classes:
        raise InputError(
            "Whole units move together, and their members at each place must satisfy the requirements other "
            "than k; all units as one group do not. Ask for less."
        )
    if len(waiting):  # the smallest sizes have too few: they join the last class
        classes[-1] = np.concatenate([classes[-1], waiting])
    return [side_by_side(chosen) for chosen in classes[::-1]]


def person_labels(classes: list[Households], labels: list[Labels]) -> Labels:
    """Label the groups of persons that share values: those at one place of a group of households.

    ``labels`` has, for each class of :func:`household_records`, the group of each household.

    >>> X = np.array([[30.0], [8.0], [50.0], [7.0]])
    >>> classes = household_records(X, np.array([1, 1, 3, 3]))
    >>> person_labels(classes, [np.array([0, 0])]).tolist()
    [0, 1, 0, 1]
    """
    person_groups = np.empty(sum(int((alike.rows >= 0).sum()) for alike in classes), dtype=np.int64)
    offset = 0
    for alike, groups in zip(classes, labels, strict=True):
        exists, places = alike.rows >= 0, alike.places(groups)
        person_groups[alike.rows[exists]] = offset + places[exists]
        offset += (int(groups.max()) + 1) * alike.rows.shape[1]
    return person_groups


class Together(NamedTuple):
    """Groups of persons by whole households."""

    partition: Partition  # Of the persons: those at one place of the households of a group
    states: Labels  # (n, columns) state of each value, with what the join of patterns blanks
    of_households: Labels  # (n,) group of each person's household
    shared: list[bool]  # Of each column, whether all members of each household have the same value


def group_households(
    intake: Intake, block: Block, given: PartInput, progress: Listener | None = None
) -> Together:
    """Group the households of a table, each as one record.

    Refused are households in two strata, and sizes of a stratum that cannot be grouped.

    Parameters
    ----------
    intake : the table
    block : with k, the method, and the unit, whose records stay together
    given : the columns of the block, and the strata of the records as cells
    progress : as for :func:`microagg.partition`
    """
    units, n = intake.units_of(block), len(intake)
    assert units is not None
    X = given.space.scaled
    raw_states = np.column_stack([variable.states for variable in given.variables])
    strata = given.cells  # patterns of missing values are those of whole households, see below
    row_of_first = _first_members(intake.plan.unit_of(block).column, units, strata)
    # k units are in each group anyway.
    required = [rule for rule in given.requirements if not whole_of(rule, Units)]
    k, seed = block.k or 1, intake.plan.seed
    weights = intake.relative_weights
    states, households = raw_states.copy(), np.empty(n, dtype=np.int64)

    def enough(alike: Households) -> bool:
        return not len(_short(alike, np.zeros(len(alike.rows), dtype=np.int64), required))

    classes = [  # of one stratum and of similar size
        alike
        for inside in rows_of_each(strata)
        for alike in household_records(X, units, k, enough if required else None, inside)
    ]
    class_labels: list[Labels] = []
    n_groups, done, partitions = 0, 0, list[Partition]()
    for alike in classes:
        rows = alike.rows
        cells, blanked = _patterns(raw_states, alike, k, intake, required)
        exists = rows >= 0
        household_weights = None
        if weights is not None:  # of a household, the mean of its members
            sums = np.where(exists, weights[rows], 0.0).sum(axis=1)
            household_weights = sums / exists.sum(axis=1)

        def watch(so_far: Progress, done: int = done, width: int = rows.shape[1]) -> None:
            if progress is not None:
                progress(Progress(min(done + int(so_far) * width, n)))

        space = Space(np.ascontiguousarray(alike.matrix), "none")
        rules = _by_place(alike, cells, required)
        groups = group(Problem(space, block, rules, household_weights, seed), cells, watch)
        labels = _with_all_members(alike, groups.labels, cells, required)
        class_labels.append(labels)
        partitions.append(groups)
        households[rows[exists]] = n_groups + np.broadcast_to(labels[:, None], rows.shape)[exists]
        states[rows[exists]] = blanked[exists]
        n_groups += int(labels.max()) + 1
        done += int(exists.sum())
    check_blanked(raw_states, None, int(np.count_nonzero(raw_states != states)), intake.plan)
    labels = canonical_labels(person_labels(classes, class_labels))
    partition = replace(
        partitions[0],
        labels=labels,
        scale=block.scale,
        sse=sum_of_squares(X, labels, weights),
        sst=sum_of_squares(X, np.zeros(n, dtype=np.int64), weights),
        lower_bound=None,
        stopped=any(groups.stopped for groups in partitions),
    )
    shared = []  # Of each column, whether all members of each household have the same value and state
    for variable in given.variables:
        pairs = np.column_stack([np.where(variable.missing, 0.0, variable.values), variable.states])
        shared.append(bool((pairs == pairs[row_of_first]).all()))
    return Together(partition, states, canonical_labels(households), shared)


def _first_members(unit: Any, units: Labels, strata: Labels) -> Labels:
    """Return the first row of each record's household; refuse records without one, and two strata."""
    if (units < 0).any():
        raise InputError(
            f"Whole units move together, so that every record has one; {shown(unit)} is missing in "
            f"{first_row(units < 0)}. Fill it, or drop those records."
        )
    _, first, household = np.unique(units, return_index=True, return_inverse=True)
    row_of_first = np.asarray(first[household.reshape(-1)], dtype=np.int64)
    apart = strata != strata[row_of_first]
    if apart.any():
        raise InputError(
            f"Whole units move together, and strata never share a group; the {names([unit])} of "
            f"{first_row(apart)} has records in two strata. Correct it, or count units instead: "
            'mode = "count".'
        )
    return row_of_first


def _by_place(
    alike: Households, cells: Labels, required: Sequence[Requirement]
) -> list[Requirement]:
    """Return the requirements of the members at each place that all households have.

    Where sizes differ, the last such place is shared with all members beyond it: what one member of each
    household alone cannot satisfy there is left to :func:`_with_all_members`.
    """
    smallest = int((alike.rows >= 0).sum(axis=1).min())
    parts = rows_of_each(cells)
    rules = [rule for place in alike.rows.T[:smallest] for rule in within(required, place)]
    return [rule for rule in rules if all(can_be_group([rule], part) for part in parts)]


def _short(alike: Households, labels: Labels, required: Sequence[Requirement]) -> Labels:
    """Return groups of households in which members who share values violate a requirement."""
    exists = alike.rows >= 0
    groups = np.broadcast_to(labels[:, None], alike.rows.shape)[exists]
    persons = canonical_labels(alike.places(labels)[exists])
    short = violations_of(persons, 1, within(required, alike.rows[exists])) > 0
    return np.unique(groups[short[persons]])


def _with_all_members(
    alike: Households, labels: Labels, cells: Labels, required: Sequence[Requirement]
) -> Labels:
    """Merge groups of households of several sizes until their last members satisfy the requirements.

    There, the members beyond the smallest size share values with its last place, which the search does not
    count. Requirements are closed under union, and a whole cell satisfies them, so that merging ends.
    """
    while required and (alike.rows < 0).any():
        short = _short(alike, labels, required)
        if not len(short):
            break
        inside = labels == short[0]
        mean = alike.matrix[inside].mean(axis=0)
        near = ((alike.matrix - mean) ** 2).sum(axis=1)
        near[inside | (cells != cells[inside][0])] = np.inf
        labels = canonical_labels(np.where(inside, labels[np.argmin(near)], labels))
    return labels


def _patterns(
    states: Labels, alike: Households, k: int, intake: Intake, required: Sequence[Requirement]
) -> tuple[Labels, Labels]:
    """Return the cells of households by their missing values, and the states after joining rare patterns."""
    # A place that does not exist has the states of some member, so that it makes no pattern of its own.
    last = alike.rows[np.arange(len(alike.rows)), (alike.rows >= 0).sum(axis=1) - 1]
    filled = np.where(alike.rows < 0, last[:, None], alike.rows)
    wide, whole = states[filled].reshape(len(filled), -1), np.zeros(len(filled), dtype=np.int64)
    if intake.plan.missing.policy != "pattern" or not wide.any():
        return whole, states[filled]

    def satisfied(chosen: Labels) -> bool:
        part = Households(alike.matrix[chosen], alike.rows[chosen])
        return not len(_short(part, whole[chosen], required))

    joined = join_patterns(wide, whole, k, enough=satisfied if required else None)
    return joined.cells, joined.states.reshape(*filled.shape, states.shape[1])
