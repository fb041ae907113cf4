"""Annealing of a partition, pool by pool.

A step takes a random record, pools its group with the few that have the nearest centroids (to this
record, or to several members of its group), and rebuilds them. The new groups are kept when their SSE
is lower, or, with a probability that falls with the temperature, when it is a little higher: so
the search leaves local optima.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.cells import put_back, rows_of
from microagg.algorithms.refine.pool import (
    cost,
    descend,
    draw,
    draw_exponential,
    measure,
    new_pool,
    rebuild,
)
from microagg.base.progress import STOP
from microagg.compile.jit import kernel, subkernel

CHECKED = False  # tests compile the kernels anew with True: every step is then checked
_AROUND = 0.3  # share of the steps whose pool is made around all members of a group, not around one


class Heat(NamedTuple):
    """Temperatures at the beginning and the end of a pass.

    Counted in the geometric mean of the mean SSE of a group in the table, ``unit``, and in the
    pool: records far apart and records close together are then both in motion.
    """

    hot: float
    cold: float
    unit: float


class _Groups(NamedTuple):
    """The groups of a table; the first ``count`` are in use."""

    members: Any  # (groups, 2k − 1)
    size: Any  # (groups,)
    sse: Any  # (groups,)
    centroid: Any  # (d, groups): distances to all of them are then loops over neighbours


@subkernel
def _centre(X, weights, groups, g):
    """Compute the centroid of a group anew."""
    size = groups.size[g]
    if weights is None:
        for j in range(X.shape[1]):
            total = 0.0
            for a in range(size):
                total += X[groups.members[g, a], j]
            groups.centroid[j, g] = total / size
    else:
        mass = 0.0
        for a in range(size):
            mass += weights[groups.members[g, a]]
        for j in range(X.shape[1]):
            total = 0.0
            for a in range(size):
                total += weights[groups.members[g, a]] * X[groups.members[g, a], j]
            groups.centroid[j, g] = total / mass


@subkernel
def _spread(X, weights, groups, g):
    """Compute the SSE of a group from its records and its centroid."""
    total = 0.0
    for a in range(groups.size[g]):
        for j in range(X.shape[1]):
            square = (X[groups.members[g, a], j] - groups.centroid[j, g]) ** 2
            if weights is None:
                total += square
            else:
                total += weights[groups.members[g, a]] * square
    return total


@subkernel
def _form(X, weights, labels, k):
    """Make the groups of the labels 0, 1, …; return them and their number."""
    n, d = X.shape
    slots = n // k
    groups = _Groups(
        np.empty((slots, 2 * k - 1), np.intp),
        np.zeros(slots, np.intp),
        np.empty(slots),
        np.empty((d, slots)),
    )
    count = 0
    for i in range(n):
        g = labels[i]
        groups.members[g, groups.size[g]] = i
        groups.size[g] += 1
        count = max(count, g + 1)
    for g in range(count):
        _centre(X, weights, groups, g)
        groups.sse[g] = _spread(X, weights, groups, g)
    return groups, count


@subkernel
def _measure_all(X, groups, count, row, distance):
    """Squared distances of a record to all centroids."""
    for g in range(count):
        distance[g] = 0.0
    for j in range(X.shape[1]):
        centroid, value = groups.centroid[j], X[row, j]
        for g in range(count):
            gap = centroid[g] - value
            distance[g] += gap * gap


@subkernel
def _neighbours(X, groups, count, row, own, p, chosen, distance):
    """Choose a record's own group and the p−1 others whose centroids are nearest to it."""
    _measure_all(X, groups, count, row, distance)
    distance[own] = -1.0
    have, farthest = 0, np.inf
    for g in range(count):
        if have < p or distance[g] < farthest:
            a = have if have < p else p - 1
            while a > 0 and distance[chosen[a - 1]] > distance[g]:
                chosen[a] = chosen[a - 1]
                a -= 1
            chosen[a] = g
            have = min(have + 1, p)
            farthest = distance[chosen[have - 1]]
    return have


@subkernel
def _around(X, groups, count, own, p, chosen, distance, random):
    """Choose a group and p−1 others, each the nearest to one of its members.

    A group whose members are far apart can so be dissolved, each joining those that are near to it.
    """
    chosen[0] = own
    have = min(p, count)
    for a in range(1, have):
        row = groups.members[own, int(draw(random) * groups.size[own])]
        _measure_all(X, groups, count, row, distance)
        for b in range(a):
            distance[chosen[b]] = np.inf
        nearest = 0
        for g in range(1, count):
            if distance[g] < distance[nearest]:
                nearest = g
        chosen[a] = nearest
    return have


@subkernel
def _gather(X, weights, groups, chosen, q, pool):
    """Put the records of the chosen groups into the pool; return their number and SSE."""
    m, sse = 0, 0.0
    for a in range(q):
        g = chosen[a]
        sse += groups.sse[g]
        for b in range(groups.size[g]):
            pool.rows[m] = groups.members[g, b]
            m += 1
    measure(X, weights, pool, m)
    return m, sse


@subkernel
def number_of_groups(q, m, k, random):
    """As many as before, or one more or less, within what m records allow."""
    u = draw(random)
    wanted = q - 1 if u < 0.2 else q + 1 if u < 0.5 else q
    return min(max(wanted, -(-m // (2 * k - 1))), m // k)


@subkernel
def _replace(X, weights, groups, count, chosen, q, pool, new_q):
    """Put the pool's groups in the place of the q chosen ones; return how many there are now."""
    if new_q > q:
        chosen[q] = count
        count += 1
    for a in range(new_q):
        g = chosen[a]
        groups.size[g] = pool.size[a]
        for b in range(pool.size[a]):
            groups.members[g, b] = pool.rows[pool.members[a, b]]
        _centre(X, weights, groups, g)
        if weights is None:
            groups.sse[g] = pool.within[a] / pool.size[a]
        else:  # from the records: among weights that differ much the pool's sums are rounded more
            groups.sse[g] = _spread(X, weights, groups, g)
    if new_q < q:  # the last group takes the place of the one that is gone
        gone, count = chosen[q - 1], count - 1
        groups.size[gone], groups.sse[gone] = groups.size[count], groups.sse[count]
        # Loops: assigning a row to a row takes seconds to compile.
        for a in range(groups.size[gone]):
            groups.members[gone, a] = groups.members[count, a]
        for j in range(X.shape[1]):
            groups.centroid[j, gone] = groups.centroid[j, count]
    return count


@subkernel
def _check(X, weights, groups, count, k):
    """Raise unless every record is in one group of k to 2k−1, and the books are right."""
    seen = np.zeros(len(X), np.intp)
    for g in range(count):
        if not k <= groups.size[g] <= 2 * k - 1:
            raise AssertionError("size of a group")
        for a in range(groups.size[g]):
            seen[groups.members[g, a]] += 1
        sse = _spread(X, weights, groups, g)
        if abs(sse - groups.sse[g]) > 1e-9 * (1 + sse):
            raise AssertionError("SSE of a group")
    for i in range(len(X)):
        if seen[i] != 1:
            raise AssertionError("record not in exactly one group")


@subkernel
def anneal(X, weights, labels, k, most, steps, heat, seed, state):
    """Improve the labels 0, 1, … of a table in place; return the number of groups and their SSE.

    The weights are None where all records weigh the same.

    Every group has k to 2k−1 records, before and after every step. A pool has 2 to ``most``
    groups; larger ones find better optima but take longer.
    """
    groups, count = _form(X, weights, labels, k)
    pool = new_pool(most * (2 * k - 1), most + 1, X.shape[1], weights)
    chosen, distance = np.empty(most + 1, np.intp), np.empty(groups.size.size)
    random = np.array([seed], np.uint64)
    for step in range(steps):
        if state[STOP] or count < 2:
            break
        own = int(draw(random) * count)
        row = groups.members[own, int(draw(random) * groups.size[own])]
        p = 2 + int(draw(random) * (most - 1))
        if draw(random) < _AROUND:
            q = _around(X, groups, count, own, p, chosen, distance, random)
        else:
            q = _neighbours(X, groups, count, row, own, p, chosen, distance)
        m, before = _gather(X, weights, groups, chosen, q, pool)
        new_q = number_of_groups(q, m, k, random)
        rebuild(pool, m, new_q, k, random)
        descend(pool, m, new_q, k)
        temperature = (heat.hot + (heat.cold - heat.hot) * step / steps) * np.sqrt(
            heat.unit * before / q
        )
        if cost(pool, new_q) < before + temperature * draw_exponential(random):
            count = _replace(X, weights, groups, count, chosen, q, pool, new_q)
        if CHECKED:
            _check(X, weights, groups, count, k)
    total = 0.0
    for g in range(count):
        total += groups.sse[g]
        for a in range(groups.size[g]):
            labels[groups.members[g, a]] = g
    return count, total


@subkernel
def weights_of(weights, rows):
    """Return the weights of some records, or None."""
    if weights is None:
        return None
    return weights[rows]


@kernel
def anneal_cells(
    X, weights, old, groups, first, begin, end, k, most, steps, heat, seeds, new, sse, state
):
    """Anneal the cells begin..end−1 of the old groups; write the new ones and the SSE of each cell.

    A cell has as many records as before, so that its rows have their place among the new ones; its
    groups begin at that place over k.
    """
    for cell in range(begin, end):
        mine = groups[first[cell] : first[cell + 1]]
        rows, labels = rows_of(old, mine)
        own = np.empty((rows.size, X.shape[1]))
        for a in range(rows.size):
            for j in range(X.shape[1]):
                own[a, j] = X[rows[a], j]
        turns = int(np.ceil(steps * mine.size))
        light = weights_of(weights, rows)
        count, sse[cell] = anneal(own, light, labels, k, most, turns, heat, seeds[cell], state)
        put_back(own, rows, labels, count, new.begins[cell], k, new)
