"""A few neighbouring groups taken apart and put together again.

The SSE of a group of s records is the sum of the squared distances over its pairs, divided by s. So
for the handful of records at hand all distances are computed once, and for each record its sum
of distances to each group is kept. The change that a move or a swap makes is then a matter
of a few operations, whatever the number of columns.

What a loop runs over lies side by side in memory, so that the compiler makes vector code of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.kernels.jit import inner, kernel

_NOISE = 1e-11  # gains below this share of the pool's SSE may be rounding, and could go in circles


class Pool(NamedTuple):
    """Records of some groups; the first m rows and q groups of the arrays are in use."""

    rows: Any  # (records,)
    part: Any  # (records,) group of each
    values: Any  # (columns, records)
    distance: Any  # (records, records) squared
    to_group: Any  # (groups, records) sum of distances to the members
    within: Any  # (groups,) sum of distances over pairs
    size: Any  # (groups,)
    share: Any  # (records,) 1 / size of the own group
    own: Any  # (records,) sum of distances to the own group, times share
    scratch: Any  # (records,)
    toll: Any  # (groups,)


@kernel
def new_pool(records, groups, columns):  # type: ignore[no-untyped-def]
    """Allocate a pool of at most so many records and groups."""
    return Pool(
        np.empty(records, np.intp),
        np.empty(records, np.intp),
        np.empty((columns, records)),
        np.empty((records, records)),
        np.empty((groups, records)),
        np.empty(groups),
        np.empty(groups, np.intp),
        np.empty(records),
        np.empty(records),
        np.empty(records),
        np.empty(groups),
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
    rows, values, distance = pool.rows, pool.values, pool.distance
    d = X.shape[1]
    for a in range(m):
        row = rows[a]
        for j in range(d):
            values[j, a] = X[row, j]
    for a in range(m):
        for b in range(m):
            distance[a, b] = 0.0
        for j in range(d):
            value = values[j, a]
            for b in range(m):
                gap = values[j, b] - value
                distance[a, b] += gap * gap


@kernel
def cost(pool, q):  # type: ignore[no-untyped-def]
    """SSE of the pool's groups."""
    total = 0.0
    for g in range(q):
        total += pool.within[g] / pool.size[g]
    return total


@inner
def _add(to_group, g, distance, x, m, sign):  # type: ignore[no-untyped-def]
    """Add or take away one record's distances."""
    for y in range(m):
        to_group[g, y] += sign * distance[x, y]


@kernel
def rebuild(pool, m, q, k, random):  # type: ignore[no-untyped-def]
    """Form q groups anew around random records; what is left over goes where it costs least."""
    part, distance, to_group = pool.part, pool.distance, pool.to_group
    within, size, closed = pool.within, pool.size, pool.scratch
    for x in range(m):
        part[x], closed[x] = -1, 0.0
    for g in range(q):
        for y in range(m):
            to_group[g, y] = 0.0
        within[g], size[g] = 0.0, 0
        x = int(draw(random) * m)
        while part[x] >= 0:
            x = x + 1 if x + 1 < m else 0
        while True:
            part[x], closed[x] = g, np.inf
            within[g] += to_group[g, x]
            size[g] += 1
            _add(to_group, g, distance, x, m, 1.0)
            if size[g] == k:
                break
            least = np.inf
            for y in range(m):
                if to_group[g, y] + closed[y] < least:
                    x, least = y, to_group[g, y]
    for x in range(m):
        if part[x] < 0:
            g, least = 0, np.inf
            for b in range(q):
                more = (within[b] + to_group[b, x]) / (size[b] + 1) - within[b] / size[b]
                if size[b] < 2 * k - 1 and more < least:
                    g, least = b, more
            part[x] = g
            within[g] += to_group[g, x]
            size[g] += 1
            _add(to_group, g, distance, x, m, 1.0)


@inner
def _best_move(a, x, q, k, within, size, to_group, bound):  # type: ignore[no-untyped-def]
    """Find the group that x of group a gains most by moving to, −1 if none is below the bound."""
    best = -1
    if size[a] > k:
        bound += within[a] / size[a] - (within[a] - to_group[a, x]) / (size[a] - 1)
        for b in range(q):
            more = (within[b] + to_group[b, x]) / (size[b] + 1) - within[b] / size[b]
            if b != a and size[b] < 2 * k - 1 and more < bound:
                bound, best = more, b
    return best


@inner
def _best_swap(a, x, m, part, share, own, toll, distance, to_group, change, bound):  # type: ignore[no-untyped-def]
    """Find the record that x gains most by changing groups with, −1 if none is below the bound.

    A swap of x in group a and y in b changes the SSE by (to(y, a) − to(x, a) − d²)/|a| +
    (to(x, b) − to(y, b) − d²)/|b|. What is no look-up is summed in a loop of its own.
    """
    own_share = share[x]
    for y in range(m):
        change[y] = to_group[a, y] * own_share - own[y] - distance[x, y] * (own_share + share[y])
    best, bound = -1, own[x] + bound
    for y in range(m):
        total = change[y] + toll[part[y]]
        if total < bound:
            bound, best = total, y
    return best


@inner
def _move(part, within, size, to_group, distance, m, x, b):  # type: ignore[no-untyped-def]
    """Move a record to another group."""
    a = part[x]
    within[a] -= to_group[a, x]
    within[b] += to_group[b, x]
    size[a] -= 1
    size[b] += 1
    part[x] = b
    _add(to_group, a, distance, x, m, -1.0)
    _add(to_group, b, distance, x, m, 1.0)


@kernel
def descend(pool, m, q, k):  # type: ignore[no-untyped-def]
    """Move and swap records of the pool until nothing gains any more."""
    part, distance, to_group = pool.part, pool.distance, pool.to_group
    within, size, share, own = pool.within, pool.size, pool.share, pool.own
    change, toll = pool.scratch, pool.toll
    bound = -_NOISE * cost(pool, q)
    x, idle, changed = 0, 0, True
    while idle < m:
        if changed:
            for y in range(m):
                g = part[y]
                share[y] = 1.0 / size[g]
                own[y] = to_group[g, y] * share[y]
        a = part[x]
        b = _best_move(a, x, q, k, within, size, to_group, bound)
        if b < 0:
            for g in range(q):
                toll[g] = to_group[g, x] / size[g]
            toll[a] = np.inf
            y = _best_swap(a, x, m, part, share, own, toll, distance, to_group, change, bound)
            if y >= 0:
                b = part[y]
                _move(part, within, size, to_group, distance, m, y, a)
        changed = b >= 0
        if changed:
            _move(part, within, size, to_group, distance, m, x, b)
        idle = 0 if changed else idle + 1
        x = x + 1 if x + 1 < m else 0
