"""Annealing of a partition under requirements, pool by pool.

As in algorithms/refine/anneal.py, with two differences: groups may have any size from k on, so that they are
lists linked through their records; and a pool's new groups are kept only if they violate nothing. Groups
too large for a pool stay as they are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.cells import put_back, rows_of
from microagg.algorithms.refine.pool import draw, draw_exponential
from microagg.algorithms.required.pool import (
    MASS,
    WITHIN,
    adopt,
    cost,
    dear_for,
    descend,
    measure,
    new_pool,
    rebuild,
    violation,
)
from microagg.base.progress import STOP
from microagg.compile.jit import kernel, subkernel
from microagg.kernels.require_kinds import Demands

CHECKED = False  # tests compile the kernels anew with True: every step is then checked
_AROUND = 0.3  # share of the steps whose pool is made around all members of a group, not around one


class _Groups(NamedTuple):
    """The groups of a table; the first ``count`` are in use."""

    head: Any  # (groups,) first record
    after: Any  # (n,) the next record of the same group, −1 at the end
    label: Any  # (n,)
    size: Any  # (groups,)
    sse: Any  # (groups,)
    centroid: Any  # (d, groups): distances to all of them are then loops over neighbours


@subkernel
def _centre(X, weights, groups, g):
    """Compute the centroid of a group anew."""
    mass = 0.0
    for j in range(X.shape[1]):
        groups.centroid[j, g] = 0.0
    x = groups.head[g]
    while x >= 0:
        mass += weights[x]
        for j in range(X.shape[1]):
            groups.centroid[j, g] += weights[x] * X[x, j]
        x = groups.after[x]
    for j in range(X.shape[1]):
        groups.centroid[j, g] /= mass


@subkernel
def _spread(X, weights, groups, g):
    """Compute the SSE of a group from its records and its centroid."""
    total, x = 0.0, groups.head[g]
    while x >= 0:
        for j in range(X.shape[1]):
            total += weights[x] * (X[x, j] - groups.centroid[j, g]) ** 2
        x = groups.after[x]
    return total


@subkernel
def _form(X, weights, labels, k):
    """Make the groups of the labels 0, 1, …; return them and their number."""
    n, d = X.shape
    slots = n // k
    groups = _Groups(
        np.full(slots, -1, np.intp),
        np.empty(n, np.intp),
        np.empty(n, np.intp),
        np.zeros(slots, np.intp),
        np.empty(slots),
        np.empty((d, slots)),
    )
    count = 0
    for i in range(n - 1, -1, -1):  # so that a list is in order of rows
        g = labels[i]
        groups.after[i], groups.head[g], groups.label[i] = groups.head[g], i, g
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
def _choose(X, groups, count, row, p, room, chosen, distance, around, random):
    """Choose a record's group and up to p−1 others near to it, as far as there is room; how many.

    Near to this record, or each to one of the members of its group: a group whose members are far
    apart can so be dissolved.
    """
    chosen[0] = groups.label[row]
    have, room = 1, room - groups.size[chosen[0]]
    start = row
    _measure_all(X, groups, count, row, distance)
    for _ in range(1, min(p, count)):
        if around:
            for _ in range(int(draw(random) * groups.size[chosen[0]])):
                start = groups.after[start]
                if start < 0:
                    start = groups.head[chosen[0]]
            _measure_all(X, groups, count, start, distance)
        for b in range(have):
            distance[chosen[b]] = np.inf
        nearest = 0
        for g in range(1, count):
            if distance[g] < distance[nearest]:
                nearest = g
        if groups.size[nearest] > room:
            break
        chosen[have] = nearest
        have, room = have + 1, room - groups.size[nearest]
    return have


@subkernel
def _gather(groups, chosen, q, pool, owner):
    """Put the records of the chosen groups into the pool; return their number and SSE."""
    m, sse = 0, 0.0
    for a in range(q):
        sse += groups.sse[chosen[a]]
        x = groups.head[chosen[a]]
        while x >= 0:
            pool.rows[m], owner[m] = x, a
            m += 1
            x = groups.after[x]
    return m, sse


@subkernel
def _number_of_groups(q, m, k, random):
    """As many as before, or one more or less, within what m records allow."""
    u = draw(random)
    wanted = q - 1 if u < 0.2 else q + 1 if u < 0.5 else q
    return min(max(wanted, 1), m // k)


@subkernel
def _drop(groups, gone, count, d):
    """Let the last group take the place of one that is gone."""
    last = count - 1
    if gone == last:
        return
    groups.size[gone], groups.sse[gone] = groups.size[last], groups.sse[last]
    groups.head[gone] = groups.head[last]
    x = groups.head[gone]
    while x >= 0:
        groups.label[x] = gone
        x = groups.after[x]
    for j in range(d):
        groups.centroid[j, gone] = groups.centroid[j, last]


@subkernel
def _replace(X, weights, groups, count, chosen, q, pool, new_q):
    """Put the pool's groups in the place of the q chosen ones; return how many there are now."""
    for a in range(q, new_q):
        chosen[a] = count
        count += 1
    for a in range(new_q):
        g = chosen[a]
        groups.size[g], groups.head[g] = pool.size[a], -1
        for b in range(pool.size[a]):
            x = pool.rows[pool.members[a, b]]
            groups.after[x], groups.head[g], groups.label[x] = groups.head[g], x, g
        groups.sse[g] = pool.books[a, WITHIN] / pool.books[a, MASS]
        _centre(X, weights, groups, g)
    for _ in range(new_q, q):  # the highest number first, so that the last group is none of them
        highest = new_q
        for a in range(new_q, q):
            if chosen[a] > chosen[highest]:
                highest = a
        _drop(groups, chosen[highest], count, X.shape[1])
        count, chosen[highest] = count - 1, -1
    return count


@subkernel
def _check(X, weights, groups, count, k):
    """Raise unless every record is in one group of k or more, and the books are right."""
    seen = np.zeros(len(X), np.intp)
    for g in range(count):
        x, size = groups.head[g], 0
        while x >= 0:
            if groups.label[x] != g:
                raise AssertionError("label of a record")
            seen[x] += 1
            size += 1
            x = groups.after[x]
        if size != groups.size[g] or size < k:
            raise AssertionError("size of a group")
        sse = _spread(X, weights, groups, g)
        if abs(sse - groups.sse[g]) > 1e-9 * (1 + sse):
            raise AssertionError("SSE of a group")
    for i in range(len(X)):
        if seen[i] != 1:
            raise AssertionError("record not in exactly one group")


@subkernel
def anneal(X, weights, demands, labels, k, search, steps, heat, seed, state):
    """Improve the labels 0, 1, … of a table in place; return the number of groups and their SSE.

    Every group satisfies the demands, before and after every step. A pool has 2 to ``search.most`` groups
    and at most ``search.room`` records.
    """
    groups, count = _form(X, weights, labels, k)
    most, room = search.most, search.room
    pool = new_pool(room, most + 1, len(demands.rule), X.shape[1])
    chosen, distance = np.empty(most + 1, np.intp), np.empty(groups.size.size)
    owner, random = np.empty(room, np.intp), np.array([seed], np.uint64)
    for step in range(steps):
        if state[STOP] or count < 1:
            break
        row = int(draw(random) * len(X))
        p, around = 2 + int(draw(random) * (most - 1)), draw(random) < _AROUND
        if groups.size[groups.label[row]] > room:
            continue
        q = _choose(X, groups, count, row, p, room, chosen, distance, around, random)
        m, before = _gather(groups, chosen, q, pool, owner)
        measure(X, weights, demands, pool, m)
        dear = dear_for(before)
        if draw(random) < search.as_they_are:
            adopt(demands, pool, m, q, k, owner)
            new_q = q
        else:
            new_q = rebuild(demands, pool, m, _number_of_groups(q, m, k, random), k, dear, random)
        descend(demands, pool, m, new_q, k, dear)
        temperature = (heat.hot + (heat.cold - heat.hot) * step / steps) * np.sqrt(
            heat.unit * before / q
        )
        allowed = before + temperature * draw_exponential(random)
        if violation(pool, new_q) == 0 and cost(pool, new_q) < allowed:
            count = _replace(X, weights, groups, count, chosen, q, pool, new_q)
        if CHECKED:
            _check(X, weights, groups, count, k)
    total = 0.0
    for g in range(count):
        total += groups.sse[g]
    for i in range(len(X)):
        labels[i] = groups.label[i]
    return count, total


class Search(NamedTuple):
    """How pools are made."""

    most: int  # groups
    room: int  # records
    as_they_are: float  # share of the steps that improve groups without taking them apart


@subkernel
def _of_rows(demands, rows):
    """The demands on some rows."""
    codes = np.empty((len(demands.rule), rows.size), np.intp)
    amounts = np.empty((len(demands.rule), rows.size))
    for r in range(len(demands.rule)):
        for a in range(rows.size):
            codes[r, a], amounts[r, a] = demands.codes[r, rows[a]], demands.amounts[r, rows[a]]
    # Copies throughout: threads that share an array wait for each other to count its users.
    return Demands(demands.rule.copy(), demands.table.copy(), codes, amounts)


@kernel
def anneal_cells(
    X,
    weights,
    demands,
    old,
    groups,
    first,
    begin,
    end,
    k,
    search,
    steps,
    heat,
    seeds,
    new,
    sse,
    state,
):
    """Anneal the cells begin..end−1 of the old groups; write the new ones and the SSE of each cell.

    A cell has as many records as before, so that its rows have their place among the new ones; its
    groups begin at that place over k.
    """
    for cell in range(begin, end):
        mine = groups[first[cell] : first[cell + 1]]
        rows, labels = rows_of(old, mine)
        own, mass = np.empty((rows.size, X.shape[1])), np.empty(rows.size)
        for a in range(rows.size):
            mass[a] = weights[rows[a]]
            for j in range(X.shape[1]):
                own[a, j] = X[rows[a], j]
        turns = int(np.ceil(steps * mine.size))
        count, sse[cell] = anneal(
            own,
            mass,
            _of_rows(demands, rows),
            labels,
            k,
            search,
            turns,
            heat,
            seeds[cell],
            state,
        )
        put_back(own, rows, labels, count, new.begins[cell], k, new)
