"""One kernel over many records by several threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

__all__ = ["in_pieces"]

_LENGTH = 4096


def in_pieces(work: Callable[[int, int], object], n: int) -> None:
    """Call ``work(start, stop)`` for pieces of 0..n, which must not depend on one another.

    >>> parts = []
    >>> in_pieces(lambda start, stop: parts.append((start, stop)), 10)
    >>> parts
    [(0, 10)]
    """
    starts = range(0, n, _LENGTH)
    if len(starts) <= 1:
        work(0, n)
        return
    with ThreadPoolExecutor(min(os.cpu_count() or 1, len(starts))) as pool:
        for done in [pool.submit(work, start, min(start + _LENGTH, n)) for start in starts]:
            done.result()
