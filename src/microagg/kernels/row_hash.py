"""A hash of 128 bits of the values of each record, column after column.

A value is one or more words of 64 bits; the first says how many follow, so that no two different
rows give the same words. Each word is mixed into two numbers of 64 bits a row: xored into the
first and multiplied into the second, and both go through two rounds of multiplying and of folding high bits
on low ones, with other constants. A missing value is no word: it moves both numbers by constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.compile.jit import lean_kernel, lean_subkernel

# Odd numbers drawn at random, about half of their bits set.
_A1, _A2 = np.uint64(0xBF7DFB226C76C0CD), np.uint64(0x639081F5C99428BB)
_B0, _B1 = np.uint64(0xCD9885AFAADF8B25), np.uint64(0x8B4C4C7F0CE32641)
_B2 = np.uint64(0xFAF0AB2740F20135)
_START_A, _START_B = np.uint64(0x739C1DD120C8FE15), np.uint64(0xC56281D95D08760B)
_NULL_A, _NULL_B = np.uint64(0x83335E8F588EEBFB), np.uint64(0x60F930D48B6CA003)
_LARGE = np.uint64(0x2037A59FB9BC3AB3)  # mixed in after a whole number of 2^63 and more
_U0, _U1, _U8 = np.uint64(0), np.uint64(1), np.uint64(8)
_U29, _U31, _U32, _U33, _U56 = (np.uint64(i) for i in (29, 31, 32, 33, 56))


@lean_subkernel
def _fold_a(x):
    x = (x ^ (x >> _U32)) * _A1
    x = (x ^ (x >> _U29)) * _A2
    return x ^ (x >> _U32)


@lean_subkernel
def _fold_b(x):
    x = (x ^ (x >> _U31)) * _B1
    x = (x ^ (x >> _U33)) * _B2
    return x ^ (x >> _U31)


@lean_subkernel
def _mix(keys, i, word):
    keys[i, 0] = _fold_a(keys[i, 0] ^ word)
    keys[i, 1] = _fold_b(keys[i, 1] + word * _B0)


@lean_subkernel
def _mix_null(keys, i):
    keys[i, 0] = _fold_a(keys[i, 0] + _NULL_A)
    keys[i, 1] = _fold_b(keys[i, 1] + _NULL_B)


@lean_subkernel
def _is_there(valid, i):
    """Return whether bit i of a bitmap is set; an empty one stands for ones only."""
    return valid.size == 0 or (valid[i >> 3] >> (i & 7)) & 1


@lean_kernel
def _start(keys, seed):
    for i in range(keys.shape[0]):
        keys[i, 0] = _fold_a(seed ^ _START_A)
        keys[i, 1] = _fold_b(seed + _START_B)


def start(n: int, seed: int) -> Any:
    """Return keys of ``n`` rows without a column, (n, 2) uint64, the caller's; they differ by ``seed``."""
    keys = np.empty((n, 2), np.uint64)
    _start(keys, np.uint64(seed))
    return keys


@lean_kernel
def hash_words(words, unsigned, valid, first, keys):
    """Mix in a column of values of a fixed width.

    Parameters
    ----------
    words : (n, words) uint64, the bits of each value
    unsigned : whether a word with the highest bit set is a large number rather than a negative one
    valid : bytes of a bitmap as in Arrow, bit 0 for missing; empty where no value is missing
    first : the bit of the first row
    keys : (n, 2) uint64; written to
    """
    for i in range(words.shape[0]):
        if _is_there(valid, first + i):
            for j in range(words.shape[1]):
                _mix(keys, i, words[i, j])
            if unsigned and words[i, 0] >> np.uint64(63) == _U1:
                _mix(keys, i, _LARGE)
        else:
            _mix_null(keys, i)


@lean_subkernel
def _word(data, begin, end):
    """Up to eight bytes as one number."""
    word = _U0
    for at in range(end - 1, begin - 1, -1):
        word = (word << _U8) | np.uint64(data[at])
    return word


@lean_kernel
def hash_bytes(offsets, data, valid, first, keys):
    """Mix in a column of texts or bytes.

    Parameters
    ----------
    offsets, data : (n + 1,) int64 and uint8; value i is ``data[offsets[i]:offsets[i + 1]]``
    valid, first, keys : as in :func:`hash_words`
    """
    for i in range(offsets.size - 1):
        if not _is_there(valid, first + i):
            _mix_null(keys, i)
            continue
        begin, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        length = np.uint64(end - begin)
        if end - begin < 8:  # as most texts are: one word, its highest byte the length
            _mix(keys, i, _word(data, begin, end) | (length << _U56))
            continue
        _mix(keys, i, length | (_U8 << _U56))
        for at in range(begin, end, 8):
            _mix(keys, i, _word(data, at, min(at + 8, end)))
