"""The loss of groups by the values that they release, and the effect of a change on it (for last_search.py).

A few sums for each group and column are enough: weight, sum and sum of squares of the values; for a mode the
weight of every level, with the largest two. They are counted from the records after each change, so that
rounding does not grow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.tallies import number_codes
from microagg.compile.jit import lean_subkernel
from microagg.kernels.release_kinds import MEAN, MODE, NEARER_SORT, NEAREST, ROUNDED
from microagg.kernels.require_demands import shortage

# The sums of a group and a column: records with a value and their weight; sum and sum of squares of the
# values, for a mode the largest and the second largest weight of a level; weight off the spike; the loss
# if the group releases nothing; its actual loss.
HAS, MASS, FIRST, SECOND, OFF, BLANK, LOSS = range(7)


class Patch(NamedTuple):
    """Some groups, their records numbered from 0, and their sums."""

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
    stats: Any  # (groups, columns, 7)
    mode: Any  # (groups, columns)
    tally: Any  # (groups, levels) weight of each level, of all columns that release a mode
    codes: Any  # (4, room) scratch for requirements
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
    """Return what a group of this size loses in a column."""
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
def _forget(patch, g):
    """Clear the tallies of a group, before its records change."""
    level = patch.releases.level
    for c in range(patch.releases.kind.size):
        if patch.releases.kind[c] == MODE:
            for a in range(patch.size[g]):
                if level[patch.members[g, a], c] >= 0:
                    patch.tally[g, level[patch.members[g, a], c]] = 0.0


@lean_subkernel
def count_group(patch, g):
    """Count a group from its records, whose tallies are clear."""
    releases, members, size = patch.releases, patch.members, patch.size[g]
    X = releases.X
    mass = squares = 0.0
    for j in range(X.shape[1]):
        patch.sums[g, j] = 0.0
    for a in range(size):
        x = members[g, a]
        mass += patch.weight[x]
        for j in range(X.shape[1]):
            moment = patch.weight[x] * X[x, j]
            patch.sums[g, j] += moment
            squares += moment * X[x, j]
    patch.mass[g], patch.squares[g] = mass, squares
    for c in range(releases.kind.size):
        is_mode, has, mode = releases.kind[c] == MODE, 0, -1
        mass = first = second = off = blank = 0.0
        for a in range(size):
            x = members[g, a]
            level, w = releases.level[x, c], patch.weight[x]
            if level == -1:
                continue
            has += 1
            mass += w
            blank += w * releases.blank[x, c]
            if is_mode and level >= 0:
                patch.tally[g, level] += w
            elif level > 0:
                off += w
                first += w * releases.value[x, c]
                second += w * releases.value[x, c] ** 2
        if is_mode:
            for a in range(size):
                level = releases.level[members[g, a], c]
                if level < 0 or level == mode:
                    continue
                if patch.tally[g, level] > first:
                    first, second, mode = patch.tally[g, level], first, level
                elif patch.tally[g, level] > second:
                    second = patch.tally[g, level]
        stats = patch.stats
        stats[g, c, HAS], stats[g, c, MASS], stats[g, c, OFF] = has, mass, off
        stats[g, c, FIRST], stats[g, c, SECOND], stats[g, c, BLANK] = first, second, blank
        stats[g, c, LOSS] = _loss(releases, c, size, has, mass, first, second, off, blank)
        patch.mode[g, c] = mode


@lean_subkernel
def sse_of(patch, g):
    """Return the SSE of a group in the coordinates of columns whose loss it is."""
    between = 0.0
    for j in range(patch.sums.shape[1]):
        between += patch.sums[g, j] ** 2
    return patch.squares[g] - between / patch.mass[g]


@lean_subkernel
def rise(patch, g, h, x, y):
    """Return how much more two groups lose once x of g is in h, and y of h, unless it is −1, in g."""
    releases, stats = patch.releases, patch.stats
    X, levels, values = releases.X, releases.level, releases.value
    change, there = 0.0, y >= 0
    for side in range(2):  # one loop, since what is expanded twice takes twice as long to compile
        gives, into = (x, max(y, 0)) if side == 0 else (max(y, 0), x)
        leaves, joins = side == 0 or there, side == 1 or there
        # A record that is not there weighs nothing, whatever it is.
        less = patch.weight[gives] if leaves else 0.0
        more = patch.weight[into] if joins else 0.0
        squares, before, after = 0.0, 0.0, 0.0
        for j in range(X.shape[1]):
            old = patch.sums[g, j]
            new = old - less * X[gives, j] + more * X[into, j]
            squares += more * X[into, j] ** 2 - less * X[gives, j] ** 2
            before += old * old
            after += new * new
        change += squares + before / patch.mass[g] - after / (patch.mass[g] - less + more)
        size = patch.size[g] - leaves + joins
        for c in range(releases.kind.size):
            is_mode = releases.kind[c] == MODE
            a = levels[gives, c] if leaves else -1
            b = levels[into, c] if joins else -1
            alike = there and a == b and less == more
            if alike and (is_mode or values[gives, c] == values[into, c]):
                continue
            has, mass, off = stats[g, c, HAS], stats[g, c, MASS], stats[g, c, OFF]
            first, second, blank = stats[g, c, FIRST], stats[g, c, SECOND], stats[g, c, BLANK]
            if a != -1:
                has -= 1
                mass -= less
                blank -= less * releases.blank[gives, c]
            if b != -1:
                has += 1
                mass += more
                blank += more * releases.blank[into, c]
            if is_mode:
                if a >= 0 and a == patch.mode[g, c]:
                    first = max(first - less, second)
                if b >= 0:
                    first = max(first, patch.tally[g, b] + more - (less if a == b else 0.0))
            else:
                if a > 0:
                    off -= less
                    first -= less * values[gives, c]
                    second -= less * values[gives, c] ** 2
                if b > 0:
                    off += more
                    first += more * values[into, c]
                    second += more * values[into, c] ** 2
            change += _loss(releases, c, size, has, mass, first, second, off, blank)
            change -= stats[g, c, LOSS]
        g = h
    return change


@lean_subkernel
def exchange(patch, g, h, x, y):
    """Put record x of group g into h, and y of h, unless it is −1, into g."""
    members, size = patch.members, patch.size
    _forget(patch, g)
    _forget(patch, h)
    a = b = 0
    while members[g, a] != x:
        a += 1
    if y >= 0:
        while members[h, b] != y:
            b += 1
        members[g, a], members[h, b] = y, x
        patch.label[y] = g
    else:
        size[g] -= 1
        members[g, a] = members[g, size[g]]
        members[h, size[h]] = x
        size[h] += 1
    patch.label[x] = h
    for _ in range(2):
        count_group(patch, g)
        g = h


@lean_subkernel
def lacks(patch, g, h, x, y):
    """Return whether one of two groups violates a requirement after a change as in :func:`rise`."""
    demands, tally = patch.demands, patch.amounts
    rows, order, own, code = patch.codes[0], patch.codes[1], patch.codes[2], patch.codes[3]
    for at in range(2 * len(demands.rule)):
        r, side = at // 2, at % 2
        group, gives, into = (g, x, y) if side == 0 else (h, y, x)
        m, total = 0, 0.0
        for a in range(patch.size[group] + 1):
            z = patch.members[group, a] if a < patch.size[group] else into
            if z < 0 or z == gives:
                continue
            total += demands.amounts[r, z]
            rows[m], tally[m] = z, 0.0
            m += 1
        number_codes(demands.codes[r], rows, order, own, code, m)
        for a in range(m):
            tally[own[a]] += demands.amounts[r, rows[a]]
        if shortage(demands.rule[r], demands.table, code, tally, code[-1], m, total) > 0:
            return True
    return False
