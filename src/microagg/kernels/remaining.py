"""The records that are left while groups are formed one after the other.

Methods that work from the outside in ask three things of them, again and again: the one farthest
from their centroid, those nearest to a record, the one farthest from a record. The first is
answered by shells around the centroid, the others by a tree; both are made anew when they
are worn. The centroid is a running total in doubled precision. Where all are few, the shells answer
everything and there is no tree, which would take much longer to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from microagg.base.progress import STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.compile.threads import share_with_helpers
from microagg.kernels.doubled_sums import add_row, two_sum
from microagg.kernels.kd_search import farthest, in_order, nearest, nearest_one
from microagg.kernels.kd_tree import NO_ROW, WIDTH, KdTree, build, remove
from microagg.kernels.shells import (
    build_shells,
    farthest_in_shells,
    leave,
    nearest_in_shells,
)

_MANY = 20_000  # records from which on tree and shells are built at the same time


class Remaining(NamedTuple):
    """The records left, their tree and shells, their total."""

    X: Floats
    labels: Labels  # −1 for those that are left
    tree: KdTree | None  # None where shells answer all
    shells: Any  # Shells
    high: Any  # (d,) the total
    low: Any
    centroid: Any  # (d,) scratch
    weights: Any  # (n,), or None where all records weigh the same
    mass: Any  # (2,) the total weight of those left, high and low part; None without weights
    enough: int  # with no more records left than these the tree is worn


def _renewed(remaining: Remaining, in_tree: bool) -> Remaining:
    """Build new shells around the present centroid, and a new tree if the old one is half empty."""
    X, mass = remaining.X, remaining.mass
    rows = np.flatnonzero(remaining.labels < 0)
    divisor = max(len(rows), 1) if mass is None or not len(rows) else mass.sum()
    centroid = (remaining.high + remaining.low) / divisor
    if not in_tree:  # new shells when they are half empty, as a tree
        shells = build_shells(X, rows, centroid, patience=len(rows))
        return remaining._replace(shells=shells, centroid=centroid, enough=len(rows) // 2)
    made: dict[int, Any] = {1: remaining.tree if len(rows) > remaining.enough else None}

    def work(begin: int, end: int, _: int) -> None:
        for part in range(begin, end):
            made[part] = build(X, rows) if part else build_shells(X, rows, centroid)

    share_with_helpers(work, 1 if made[1] else 2, at_once=1 if len(rows) >= _MANY else 2)
    enough = made[1].rows.size // 2 - WIDTH
    return remaining._replace(tree=made[1], shells=made[0], centroid=centroid, enough=enough)


def in_rounds(
    X: Floats,
    least: int,
    go_on: Callable[[Remaining, int, int], tuple[int, int]],
    state: State,
    weights: Floats | None = None,
    in_tree: bool = True,
) -> tuple[Labels, int, int]:
    """Form groups until fewer than ``least`` records are left, with a new tree and shells as needed.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    least : records that must be left for another group
    go_on : given the records left, their number and that of the groups, forms groups until something is
        worn, and returns both numbers
    state : the wish to stop
    weights : (n,) above 0, for a weighted centroid; None: all weigh the same
    in_tree : False: shells answer all, for few records

    Returns
    -------
    (n,) labels, −1 for records left; how many are left; the number of groups
    """
    n, d = X.shape
    mass = None if weights is None else np.zeros(2)
    high, low = np.zeros(d), np.zeros(d)
    _add_all(X, high, low, weights, mass)
    # Neither shells nor a tree so far; they would hold all records.
    bare = Remaining(X, np.full(n, -1), None, None, high, low, high, weights, mass, n)
    remaining = _renewed(bare, in_tree)
    m, group = go_on(remaining, n, 0)
    while m >= least and not state[STOP]:
        remaining = _renewed(remaining, in_tree)
        m, group = go_on(remaining, m, group)
    return remaining.labels, m, group


@lean_kernel
def _add_all(X, high, low, weights, mass):
    for i in range(X.shape[0]):
        _add(X, high, low, weights, mass, i, 1.0)


@lean_subkernel
def _add(X, high, low, weights, mass, row, sign):
    """Add a record to the totals, or take it away."""
    if weights is None:
        add_row(high, low, X[row], sign)
    else:
        add_row(high, low, X[row], sign * weights[row])
        s, e = two_sum(mass[0], sign * weights[row])
        mass[0], mass[1] = two_sum(s, e + mass[1])


@lean_subkernel
def _mass_of(mass, m):
    """Return the divisor of the total: the number of the records left, or their weight."""
    if mass is None:
        return m
    return mass[0] + mass[1]


@lean_subkernel
def take(remaining, row, group):
    """Give a record a label, and take it away from the records left.

    Parameters
    ----------
    remaining : written to
    row : a record that is left
    group : its label, no less than 0
    """
    _remove(remaining.tree, row)
    take_but_in_tree(remaining, row, group)


@lean_subkernel
def _remove(tree, row):
    if tree is not None:
        remove(tree, row)


@lean_subkernel
def take_but_in_tree(remaining, row, group):
    """Do the same except in the tree: the record must be removed from it before the next search."""
    remaining.labels[row] = group
    leave(remaining.shells, row)
    _add(remaining.X, remaining.high, remaining.low, remaining.weights, remaining.mass, row, -1.0)


@lean_subkernel
def settle_centroid(remaining, m):
    """Compute the centroid of the m left from their total."""
    mass = _mass_of(remaining.mass, m)
    for j in range(remaining.centroid.size):
        remaining.centroid[j] = (remaining.high[j] + remaining.low[j]) / mass


@lean_subkernel
def outermost(remaining, m):
    """Return the row farthest from the centroid of the ``m`` records left, and whether shells are worn.

    The centroid is left in ``remaining.centroid``.
    """
    settle_centroid(remaining, m)
    return farthest_in_shells(remaining.shells, remaining.centroid)


@lean_subkernel
def farthest_remaining(tree, shells, point):
    """Row of the record farthest from a point."""
    if tree is None:
        return farthest_in_shells(shells, point)[0]
    return farthest(tree, point)


@lean_subkernel
def nearest_remaining(tree, shells, point, k, distances, rows):
    """Find the k records nearest to a point, as ``kd_search.nearest`` does."""
    if tree is None:
        return nearest_in_shells(shells, point, k, distances, rows)
    return nearest(tree, point, k, distances, rows)


@lean_subkernel
def nearest_one_remaining(tree, shells, point, distances, rows):
    """Row of the record nearest to a point; the last two are scratch."""
    if tree is None:
        nearest_in_shells(shells, point, 1, distances, rows)
        return rows[0]
    return nearest_one(tree, point, NO_ROW, np.inf, NO_ROW, -1.0)[1]


# A group around a record: the others that join it, taken from the records that are left.


@lean_subkernel
def form(remaining, moving, seed, k, group, distances, rows):
    """Give a record and the k−1 that join it a label, and take them away."""
    take(remaining, seed, group)
    gather(remaining, moving, seed, k, group, distances, rows)


@lean_subkernel
def gather(remaining, moving, seed, k, group, distances, rows):
    """Give the k−1 that join a record, which is taken away already, a label, and take them away.

    They leave in the order of joining: the last bits of a running total depend on it.
    """
    if moving is None:
        have = nearest_remaining(
            remaining.tree, remaining.shells, remaining.X[seed], k - 1, distances, rows
        )
        in_order(distances, rows, have)
        for a in range(have):
            take(remaining, rows[a], group)
    else:
        total, centre = moving[0], moving[1]
        for j in range(total.size):
            total[j] = centre[j] = remaining.X[seed, j]
        for size in range(2, k + 1):
            row = nearest_one_remaining(remaining.tree, remaining.shells, centre, distances, rows)
            take(remaining, row, group)
            for j in range(total.size):
                total[j] += remaining.X[row, j]
                centre[j] = total[j] / size
