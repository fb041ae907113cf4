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

from typing import Any, NamedTuple

import numpy as np

from microagg.groups import Floats, Labels, canonical_labels
from microagg.kernels.jit import kernel, subkernel
from microagg.kernels.lean import lean_subkernel
from microagg.kernels.release_kinds import (
    MEAN,
    MODE,
    NEARER_SORT,
    NEAREST,
    ROUNDED,
    Releases,
)
from microagg.kernels.require_demands import shortage
from microagg.kernels.require_kinds import Demands
from microagg.kernels.threads import share_out
from microagg.methods.refine.anneal import Heat
from microagg.methods.refine.cells import (
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
from microagg.methods.refine.pool import draw, draw_exponential
from microagg.progress import STOP, State

__all__ = ["lower_released_loss"]

# What the books hold of a group and a column: records with a value and their weight; sum and sum of squares
# of the values, for a mode the largest and the second largest weight of a level; weight off the spike; what
# a group loses that releases nothing; what this one loses.
HAS, MASS, FIRST, SECOND, OFF, BLANK, LOSS = range(7)
_NEAR = 24  # records among whose groups a record may change
_NOISE = 1e-12  # share of the sums of squares that may be rounding
_LEAST, _MOST = 16, 96  # groups in a cell


class _Cell(NamedTuple):
    """Some groups, their records numbered from 0, and what is counted of them."""

    releases: Any
    weight: Any  # (m,)
    demands: Any
    near: Any  # (m, neighbours)
    label: Any  # (m,)
    members: Any  # (groups, room)
    size: Any  # (groups,)
    mass: Any  # (groups,)
    sums: Any  # (groups, d) of coordinates
    squares: Any  # (groups,) of coordinates
    books: Any  # (groups, columns, 7)
    mode: Any  # (groups, columns)
    tally: Any  # (groups, levels) weight of each level, of all columns that release a mode
    codes: Any  # (2, room) scratch for requirements
    amounts: Any  # (room,)


@lean_subkernel
def _nearest(points, begin, end, x):
    """Find the point nearest to x, of ascending ones; of two, the lower."""
    while end - begin > 2:
        middle = (begin + end) // 2
        if points[middle] <= x:
            begin = middle
        else:
            end = middle + 1
    if end - begin == 2 and points[begin + 1] - x < x - points[begin]:
        return points[begin + 1]
    return points[begin]


@lean_subkernel
def _loss(releases, c, size, has, mass, first, second, off, blank):
    """What a group of this size loses in a column."""
    if has == 0:
        return 0.0
    if releases.majority and 2 * has <= size:
        return blank
    kind = releases.kind[c]
    if kind == MODE:
        return releases.unit[c] * (mass - first) if first > 0 else blank
    at, on, step = first / mass, 0.0, releases.unit[c]
    if kind == MEAN:
        return second - at * first
    if kind == ROUNDED:
        at = releases.origin[c] + step * np.floor((at - releases.origin[c]) / step + 0.5)
    elif kind == NEAREST:
        begin, end = releases.start[c], releases.start[c + 1]
        if begin == end:
            return blank
        at = _nearest(releases.points, begin, end, at)
    else:
        if off <= 0:
            return 0.0
        on = mass - off
        if kind != NEARER_SORT:
            at = (first - on * step) / mass
        elif 2 * off > mass:
            at = first / off
        else:
            return second + off * step * step
    return second - 2 * at * first + at * at * mass + on * step * step


@lean_subkernel
def _forget(cell, g):
    """Clear the tallies of a group, before its records change."""
    level = cell.releases.level
    for c in range(cell.releases.kind.size):
        if cell.releases.kind[c] == MODE:
            for a in range(cell.size[g]):
                if level[cell.members[g, a], c] >= 0:
                    cell.tally[g, level[cell.members[g, a], c]] = 0.0


@lean_subkernel
def _count(cell, g):
    """Count a group from its records, whose tallies are clear."""
    releases, members, size = cell.releases, cell.members, cell.size[g]
    X = releases.X
    mass = squares = 0.0
    for j in range(X.shape[1]):
        cell.sums[g, j] = 0.0
    for a in range(size):
        x = members[g, a]
        mass += cell.weight[x]
        for j in range(X.shape[1]):
            moment = cell.weight[x] * X[x, j]
            cell.sums[g, j] += moment
            squares += moment * X[x, j]
    cell.mass[g], cell.squares[g] = mass, squares
    for c in range(releases.kind.size):
        is_mode, has, mode = releases.kind[c] == MODE, 0, -1
        mass = first = second = off = blank = 0.0
        for a in range(size):
            x = members[g, a]
            level, w = releases.level[x, c], cell.weight[x]
            if level == -1:
                continue
            has += 1
            mass += w
            blank += w * releases.blank[x, c]
            if is_mode and level >= 0:
                cell.tally[g, level] += w
            elif level > 0:
                off += w
                first += w * releases.value[x, c]
                second += w * releases.value[x, c] ** 2
        if is_mode:
            for a in range(size):
                level = releases.level[members[g, a], c]
                if level < 0 or level == mode:
                    continue
                if cell.tally[g, level] > first:
                    first, second, mode = cell.tally[g, level], first, level
                elif cell.tally[g, level] > second:
                    second = cell.tally[g, level]
        books = cell.books
        books[g, c, HAS], books[g, c, MASS], books[g, c, OFF] = has, mass, off
        books[g, c, FIRST], books[g, c, SECOND], books[g, c, BLANK] = first, second, blank
        books[g, c, LOSS] = _loss(releases, c, size, has, mass, first, second, off, blank)
        cell.mode[g, c] = mode


@lean_subkernel
def _sse(cell, g):
    """SSE of a group in the coordinates of columns whose loss it is."""
    between = 0.0
    for j in range(cell.sums.shape[1]):
        between += cell.sums[g, j] ** 2
    return cell.squares[g] - between / cell.mass[g]


@lean_subkernel
def _rise(cell, g, h, x, y):
    """How much more two groups lose once x of g is in h, and y of h, unless it is −1, in g."""
    releases, books = cell.releases, cell.books
    X, levels, values = releases.X, releases.level, releases.value
    found, there = 0.0, y >= 0
    for side in range(2):  # one loop, since what is expanded twice takes twice as long to compile
        gives, into = (x, max(y, 0)) if side == 0 else (max(y, 0), x)
        leaves, joins = side == 0 or there, side == 1 or there
        # A record that is not there weighs nothing, whatever it is.
        less = cell.weight[gives] if leaves else 0.0
        more = cell.weight[into] if joins else 0.0
        squares, before, after = 0.0, 0.0, 0.0
        for j in range(X.shape[1]):
            old = cell.sums[g, j]
            new = old - less * X[gives, j] + more * X[into, j]
            squares += more * X[into, j] ** 2 - less * X[gives, j] ** 2
            before += old * old
            after += new * new
        found += squares + before / cell.mass[g] - after / (cell.mass[g] - less + more)
        size = cell.size[g] - leaves + joins
        for c in range(releases.kind.size):
            is_mode = releases.kind[c] == MODE
            a = levels[gives, c] if leaves else -1
            b = levels[into, c] if joins else -1
            alike = there and a == b and less == more
            if alike and (is_mode or values[gives, c] == values[into, c]):
                continue
            has, mass, off = books[g, c, HAS], books[g, c, MASS], books[g, c, OFF]
            first, second, blank = books[g, c, FIRST], books[g, c, SECOND], books[g, c, BLANK]
            if a != -1:
                has -= 1
                mass -= less
                blank -= less * releases.blank[gives, c]
            if b != -1:
                has += 1
                mass += more
                blank += more * releases.blank[into, c]
            if is_mode:
                if a >= 0 and a == cell.mode[g, c]:
                    first = max(first - less, second)
                if b >= 0:
                    first = max(first, cell.tally[g, b] + more - (less if a == b else 0.0))
            else:
                if a > 0:
                    off -= less
                    first -= less * values[gives, c]
                    second -= less * values[gives, c] ** 2
                if b > 0:
                    off += more
                    first += more * values[into, c]
                    second += more * values[into, c] ** 2
            found += _loss(releases, c, size, has, mass, first, second, off, blank)
            found -= books[g, c, LOSS]
        g = h
    return found


@lean_subkernel
def _exchange(cell, g, h, x, y):
    """Put record x of group g into h, and y of h, unless it is −1, into g."""
    members, size = cell.members, cell.size
    _forget(cell, g)
    _forget(cell, h)
    a = b = 0
    while members[g, a] != x:
        a += 1
    if y >= 0:
        while members[h, b] != y:
            b += 1
        members[g, a], members[h, b] = y, x
        cell.label[y] = g
    else:
        size[g] -= 1
        members[g, a] = members[g, size[g]]
        members[h, size[h]] = x
        size[h] += 1
    cell.label[x] = h
    for _ in range(2):
        _count(cell, g)
        g = h


@subkernel
def _lacks(cell, g, h, x, y):
    """Whether one of two groups violates a requirement after a change as in :func:`_rise`."""
    demands, order, codes, tally = cell.demands, cell.codes[0], cell.codes[1], cell.amounts
    for at in range(2 * len(demands.rule)):
        r, side = at // 2, at % 2
        own, gives, into = (g, x, y) if side == 0 else (h, y, x)
        m, total = 0, 0.0
        for a in range(cell.size[own] + 1):
            z = cell.members[own, a] if a < cell.size[own] else into
            if z < 0 or z == gives:
                continue
            total += demands.amounts[r, z]
            b = m
            while b > 0 and demands.codes[r, order[b - 1]] > demands.codes[r, z]:
                order[b] = order[b - 1]
                b -= 1
            order[b] = z
            m += 1
        entries = 0
        for a in range(m):
            if entries == 0 or codes[entries - 1] != demands.codes[r, order[a]]:
                codes[entries], tally[entries] = demands.codes[r, order[a]], 0.0
                entries += 1
            tally[entries - 1] += demands.amounts[r, order[a]]
        if shortage(demands.rule[r], demands.table, codes, tally, entries, m, total) > 0:
            return True
    return False


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
            rise = _rise(cell, g, h, x, y)
            if rise < best:
                best, partner = rise, y
        if best < allowed and not _lacks(cell, g, h, x, partner):
            _exchange(cell, g, h, x, partner)


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
    cell = _Cell(
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
        _count(cell, g)
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
            lost[at] += _sse(cell, g)
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
    state : shared state of a watched run, see :mod:`microagg.progress`

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
