"""From rows to sorted values and back: the order of a column, and labels in the caller's order.

Problem   Sort n doubles, keep the row of each, and later give every row the number of its group.
Idea      A value and its row fit into one whole number: the bits of a double, read as a whole
          number, are in the order of the doubles; counted from the least value, and short of
          their last bits if need be, they leave room for the row below them. Whole
          numbers are sorted several times faster than an order of them is found. Values that
          differ in the last bits alone come out in the order of their rows and are put right by
          insertion. Rows and values are read one after the other as far as possible; both
          threads work on halves: of the rows while sorting, of the sorted values after.
Cost      O(n log n); 20 bytes a value.
Here      Equal values, among them 0 and −0, stay in the order of their rows. Where insertion takes
          too long, as for values close together beside others of the opposite sign, numpy's
          stable sort is used.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from microagg.groups import Floats, Labels
from microagg.kernels.lean import lean_kernel, lean_subkernel

__all__ = ["WORTH_TWO_THREADS", "in_two_threads", "labels_by_row", "sorted_order"]

T = TypeVar("T")
Rows = NDArray[np.signedinteger]

# Threads pay from about this many values on.
WORTH_TWO_THREADS = 200_000
_FEW_MOVES = 2  # a value, while inserting


def in_two_threads(first: Callable[[], T], second: Callable[[], T], both: bool = True) -> list[T]:
    """Run two functions at the same time, or the first alone if not ``both``."""
    if not both:
        return [first()]
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="microagg") as pool:
        other = pool.submit(second)
        return [first(), other.result()]


def sorted_order(x: Floats) -> tuple[Rows, Floats]:
    """Rows in the order of their values, equal ones as they come, and the sorted values.

    >>> rows, values = sorted_order(np.array([3.0, -1.0, 2.0, -1.0]))
    >>> rows.tolist(), values.tolist()
    ([1, 3, 2, 0], [-1.0, -1.0, 2.0, 3.0])
    """
    n = len(x)
    room = n.bit_length()
    least = _place(float(x.min()))
    cut_off = max((_place(float(x.max())) - least).bit_length() + room - 64, 0)
    bits, mask = x.view(np.int64), np.uint64(2**room - 1)
    kind = np.int32 if n < 2**31 else np.int64

    def sorted_keys(first: int, last: int) -> NDArray[np.uint64]:
        keys = np.empty(last - first, dtype=np.uint64)
        _pack(bits, first, np.int64(least), np.uint64(cut_off), np.uint64(room), keys)
        keys.sort()
        return keys

    rows: Rows = np.empty(n, dtype=kind)
    values = np.empty(n)
    if n < WORTH_TWO_THREADS:
        done = _take(sorted_keys(0, n), mask, x, rows, values)
    else:
        half = n // 2
        parts = in_two_threads(partial(sorted_keys, 0, half), partial(sorted_keys, half, n))
        in_two_threads(
            partial(_merge_up, *parts, mask, rows[:half]),
            partial(_merge_down, *parts, mask, rows[half:]),
        )
        del parts
        done = all(
            in_two_threads(
                partial(_take, rows[:half], mask, x, rows[:half], values[:half]),
                partial(_take, rows[half:], mask, x, rows[half:], values[half:]),
            )
        ) and _join(rows, values, half)
    if not done:
        order = np.argsort(x, kind="stable")
        return order.astype(kind), x[order]
    return rows, values


def _place(value: float) -> int:
    """Place of a double among all of them, counted from 0."""
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else -(2**63) - bits


@lean_kernel
def _pack(bits, first, least, cut_off, room, keys):
    """Put the place of each value, counted from the least, and its row into one number."""
    for t in range(keys.size):
        place = bits[first + t]
        if place < 0:
            place = np.int64(-(2**63)) - place
        keys[t] = ((np.uint64(place - least) >> cut_off) << room) | np.uint64(first + t)


@lean_kernel
def _merge_up(a, b, mask, rows):
    """Rows of the lower half of two sorted parts that differ in length by one at most."""
    s, t = 0, 0
    for out in range(rows.size):
        left, right = a[s], b[t]
        rows[out] = min(left, right) & mask
        s += left < right
        t += right < left


@lean_kernel
def _merge_down(a, b, mask, rows):
    """Rows of the upper half, from the end."""
    s, t = a.size - 1, b.size - 1
    for out in range(rows.size - 1, -1, -1):
        left, right = a[s] if s >= 0 else np.uint64(0), b[t]
        rows[out] = max(left, right) & mask
        s -= left > right
        t -= right > left


@lean_kernel
def _take(keys, mask, x, rows, values):
    """Rows in the order of their keys, and their values, which so are nearly sorted: insertion.

    Return whether that took few moves.
    """
    moves = _FEW_MOVES * rows.size
    for t in range(rows.size):
        row = np.int64(keys[t] & mask)
        moves -= _insert(rows, values, t, row, x[row])
        if moves < 0:
            return False
    return True


@lean_kernel
def _join(rows, values, half):
    """Make one of two sorted halves of which few values are in the wrong one."""
    moves = _FEW_MOVES * rows.size
    t = half
    while moves >= 0 and t < rows.size and values[t - 1] > values[t]:
        moves -= _insert(rows, values, t, rows[t], values[t])
        t += 1
    return moves >= 0


@lean_subkernel
def _insert(rows, values, t, row, value):
    """Put a row and its value among the first t; return by how many places before the end."""
    s = t
    while s > 0 and values[s - 1] > value:
        values[s], rows[s] = values[s - 1], rows[s - 1]
        s -= 1
    values[s], rows[s] = value, row
    return t - s


def labels_by_row(rows: Rows, ends: Labels) -> Labels:
    """Labels in the caller's order, numbered by first appearance, of groups cut in sorted order.

    >>> labels_by_row(np.array([1, 3, 2, 0]), np.array([2, 4])).tolist()
    [0, 1, 0, 1]
    """
    groups = len(ends)
    half = groups // 2 if len(rows) >= WORTH_TWO_THREADS else groups
    # Groups in the order of their first rows: row and group in one number, as above.
    room = groups.bit_length()
    keys = np.empty(groups, dtype=np.int64)
    in_two_threads(
        partial(_first_rows, rows, ends, 0, half, room, keys),
        partial(_first_rows, rows, ends, half, groups, room, keys),
        half < groups,
    )
    keys.sort()
    numbers, labels = np.empty(groups, dtype=np.int64), np.empty(len(rows), dtype=np.int64)
    _number(keys, np.int64(2**room - 1), numbers)
    in_two_threads(
        partial(_scatter, rows, ends, 0, half, numbers, labels),
        partial(_scatter, rows, ends, half, groups, numbers, labels),
        half < groups,
    )
    return labels


@lean_kernel
def _first_rows(rows, ends, first, last, room, keys):
    start = ends[first - 1] if first > 0 else 0
    for g in range(first, last):
        least = np.int64(rows[start])
        for t in range(start + 1, ends[g]):
            least = min(least, np.int64(rows[t]))
        keys[g] = (least << room) | g
        start = ends[g]


@lean_kernel
def _number(keys, mask, numbers):
    for place in range(keys.size):
        numbers[keys[place] & mask] = place


@lean_kernel
def _scatter(rows, ends, first, last, numbers, labels):
    start = ends[first - 1] if first > 0 else 0
    for g in range(first, last):
        for t in range(start, ends[g]):
            labels[rows[t]] = numbers[g]
        start = ends[g]
