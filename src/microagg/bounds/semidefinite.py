"""The semidefinite bound: what partitions lose at least, when shares need only be convex.

Bound     Let Z(i, j) be 1/s for two members of the same group of s, else 0. A partition's SSE is
          Σ H(i, j)·Z(i, j) with H half the squared distances. Z is symmetric and positive
          semidefinite, and its rows are as rows.py says. So for any W that is positive
          semidefinite and any A with A(i, j) = −A(j, i),
              SSE ≥ Σ (H − W + A)·Z ≥ Σᵢ (least cost of row i under H − W + A).
          With W = A = 0 this is the neighbour bound. What a row costs at least can be taken as the price
          of its record: no group costs less than its records pay.
Idea      The best W and A are the dual of a semidefinite program, with two copies of Z: one with the right
          rows, one that is symmetric and semidefinite. They are brought together by the method of
          multipliers (multipliers.py): rows are projected, the other copy loses its negative
          eigenvalues, which are, times ρ, the W of the next round.
Blocks    W may be a sum of matrices, each for a few records. Groups are small and near, so
          that blocks of neighbours, which overlap, prove nearly as much as one of all records, in a
          time that is linear in their number. Tables of many records are cut into regions,
          each with blocks of its own records only.
Cuts      What holds for all partitions raises the bound further: see inequalities.py. With islands the sum
          of prices is proved, but not that no group costs less than its records pay.
Paper     None: the relaxation of Peng & Wei 2007 for k-means, here with bounds on group sizes, which
          take the place of a fixed number of groups; the method of multipliers as in Wen, Goldfarb
          & Yin 2010.
Rounding  See multipliers.py. Prices are summed without error (math.fsum).
"""

from __future__ import annotations

import math
import time
from itertools import pairwise
from typing import Any

import numpy as np

from microagg.base.progress import DONE, STOP, State, part
from microagg.base.typing import Floats
from microagg.bounds.multipliers import UNDERFLOW, Region, Size, Solver
from microagg.bounds.program import solver_unit
from microagg.kernels.block_tree import build_tree
from microagg.kernels.halve import halves
from microagg.kernels.labels import canonical_labels
from microagg.kernels.mdav_groups import mdav_labels
from microagg.kernels.nearest_neighbours import nearest_neighbours

_REGION = 1_600_000  # records of a region, times those of a block
_OVERLAP = 6  # blocks that hold a record, about


def semidefinite_prices(X: Floats, k: int, size: Size, seconds: float, state: State) -> Floats:
    """Prices of records such that no partition costs less than their sum.

    Without islands no group of k to 2k−1 costs less than its records pay.

    After some seconds, or when asked to stop, the prices are those proved so far.

    >>> from microagg.base.progress import new_state
    >>> X = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> prices = semidefinite_prices(X, 2, Size(4, 40, 0.0), math.inf, new_state())
    >>> prices.round(2).tolist()
    [0.25, 0.25, 1.0, 1.0]
    """
    from threadpoolctl import threadpool_limits

    deadline = time.monotonic() + seconds
    # Products are kept in single precision, which a power of two keeps from overflow.
    factor = solver_unit(float(np.mean(X**2)))
    X = X * factor
    near, cost = _nearest(X, k - 1 if len(X) <= size.block else size.block, state)
    if state[STOP]:
        return np.zeros(len(X))
    # The neighbour bound's: for records that are not reached in time.
    prices: Floats = (
        cost[:, : k - 1].sum(axis=1) / k * (1 - (X.shape[1] + k + 9) * 2.0**-52) - UNDERFLOW
    )
    rows, first = halves(X, 1, max(2 * size.block, _REGION // size.block))
    # Blocks and rows are shared out to threads; those of the matrix library would wait in vain.
    with threadpool_limits(1):
        for number, (begin, end) in enumerate(pairwise(first)):
            left = deadline - time.monotonic()
            if state[STOP] or left <= 0:
                break
            own = np.sort(rows[begin:end])
            ends = time.monotonic() + left / (len(first) - 1 - number)
            region = _region(X, own, near, cost, size.block, state)
            better = Solver(region, k, size, state).run(ends, int(begin))
            if better.sum() > prices[own].sum():
                prices[own] = better
            state[DONE] = end
    return prices / factor**2


def proved_by(prices: Floats) -> float:
    """Return the lower bound on the SSE that such prices prove."""
    rounding = 2.0**-52 * math.fsum(np.abs(prices)) + len(prices) * 2.0**-1074
    return max(0.0, math.fsum(prices) - rounding)


def _nearest(X: Floats, length: int, state: State) -> tuple[Any, Floats]:
    """Find the nearest of each record, nearest first, and what these pairs cost."""
    n = len(X)
    tree = build_tree(X)
    lists = nearest_neighbours(tree, min(length, n - 1), state, 0)
    near, cost = np.empty(lists.position.shape, np.int32), np.empty(lists.square.shape)
    near[tree.rows], cost[tree.rows] = tree.rows[lists.position], lists.square / 2
    return near, cost


def _region(X: Floats, rows: Any, near: Any, cost: Floats, block: int, state: State) -> Region:
    """Return what is known about some records, and their blocks."""
    number = np.full(len(X), -1, np.int32)
    number[rows] = np.arange(len(rows))
    complete = len(X) <= block or near.shape[1] == len(X) - 1
    limit = np.full(len(rows), np.inf) if complete else cost[rows, -1]
    records = np.ascontiguousarray(X[rows])
    return Region(
        records, number[near[rows]], cost[rows], limit, *_blocks_of(records, block, state)
    )


def _blocks_of(X: Floats, m: int, state: State) -> tuple[Any, Any]:
    """Find the m records nearest to the centre of each of some cells, ascending; none when stopped.

    Also the cell of each record, which is the number of a block that holds it.
    """
    n = len(X)
    if n <= m:
        return np.arange(n, dtype=np.int32)[None], np.zeros(n, np.int64)
    with part(state, 0.0):
        labels = mdav_labels(X, max(1, m // _OVERLAP), state)
    if state[STOP]:
        return np.empty((0, m), np.int32), labels
    labels = canonical_labels(labels)
    sums = np.stack([np.bincount(labels, values) for values in X.T], axis=1)
    centres = sums / np.bincount(labels)[:, None]
    squares = (X**2).sum(axis=1)
    members = np.empty((len(centres), m), np.int32)
    for c, cell in enumerate(centres):
        away = squares - 2 * (X @ cell)
        away[labels == c] = -np.inf  # a cell is in its block, so that all records are in one
        members[c] = np.sort(np.argpartition(away, m - 1)[:m])
    return members, labels
