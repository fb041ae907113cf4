"""Halving rows along their widest column: how every k-d tree and every set of cells is made."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Floats
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.compile.threads import helpers, share_growing

_MANY = 50_000  # records from which on threads halve them faster than one


@lean_subkernel
def enclose(X, rows, start, stop, low, high):
    """Fill in the box around rows[start:stop], at least one; return its widest column."""
    for j in range(low.size):
        low[j] = high[j] = X[rows[start], j]
    for a in range(start + 1, stop):
        row = rows[a]
        for j in range(low.size):
            low[j], high[j] = min(low[j], X[row, j]), max(high[j], X[row, j])
    widest = 0
    for j in range(low.size):
        if high[j] - low[j] > high[widest] - low[widest]:
            widest = j
    return widest


@lean_subkernel
def select(keys, rows, start, stop, target):
    """Reorder rows[start:stop] and their keys so that lower ones are before ``target``.

    Hoare's quickselect. Equal keys go by row number: among duplicates a leaf then holds
    neighbouring rows, and searches that break ties by row number end early.

    Parameters
    ----------
    keys : doubles, one for each position of ``rows``; reordered
    rows : whole numbers; reordered
    start, stop : the positions that take part
    target : start..stop; the ``target − start`` least come before it
    """
    low, high = start, stop - 1
    while low < high:
        key, row = keys[(low + high) // 2], rows[(low + high) // 2]
        a, b = low, high
        while a <= b:
            while keys[a] < key or (keys[a] == key and rows[a] < row):
                a += 1
            while keys[b] > key or (keys[b] == key and rows[b] > row):
                b -= 1
            if a <= b:
                keys[a], keys[b] = keys[b], keys[a]
                rows[a], rows[b] = rows[b], rows[a]
                a += 1
                b -= 1
        if target <= b:
            high = b
        elif target >= a:
            low = a
        else:
            break


@lean_subkernel
def halve(X, rows, start, stop, target, low, high, keys):
    """Reorder rows[start:stop] so that those before ``target`` are lower in their widest column.

    Parameters
    ----------
    X : (n, d) doubles
    rows : row numbers; reordered
    start, stop, target : positions in ``rows``, at least one before ``stop``
    low, high : (d,), filled with their box
    keys : scratch, as long as ``rows``
    """
    column = enclose(X, rows, start, stop, low, high)
    for a in range(start, stop):
        keys[a] = X[rows[a], column]
    select(keys, rows, start, stop, target)


@kernel
def _halve_all(X, rows, start, stop, k, most, keys):
    """Halve rows[start:stop] again and again; return where the parts begin and the last ends."""
    d = X.shape[1]
    low, high = np.empty(d), np.empty(d)
    first, count = np.zeros((stop - start) // k + 2, np.intp), 0
    first[0] = start
    ends = np.empty(64, np.intp)  # of what is still to be halved, the nearest on top
    ends[0], top = stop, 1
    while top > 0:
        begin, end = first[count], ends[top - 1]
        if end - begin > most:
            ends[top] = begin + k * ((end - begin) // (2 * k))
            halve(X, rows, begin, end, ends[top], low, high, keys)
            top += 1
        else:
            count, top = count + 1, top - 1
            first[count] = end
    return first[: count + 1]


def halves(X: Floats, k: int, most: int) -> tuple[Any, Any]:
    """Halve the table along its widest column, by multiples of k, to blocks of at most ``most``.

    Returns the rows block by block, and where each begins and the last ends.

    Parameters
    ----------
    X : (n, d) doubles; never written to
    k : sizes of blocks are multiples of it, but for the last
    most : records of a block
    """
    n = len(X)
    rows, keys = np.arange(n), np.empty(n)
    threads = 1 + (helpers() if n >= _MANY else 0)
    if threads == 1:
        return rows, _halve_all(X, rows, 0, n, k, most, keys)
    small = max(most, n // (2 * threads))
    places: list[Any] = []  # where blocks begin

    def work(part: tuple[int, int]) -> list[tuple[int, int]]:
        start, stop = part
        if stop - start <= small:
            places.append(_halve_all(X, rows, start, stop, k, most, keys)[:-1])
            return []
        _, middle, _ = _halve_all(X, rows, start, stop, k, stop - start - 1, keys)  # once
        return [(start, int(middle)), (int(middle), stop)]

    share_growing(work, [(0, n)])
    return rows, np.append(np.sort(np.concatenate(places)), n)


# Which leaf of a halving tree each record falls into.


@lean_kernel
def leaves_of(X, directions, thresholds, leaves):
    """Fill in the leaf of each row of X.

    Node i has the children 2i + 1 and 2i + 2. Below the last node are the leaves, from left to right.

    Parameters
    ----------
    X : (n, d) doubles
    directions : (nodes, d); the nodes are a full tree, 2^levels − 1
    thresholds : (nodes,); a row goes to the second child if its product with the direction is no less
    leaves : (n,) whole numbers; filled
    """
    inner, d = directions.shape
    for i in range(X.shape[0]):
        node = 0
        while node < inner:
            along = 0.0
            for j in range(d):
                along += X[i, j] * directions[node, j]
            node = 2 * node + (2 if along >= thresholds[node] else 1)
        leaves[i] = node - inner
