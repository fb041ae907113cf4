"""Groups that satisfy requirements: grown from the outside in, then repaired by merging.

Repair by merging: groups that violate a requirement are united with others until none does.

Problem   Given any partition, make one that violates nothing out of whole groups, at a small SSE.
Idea      A violating group looks among the groups with the nearest centroids for the one that costs least
          for what it repairs: Ward's rise of the SSE, w₁w₂/(w₁+w₂)·|c₁−c₂|², over the violation that goes.
          The best of all such mergers is made, then the next. They wait in a heap; one whose groups
          changed meanwhile is weighed again when its turn comes. Where none of the nearest repairs
          anything, more are looked at, up to a limit; then the cheapest is taken.
          Requirements are closed under union, so that what satisfies them is never spoilt, and each merger
          leaves a group less: it ends, at the whole table at the latest.
Cost      A search in a tree and a few tallies a merger: O(v log g) for v violating groups among g, in few
          columns, plus the tallies of the groups. A heuristic.
Paper     None for the requirements together; merging for t-closeness is Soria-Comas et al. 2015, Algorithm 1
          (soria_comas.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.algorithms.refine.pool import grow, measure, new_pool
from microagg.base.progress import STOP, State, part
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_subkernel, subkernel
from microagg.compile.threads import share_out
from microagg.kernels.distances import squares_to
from microagg.kernels.halve import halves
from microagg.kernels.heap import new_heap, pop, put, take_out
from microagg.kernels.kd_search import in_order, nearest
from microagg.kernels.kd_tree import KdTree, build, move, remove
from microagg.kernels.labels import canonical_labels
from microagg.kernels.remaining import Remaining, in_rounds, outermost, take
from microagg.kernels.require_demands import violation_of
from microagg.kernels.require_kinds import Demands

_NEAR, _FAR = 8, 256  # groups looked at, first and at most
_MANY = 2_000  # records of a union whose tallies are not worth more than the first few looks


class _MergingGroups(NamedTuple):
    """Groups as lists linked through their records."""

    head: Any  # (groups,)
    tail: Any  # (groups,)
    after: Any  # (n,)
    size: Any  # (groups,)
    mass: Any  # (groups,)
    centroid: Any  # (groups, d)
    short: Any  # (groups,) violation
    into: Any  # (groups,) the group that one was united with; itself while it exists


@kernel
def _form(X, weights, demands, labels, n_groups, k):
    n, d = X.shape
    groups = _MergingGroups(
        np.full(n_groups, -1, np.intp),
        np.full(n_groups, -1, np.intp),
        np.full(n, -1, np.intp),
        np.zeros(n_groups, np.intp),
        np.zeros(n_groups),
        np.zeros((n_groups, d)),
        np.empty(n_groups),
        np.arange(n_groups),
    )
    for i in range(n):
        g = labels[i]
        if groups.head[g] < 0:
            groups.head[g] = i
        else:
            groups.after[groups.tail[g]] = i
        groups.tail[g] = i
        groups.size[g] += 1
        groups.mass[g] += weights[i]
        for j in range(d):
            groups.centroid[g, j] += weights[i] * X[i, j]
    most = 0
    for g in range(n_groups):  # a loop: numba's own maximum takes a second to compile
        most = max(most, groups.size[g])
    rows = np.empty(most, np.intp)
    for g in range(n_groups):
        for j in range(d):
            groups.centroid[g, j] /= groups.mass[g]
        groups.short[g] = violation_of(demands, rows, _list(groups, g, rows, 0), k)
    return groups


@lean_subkernel
def _list(groups, g, rows, m):
    """Write the records of a group to rows[m:]; return where they end."""
    x = groups.head[g]
    while x >= 0:
        rows[m] = x
        m += 1
        x = groups.after[x]
    return m


@subkernel
def _partner(groups, demands, tree, k, a, alive, near, squares):
    """Find the group to unite a violating one with, and the two parts of its key in the heap.

    The first is 0 for a merger that repairs something, whose second is its cost for what it
    repairs, and 1 for one that does not, which so comes after all others.
    """
    wanted = min(_NEAR, alive - 1)
    while True:
        have = nearest(tree, groups.centroid[a], wanted + 1, squares, near)
        best, least, cheapest, cost = -1, np.inf, -1, np.inf
        for c in range(have):
            b = near[c]
            if b == a:
                continue
            square = squares_to(groups.centroid, a, groups.centroid[b])
            rise = square * groups.mass[a] * groups.mass[b] / (groups.mass[a] + groups.mass[b])
            if rise < cost or (rise == cost and b < cheapest):
                cheapest, cost = b, rise
            size = groups.size[a] + groups.size[b]
            lacking = groups.short[a] + groups.short[b]
            if rise > least * lacking or (size > _MANY and best >= 0):
                continue
            rows = np.empty(size, np.intp)
            _list(groups, b, rows, _list(groups, a, rows, 0))
            gain = lacking - violation_of(demands, rows, size, k)
            if gain > 0 and (rise / gain < least or (rise / gain == least and b < best)):
                best, least = b, rise / gain
        if best >= 0:
            return best, 0.0, least
        if wanted == alive - 1 or wanted >= _FAR:
            return cheapest, 1.0, cost
        wanted = min(4 * wanted, alive - 1)


@kernel
def _mergers(groups, demands, tree, heap, k, alive, enough):
    """Unite groups until none violates anything or only ``enough`` remain; return how many do.

    The heap is empty at first, then holds all violating groups.
    """
    near, squares = np.empty(_FAR * 4 + 1, np.intp), np.empty(_FAR * 4 + 1)
    for g in range(groups.size.size):
        if groups.short[g] > 0 and groups.into[g] == g and alive > 1:
            _, late, cost = _partner(groups, demands, tree, k, g, alive, near, squares)
            put(heap, g, late, cost)
    while heap.size[0] > 0 and alive > max(enough, 1):
        a = pop(heap)
        b, late, cost = _partner(groups, demands, tree, k, a, alive, near, squares)
        if heap.size[0] > 0:
            following = heap.items[0]
            first, second = heap.key[following, 0], heap.key[following, 1]
            if late > first or (late == first and cost > second):
                put(heap, a, late, cost)  # no longer the best; after one round all keys are fresh
                continue
        a, b = min(a, b), max(a, b)
        take_out(heap, a)
        take_out(heap, b)
        mass = groups.mass[a] + groups.mass[b]
        for j in range(groups.centroid.shape[1]):
            # As a step from one to the other, so that equal centroids stay as they are.
            gap = groups.centroid[b, j] - groups.centroid[a, j]
            groups.centroid[a, j] += gap * (groups.mass[b] / mass)
        groups.mass[a], groups.size[a] = mass, groups.size[a] + groups.size[b]
        groups.after[groups.tail[a]] = groups.head[b]
        groups.tail[a], groups.into[b] = groups.tail[b], a
        rows = np.empty(groups.size[a], np.intp)
        groups.short[a] = violation_of(demands, rows, _list(groups, a, rows, 0), k)
        remove(tree, b)
        move(tree, a, groups.centroid[a])
        alive -= 1
        if groups.short[a] > 0 and alive > 1:
            _, late, cost = _partner(groups, demands, tree, k, a, alive, near, squares)
            put(heap, a, late, cost)
    return alive


def merge(X: Floats, weights: Floats, demands: Demands, labels: Labels, k: int) -> Labels:
    """Unite groups until none violates anything.

    The whole table satisfies the demands. Groups count from 0, afterwards by first appearance, and are unions
    of given ones.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    weights : (n,) above 0, for the centroids
    demands : of the same n records
    labels : (n,) int64, groups 0..g−1; never written to
    k : least number of records

    Returns
    -------
    (n,) int64, the caller's
    """
    n_groups = int(labels.max()) + 1
    # A copy can be written to: labels that cannot would be compiled for once more.
    groups = _form(X, weights, demands, labels.copy(), n_groups, k)
    alive, into = n_groups, groups.into
    while alive > 1:
        remaining = np.flatnonzero(into == np.arange(n_groups))
        if not groups.short[remaining].any():
            break
        # A tree whose points went or moved finds them more slowly: it is made anew now and then.
        tree: KdTree = build(groups.centroid, remaining)
        alive = _mergers(groups, demands, tree, new_heap(n_groups), k, alive, alive // 2)
    while (into[into] != into).any():
        into = into[into]
    return canonical_labels(into[labels])


# A start that knows the requirements: groups from the outside in, grown until they lack nothing.
#
# Problem   Groups made for k alone and merged afterwards are larger than needed: mergers join two groups
#           where one more record, of another unit or another value, would have done.
# Idea      As MDAV: the record farthest from the centroid of those without a group begins one. Of the records
#           nearest to it the group takes the one whose distance is least for what it brings (a unit or
#           a value that it lacks, a share that brings it closer), until nothing is lacking. Where the
#           nearest do not suffice, twice as many are looked at, up to a limit; then the nearest k stay
#           together, for merging to repair. Large tables are cut into blocks first.
# Cost      As MDAV, times the records looked at for each that is taken. A heuristic.
# Paper     MDAV by Domingo-Ferrer & Torra 2005; the growing is our own.

_BLOCK = 16_384  # records at most
_TIMES = 4  # as many records are looked at as a group would need, at first
_LIMIT = 256  # records looked at, at most


@lean_subkernel
def _take_group(remaining, weights, demands, seed, k, looked, limit, group, pool, rows, distances):
    """Give a record and those that complete its group a label; return how many were taken and looked at."""
    take(remaining, seed, group)
    split = pool.split
    while True:
        have = nearest(remaining.tree, remaining.X[seed], looked - 1, distances, rows)
        in_order(distances, rows, have)
        pool.rows[0] = seed
        for a in range(have):
            pool.rows[a + 1] = rows[a]
        measure(remaining.X, weights, demands, pool, have + 1, False)
        for a in range(have + 1):
            pool.free[a] = a
        grow(pool, have + 1, k, 0, 0, have + 1, False)
        if split.tallies.short[0] == 0 or have < looked - 1 or looked >= limit:
            break
        looked = min(2 * looked, limit)
    if split.tallies.short[0] == 0:
        for a in range(1, split.size[0]):
            take(remaining, pool.rows[split.members[0, a]], group)
        return split.size[0], looked
    joined = min(k - 1, have)
    for a in range(joined):
        take(remaining, rows[a], group)
    return joined + 1, looked


@kernel
def rounds(remaining, weights, demands, m, k, limit, group, state):
    """Form groups until fewer than k of the m records remain, or tree or shells are worn."""
    pool = new_pool(limit, 1, remaining.X.shape[1], weights, demands)
    rows, distances = np.empty(limit, np.intp), np.empty(limit)
    first = min(_TIMES * k, limit)
    looked, worn = first, False
    while m >= k and m > remaining.enough and not worn and not state[STOP]:
        seed, worn = outermost(remaining, m)
        joined, looked = _take_group(
            remaining, weights, demands, seed, k, looked, limit, group, pool, rows, distances
        )
        looked = max(first, looked // 2)
        m -= joined
        group += 1
    return m, group


def _in_block(X: Floats, weights: Floats, demands: Demands, k: int, state: State) -> Labels:
    """Return labels 0, 1, … of one block; the few last records are a group of their own."""
    limit = min(max(_LIMIT, 4 * k), len(X))

    def go_on(remaining: Remaining, m: int, group: int) -> Any:
        return rounds(remaining, weights, demands, m, k, limit, group, state)

    labels, _, group = in_rounds(X, k, go_on, state)
    labels[labels < 0] = group
    return labels


def grown(X: Floats, weights: Floats, demands: Demands, k: int, state: State) -> Labels:
    """Grow groups that satisfy the demands as far as they can; merging must repair the rest.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    weights : (n,) above 0
    demands : requirements in addition to k, of the n records
    k : least size of a group
    state : progress, and the wish to stop

    Returns
    -------
    (n,) int64, the caller's, by first appearance; one group of all when stopped before they are complete
    """
    rows, first = halves(X, k, max(_BLOCK, 2 * k - 1))
    labels = np.empty(len(X), dtype=np.int64)

    def work(begin: int, end: int, _: int) -> None:
        for b in range(begin, end):
            block = np.sort(rows[first[b] : first[b + 1]])
            here = demands._replace(
                codes=np.ascontiguousarray(demands.codes[:, block]),
                amounts=np.ascontiguousarray(demands.amounts[:, block]),
            )
            groups = _in_block(np.ascontiguousarray(X[block]), weights[block], here, k, state)
            labels[block] = first[b] + groups

    with part(state, 0.0):
        share_out(work, len(first) - 1, state, at_once=1)
        if state[STOP]:
            return np.zeros(len(X), dtype=np.int64)
    return canonical_labels(labels)
