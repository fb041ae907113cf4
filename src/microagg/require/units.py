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

import numpy as np

from microagg.errors import InputError
from microagg.groups import Floats, Labels, canonical_labels

__all__ = ["check_units", "distinct_units", "merge_for_units"]

_NEIGHBOURS = 8


def check_units(units: Labels, k: int, column: str) -> None:
    """Refuse a table with fewer than k distinct units, where no groups could keep the promise."""
    found = len(np.unique(units))
    if found < k:
        raise InputError(
            f"k={k} needs at least {k} distinct values of the unit {column}; the table has {found}. Lower k."
        )


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
