"""Whole households move together: each is one record, its members side by side.

Households are grouped with others of the same size (:mod:`microagg.require.together`), within strata and
patterns of missing values like single records. Members at the same place share their released values with
those of at least k households; a column that is the same for all members of each household stays so, since
it is averaged over all members of the households of a group.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from microagg.encode.missing import join_rare
from microagg.encode.space import Space
from microagg.errors import InputError, shown
from microagg.grouping import group, squares
from microagg.groups import Floats, Labels, canonical_labels
from microagg.intake import Intake, PartInput, check_blanked
from microagg.plan import Block
from microagg.progress import Listener, Progress
from microagg.require.together import Households, household_records, person_labels
from microagg.results import Partition
from microagg.tables.variable import Variable
from microagg.words import names

__all__ = ["Together", "group_households"]


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
    units, n = intake.units, len(intake)
    assert units is not None
    if (units < 0).any():
        raise InputError(
            f"Whole units move together, so that every record has one; {shown(intake.plan.unit)} is missing "
            f"in row {int(np.argmax(units < 0)) + 1} (the first record is row 1). Fill it, or drop those "
            "records."
        )
    X = given.space.scaled
    raw_states = np.column_stack([variable.states for variable in given.variables])
    strata = np.zeros(n, dtype=np.int64) if intake.strata is None else intake.strata
    _check_strata(intake, strata, units)
    k, seed = block.k or 1, intake.plan.seed
    weights = intake.relative_weights
    states = raw_states.copy()
    persons, households = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    top, top_households, done, stopped = 0, 0, 0, False
    first: Partition | None = None
    for stratum in range(int(strata.max()) + 1):
        inside = np.flatnonzero(strata == stratum)
        for one in household_records(X[inside], units[inside], k):
            rows = np.where(one.rows < 0, -1, inside[one.rows])
            cells, blanked = _patterns(raw_states, rows, k, intake)
            matrix = Space(np.ascontiguousarray(one.matrix), "none")
            own = None if weights is None else _mean_weights(weights, rows)

            def watch(so_far: Progress, done: int = done, width: int = rows.shape[1]) -> None:
                if progress is not None:
                    progress(Progress(min(done + int(so_far) * width, n)))

            found = group(matrix, block, cells, weights=own, seed=seed, progress=watch)
            first = first or found
            stopped = stopped or found.stopped
            exists = rows >= 0
            local = Households(one.matrix, rows)
            persons_here = _placed(local, found.labels)
            persons[rows[exists]] = top + persons_here[exists]
            households[rows[exists]] = (
                top_households + np.broadcast_to(found.labels[:, None], rows.shape)[exists]
            )
            states[rows[exists]] = blanked[exists]
            top += int(persons_here.max()) + 1
            top_households += found.n_groups
            done += int(exists.sum())
    assert first is not None
    check_blanked(raw_states, states, intake.plan)
    labels = canonical_labels(persons)
    total = squares(X, np.zeros(n, dtype=np.int64), weights)
    partition = replace(
        first,
        labels=labels,
        scale=block.scale,
        sse=squares(X, labels, weights),
        sst=total,
        lower_bound=None,
        stopped=stopped,
    )
    shared = [_is_shared(variable, units) for variable in given.variables]
    return Together(partition, states, canonical_labels(households), shared)


def _check_strata(intake: Intake, strata: Labels, units: Labels) -> None:
    pairs = np.unique(np.column_stack([units, strata]), axis=0)
    twice = pairs[1:, 0] == pairs[:-1, 0]
    if twice.any():
        unit = pairs[1:][twice][0, 0]
        rows = np.flatnonzero(units == unit)
        row = int(rows[strata[rows] != strata[rows[0]]][0])
        raise InputError(
            f"Whole units move together, and strata never share a group; the {names([intake.plan.unit])} of "
            f"row {row + 1} (the first record is row 1) has records in two strata. Correct it, or count "
            'units instead: mode = "count".'
        )


def _patterns(states: Labels, rows: Labels, k: int, intake: Intake) -> tuple[Labels, Labels]:
    """Cells of households, by what is missing in their members, and the states after joining rare ones."""
    filled = np.where(rows < 0, rows.max(axis=1, initial=-1, keepdims=True), rows)
    # A place that does not exist has the states of some member, so that it makes no pattern of its own.
    wide = states[filled].reshape(len(rows), -1)
    if intake.plan.missing.policy != "pattern" or not wide.any():
        return np.zeros(len(rows), dtype=np.int64), states[filled]
    joined = join_rare(wide, np.zeros(len(rows), dtype=np.int64), k)
    return joined.cells, joined.states.reshape(*rows.shape, states.shape[1])


def _mean_weights(weights: Floats, rows: Labels) -> Floats:
    exists = rows >= 0
    return np.asarray(np.where(exists, weights[rows], 0.0).sum(axis=1) / exists.sum(axis=1))


def _placed(one: Households, labels: Labels) -> Labels:
    """Group of the person at each place of each household, of the shape of its rows."""
    exists = one.rows >= 0
    dense = np.full(one.rows.shape, -1)
    dense[exists] = np.arange(int(exists.sum()))
    local = person_labels([Households(one.matrix, dense)], [labels])
    found = np.zeros(one.rows.shape, dtype=np.int64)
    found[exists] = canonical_labels(local)[dense[exists]]
    return found


def _is_shared(variable: Variable, units: Labels) -> bool:
    """Whether all members of each household have the same value, and the same state."""
    state = variable.states
    value = np.where(variable.missing, 0.0, variable.values)
    first = np.unique(units, return_index=True)[1]
    own = np.unique(units, return_inverse=True)[1].reshape(-1)
    return bool((value == value[first][own]).all() and (state == state[first][own]).all())
