"""Annealing of large groups, a few neighbours at a time, without tables of their distances.

Problem   As for anneal.py, where groups are so large that the distances of all their records, k² of them
          for each group, are too many to compute in every step.
Idea      A step takes a group and the few with the nearest centroids, forms them anew around random
          records, and parts each two of them along the line between their centroids (pairs.py) until nothing
          gains. That is a local optimum of k-means with bounds on the sizes, as moves and swaps
          would reach it, in O(k·d) for each two groups. It is kept when the SSE is lower or, with a
          probability that falls with the temperature, a little higher.
Cost      O(p²·k·d) for a step of p groups. A heuristic.
Paper     None: our own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.anneal import number_of_groups, temperature_at, weights_of
from microagg.algorithms.refine.pairs import centres, part
from microagg.algorithms.refine.patches import put_back, rows_of, take_rows
from microagg.algorithms.refine.pool import weight_of
from microagg.base.progress import STOP
from microagg.compile.jit import kernel, lean_subkernel, subkernel
from microagg.kernels.halve import select
from microagg.kernels.random_numbers import draw, draw_exponential

_ROUNDS = 8  # over all pairs of a pool, at most
_NOISE = 1e-9  # gains below this share may be rounding


class _LargeGroups(NamedTuple):
    """Groups; the first few are in use."""

    members: Any  # (groups, 2k − 1)
    size: Any  # (groups,)
    sse: Any  # (groups,)
    centroid: Any  # (groups, d)


class _PoolScratch(NamedTuple):
    rows: Any  # (records of a pool,)
    keys: Any  # (records of a pool,)
    ends: Any  # (2, d)
    changed: Any  # (groups of a pool,) last round that changed it


@subkernel
def _new_groups(slots, k, d):
    return _LargeGroups(
        np.empty((slots, 2 * k - 1), np.intp),
        np.zeros(slots, np.intp),
        np.empty(slots),
        np.empty((slots, d)),
    )


@lean_subkernel
def _centre(X, weights, groups, g):
    """Compute the centroid and the SSE of a group from its records."""
    d, mass = X.shape[1], 0.0
    for j in range(d):
        groups.centroid[g, j] = 0.0
    for a in range(groups.size[g]):
        row = groups.members[g, a]
        w = weight_of(weights, row)
        mass += w
        for j in range(d):
            groups.centroid[g, j] += w * X[row, j]
    for j in range(d):
        groups.centroid[g, j] /= mass
    groups.sse[g] = 0.0
    for a in range(groups.size[g]):
        row = groups.members[g, a]
        groups.sse[g] += weight_of(weights, row) * _square(X, row, groups.centroid[g])


@lean_subkernel
def _square(X, row, centre):
    total = 0.0
    for j in range(X.shape[1]):
        total += (X[row, j] - centre[j]) ** 2
    return total


@lean_subkernel
def _neighbours(X, groups, count, row, own, p, chosen, distance):
    """Choose a record's own group and the p−1 others whose centroids are nearest to it."""
    have = 0
    for g in range(count):
        distance[g] = -1.0 if g == own else _square(X, row, groups.centroid[g])
        if have < p or distance[g] < distance[chosen[have - 1]]:
            a = have if have < p else p - 1
            while a > 0 and distance[chosen[a - 1]] > distance[g]:
                chosen[a] = chosen[a - 1]
                a -= 1
            chosen[a] = g
            have = min(have + 1, p)
    return have


@lean_subkernel
def _nearest_first(X, rows, begin, m, k, centre, keys):
    """Bring the k rows nearest to a point to the beginning of rows[begin:m]."""
    for a in range(begin, m):
        keys[a] = _square(X, rows[a], centre)
    if m - begin > k:
        select(keys, rows, begin, m, begin + k)


@lean_subkernel
def _rebuild(X, weights, pool, q, m, k, scratch, random):
    """Form q groups of the pool's rows anew, each of the k nearest to a random record and its like."""
    rows, begin = scratch.rows, 0
    for g in range(q):
        seed = rows[begin + int(draw(random) * (m - begin))]
        _nearest_first(X, rows, begin, m, k, X[seed], scratch.keys)
        for again in range(2):
            pool.size[g] = k
            for a in range(k):
                pool.members[g, a] = rows[begin + a]
            _centre(X, weights, pool, g)
            if again == 0:
                _nearest_first(X, rows, begin, m, k, pool.centroid[g], scratch.keys)
        begin += k
    for a in range(begin, m):  # what is left over goes to the nearest that has room
        best, least = 0, np.inf
        for g in range(q):
            square = _square(X, rows[a], pool.centroid[g])
            if pool.size[g] < 2 * k - 1 and square < least:
                best, least = g, square
        pool.members[best, pool.size[best]] = rows[a]
        pool.size[best] += 1


@lean_subkernel
def _part_two(X, weights, pool, g, h, k, scratch):
    """Part two groups of a pool anew; return whether that gains."""
    rows, ends = scratch.rows, scratch.ends
    m = pool.size[g] + pool.size[h]
    for a in range(pool.size[g]):
        rows[a] = pool.members[g, a]
    for a in range(pool.size[h]):
        rows[pool.size[g] + a] = pool.members[h, a]
    before = centres(X, weights, rows, pool.size[g], m, ends)
    after, cut = part(X, weights, rows, m, k, ends, scratch.keys)
    if after <= before * (1 + _NOISE):
        return False
    pool.size[g], pool.size[h] = cut, m - cut
    for a in range(cut):
        pool.members[g, a] = rows[a]
    for a in range(cut, m):
        pool.members[h, a - cut] = rows[a]
    return True


@lean_subkernel
def _descend(X, weights, pool, q, k, scratch):
    """Part the groups of a pool two by two until nothing gains; return their SSE."""
    changed = scratch.changed
    for g in range(q):
        changed[g] = 0
    for turn in range(1, _ROUNDS + 1):
        busy = False
        for g in range(q):
            for h in range(g):
                if max(changed[g], changed[h]) >= turn - 1 and _part_two(
                    X, weights, pool, g, h, k, scratch
                ):
                    changed[g] = changed[h] = turn
                    busy = True
        if not busy:
            break
    total = 0.0
    for g in range(q):
        _centre(X, weights, pool, g)
        total += pool.sse[g]
    return total


@lean_subkernel
def _copy(source, s, target, t):
    """Put a group in the place of another."""
    target.size[t], target.sse[t] = source.size[s], source.sse[s]
    for a in range(source.size[s]):
        target.members[t, a] = source.members[s, a]
    for j in range(source.centroid.shape[1]):
        target.centroid[t, j] = source.centroid[s, j]


@subkernel
def anneal_large(X, weights, labels, k, most, steps, heat, seed, state):
    """Improve the labels 0, 1, … of a table in place; return the number of groups and their SSE.

    Parameters as for :func:`microagg.algorithms.refine.anneal.anneal`.
    """
    n, d = X.shape
    groups, pool = _new_groups(n // k, k, d), _new_groups(most + 1, k, d)
    count = 0
    for i in range(n):
        g = labels[i]
        groups.members[g, groups.size[g]] = i
        groups.size[g] += 1
        count = max(count, g + 1)
    for g in range(count):
        _centre(X, weights, groups, g)
    room = most * (2 * k - 1)
    scratch = _PoolScratch(
        np.empty(room, np.intp), np.empty(room), np.empty((2, d)), np.empty(most + 1, np.intp)
    )
    chosen, distance = np.empty(most + 1, np.intp), np.empty(n // k)
    random = np.array([seed], np.uint64)
    for step in range(steps):
        if state[STOP] or count < 2:
            break
        home = int(draw(random) * count)
        row = groups.members[home, int(draw(random) * groups.size[home])]
        p = 2 + int(draw(random) * (most - 1))
        q = _neighbours(X, groups, count, row, home, p, chosen, distance)
        m, before = 0, 0.0
        for a in range(q):
            before += groups.sse[chosen[a]]
            for b in range(groups.size[chosen[a]]):
                scratch.rows[m] = groups.members[chosen[a], b]
                m += 1
        new_q = number_of_groups(q, m, k, True, random)
        _rebuild(X, weights, pool, new_q, m, k, scratch, random)
        after = _descend(X, weights, pool, new_q, k, scratch)
        temperature = temperature_at(heat, step, steps, before, q)
        if after < before + temperature * draw_exponential(random):
            if new_q > q:
                chosen[q] = count
                count += 1
            for a in range(new_q):
                _copy(pool, a, groups, chosen[a])
            if new_q < q:  # the last group takes the place of the one that is gone
                count -= 1
                if chosen[q - 1] != count:
                    _copy(groups, count, groups, chosen[q - 1])
    total = 0.0
    for g in range(count):
        total += groups.sse[g]
        for a in range(groups.size[g]):
            labels[groups.members[g, a]] = g
    return count, total


@kernel
def anneal_large_patches(X, weights, patches, begin, end, k, most, steps, heat, state):
    """Do what :func:`microagg.algorithms.refine.anneal.anneal_patches` does, for large groups."""
    for patch in range(begin, end):
        rows, labels, n_groups = rows_of(patches, patch)
        records, turns = take_rows(X, rows), int(np.ceil(steps * n_groups))
        heavy, seed = weights_of(weights, rows), patches.seeds[patch]
        count, patches.loss[patch] = anneal_large(
            records, heavy, labels, k, most, turns, heat, seed, state
        )
        put_back(records, rows, labels, count, k, patches, patch)
