"""Moves and swaps of records between the groups of a pool, until nothing gains any more.

With weights None, the compiler leaves out what is meant for weights and requirements (pool.py).
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.refine.pool import UNDERFLOW, cost, join, leave, padded, weigh, weight_of
from microagg.algorithms.refine.tallies import count, count_violation, violation, violation_after
from microagg.compile.jit import inlined_subkernel, lean_subkernel

_NOISE = 1e-11  # gains below this share of the pool's SSE may be rounding, and could go in circles
# The same holds for gains below this share of the largest number that they are computed from: records far
# away from all others leave their rounding in every sum that they once were part of.
_ROUNDING = 1e-14
# Per record at most, in case rounding goes in circles after all; one or two are usual.
_CHANGES = 50


@inlined_subkernel
def _best_move(weight, split, g, h, bound, rules):
    """Find the place in group g of the record that gains most by moving to h, −1 if none gains enough."""
    if weight is not None:
        if rules.bounded:
            return _best_weighted_move(split, g, h, bound)
        return _best_required_move(split, g, h, bound, rules)
    size, within, members, to_group = split.size, split.within, split.members, split.to_group
    best = -1
    share_g, share_h = 1.0 / (size[g] - 1), 1.0 / (size[h] + 1)
    bound += within[g] / size[g] + within[h] / size[h] - within[g] * share_g - within[h] * share_h
    for a in range(size[g]):
        x = members[g, a]
        total = to_group[h, x] * share_h - to_group[g, x] * share_g
        if total < bound:
            bound, best = total, a
    return best


@inlined_subkernel
def _best_swap(weight, split, change, g, h, bound, rules):
    """Find the places in two groups of the records that gain most by a swap, −1 if none gains enough.

    A swap of x in g and y in h changes the SSE by (to(y, g) − to(x, g) − d²)/|g| +
    (to(x, h) − to(y, h) − d²)/|h|.
    """
    if weight is not None:
        if rules.bounded:
            return _best_weighted_swap(split, change, g, h, bound)
        return _best_required_swap(split, change, g, h, bound, rules)
    size, members, to_group, distance = split.size, split.members, split.to_group, split.distance
    share_g, share_h = 1.0 / size[g], 1.0 / size[h]
    both = share_g + share_h
    for b in range(size[h]):
        y = members[h, b]
        change[b] = to_group[g, y] * share_g - to_group[h, y] * share_h
    best = -1
    for a in range(size[g]):
        x = members[g, a]
        gain = to_group[h, x] * share_h - to_group[g, x] * share_g
        for b in range(size[h]):
            total = gain + change[b] - both * distance[x, members[h, b]]
            if total < bound:
                bound, best = total, a * size[h] + b
    return best


@inlined_subkernel
def _best_weighted_move(split, g, h, bound):
    """Find what _best_move finds, with weights.

    Two quotients are compared with the least so far by products, since divisions take longer.
    """
    size, members, to_group, weight = split.size, split.members, split.to_group, split.weight
    mass, within = split.mass, split.within
    best, limit = -1, within[g] / mass[g] + within[h] / mass[h] + bound
    for a in range(size[g]):
        x = members[g, a]
        w = weight[x]
        mass_g, mass_h = mass[g] - w, mass[h] + w
        total = (within[g] - w * to_group[g, x]) * mass_h
        total += (within[h] + w * to_group[h, x]) * mass_g
        if total < limit * (mass_g * mass_h):
            limit, best = total / (mass_g * mass_h), a
    return best


@inlined_subkernel
def _best_weighted_swap(split, change, g, h, bound):
    """Find what _best_swap finds, with weights: here a swap changes what both sums are divided by."""
    size, members, to_group, weight = split.size, split.members, split.to_group, split.weight
    mass, within, distance = split.mass, split.within, split.distance
    limit = within[g] / mass[g] + within[h] / mass[h] + bound
    for b in range(size[h]):
        y = members[h, b]
        change[b] = within[h] - weight[y] * to_group[h, y]
    best = -1
    for a in range(size[g]):
        x = members[g, a]
        v = weight[x]
        rest, comes = within[g] - v * to_group[g, x], v * to_group[h, x]
        for b in range(size[h]):
            y = members[h, b]
            w = weight[y]
            between = v * w * distance[x, y]
            mass_g, mass_h = mass[g] - v + w, mass[h] - w + v
            total = (rest + w * to_group[g, y] - between) * mass_h
            total += (change[b] + comes - between) * mass_g
            if total < limit * (mass_g * mass_h):
                limit, best = total / (mass_g * mass_h), a * size[h] + b
    return best


@lean_subkernel
def _with_penalty(tallies, size, g, h, x, y, total, bound, rules, lacking):
    """Add the penalty for violations to the cost of moving x from g to h, and y, if not −1, back.

    The sum is infinite unless it is below the bound and no violation is added.
    """
    short = violation_after(tallies, size, rules.k, g, x, y)
    if total + rules.penalty * short < bound and short <= lacking:
        short += violation_after(tallies, size, rules.k, h, y, x)
        if total + rules.penalty * short < bound and short <= lacking:
            return total + rules.penalty * short
    return np.inf


@inlined_subkernel
def _best_required_move(split, g, h, bound, rules):
    """Find what _best_move finds, with weights and requirements."""
    size, members, to_group, weight = split.size, split.members, split.to_group, split.weight
    mass, within, tallies = split.mass, split.within, split.tallies
    best, lacking = -1, violation(tallies, g, g + 1) + violation(tallies, h, h + 1)
    before = within[g] / mass[g] + within[h] / mass[h] + rules.penalty * lacking
    for a in range(size[g]):
        x = members[g, a]
        w = weight[x]
        total = (within[g] - to_group[g, x]) / (mass[g] - w) - before
        total += (within[h] + to_group[h, x]) / (mass[h] + w)
        if total < bound:
            total = _with_penalty(tallies, size, g, h, x, -1, total, bound, rules, lacking)
            if total < bound:
                bound, best = total, a
    return best


@inlined_subkernel
def _best_required_swap(split, change, g, h, bound, rules):
    """Find what _best_swap finds, with weights and requirements."""
    size, members, to_group, weight = split.size, split.members, split.to_group, split.weight
    distance, tallies = split.distance, split.tallies
    mass_g, within_g, part_g = split.mass[g], split.within[g], 1 / split.mass[g]
    mass_h, within_h, part_h = split.mass[h], split.within[h], 1 / split.mass[h]
    best, lacking = -1, violation(tallies, g, g + 1) + violation(tallies, h, h + 1)
    paid = rules.penalty * lacking
    both, before = part_g + part_h, within_g / mass_g + within_h / mass_h
    for b in range(size[h]):
        y = members[h, b]
        change[b] = to_group[g, y] * part_g - to_group[h, y] * part_h
    for a in range(size[g]):
        x = members[g, a]
        gain = to_group[h, x] * part_h - to_group[g, x] * part_g - paid
        for b in range(size[h]):
            y = members[h, b]
            total = gain + change[b] - both * distance[x, y]
            if weight[x] != weight[y]:  # then a swap changes what both sums are divided by
                more, apart = weight[y] - weight[x], distance[x, y]
                total = (within_g - to_group[g, x] + to_group[g, y] - apart) / (mass_g + more)
                total += (within_h + to_group[h, x] - to_group[h, y] - apart) / (mass_h - more)
                total -= before + paid
            if total < bound:
                total = _with_penalty(tallies, size, g, h, x, y, total, bound, rules, lacking)
                if total < bound:
                    bound, best = total, a * size[h] + b
    return best


@inlined_subkernel
def _swap(split, a, g, b, h, width, bounded):
    """Exchange the records at places a of g and b of h."""
    members, to_group, distance = split.members, split.to_group, split.distance
    x, y = members[g, a], members[h, b]
    if not bounded:
        # In two steps: seeds of searches under requirements have always led to groups so.
        leave(split, a, g, width, bounded)
        leave(split, b, h, width, bounded)
        join(split, y, g, width)
        join(split, x, h, width)
        return
    members[g, a], members[h, b] = y, x
    v, w = weight_of(split.weight, x), weight_of(split.weight, y)
    between = v * w * distance[x, y]
    split.within[g] += w * to_group[g, y] - v * to_group[g, x] - between
    split.within[h] += v * to_group[h, x] - w * to_group[h, y] - between
    for z in range(width):
        more = w * distance[y, z] - v * distance[x, z]
        to_group[g, z] += more
        to_group[h, z] -= more
    weigh(split.mass, split.weight, members, split.size, g)
    weigh(split.mass, split.weight, members, split.size, h)
    count(split.tallies, x, g, -1.0)
    count(split.tallies, y, h, -1.0)
    count(split.tallies, y, g, 1.0)
    count(split.tallies, x, h, 1.0)


@inlined_subkernel
def _least_gain(mass, split, m, q, rules):
    """Return the least gain of a change that is more than rounding."""
    largest = 0.0
    if mass is not None and not rules.bounded:
        largest = rules.penalty * violation(split.tallies, 0, q)
        for g in range(q):
            for x in range(m):
                largest = max(largest, split.to_group[g, x] / mass[g])
    return max(_NOISE * cost(split, q), _ROUNDING * largest, UNDERFLOW)


@inlined_subkernel
def _improve_two(split, change, g, h, width, bound, rules):
    """Make the best move from one group to the other, or else the best swap; return whether one gains."""
    size = split.size
    source, target, a = g, h, -1
    for _ in range(2):
        if a < 0 and size[source] > rules.k and size[target] < rules.largest:
            a = _best_move(split.weight, split, source, target, bound, rules)
        if a < 0:
            source, target = target, source
    if a >= 0:
        join(split, leave(split, a, source, width, rules.bounded), target, width)
    else:
        a = _best_swap(split.weight, split, change, g, h, bound, rules)
        if a < 0:
            return False
        _swap(split, a // size[h], g, a % size[h], h, width, rules.bounded)
    count_violation(split.tallies, size, rules.k, g)
    count_violation(split.tallies, size, rules.k, h)
    return True


@lean_subkernel
def descend(pool, m, q, rules):
    """Move and swap records of the pool until nothing gains any more.

    What gains is a lower SSE plus penalties for violations; where nothing is violated nothing ever is.
    """
    split, changed, seen, change = pool.split, pool.changed, pool.seen, pool.change
    bound = -_least_gain(split.mass, split, m, q, rules)
    for g in range(q):
        changed[g] = 1
        for h in range(g):
            seen[g, h] = 0
    clock, busy, last = 1, True, _CHANGES * m
    while busy and clock <= last:
        busy = False
        for g in range(q):
            for h in range(g):
                while seen[g, h] < max(changed[g], changed[h]) and clock <= last:
                    seen[g, h] = clock
                    if _improve_two(split, change, g, h, padded(m), bound, rules):
                        clock += 1
                        changed[g] = changed[h] = clock
                        busy = True
