"""A few neighbouring groups taken apart and put together again.

The SSE of a group of s records is the sum of the squared distances over its pairs, divided by s. So for
the few records of a pool all distances are computed once, and for each record its sum of distances to each
group is kept. The effect of a move or a swap then takes a few operations, however many columns there are.

With weights, the squared distance of a pair counts by the product of their weights, and the sum is divided
by the weight of the group. With requirements, each group also has tallies (tallies.py), so that the effect
of a change on the requirements is known before it is made; a group is grown until it lacks nothing, by the
record with the lowest distance per unit of requirement gained. Weights and tallies are None where there are
none, and the compiler leaves out what is meant for them; requirements come with weights.

What a loop runs over lies side by side in memory, so that the compiler makes vector code of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.tallies import (
    clear,
    count,
    count_violation,
    look_up,
    new_tallies,
    violation,
    violation_after,
)
from microagg.compile.jit import inlined_subkernel, lean_subkernel, subkernel
from microagg.kernels.random_numbers import draw
from microagg.kernels.require_kinds import TOLERANCE

UNDERFLOW = 1e-300  # gains below this may be rounding, whatever the SSE
PENALTY = 10.0  # for a violation while groups are put together, in units of the pool's SSE


class PoolSplit(NamedTuple):
    """The groups of a pool, and the sums that give the cost of a change.

    Apart from the rest of the pool, since to hand over a tuple of many arrays takes longer than a swap.
    """

    distance: Any  # (records, records) squared; under requirements times both weights
    to_group: Any  # (groups, records) sum of distances to the members, each by the member's factor
    members: Any  # (groups, records)
    size: Any  # (groups,)
    within: Any  # (groups,) sum of distances over pairs, each by the product of their weights
    weight: Any  # (records,) or None
    factor: Any  # (records,) of distances: the weight, under requirements 1; or None
    mass: Any  # (groups,) weight of the members, or None
    tallies: Any  # Tallies or None


class Pool(NamedTuple):
    """Records of some groups; the first m rows and q groups of the arrays are in use."""

    rows: Any  # (records,)
    values: Any  # (columns, records)
    free: Any  # (records,) those in no group yet
    change: Any  # (records,) scratch
    changed: Any  # (groups,) when the group last changed
    seen: Any  # (groups, groups) when the two were last looked at
    split: PoolSplit


class Rules(NamedTuple):
    """Conditions on groups while they are formed."""

    k: int  # records at least
    largest: int  # records at most
    bounded: bool  # whether that is 2k − 1; otherwise groups may have any size
    penalty: float  # for a violation


@lean_subkernel
def padded(m):
    """Round up to full vectors: loops over the rest would take one number at a time."""
    return (m + 3) // 4 * 4


@subkernel
def new_pool(records, groups, columns, weights, demands):
    """Allocate a pool with room for this number of records, groups and columns."""
    records = padded(records)
    if weights is None:
        weight = factor = mass = None
    else:
        weight, factor, mass = np.empty(records), np.empty(records), np.empty(groups)
    return Pool(
        np.empty(records, np.intp),
        np.empty((columns, records)),
        np.empty(records, np.intp),
        np.empty(records),
        np.empty(groups, np.intp),
        np.empty((groups, groups), np.intp),
        PoolSplit(
            np.empty((records, records)),
            np.empty((groups, records)),
            np.empty((groups, records), np.intp),
            np.empty(groups, np.intp),
            np.empty(groups),
            weight,
            factor,
            mass,
            new_tallies(demands, records, groups),
        ),
    )


@lean_subkernel
def measure(X, weights, demands, pool, m, bounded):
    """Fill in what depends on the first m rows alone: distances, weights and codes."""
    rows, values, distance = pool.rows, pool.values, pool.split.distance
    if weights is not None:
        for a in range(m):
            pool.split.weight[a] = weights[rows[a]]
            pool.split.factor[a] = weights[rows[a]] if bounded else 1.0
    d, width = X.shape[1], padded(m)
    for a in range(width):
        row = rows[min(a, m - 1)]
        for j in range(d):
            values[j, a] = X[row, j]
    for a in range(m):
        for b in range(width):
            distance[a, b] = 0.0
        for j in range(d):
            value = values[j, a]
            for b in range(width):
                gap = values[j, b] - value
                distance[a, b] += gap * gap
    if weights is not None and not bounded:
        for a in range(m):
            for b in range(a):
                apart = distance[a, b] * weights[rows[a]] * weights[rows[b]]
                distance[a, b] = distance[b, a] = apart
    look_up(pool.split.tallies, demands, rows, pool.free, m)


@lean_subkernel
def weight_of(weight, x):
    """Return the weight of a record, 1 if there are no weights."""
    if weight is None:
        return 1.0
    return weight[x]


@lean_subkernel
def _mass_of(mass, size, g):
    """Return the weight of a group, its size if there are no weights."""
    if mass is None:
        return np.float64(size[g])
    return mass[g]


@lean_subkernel
def weigh(mass, weight, members, size, g):
    """Sum up the weight of a group anew: to subtract a record's weight would let rounding grow."""
    if mass is not None:
        mass[g] = 0.0
        for a in range(size[g]):
            mass[g] += weight[members[g, a]]


@lean_subkernel
def _add_weight(mass, weight, g, x):
    """Add the weight of a record that joins to that of its group."""
    if mass is not None:
        mass[g] += weight[x]


@lean_subkernel
def _drop_weight(mass, weight, members, size, g, x, bounded):
    """Take the weight of a record that leaves from that of its group."""
    if mass is not None and not bounded:
        mass[g] -= weight[x]
    else:
        weigh(mass, weight, members, size, g)


@lean_subkernel
def sse_of(split, g):
    """Return the SSE of a group."""
    return split.within[g] / _mass_of(split.mass, split.size, g)


@lean_subkernel
def cost(split, q):
    """Return the SSE of the first q groups."""
    total = 0.0
    for g in range(q):
        total += sse_of(split, g)
    return total


@lean_subkernel
def _empty(split, g, width):
    """Empty a group."""
    for y in range(width):
        split.to_group[g, y] = 0.0
    split.within[g], split.size[g] = 0.0, 0
    weigh(split.mass, split.weight, split.members, split.size, g)
    clear(split.tallies, g)


@inlined_subkernel
def join(split, x, g, width):
    """Put a record that is in no group into a group, whose violation is not counted yet."""
    size, to_group, distance = split.size, split.to_group, split.distance
    w = weight_of(split.factor, x)
    split.members[g, size[g]] = x
    size[g] += 1
    split.within[g] += w * to_group[g, x]
    for y in range(width):
        to_group[g, y] += w * distance[x, y]
    _add_weight(split.mass, split.weight, g, x)
    count(split.tallies, x, g, 1.0)


@inlined_subkernel
def leave(split, a, g, width, bounded):
    """Take the record at place a out of a group and return it; the violation is not counted yet."""
    size, members, to_group, distance = split.size, split.members, split.to_group, split.distance
    x = members[g, a]
    w = weight_of(split.factor, x)
    size[g] -= 1
    members[g, a] = members[g, size[g]]
    split.within[g] -= w * to_group[g, x]
    for y in range(width):
        to_group[g, y] -= w * distance[x, y]
    _drop_weight(split.mass, split.weight, members, size, g, x, bounded)
    count(split.tallies, x, g, -1.0)
    return x


@inlined_subkernel
def _next_free(tallies, weight, size, to_group, k, g, free, n_free, lacking, bounded):
    """Return the place of the free record with the lowest distance per unit of requirement gained.

    If none gains anything, that of the nearest record.
    """
    at, least, brings = 0, np.inf, False
    if tallies is None or bounded:  # all bring the same
        for a in range(n_free):
            if to_group[g, free[a]] < least:
                at, least = a, to_group[g, free[a]]
    else:
        for a in range(n_free):
            near = to_group[g, free[a]] / weight[free[a]]
            if brings and near >= least * lacking:
                continue  # even if it brought all that is lacking
            gain = lacking - violation_after(tallies, size, k, g, -1, free[a])
            if gain > TOLERANCE:
                if not brings or near / gain < least:
                    at, least, brings = a, near / gain, True
            elif not brings and near < least:
                at, least = a, near
    return at


@lean_subkernel
def grow(pool, m, k, g, at, n_free, bounded):
    """Grow group g from the free record at a place until it lacks nothing or no record is free.

    ``n_free`` records are free before; the number free afterwards is returned.
    """
    split, free, width = pool.split, pool.free, padded(m)
    tallies, size, to_group = split.tallies, split.size, split.to_group
    _empty(split, g, width)
    while True:
        x, n_free = free[at], n_free - 1
        free[at] = free[n_free]
        join(split, x, g, width)
        lacking = count_violation(tallies, size, k, g)
        if lacking == 0 or n_free == 0:
            return n_free
        at = _next_free(tallies, split.weight, size, to_group, k, g, free, n_free, lacking, bounded)


@inlined_subkernel
def _cost_of_shortage(tallies, size, g, x, rules):
    """Return the penalty for the violations that a free record would add to a group."""
    if tallies is None:
        return 0.0
    lacking = violation_after(tallies, size, rules.k, g, -1, x)
    return rules.penalty * max(lacking - tallies.short[g], 0.0)


@inlined_subkernel
def _place(split, m, q, x, rules):
    """Put a free record into the group where it costs least."""
    size, within, g, least = split.size, split.within, 0, np.inf
    w, factor = weight_of(split.weight, x), weight_of(split.factor, x)
    for b in range(q):
        mass = _mass_of(split.mass, size, b)
        more = (within[b] + factor * split.to_group[b, x]) / (mass + w) - within[b] / mass
        if size[b] < rules.largest and more < least:
            more += _cost_of_shortage(split.tallies, size, b, x, rules)
            if more < least:
                g, least = b, more
    join(split, x, g, padded(m))
    count_violation(split.tallies, size, rules.k, g)


@lean_subkernel
def rebuild(pool, m, q, rules, random):
    """Form at most q groups anew around random records and return their number.

    There are q where nothing but k is required, and at least one, since the union of the pool's groups
    satisfies everything.
    """
    split, free, n_free, formed = pool.split, pool.free, m, 0
    for x in range(m):
        free[x] = x
    while formed < q and n_free >= rules.k:
        before = n_free
        at = int(draw(random) * n_free)
        n_free = grow(pool, m, rules.k, formed, at, n_free, rules.bounded)
        if formed > 0 and violation(split.tallies, formed, formed + 1) > 0:
            # The rest does not make another group.
            for a in range(split.size[formed]):
                free[n_free + a] = split.members[formed, a]
            n_free = before
            break
        formed += 1
    for a in range(n_free):
        _place(split, m, formed, free[a], rules)
    return formed


@lean_subkernel
def adopt(split, m, k, sizes, chosen, q):
    """Form the groups that the records come from, one after the other; ``sizes`` are of all groups."""
    width, x = padded(m), 0
    for g in range(q):
        _empty(split, g, width)
        for _ in range(sizes[chosen[g]]):
            join(split, x, g, width)
            x += 1
        count_violation(split.tallies, split.size, k, g)
