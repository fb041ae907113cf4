"""Cuts on the number of groups in a set of records, and which of them a fractional solution breaks.

Cut       Groups that each hold ``need`` or more records of a set of m are at most m // need. The linear
          program over groups may hold m / need of them, in fractions (Chvátal & Gomory).
Triples   Of three records, at most one group holds two or more: subset-row cuts (Jepsen et al. 2008).
Islands   Records that fractions of groups hold together, and with no others, are m records in m / k
          groups where whole groups are m // k: twelve months of a utility are one group of ten or
          more, not 1.2. Here ``need`` is k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when first used, as few jobs do
from numpy.typing import NDArray

from microagg.base.typing import Floats, Members
from microagg.compile.jit import kernel, lean_subkernel

_VIOLATION = 0.02  # a cut that is broken by less is not worth a row
_FRACTION = 1e-7  # what is nearer to a whole number counts as one
_MOST_OF_A_RECORD = 4  # cuts in one round that hold the same record


class Sets(NamedTuple):
    """Sets of records, and how many of its records a group holds that counts for a set.

    >>> Sets(np.array([[0, 1, 2, -1], [3, 4, 5, 6]], np.int32), np.array([2, 4])).most.tolist()
    [1, 1]
    """

    members: Members  # (sets, width) filled up with −1
    need: NDArray[np.intp]  # (sets,)

    @property
    def most(self) -> NDArray[np.intp]:
        """How many groups count for a set at most."""
        most: NDArray[np.intp] = np.count_nonzero(self.members >= 0, axis=1) // self.need
        return most

    def extended(self, others: Sets) -> Sets:
        """Return these sets and then others."""
        width = max(self.members.shape[1], others.members.shape[1])
        rows = [
            np.pad(each, ((0, 0), (0, width - each.shape[1])), constant_values=-1)
            for each in (self.members, others.members)
        ]
        return Sets(np.concatenate(rows), np.concatenate([self.need, others.need]))

    def counting(self, groups: Members) -> scipy.sparse.csr_matrix:
        """Mark which groups count for which sets, as ones: shape (groups, sets)."""
        n = int(max(groups.max(initial=-1), self.members.max(initial=-1))) + 1
        held = (_incidence(groups, n) @ _incidence(self.members, n).T).tocoo()
        counts = held.data >= self.need[held.col]
        ones, where = np.ones(int(counts.sum())), (held.row[counts], held.col[counts])
        return scipy.sparse.csr_matrix((ones, where), shape=held.shape)


class Cuts(NamedTuple):
    """Sets of records, and what a group pays that counts for one."""

    sets: Sets
    penalties: Floats  # (sets,), at least 0


class DualPrices(NamedTuple):
    """Prices of records and penalties of cuts, with the bound that they prove."""

    duals: Floats
    cuts: Cuts
    bound: float


NO_SETS = Sets(np.empty((0, 0), np.int32), np.empty(0, np.intp))
NO_CUTS = Cuts(NO_SETS, np.empty(0))


def _incidence(members: Members, n: int) -> scipy.sparse.csr_matrix:
    """Mark which sets hold which of n records, as ones: shape (sets, n)."""
    owner, position = np.nonzero(members >= 0)
    ones = np.ones(len(owner), np.int32)
    return scipy.sparse.csr_matrix(
        (ones, (owner, members[owner, position])), shape=(len(members), n)
    )


def broken_cuts(n: int, k: int, members: Members, x: Floats, most: int) -> Sets:
    """Find sets for which more groups count than whole groups could.

    Parameters
    ----------
    n, k : number of records, and least size of a group
    members : (m, 2k − 1) groups as record numbers, filled up with −1
    x : (m,) fraction of each group that a relaxed program chose
    most : sets of each kind that are returned at most, the most broken ones
    """
    fractional = (x > _FRACTION) & (x < 1 - _FRACTION)
    members, x = np.ascontiguousarray(members[fractional]), x[fractional]
    return broken_islands(n, k, members, x, most).extended(broken_triples(n, members, x, most))


def broken_islands(n: int, k: int, members: Members, x: Floats, most: int) -> Sets:
    """Find records that groups hold together, where these are more than whole groups could be.

    >>> groups = np.array([[0, 1, -1], [1, 2, -1], [0, 2, -1], [3, 4, 5]], np.int32)
    >>> broken_islands(6, 2, groups, np.array([0.5, 0.5, 0.5, 0.9]), 9).members.tolist()
    [[0, 1, 2]]
    """
    held = _incidence(members, n)
    _, island = scipy.sparse.csgraph.connected_components(held.T @ held, directed=False)
    weight = np.bincount(island[members[:, 0]], weights=x, minlength=n)
    sizes = np.bincount(island, minlength=n)
    excess = weight - sizes // k
    broken = np.argsort(-excess, kind="stable")[:most]
    broken = broken[excess[broken] > _VIOLATION]
    width = int(sizes[broken].max(initial=0))
    rows = np.full((len(broken), width), -1, np.int32)
    for row, number in zip(rows, broken, strict=True):
        row[: sizes[number]] = np.flatnonzero(island == number)
    return Sets(rows, np.full(len(broken), k))


@lean_subkernel
def _holds(members, column, row):
    holds = False
    for a in range(members.shape[1]):
        holds |= members[column, a] == row
    return holds


@lean_subkernel
def _weight(members, x, first, by_row, i, j, h):
    """Sum of x over the groups that hold at least two of three records."""
    total = 0.0
    for c in range(first[i], first[i + 1]):
        column = by_row[c]
        if _holds(members, column, j) or _holds(members, column, h):
            total += x[column]
    for c in range(first[j], first[j + 1]):
        column = by_row[c]
        if not _holds(members, column, i) and _holds(members, column, h):
            total += x[column]
    return total


@kernel
def _broken(members, x, first, by_row, least, triples, weights):
    """Write the triples whose weight exceeds ``least``; return how many there are."""
    n = first.size - 1
    near, seen, filled = np.empty(n, np.intp), np.full(n, -1, np.intp), 0
    for i in range(n):
        count = 0
        for c in range(first[i], first[i + 1]):
            for a in range(members.shape[1]):
                row = members[by_row[c], a]
                if row >= 0 and row != i and seen[row] != i:
                    seen[row] = i
                    near[count] = row
                    count += 1
        for a in range(count):
            for b in range(a):
                j, h = near[a], near[b]
                weight = _weight(members, x, first, by_row, i, j, h)
                if weight > least and filled < weights.size:
                    triples[filled, 0], triples[filled, 1], triples[filled, 2] = i, j, h
                    weights[filled] = weight
                    filled += 1
    return filled


def broken_triples(n: int, members: Members, x: Floats, most: int) -> Sets:
    """Find triples of records two or more of which are in groups of weight above 1.

    The most broken come first; at most ``most``, few with the same record.
    """
    column, position = np.nonzero(members >= 0)
    rows = members[column, position]
    by_row = column[np.argsort(rows, kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    triples, weights = np.empty((200_000, 3), np.int32), np.empty(200_000)
    count = _broken(members, x, first, by_row, 1 + _VIOLATION, triples, weights)
    # A triple is found from each of its records that shares groups with both others.
    unique, at = np.unique(np.sort(triples[:count], axis=1), axis=0, return_index=True)
    used = np.zeros(n, np.intp)
    chosen: list[Members] = []
    for t in np.argsort(-weights[at], kind="stable"):
        if len(chosen) < most and used[unique[t]].max() < _MOST_OF_A_RECORD:
            used[unique[t]] += 1
            chosen.append(unique[t])
    return Sets(np.array(chosen, dtype=np.int32).reshape(-1, 3), np.full(len(chosen), 2))
