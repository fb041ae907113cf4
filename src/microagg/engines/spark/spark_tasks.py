"""Which task of Spark works on which chunk.

Spark sends a row to a task by a hash of its key. Left to chance, two large chunks often meet in one task,
which works on them one after the other while other processors wait. So chunks travel under numbers that are
chosen by their hashes: each gets a task of its own as long as there are enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Labels

MOST_TASKS = 4096
_SEED = 42
_AT_ONCE = 256  # numbers that are tried for each chunk


def travelling_numbers(chunks: int, tasks: int) -> Labels:
    """Return the number under which each chunk travels: chunk c goes to task c mod ``tasks``.

    The chunk is the remainder of its number by the number of chunks.

    >>> numbers = travelling_numbers(5, 5)
    >>> (numbers % 5).tolist(), task_of(numbers, 5).tolist()
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    """
    found = np.arange(chunks, dtype=np.int64)
    left = found[task_of(found, tasks) != found % tasks]
    steps = chunks * np.arange(_AT_ONCE, dtype=np.int64)
    while len(left):
        tried = found[left][:, None] + steps
        fits = task_of(tried, tasks) == (left % tasks)[:, None]
        found[left] = tried[np.arange(len(left)), fits.argmax(axis=1)]
        missed = left[~fits.any(axis=1)]
        found[missed] += chunks * _AT_ONCE
        left = missed
    return found


def task_of(keys: Labels, tasks: int) -> Labels:
    """Return the task to which Spark sends each key, a whole number of 64 bits: by Murmur3.

    If Spark did otherwise one day, some tasks would have several chunks; nothing else would change.
    """
    words = keys.astype(np.int64).view(np.uint64)
    mixed: Any = np.uint32(_SEED)
    for half in (words.astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32)):
        own = _turned(half * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        mixed = _turned(mixed ^ own, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    mixed = mixed ^ np.uint32(8)  # bytes of a key
    mixed = (mixed ^ (mixed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    mixed = mixed ^ (mixed >> np.uint32(16))
    return np.asarray(mixed.view(np.int32).astype(np.int64) % tasks)


def _turned(words: Any, bits: int) -> Any:
    """Turn words of 32 bits by some bits to the left."""
    return (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
