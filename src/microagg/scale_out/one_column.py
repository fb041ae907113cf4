"""One column of any size, cut optimally: the groups are those that one process would find in memory.

Problem   The best groups of one column are runs of its sorted values, and where they are cut is a
          computation from left to right over all of them (methods/univariate).
Idea      Records are dealt out to stretches of the order, by values of a sample, and each stretch is sorted
          by itself. It is then cut as if the values began a little before it. Where the partitions at its
          beginning meet those that the stretch before it found, back to a column through which all of
          them go, what lies before no longer matters (methods/univariate/ends.py has the argument),
          and the cuts are those of the whole column. Where they do not meet, the stretch is cut
          together with the one before it.
Cost      O(n log n) time in all, the memory of a stretch; where partitions never meet, as with values that
          are evenly spaced, the memory of the whole column.
Same      Equal values are taken in the order of the keys of their rows, whichever engine deals them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.groups import Floats, Labels
from microagg.kernels.threads import thread_count
from microagg.methods.univariate.ends import meet, overlap_for, trace
from microagg.methods.univariate.sorted_cut import stretch_back
from microagg.registry import find
from microagg.scale_out.recipe import Recipe, Records, Words
from microagg.tables.variable import QUANTITIES

__all__ = [
    "Crossing",
    "Splits",
    "crossing",
    "crossings_meet",
    "cut_stretches",
    "is_one_column",
    "sorted_words",
    "split_column",
]

STRETCH = 1 << 21  # records, about

Back = NDArray[np.signedinteger[Any]]


def is_one_column(recipe: Recipe) -> bool:
    """Whether a plan asks for the optimal cut of one column of numbers."""
    block = recipe.block
    if len(recipe.coders) != 1 or recipe.unit is not None or block.require or recipe.weighs:
        return False
    coder = recipe.coders[0]
    plain = coder.kind in QUANTITIES[:2] and coder.setting.transform is None
    options = {name: value for name, value in block.options.items() if name != "effort"}
    return bool(
        plain and not options and find(block.method).guarantee_for(1, weighted=False) == "exact"
    )


class Splits(NamedTuple):
    """Where the order of a column is split, for each cell: values, and keys among equal ones."""

    values: tuple[Floats, ...]
    keys: tuple[Words, ...]

    @property
    def first(self) -> list[int]:
        """First place of each cell, and their number."""
        return [0, *np.cumsum([len(own) + 1 for own in self.values]).tolist()]

    def assign(self, values: Floats, cells: Labels | None, keys: Words) -> Labels:
        """Place of each record."""
        which = np.zeros(len(values), dtype=np.int64) if cells is None else cells
        found = np.empty(len(values), dtype=np.int64)
        for cell, start in enumerate(self.first[:-1]):
            rows = np.flatnonzero(which == cell)
            own, borders, of_borders = values[rows], self.values[cell], self.keys[cell]
            place = np.searchsorted(borders, own)
            while True:  # equal to a border: by the key, past as many borders as that takes
                at = np.minimum(place, max(len(borders) - 1, 0))
                beyond = np.zeros(len(own), dtype=bool)
                if len(borders):
                    beyond = (place < len(borders)) & (own == borders[at])
                    beyond &= keys[rows, 0] >= of_borders[at]
                if not beyond.any():
                    break
                place = place + beyond
            found[rows] = start + place
        return found


def split_column(recipe: Recipe, sample: Words, stretch: int = STRETCH) -> Splits:
    """Plan the stretches of each cell from a sample of the records."""
    records = recipe.records_of(sample)
    apart = recipe.apart(records)
    cells = np.zeros(len(records), np.int64) if apart is None else apart
    stretch = max(stretch, 8 * overlap_for(recipe.k))
    values, borders = [], []
    for cell, size in enumerate(recipe.cell_sizes.tolist()):
        rows = np.flatnonzero(cells == cell)
        own, keys = records.values[rows, 0], records.keys[rows, 0]
        order = np.lexsort((keys, own))
        parts = max(1, min(-(-size // stretch), len(rows)))
        at = order[np.arange(1, parts) * len(rows) // parts]
        values.append(own[at])
        borders.append(keys[at])
    return Splits(tuple(values), tuple(borders))


def sorted_words(records: Records, words: Words) -> Words:
    """Words of records in the order of their values, equal ones by key."""
    values = np.ascontiguousarray(records.values[:, 0])
    order = np.argsort(values, kind="stable")
    values = values[order]
    tied = np.append(False, values[1:] == values[:-1])
    tied[:-1] |= tied[1:]
    rows = np.flatnonzero(tied)
    if len(rows):  # among equal values, which most columns have few of
        own, keys = order[rows], records.keys[order[rows]]
        order[rows] = own[np.lexsort((keys[:, 1], keys[:, 0], values[rows]))]
    return words[order]


def cut_stretches(
    sizes: Sequence[int], values_of: Callable[[int], Floats], k: int, cost: str = "sse"
) -> list[Labels]:
    """Ends of the best groups in each of consecutive stretches of sorted values.

    Parameters
    ----------
    sizes : values in each stretch; all together at least k
    values_of : gives the values of a stretch, ascending; called a few times for each
    k, cost : as in :func:`microagg.methods.univariate.sorted_cut.cut_sorted`

    Returns
    -------
    For each stretch, the ends of groups that lie in it, counted over all values.

    >>> x = np.array([1.0, 2.0, 2.0, 7.0, 8.0, 9.0, 20.0, 21.0])
    >>> parts = np.split(x, [5])
    >>> [ends.tolist() for ends in cut_stretches([5, 3], lambda at: parts[at], 2)]
    [[3], [6, 8]]
    """
    found: list[Labels] = [np.zeros(0, dtype=np.int64)] * len(sizes)
    full = [at for at, size in enumerate(sizes) if size]
    starts = np.append(0, np.cumsum([sizes[at] for at in full])).astype(np.int64)
    lines = _all_lines(starts, lambda at: values_of(full[at]), k, cost)
    column = int(starts[-1])
    for line in reversed(lines):
        ends, column = trace(line.back, line.start, column, line.first)
        for at in range(line.low, line.high):
            found[full[at]] = ends[(ends > starts[at]) & (ends <= starts[at + 1])]
    return found


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
    """Cut a stretch, given with the values before it; return also the starts themselves."""
    back = stretch_back(x, k)
    end = start + len(x)
    exits = {}
    for column in range(max(first, end - 2 * k + 2), end + 1):
        ends, last = trace(back, start, column, first)
        exits[column] = (last, int(ends[0]) if len(ends) else column)
    reach = min(overlap_for(k), end - start)
    head, tail = back[: first - start + 1].copy(), back[len(x) - reach :].copy()
    return Crossing(place, start, first, head, tail, end, exits), back


def crossings_meet(left: Crossing, right: Crossing, k: int) -> bool:
    """Whether the starts of a stretch are those that the stretch before it would go on to find."""
    if right.start <= left.start or right.first - right.start < 2 * k:
        return right.start == 0
    if right.first - right.start > len(left.tail) - 1:
        return False
    begin = len(left.tail) - 1 - (right.first - right.start)
    # Counted from where the right one starts, as if the left one started there too.
    own = left.tail[begin:].astype(np.int64) - (right.start - left.start)
    return meet(own, right.head.astype(np.int64), 0, right.first - right.start, k)


class _Line(NamedTuple):
    """Best starts for the columns of some stretches, from before their first value on."""

    low: int  # the first of the stretches
    high: int  # the one after the last
    start: int  # column at which the values are taken to begin
    first: int  # column from which the starts hold
    back: Back


def _all_lines(
    starts: Labels, values_of: Callable[[int], Floats], k: int, cost: str
) -> list[_Line]:
    """Lines that meet, from left to right."""
    overlap = overlap_for(k)

    def line(low: int, high: int) -> _Line:
        values, begin = [values_of(at) for at in range(low, high)], low
        reach = 0
        while begin > 0 and reach < overlap:
            begin -= 1
            more = values_of(begin)[-(overlap - reach) :]
            values.insert(0, more)
            reach += len(more)
        x = np.ascontiguousarray(np.concatenate(values))
        start = int(starts[low]) - reach
        return _Line(low, high, start, int(starts[low]), stretch_back(x, k, cost))

    found: list[_Line] = []
    with ThreadPoolExecutor(thread_count(), thread_name_prefix="microagg-cut") as pool:
        waiting: list[Future[_Line]] = []
        count, submitted = len(starts) - 1, 0
        for at in range(count):
            while submitted < min(count, at + 1 + thread_count()):
                waiting.append(pool.submit(line, submitted, submitted + 1))
                submitted += 1
            own = waiting.pop(0).result()
            while found and not _meets(found[-1], own, k):
                own = line(found.pop().low, own.high)
            found.append(own)
    return found


def _meets(left: _Line, right: _Line, k: int) -> bool:
    """Whether the starts of a line are those that the line before it would go on to find."""
    if right.start <= left.start or right.first - right.start < 2 * k:
        return right.start == 0
    return meet(left.back, right.back, right.start - left.start, right.first - left.start, k)
