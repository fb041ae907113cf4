"""Pricing: the groups whose SSE is less than what their records pay for them.

Problem   Given a price (dual) for each record, find groups G of k to 2k−1 records whose reduced cost
          SSE(G) − Σ duals over G is low: below 0, or below a given limit all of them. A cut adds
          a penalty, paid by a group that holds enough of the cut's records (cuts.py).
Idea      SSE(G) is the sum of squared distances over pairs, divided by the size s. The member of highest
          dual is the seed; the others are searched depth first among the records of lower dual. With
          some members chosen and r still to come, a candidate l will add at least
              key(l) = Σ d²(l, chosen)/s − dual(l) + (sum of its r−1 least d² to other candidates)/2s,
          since a pair among those to come is halved between its two ends. So the sum of the
          r lowest keys bounds a branch, and a record that no group below the limit can hold leaves the list.
Exact     For each seed the search gives a floor: no group with this seed has a lower reduced cost.
          When the search is cut short (``width`` candidates, ``nodes`` branches), the floor is that of
          the branches left out: lower, but still true.
Rounding  A reduced cost is a sum of at most s² + s + sc terms, where no record is in more than c cuts:
          squared distances, of relative error (d + 2)ε, over s, duals and penalties, which are taken as
          exact. So a computed bound of a branch is off by at most γ = 2(d + s² + s + sc + 4)ε times the
          sum of the absolute values of its terms. Let P be s times the greatest |dual| plus all that
          a group of s can pay in penalties. Either the distances in the sum are below 4P: then it is
          off by 6γP at most. Or they are above: then the true reduced cost is positive anyway.
          :func:`allowance` gives 8γP for s = 2k−1, and what is proved from floors subtracts it
          (column_generation.py).
Threads   Seeds are searched independently, so results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.base.progress import STOP
from microagg.base.typing import Floats
from microagg.bounds.cuts import NO_CUTS, Cuts
from microagg.compile.jit import kernel, lean_subkernel
from microagg.kernels.distances import squared_distance


class PricedRecords(NamedTuple):
    """The records by falling dual, and the cuts of each."""

    X: Any  # (n, d)
    dual: Any  # (n,)
    near: Any  # (n, 2k − 2) sum of the squared distances to its 0, 1, … nearest records
    first: Any  # (n + 1,) where a record's cuts begin in ``cut``
    cut: Any
    penalty: Any  # of each cut
    need: Any  # how many of a cut's records a group holds that pays


class _Levels(NamedTuple):
    """What is left to choose from at each depth of the search; sorted by key.

    Items are numbers of a seed's candidates.
    """

    item: Any  # (depth, candidates)
    so_far: Any  # the key without what is paid among those to come
    key: Any
    count: Any  # (depth,)
    at: Any  # the branch to take next
    base: Any  # reduced cost so far of those chosen
    chosen: Any
    rows: Any  # (candidates,) record of each
    between: Any  # (candidates, candidates) squared distances
    among: Any  # (candidates, 2k) sums of the least 0, 1, … of these for each
    held: Any  # (cuts,) how many of a cut's records the group has


class FoundGroups(NamedTuple):
    """Columns found; the first ``count`` are in use."""

    members: Any  # (most, 2k − 1)
    reduced: Any  # (most,)
    count: Any  # (1,)


@lean_subkernel
def _pay(table, row, held, step):
    """Take a record into the group (step 1), out of it (−1) or neither (0); what it adds in penalties."""
    total = 0.0
    for c in range(table.first[row], table.first[row + 1]):
        cut = table.cut[c]
        if step >= 0 and held[cut] == table.need[cut] - 1:
            total += table.penalty[cut]
        held[cut] += step
    return total


@lean_subkernel
def _sink(level, depth, a):
    """Move the candidate at ``a`` forward to its place in the sorted list."""
    item, so_far, key = level.item[depth, a], level.so_far[depth, a], level.key[depth, a]
    while a > 0 and level.key[depth, a - 1] > key:
        level.item[depth, a] = level.item[depth, a - 1]
        level.so_far[depth, a] = level.so_far[depth, a - 1]
        level.key[depth, a] = level.key[depth, a - 1]
        a -= 1
    level.item[depth, a], level.so_far[depth, a], level.key[depth, a] = item, so_far, key


@lean_subkernel
def _trim(level, depth, r, limit):
    """Drop the candidates that are in no group below the limit; r are still to be chosen."""
    count = level.count[depth]
    if count < r:
        level.count[depth] = 0
        return
    least = level.base[depth]
    for a in range(r - 1):
        least += level.key[depth, a]
    while count >= r and least + level.key[depth, count - 1] >= limit:
        count -= 1
    level.count[depth] = count if count >= r else 0


@lean_subkernel
def _keep(groups, start, level, size, seed, last, reduced):
    """Keep a column, in the place of the worst from ``start`` on when there is no room.

    Returns the limit from now on: the worst reduced cost that is kept when there is no room left,
    else infinity. With start −1 nothing is replaced, and a lack of room ends the search.
    """
    at, room = groups.count[0], groups.members.shape[0]
    if at < room:
        groups.count[0] += 1
    elif start < 0:
        return -np.inf
    else:
        at = start
        for a in range(start, room):
            if groups.reduced[a] > groups.reduced[at]:
                at = a
    if size > 1:
        groups.members[at, 0] = seed
    for a in range(size - 2):
        groups.members[at, a + 1] = level.rows[level.chosen[a]]
    groups.members[at, size - 1] = level.rows[last]
    for a in range(size, groups.members.shape[1]):
        groups.members[at, a] = -1
    groups.reduced[at] = reduced
    worst = np.inf
    if groups.count[0] == room and start >= 0:
        worst = -np.inf
        for a in range(start, room):
            worst = max(worst, groups.reduced[a])
    return worst


@lean_subkernel
def _lowest_keys(table, square, seed, size, lowest):
    """Return the sum of the size − 2 lowest keys of a seed's candidates, ``lowest`` is scratch."""
    most, have = size - 2, 0
    for row in range(seed + 1, table.dual.size):
        key = square[row] / size - table.dual[row] + table.near[row, most] / (2 * size)
        if have < most or (most > 0 and key < lowest[most - 1]):
            a = have if have < most else most - 1
            while a > 0 and lowest[a - 1] > key:
                lowest[a] = lowest[a - 1]
                a -= 1
            lowest[a] = key
            have = min(have + 1, most)
    total = 0.0
    for a in range(have):
        total += lowest[a]
    return total


@lean_subkernel
def _gather(table, square, seed, size, limit, level, width, lowest):
    """Fill level 0 with the candidates of lowest key; return the floor of those left out."""
    base, count, floor = -table.dual[seed], 0, np.inf
    level.base[0] = base
    least = base + _lowest_keys(table, square, seed, size, lowest)
    for row in range(seed + 1, table.dual.size):
        so_far = square[row] / size - table.dual[row]
        key = so_far + table.near[row, size - 2] / (2 * size)
        if least + key >= limit:
            continue
        if count == width:
            floor = min(floor, least + max(key, level.key[0, count - 1]))
            if key >= level.key[0, count - 1]:
                continue
            count -= 1
        level.item[0, count], level.so_far[0, count], level.key[0, count] = row, so_far, key
        _sink(level, 0, count)
        count += 1
    level.count[0] = count if count >= size - 1 else 0
    return floor


@lean_subkernel
def _measure(table, level):
    """Renumber the candidates of level 0 and compute the distances between them."""
    rows, between = level.rows, level.between
    for a in range(level.count[0]):
        rows[a] = level.item[0, a]
        level.item[0, a] = a
        between[a, a] = np.inf
        for b in range(a):
            between[a, b] = between[b, a] = squared_distance(table.X, rows[a], table.X, rows[b])


@lean_subkernel
def _least_among(level, most):
    """For each candidate the sums of its least 0, 1, … squared distances to other candidates."""
    between, among = level.between, level.among
    for p in range(level.count[0]):
        a = level.item[0, p]
        have = 0
        for q in range(level.count[0]):
            value = between[a, level.item[0, q]]
            if have < most or value < among[a, have]:
                have = min(have + 1, most)
                b = have
                while b > 1 and among[a, b - 1] > value:
                    among[a, b] = among[a, b - 1]
                    b -= 1
                among[a, b] = value
        among[a, 0] = 0.0
        for b in range(1, most + 1):
            among[a, b] = among[a, b] + among[a, b - 1] if b <= have else np.inf


@lean_subkernel
def _sharpen(level, size, limit):
    """Let keys count the distances among this seed's candidates, while that drops candidates."""
    r = size - 1
    for _ in range(3):
        before = level.count[0]
        if before < r or r < 2:
            return
        _least_among(level, r - 1)
        for a in range(before):
            level.key[0, a] = level.so_far[0, a] + level.among[level.item[0, a], r - 1] / (2 * size)
            _sink(level, 0, a)
        _trim(level, 0, r, limit)
        if level.count[0] == before:
            return


@lean_subkernel
def _branch(level, depth, t, size, r, limit):
    """Make the list of the next depth from the candidates after the one chosen."""
    chosen = level.item[depth, t]
    for a in range(t + 1, level.count[depth]):
        b = a - t - 1
        item = level.item[depth, a]
        so_far = level.so_far[depth, a] + level.between[chosen, item] / size
        level.item[depth + 1, b], level.so_far[depth + 1, b] = item, so_far
        level.key[depth + 1, b] = so_far + level.among[item, r - 1] / (2 * size)
        _sink(level, depth + 1, b)
    level.count[depth + 1] = level.count[depth] - t - 1
    _trim(level, depth + 1, r, limit)
    level.at[depth + 1] = 0


@lean_subkernel
def _search(table, seed, size, limit, level, groups, start, nodes):
    """Search all groups of a seed and size below the limit; return (floor, limit).

    The limit falls when there is no room for more columns.
    """
    depth, floor, rows, held = 0, limit, level.rows, level.held
    level.at[0] = 0
    _pay(table, seed, held, 1)
    while depth >= 0:
        r = size - 1 - depth
        t = level.at[depth]
        least = level.base[depth]
        if t + r <= level.count[depth]:
            for a in range(t, t + r):
                least += level.key[depth, a]
        if t + r > level.count[depth] or least >= limit or nodes <= 0:
            if t + r <= level.count[depth]:
                floor = min(floor, least)
            depth -= 1
            if depth >= 0:
                _pay(table, rows[level.chosen[depth]], held, -1)
            continue
        nodes -= 1
        level.at[depth] += 1
        item = level.item[depth, t]
        base = level.base[depth] + level.so_far[depth, t] + _pay(table, rows[item], held, 1)
        level.chosen[depth] = item
        if r == 1:
            if base < limit:
                floor = min(floor, base)
                limit = min(limit, _keep(groups, start, level, size, seed, item, base))
        elif r == 2:
            for a in range(t + 1, level.count[depth]):
                last = level.item[depth, a]
                reduced = base + level.so_far[depth, a] + level.between[item, last] / size
                if reduced < limit:
                    reduced += _pay(table, rows[last], held, 0)
                    if reduced < limit:
                        floor = min(floor, reduced)
                        worst = _keep(groups, start, level, size, seed, last, reduced)
                        limit = min(limit, worst)
        else:
            level.base[depth + 1] = base
            _branch(level, depth, t, size, r - 1, limit)
            depth += 1
            continue
        _pay(table, rows[item], held, -1)
    _pay(table, seed, held, -1)
    if nodes <= 0 and start < 0:
        limit = -np.inf  # not all were listed
    return floor, limit


@kernel
def price_seeds(table, k, begin, end, limit, width, nodes, each, groups, floors, state):
    """Search the groups of the seeds begin..end−1; False when not all could be listed.

    ``each`` columns of a seed are kept, the lowest; 0 for all, as long as there is room.
    """
    n = len(table.X)
    width = min(width, n)
    level = _Levels(
        np.empty((2 * k, width), np.intp),
        np.empty((2 * k, width)),
        np.empty((2 * k, width)),
        np.empty(2 * k, np.intp),
        np.empty(2 * k, np.intp),
        np.empty(2 * k),
        np.empty(2 * k, np.intp),
        np.empty(width, np.intp),
        np.empty((width, width)),
        np.empty((width, 2 * k)),
        np.zeros(table.penalty.size, np.intp),
    )
    square, lowest, room = np.empty(n), np.empty(2 * k), groups.members.shape[0]
    for seed in range(begin, end):
        if state[STOP]:
            return True
        for row in range(seed + 1, n):
            square[row] = squared_distance(table.X, seed, table.X, row)
        start = groups.count[0] if each > 0 else -1
        last = min(start + each, room) if each > 0 else room
        groups_of_seed = FoundGroups(groups.members[:last], groups.reduced[:last], groups.count)
        floor, bar = limit, limit
        for size in range(k, 2 * k):
            out = _gather(table, square, seed, size, bar, level, width, lowest)
            floor = min(floor, out)
            _measure(table, level)
            _sharpen(level, size, bar)
            if level.count[0] >= size - 1:
                low, bar = _search(table, seed, size, bar, level, groups_of_seed, start, nodes)
                floor = min(floor, low)
        floors[seed] = floor
        if bar == -np.inf:
            return False
    return True


def allowance(d: int, k: int, duals: Floats, cuts: Cuts = NO_CUTS) -> float:
    """Return how far a computed floor may lie above the true one, see the head of this file."""
    size = 2 * k - 1
    paid, cuts_of = np.zeros(len(duals)), np.zeros(len(duals))
    for column in cuts.sets.members.T:
        held = column >= 0
        np.add.at(paid, column[held], cuts.penalties[held])
        np.add.at(cuts_of, column[held], 1.0)
    most = size * (float(np.abs(duals).max()) + float(paid.max()))
    terms = size * size + size * (1 + max(1.0, float(cuts_of.max())))
    return 8 * 2 * (d + terms + 4) * 2.0**-53 * most
