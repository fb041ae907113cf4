"""The rows of the semidefinite bound: what a record may share with others, and what that costs at least.

Problem   Record i in a group of s has a row z of shares: 1/s with each member, itself too, and 0 with all
          others. Find (1) the point nearest to given values among the mixtures of such rows, for
          k ≤ s ≤ 2k−1, and (2) the row of least cost, when sharing with j costs M(i, j).
Idea      (1) Mixtures are the z of sum 1 with 0 ≤ z(j) ≤ t for a t = z(i) from 1/(2k−1) to 1/k. With a
          price τ on the sum, z(j) is the given value less τ over its weight, held between 0 and t;
          t balances the weights of what it holds down, found by Newton's steps, which never
          overshoot as that function is concave. The sum falls with τ: bisection.
          (2) For each s the s−1 lowest costs; then the least of all s.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.compile.jit import kernel, lean_subkernel

_STEPS = 100  # of bisection, at most
_SUM = 1e-5  # how far from 1 a row may stay


class Lists(NamedTuple):
    """The pairs of records that are looked at: those of row i are first[i] up to first[i + 1]."""

    first: Any  # (n + 1,)
    own: Any  # (n,) where row i has the pair of i with itself
    cost: Any  # (pairs,) half the squared distance
    scale: Any  # (pairs,) unit of the share: the product of both records' units
    count: Any  # (pairs,) blocks that hold the pair
    share: Any  # (pairs,) z, in units of its scale
    added: Any  # (pairs,) what inequalities add to the cost (inequalities.py)


class Blocks(NamedTuple):
    """Blocks of m records each, with a symmetric and a free copy of their pairs' shares."""

    members: Any  # (blocks, m) records, ascending
    place: Any  # (blocks, m, m) where the lists have each pair
    first: Any  # (n + 1,) the places of record i in blocks are held[first[i] : first[i + 1]]
    held: Any  # block · m + position in it
    convex: Any  # (blocks, m, m) shares, positive semidefinite
    dual: Any  # (blocks, m, m) multipliers of both copies being equal


@kernel
def list_pairs(members, n, near, near_cost):
    """Label the pairs that share a block, then those of a record with its nearest outside its blocks.

    ``near`` are record numbers, −1 for records that are in no block at all, at ``near_cost``. Returns where
    the pairs of each record begin, and its pair with itself; of each pair how many blocks hold it, the other
    record, −1 for one in no block of the first, and the cost of those; the rest as in ``Blocks``.
    """
    blocks, m = members.shape
    first_held = np.zeros(n + 1, np.intp)
    for b in range(blocks):
        for a in range(m):
            first_held[members[b, a] + 1] += 1
    for i in range(n):
        first_held[i + 1] += first_held[i]
    at, held = first_held.copy(), np.empty(blocks * m, np.int32)
    for b in range(blocks):
        for a in range(m):
            i = members[b, a]
            held[at[i]] = b * m + a
            at[i] += 1
    place = np.empty((blocks, m, m), np.int32)
    first, own = np.zeros(n + 1, np.intp), np.empty(n, np.intp)
    met, where = np.full(n, -1, np.intp), np.empty(n, np.intp)
    room = blocks * m * m + near.size + n
    column, cost = np.empty(room, np.int32), np.empty(room)
    count = np.zeros(room, np.float32)
    filled = 0
    for i in range(n):
        met[i], where[i], own[i], column[filled] = i, filled, filled, i
        filled += 1
        for h in range(first_held[i], first_held[i + 1]):
            b, a = held[h] // m, held[h] % m
            for c in range(m):
                j = members[b, c]
                if met[j] != i:
                    met[j], where[j], column[filled] = i, filled, j
                    filled += 1
                place[b, a, c] = where[j]
                count[where[j]] += 1
        for c in range(near.shape[1]):
            j = near[i, c]
            if j < 0 or met[j] != i:
                column[filled], cost[filled] = -1, near_cost[i, c]
                filled += 1
        first[i + 1] = filled
    return (
        first,
        own,
        count[:filled].copy(),
        column[:filled].copy(),
        cost[:filled].copy(),
        place,
        first_held,
        held,
    )


@lean_subkernel
def _cap(own, own_weight, value, weight, used, low, high):
    """Return the cap t between low and high that is nearest to ``own`` and to the values it holds down."""
    slope = own_weight * (high - own)
    for a in range(used):
        if value[a] > high:
            slope += weight[a] * (high - value[a])
    if slope <= 0:
        return high
    t = low
    for _ in range(used + 1):  # each step leaves some value below
        slope, total = own_weight * (t - own), own_weight
        for a in range(used):
            if value[a] > t:
                slope += weight[a] * (t - value[a])
                total += weight[a]
        if slope >= -1e-9 * total * high:
            break
        t = min(t - slope / total, high)
    return t


@lean_subkernel
def _held(target, weight, at, used, own, price, low, high, value, heavy):
    """Return what the row sums to at a price of the sum; the cap."""
    for a in range(used):
        heavy[a] = weight[at[a]]
        value[a] = target[at[a]] - price / heavy[a]
    t = _cap(target[own] - price / weight[own], weight[own], value, heavy, used, low, high)
    total = t
    for a in range(used):
        if value[a] > 0:
            total += min(value[a], t)
    return total, t


@lean_subkernel
def _nearest_row(target, weight, count, own, k, price, at, value, heavy):
    """Replace the first ``count`` targets by the nearest mixture of rows; return the price.

    ``price`` is where to look first; the last three are scratch.
    """
    low, high = 1.0 / (2 * k - 1), 1.0 / k
    step = 0.02 * abs(price) + 1e-6 * weight[own]
    below, above, used = price - step, np.inf, 0
    # A price that is too low: only what it leaves can be in the row at higher ones.
    for _ in range(_STEPS):
        used = 0
        for a in range(count):
            if a != own and target[a] * weight[a] > below:
                at[used] = a
                used += 1
        total, t = _held(target, weight, at, used, own, below, low, high, value, heavy)
        if total >= 1:
            break
        above = below
        step *= 3
        below -= step
    price, step = below, 0.04 * abs(price) + 2e-6 * weight[own]
    for _ in range(_STEPS):
        if abs(total - 1) < _SUM:
            break
        if above == np.inf:
            price += step
            step *= 3
        else:
            price = 0.5 * (below + above)
        total, t = _held(target, weight, at, used, own, price, low, high, value, heavy)
        if total >= 1:
            below = price
        else:
            above = price
    for a in range(count):
        target[a] = 0.0
    for a in range(used):
        if value[a] > 0:
            target[at[a]] = min(value[a], t)
    target[own] = t
    return price


@kernel
def project_rows(lists, blocks, k, rho, prices, rows):
    """Move the shares of some rows to the least cost, not far from the convex copies."""
    m = blocks.members.shape[1]
    longest = 0
    for i in rows:
        longest = max(longest, lists.first[i + 1] - lists.first[i])
    target, weight, value = np.empty(longest), np.empty(longest), np.empty(longest)
    heavy, at = np.empty(longest), np.empty(longest, np.intp)
    for i in rows:
        start, count = lists.first[i], lists.first[i + 1] - lists.first[i]
        for a in range(count):
            # A pair in no block stays near to what it was.
            free = lists.count[start + a] == 0
            target[a] = lists.share[start + a] if free else 0.0
        for h in range(blocks.first[i], blocks.first[i + 1]):
            b, p = blocks.held[h] // m, blocks.held[h] % m
            for c in range(m):
                a = blocks.place[b, p, c] - start
                target[a] += blocks.convex[b, p, c] - blocks.dual[b, p, c] / rho
        for a in range(count):
            scale = lists.scale[start + a]
            weight[a] = max(lists.count[start + a], 1.0) * scale * scale
            cost = lists.cost[start + a] + lists.added[start + a]
            target[a] = (target[a] * scale - cost / rho) / weight[a]
        diagonal = lists.own[i] - start
        prices[i] = _nearest_row(target, weight, count, diagonal, k, prices[i], at, value, heavy)
        for a in range(count):
            lists.share[start + a] = target[a] * lists.scale[start + a]


@kernel
def least_costs(lists, charge, blocks, added, reach, slack, limit, k, costs, begin, end):
    """Write the least cost of the rows begin..end−1, lowered by what rounding may have added.

    ``charge`` is what inequalities add to the costs of pairs (inequalities.py);
    ``added`` (blocks, m, m) is what pairs cost in addition to the distances, as a sum of products of at most
    ``reach`` (blocks, m) of both records and of a rest. ``limit`` is what pairs cost at least that are
    not listed, ``slack`` the relative error of a pair's terms, and of sums of 2k of them.
    """
    m = blocks.members.shape[1]
    lowest, longest = np.empty(2 * k - 2), 0
    for i in range(begin, end):
        longest = max(longest, lists.first[i + 1] - lists.first[i])
    cost, terms = np.empty(longest), np.empty(longest)
    for i in range(begin, end):
        start, count = lists.first[i], lists.first[i + 1] - lists.first[i]
        for a in range(count):
            cost[a] = lists.cost[start + a] + charge.added[start + a]
            terms[a] = lists.cost[start + a] + charge.sizes[start + a]
        for h in range(blocks.first[i], blocks.first[i + 1]):
            b, p = blocks.held[h] // m, blocks.held[h] % m
            for c in range(m):
                a = blocks.place[b, p, c] - start
                cost[a] += added[b, p, c]
                terms[a] += abs(added[b, p, c]) + reach[b, p] * reach[b, c]
        diagonal = lists.own[i] - start
        lowest[:] = limit[i] * (1 - slack)
        for a in range(count):
            low = cost[a] - slack * terms[a]
            if a != diagonal and low < lowest[-1]:
                s = lowest.size - 1
                while s > 0 and lowest[s - 1] > low:
                    lowest[s] = lowest[s - 1]
                    s -= 1
                lowest[s] = low
        total = cost[diagonal] - slack * terms[diagonal]
        least, size = np.inf, abs(total)
        for s in range(2, 2 * k):
            total += lowest[s - 2]
            size += abs(lowest[s - 2])
            if s >= k:
                least = min(least, (total - slack * size) / s)
        costs[i] = least
