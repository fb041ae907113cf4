"""k-Ward: Ward's hierarchical clustering, in which complete groups are never joined.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Each of the two records farthest apart forms a group with its k−1 nearest. All others begin
          as groups of one. Then the two groups are joined whose union raises the SSE least, again
          and again, but never two that both have k records, until all have k. A group of 2k or
          more is partitioned in the same way.
Cost      O(n²·d) time at worst, O(n·d) memory, by the chain of nearest neighbours: from group to
          cheapest partner until two are each other's. Partners are found in trees, so that normal
          data take about n^1.2 with 4 columns and n^1.6 with 10. A heuristic: no bound on its
          loss is proved.
Paper     Domingo-Ferrer & Mateo-Sanz 2002, algorithm k-Ward (first the extreme records, then Ward's
          method, then recursion), where each step looks at all pairs of groups. The papers at hand
          name it without its steps, which are given here as the literature knows them.
Here      The extremes of one column are its k lowest and k highest values; of several, we take the two
          records farthest apart, which for one column are the same. That a chain joins the same groups
          as the search for the cheapest pair of all rests on Ward's cost being reducible: a union is
          never nearer to a third group than both of its parts. It stays so if two complete
          groups are infinitely far apart, since a union of complete groups does not arise. Equal
          costs go to the partner before on the chain, then to the group of lower number; there
          the order of joining may differ from that by all pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.result import Outcome
from microagg.base.progress import DONE, STOP, State, new_state, part
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.kernels.distances import squared_distance
from microagg.kernels.farthest_pair import farthest_bounds, farthest_pair
from microagg.kernels.kd_search import begin, next_leaf
from microagg.kernels.kd_tree import KdTree, build, move, remove

# Places of counters: groups on the chain, where the search for its first one begins, groups
# under k that are left, complete ones that are not yet in their tree.
_CHAIN, _FIRST, _SMALL, _FRESH = range(4)
_FEW = 64  # with fewer small groups left no new tree is worth its while
_BEYOND = 1 + 1e-12  # more than rounding can hide


class _WardGroups(NamedTuple):
    """Groups by number, which is that of one of their records."""

    total: Any  # (n, d) sums of their records
    centre: Any  # (n, d)
    size: Any  # (n,)
    into: Any  # (n,) the group that one was joined to; itself while it exists
    indexed: Any  # (n,) whether a complete group is in the tree of those
    chain: Any  # (n,) each group's cheapest partner comes next
    fresh: Any  # complete groups that are not in the tree yet
    counters: Any


@lean_subkernel
def _cost(groups, a, b, square):
    """Return what the union of two groups adds to the SSE, by the squared distance of their centroids."""
    s, t = float(groups.size[a]), float(groups.size[b])
    return s * t / (s + t) * square


@lean_subkernel
def _cheapest(groups, tree, a, floor, best, partner):
    """Look in a tree, whose groups have ``floor`` records or more, for a cheaper partner of a group."""
    s = float(groups.size[a])
    least = s * floor / (s + floor)
    centre = groups.centre[a]
    top = begin(tree, centre)
    while True:
        leaf, top = next_leaf(tree, top, centre, best / least * _BEYOND, partner)
        if leaf < 0:
            return best, partner
        for e in range(tree.count[leaf]):
            b = tree.rows[leaf, e]
            if b != a:
                cost = _cost(groups, a, b, tree.entry[e])
                if cost < best or (cost == best and b < partner):
                    best, partner = cost, b


@lean_subkernel
def _partner(groups, small, complete, a, before, k):
    """Return the cheapest partner of a group; −1 if it is the one before on the chain."""
    best, partner = np.inf, groups.size.size
    if before >= 0:
        square = squared_distance(groups.centre, a, groups.centre, before)
        best, partner = _cost(groups, a, before, square), -1
    best, partner = _cheapest(groups, small, a, 1.0, best, partner)
    if groups.size[a] < k:
        best, partner = _cheapest(groups, complete, a, float(k), best, partner)
        for f in range(groups.counters[_FRESH]):
            b = groups.fresh[f]
            cost = _cost(groups, a, b, squared_distance(groups.centre, a, groups.centre, b))
            if cost < best or (cost == best and b < partner):
                best, partner = cost, b
    return partner


@lean_subkernel
def _join(groups, small, complete, a, b, k):
    """Join two groups, at most one of them complete; its number stays, otherwise the lower one."""
    a, b = (b, a) if groups.size[b] >= k or (groups.size[a] < k and b < a) else (a, b)
    was_complete = groups.size[a] >= k
    groups.size[a] += groups.size[b]
    for j in range(groups.centre.shape[1]):
        groups.total[a, j] += groups.total[b, j]
        groups.centre[a, j] = groups.total[a, j] / groups.size[a]
    groups.into[b] = a
    remove(small, b)
    groups.counters[_SMALL] -= 1
    if was_complete:
        if groups.indexed[a]:
            move(complete, a, groups.centre[a])
    elif groups.size[a] >= k:
        remove(small, a)
        groups.counters[_SMALL] -= 1
        groups.fresh[groups.counters[_FRESH]] = a
        groups.counters[_FRESH] += 1
    else:
        move(small, a, groups.centre[a])


@lean_kernel
def _join_along_chains(groups, small, complete, k, enough, tell, state):
    """Join groups until none is under k, or ``enough`` of these are left, or there is no more room."""
    chain, counters = groups.chain, groups.counters
    while counters[_SMALL] > enough and not state[STOP]:
        if counters[_FRESH] == groups.fresh.size:
            return
        if counters[_CHAIN] == 0:
            first = counters[_FIRST]
            while groups.into[first] != first or groups.size[first] >= k:
                first += 1
            chain[0], counters[_CHAIN], counters[_FIRST] = first, 1, first
        length = counters[_CHAIN]
        a = chain[length - 1]
        before = chain[length - 2] if length > 1 else -1
        partner = _partner(groups, small, complete, a, before, k)
        if partner < 0:
            _join(groups, small, complete, a, before, k)
            counters[_CHAIN] = length - 2
        else:
            chain[length] = partner
            counters[_CHAIN] = length + 1
        if tell:
            state[DONE] = groups.size.size - counters[_SMALL]


def _by_ward(X: Floats, k: int, tell: bool, state: State) -> Labels:
    """Partition 2k records or more once, by numbers of groups; those of 2k may still be split."""
    # Two groups of k around the records farthest apart, and all others by themselves.
    (n, d), numbers = X.shape, np.arange(len(X))
    two = farthest_pair(X, np.full(n, -1), build(X, numbers), farthest_bounds(X))
    into, left = numbers.copy(), np.setdiff1d(numbers, two)
    for seed in two:
        square = np.zeros(len(left))
        for j in range(d):
            square += np.square(X[left, j] - X[seed, j])
        order = np.argsort(square, kind="stable")
        into[left[order[: k - 1]]] = seed
        left = np.sort(left[order[k - 1 :]])
    size = np.bincount(into, minlength=n)
    total = np.zeros((n, d))
    np.add.at(total, into, X)
    groups = _WardGroups(
        total,
        total / np.maximum(size, 1)[:, None],
        size,
        into,
        np.zeros(n, dtype=bool),
        np.empty(n + 1, np.int64),
        np.empty(0, np.int64),
        np.array([0, 0, len(left) if k > 1 else 0, 0]),
    )
    while groups.counters[_SMALL] > 0 and not state[STOP]:
        whole = (into == numbers) & (size >= k)
        small = np.flatnonzero((into == numbers) & ~whole)
        groups.indexed[:] = whole
        groups.counters[_FRESH] = 0
        complete = np.flatnonzero(whole)
        groups = groups._replace(fresh=np.empty(128 + len(complete) // 16, np.int64))
        trees: tuple[KdTree, KdTree] = build(groups.centre, small), build(groups.centre, complete)
        enough = len(small) // 2 if len(small) > _FEW else 0
        _join_along_chains(groups, *trees, k, enough, tell, state)
    while (into[into] != into).any():
        into = into[into]
    return into


def k_ward(X: Floats, k: int, *, state: State | None = None) -> Outcome:
    """Partition by Ward's clustering, never joining two groups that both have k records.

    >>> k_ward(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0], [29.0]]), 2).labels.tolist()
    [2, 1, 2, 1, 2, 0, 0]
    """
    state = new_state() if state is None else state
    n, count, done = len(X), 0, 0
    labels = np.zeros(n, dtype=np.int64)
    waiting = [np.arange(n)]
    while waiting and not state[STOP]:
        rows = waiting.pop()
        if len(rows) < 2 * k or (X[rows] == X[rows[0]]).all():
            # Equal records cost nothing in any groups, and two of them are never farthest apart.
            parts = len(rows) // k
            labels[rows] = count + np.minimum(np.arange(len(rows)) // k, parts - 1)
            count, done = count + parts, done + len(rows)
            state[DONE] = n // 2 + done // 2
            continue
        if len(rows) == n:
            with part(state, 0.5):
                labels_of_block = _by_ward(X, k, True, state)
        else:
            labels_of_block = _by_ward(np.ascontiguousarray(X[rows]), k, False, state)
        order = np.argsort(labels_of_block, kind="stable")
        cuts = np.flatnonzero(np.diff(labels_of_block[order])) + 1
        waiting += [rows[piece] for piece in np.split(order, cuts)]
    return Outcome(labels)
