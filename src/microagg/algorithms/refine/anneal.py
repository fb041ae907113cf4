"""Annealing of a partition, pool by pool.

A step takes a random record, pools its group with the few that have the nearest centroids (to this
record, or to several members of its group), and rebuilds them. The new groups are kept when their SSE
is lower, or, with a probability that falls with the temperature, when it is a little higher: so
the search leaves local optima.

Groups have k to 2k − 1 records, or, under requirements, any size from k on. New groups are kept only if
they violate nothing. Groups that are too large for a pool stay as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.descend import descend
from microagg.algorithms.refine.patches import put_back, rows_of, take_rows
from microagg.algorithms.refine.pool import (
    PENALTY,
    UNDERFLOW,
    Rules,
    adopt,
    cost,
    measure,
    new_pool,
    rebuild,
    sse_of,
    weight_of,
)
from microagg.algorithms.refine.tallies import violation
from microagg.base.progress import STOP
from microagg.compile.jit import kernel, lean_subkernel, subkernel
from microagg.kernels.random_numbers import draw, draw_exponential
from microagg.kernels.require_kinds import Demands

_AROUND = 0.3  # share of the steps whose pool is made around all members of a group, not around one


class Heat(NamedTuple):
    """Temperatures at the beginning and the end of a pass.

    Counted in the geometric mean of the mean SSE of a group in the table, ``unit``, and in the
    pool: records far apart and records close together are then both in motion.
    """

    hot: float
    cold: float
    unit: float


class PoolSettings(NamedTuple):
    """Limits on pools, and on the groups that may come out of them."""

    groups: int  # in a pool at most; larger pools find better optima but take longer
    records: int  # in a pool at most
    bounded: bool  # whether groups have 2k − 1 records at most, and the SSE is all that counts
    adopting: float  # share of the steps that improve groups without taking them apart


class _LinkedGroups(NamedTuple):
    """The groups of a table as lists linked through their records; the first ``count`` are in use."""

    head: Any  # (groups,) first record
    after: Any  # (n,) the next record of the same group, −1 at the end
    label: Any  # (n,)
    size: Any  # (groups,)
    sse: Any  # (groups,)
    centroid: Any  # (d, groups): distances to all of them are then loops over neighbours


@lean_subkernel
def _centre(X, weights, groups, g):
    """Compute the centroid of a group anew."""
    mass = 0.0
    for j in range(X.shape[1]):
        groups.centroid[j, g] = 0.0
    x = groups.head[g]
    while x >= 0:
        w = weight_of(weights, x)
        mass += w
        for j in range(X.shape[1]):
            groups.centroid[j, g] += w * X[x, j]
        x = groups.after[x]
    for j in range(X.shape[1]):
        groups.centroid[j, g] /= mass


@lean_subkernel
def _spread(X, weights, groups, g):
    """Compute the SSE of a group from its records and its centroid."""
    total, x = 0.0, groups.head[g]
    while x >= 0:
        w = weight_of(weights, x)
        for j in range(X.shape[1]):
            total += w * (X[x, j] - groups.centroid[j, g]) ** 2
        x = groups.after[x]
    return total


@subkernel
def _form(X, weights, labels, k):
    """Make the groups of the labels 0, 1, …; return them and their number."""
    n, d = X.shape
    slots = n // k
    groups = _LinkedGroups(
        np.full(slots, -1, np.intp),
        np.empty(n, np.intp),
        np.empty(n, np.intp),
        np.zeros(slots, np.intp),
        np.empty(slots),
        np.empty((d, slots)),
    )
    count = 0
    for i in range(n - 1, -1, -1):  # so that a list is in the order of rows
        _put_first(groups, i, labels[i])
        groups.size[labels[i]] += 1
        count = max(count, labels[i] + 1)
    for g in range(count):
        _centre(X, weights, groups, g)
        groups.sse[g] = _spread(X, weights, groups, g)
    return groups, count


@lean_subkernel
def _put_first(groups, x, g):
    """Put a record at the head of a group's list."""
    groups.after[x], groups.head[g], groups.label[x] = groups.head[g], x, g


@lean_subkernel
def _walk(groups, x, steps):
    """Return the record some steps after x in its group's list, which goes round in a circle."""
    g = groups.label[x]
    for _ in range(steps):
        x = groups.after[x]
        if x < 0:
            x = groups.head[g]
    return x


@lean_subkernel
def _choose(X, groups, count, row, p, around, search, chosen, distance, random):
    """Choose a record's group and up to p−1 others near to it, as far as there is room; how many.

    Near to this record, or each to one of the members of its group: a group whose members are far
    apart can so be dissolved.
    """
    home = groups.label[row]
    chosen[0], room = home, search.records - groups.size[home]
    for have in range(1, min(p, count)):
        if around:
            start = groups.head[home] if search.bounded else row
            row = _walk(groups, start, int(draw(random) * groups.size[home]))
        if around or have == 1:
            for g in range(count):
                distance[g] = 0.0
            for j in range(X.shape[1]):
                centroid, value = groups.centroid[j], X[row, j]
                for g in range(count):
                    gap = centroid[g] - value
                    distance[g] += gap * gap
        for b in range(have):
            distance[chosen[b]] = np.inf
        nearest = 0
        for g in range(1, count):
            if distance[g] < distance[nearest]:
                nearest = g
        if groups.size[nearest] > room:
            return have
        chosen[have], room = nearest, room - groups.size[nearest]
    return min(p, count)


@lean_subkernel
def _gather(groups, chosen, q, rows):
    """List the records of the chosen groups; return their number and SSE."""
    m, sse = 0, 0.0
    for a in range(q):
        sse += groups.sse[chosen[a]]
        x = groups.head[chosen[a]]
        while x >= 0:
            rows[m] = x
            m += 1
            x = groups.after[x]
    return m, sse


@lean_subkernel
def number_of_groups(q, m, k, bounded, random):
    """Draw how many groups to form: as many as before, or one more or less, as m records allow."""
    u = draw(random)
    wanted = q - 1 if u < 0.2 else q + 1 if u < 0.5 else q
    return min(max(wanted, -(-m // (2 * k - 1)) if bounded else 1), m // k)


@lean_subkernel
def _replace(X, weights, groups, count, chosen, q, pool, new_q, bounded):
    """Put the pool's groups in the place of the q chosen ones; return how many there are now."""
    split = pool.split
    for a in range(q, new_q):
        chosen[a] = count
        count += 1
    for a in range(new_q):
        g, size = chosen[a], split.size[a]
        groups.size[g], groups.head[g] = size, -1
        for b in range(size):
            # Lists are in the pool's order, under requirements backwards: seeds depend on it.
            _put_first(groups, pool.rows[split.members[a, size - 1 - b if bounded else b]], g)
        _centre(X, weights, groups, g)
        if weights is None or not bounded:
            groups.sse[g] = sse_of(split, a)
        else:  # from the records: among weights that differ much the pool's sums are rounded more
            groups.sse[g] = _spread(X, weights, groups, g)
    for _ in range(new_q, q):  # the highest number first, so that the last group is none of them
        highest = new_q
        for a in range(new_q, q):
            if chosen[a] > chosen[highest]:
                highest = a
        count -= 1
        gone, chosen[highest] = chosen[highest], -1
        if gone == count:
            continue
        # The last group takes the place of the one that is gone.
        groups.size[gone], groups.sse[gone] = groups.size[count], groups.sse[count]
        groups.head[gone] = groups.head[count]
        x = groups.head[gone]
        while x >= 0:
            groups.label[x] = gone
            x = groups.after[x]
        for j in range(X.shape[1]):
            groups.centroid[j, gone] = groups.centroid[j, count]
    return count


@lean_subkernel
def temperature_at(heat, step, steps, before, q):
    """Return the temperature of a step for a pool of q groups that had this SSE before."""
    return (heat.hot + (heat.cold - heat.hot) * step / steps) * np.sqrt(heat.unit * before / q)


@subkernel
def anneal(X, weights, demands, labels, k, search, steps, heat, seed, state):
    """Improve the labels 0, 1, … of a table in place; return the number of groups and their SSE.

    The weights are None if all records weigh the same, the demands if there are none. Every group has an
    allowed size and satisfies the demands, before and after every step.
    """
    groups, count = _form(X, weights, labels, k)
    pool = new_pool(search.records, search.groups + 1, X.shape[1], weights, demands)
    chosen, distance = np.empty(search.groups + 1, np.intp), np.empty(groups.size.size)
    random, split, bounded = np.array([seed], np.uint64), pool.split, search.bounded
    for step in range(steps):
        if state[STOP] or (bounded and count < 2):
            break
        if bounded:  # a record of a random group; where sizes differ a lot, any
            g = int(draw(random) * count)
            row = _walk(groups, groups.head[g], int(draw(random) * groups.size[g]))
        else:
            row = int(draw(random) * groups.label.size)
        p = 2 + int(draw(random) * (search.groups - 1))
        around = draw(random) < _AROUND
        if groups.size[groups.label[row]] > search.records:
            continue
        q = _choose(X, groups, count, row, p, around, search, chosen, distance, random)
        m, before = _gather(groups, chosen, q, pool.rows)
        measure(X, weights, demands, pool, m, bounded)
        largest = 2 * k - 1 if bounded else 2**62
        rules, new_q = Rules(k, largest, bounded, max(PENALTY * before, UNDERFLOW)), q
        if demands is not None and search.adopting > 0 and draw(random) < search.adopting:
            adopt(split, m, k, groups.size, chosen, q)
        else:
            new_q = number_of_groups(q, m, k, bounded, random)
            new_q = rebuild(pool, m, new_q, rules, random)
        descend(pool, m, new_q, rules)
        allowed = before + temperature_at(heat, step, steps, before, q) * draw_exponential(random)
        if violation(split.tallies, 0, new_q) == 0 and cost(split, new_q) < allowed:
            count = _replace(X, weights, groups, count, chosen, q, pool, new_q, bounded)
    total = 0.0
    for g in range(count):
        total += groups.sse[g]
    labels[:] = groups.label
    return count, total


@subkernel
def weights_of(weights, rows):
    """Return the weights of some records, or None."""
    if weights is None:
        return None
    return weights[rows]


@subkernel
def demands_on(demands, rows):
    """Return the demands on some records, or None."""
    if demands is None:
        return None
    codes = np.empty((len(demands.rule), rows.size), np.intp)
    amounts = np.empty((len(demands.rule), rows.size))
    for r in range(len(demands.rule)):
        for a in range(rows.size):
            codes[r, a], amounts[r, a] = demands.codes[r, rows[a]], demands.amounts[r, rows[a]]
    # Copies throughout: threads that share an array wait for each other to count its users.
    return Demands(demands.rule.copy(), demands.table.copy(), codes, amounts)


@kernel
def anneal_patches(X, weights, demands, patches, begin, end, k, search, steps, heat, state):
    """Anneal some patches; write the new groups and their SSE.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous
    weights : (n,) above 0, or None
    demands : requirements in addition to k, of the n records; None: there are none
    patches : of a pass; their ``new`` groups and ``loss`` are written to
    begin, end : the patches begin..end−1
    k : least size of a group
    search : limits on pools and groups
    steps : for each group
    heat : temperatures of the pass
    state : the wish to stop
    """
    for patch in range(begin, end):
        rows, labels, n_groups = rows_of(patches, patch)
        records, turns = take_rows(X, rows), int(np.ceil(steps * n_groups))
        heavy, asked = weights_of(weights, rows), demands_on(demands, rows)
        seed = patches.seeds[patch]
        count, patches.loss[patch] = anneal(
            records, heavy, asked, labels, k, search, turns, heat, seed, state
        )
        put_back(records, rows, labels, count, k, patches, patch)
