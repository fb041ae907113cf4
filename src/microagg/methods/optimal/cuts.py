"""Finding subset-row cuts: triples of records that a fractional solution covers too often."""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats, Members
from microagg.kernels.jit import kernel, subkernel

_VIOLATION = 0.02  # a cut that is broken by less is not worth a row
_MOST_OF_A_RECORD = 4  # cuts in one round that hold the same record


@subkernel
def _holds(members, column, row):
    found = False
    for a in range(members.shape[1]):
        found |= members[column, a] == row
    return found


@subkernel
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
    near, seen, found = np.empty(n, np.intp), np.full(n, -1, np.intp), 0
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
                if weight > least and found < weights.size:
                    triples[found, 0], triples[found, 1], triples[found, 2] = i, j, h
                    weights[found] = weight
                    found += 1
    return found


def broken_triples(n: int, members: Members, x: Floats, most: int) -> Members:
    """Triples of records of which a solution holds two or more in groups of weight above 1.

    The most broken come first; at most ``most``, few with the same record.
    """
    part = np.flatnonzero((x > 1e-7) & (x < 1 - 1e-7))
    members, x = np.ascontiguousarray(members[part]), x[part]
    column, place = np.nonzero(members >= 0)
    rows = members[column, place]
    by_row = column[np.argsort(rows, kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    triples, weights = np.empty((200_000, 3), np.int32), np.empty(200_000)
    found = _broken(members, x, first, by_row, 1 + _VIOLATION, triples, weights)
    # A triple is found from each of its records that shares groups with both others.
    unique, at = np.unique(np.sort(triples[:found], axis=1), axis=0, return_index=True)
    used = np.zeros(n, np.intp)
    chosen: list[Members] = []
    for t in np.argsort(-weights[at], kind="stable"):
        if len(chosen) < most and used[unique[t]].max() < _MOST_OF_A_RECORD:
            used[unique[t]] += 1
            chosen.append(unique[t])
    return np.array(chosen, dtype=np.int32).reshape(-1, 3)
