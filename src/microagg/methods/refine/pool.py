"""A few neighbouring groups taken apart and put together again.

The SSE of a group of s records is the sum of the squared distances over its pairs, divided by s. So
for the handful of records at hand all distances are computed once, and for each record its sum
of distances to each group is kept. The change that a move or a swap makes is then a matter
of a few operations, whatever the number of columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.kernels.jit import kernel

_NOISE = 1e-11  # gains below this share of the pool's SSE may be rounding, and could go in circles


class Pool(NamedTuple):
    """Records of some groups; the first m rows and q groups of the arrays are in use."""

    rows: Any  # (records,)
    part: Any  # (records,) group of each
    distance: Any  # (records, records) squared
    to_group: Any  # (records, groups) sum of distances to the members
    within: Any  # (groups,) sum of distances over pairs
    size: Any  # (groups,)


@kernel
def new_pool(records, groups):  # type: ignore[no-untyped-def]
    """Allocate a pool of at most so many records and groups."""
    return Pool(
        np.empty(records, np.intp),
        np.empty(records, np.intp),
        np.empty((records, records)),
        np.empty((records, groups)),
        np.empty(groups),
        np.empty(groups, np.intp),
    )


@kernel
def draw(random):  # type: ignore[no-untyped-def]
    """Draw a number from [0, 1) and advance the state (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@kernel
def draw_exponential(random):  # type: ignore[no-untyped-def]
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


@kernel
def measure(X, pool, m):  # type: ignore[no-untyped-def]
    """Fill in the distances of the pool's records."""
    for a in range(m):
        pool.distance[a, a] = 0.0
        for b in range(a):
            total = 0.0
            for j in range(X.shape[1]):
                gap = X[pool.rows[a], j] - X[pool.rows[b], j]
                total += gap * gap
            pool.distance[a, b] = total
            pool.distance[b, a] = total


@kernel
def cost(pool, q):  # type: ignore[no-untyped-def]
    """SSE of the pool's groups."""
    total = 0.0
    for g in range(q):
        total += pool.within[g] / pool.size[g]
    return total


@kernel
def _join(pool, m, x, g):  # type: ignore[no-untyped-def]
    pool.part[x] = g
    pool.within[g] += pool.to_group[x, g]
    pool.size[g] += 1
    for y in range(m):
        pool.to_group[y, g] += pool.distance[y, x]


@kernel
def rebuild(pool, m, q, k, random):  # type: ignore[no-untyped-def]
    """Form q groups anew around random records; what is left over goes where it costs least."""
    for x in range(m):
        pool.part[x] = -1
        for g in range(q):
            pool.to_group[x, g] = 0.0
    for g in range(q):
        pool.within[g], pool.size[g] = 0.0, 0
        x = int(draw(random) * m)
        while pool.part[x] >= 0:
            x = x + 1 if x + 1 < m else 0
        _join(pool, m, x, g)
        while pool.size[g] < k:
            nearest, least = -1, np.inf
            for y in range(m):
                if pool.part[y] < 0 and pool.to_group[y, g] < least:
                    nearest, least = y, pool.to_group[y, g]
            _join(pool, m, nearest, g)
    for x in range(m):
        if pool.part[x] < 0:
            cheapest, least = -1, np.inf
            for g in range(q):
                size, within = pool.size[g], pool.within[g]
                more = (within + pool.to_group[x, g]) / (size + 1) - within / size
                if size < 2 * k - 1 and more < least:
                    cheapest, least = g, more
            _join(pool, m, x, cheapest)


@kernel
def _best_change(pool, m, q, k, x, noise):  # type: ignore[no-untyped-def]
    """Find the move of x, or its swap with a record y, that gains most: (gain, group, y or −1)."""
    distance, to_group, part = pool.distance, pool.to_group, pool.part
    within, size = pool.within, pool.size
    a = part[x]
    own, best, group, partner = to_group[x, a], -noise, -1, -1
    if size[a] > k:
        without = (within[a] - own) / (size[a] - 1) - within[a] / size[a]
        for b in range(q):
            if b != a and size[b] < 2 * k - 1:
                change = (
                    without + (within[b] + to_group[x, b]) / (size[b] + 1) - within[b] / size[b]
                )
                if change < best:
                    best, group = change, b
    for y in range(m):
        b = part[y]
        if b != a:
            change = (to_group[y, a] - own - distance[x, y]) / size[a] + (
                to_group[x, b] - to_group[y, b] - distance[x, y]
            ) / size[b]
            if change < best:
                best, group, partner = change, b, y
    return group, partner


@kernel
def descend(pool, m, q, k):  # type: ignore[no-untyped-def]
    """Move and swap records of the pool until nothing gains any more."""
    distance, to_group, part = pool.distance, pool.to_group, pool.part
    noise = _NOISE * cost(pool, q)
    x, idle = 0, 0
    while idle < m:
        a = part[x]
        b, y = _best_change(pool, m, q, k, x, noise)
        idle += 1
        if b >= 0:
            idle = 0
            pool.within[a] -= to_group[x, a]
            pool.within[b] += to_group[x, b]
            part[x] = b
            if y < 0:
                pool.size[a] -= 1
                pool.size[b] += 1
                for z in range(m):
                    to_group[z, a] -= distance[z, x]
                    to_group[z, b] += distance[z, x]
            else:
                pool.within[a] += to_group[y, a] - distance[x, y]
                pool.within[b] -= to_group[y, b] + distance[x, y]
                part[y] = a
                for z in range(m):
                    gap = distance[z, x] - distance[z, y]
                    to_group[z, a] -= gap
                    to_group[z, b] += gap
        x = x + 1 if x + 1 < m else 0
