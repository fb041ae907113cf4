"""A few neighbouring groups taken apart and put together again, under requirements.

As in algorithms/refine/pool.py all distances of the records at hand are computed once, and for each record
its sum of distances to each group is kept. Beside them stand the tallies of each group (tally.py), so that
what a move or a swap does to the requirements is known before it is made.

A record of weight w counts w times: the SSE of a group is Σ w·w'·d² over its pairs, divided by its weight.
Groups have no largest size. A group is grown until it lacks nothing, by the record that is cheapest for
what it brings; records that are left over go where they cost least.

Inner loops get arrays, not the pool: to hand over a tuple of many arrays takes longer than a swap.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.pool import MOST_CHANGES, draw
from microagg.algorithms.required.tally import FOUND, TOTAL, after, note, number_codes
from microagg.compile.jit import subkernel
from microagg.compile.no_refcount import lean_subkernel
from microagg.kernels.require_kinds import TOLERANCE

_NOISE = 1e-11  # gains below this share of the pool's SSE may be rounding, and could go in circles
_UNDERFLOW = 1e-300  # so may all gains below this, whatever the SSE
# So may gains below this share of the largest number that they are computed from: records far away from all
# others leave their rounding in every sum that they once were part of.
_ROUNDING = 1e-14
_DEAR = 10.0  # what a violation costs while groups are put together, in units of the pool's SSE

# What the books hold of a group: its weight, the sum of distances over its pairs, its violation.
MASS, WITHIN, SHORT = range(3)


class Pool(NamedTuple):
    """Records of some groups; the first m rows and q groups of the arrays are in use."""

    rows: Any  # (records,)
    weight: Any  # (records,)
    values: Any  # (columns, records) coordinates
    distance: Any  # (records, records) squared, times both weights
    to_group: Any  # (groups, records) sum of distances to the members
    members: Any  # (groups, records)
    size: Any  # (groups,)
    books: Any  # (groups, 3) mass, within, short
    left: Any  # (records,) in no group yet
    change: Any  # (records,) scratch
    stamps: (
        Any  # (groups, groups + 1) when the pair was last looked at; when the group last changed
    )
    own: Any  # (requirements, records) the place of a record's code among those of the pool
    amount: Any  # (requirements, records)
    code: Any  # (requirements, records + 1) codes of the pool, ascending; at the end how many
    tally: Any  # (requirements, groups, records + 2) what a group has of each; found, total


@subkernel
def new_pool(records, groups, requirements, columns):
    """Allocate a pool with room for this number of records, groups, requirements and columns."""
    return Pool(
        np.empty(records, np.intp),
        np.empty(records),
        np.empty((columns, records)),
        np.empty((records, records)),
        np.empty((groups, records)),
        np.empty((groups, records), np.intp),
        np.empty(groups, np.intp),
        np.empty((groups, 3)),
        np.empty(records, np.intp),
        np.empty(records),
        np.empty((groups, groups + 1), np.intp),
        np.empty((requirements, records), np.intp),
        np.empty((requirements, records)),
        np.empty((requirements, records + 1), np.intp),
        np.empty((requirements, groups, records + 2)),
    )


@lean_subkernel
def measure(X, weights, demands, pool, m):
    """Fill in what depends on the first m rows alone: distances and codes."""
    rows, weight, distance, values = pool.rows, pool.weight, pool.distance, pool.values
    for a in range(m):
        weight[a] = weights[rows[a]]
        for j in range(X.shape[1]):
            values[j, a] = X[rows[a], j]
    for a in range(m):
        for b in range(a + 1):
            distance[a, b] = 0.0
        for j in range(X.shape[1]):  # column by column, so that a processor adds several at once
            value = values[j, a]
            for b in range(a):
                gap = value - values[j, b]
                distance[a, b] += gap * gap
        for b in range(a):
            distance[a, b] = distance[b, a] = distance[a, b] * weight[a] * weight[b]
    for r in range(len(demands.rule)):
        number_codes(demands.codes[r], rows, pool.left, pool.own[r], pool.code[r], m)
        for x in range(m):
            pool.amount[r, x] = demands.amounts[r, rows[x]]


@lean_subkernel
def cost(pool, q):
    """SSE of the pool's groups."""
    total = 0.0
    for g in range(q):
        total += pool.books[g, WITHIN] / pool.books[g, MASS]
    return total


@lean_subkernel
def violation(pool, q):
    """Sum of the violations of the pool's groups."""
    total = 0.0
    for g in range(q):
        total += pool.books[g, SHORT]
    return total


@lean_subkernel
def _clear(code, tally, to_group, size, books, g, m):
    """Empty a group."""
    size[g] = 0
    books[g, MASS] = books[g, WITHIN] = 0.0
    for x in range(m):
        to_group[g, x] = 0.0
    for r in range(len(code)):
        tally[r, g, FOUND] = tally[r, g, TOTAL] = 0.0
        for c in range(code[r, -1]):
            tally[r, g, c] = 0.0


@lean_subkernel
def _join(own, amount, tally, weight, distance, to_group, members, size, books, x, g, m):
    """Put a record that is in no group into one; its violation is not known then."""
    members[g, size[g]] = x
    size[g] += 1
    books[g, MASS] += weight[x]
    books[g, WITHIN] += to_group[g, x]
    for y in range(m):
        to_group[g, y] += distance[x, y]
    note(own, amount, tally, x, g, 1.0)


@lean_subkernel
def _leave(own, amount, tally, weight, distance, to_group, members, size, books, a, g, m):
    """Take the record at place a out of a group; its violation is not known then."""
    x = members[g, a]
    size[g] -= 1
    members[g, a] = members[g, size[g]]
    books[g, MASS] -= weight[x]
    books[g, WITHIN] -= to_group[g, x]
    for y in range(m):
        to_group[g, y] -= distance[x, y]
    note(own, amount, tally, x, g, -1.0)
    return x


@lean_subkernel
def grow(demands, pool, m, k, g, at, count):
    """Grow group g from the record left[at] until it lacks nothing or nobody is left.

    It takes the record whose distance is least for what it brings, or the nearest if none brings
    anything; ``count`` records are left before, the number left after is returned.
    """
    rule, table, left, weight = demands.rule, demands.table, pool.left, pool.weight
    own, amount, code, tally = pool.own, pool.amount, pool.code, pool.tally
    distance, to_group, members = pool.distance, pool.to_group, pool.members
    size, books = pool.size, pool.books
    _clear(code, tally, to_group, size, books, g, m)
    while True:
        x, count = left[at], count - 1
        left[at] = left[count]
        _join(own, amount, tally, weight, distance, to_group, members, size, books, x, g, m)
        lacking = after(rule, table, own, amount, code, tally, size, k, g, -1, -1)
        books[g, SHORT] = lacking
        if lacking == 0 or count == 0:
            return count
        least, brings = np.inf, False
        for a in range(count):
            y = left[a]
            near = to_group[g, y] / weight[y]
            if brings and near >= least * lacking:
                continue  # even if it brought all that is lacking
            gain = lacking - after(rule, table, own, amount, code, tally, size, k, g, -1, y)
            if gain > TOLERANCE:
                if not brings or near / gain < least:
                    at, least, brings = a, near / gain, True
            elif not brings and near < least:
                at, least = a, near


@lean_subkernel
def _place(demands, pool, m, q, k, x, dear):
    """Put a record that is left over where it costs least."""
    rule, table, weight, books = demands.rule, demands.table, pool.weight, pool.books
    own, amount, code, tally = pool.own, pool.amount, pool.code, pool.tally
    distance, to_group, members, size = pool.distance, pool.to_group, pool.members, pool.size
    g, least, short = 0, np.inf, 0.0
    for b in range(q):
        more = (books[b, WITHIN] + to_group[b, x]) / (books[b, MASS] + weight[x])
        more -= books[b, WITHIN] / books[b, MASS]
        if more < least:
            lacking = after(rule, table, own, amount, code, tally, size, k, b, -1, x)
            more += dear * max(lacking - books[b, SHORT], 0.0)
            if more < least:
                g, least, short = b, more, lacking
    _join(own, amount, tally, weight, distance, to_group, members, size, books, x, g, m)
    books[g, SHORT] = short


@lean_subkernel
def rebuild(demands, pool, m, q, k, dear, random):
    """Form at most q groups anew around random records; return how many.

    The union of the pool's groups satisfies all, so that there is at least one.
    """
    left = pool.left
    for x in range(m):
        left[x] = x
    count, formed = m, 0
    while formed < q and count >= k:
        before = count
        count = grow(demands, pool, m, k, formed, int(draw(random) * count), count)
        if pool.books[formed, SHORT] > 0 and formed > 0:  # the rest does not make another group
            for a in range(pool.size[formed]):
                left[count + a] = pool.members[formed, a]
            count = before
            break
        formed += 1
    for a in range(count):
        _place(demands, pool, m, formed, k, left[a], dear)
    return formed


@lean_subkernel
def adopt(demands, pool, m, q, k, owner):
    """Form the groups that the records are in; ``owner`` numbers them from 0."""
    own, amount, code, tally = pool.own, pool.amount, pool.code, pool.tally
    size, books, to_group = pool.size, pool.books, pool.to_group
    for g in range(q):
        _clear(code, tally, to_group, size, books, g, m)
    for x in range(m):
        g = owner[x]
        _join(
            own,
            amount,
            tally,
            pool.weight,
            pool.distance,
            to_group,
            pool.members,
            size,
            books,
            x,
            g,
            m,
        )
    for g in range(q):
        books[g, SHORT] = after(
            demands.rule, demands.table, own, amount, code, tally, size, k, g, -1, -1
        )


@lean_subkernel
def _best_move(
    rule,
    table,
    own,
    amount,
    code,
    tally,
    weight,
    to_group,
    members,
    size,
    books,
    k,
    g,
    h,
    bound,
    dear,
):
    """Find the place in group g of the record that gains most by moving to h, −1 if none does."""
    place, lacking = -1, books[g, SHORT] + books[h, SHORT]
    mass_g, mass_h = books[g, MASS], books[h, MASS]
    within_g, within_h = books[g, WITHIN], books[h, WITHIN]
    before = within_g / mass_g + within_h / mass_h + dear * lacking
    for a in range(size[g]):
        x = members[g, a]
        change = (within_g - to_group[g, x]) / (mass_g - weight[x]) - before
        change += (within_h + to_group[h, x]) / (mass_h + weight[x])
        if change < bound:
            short = after(rule, table, own, amount, code, tally, size, k, g, x, -1)
            if change + dear * short < bound and short <= lacking:
                short += after(rule, table, own, amount, code, tally, size, k, h, -1, x)
                if change + dear * short < bound and short <= lacking:
                    bound, place = change + dear * short, a
    return place


@lean_subkernel
def _best_swap(
    rule,
    table,
    own,
    amount,
    code,
    tally,
    weight,
    distance,
    to_group,
    members,
    size,
    books,
    change,
    k,
    g,
    h,
    bound,
    dear,
):
    """Find the places in two groups of the records that gain most by a swap, −1 if none does."""
    place, lacking = -1, books[g, SHORT] + books[h, SHORT]
    mass_g, mass_h = books[g, MASS], books[h, MASS]
    within_g, within_h = books[g, WITHIN], books[h, WITHIN]
    part_g, part_h = 1 / mass_g, 1 / mass_h
    both, before = part_g + part_h, within_g / mass_g + within_h / mass_h
    for b in range(size[h]):
        y = members[h, b]
        change[b] = to_group[g, y] * part_g - to_group[h, y] * part_h
    for a in range(size[g]):
        x = members[g, a]
        mine = to_group[h, x] * part_h - to_group[g, x] * part_g - dear * lacking
        for b in range(size[h]):
            y = members[h, b]
            total = mine + change[b] - both * distance[x, y]
            if weight[x] != weight[y]:
                heavier, apart = weight[y] - weight[x], distance[x, y]
                total = (within_g - to_group[g, x] + to_group[g, y] - apart) / (mass_g + heavier)
                total += (within_h + to_group[h, x] - to_group[h, y] - apart) / (mass_h - heavier)
                total -= before + dear * lacking
            if total < bound:
                short = after(rule, table, own, amount, code, tally, size, k, g, x, y)
                if total + dear * short < bound and short <= lacking:
                    short += after(rule, table, own, amount, code, tally, size, k, h, y, x)
                    if total + dear * short < bound and short <= lacking:
                        bound, place = total + dear * short, a * size[h] + b
    return place


@lean_subkernel
def _improve_pair(demands, pool, m, k, g, h, bound, dear, most):
    """Make the best move or swap between two groups again and again, ``most`` times; say how often."""
    rule, table, weight, distance = demands.rule, demands.table, pool.weight, pool.distance
    own, amount, code, tally = pool.own, pool.amount, pool.code, pool.tally
    to_group, members, size, books = pool.to_group, pool.members, pool.size, pool.books
    changes = 0
    while changes < most:
        source, target, a, b = g, h, -1, -1
        for _ in range(2):
            if a < 0 and size[source] > k:
                a = _best_move(
                    rule,
                    table,
                    own,
                    amount,
                    code,
                    tally,
                    weight,
                    to_group,
                    members,
                    size,
                    books,
                    k,
                    source,
                    target,
                    bound,
                    dear,
                )
            if a < 0:
                source, target = target, source
        if a < 0:  # source is g again
            a = _best_swap(
                rule,
                table,
                own,
                amount,
                code,
                tally,
                weight,
                distance,
                to_group,
                members,
                size,
                books,
                pool.change,
                k,
                g,
                h,
                bound,
                dear,
            )
            if a < 0:
                break
            a, b = a // size[h], a % size[h]
        changes += 1
        x = _leave(
            own, amount, tally, weight, distance, to_group, members, size, books, a, source, m
        )
        if b >= 0:
            y = _leave(
                own, amount, tally, weight, distance, to_group, members, size, books, b, target, m
            )
            _join(
                own, amount, tally, weight, distance, to_group, members, size, books, y, source, m
            )
        _join(own, amount, tally, weight, distance, to_group, members, size, books, x, target, m)
        for c in (g, h):
            books[c, SHORT] = after(rule, table, own, amount, code, tally, size, k, c, -1, -1)
    return changes


@lean_subkernel
def _least_gain(pool, m, q, dear):
    """Gain of a change that is more than rounding."""
    largest = dear * violation(pool, q)
    for g in range(q):
        for x in range(m):
            largest = max(largest, pool.to_group[g, x] / pool.books[g, MASS])
    return max(_NOISE * cost(pool, q), _ROUNDING * largest, _UNDERFLOW)


@lean_subkernel
def descend(demands, pool, m, q, k, dear):
    """Move and swap records of the pool until nothing gains any more.

    What gains is a lower SSE, where a violation weighs ``dear``; where nothing is violated nothing ever is.
    """
    stamps = pool.stamps
    bound, left = -_least_gain(pool, m, q, dear), MOST_CHANGES * m
    for g in range(q):
        stamps[g, -1] = 1
        for h in range(g):
            stamps[g, h] = 0
    clock, busy = 1, True
    while busy and left > 0:
        busy = False
        for g in range(q):
            for h in range(g):
                if stamps[g, h] < max(stamps[g, -1], stamps[h, -1]):
                    changes = _improve_pair(demands, pool, m, k, g, h, bound, dear, left)
                    if changes > 0:
                        left -= changes
                        clock += 1
                        stamps[g, -1] = stamps[h, -1] = clock
                        busy = True
                    stamps[g, h] = clock


@lean_subkernel
def dear_for(sse):
    """What a violation of 1 costs while groups of this SSE are put together."""
    return max(_DEAR * sse, _UNDERFLOW)
