"""Distinct units: at least k persons, firms or households in each group, not only k records.

Problem. Several records may belong to one unit. A group of k records of one household hides the records
among each other, but not the household.

Idea. Groups with fewer than k distinct units are merged with the group whose merger costs least, by
Ward's formula (SSE rises by n₁n₂/(n₁+n₂)·|c₁−c₂|²). In a round every such group looks for its cheapest
partner among its nearest centroids, and the mergers are made from the cheapest on, each group in one
of them at most; rounds go on until no group is short. Each round at least halves the groups that are
short or finds them a partner, so that there are about log g rounds of O(g log g) in few columns.
A union of groups has the distinct units of both, so that merging never makes it worse.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.errors import InputError
from microagg.groups import Floats, Labels, canonical_labels
from microagg.kernels.require_kinds import DISTINCT
from microagg.require.requirement import Demand, Requirement
from microagg.settings import check_count

__all__ = ["Units", "check_units", "distinct_units", "merge_for_units"]

_NEIGHBOURS = 8


@dataclass(frozen=True, eq=False)
class Units(Requirement):
    """At least ``least`` distinct units in every group.

    Parameters
    ----------
    units : whole numbers of shape (n,), the unit of each record
    least : int, at least 1; k where the promise is about units
    column : name of the column, for messages

    >>> wanted = Units(np.array([5, 5, 7]), 2, "household")
    >>> wanted.violation([0, 1]), wanted.violation([1, 2])
    (0.5, 0.0)
    """

    units: Labels = field(repr=False)
    least: int
    column: str = ""

    def __post_init__(self) -> None:
        check_count("k, the least number of units in a group,", self.least)

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        own = np.unique(self.units, return_inverse=True)[1].reshape(-1)
        return Demand(DISTINCT, float(self.least), own, np.ones(len(own)))

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        of = f" ({self.column})" if self.column else ""
        return f"at least {self.least} distinct units{of} in each group"

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        return _too_few(self.least, self.column, len(np.unique(self.units)))


def _too_few(k: int, column: str, found: int) -> str:
    return f"k={k} needs at least {k} distinct values of the unit {column}; the table has {found}. Lower k."


def check_units(units: Labels, k: int, column: str) -> None:
    """Refuse a table with fewer than k distinct units, where no groups could keep the promise."""
    found = len(np.unique(units))
    if found < k:
        raise InputError(_too_few(k, column, found))


def distinct_units(labels: Labels, units: Labels) -> Labels:
    """Count the distinct units of each group.

    >>> distinct_units(np.array([0, 0, 0, 1]), np.array([5, 5, 7, 5])).tolist()
    [2, 1]
    """
    pairs = np.unique(np.column_stack([labels, units]), axis=0)
    return np.bincount(pairs[:, 0], minlength=int(labels.max()) + 1)


def merge_for_units(X: Floats, labels: Labels, units: Labels, k: int) -> Labels:
    """Merge groups of scaled records until each has at least k distinct units.

    Parameters
    ----------
    X : float64 array of shape (n, d), scaled
    labels : int64 array of shape (n,), groups 0..g-1
    units : int64 array of shape (n,), the unit of each record
    k : least number of distinct units; the table has that many

    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> merge_for_units(X, np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2]), 2).tolist()
    [0, 0, 0, 0]
    """
    labels = canonical_labels(labels)
    while True:
        short = np.flatnonzero(distinct_units(labels, units) < k)
        if not len(short):
            return labels
        labels = canonical_labels(_merge_round(X, labels, short))


def _merge_round(X: Floats, labels: Labels, short: Labels) -> Labels:
    """Merge each short group with its cheapest partner, as far as partners are free."""
    from scipy.spatial import cKDTree

    sizes = np.bincount(labels)
    g = len(sizes)
    centroids = np.column_stack([np.bincount(labels, weights=x) / sizes for x in X.T])
    near = min(_NEIGHBOURS + 1, g)
    distance, other = cKDTree(centroids).query(centroids[short], near)
    first = np.repeat(short, near)
    second, squared = other.reshape(-1), np.square(distance.reshape(-1))
    cost = squared * sizes[first] * sizes[second] / (sizes[first] + sizes[second])
    partner = np.arange(g)
    taken = np.zeros(g, dtype=bool)
    for at in np.lexsort((second, first, cost)):
        a, b = first[at], second[at]
        if a != b and not taken[a] and not taken[b]:
            partner[max(a, b)] = min(a, b)
            taken[a] = taken[b] = True
    return np.asarray(partner[labels])
