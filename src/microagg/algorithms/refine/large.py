"""Large groups, whose records are too many for tables of all their distances.

Parting   Two neighbouring groups a and b with centroids A and B lose least when |a|·|b|·|A − B|² is
          largest, since the rest of their SSE depends on their union alone. For given centroids the
          best parting sorts the records of both along the line from A to B and cuts where they are
          nearer to the other end, or where a size forbids to go on. That moves the centroids;
          repeat while it gains: 2-means with bounds on the sizes, O(k·d). With weights |a| and |b| are
          sums of weights, and a record counts by its weight times how much nearer it is to the other end.
Sweeps    All pairs of neighbours are parted anew, O(n·d) for a sweep; a second try begins from a line
          through two random records. The groups are split into patches as for annealing (patches.py),
          otherwise in every sweep; a pair is parted where both are in one patch.
Annealing A step takes a group and the few with the nearest centroids, forms them anew around random
          records, and parts each two of them until nothing gains. That is a local optimum, as moves and
          swaps would reach it, at O(p²·k·d) for p groups. It is kept when the SSE is lower or, with a
          probability that falls with the temperature, a little higher.
Paper     None: our own heuristics.
Threads   Patches do not depend on each other, so that results do not depend on threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.anneal import number_of_groups, temperature_at, weights_of
from microagg.algorithms.refine.patches import (
    groups_in_a_patch,
    put_back,
    rows_of,
    split_groups,
    take_rows,
)
from microagg.algorithms.refine.pool import weight_of
from microagg.base.progress import DONE, STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_subkernel, subkernel
from microagg.compile.threads import share_out
from microagg.kernels.distances import squares_to
from microagg.kernels.halve import select
from microagg.kernels.random_numbers import draw, draw_exponential

_NEIGHBOURS = 8
_ROUNDS = 30  # of parting two groups again, at most
_ROUNDS_OF_A_POOL = 8  # over all its pairs, at most
_LASTS = 2  # sweeps for which a changed group is looked at
_MOST, _LEAST = 64, 12  # groups in a patch
_NOISE = 1e-9  # gains below this share may be rounding


class _LargeGroups(NamedTuple):
    """Groups; the first few are in use."""

    members: Any  # (groups, 2k − 1)
    size: Any  # (groups,)
    sse: Any  # (groups,)
    centroid: Any  # (groups, d)


class _Scratch(NamedTuple):
    rows: Any  # (records,)
    keys: Any  # (records,)
    ends: Any  # (2, d)
    changed: Any  # (groups of a pool,) last round that changed it


@subkernel
def _new_scratch(records, groups, d):
    return _Scratch(
        np.empty(records, np.intp), np.empty(records), np.empty((2, d)), np.empty(groups, np.intp)
    )


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
        groups.sse[g] += weight_of(weights, row) * squares_to(X, row, groups.centroid[g])


@kernel
def _grouped(X, weights, labels, k):
    """Make the groups of labels that count from 0; return them and their number."""
    groups, count = _new_groups(len(X) // k, k, X.shape[1]), 0
    for i in range(labels.size):
        g = labels[i]
        groups.members[g, groups.size[g]] = i
        groups.size[g] += 1
        count = max(count, g + 1)
    for g in range(count):
        _centre(X, weights, groups, g)
    return groups, count


@lean_subkernel
def _centres(X, weights, rows, cut, m, ends):
    """Centroids of rows[:cut] and rows[cut:m]; return what is to be made large."""
    for j in range(X.shape[1]):
        ends[0, j] = ends[1, j] = 0.0
    first_mass = second_mass = total = 0.0
    for x in range(m):
        row, end = rows[x], 0 if x < cut else 1
        w = weight_of(weights, row)
        if x < cut:
            first_mass += w
        else:
            second_mass += w
        for j in range(X.shape[1]):
            ends[end, j] += w * X[row, j]
    for j in range(X.shape[1]):
        ends[0, j], ends[1, j] = ends[0, j] / first_mass, ends[1, j] / second_mass
        total += (ends[0, j] - ends[1, j]) ** 2
    return total * first_mass * second_mass


@lean_subkernel
def _part(X, weights, rows, m, k, ends, keys):
    """Part the rows from given ends on while it gains; return what was made large, and the cut.

    A round cuts where rows are nearer to the second end, within the bounds.
    """
    gain, cut = -1.0, 0
    for _ in range(_ROUNDS):
        cut = 0
        for x in range(m):
            keys[x] = 0.0
            for j in range(X.shape[1]):
                middle = 0.5 * (ends[0, j] + ends[1, j])
                keys[x] += (X[rows[x], j] - middle) * (ends[1, j] - ends[0, j])
            keys[x] *= weight_of(weights, rows[x])
            cut += keys[x] < 0
        cut = min(max(cut, k, m - (2 * k - 1)), m - k, 2 * k - 1)
        select(keys, rows, 0, m, cut)
        now = _centres(X, weights, rows, cut, m, ends)
        if now <= gain * (1 + _NOISE):
            break
        gain = now
    return _centres(X, weights, rows, cut, m, ends), cut


@lean_subkernel
def _part_two(X, weights, groups, a, b, k, scratch, first, second):
    """Part two groups anew; return whether that gains.

    ``first`` and ``second`` are places of records from which to begin; −1: from the centroids.
    """
    rows, ends, size = scratch.rows, scratch.ends, groups.size[a]
    m = size + groups.size[b]
    for x in range(m):
        rows[x] = groups.members[a, x] if x < size else groups.members[b, x - size]
    before = _centres(X, weights, rows, size, m, ends)
    if first >= 0:
        for j in range(X.shape[1]):
            ends[0, j], ends[1, j] = X[rows[first], j], X[rows[second], j]
    after, cut = _part(X, weights, rows, m, k, ends, scratch.keys)
    if after <= before * (1 + _NOISE):
        return False
    groups.size[a], groups.size[b] = cut, m - cut
    for x in range(m):
        if x < cut:
            groups.members[a, x] = rows[x]
        else:
            groups.members[b, x - cut] = rows[x]
    for j in range(X.shape[1]):
        groups.centroid[a, j], groups.centroid[b, j] = ends[0, j], ends[1, j]
    return True


@lean_subkernel
def _nearest(centroid, point, among, skip, near, squares):
    """Fill in the places in ``among`` of the groups nearest to a point, but for that at ``skip``."""
    have = 0
    for a in range(among.size):
        if a == skip:
            continue
        square = squares_to(centroid, among[a], point)
        if have < near.size or square < squares[have - 1]:
            b = min(have, near.size - 1)
            while b > 0 and squares[b - 1] > square:
                near[b], squares[b] = near[b - 1], squares[b - 1]
                b -= 1
            near[b], squares[b] = a, square
            have = min(have + 1, near.size)
    return have


@kernel
def _part_patches(X, weights, groups, changed, k, begin, end, order, first, seeds, sweep, state):
    """Part the pairs of neighbours in the patches begin..end−1, if one of the pair changed recently.

    ``changed`` (groups,) is the last sweep that changed each.
    """
    scratch, random = _new_scratch(4 * k, 0, X.shape[1]), np.empty(1, np.uint64)
    near, squares = np.empty(_NEIGHBOURS, np.intp), np.empty(_NEIGHBOURS)
    for patch in range(begin, end):
        random[0] = seeds[patch]
        mine = order[first[patch] : first[patch + 1]]
        done = np.zeros((mine.size, mine.size), np.bool_)
        for a in range(mine.size):
            centre = groups.centroid[mine[a]]
            for c in range(_nearest(groups.centroid, centre, mine, a, near, squares)):
                if state[STOP]:
                    return
                b, g, h = near[c], mine[a], mine[near[c]]
                if max(changed[g], changed[h]) >= sweep - _LASTS and not done[a, b]:
                    gains = _part_two(X, weights, groups, g, h, k, scratch, -1, -1)
                    m = groups.size[g] + groups.size[h]
                    x, y = int(draw(random) * m), int(draw(random) * m)
                    gains |= _part_two(X, weights, groups, g, h, k, scratch, x, y)
                    if gains:
                        changed[g] = changed[h] = sweep
                    done[a, b] = done[b, a] = True


def part_pairs(
    X: Floats, weights: Floats | None, labels: Labels, k: int, sweeps: int, seed: int, state: State
) -> Labels:
    """Improve groups of k to 2k−1 records by parting pairs of neighbours, until nothing gains or it is over.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    weights : (n,) above 0; None: all weigh the same
    labels : (n,) int64, groups 0, 1, …; never written to
    k : least size of a group
    sweeps : over all pairs, at most
    seed : of the random numbers
    state : progress, and the wish to stop

    Returns
    -------
    (n,) int64, the caller's, with as many groups
    """
    groups, count = _grouped(X, weights, labels, k)
    changed, rng = np.zeros(count, np.intp), np.random.default_rng(seed)

    def work(begin: int, end: int, _: int) -> None:
        of_sweep = order, first, seeds, sweep, state
        _part_patches(X, weights, groups, changed, k, begin, end, *of_sweep)

    for sweep in range(1, sweeps + 1):
        if state[STOP] or changed.max() < sweep - 1 - _LASTS:
            break
        random = rng.integers(0, 2**63, size=1, dtype=np.uint64)
        most = groups_in_a_patch(count, _LEAST, _MOST)
        order, first = split_groups(groups.centroid[:count], most, random)
        seeds = rng.integers(0, 2**63, size=len(first) - 1, dtype=np.uint64)
        share_out(work, len(seeds), state, at_once=1)
        state[DONE] = max(state[DONE], len(X) * sweep // sweeps)
    new = np.empty_like(labels)
    for g in range(count):
        new[groups.members[g, : groups.size[g]]] = g
    return new


# Annealing, a few neighbouring groups at a time.


@lean_subkernel
def _nearest_first(X, rows, begin, m, k, centre, keys):
    """Bring the k rows nearest to a point to the beginning of rows[begin:m]."""
    for a in range(begin, m):
        keys[a] = squares_to(X, rows[a], centre)
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
            square = squares_to(X, rows[a], pool.centroid[g])
            if pool.size[g] < 2 * k - 1 and square < least:
                best, least = g, square
        pool.members[best, pool.size[best]] = rows[a]
        pool.size[best] += 1


@lean_subkernel
def _descend(X, weights, pool, q, k, scratch):
    """Part the groups of a pool two by two until nothing gains; return their SSE."""
    changed = scratch.changed
    for g in range(q):
        changed[g] = 0
    for turn in range(1, _ROUNDS_OF_A_POOL + 1):
        busy = False
        for g in range(q):
            for h in range(g):
                if max(changed[g], changed[h]) >= turn - 1 and _part_two(
                    X, weights, pool, g, h, k, scratch, -1, -1
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
    groups, count = _grouped(X, weights, labels, k)
    pool = _new_groups(most + 1, k, d)
    scratch = _new_scratch(most * (2 * k - 1), most + 1, d)
    chosen, squares, every = np.empty(most + 1, np.intp), np.empty(most), np.arange(n // k)
    random = np.array([seed], np.uint64)
    for step in range(steps):
        if state[STOP] or count < 2:
            break
        home = int(draw(random) * count)
        row = groups.members[home, int(draw(random) * groups.size[home])]
        p = 2 + int(draw(random) * (most - 1))
        near, chosen[0] = chosen[1:p], home
        q = 1 + _nearest(groups.centroid, X[row], every[:count], home, near, squares)
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
    """Anneal some patches of large groups; write the new groups and their SSE.

    Parameters
    ----------
    most : groups of a pool, at most
    X, weights, patches, begin, end, k, steps, heat, state : as for
        :func:`microagg.algorithms.refine.anneal.anneal_patches`
    """
    for patch in range(begin, end):
        rows, labels, n_groups = rows_of(patches, patch)
        records, turns = take_rows(X, rows), int(np.ceil(steps * n_groups))
        heavy, seed = weights_of(weights, rows), patches.seeds[patch]
        count, patches.loss[patch] = anneal_large(
            records, heavy, labels, k, most, turns, heat, seed, state
        )
        put_back(records, rows, labels, count, k, patches, patch)
