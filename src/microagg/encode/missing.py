"""Missing values: where they are is part of what the records of a group share.

By the policy ``pattern`` groups form within one pattern of missingness, so that nothing is imputed. A
pattern that fewer than k units have is joined with another: values are blanked until both are the same, and
if the other is common, only as many of its records join as are needed (join_patterns.py searches the joins
that blank the fewest values).

By ``majority`` and ``fill`` groups form over all patterns, and each group has a value in a column if most of
its records have one, or if any has.

The state of a value is 0 if it is there, 1 if it is missing, 2 and more if it is missing with a code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.encode.join_patterns import Join, Patterns, best_plan
from microagg.tables.variable import Variable

_MISSING = 1
_LARGEST_CODE = 2**62
_FEW_CODES = 2**20  # that are counted in a table


class JoinedPatterns(NamedTuple):
    """Patterns after the rare ones were joined."""

    states: Labels  # (n, d) of the values, blanked ones as missing
    cells: Labels  # (n,) number of the stratum and pattern of each record
    blanked: int  # values, or codes of missing ones, that are released as missing


def join_rare(
    states: Labels, strata: Labels, k: int, units: Labels | None = None, near: Floats | None = None
) -> JoinedPatterns:
    """Join patterns of missingness within strata until each is shared by k units.

    Parameters
    ----------
    states : (n, d) state of each value
    strata : (n,) stratum of each record, each with at least k units
    k : least number of units that share a pattern
    units : (n,) unit of each record; None: each record is one
    near : (n, c) coordinates: records that join a pattern are those nearest to it

    >>> states = np.array([[0, 0]] * 5 + [[0, 1]])
    >>> found = join_rare(states, np.zeros(6, dtype=int), 2)
    >>> found.blanked, found.states.tolist()[3:]
    (1, [[0, 0], [0, 0], [0, 1]])
    """
    joined = states.copy()
    cells = np.zeros(len(states), dtype=np.int64)
    count = 0
    for rows in rows_of_each(strata):
        units_here = None if units is None else units[rows]
        at = None if near is None else near[rows]
        new, pattern = _join(states[rows], k, units_here, at)
        joined[rows], cells[rows] = new, count + pattern
        count += int(pattern.max()) + 1
    return JoinedPatterns(joined, cells, int(np.count_nonzero(joined != states)))


def complete_records(variables: Iterable[Variable]) -> NDArray[np.bool_]:
    """Find the records that miss no value: those that the policy ``drop`` keeps."""
    complete: NDArray[np.bool_] = ~np.any([variable.missing for variable in variables], axis=0)
    return complete


def rows_of_each(cells: Labels) -> list[Labels]:
    """List the rows of each cell, by its number.

    >>> [rows.tolist() for rows in rows_of_each(np.array([0, 1, 0]))]
    [[0, 2], [1]]
    """
    order = np.argsort(cells, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(cells[order])) + 1)


def _join(
    states: Labels, k: int, units: Labels | None, near: Floats | None
) -> tuple[Labels, Labels]:
    """Join the patterns of one stratum; return the states and the pattern of each record."""
    patterns, which = distinct_rows(states)
    if len(patterns) == 1:
        return states, which
    narrow = which.astype(np.int16) if len(patterns) < 2**15 else which  # is sorted by radix
    order = np.argsort(narrow, kind="stable")
    sizes = np.bincount(which)
    rows = [[cell] for cell in np.split(order, np.cumsum(sizes)[:-1])]
    shared: Labels = sizes
    people: dict[int, frozenset[int]] = {}
    if units is not None:
        most = int(units.max()) + 2
        pairs = np.unique(which * most + units + 1)
        shared = np.bincount(pairs // most)
        rare = np.flatnonzero(shared < k).tolist()
        people = {p: frozenset(units[rows[p][0]].tolist()) for p in rare}
    plan = best_plan(Patterns(patterns, sizes, shared, people), k)
    for step in plan.steps:
        _follow(step, rows, units, near)
    labels = np.empty(len(states), dtype=np.int64)
    for number, cell in enumerate(rows):
        for some in cell:
            labels[some] = number
    return plan.patterns[labels], np.unique(labels, return_inverse=True)[1].reshape(-1)


def distinct_rows(states: Labels) -> tuple[Labels, Labels]:
    """Return the distinct rows of small whole numbers, ascending, and the number of each row among them.

    >>> rows, which = distinct_rows(np.array([[1, 0], [0, 2], [1, 0]]))
    >>> rows.tolist(), which.tolist()
    ([[0, 2], [1, 0]], [1, 0, 1])
    """
    code, width = np.zeros(len(states), dtype=np.int64), 1
    for column in states.T:  # each row becomes one number, each column a digit of it
        base = int(column.max(initial=0)) + 1
        if width * base > _LARGEST_CODE:
            distinct, code = np.unique(code, return_inverse=True)
            code, width = code.reshape(-1), len(distinct)
        code, width = code * base + column, width * base
    if width <= _FEW_CODES:
        number = np.cumsum(np.bincount(code, minlength=width) > 0) - 1
        which = number[code]
    else:
        which = np.unique(code, return_inverse=True)[1].reshape(-1)
    first = np.empty(int(which.max(initial=-1)) + 1, dtype=np.int64)
    first[which[::-1]] = np.arange(len(which))[::-1]
    return states[first], which


def _follow(
    step: Join, rows: list[list[Labels]], units: Labels | None, near: Floats | None
) -> None:
    """Move the records of a step: of one pattern all, of the other all or the nearest."""
    moved = rows[step.pattern]
    rows[step.pattern] = []
    if step.lent is None:
        moved = moved + rows[step.other]
        rows[step.other] = []
    else:
        leavers, candidates = np.concatenate(moved), np.sort(np.concatenate(rows[step.other]))
        lent = _nearest(leavers, candidates, step.lent, units, near)
        moved = [leavers, lent]
        rows[step.other] = [candidates[~np.isin(candidates, lent)]]
    if step.to == len(rows):
        rows.append([])
    rows[step.to] = rows[step.to] + moved


def _nearest(
    own: Labels, candidates: Labels, count: int, units: Labels | None, near: Floats | None
) -> Labels:
    """Return the candidates nearest to the mean of some records, each of a unit that these lack."""
    if units is not None:
        candidates = candidates[~np.isin(units[candidates], units[own])]
    if near is not None:
        distance = np.square(near[candidates] - near[own].mean(axis=0)).sum(axis=1)
        candidates = candidates[np.argsort(distance, kind="stable")]
    if units is None:
        return candidates[:count]
    first = np.sort(np.unique(units[candidates], return_index=True)[1])
    return candidates[first[:count]]


def group_states(states: Labels, labels: Labels, g: int, policy: str) -> Labels:
    """Return the state of each column in the release of each group, shape (g, d).

    A code is released only if all records of the group have it.

    Parameters
    ----------
    states : (n, d) int64; 0 is a value, others are codes of missing values
    labels : (n,) int64, groups 0..g−1
    g : number of groups
    policy : of missing values, as in a plan

    Returns
    -------
    (g, d) int64

    >>> states = np.array([[0], [0], [1], [2], [2]])
    >>> group_states(states, np.array([0, 0, 0, 1, 1]), 2, "majority").tolist()
    [[0], [2]]
    """
    by_group = np.empty((g, states.shape[1]), dtype=np.int64)
    sizes = np.bincount(labels, minlength=g)
    for j, column in enumerate(states.T):
        present = np.bincount(labels[column == 0], minlength=g)
        low, high = np.full(g, np.iinfo(np.int64).max), np.full(g, -1)
        np.minimum.at(low, labels, column)
        np.maximum.at(high, labels, column)
        coded = np.where(low == high, high, _MISSING)
        if policy == "fill":
            has_value = present > 0
        elif policy == "majority":
            has_value = 2 * present > sizes
        else:  # all records of a group have the same state
            has_value = present == sizes
        by_group[:, j] = np.where(has_value, 0, np.where(coded == 0, _MISSING, coded))
    return by_group


def join_enough(
    joined: JoinedPatterns,
    states: Labels,
    strata: Labels,
    enough: Callable[[Labels], bool],
    some_of: NDArray[np.bool_] | None = None,
) -> JoinedPatterns:
    """Join whole patterns further, if more than k units is required of a group.

    Parameters
    ----------
    joined : patterns after rare ones were joined
    states : (n, d) state of each value as given
    strata : (n,) stratum of each record; a whole stratum can be a group
    enough : whether some records can be a group
    some_of : (n,) whether a record is of a pattern with more records that are not given: it is taken to be
        enough and stays as it is, though others may join it; None: all records are given

    >>> states, strata = np.array([[0], [0], [1], [1]]), np.zeros(4, dtype=int)
    >>> found = join_rare(states, strata, 2)
    >>> join_enough(found, states, strata, lambda rows: len(rows) > 2).blanked
    2
    """
    new_states, cells = joined.states.copy(), joined.cells.copy()
    waiting = list(range(int(cells.max()) + 1))
    while waiting:
        cell = waiting.pop()
        rows = np.flatnonzero(cells == cell)
        if not len(rows) or (some_of is not None and some_of[rows].any()) or enough(rows):
            continue
        near = np.unique(cells[(strata == strata[rows[0]]) & (cells != cell)])
        if not len(near):
            continue
        pattern, sizes = new_states[rows[0]], np.bincount(cells)
        first = np.array([int(np.argmax(cells == other)) for other in near])
        both = np.where(new_states[first] == pattern, pattern, _MISSING)
        cost = (both != pattern).sum(axis=1) * len(rows)
        changes = (both != new_states[first]).sum(axis=1)
        cost += changes * sizes[near]
        if some_of is not None:
            stays = np.array([some_of[cells == other].any() for other in near])
            cost[stays & (changes > 0)] = np.iinfo(np.int64).max
            if (cost == np.iinfo(np.int64).max).all():
                continue
        best = int(np.argmin(cost))
        cells[rows] = near[best]
        new_states[cells == near[best]] = both[best]
        waiting.append(int(near[best]))
    labels = np.unique(cells, return_inverse=True)[1].reshape(-1)
    return JoinedPatterns(new_states, labels, int(np.count_nonzero(new_states != states)))
