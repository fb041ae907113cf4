"""From rows to sorted values and back: the order of a column, and labels in the caller's order.

Problem   Sort n doubles, keep the row of each, and later give every row the number of its group; with
          all processors.
Idea      Values of a sample split the order into parts of about a hundred thousand. Rows and values are
          dealt out to these, and each part is sorted by itself, within a cache. There a value and
          its place in the part fit into one whole number: the bits of a double, read as a whole number,
          are in the order of the doubles; counted from the least value of the part, and short of
          their last bits if need be, they leave room for the place below them. Whole numbers are
          sorted several times faster than an order of them is found. Values that differ in the
          last bits alone come out in the order of their rows and are put right by insertion.
Cost      O(n log n); 14 bytes a value.
Here      Equal values, among them 0 and −0, stay in the order of their rows, whatever the number of
          threads. A value that is frequent enough to be a split has a part of its own, in which there
          is nothing to sort. Where insertion takes too long, as for values close together next to
          others of the opposite sign, a part is sorted by numpy's stable sort.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel, lean_subkernel
from microagg.compile.threads import each

Rows = NDArray[np.signedinteger]

_PART = 1 << 17  # values in a part of the order, at most about
_CHUNK = 1 << 19  # rows that are dealt out at a time, or more where there would be too many chunks
_MOST_CHUNKS = 256
_MOST_SPLITS = 1 << 15  # so that the number of a part fits into 16 bits
_SAMPLED = 32  # values of the sample for each split
_FEW_MOVES = 2  # a value, while inserting


def sorted_order(x: Floats) -> tuple[Rows, Floats]:
    """Rows in the order of their values, equal ones as they come, and the sorted values.

    >>> rows, values = sorted_order(np.array([3.0, -1.0, 2.0, -1.0]))
    >>> rows.tolist(), values.tolist()
    ([1, 3, 2, 0], [-1.0, -1.0, 2.0, 3.0])
    """
    n = len(x)
    kind = np.int32 if n < 2**31 else np.int64
    if n <= _PART:
        rows: Rows = np.arange(n, dtype=kind)
        values = x.copy()
        _sort_part(rows, values)
        return rows, values
    rows, values = np.empty(n, dtype=kind), np.empty(n)
    borders = _deal_out(x, rows, values)

    def sort(part: int) -> None:
        low, high = borders[2 * part : 2 * part + 2]
        _sort_part(rows[low:high], values[low:high])

    each(sort, len(borders) // 2)
    return rows, values


def _deal_out(x: Floats, rows: Rows, values: Floats) -> list[int]:
    """Bring values and their rows into the parts of the order to which they belong.

    Return where the parts begin, and the number of values: those at odd places hold equal values.
    """
    n = len(x)
    splits = _splits(x)
    tree = _tree(splits)
    parts = np.empty(n, dtype=np.uint16)
    size = max(_CHUNK, -(-n // _MOST_CHUNKS))
    chunks = -(-n // size)
    counts = np.zeros((chunks, 2 * len(splits)), dtype=np.int64)

    def count(chunk: int) -> None:
        rows_of_chunk = slice(chunk * size, (chunk + 1) * size)
        _find_parts(x[rows_of_chunk], splits, tree, parts[rows_of_chunk], counts[chunk])

    def deal(chunk: int) -> None:
        _deal(x, parts, chunk * size, min((chunk + 1) * size, n), at[chunk], rows, values)

    each(count, chunks)
    borders = np.append(0, np.cumsum(counts.sum(axis=0)))
    at = borders[:-1] + np.cumsum(counts, axis=0) - counts
    each(deal, chunks)
    return borders.tolist()


def _splits(x: Floats) -> Floats:
    """Find 2^m values that cut the order into parts of similar size; the last may be beyond all."""
    n = len(x)
    wanted = min(1 << (-(-n // _PART) - 1).bit_length(), _MOST_SPLITS)
    at = np.random.default_rng(0).integers(0, n, wanted * _SAMPLED)
    splits = np.full(wanted, np.inf)
    values = np.unique(np.sort(x[at])[_SAMPLED::_SAMPLED])
    splits[: len(values)] = values
    return splits


def _tree(splits: Floats) -> Floats:
    """List the splits as bisection meets them: the middle, then those of both halves, and so on.

    The way down from place t goes on at 2t or 2t + 1, by a sum instead of a jump that nobody foresees.
    """
    tree, size, step = np.empty(len(splits)), 1, len(splits)
    while size < len(splits):
        tree[size : 2 * size] = splits[step // 2 - 1 :: step]
        size, step = 2 * size, step // 2
    return tree


@lean_kernel
def _find_parts(x, splits, tree, parts, counts):
    """Find the part of each value, and count the values of each part.

    Twice the number of splits that are less, and one more for a value that is a split itself.
    """
    size = np.uint64(tree.size)
    for t in range(x.size):
        at = np.uint64(1)
        while at < size:
            at += at + np.uint64(tree[at] < x[t])
        at -= size
        part = at + at + np.uint64(splits[at] == x[t])
        parts[t] = part
        counts[part] += 1


@lean_kernel
def _deal(x, parts, first, last, at, rows, values):
    """Put rows and their values where their parts go on."""
    for row in range(first, last):
        part = parts[row]
        slot = at[part]
        rows[slot], values[slot] = row, x[row]
        at[part] = slot + 1


def _sort_part(rows: Rows, values: Floats) -> None:
    """Sort rows by their values, both in place."""
    n = len(rows)
    if n < 2:
        return
    old_rows, old_values, keys = rows.copy(), values.copy(), np.empty(n, dtype=np.uint64)
    room = n.bit_length()
    _pack(old_values.view(np.int64), np.uint64(room), keys)
    keys.sort()
    if not _take(keys, np.uint64(2**room - 1), old_rows, old_values, rows, values):
        order = np.argsort(old_values, kind="stable")
        rows[:], values[:] = old_rows[order], old_values[order]


@lean_subkernel
def _place(bits):
    """Place of a double among all of them, counted from that of 0."""
    return bits if bits >= 0 else np.int64(-(2**63)) - bits


@lean_kernel
def _pack(bits, room, keys):
    """Put the rank of each value, counted from the least, and its place into one number."""
    least = most = _place(bits[0])
    for t in range(1, keys.size):
        least, most = min(least, _place(bits[t])), max(most, _place(bits[t]))
    cut_off, widest = np.uint64(0), np.uint64(most - least)
    while widest >> cut_off >> (np.uint64(64) - room) > 0:
        cut_off += np.uint64(1)
    for t in range(keys.size):
        keys[t] = (np.uint64(_place(bits[t]) - least) >> cut_off) << room | np.uint64(t)


@lean_kernel
def _take(keys, mask, old_rows, old_values, rows, values):
    """Rows and values in the order of their keys, which so are nearly sorted: insertion.

    Return whether that took few moves.
    """
    moves = _FEW_MOVES * keys.size
    for t in range(keys.size):
        index = np.int64(keys[t] & mask)
        row, value = old_rows[index], old_values[index]
        s = t
        while s > 0 and values[s - 1] > value:
            values[s], rows[s] = values[s - 1], rows[s - 1]
            s -= 1
        values[s], rows[s] = value, row
        moves -= t - s
        if moves < 0:
            return False
    return True


def labels_by_row(rows: Rows, ends: Labels) -> Labels:
    """Labels in the caller's order, numbered by first appearance, of groups cut in sorted order.

    >>> labels_by_row(np.array([1, 3, 2, 0]), np.array([2, 4])).tolist()
    [0, 1, 0, 1]
    """
    n, groups = len(rows), len(ends)
    pieces = -(-n // _CHUNK)
    labels, numbers = np.zeros(n, dtype=np.int64), np.empty(groups, dtype=np.int64)
    borders = [groups * piece // pieces for piece in range(pieces + 1)]
    each(lambda at: _mark_first_rows(rows, ends, *borders[at : at + 2], labels), pieces)
    _number(labels, numbers)
    each(lambda at: _scatter(rows, ends, *borders[at : at + 2], numbers, labels), pieces)
    return labels


@lean_kernel
def _mark_first_rows(rows, ends, first, last, labels):
    """Write the number of each group, counted from 1 in sorted order, at the first of its rows."""
    start = ends[first - 1] if first > 0 else 0
    for g in range(first, last):
        least = np.int64(rows[start])
        for t in range(start + 1, ends[g]):
            least = min(least, np.int64(rows[t]))
        labels[least] = g + 1
        start = ends[g]


@lean_kernel
def _number(marks, numbers):
    """Label the groups that are marked, in the order of the rows."""
    number = 0
    for mark in marks:
        if mark > 0:
            numbers[mark - 1] = number
            number += 1


@lean_kernel
def _scatter(rows, ends, first, last, numbers, labels):
    start = ends[first - 1] if first > 0 else 0
    for g in range(first, last):
        for t in range(start, ends[g]):
            labels[rows[t]] = numbers[g]
        start = ends[g]
