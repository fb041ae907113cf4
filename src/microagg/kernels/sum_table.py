"""Sums by key in a table with open addressing; a slot whose first sum is 0 is empty.

Keys are hashes already: the low bits of one tell its slot, the high ones its part when a table is
written out in parts.
"""

from __future__ import annotations

import numpy as np

from microagg.compile.jit import kernel, lean_kernel, lean_subkernel

PART_BITS = 6
PARTS = 1 << PART_BITS
_ODD = np.uint64(0x825C890B2759E585)


@lean_subkernel
def _place(key):
    """Return a number whose bits are those of the key, or of its two hashes."""
    if key.size == 2:
        return key[0]
    return key[0] + key[2] * _ODD


@lean_kernel
def put(entries, added, begin, keys, sums, used, most):
    """Add entries to a table, from one on, until the next would need more slots than it may have.

    Parameters
    ----------
    entries, added : (m, width) uint64 keys, and (m, sums) numbers to add, the first of them not 0
    begin : the first entry to add
    keys, sums : (slots, width) and (slots, sums), a power of two of slots, 0 where empty; written to
    used : slots in use
    most : slots that may be used, fewer than there are

    Returns
    -------
    the first entry that was not added, m if there is none; slots in use
    """
    width, count = keys.shape[1], sums.shape[1]
    mask = np.uint64(keys.shape[0] - 1)
    for a in range(begin, entries.shape[0]):
        slot = _place(entries[a]) & mask
        while sums[slot, 0] != 0:
            same = True
            for j in range(width):
                same &= keys[slot, j] == entries[a, j]
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
        if sums[slot, 0] == 0:
            if used == most:
                return a, used
            used += 1
            for j in range(width):
                keys[slot, j] = entries[a, j]
        for j in range(count):
            sums[slot, j] += added[a, j]
    return entries.shape[0], used


@kernel
def spread_out(keys, sums, depth, rows, starts):
    """Write the entries of a table, those of one part side by side.

    Parameters
    ----------
    keys, sums : (slots, width) and (slots, sums), as :func:`put` leaves them
    depth : 0 for the highest bits of a key, 1 for the next …: these decide on the part
    rows : (used, width + sums) uint64; filled with keys and sums
    starts : (PARTS + 1,) zeros; filled with where each part begins, and where the last ends
    """
    width, count = keys.shape[1], sums.shape[1]
    shift = np.uint64(64 - PART_BITS * (depth + 1))
    last = np.uint64(PARTS - 1)
    for slot in range(keys.shape[0]):
        if sums[slot, 0] != 0:
            starts[((_place(keys[slot]) >> shift) & last) + np.uint64(1)] += 1
    for part in range(PARTS):
        starts[part + 1] += starts[part]
    cursor = starts[:-1].copy()
    for slot in range(keys.shape[0]):
        if sums[slot, 0] != 0:
            part = (_place(keys[slot]) >> shift) & last
            at = cursor[part]
            cursor[part] += 1
            for j in range(width):
                rows[at, j] = keys[slot, j]
            for j in range(count):
                rows[at, width + j] = np.uint64(sums[slot, j])
