"""A long column in stretches, only some of them in memory, cut as one process would cut it.

Stretches that come one after the other are cut by :mod:`.chain`. Where they are cut on several machines,
each reports about its ends what it takes to put them together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import numpy as np

from microagg.algorithms.univariate.chain import (
    Back,
    Starts,
    chain,
    ends_of,
    goes_on,
    overlap_for,
    trace,
)
from microagg.algorithms.univariate.line import SortedLine
from microagg.algorithms.univariate.sorted_cut import cost_number, plain_fill
from microagg.base.progress import new_state
from microagg.base.typing import Floats, Labels

_AT_ONCE = 1 << 20  # values written to a file at a time


def cut_stretches(
    sizes: Sequence[int],
    values_of: Callable[[int], Floats],
    k: int,
    cost: str = "sse",
    most: int | None = None,
    folder: Path | None = None,
) -> list[Labels]:
    """Find the ends of the best groups in each of consecutive stretches of sorted values.

    ``sizes`` are those of the stretches, all together at least k; ``values_of`` gives the ascending values of
    one and is called a few times for each; ``k`` and ``cost`` are as in
    :func:`microagg.algorithms.univariate.sorted_cut.cut_sorted`. At most ``most`` stretches are cut at a
    time, by default one a thread; the values of not many more are in memory, wherever their groups meet.
    ``folder`` gets a file for the values of stretches that do not meet. Ends are counted over all values.

    >>> x = np.array([1.0, 2.0, 2.0, 7.0, 8.0, 9.0, 20.0, 21.0])
    >>> parts = np.split(x, [5])
    >>> [ends.tolist() for ends in cut_stretches([5, 3], lambda at: parts[at], 2)]
    [[3], [6, 8]]
    """
    borders = np.append(0, np.cumsum(sizes)).astype(np.int64)

    def values(start: int, end: int) -> Floats:
        within = np.flatnonzero((borders[:-1] < end) & (borders[1:] > start)).tolist()
        return np.concatenate(
            [values_of(at)[max(start - borders[at], 0) : end - borders[at]] for at in within]
        )

    fill, number = plain_fill(k, max(sizes)), cost_number(cost)
    with TemporaryFile(dir=folder) as file:
        lines = chain(
            np.unique(borders).tolist(),
            values,
            k,
            number,
            fill,
            new_state(),
            joined=_StretchOnDisk(values, file),
            most=most,
        )
    whole = ends_of(lines, int(borders[-1]))
    return np.split(whole, np.searchsorted(whole, borders[1:-1], side="right"))


class _StretchOnDisk:
    """The values of a stretch that goes on over those after it, in a file.

    Groups that do not meet, as on evenly spaced values, may need any of the values before them, but hardly
    ever do. The file is mapped into memory, which the machine can take back while nobody looks.
    """

    def __init__(self, values: Callable[[int, int], Floats], file: IO[bytes]) -> None:
        self._values, self._file = values, file
        self._start = self._end = 0

    def __call__(self, start: int, end: int) -> Floats:
        """Give the values from one column to another; what the file has of them is not read again."""
        if start != self._start:
            self._start = self._end = start
        self._file.seek(8 * (self._end - start))
        while self._end < end:
            following = min(self._end + _AT_ONCE, end)
            self._file.write(self._values(self._end, following).tobytes())
            self._end = following
        self._file.flush()
        # Nobody writes to the copy; an array that cannot be written to has kernels of its own.
        return np.asarray(np.memmap(self._file, np.float64, mode="c", shape=(end - start,)))


class Crossing(NamedTuple):
    """What a stretch tells so that the stretches of a column can be put together: columns, no values.

    Columns are counted over all values of the cell.
    """

    place: int
    start: int
    """Where the values were taken to begin."""
    first: int
    """From where the starts hold: the end of the stretch before."""
    head: Back
    """Best starts of the columns from ``start`` to ``first``, counted from ``start``."""
    tail: Back
    """Best starts of the last columns, counted from ``start``; the last is that of the end."""
    end: int
    exits: dict[int, tuple[int, int]]
    """For each column at which the groups after this stretch may begin: where those that end in it begin,
    and the end of the first of them; itself twice where none ends in it."""


def crossing(place: int, x: Floats, start: int, first: int, k: int) -> tuple[Crossing, Back]:
    """Cut a stretch, given with the values before it; return also the starts themselves.

    Parameters
    ----------
    place : number of the stretch
    x : (m,) ascending values of the stretch, with those before it that it borrows
    start, first : columns at which the values and the stretch begin, over all values
    k : least size of a group

    Returns
    -------
    what others need to know, and (m + 1,) the best starts, which stay here
    """
    line = SortedLine(x, k, cost_number("sse"))
    plain_fill(k, len(x))(line, new_state())
    back, end, exits = line.back, start + len(x), {}
    for column in range(max(first, end - 2 * k + 2), end + 1):
        ends, last = trace(Starts(start, first, back), column)
        exits[column] = (last, int(ends[0]) if len(ends) else column)
    reach = min(overlap_for(k), end - start)
    head, tail = back[: first - start + 1].copy(), back[len(x) - reach :].copy()
    return Crossing(place, start, first, head, tail, end, exits), back


def crossings_meet(left: Crossing, right: Crossing, k: int) -> bool:
    """Return whether the starts of a stretch are those that the stretch before it would go on to find."""
    before = right.first - right.start + 1
    tail = left.tail[-before:].astype(np.int64) if before <= len(left.tail) else left.tail[:0]
    head = Starts(right.start, right.first, right.head.astype(np.int64))
    return goes_on(tail, left.start, head, k)
