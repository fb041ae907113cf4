"""A heap of numbered items, least key first, in which keys may change.

An item's key is a pair of floats; equal keys go by number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.compile.jit import lean_kernel, lean_subkernel


class Heap(NamedTuple):
    """``items[0]`` is the first; ``index`` says where in ``items`` each one stands, −1 for nowhere."""

    key: Any  # (n, 2)
    items: Any  # (n,)
    index: Any  # (n,)
    size: Any  # (1,)


def new_heap(n: int) -> Heap:
    """Make an empty heap for the items 0..n−1."""
    return Heap(
        np.empty((n, 2)), np.empty(n, np.intp), np.full(n, -1, np.intp), np.zeros(1, np.intp)
    )


@lean_subkernel
def _before(key, a, b):
    for c in range(2):
        if key[a, c] != key[b, c]:
            return key[a, c] < key[b, c]
    return a < b


@lean_subkernel
def _settle(heap, at, item):
    """Find the place of an item, from a free place on, up or down."""
    key, items, index, size = heap.key, heap.items, heap.index, heap.size[0]
    while at > 0 and _before(key, item, items[(at - 1) // 2]):
        items[at] = items[(at - 1) // 2]
        index[items[at]] = at
        at = (at - 1) // 2
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and _before(key, items[child + 1], items[child]):
            child += 1
        if not _before(key, items[child], item):
            break
        items[at] = items[child]
        index[items[at]] = at
        at = child
    items[at], index[item] = item, at


@lean_kernel
def put(heap, item, first, second):
    """Put an item in, or change its key.

    Parameters
    ----------
    heap : of n items; written to
    item : 0..n−1
    first, second : its key, doubles; pairs are compared by the first, equal ones by the second, then by item
    """
    at = heap.index[item]
    if at < 0:
        at = heap.size[0]
        heap.size[0] += 1
    heap.key[item, 0], heap.key[item, 1] = first, second
    _settle(heap, at, item)


@lean_subkernel
def take_out(heap, item):
    """Take an item, 0..n−1, out of the heap, if it is in."""
    at = heap.index[item]
    if at < 0:
        return
    heap.index[item] = -1
    heap.size[0] -= 1
    last = heap.items[heap.size[0]]
    if last != item:
        _settle(heap, at, last)


@lean_subkernel
def pop(heap):
    """Take the item with the least key out of a heap that has one, and return its number."""
    item = heap.items[0]
    take_out(heap, item)
    return item
