"""Halving rows along their widest column: how every k-d tree and every set of cells is made."""

from __future__ import annotations

import numpy as np

from microagg.kernels.jit import kernel
from microagg.kernels.lean import lean_subkernel

__all__ = ["enclose", "halve", "halves", "select"]


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

    Their box is left in ``low`` and ``high``; ``keys`` is scratch, as long as ``rows``.
    """
    column = enclose(X, rows, start, stop, low, high)
    for a in range(start, stop):
        keys[a] = X[rows[a], column]
    select(keys, rows, start, stop, target)


@kernel
def halves(X, k, most):
    """Halve the table along its widest column, by multiples of k, to blocks of at most ``most``.

    Returns the rows block by block, and where each begins and the last ends.
    """
    n, d = X.shape
    rows, keys, low, high = np.arange(n), np.empty(n), np.empty(d), np.empty(d)
    first, count = np.zeros(n // k + 1, np.intp), 0
    ends = np.empty(64, np.intp)  # of what is still to be halved, the nearest on top
    ends[0], top = n, 1
    while top > 0:
        start, stop = first[count], ends[top - 1]
        if stop - start > most:
            middle = start + k * ((stop - start) // (2 * k))
            halve(X, rows, start, stop, middle, low, high, keys)
            ends[top] = middle
            top += 1
        else:
            count, top = count + 1, top - 1
            first[count] = stop
    return rows, first[: count + 1]
