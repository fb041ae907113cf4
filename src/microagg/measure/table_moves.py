"""How far tables of one, two and three columns moved: cells of columns, shares of cells, other samples.

Each column is cut into at most 20 cells: levels of the original, the most frequent ones where there are more
and all others as one, or the bins between the original's quantiles if it has more than 20 different numbers.
Missing is a level. A released value that is no level of the original (2.3 children) stands in no cell of the
original's table. For a table of some columns, ½·Σ|p' − p| over its cells is the share of the records that
stand in another cell. Numbers are at most 1 here (:func:`scaled`), so that no difference or square overflows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.measure.associations import centred, correlations, cramer

_CELLS = 20  # levels or bins of a column, besides missing values and other values
_WIDTH = _CELLS + 2
_TABLES = 150  # tables of two, and of three columns that are looked at
_SAMPLES = 3
_RARE = 0.05  # share of the records under which a category is rare
_SAME = 1e-5  # of a standard deviation: released numbers are rounded to a tenth of this


class ComparedColumn(NamedTuple):
    """A column of both tables, in one numbering; NaN is missing."""

    name: Any
    before: Floats
    after: Floats
    is_category: bool


def scaled(column: ComparedColumn) -> ComparedColumn:
    """Divide a column by a power of two, so that no number is over 1 and no digit changes.

    >>> scaled(ComparedColumn("a", np.array([3.0, np.nan]), np.array([1.0, -6.0]), False)).after.tolist()
    [0.125, -0.75]
    """
    if column.is_category:
        return column
    both = (column.before, column.after)
    largest = max(float(np.fmax.reduce(np.abs(values), initial=0.0)) for values in both)
    before, after = (np.ldexp(values, -np.frexp(largest)[1]) for values in both)
    return column._replace(before=before, after=after)


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of numbers that come one by one."""
    return float(np.mean(list(values)))


class Masses(NamedTuple):
    """What each record counts; each array has a sum of 1."""

    before: Floats
    after: Floats
    samples: list[Floats]
    """Of the original's records in other samples."""


class Cells(NamedTuple):
    """The cell of each record in a column."""

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    nearest: NDArray[np.uint8]
    """The same after, with numbers that are no level at the nearest one: for associations."""

    @property
    def is_constant(self) -> bool:
        """Whether all records of both tables stand in one cell."""
        first = self.before[0]
        return bool((self.before == first).all() and (self.after == first).all())


class Move(NamedTuple):
    """How far one table moved, in the release and in other samples."""

    share: float
    sampling: float
    association: float
    association_sampling: float


def sets_of(d: int, order: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return all sets of ``order`` of d columns, or some random ones."""
    count = math.comb(d, order)
    if order == 1 or count <= _TABLES:
        return list(itertools.combinations(range(d), order))
    numbers = np.sort(rng.choice(count, _TABLES, replace=False))
    return [_numbered_set(d, order, int(number)) for number in numbers]


def _numbered_set(d: int, order: int, number: int) -> tuple[int, ...]:
    """Return a set by its number in the order of itertools: 1,500 columns have 560 million sets of three."""
    found, first = [], 0
    for left in range(order - 1, -1, -1):
        while number >= (after := math.comb(d - 1 - first, left)):
            number, first = number - after, first + 1
        found.append(first)
        first += 1
    return tuple(found)


def shares_of(weights: Floats) -> Floats:
    """Return weights as shares of their sum, which may itself be too large for a number."""
    small = np.ldexp(
        weights, -np.frexp(weights.max())[1]
    )  # by a power of two, so that no digit changes
    return np.asarray(small / small.sum())


def cells_of(column: ComparedColumn) -> Cells:
    """Cut a column into cells: levels of the original, or bins between its quantiles."""
    levels, counts = np.unique(column.before[~np.isnan(column.before)], return_counts=True)
    if len(levels) > _CELLS and not column.is_category:
        ends = np.cumsum(counts)
        at = np.searchsorted(ends, np.arange(1, _CELLS) / _CELLS * ends[-1])
        at = np.unique(at[at < len(levels) - 1])
        # Halfway to the next value, so that the digits to which values are rounded do not matter.
        edges = levels[at] / 2 + levels[at + 1] / 2
        before, after = (
            _numbered(values, lambda there: np.searchsorted(edges, there))
            for values in (column.before, column.after)
        )
        return Cells(before, after, after)
    # Of equally frequent levels the lower ones: the order of records must not matter.
    kept = levels[np.sort(np.argsort(-counts, kind="stable")[:_CELLS])]
    same = 0.0 if column.is_category or not len(kept) else _SAME * float(np.ptp(kept))
    before, after = (
        _numbered(values, lambda there: _level(there, kept, same))
        for values in (column.before, column.after)
    )
    if column.is_category:
        return Cells(before, after, after)
    return Cells(before, after, _numbered(column.after, lambda there: _level(there, kept, np.inf)))


def _level(values: Floats, levels: Floats, same: float) -> Labels:
    """Return the place of each value among ascending levels; _CELLS for one farther off than ``same``."""
    if not len(levels):
        return np.full(len(values), _CELLS)
    above = np.searchsorted(levels, values).clip(0, len(levels) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(values - levels[below] < levels[above] - values, below, above)
    return np.where(np.abs(values - levels[nearest]) <= same, nearest, _CELLS)


def _numbered(values: Floats, place: Callable[[Floats], Labels]) -> NDArray[np.uint8]:
    """Return the cell of each value; missing ones have the last cell."""
    missing = np.isnan(values)
    return np.where(missing, _CELLS + 1, place(np.where(missing, 0.0, values))).astype(np.uint8)


def other_samples(cells: Sequence[Cells], shares: Floats, rng: np.random.Generator) -> list[Floats]:
    """Return what each record counts in other samples of the same size, whatever the order of records is."""
    together = 14  # 22¹⁴ cells have numbers of 64 bits
    keys = [
        _joint([column.before for column in cells[at : at + together]])
        for at in range(0, len(cells), together)
    ]
    order, n = np.lexsort((shares, *keys)), len(shares)
    samples = []
    for _ in range(_SAMPLES):
        times = np.empty(n)
        times[order] = np.bincount(rng.integers(n, size=n), minlength=n)
        samples.append(times * shares / (times @ shares))
    return samples


def move_of(cells: Sequence[Cells], chosen: Sequence[int], masses: Masses) -> Move:
    """Compare the tables of some columns before and after, and in other samples."""
    size = _WIDTH ** len(chosen)
    keys = [_joint([getattr(cells[j], side) for j in chosen]) for side in ("before", "after")]
    before, after, *others = (
        np.bincount(key, mass, size).astype(np.float64, copy=False)
        for key, mass in zip(
            [*keys, *[keys[0]] * _SAMPLES],
            [masses.before, masses.after, *masses.samples],
            strict=True,
        )
    )
    strength = other_strengths = 0.0
    if len(chosen) == 2:
        v = _cramer(before)
        if any(cells[j].nearest is not cells[j].after for j in chosen):
            key = _joint([cells[j].nearest for j in chosen])
            after_nearest = np.bincount(key, masses.after, size).astype(np.float64, copy=False)
        else:
            after_nearest = after
        strength = abs(_cramer(after_nearest) - v)
        other_strengths = mean_of(abs(_cramer(other) - v) for other in others)
    return Move(
        float(np.abs(after - before).sum() / 2),
        mean_of(np.abs(other - before).sum() / 2 for other in others),
        strength,
        other_strengths,
    )


def _joint(cells: Sequence[NDArray[np.uint8]]) -> Labels:
    """Return a number for the cell of each record in the table of several columns."""
    numbers = cells[0].astype(np.int64)
    for cell in cells[1:]:
        numbers *= _WIDTH
        numbers += cell
    return numbers


def _cramer(table: Floats) -> float:
    """Cramér's V of a table of two columns, the shares of all cells."""
    cells = np.flatnonzero(table)
    return cramer(cells // _WIDTH, cells % _WIDTH, table[cells])


def spread_of(column: ComparedColumn, masses: Masses) -> tuple[Any, float | None]:
    """Return σ after/σ before; None where the original does not vary, and of categories."""
    if column.is_category:
        return column.name, None
    spreads = []
    for values, mass in ((column.before, masses.before), (column.after, masses.after)):
        moved, weight = centred(values, mass)
        spreads.append(float(np.sqrt(weight @ np.square(moved))))
    return column.name, spreads[1] / spreads[0] if spreads[0] else None


def correlation_change(columns: Sequence[ComparedColumn], masses: Masses) -> float | None:
    """Return the mean of |r' − r| over all pairs of numbers, each over the records that have both."""
    numbers = [column for column in columns if not column.is_category]
    if len(numbers) < 2:
        return None
    before = correlations(np.column_stack([c.before for c in numbers]), masses.before)
    after = correlations(np.column_stack([c.after for c in numbers]), masses.after)
    return float(np.abs(after - before)[np.triu_indices(len(numbers), 1)].mean())


def rare_share(columns: Sequence[ComparedColumn], masses: Masses) -> float | None:
    """Return the share of rare categories after/before, over all columns; None where there are none."""
    total = [0.0, 0.0]
    for column in columns:
        if not column.is_category:
            continue
        shares = []
        levels = np.unique(column.before[~np.isnan(column.before)])
        for values, mass in ((column.before, masses.before), (column.after, masses.after)):
            there = ~np.isnan(values) & np.isin(values, levels)
            place = np.searchsorted(levels, values[there])
            counted = np.bincount(place, mass[there], len(levels))
            known = float(mass[~np.isnan(values)].sum()) or 1.0
            shares.append(counted / known)
        is_rare = shares[0] < _RARE
        for side in (0, 1):
            total[side] += float(shares[side][is_rare].sum())
    return total[1] / total[0] if total[0] else None
