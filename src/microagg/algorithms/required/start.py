"""A start that knows the requirements: groups from the outside in, grown until they lack nothing.

Problem   Groups made for k alone and merged afterwards are larger than needed: mergers join two groups where
          one more record, of another unit or another value, would have done.
Idea      As MDAV: the record farthest from the centroid of those without a group begins one. Of the records
          nearest to it the group takes the one whose distance is least for what it brings (a unit or
          a value that it lacks, a share that brings it closer), until nothing is lacking. Where the
          nearest do not suffice, twice as many are looked at, up to a limit; then the nearest k stay
          together, for merging to repair. Large tables are cut into blocks first.
Cost      As MDAV, times the records looked at for each that is taken. A heuristic.
Paper     MDAV by Domingo-Ferrer & Torra 2005; the growing is our own.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.refine.pool import grow, measure, new_pool
from microagg.base.progress import STOP, State, part
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_subkernel
from microagg.compile.threads import share_out
from microagg.kernels.halve import halves
from microagg.kernels.kd_search import nearest
from microagg.kernels.labels import canonical_labels
from microagg.kernels.remaining import Left, all_left, in_rounds, outermost, take
from microagg.kernels.require_kinds import Demands

_BLOCK = 16_384  # records at most
_TIMES = 4  # as many records are looked at as a group would need, at first
_LIMIT = 256  # records looked at, at most


@lean_subkernel
def _sort(rows, distances, have):
    """Order the heap of a search by distance, then row."""
    for a in range(1, have):
        row, distance, b = rows[a], distances[a], a
        while b > 0 and (
            distances[b - 1] > distance or (distances[b - 1] == distance and rows[b - 1] > row)
        ):
            rows[b], distances[b] = rows[b - 1], distances[b - 1]
            b -= 1
        rows[b], distances[b] = row, distance


@lean_subkernel
def _take_group(left, weights, demands, seed, k, looked, limit, group, pool, rows, distances):
    """Give a record and those that complete its group a label; return how many were taken and looked at."""
    take(left, seed, group)
    split = pool.split
    while True:
        have = nearest(left.tree, left.X[seed], looked - 1, distances, rows)
        _sort(rows, distances, have)
        pool.rows[0] = seed
        for a in range(have):
            pool.rows[a + 1] = rows[a]
        measure(left.X, weights, demands, pool, have + 1, False)
        for a in range(have + 1):
            pool.free[a] = a
        grow(pool, have + 1, k, 0, 0, have + 1, False)
        if split.tallies.short[0] == 0 or have < looked - 1 or looked >= limit:
            break
        looked = min(2 * looked, limit)
    if split.tallies.short[0] == 0:
        for a in range(1, split.size[0]):
            take(left, pool.rows[split.members[0, a]], group)
        return split.size[0], looked
    taken = min(k - 1, have)
    for a in range(taken):
        take(left, rows[a], group)
    return taken + 1, looked


@kernel
def rounds(left, weights, demands, m, k, limit, group, state):
    """Form groups until fewer than k of the m records remain, or tree or shells are worn."""
    pool = new_pool(limit, 1, left.X.shape[1], weights, demands)
    rows, distances = np.empty(limit, np.intp), np.empty(limit)
    first = min(_TIMES * k, limit)
    looked, worn = first, False
    while m >= k and m > left.enough and not worn and not state[STOP]:
        seed, worn = outermost(left, m)
        taken, looked = _take_group(
            left, weights, demands, seed, k, looked, limit, group, pool, rows, distances
        )
        looked = max(first, looked // 2)
        m -= taken
        group += 1
    return m, group


def _in_block(X: Floats, weights: Floats, demands: Demands, k: int, state: State) -> Labels:
    """Return labels 0, 1, … of one block; the few last records are a group of their own."""
    limit = min(max(_LIMIT, 4 * k), len(X))

    def go_on(left: Left, m: int, group: int) -> tuple[int, int]:
        counts: tuple[int, int] = rounds(left, weights, demands, m, k, limit, group, state)
        return counts

    labels, _, group = in_rounds(all_left(X), k, go_on, state)
    labels[labels < 0] = group
    return labels


def grown(X: Floats, weights: Floats, demands: Demands, k: int, state: State) -> Labels:
    """Grow groups that satisfy the demands as far as they can; merging must repair the rest.

    Returns groups 0, 1, … by first appearance; one group of all when stopped before they are complete.
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
