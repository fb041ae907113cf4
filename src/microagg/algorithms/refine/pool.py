"""A few neighbouring groups taken apart and put together again.

The SSE of a group of s records is the sum of the squared distances over its pairs, divided by s. So
for the handful of records at hand all distances are computed once, and for each record its sum
of distances to each group is kept. The change that a move or a swap makes is then a matter
of a few operations, whatever the number of columns.

With weights, a pair's squared distance counts by the product of their weights, and the sum is divided by
the weight of the group. Only what is summed differs: ``weight`` and ``mass`` are None without
weights, and the compiler leaves out what is meant for the other case.

What a loop runs over lies side by side in memory, so that the compiler makes vector code of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.compile.jit import subkernel

_NOISE = 1e-11  # gains below this share of the pool's SSE may be rounding, and could go in circles
_UNDERFLOW = 1e-300  # so may all gains below this, whatever the SSE
MOST_CHANGES = (
    50  # for each record at most, should rounding go in circles all the same; one or two are usual
)


class Pool(NamedTuple):
    """Records of some groups; the first m rows and q groups of the arrays are in use."""

    rows: Any  # (records,)
    values: Any  # (columns, records)
    distance: Any  # (records, records) squared
    to_group: Any  # (groups, records) sum of distances to the members, each by the member's weight
    members: Any  # (groups, records)
    size: Any  # (groups,)
    within: Any  # (groups,) sum of distances over pairs, each by the product of their weights
    left: Any  # (records,) in no group yet
    change: Any  # (records,) scratch
    changed: Any  # (groups,) when it last was
    seen: Any  # (groups, groups) when the pair was last looked at
    weight: Any  # (records,) or None
    mass: Any  # (groups,) weight of the members, or None


@subkernel
def _whole(m):
    """Round up to whole vectors: loops over the rest would take one number at a time."""
    return (m + 3) // 4 * 4


@subkernel
def new_pool(records, groups, columns, weights):
    """Allocate a pool with room for this number of records, groups and columns."""
    records = _whole(records)
    if weights is None:
        weight = mass = None
    else:
        weight, mass = np.empty(records), np.empty(groups)
    return Pool(
        np.empty(records, np.intp),
        np.empty((columns, records)),
        np.empty((records, records)),
        np.empty((groups, records)),
        np.empty((groups, records), np.intp),
        np.empty(groups, np.intp),
        np.empty(groups),
        np.empty(records, np.intp),
        np.empty(records),
        np.empty(groups, np.intp),
        np.empty((groups, groups), np.intp),
        weight,
        mass,
    )


@subkernel
def draw(random):
    """Draw a number from [0, 1) and advance the state (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@subkernel
def draw_exponential(random):
    """Draw an exponential variate of mean 1 by comparisons alone (von Neumann 1951).

    A logarithm would be rounded otherwise on another machine, and another partition come out.
    """
    whole = 0.0
    while True:
        first = last = draw(random)
        odd = True
        while True:
            following = draw(random)
            if following >= last:
                break
            last, odd = following, not odd
        if odd:
            return whole + first
        whole += 1.0


@subkernel
def measure(X, weights, pool, m):
    """Fill in the distances of the pool's records, and their weights."""
    rows, values, distance = pool.rows, pool.values, pool.distance
    if weights is not None:
        for a in range(m):
            pool.weight[a] = weights[rows[a]]
    d, width = X.shape[1], _whole(m)
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


@subkernel
def cost(pool, q):
    """SSE of the pool's groups."""
    total = 0.0
    for g in range(q):
        total += pool.within[g] / _mass_of(g, pool.size, pool.mass)
    return total


@subkernel
def _mass_of(g, size, mass):
    """What the sum over pairs of a group is divided by."""
    if mass is None:
        return size[g]
    return mass[g]


@subkernel
def _weigh(g, size, members, weight, mass):
    """Sum up the weight of a group anew: to subtract what leaves would let rounding grow."""
    if mass is not None:
        mass[g] = 0.0
        for a in range(size[g]):
            mass[g] += weight[members[g, a]]


@subkernel
def _join(x, g, width, size, within, members, to_group, distance, weight, mass):
    """Put a record that is in no group into one."""
    members[g, size[g]] = x
    size[g] += 1
    if weight is None:
        within[g] += to_group[g, x]
        for y in range(width):
            to_group[g, y] += distance[x, y]
    else:
        within[g] += weight[x] * to_group[g, x]
        mass[g] += weight[x]
        for y in range(width):
            to_group[g, y] += weight[x] * distance[x, y]


@subkernel
def _cost_of_joining(x, g, size, within, to_group, weight, mass):
    """By how much a record in no group raises the SSE of one."""
    if weight is None:
        return (within[g] + to_group[g, x]) / (size[g] + 1) - within[g] / size[g]
    more = weight[x] * to_group[g, x]
    return (within[g] + more) / (mass[g] + weight[x]) - within[g] / mass[g]


@subkernel
def rebuild(pool, m, q, k, random):
    """Form q groups anew around random records; what is left over goes where it costs least."""
    left, size, within, weight, mass = pool.left, pool.size, pool.within, pool.weight, pool.mass
    members, to_group, distance = pool.members, pool.to_group, pool.distance
    for x in range(m):
        left[x] = x
    count, width = m, _whole(m)
    for g in range(q):
        for y in range(width):
            to_group[g, y] = 0.0
        within[g], size[g] = 0.0, 0
        _weigh(g, size, members, weight, mass)
        at = int(draw(random) * count)
        while True:
            x, count = left[at], count - 1
            left[at] = left[count]
            _join(x, g, width, size, within, members, to_group, distance, weight, mass)
            if size[g] == k:
                break
            least = np.inf
            for a in range(count):
                if to_group[g, left[a]] < least:
                    at, least = a, to_group[g, left[a]]
    for a in range(count):
        x, g, least = left[a], 0, np.inf
        for b in range(q):
            more = _cost_of_joining(x, b, size, within, to_group, weight, mass)
            if size[b] < 2 * k - 1 and more < least:
                g, least = b, more
        _join(x, g, width, size, within, members, to_group, distance, weight, mass)


@subkernel
def _best_swap(g, h, size, within, members, to_group, distance, change, weight, mass, bound):
    """Find the places in two groups of the records that gain most by a swap, −1 if none gains enough.

    A swap of x in g and y in h changes the SSE by (to(y, g) − to(x, g) − d²)/|g| +
    (to(x, h) − to(y, h) − d²)/|h|.
    """
    if weight is not None:
        return _best_weighted_swap(
            g, h, size, within, members, to_group, distance, change, weight, mass, bound
        )
    one, other = 1.0 / size[g], 1.0 / size[h]
    both = one + other
    for b in range(size[h]):
        y = members[h, b]
        change[b] = to_group[g, y] * one - to_group[h, y] * other
    place = -1
    for a in range(size[g]):
        x = members[g, a]
        own = to_group[h, x] * other - to_group[g, x] * one
        for b in range(size[h]):
            total = own + change[b] - both * distance[x, members[h, b]]
            if total < bound:
                bound, place = total, a * size[h] + b
    return place


@subkernel
def _best_move(g, h, k, size, within, members, to_group, weight, mass, bound):
    """Find the place in group g of the record that gains most by moving to h, −1 if none does."""
    if weight is not None:
        return _best_weighted_move(g, h, size, within, members, to_group, weight, mass, bound)
    place = -1
    one, other = 1.0 / (size[g] - 1), 1.0 / (size[h] + 1)
    bound += within[g] / size[g] + within[h] / size[h] - within[g] * one - within[h] * other
    for a in range(size[g]):
        x = members[g, a]
        total = to_group[h, x] * other - to_group[g, x] * one
        if total < bound:
            bound, place = total, a
    return place


@subkernel
def _best_weighted_swap(
    g, h, size, within, members, to_group, distance, change, weight, mass, bound
):
    """Find what _best_swap finds: here a swap changes what both sums are divided by.

    Two quotients are compared with the least so far by products, since divisions take longer.
    """
    limit = within[g] / mass[g] + within[h] / mass[h] + bound
    for b in range(size[h]):
        y = members[h, b]
        change[b] = within[h] - weight[y] * to_group[h, y]
    place = -1
    for a in range(size[g]):
        x = members[g, a]
        v = weight[x]
        rest, comes = within[g] - v * to_group[g, x], v * to_group[h, x]
        for b in range(size[h]):
            y = members[h, b]
            w = weight[y]
            between = v * w * distance[x, y]
            one, other = mass[g] - v + w, mass[h] - w + v
            total = (rest + w * to_group[g, y] - between) * other
            total += (change[b] + comes - between) * one
            if total < limit * (one * other):
                limit, place = total / (one * other), a * size[h] + b
    return place


@subkernel
def _best_weighted_move(g, h, size, within, members, to_group, weight, mass, bound):
    """Find what _best_move finds, in the same way."""
    place, limit = -1, within[g] / mass[g] + within[h] / mass[h] + bound
    for a in range(size[g]):
        x = members[g, a]
        w = weight[x]
        one, other = mass[g] - w, mass[h] + w
        total = (within[g] - w * to_group[g, x]) * other
        total += (within[h] + w * to_group[h, x]) * one
        if total < limit * (one * other):
            limit, place = total / (one * other), a
    return place


@subkernel
def _swap(g, a, h, b, width, size, within, members, to_group, distance, weight, mass):
    """Change the groups of the records at places a of g and b of h."""
    x, y = members[g, a], members[h, b]
    members[g, a], members[h, b] = y, x
    if weight is None:
        within[g] += to_group[g, y] - to_group[g, x] - distance[x, y]
        within[h] += to_group[h, x] - to_group[h, y] - distance[x, y]
        for z in range(width):
            more = distance[y, z] - distance[x, z]
            to_group[g, z] += more
            to_group[h, z] -= more
    else:
        v, w = weight[x], weight[y]
        within[g] += w * to_group[g, y] - v * to_group[g, x] - v * w * distance[x, y]
        within[h] += v * to_group[h, x] - w * to_group[h, y] - v * w * distance[x, y]
        for z in range(width):
            more = w * distance[y, z] - v * distance[x, z]
            to_group[g, z] += more
            to_group[h, z] -= more
        _weigh(g, size, members, weight, mass)
        _weigh(h, size, members, weight, mass)


@subkernel
def _move(g, a, h, width, size, within, members, to_group, distance, weight, mass):
    """Move the record at place a of g to h."""
    x = members[g, a]
    size[g] -= 1
    members[g, a] = members[g, size[g]]
    if weight is None:
        within[g] -= to_group[g, x]
        for y in range(width):
            to_group[g, y] -= distance[x, y]
    else:
        within[g] -= weight[x] * to_group[g, x]
        for y in range(width):
            to_group[g, y] -= weight[x] * distance[x, y]
        _weigh(g, size, members, weight, mass)
    _join(x, h, width, size, within, members, to_group, distance, weight, mass)


@subkernel
def descend(pool, m, q, k):
    """Move and swap records of the pool until nothing gains any more."""
    changed, seen, change = pool.changed, pool.seen, pool.change
    size, within, weight, mass = pool.size, pool.within, pool.weight, pool.mass
    members, to_group, distance = pool.members, pool.to_group, pool.distance
    width, bound = _whole(m), -max(_NOISE * cost(pool, q), _UNDERFLOW)
    for g in range(q):
        changed[g] = 1
        for h in range(g):
            seen[g, h] = 0
    clock, busy, most = 1, True, MOST_CHANGES * m
    while busy and clock <= most:
        busy = False
        for g in range(q):
            for h in range(g):
                while seen[g, h] < max(changed[g], changed[h]) and clock <= most:
                    seen[g, h] = clock
                    done = False
                    if size[g] > k and size[h] < 2 * k - 1:
                        a = _best_move(
                            g, h, k, size, within, members, to_group, weight, mass, bound
                        )
                        if a >= 0:
                            _move(
                                g,
                                a,
                                h,
                                width,
                                size,
                                within,
                                members,
                                to_group,
                                distance,
                                weight,
                                mass,
                            )
                            done = True
                    if not done and size[h] > k and size[g] < 2 * k - 1:
                        a = _best_move(
                            h, g, k, size, within, members, to_group, weight, mass, bound
                        )
                        if a >= 0:
                            _move(
                                h,
                                a,
                                g,
                                width,
                                size,
                                within,
                                members,
                                to_group,
                                distance,
                                weight,
                                mass,
                            )
                            done = True
                    if not done:
                        a = _best_swap(
                            g,
                            h,
                            size,
                            within,
                            members,
                            to_group,
                            distance,
                            change,
                            weight,
                            mass,
                            bound,
                        )
                        if a >= 0:
                            b = a % size[h]
                            a = a // size[h]
                            _swap(
                                g,
                                a,
                                h,
                                b,
                                width,
                                size,
                                within,
                                members,
                                to_group,
                                distance,
                                weight,
                                mass,
                            )
                            done = True
                    if done:
                        clock += 1
                        changed[g] = changed[h] = clock
                        busy = True
