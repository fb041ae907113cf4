"""A few neighbouring groups taken apart and put together again, under requirements.

As in methods/refine/pool.py all distances of the records at hand are computed once, and for each record its sum
of distances to each group is kept. Beside them stand the tallies of each group (kernels/require_demands.py),
so that what a move or a swap does to the requirements is known before it is made: for counts of distinct
values at once, for others in a loop over the codes that occur in the pool.

A record of weight w counts w times: the SSE of a group is Σ w·w'·d² over its pairs, divided by its weight.
Groups have no largest size. A group is grown until it lacks nothing, by the record that is cheapest for
what it brings; records that are left over go where they cost least.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.kernels.jit import kernel, subkernel
from microagg.kernels.require_demands import shortage
from microagg.kernels.require_kinds import DISTINCT, POPULATION, RISK, TOLERANCE
from microagg.methods.refine.pool import draw

_NOISE = 1e-11  # gains below this share of the pool's SSE may be rounding, and could go in circles
_UNDERFLOW = 1e-300  # so may all gains below this, whatever the SSE
_DEAR = 10.0  # what a violation costs while groups are put together, in units of the pool's SSE


class Pool(NamedTuple):
    """Records of some groups; the first m rows and q groups of the arrays are in use."""

    rows: Any  # (records,)
    weight: Any  # (records,)
    distance: Any  # (records, records) squared, times both weights
    to_group: Any  # (groups, records) sum of distances to the members
    members: Any  # (groups, records)
    size: Any  # (groups,)
    mass: Any  # (groups,) sum of weights
    within: Any  # (groups,) sum of distances over pairs
    left: Any  # (records,) in no group yet
    changed: Any  # (groups,) when it last was
    seen: Any  # (groups, groups) when the pair was last looked at
    local: Any  # (requirements, records) the place of a record's code among those of the pool
    amount: Any  # (requirements, records)
    code: Any  # (requirements, records) codes of the pool, ascending
    entries: Any  # (requirements,) how many there are
    tally: Any  # (requirements, groups, records) what a group has of each
    found: Any  # (requirements, groups) codes of which it has something
    total: Any  # (requirements, groups) sum of amounts
    short: Any  # (groups,) violation


@subkernel
def new_pool(records, groups, requirements):
    """Allocate a pool with room for this number of records, groups and requirements."""
    return Pool(
        np.empty(records, np.intp),
        np.empty(records),
        np.empty((records, records)),
        np.empty((groups, records)),
        np.empty((groups, records), np.intp),
        np.empty(groups, np.intp),
        np.empty(groups),
        np.empty(groups),
        np.empty(records, np.intp),
        np.empty(groups, np.intp),
        np.empty((groups, groups), np.intp),
        np.empty((requirements, records), np.intp),
        np.empty((requirements, records)),
        np.empty((requirements, records), np.intp),
        np.empty(requirements, np.intp),
        np.empty((requirements, groups, records)),
        np.empty((requirements, groups), np.intp),
        np.empty((requirements, groups)),
        np.empty(groups),
    )


@subkernel
def _number_codes(demands, pool, m):
    """Number the codes of the pool's records in ascending order, requirement by requirement."""
    order = pool.left
    for r in range(demands.kind.size):
        codes = demands.codes[r]
        for x in range(m):  # insertion: a pool is small
            own, a = codes[pool.rows[x]], x
            while a > 0 and codes[pool.rows[order[a - 1]]] > own:
                order[a] = order[a - 1]
                a -= 1
            order[a] = x
            pool.amount[r, x] = demands.amounts[r, pool.rows[x]]
        entries = 0
        for a in range(m):
            own = codes[pool.rows[order[a]]]
            if entries == 0 or pool.code[r, entries - 1] != own:
                pool.code[r, entries] = own
                entries += 1
            pool.local[r, order[a]] = entries - 1
        pool.entries[r] = entries


@subkernel
def measure(X, weights, demands, pool, m):
    """Fill in what depends on the first m rows alone: distances and codes."""
    rows, weight, distance = pool.rows, pool.weight, pool.distance
    for a in range(m):
        weight[a] = weights[rows[a]]
        distance[a, a] = 0.0
        for b in range(a):
            total = 0.0
            for j in range(X.shape[1]):
                gap = X[rows[a], j] - X[rows[b], j]
                total += gap * gap
            distance[a, b] = distance[b, a] = total * weight[a] * weight[b]
    _number_codes(demands, pool, m)


@subkernel
def cost(pool, q):
    """SSE of the pool's groups."""
    total = 0.0
    for g in range(q):
        total += pool.within[g] / pool.mass[g]
    return total


@subkernel
def violation(pool, q):
    """Sum of the violations of the pool's groups."""
    total = 0.0
    for g in range(q):
        total += pool.short[g]
    return total


@subkernel
def after(demands, pool, k, g, out, extra):
    """Violation of group g without record ``out`` and with ``extra``; −1 stands for none."""
    size = pool.size[g] - (out >= 0) + (extra >= 0)
    if size == 0:
        return 1.0
    lacking = max(k - size, 0) / k
    for r in range(demands.kind.size):
        kind, tally = demands.kind[r], pool.tally[r, g]
        old = pool.local[r, out] if out >= 0 else -1
        new = pool.local[r, extra] if extra >= 0 else -1
        if kind == DISTINCT:
            have = pool.found[r, g]
            if old != new:
                have += (new >= 0 and tally[new] == 0) - (old >= 0 and tally[old] == 1)
            lacking += max(demands.level[r] - have, 0.0) / demands.level[r]
            continue
        total = pool.total[r, g]
        if old >= 0:
            total -= pool.amount[r, out]
        if new >= 0:
            total += pool.amount[r, extra]
        if kind == POPULATION or kind == RISK:
            lacking += shortage(demands, r, pool.code[r], tally, 0, size, total)
            continue
        # Kept, rather than added back: that would be rounded.
        of_old, of_new = tally[max(old, 0)], tally[max(new, 0)]
        if old >= 0:
            tally[old] -= pool.amount[r, out]
        if new >= 0:
            tally[new] += pool.amount[r, extra]
        lacking += shortage(demands, r, pool.code[r], tally, pool.entries[r], size, total)
        if new >= 0:
            tally[new] = of_new
        if old >= 0:
            tally[old] = of_old
    return lacking if lacking > TOLERANCE else 0.0


@subkernel
def _note(demands, pool, g, x, sign):
    """Add a record to the tallies of a group, or take it away."""
    pool.size[g] += int(sign)
    pool.mass[g] += sign * pool.weight[x]
    for r in range(demands.kind.size):
        c = pool.local[r, x]
        if sign > 0 and pool.tally[r, g, c] == 0:
            pool.found[r, g] += 1
        pool.tally[r, g, c] += sign * pool.amount[r, x]
        if sign < 0 and pool.tally[r, g, c] == 0:
            pool.found[r, g] -= 1
        pool.total[r, g] += sign * pool.amount[r, x]


@subkernel
def _clear(demands, pool, g, m):
    """Empty a group."""
    pool.size[g], pool.mass[g], pool.within[g], pool.short[g] = 0, 0.0, 0.0, 1.0
    for x in range(m):
        pool.to_group[g, x] = 0.0
    for r in range(demands.kind.size):
        pool.found[r, g], pool.total[r, g] = 0, 0.0
        for c in range(pool.entries[r]):
            pool.tally[r, g, c] = 0.0


@subkernel
def _join(demands, pool, k, x, g, m):
    """Put a record that is in no group into one."""
    pool.members[g, pool.size[g]] = x
    _note(demands, pool, g, x, 1.0)
    pool.within[g] += pool.to_group[g, x]
    for y in range(m):
        pool.to_group[g, y] += pool.distance[x, y]
    pool.short[g] = after(demands, pool, k, g, -1, -1)


@subkernel
def grow(demands, pool, m, k, g, at, count):
    """Grow group g from the record left[at] until it lacks nothing or nobody is left.

    It takes the record whose distance is least for what it brings, or the nearest if none brings
    anything; ``count`` records are left before, the number left after is returned.
    """
    left, to_group = pool.left, pool.to_group
    _clear(demands, pool, g, m)
    while True:
        x, count = left[at], count - 1
        left[at] = left[count]
        _join(demands, pool, k, x, g, m)
        lacking = pool.short[g]
        if lacking == 0 or count == 0:
            return count
        least, brings = np.inf, False
        for a in range(count):
            y = left[a]
            near = to_group[g, y] / pool.weight[y]
            if brings and near >= least * lacking:
                continue  # even if it brought all that is lacking
            gain = lacking - after(demands, pool, k, g, -1, y)
            if gain > TOLERANCE:
                if not brings or near / gain < least:
                    at, least, brings = a, near / gain, True
            elif not brings and near < least:
                at, least = a, near


@subkernel
def _place(demands, pool, m, q, k, x, dear):
    """Put a record that is left over where it costs least."""
    g, least = 0, np.inf
    for b in range(q):
        more = (pool.within[b] + pool.to_group[b, x]) / (pool.mass[b] + pool.weight[x])
        more -= pool.within[b] / pool.mass[b]
        if more < least:
            more += dear * max(after(demands, pool, k, b, -1, x) - pool.short[b], 0.0)
            if more < least:
                g, least = b, more
    _join(demands, pool, k, x, g, m)


@subkernel
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
        if pool.short[formed] > 0 and formed > 0:  # what is left does not make another group
            for a in range(pool.size[formed]):
                left[count + a] = pool.members[formed, a]
            count = before
            break
        formed += 1
    for a in range(count):
        _place(demands, pool, m, formed, k, left[a], dear)
    return formed


@subkernel
def adopt(demands, pool, m, q, k, owner):
    """Form the groups that the records are in; ``owner`` numbers them from 0."""
    for g in range(q):
        _clear(demands, pool, g, m)
    for x in range(m):
        _join(demands, pool, k, x, owner[x], m)


@subkernel
def _move(demands, pool, k, g, a, h, m):
    """Move the record at place a of g to h."""
    x = pool.members[g, a]
    _note(demands, pool, g, x, -1.0)
    pool.members[g, a] = pool.members[g, pool.size[g]]
    pool.within[g] -= pool.to_group[g, x]
    for y in range(m):
        pool.to_group[g, y] -= pool.distance[x, y]
    _join(demands, pool, k, x, h, m)
    pool.short[g] = after(demands, pool, k, g, -1, -1)


@subkernel
def _swap(demands, pool, k, g, a, h, b, m):
    """Change the groups of the records at places a of g and b of h."""
    x, y = pool.members[g, a], pool.members[h, b]
    _move(demands, pool, k, g, a, h, m)
    # x is the last of h now, and the place of y is still b
    _move(demands, pool, k, h, b, g, m)


@subkernel
def _best_move(demands, pool, k, g, h, bound, dear):
    """Find the place in group g of the record that gains most by moving to h, −1 if none does."""
    place, lacking = -1, pool.short[g] + pool.short[h]
    before = pool.within[g] / pool.mass[g] + pool.within[h] / pool.mass[h]
    for a in range(pool.size[g]):
        x = pool.members[g, a]
        change = (pool.within[g] - pool.to_group[g, x]) / (pool.mass[g] - pool.weight[x]) - before
        change += (pool.within[h] + pool.to_group[h, x]) / (pool.mass[h] + pool.weight[x])
        if change - dear * lacking >= bound:
            continue
        short = after(demands, pool, k, g, x, -1)
        if change + dear * (short - lacking) < bound:
            short += after(demands, pool, k, h, -1, x)
            if change + dear * (short - lacking) < bound and (short == 0 or short <= lacking):
                bound, place = change + dear * (short - lacking), a
    return place


@subkernel
def _best_swap(demands, pool, k, g, h, bound, dear):
    """Find the places in two groups of the records that gain most by a swap, −1 if none does."""
    place, lacking = -1, pool.short[g] + pool.short[h]
    before = pool.within[g] / pool.mass[g] + pool.within[h] / pool.mass[h]
    to_g, to_h = pool.to_group[g], pool.to_group[h]
    for a in range(pool.size[g]):
        x = pool.members[g, a]
        one, other = pool.within[g] - to_g[x], pool.within[h] + to_h[x]
        for b in range(pool.size[h]):
            y = pool.members[h, b]
            heavier = pool.weight[y] - pool.weight[x]
            change = (one + to_g[y] - pool.distance[x, y]) / (pool.mass[g] + heavier) - before
            change += (other - to_h[y] - pool.distance[x, y]) / (pool.mass[h] - heavier)
            if change - dear * lacking >= bound:
                continue
            short = after(demands, pool, k, g, x, y)
            if change + dear * (short - lacking) < bound:
                short += after(demands, pool, k, h, y, x)
                if change + dear * (short - lacking) < bound and (short == 0 or short <= lacking):
                    bound = change + dear * (short - lacking)
                    place = a * pool.size[h] + b
    return place


@subkernel
def _improve_pair(demands, pool, m, k, g, h, bound, dear):
    """Make the best move or swap between two groups; say whether there was one."""
    if pool.size[g] > k:
        a = _best_move(demands, pool, k, g, h, bound, dear)
        if a >= 0:
            _move(demands, pool, k, g, a, h, m)
            return True
    if pool.size[h] > k:
        a = _best_move(demands, pool, k, h, g, bound, dear)
        if a >= 0:
            _move(demands, pool, k, h, a, g, m)
            return True
    a = _best_swap(demands, pool, k, g, h, bound, dear)
    if a >= 0:
        b = a % pool.size[h]
        _swap(demands, pool, k, g, a // pool.size[h], h, b, m)
        return True
    return False


@subkernel
def descend(demands, pool, m, q, k, dear):
    """Move and swap records of the pool until nothing gains any more.

    What gains is a lower SSE, where a violation weighs ``dear``; where nothing is violated nothing ever is.
    """
    changed, seen = pool.changed, pool.seen
    bound = -max(_NOISE * cost(pool, q), _UNDERFLOW)
    for g in range(q):
        changed[g] = 1
        for h in range(g):
            seen[g, h] = 0
    clock, busy = 1, True
    while busy:
        busy = False
        for g in range(q):
            for h in range(g):
                while seen[g, h] < max(changed[g], changed[h]):
                    seen[g, h] = clock
                    if _improve_pair(demands, pool, m, k, g, h, bound, dear):
                        clock += 1
                        changed[g] = changed[h] = clock
                        busy = True


@subkernel
def dear_for(sse):
    """What a violation of 1 costs while groups of this SSE are put together."""
    return max(_DEAR * sse, _UNDERFLOW)


@kernel
def pooled(X, weights, demands, owner, q, k, random):
    """Rebuild and improve a whole small table as one pool; labels, SSE and violation.

    With no random numbers given its groups 0..q−1 of ``owner`` are improved as they are.
    """
    n = X.shape[0]
    pool = new_pool(n, q, demands.kind.size)
    for x in range(n):
        pool.rows[x] = x
    measure(X, weights, demands, pool, n)
    adopt(demands, pool, n, q, k, owner)
    dear = dear_for(cost(pool, q))
    if random.size > 0:
        q = rebuild(demands, pool, n, q, k, dear, random)
    descend(demands, pool, n, q, k, dear)
    labels = np.empty(n, np.intp)
    for g in range(q):
        for a in range(pool.size[g]):
            labels[pool.members[g, a]] = g
    return labels, cost(pool, q), violation(pool, q)
