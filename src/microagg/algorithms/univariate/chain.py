"""Stretches of sorted values, cut side by side: a chain of lines that provably meet.

Problem   Best partitions of the first 1, 2, 3, … values build on one another, which leaves nothing
          to do for a second thread.
Idea      Where the partitions of all columns still needed go through one column, what lies
          before it no longer matters, since only differences decide. So each stretch is cut as if
          the values began a little before it. If it finds the same starts at its beginning as the
          stretch before it, back to a column that all partitions needed go through, then all its
          later starts are those that the stretch before it would go on to find. Else that one
          goes on, to a column where they meet or to the end of the stretch.
Cost      That of one line over the number of threads where partitions meet within a few k² values, as
          on most data; evenly spaced values are an exception, and cost what they cost one thread.
Here      All threads decide exactly, so the groups do not depend on how the values are stretched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.univariate.windows import FREE, Fill, SortedLine
from microagg.base.progress import DONE, STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel
from microagg.compile.threads import each, helpers

Back = NDArray[np.signedinteger]

# A stretch for a thread of its own has at least this many values, and this many times the overlap.
_STRETCH, _OVERLAPS = 100_000, 4
_COLUMNS_AT_ONCE = 1 << 18  # that are settled between two reports of progress


def overlap_for(k: int) -> int:
    """Return the number of columns within which partitions for ``k`` meet on most data, by measurement."""
    return 5 * k * k + 64 * k


def best_ends(
    fill: Fill, x: Floats, k: int, cost: int, state: State, group_cost: Fraction = FREE
) -> Labels:
    """Find the ends of the groups of sorted values, in all threads if that pays.

    Parameters
    ----------
    fill : the algorithm
    x : (n,) ascending finite doubles, n ≥ k; never written to
    k, cost, group_cost : as for :class:`~microagg.algorithms.univariate.windows.SortedLine`
    state : progress, and the wish to stop, upon which the ends say nothing

    Returns
    -------
    (groups,) int64, the end of each group
    """
    n, overlap = len(x), overlap_for(k)
    most = 1 if group_cost else n // max(_STRETCH, _OVERLAPS * overlap)
    stretches = max(1, min(most, 1 + helpers()))
    # All stretches but the first begin a little before.
    inner = [overlap + (n - overlap) * at // stretches for at in range(1, stretches)]
    lines = chain([0, *inner, n], lambda start, end: x[start:end], k, cost, fill, state, group_cost)
    if not lines:  # asked to stop: nobody will look at this
        return np.array([n], dtype=np.int64)
    state[DONE] = n
    return ends_of(lines, n)


class Stretch(NamedTuple):
    """Best starts for the columns of a stretch."""

    start: int  # column at which the values are taken to begin
    first: int  # column from which the starts hold
    back: Back  # best starts of the columns from ``start`` on, counted from there
    line: SortedLine | None = None  # which they are of, while it may have to go on


def chain(
    borders: Sequence[int],
    values: Callable[[int, int], Floats],
    k: int,
    cost: int,
    fill: Fill,
    state: State,
    group_cost: Fraction = FREE,
    *,
    joined: Callable[[int, int], Floats] | None = None,
    most: int | None = None,
) -> list[Stretch]:
    """Cut the stretches of a column by the algorithm ``fill``; nothing when asked to stop.

    ``borders`` are the columns at which the stretches begin, ascending from 0, and the number of all values;
    ``values`` gives the sorted values from one column to another, from several threads, and ``joined`` does
    so for stretches that go on over those after them, which may become very long. At most ``most`` are cut at
    a time, by default one a thread. Groups may have a ``group_cost`` if there is one stretch only. Stretches
    are returned from left to right; each holds from the end of the one before it.
    """
    overlap, count, lock = overlap_for(k), len(borders) - 1, Lock()
    at_once = min(most or count, 1 + helpers())
    solved: dict[int, Stretch] = {}
    done = 0

    def solve(first: int, number: int) -> None:
        nonlocal done
        begin, end = borders[first + number], borders[first + number + 1]
        start = max(begin - overlap, 0)
        line = SortedLine(values(start, end), k, cost, group_cost)
        solved[first + number] = Stretch(start, begin, line.back, line)
        while begin < end and not state[STOP]:
            until = min(begin + _COLUMNS_AT_ONCE, end)
            line.window["until"] = until - start
            fill(line, state)
            with lock:
                done += until - begin
                state[DONE] = done
            begin = until

    def go_on(left: Stretch, right: Stretch, end: int) -> tuple[Stretch, Stretch | None]:
        """Continue a stretch to where the next one meets it, or to its end, where nothing is left of that."""
        assert left.line is not None  # only those that are done have none
        line = left.line.longer((joined or values)(left.start, end))
        left, step = left._replace(back=line.back, line=line), max(overlap, 1)
        while right.first < end and not state[STOP]:
            right = right._replace(first=min(right.first + step, end))
            line.window["until"] = right.first - left.start
            fill(line, state)
            if right.first < end and not state[STOP] and meet(left, right, k):
                return left, right
            step *= 2
        return left, None

    stretches: list[Stretch] = []
    for first in range(0, count, at_once):
        if state[STOP]:
            return []
        each(partial(solve, first), min(at_once, count - first))
        for at in sorted(solved):
            rest: Stretch | None = solved.pop(at)
            assert rest is not None
            if at and not (state[STOP] or meet(stretches[-1], rest, k)):
                stretches[-1], rest = go_on(stretches[-1], rest, borders[at + 1])
            if rest is not None:
                # Lines before the last are let go: their values take memory.
                stretches = [stretch._replace(line=None) for stretch in stretches] + [rest]
    return [] if state[STOP] else [stretch._replace(line=None) for stretch in stretches]


def meet(left: Stretch, right: Stretch, k: int) -> bool:
    """Return whether the starts of a stretch are those that the stretch before it would go on to find.

    Both must be the same where those of the right one begin to hold, back to a column that all partitions go
    through.
    """
    last, shift = right.first - right.start, right.start - left.start
    if shift <= 0 or last < 2 * k:
        return right.start == 0
    back = left.back[shift:]
    if len(back) <= last:
        return False
    marks = np.zeros(last + 1, dtype=np.uint8)
    return bool(_same(back, right.back, shift, last, k, marks))


@lean_kernel
def _same(back, second, shift, last, k, marks):
    """Return whether partitions of the columns needed at the last one are the same back to a common one.

    The last column of a shrinking set gives way to the one that its partition comes from.
    """
    for t in range(last - 2 * k + 2, last + 1):
        marks[t] = 1
    count = 2 * k - 1
    for t in range(last, k - 1, -1):
        if marks[t]:
            if count == 1:
                return True
            i = second[t]
            if back[t] != shift + i:
                return False
            count -= marks[i]
            marks[i] = 1
    return False


@lean_kernel
def _trace(back, shift, column, floor, ends):
    """Write the ends of groups from a column back to the floor; return where, and the first start."""
    g = ends.size
    while column > floor:
        g -= 1
        ends[g] = shift + column
        column = back[column]
    return g, shift + column


def ends_of(stretches: Sequence[Stretch], column: int) -> Labels:
    """List the ends of all groups up to a column, ascending, from stretches in their order."""
    ends = []
    for start, first, back, _ in reversed(stretches):
        # Room for groups of one value; what is not written to takes no memory.
        room = np.empty(max(column - first, 0), dtype=np.int64)
        g, column = _trace(back, start, column - start, first - start, room)
        ends.append(room[g:].copy())
    return np.concatenate(ends[::-1])
