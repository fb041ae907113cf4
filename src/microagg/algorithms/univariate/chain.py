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

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.univariate.windows import FREE, Fill, SortedLine
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel
from microagg.compile.threads import at_work, helpers

Back = NDArray[np.signedinteger]

_SECONDS_BETWEEN_LOOKS = 0.05

# A stretch for a thread of its own has at least this many values, and this many times the overlap.
_STRETCH, _OVERLAPS = 100_000, 4


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
    stretches = n // max(_STRETCH, _OVERLAPS * overlap) if not group_cost else 1
    if stretches > 1:
        stretches = min(stretches, 1 + helpers())
    if stretches > 1:
        # All stretches but the first begin a little before.
        inner = [overlap + (n - overlap) * at // stretches for at in range(1, stretches)]
        lines = chain([0, *inner, n], lambda start, end: x[start:end], k, cost, fill, state)
    else:
        line = SortedLine(x, k, cost, group_cost)
        fill(line, state)
        lines = [Stretch(0, 0, line.back)] if line.window["settled"] == n else []
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
    *,
    joined: Callable[[int, int], Floats] | None = None,
    most: int | None = None,
) -> list[Stretch]:
    """Cut the stretches of a column by the algorithm ``fill``; nothing when asked to stop.

    ``borders`` are the columns at which the stretches begin, ascending from 0, and the number of all values;
    ``values`` gives the sorted values from one column to another, from several threads, and ``joined`` does
    so for stretches that go on over those after them, which may become very long. At most ``most`` are cut at
    a time. Stretches are returned from left to right; each holds from the end of the one before it.
    """
    ahead, overlap, count = new_state(), overlap_for(k), len(borders) - 1
    ahead[STOP] = state[STOP]
    windows: dict[int, np.void] = {}  # of each line, as soon as it is at work

    def solve(at: int) -> Stretch:
        start = max(borders[at] - overlap, 0)
        line = SortedLine(values(start, borders[at + 1]), k, cost)
        windows[at] = line.window
        fill(line, ahead)
        return Stretch(start, borders[at], line.back, line)

    def look(at: int) -> None:
        """Report the records done while waiting for a stretch, and see whether to stop."""
        ahead[STOP] |= state[STOP]
        if ahead[STOP]:
            return
        begun = [int(windows[t]["settled"]) for t in range(at, count) if t in windows]
        settled = sum(max(columns - overlap, 0) for columns in begun)
        state[DONE] = max(int(state[DONE]), borders[at] + settled)

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

    stretches = []
    rest: Stretch | None
    with closing(_in_turn(solve, count, look, ahead, most)) as solved:
        left = next(solved)
        for at, right in enumerate(solved, 1):
            rest = right
            if not (ahead[STOP] or meet(left, right, k)):
                left, rest = go_on(left, right, borders[at + 1])
            if rest is not None:
                stretches.append(left._replace(line=None))  # its values take memory
                left = rest
    ahead[STOP] |= state[STOP]
    return [] if ahead[STOP] else [*stretches, left._replace(line=None)]


def _in_turn(
    solve: Callable[[int], Stretch],
    count: int,
    look: Callable[[int], None],
    ahead: State,
    most: int | None,
) -> Generator[Stretch]:
    """Solve 0, 1, 2, … in threads, some of them ahead, and give them in this order."""
    threads = min(1 + helpers(), most or count)

    def counted(at: int) -> Stretch:
        with at_work():
            return solve(at)

    with ThreadPoolExecutor(threads, thread_name_prefix="microagg-cut") as pool:
        waiting: deque[Future[Stretch]] = deque()
        try:
            for at in range(count):
                while len(waiting) < min(count - at, 1 + threads):
                    waiting.append(pool.submit(counted, at + len(waiting)))
                look(at)
                while wait([waiting[0]], _SECONDS_BETWEEN_LOOKS).not_done:
                    look(at)
                yield waiting.popleft().result()
        except BaseException:
            ahead[STOP] = 1  # leaving the block waits for the threads
            raise


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
