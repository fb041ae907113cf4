"""The records that are left while groups are formed one after the other.

Methods that work from the outside in ask three things of them, again and again: the one farthest
from their centroid, those nearest to a record, the one farthest from a record. The first is
answered by shells around the centroid, the others by a tree; both are made anew when they
are worn. The centroid is a running total in doubled precision.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.groups import Floats, Labels
from microagg.kernels.jit import kernel, subkernel
from microagg.kernels.kd_tree import WIDTH, Tree, build, remove
from microagg.kernels.shells import Shells, build_shells, farthest_in_shells, leave
from microagg.kernels.sums import add_row

__all__ = ["Left", "all_left", "outermost", "renewed", "take"]


class Left(NamedTuple):
    """The records left, their tree and shells, their total."""

    X: Floats
    labels: Labels  # −1 for those that are left
    tree: Tree
    shells: Shells
    high: Any  # (d,) the total
    low: Any
    centroid: Any  # (d,) scratch
    enough: int  # with no more records left than these the tree is worn


def all_left(X: Floats) -> Left:
    """Begin with all records of X."""
    n, d = X.shape
    high, low = np.zeros(d), np.zeros(d)
    _total(X, high, low)
    return _around(X, np.full(n, -1), build(X, np.arange(n)), high, low)


def renewed(left: Left) -> Left:
    """Build new shells around the present centroid, and a new tree if it is half empty."""
    rows = np.flatnonzero(left.labels < 0)
    tree = build(left.X, rows) if len(rows) <= left.enough else left.tree
    return _around(left.X, left.labels, tree, left.high, left.low)


def _around(X: Floats, labels: Labels, tree: Tree, high: Floats, low: Floats) -> Left:
    rows = np.flatnonzero(labels < 0)
    centroid = (high + low) / max(len(rows), 1)
    shells = build_shells(X, rows, centroid)
    return Left(X, labels, tree, shells, high, low, centroid, tree.rows.size // 2 - WIDTH)


@kernel
def _total(X, high, low):
    for i in range(X.shape[0]):
        add_row(high, low, X[i], 1.0)


@subkernel
def take(left, row, group):
    """Give a record a label and take it away."""
    left.labels[row] = group
    remove(left.tree, row)
    leave(left.shells, row)
    add_row(left.high, left.low, left.X[row], -1.0)


@subkernel
def outermost(left, m):
    """Row of the record farthest from the centroid of the m left; whether shells are worn."""
    for j in range(left.centroid.size):
        left.centroid[j] = (left.high[j] + left.low[j]) / m
    return farthest_in_shells(left.shells, left.centroid)
