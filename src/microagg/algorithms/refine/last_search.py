"""The last search: records change places while that lowers the loss of the values that groups release.

Problem   The searches before minimise the SSE, which for a category is the Gini index of a group. But a group
          releases its mode; of levels with an order, the one nearest to the mean; of a spiked column the
          mean, which is no longer at the spike. That loses up to twice as much, and it is the loss that a
          user is told.
Idea      Cells of neighbouring groups are searched by themselves (cells.py), then the table is split anew.
          In a cell, a random record and the group of one of its nearest records are looked at: it may move
          there, or swap places with one of its members. What that does to the loss of the released values
          follows from a few sums for each group and column: weight, sum and sum of squares; for a mode the
          weight of every level, with the largest two. A change is made if it lowers the loss; early in the
          search also if it raises the loss a little. Requirements are counted from the records, for changes
          that would be made. The best groups seen are returned, never groups that lose more than those given.
Cost      O(n) changes tried, each O(columns); O(n log n) to split. A heuristic.
Paper     None: our own.
Threads   A cell's random numbers depend on the seed, the pass and the cell alone: the result is
          the same however many threads there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from microagg.algorithms.refine.anneal import Heat
from microagg.algorithms.refine.books import LOSS, Cell, count_group, exchange, lacks, rise, sse_of
from microagg.algorithms.refine.cells import (
    Fresh,
    Groups,
    compacted,
    grouped,
    groups_in_a_cell,
    labelled,
    put_back,
    rows_of,
    split_groups,
)
from microagg.algorithms.refine.pool import draw, draw_exponential
from microagg.base.progress import STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, subkernel
from microagg.compile.threads import share_out
from microagg.kernels.labels import canonical_labels
from microagg.kernels.release_kinds import MODE, Releases
from microagg.kernels.require_kinds import Demands

__all__ = ["lower_released_loss"]

_NEAR = 24  # records among whose groups a record may change
_NOISE = 1e-12  # share of the sums of squares that may be rounding
_LEAST, _MOST = 16, 96  # groups in a cell


@subkernel
def _anneal(cell, k, most, steps, heat, random, state):
    """Try changes: groups of k to ``most`` records stay such groups."""
    label, size = cell.label, cell.size
    for step in range(steps):
        if state[STOP]:
            break
        x = int(draw(random) * label.size)
        g, h = label[x], label[cell.near[x, int(draw(random) * cell.near.shape[1])]]
        if g == h:
            continue
        temperature = (heat.hot + (heat.cold - heat.hot) * step / steps) * heat.unit
        allowed = -_NOISE * (heat.unit + cell.squares[g] + cell.squares[h])
        if temperature > 0:
            allowed = temperature * draw_exponential(random)
        best, partner = np.inf, -1
        for a in range(-1, size[h]):  # first a move, then swaps
            if a < 0 and (size[g] <= k or size[h] >= most):
                continue
            y = cell.members[h, a] if a >= 0 else -1
            more = rise(cell, g, h, x, y)
            if more < best:
                best, partner = more, y
        if best < allowed and not lacks(cell, g, h, x, partner):
            exchange(cell, g, h, x, partner)


@subkernel
def _find_near(X, near):
    """List the records nearest to each; of those equally near, the lower ones."""
    m, count = X.shape[0], near.shape[1]
    values, squares, distance = np.empty((X.shape[1], m)), np.empty(m), np.empty(count)
    for y in range(m):
        for j in range(X.shape[1]):
            values[j, y] = X[y, j]
    for x in range(m):
        for y in range(m):
            squares[y] = 0.0
        for j in range(X.shape[1]):  # column by column, so that a processor adds several at once
            value = values[j, x]
            for y in range(m):
                gap = values[j, y] - value
                squares[y] += gap * gap
        have = 0
        for y in range(m):
            if y == x or (have == count and squares[y] >= distance[count - 1]):
                continue
            have = min(have + 1, count)
            a = have - 1
            while a > 0 and distance[a - 1] > squares[y]:
                distance[a], near[x, a] = distance[a - 1], near[x, a - 1]
                a -= 1
            distance[a], near[x, a] = squares[y], y


@subkernel
def _floats_of(table, rows):
    found = np.empty((rows.size, table.shape[1]))
    for a in range(rows.size):
        for j in range(table.shape[1]):
            found[a, j] = table[rows[a], j]
    return found


@subkernel
def _levels_of(releases, rows):
    """Levels of some rows, those of modes numbered through all columns; and how many these are."""
    columns, largest, count = releases.kind.size, 0, 0
    found = np.empty((rows.size, columns), np.intp)
    for c in range(columns):
        for a in range(rows.size):
            found[a, c] = releases.level[rows[a], c]
            largest = max(largest, found[a, c])
    number = np.full(largest + 1, -1, np.intp)
    for c in range(columns):
        if releases.kind[c] != MODE:
            continue
        for a in range(rows.size):
            if found[a, c] >= 0:
                number[found[a, c]] = -1
        for a in range(rows.size):
            level = found[a, c]
            if level >= 0 and number[level] < 0:
                number[level] = count
                count += 1
            if level >= 0:
                found[a, c] = number[level]
    return found, count


@subkernel
def _form(X, weights, releases, demands, rows, labels, k):
    """Make a cell of some rows, with the labels 0, 1, … of their groups."""
    m, columns, n_groups, largest = rows.size, releases.kind.size, 0, 0
    for a in range(m):
        n_groups = max(n_groups, labels[a] + 1)
    size = np.zeros(n_groups, np.intp)
    for a in range(m):
        size[labels[a]] += 1
        largest = max(largest, size[labels[a]])
    room = 1 + max(2 * largest, 2 * k)
    level, levels = _levels_of(releases, rows)
    codes = np.empty((len(demands.rule), m), np.intp)
    amounts = np.empty((len(demands.rule), m))
    weight, near = np.empty(m), np.empty((m, min(_NEAR, m - 1)), np.intp)
    for a in range(m):
        weight[a] = weights[rows[a]]
        for r in range(len(demands.rule)):
            codes[r, a], amounts[r, a] = demands.codes[r, rows[a]], demands.amounts[r, rows[a]]
    _find_near(_floats_of(X, rows), near)
    # Copies throughout: threads that share an array wait for each other to count its users.
    own = Releases(
        _floats_of(releases.X, rows),
        releases.kind.copy(),
        releases.unit.copy(),
        releases.origin.copy(),
        releases.points.copy(),
        releases.start.copy(),
        level,
        _floats_of(releases.value, rows),
        _floats_of(releases.blank, rows),
        releases.majority,
    )
    cell = Cell(
        own,
        weight,
        Demands(demands.rule.copy(), demands.table.copy(), codes, amounts),
        near,
        labels,
        np.empty((n_groups, room), np.intp),
        np.zeros(n_groups, np.intp),
        np.empty(n_groups),
        np.empty((n_groups, releases.X.shape[1])),
        np.empty(n_groups),
        np.empty((n_groups, columns, 7)),
        np.empty((n_groups, columns), np.intp),
        np.zeros((n_groups, levels)),
        np.empty((2, room), np.intp),
        np.empty(room),
    )
    for a in range(m):
        g = labels[a]
        cell.members[g, cell.size[g]] = a
        cell.size[g] += 1
    for g in range(n_groups):
        count_group(cell, g)
    return cell


@kernel
def search_cells(
    X,
    weights,
    releases,
    demands,
    old,
    groups,
    first,
    begin,
    end,
    k,
    steps,
    heat,
    seeds,
    new,
    lost,
    state,
):
    """Search the cells begin..end−1 of the old groups; write the new ones and what each cell loses.

    A cell has as many records and groups as before, so that its rows have their place among the new ones.
    """
    for at in range(begin, end):
        mine = groups[first[at] : first[at + 1]]
        rows, labels = rows_of(old, mine)
        cell = _form(X, weights, releases, demands, rows, labels, k)
        # What is asked beside k may need groups of any size; else two groups of k are never worse than one.
        most = 2 * k - 1 if len(demands.rule) == 0 else cell.members.shape[1] - 1
        if mine.size > 1:
            random = np.array([seeds[at]], np.uint64)
            _anneal(cell, k, most, int(np.ceil(steps * rows.size)), heat, random, state)
        lost[at] = 0.0
        for g in range(mine.size):
            lost[at] += sse_of(cell, g)
            for c in range(releases.kind.size):
                lost[at] += cell.books[g, c, LOSS]
        put_back(_floats_of(X, rows), rows, labels, mine.size, new.begins[at], k, new)


class _Budget(NamedTuple):
    """How long to search."""

    each: float  # changes looked for, for each record
    table: float  # for the whole table
    most: float  # for each record at most
    passes: int
    hot: float  # temperature to begin with, in units of the mean loss of a group


_BUDGETS = {
    "fast": _Budget(5, 20_000, 30, 2, 0.0),
    "balanced": _Budget(30, 120_000, 150, 6, 0.02),
    "best": _Budget(200, 2_400_000, 1_200, 16, 0.02),
}


class _Run(NamedTuple):
    """What stays the same from pass to pass."""

    X: Floats
    weights: Floats
    releases: Releases
    demands: Demands
    k: int
    seed: int
    state: State


def _pass(run: _Run, old: Groups, turn: int, steps: float, heat: Heat) -> tuple[Groups, float]:
    """Search every cell once, ``steps`` for each record; return the new groups and what they lose."""
    n, d = run.X.shape
    rng = np.random.default_rng([run.seed, turn])
    random = rng.integers(0, 2**63, size=1, dtype=np.uint64)
    in_a_cell = groups_in_a_cell(len(old.centroid), _LEAST, _MOST)
    groups, first = split_groups(old.centroid, in_a_cell, random)
    cells = len(first) - 1
    seeds = rng.integers(0, 2**63, size=cells, dtype=np.uint64)
    records = np.append(0, np.cumsum(np.diff(old.start)[groups]))
    places = n // run.k
    new = Fresh(
        records[first], np.empty(n, np.intp), np.zeros(places, np.intp), np.empty((places, d))
    )
    lost = np.full(cells, np.nan)

    def work(begin: int, end: int, _: int) -> None:
        search_cells(
            run.X,
            run.weights,
            run.releases,
            run.demands,
            old,
            groups,
            first,
            begin,
            end,
            run.k,
            steps,
            heat,
            seeds,
            new,
            lost,
            run.state,
        )

    share_out(work, cells, run.state, at_once=1)
    for cell in np.flatnonzero(np.isnan(lost)):  # stopped: the rest of the cells stay as they are
        work(int(cell), int(cell) + 1, 0)
    return compacted(new), float(lost.sum())


def lower_released_loss(
    X: Floats,
    labels: Labels,
    k: int,
    releases: Releases,
    demands: Demands,
    *,
    weights: Floats | None = None,
    effort: str = "balanced",
    random_state: int | None = 0,
    whole: int | None = None,
    state: State,
) -> Labels:
    """Improve a partition by the loss of the values that its groups release; never worse than given.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, by which records are near
    labels : int64 array of shape (n,), groups of at least k that satisfy the demands
    k : int, at least 1
    releases : what groups release
    demands : what every group must satisfy beside k
    weights : float64 array of shape (n,), above 0 and with mean 1 over the table, optional
    effort : {"fast", "balanced", "best"}
    random_state : seed; None draws a fresh one
    whole : records of the table that these are a part of, whose steps are shared out; None: all of it
    state : shared state of a watched run, see :mod:`microagg.base.progress`

    Returns
    -------
    int64 array of shape (n,): the group of each record, 0, 1, … by first appearance.
    """
    labels = canonical_labels(labels)
    n_groups = int(labels.max()) + 1
    if n_groups < 2:
        return labels
    seed = int(np.random.default_rng(random_state).integers(2**62))
    mass = np.ones(len(X)) if weights is None else weights
    run = _Run(X, mass, releases, demands, k, seed, state)
    budget = _BUDGETS[effort]
    steps = min(budget.each + budget.table / (len(X) if whole is None else whole), budget.most)
    best = last = grouped(X, labels, n_groups)
    _, least = _pass(run, best, budget.passes, 0.0, Heat(0.0, 0.0, 1.0))
    unit = least / n_groups
    for turn in range(budget.passes):
        if state[STOP] or least == 0:
            break
        hot, cold = ((1 - at / budget.passes) ** 2 * budget.hot for at in (turn, turn + 1))
        last, lost = _pass(run, last, turn, steps / budget.passes, Heat(hot, cold, unit))
        if lost < least:
            best, least = last, lost
    return canonical_labels(labelled(best))
