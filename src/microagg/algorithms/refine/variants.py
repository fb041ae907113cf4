"""Groups that differ from given ones by one record: the candidates of a recombination.

The SSE of a group of s records is the sum of the squared distances over its pairs, divided by s; so
what a group costs with a record added, dropped or exchanged follows from a few sums. With weights a pair
counts by the product of its weights, and the sum is divided by the weight of the group; the ``weight`` is
None where all records weigh the same. A group's key
is the sum of its records' random words, so that equal groups have equal keys.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.pool import weight_of
from microagg.base.typing import Members
from microagg.compile.jit import kernel
from microagg.compile.no_refcount import lean_kernel, lean_subkernel


class CandidateGroups(NamedTuple):
    """Candidate groups, one a row."""

    members: Any  # (columns, 2k − 1) int32, filled up with −1
    size: Any  # (columns,) int32
    sse: Any  # (columns,)
    key: Any  # (columns,) uint64


def as_columns(members: Members) -> CandidateGroups:
    """Make columns of groups; SSE and key are still to be measured."""
    count = len(members)
    size = np.count_nonzero(members >= 0, axis=1).astype(np.int32)
    return CandidateGroups(members, size, np.empty(count), np.empty(count, np.uint64))


def new_columns(count: int, k: int) -> CandidateGroups:
    """Allocate ``count`` columns."""
    return as_columns(np.full((count, 2 * k - 1), -1, np.int32))


@lean_kernel
def measure_columns(distance, weight, word, columns):
    """Compute SSE and key of the groups from their members."""
    for c in range(columns.size.size):
        total, key = 0.0, np.uint64(0)
        for a in range(columns.size[c]):
            x = columns.members[c, a]
            key += word[x]
            for b in range(a):
                y = columns.members[c, b]
                total += weight_of(weight, x) * (weight_of(weight, y) * distance[x, y])
        columns.sse[c] = total / _mass_of(columns.members[c], columns.size[c], weight)
        columns.key[c] = key


@lean_subkernel
def _mass_of(members, size, weight):
    """Return the weight of a group, by which the sum over its pairs is divided."""
    mass = 0.0
    for a in range(size):
        mass += weight_of(weight, members[a])
    return mass


@lean_subkernel
def _exchanged(within, mass, x, to_x, y, to_y, between, weight):
    """Return the SSE of a group with y in the place of its member x, ``between`` away (squared)."""
    if weight is None:
        return (within - to_x + to_y - between) / mass
    v, w = weight[x], weight[y]
    return (within - v * to_x + w * (to_y - v * between)) / (mass - v + w)


@kernel
def reduced_costs(columns, price):
    """Return the SSE of each group less what its records pay."""
    reduced = np.empty(columns.size.size)
    for c in range(columns.size.size):
        paid = 0.0
        for a in range(columns.size[c]):
            paid += price[columns.members[c, a]]
        reduced[c] = columns.sse[c] - paid
    return reduced


class Around(NamedTuple):
    """A group and the records near to it; of ``others`` and ``to_group`` the first are in use."""

    others: Any  # (records,)
    to_group: Any  # (records,) sum of the squared distances to the members, each by its weight
    own: Any  # (2k − 1,) the same of the members themselves
    mark: Any  # (records,) the last group that met the record


@lean_subkernel
def _look_around(distance, weight, near, columns, c, around):
    """Collect the records near to a group, and all sums of distances; return their number."""
    size, members, m = columns.size[c], columns.members[c], 0
    for a in range(size):
        around.mark[members[a]] = c
    for a in range(size):
        x = members[a]
        around.own[a] = 0.0
        for b in range(size):
            around.own[a] += weight_of(weight, members[b]) * distance[x, members[b]]
        for t in range(near.shape[1]):
            y = near[x, t]
            if around.mark[y] != c:
                around.mark[y] = c
                around.others[m], around.to_group[m] = y, 0.0
                for b in range(size):
                    w = weight_of(weight, members[b])
                    around.to_group[m] += w * distance[y, members[b]]
                m += 1
    return m


@lean_subkernel
def _note(found, count, columns, c, without, extra, sse, key):
    """Note the group less the member at ``without``, plus ``extra``; −1 stands for none."""
    m = 0
    for a in range(columns.size[c]):
        if a != without:
            found.members[count, m] = columns.members[c, a]
            m += 1
    if extra >= 0:
        found.members[count, m] = extra
        m += 1
    found.members[count, m:] = -1
    found.size[count], found.sse[count], found.key[count] = m, sse, key
    return count + 1


@kernel
def variants(distance, weight, near, word, price, columns, chosen, k, below, slope, found):
    """Fill ``found`` with groups one record away from the chosen ones; return their number.

    Noted are groups whose SSE less the prices of their records is under ``below`` plus ``slope``
    times those prices; without a slope, for each member only the best exchange. Other records
    come from the lists of those ``near`` to the members. Ends early when there is no room left
    for the next group's variants.
    """
    n = distance.shape[0]
    around = Around(np.empty(n, np.intp), np.empty(n), np.empty(2 * k - 1), np.full(n, -1))
    others, to_group, own, count = around.others, around.to_group, around.own, 0
    for c in chosen:
        m = _look_around(distance, weight, near, columns, c, around)
        size, members, key = columns.size[c], columns.members[c], columns.key[c]
        if count + (size + 1) * (m + 1) > found.size.size:
            break
        mass = _mass_of(members, size, weight)
        within, paid = columns.sse[c] * mass, 0.0
        for a in range(size):
            paid += price[members[a]]
        for b in range(m if size < 2 * k - 1 else 0):
            y = others[b]
            w, pays = weight_of(weight, y), paid + price[y]
            sse = (within + w * to_group[b]) / (mass + w)
            if sse - pays < below + slope * abs(pays):
                count = _note(found, count, columns, c, -1, y, sse, key + word[y])
        for a in range(size):
            x = members[a]
            if size > k:
                v, pays = weight_of(weight, x), paid - price[x]
                sse = (within - v * own[a]) / (mass - v)
                if sse - pays < below + slope * abs(pays):
                    count = _note(found, count, columns, c, a, -1, sse, key - word[x])
            before, least = count, below
            for b in range(m):
                y = others[b]
                sse = _exchanged(within, mass, x, own[a], y, to_group[b], distance[x, y], weight)
                pays = paid - price[x] + price[y]
                if slope > 0 and sse - pays < below + slope * abs(pays):
                    count = _note(found, count, columns, c, a, y, sse, key - word[x] + word[y])
                elif slope == 0 and sse - pays < least:
                    least = sse - pays
                    count = _note(found, before, columns, c, a, y, sse, key - word[x] + word[y])
    return count
