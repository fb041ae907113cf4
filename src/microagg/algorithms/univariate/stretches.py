"""A long column in stretches, only some of them in memory, cut as one process would cut it.

Stretches that come one after the other are cut by :mod:`.chain`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np

from microagg.algorithms.univariate.chain import chain, ends_of
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
