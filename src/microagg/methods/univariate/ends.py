"""Ends of the best groups: an algorithm run over the sorted values, in two threads if that pays.

Problem   Best partitions of the first 1, 2, 3, … values build on one another, which leaves nothing
          to do for a second thread.
Idea      Where the partitions of all columns still needed go through one column, what lies
          before it no longer matters, since only differences decide. So a second thread starts
          a little before the middle, as if the values began there. If both find the same starts
          at the middle, back to a column that all partitions needed go through, then all later
          starts of the second thread are those that the first would find. Else the first goes on.
Cost      Half of that of one thread where partitions meet within a few k² values, as on most data;
          evenly spaced values are an exception, and cost what they cost one thread.
Here      Both threads decide exactly, so the groups do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from microagg.groups import Floats, Labels
from microagg.kernels.lean import lean_kernel
from microagg.methods.univariate.line import (
    NOTHING,
    OVERLAP,
    PLACE,
    SETTLED,
    UNTIL,
    Extra,
    Line,
    new_line,
)
from microagg.methods.univariate.order import WORTH_TWO_THREADS, in_two_threads
from microagg.progress import BESIDE, DONE, STOP, State

__all__ = ["best_ends", "meet", "overlap_for", "trace"]

Fill = Callable[[Line, State], None]


def best_ends(
    fill: Fill, x: Floats, k: int, cost: int, state: State, extra: Extra = NOTHING
) -> Labels:
    """Ends of the groups of sorted values by the algorithm ``fill``."""
    n = len(x)
    line = new_line(x, k, cost, extra)
    ends = np.empty(n // k if extra.lack is None else n, dtype=np.int64)
    g, column = len(ends), n
    overlap = overlap_for(k)
    if n >= max(WORTH_TWO_THREADS, 8 * overlap) and extra == NOTHING:
        middle = (n + overlap) // 2
        start = middle - overlap
        line.q[PLACE, UNTIL] = middle
        second = new_line(x[start:], k, cost)
        second.q[PLACE, OVERLAP] = overlap
        in_two_threads(partial(fill, line, state), partial(fill, second, state))
        if not state[STOP] and meet(line.back, second.back, start, middle, k):
            g, column = _trace(second.back, start, n - start, overlap, ends, g)
            state[DONE] = n
        state[BESIDE] = 0
        line.q[PLACE, UNTIL] = column
    if line.q[PLACE, SETTLED] < column:
        fill(line, state)
    if line.q[PLACE, SETTLED] < column:  # told to stop: nobody will look at this
        return np.array([n], dtype=np.int64)
    g, _ = _trace(line.back, 0, column, 0, ends, g)
    return ends[g:].copy()


def overlap_for(k: int) -> int:
    """Number of columns within which partitions meet on most data, by measurement."""
    return 5 * k * k + 64 * k


def meet(back: Any, second: Any, start: int, middle: int, k: int) -> bool:
    """Whether two lines find the same starts at the middle, back to a column that all partitions go through.

    ``second`` begins at column ``start`` of the first.
    """
    return bool(_meet(back, second, start, middle, k, np.zeros(middle - start + 1, dtype=np.uint8)))


def trace(back: Any, shift: int, column: int, floor: int) -> tuple[Labels, int]:
    """Ends of groups from a column back to the first one that is at most ``floor``, and that column.

    The line begins at column ``shift``; columns are counted over all values, and so are the ends, ascending.
    """
    ends = np.empty(max(column - floor, 0), dtype=np.int64)
    g, last = _trace(back, shift, column - shift, floor - shift, ends, len(ends))
    return ends[g:].copy(), int(last)


@lean_kernel
def _meet(back, second, start, middle, k, marks):
    """Whether partitions of the columns needed at the middle are the same back to a common one.

    The last column of a shrinking set gives way to the one that its partition comes from.
    """
    last = middle - start
    for t in range(last - 2 * k + 2, last + 1):
        marks[t] = 1
    count = 2 * k - 1
    for t in range(last, k - 1, -1):
        if marks[t]:
            if count == 1:
                return True
            i = second[t]
            if back[start + t] != start + i:
                return False
            count -= marks[i]
            marks[i] = 1
    return False


@lean_kernel
def _trace(back, shift, column, floor, ends, g):
    """Fill in ends before place g, from a column back to the first one that is at most ``floor``.

    Return the place of the last one filled in, and that column.
    """
    while column > floor:
        g -= 1
        ends[g] = shift + column
        column = back[column]
    return g, shift + column
