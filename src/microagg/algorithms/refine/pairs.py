"""Large groups, parted anew two by two.

Problem   Improve a partition whose groups are too large for tables of all their distances.
Idea      Two neighbouring groups a and b with centroids A and B lose least when |a|·|b|·|A − B|² is
          largest, since the rest of their SSE depends on their union alone. For given centroids the
          best parting sorts the records of both along the line from A to B and cuts where they are
          nearer to the other end, or where a size forbids to go on. That moves the centroids;
          repeat while it gains. A second try begins from a line through two random records.
          With weights |a| and |b| are sums of weights, and a record counts by its weight times how
          much nearer it is to the other end.
Cost      O(k·d) for a pair, O(n·d) for a sweep over groups and their neighbours.
Paper     None: our own. 2-means with bounds on the sizes.
Threads   The groups are split into patches as for annealing (patches.py), otherwise in every sweep; a pair
          is parted where both are in one patch, and patches do not depend on each other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.patches import groups_in_a_patch, split_groups
from microagg.algorithms.refine.pool import weight_of
from microagg.base.progress import DONE, STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.compile.threads import share_out
from microagg.kernels.halve import select
from microagg.kernels.random_numbers import draw

_NEIGHBOURS = 8
_ROUNDS = 30  # of parting two groups again, at most
_LASTS = 2  # sweeps for which a changed group is looked at
_MOST, _LEAST = 64, 12  # groups in a patch
_NOISE = 1e-9  # gains below this share may be rounding


class _PairedGroups(NamedTuple):
    members: Any  # (groups, 2k − 1)
    size: Any  # (groups,)
    centroid: Any  # (groups, d)
    changed: Any  # (groups,) last sweep that changed it


@lean_subkernel
def _mass_of(weights, rows, begin, end):
    """Return the weight of rows[begin:end]."""
    mass = 0.0
    for x in range(begin, end):
        mass += weight_of(weights, rows[x])
    return mass


@lean_kernel
def _form(X, weights, labels, groups):
    """Fill in the groups of labels that count from 0."""
    for i in range(labels.size):
        g = labels[i]
        groups.members[g, groups.size[g]] = i
        groups.size[g] += 1
        for j in range(X.shape[1]):
            groups.centroid[g, j] += weight_of(weights, i) * X[i, j]
    for g in range(groups.size.size):
        mass = _mass_of(weights, groups.members[g], 0, groups.size[g])
        for j in range(X.shape[1]):
            groups.centroid[g, j] /= mass


@lean_subkernel
def centres(X, weights, rows, cut, m, ends):
    """Centroids of rows[:cut] and rows[cut:m]; return what is to be made large."""
    for j in range(X.shape[1]):
        ends[0, j] = ends[1, j] = 0.0
    for x in range(m):
        row, end = rows[x], 0 if x < cut else 1
        for j in range(X.shape[1]):
            ends[end, j] += weight_of(weights, row) * X[row, j]
    one, other = _mass_of(weights, rows, 0, cut), _mass_of(weights, rows, cut, m)
    total = 0.0
    for j in range(X.shape[1]):
        ends[0, j], ends[1, j] = ends[0, j] / one, ends[1, j] / other
        total += (ends[0, j] - ends[1, j]) ** 2
    return total * one * other


@lean_subkernel
def _sort_along(X, weights, rows, m, k, ends, keys):
    """Cut the rows where they are nearer to the second end, within the bounds; return the cut."""
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
    return cut


@lean_subkernel
def part(X, weights, rows, m, k, ends, keys):
    """Part the rows from given ends on while it gains; return what was made large, and the cut."""
    gain, best = -1.0, 0
    for _ in range(_ROUNDS):
        cut = _sort_along(X, weights, rows, m, k, ends, keys)
        now = centres(X, weights, rows, cut, m, ends)
        best = cut
        if now <= gain * (1 + _NOISE):
            break
        gain = now
    return centres(X, weights, rows, best, m, ends), best


@lean_subkernel
def _keep(groups, g, rows, begin, end, centre):
    groups.size[g] = end - begin
    for x in range(begin, end):
        groups.members[g, x - begin] = rows[x]
    for j in range(centre.size):
        groups.centroid[g, j] = centre[j]


@lean_subkernel
def _part_pair(X, weights, groups, k, a, b, rows, keys, ends, random, sweep):
    """Part two groups anew."""
    m = groups.size[a] + groups.size[b]
    for attempt in range(2):
        for x in range(groups.size[a]):
            rows[x] = groups.members[a, x]
        for x in range(groups.size[b]):
            rows[groups.size[a] + x] = groups.members[b, x]
        before = centres(X, weights, rows, groups.size[a], m, ends)
        if attempt == 1:
            one, other = rows[int(draw(random) * m)], rows[int(draw(random) * m)]
            for j in range(X.shape[1]):
                ends[0, j], ends[1, j] = X[one, j], X[other, j]
        after, cut = part(X, weights, rows, m, k, ends, keys)
        if after > before * (1 + _NOISE):
            _keep(groups, a, rows, 0, cut, ends[0])
            _keep(groups, b, rows, cut, m, ends[1])
            groups.changed[a] = groups.changed[b] = sweep


@lean_subkernel
def _nearest(centroid, mine, a, near, squares):
    """Fill in the places among ``mine`` of the groups that are nearest to that at place a."""
    have = 0
    for b in range(mine.size):
        if b != a:
            square = 0.0
            for j in range(centroid.shape[1]):
                square += (centroid[mine[a], j] - centroid[mine[b], j]) ** 2
            if have < near.size or square < squares[have - 1]:
                c = min(have, near.size - 1)
                while c > 0 and squares[c - 1] > square:
                    near[c], squares[c] = near[c - 1], squares[c - 1]
                    c -= 1
                near[c], squares[c] = b, square
                have = min(have + 1, near.size)
    return have


@kernel
def _part_patches(X, weights, groups, k, begin, end, order, first, seeds, sweep, state):
    """Part the pairs of neighbours in the patches begin..end−1, if one of the pair changed recently."""
    rows, keys = np.empty(4 * k, np.intp), np.empty(4 * k)
    ends, random = np.empty((2, X.shape[1])), np.empty(1, np.uint64)
    near, squares = np.empty(_NEIGHBOURS, np.intp), np.empty(_NEIGHBOURS)
    for patch in range(begin, end):
        random[0] = seeds[patch]
        mine = order[first[patch] : first[patch + 1]]
        done = np.zeros((mine.size, mine.size), np.bool_)
        for a in range(mine.size):
            for c in range(_nearest(groups.centroid, mine, a, near, squares)):
                if state[STOP]:
                    return
                b, g, h = near[c], mine[a], mine[near[c]]
                fresh = max(groups.changed[g], groups.changed[h]) >= sweep - _LASTS
                if fresh and not done[a, b]:
                    _part_pair(X, weights, groups, k, g, h, rows, keys, ends, random, sweep)
                    done[a, b] = done[b, a] = True


def part_pairs(
    X: Floats,
    weights: Floats | None,
    labels: Labels,
    k: int,
    sweeps: int,
    seed: int,
    state: State,
) -> Labels:
    """Improve groups of k to 2k−1 records, labelled 0, 1, …, until nothing gains or it is over."""
    g = int(labels.max()) + 1
    groups = _PairedGroups(
        np.empty((g, 2 * k - 1), np.intp),
        np.zeros(g, np.intp),
        np.zeros((g, X.shape[1])),
        np.zeros(g, np.intp),
    )
    _form(X, weights, labels, groups)
    rng = np.random.default_rng(seed)
    for sweep in range(1, sweeps + 1):
        if state[STOP] or groups.changed.max() < sweep - 1 - _LASTS:
            break
        random = rng.integers(0, 2**63, size=1, dtype=np.uint64)
        most = groups_in_a_patch(g, _LEAST, _MOST)
        order, first = split_groups(groups.centroid, most, random)
        seeds = rng.integers(0, 2**63, size=len(first) - 1, dtype=np.uint64)

        def work(
            begin: int,
            end: int,
            _: int,
            now: tuple[Any, Any, Any, int] = (order, first, seeds, sweep),
        ) -> None:
            _part_patches(X, weights, groups, k, begin, end, *now, state)

        share_out(work, len(seeds), state, at_once=1)
        state[DONE] = max(state[DONE], len(X) * sweep // sweeps)
    new = np.empty_like(labels)
    for group in range(g):
        new[groups.members[group, : groups.size[group]]] = group
    return new
