"""Fidelity: how far the tables, spreads and associations of a released file are from the original's.

Rows need not correspond, nor need there be equally many. Each column is cut into at most 20 cells: levels of
the original, the most frequent ones where there are more and all others as one, or the bins between the
original's quantiles if it has more than 20 different numbers. Missing is a level. A released value that is no
level of the original (2.3 children) stands in no cell of the original's table.

For a table of one, two or three columns, ½·Σ|p' − p| over its cells is the share of the records that stand in
another cell. Its mean over all tables, or over 150 random ones, stands beside the same figure for other
samples of the same size: bootstraps of the original. A release whose tables move no more than that costs a
user no more than having drawn another sample.

With weights every record counts by its weight: that of the original on one side, the released one on the
other. Numbers are at most 1 here (:func:`_scaled`), so that no difference or square overflows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.compile.threads import thread_count
from microagg.errors import InputError, listed
from microagg.measure.both_tables import Pair
from microagg.measure.read_protected import ComparedColumn, compared_columns, weights_of
from microagg.tables.frame import Frame, choose_columns
from microagg.tables.matrix import as_matrix, is_frame

_MOST_RECORDS = 1_000_000  # of larger tables a sample of this size is looked at
_CELLS = 20  # levels or bins of a column, besides missing values and other values
_WIDTH = _CELLS + 2
_TABLES = 150  # tables of two, and of three columns that are looked at
_SAMPLES = 3
_RARE = 0.05  # share of the records under which a category is rare
_SAME = 1e-5  # of a standard deviation: released numbers are rounded to a tenth of this
_CONSTANT = 1e-14  # of the largest value: a column that varies by less is constant but for rounding
_ROUNDING = 1e-13  # a variance below this share of the mean square is rounding


def _scaled(column: ComparedColumn) -> ComparedColumn:
    """Divide a column of numbers by a power of two, so that none is over 1."""
    if column.is_category:
        return column
    before, after = _at_most_1(column.before, column.after)
    return column._replace(before=before, after=after)


def _at_most_1(*arrays: Floats) -> list[Floats]:
    """Divide by a power of two, which changes no digit, so that no number is over 1.

    >>> [values.tolist() for values in _at_most_1(np.array([3.0, np.nan]), np.array([1.0, -6.0]))]
    [[0.375, nan], [0.125, -0.75]]
    """
    largest = max(float(np.fmax.reduce(np.abs(values), initial=0.0)) for values in arrays)
    return [np.ldexp(values, -np.frexp(largest)[1]) for values in arrays]


class _Masses(NamedTuple):
    """What each record counts; each array has a sum of 1."""

    before: Floats
    after: Floats
    samples: list[Floats]
    """Of the original's records in other samples."""


class _Cells(NamedTuple):
    """The cell of each record in a column."""

    before: NDArray[np.uint8]
    after: NDArray[np.uint8]
    nearest: NDArray[np.uint8]
    """The same after, with numbers that are no level at the nearest one: for associations."""


def sets_of(d: int, order: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return all sets of ``order`` of d columns, or some random ones."""
    count = math.comb(d, order)
    if order == 1 or count <= _TABLES:
        return list(itertools.combinations(range(d), order))
    sets = []
    # By their numbers in the order of itertools: 1,500 columns have 560 million sets of three.
    for number in np.sort(rng.choice(count, _TABLES, replace=False)).tolist():
        columns, first = list[int](), 0
        for left in range(order - 1, -1, -1):
            while number >= (after := math.comb(d - 1 - first, left)):
                number, first = number - after, first + 1
            columns.append(first)
            first += 1
        sets.append(tuple(columns))
    return sets


def _cells_of(column: ComparedColumn) -> _Cells:
    """Cut a column into cells: levels of the original, or bins between its quantiles."""
    levels, counts = np.unique(column.before[~np.isnan(column.before)], return_counts=True)
    binned = len(levels) > _CELLS and not column.is_category
    if binned:
        ends = np.cumsum(counts)
        at = np.searchsorted(ends, np.arange(1, _CELLS) / _CELLS * ends[-1])
        at = np.unique(at[at < len(levels) - 1])
        # Halfway to the next value, so that the digits to which values are rounded do not matter.
        edges = levels[at] / 2 + levels[at + 1] / 2
    else:  # of equally frequent levels the lower ones: the order of records must not matter
        levels = levels[np.sort(np.argsort(-counts, kind="stable")[:_CELLS])]
    same = 0.0 if column.is_category or not len(levels) else _SAME * float(np.ptp(levels))

    def numbered(values: Floats, same: float) -> NDArray[np.uint8]:
        missing = np.isnan(values)
        there = np.where(missing, 0.0, values)
        cells = np.searchsorted(edges, there) if binned else _level(there, levels, same)
        return np.where(missing, _CELLS + 1, cells).astype(np.uint8)

    before, after = numbered(column.before, same), numbered(column.after, same)
    exact = binned or column.is_category
    return _Cells(before, after, after if exact else numbered(column.after, np.inf))


def _level(values: Floats, levels: Floats, same: float) -> Labels:
    """Return the place of each value among ascending levels; _CELLS for one farther off than ``same``."""
    if not len(levels):
        return np.full(len(values), _CELLS)
    above = np.searchsorted(levels, values).clip(0, len(levels) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(values - levels[below] < levels[above] - values, below, above)
    return np.where(np.abs(values - levels[nearest]) <= same, nearest, _CELLS)


def _other_samples(
    cells: Sequence[_Cells], shares: Floats, rng: np.random.Generator
) -> list[Floats]:
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


def _move_of(cells: Sequence[_Cells], chosen: Sequence[int], masses: _Masses) -> list[float]:
    """Compare the tables of some columns before and after, and in other samples.

    Returns the share of the records in another cell, after and on average in other samples; then, of two
    columns, the same for the change of Cramér's V.
    """
    size, key = _WIDTH ** len(chosen), _joint([cells[j].before for j in chosen])
    before, *others = (np.bincount(key, mass, size) for mass in (masses.before, *masses.samples))
    after = np.bincount(_joint([cells[j].after for j in chosen]), masses.after, size)
    moved, *by_sample = (np.abs(table - before).sum() / 2 for table in (after, *others))
    change, change_by_sample = 0.0, [0.0]
    if len(chosen) == 2:
        nearest = np.bincount(_joint([cells[j].nearest for j in chosen]), masses.after, size)
        v = cramer(before)
        change, *change_by_sample = (abs(cramer(table) - v) for table in (nearest, *others))
    return [moved, float(np.mean(by_sample)), change, float(np.mean(change_by_sample))]


def _joint(cells: Sequence[NDArray[np.uint8]]) -> Labels:
    """Return a number for the cell of each record in the table of several columns."""
    numbers = cells[0].astype(np.int64)
    for cell in cells[1:]:
        numbers *= _WIDTH
        numbers += cell
    return numbers


def cramer(table: Any) -> float:
    """Return Cramér's V, √(χ²/(n·(min(r, c) − 1))), of the shares of the cells of two columns.

    The table has the r rows and c columns that occur.
    """
    cells = np.flatnonzero(table)
    rows, columns, mass = cells // _WIDTH, cells % _WIDTH, table[cells]
    p, q = np.bincount(rows, mass), np.bincount(columns, mass)
    least = min(np.count_nonzero(p), np.count_nonzero(q)) - 1
    if least < 1:
        return 0.0
    # χ²/n = Σ n_ij²/(n_i·n_j) − 1
    chi = float((np.square(mass) / (p[rows] * q[columns])).sum()) - 1
    return float(np.sqrt(min(max(chi / least, 0.0), 1.0)))


def correlations(values: Floats, mass: Floats) -> Floats:
    """Return the (d, d) correlations of columns, each over the records that have both; 0 of a constant one.

    ``values`` (n, d) are numbers, NaN where missing; ``mass`` (n,) is what each record counts.

    >>> X = np.array([[20.0, 1.0], [30.0, 3.0], [40.0, np.nan], [50.0, 1.0]])
    >>> correlations(X, np.ones(4)).round(3).tolist()
    [[1.0, -0.189], [-0.189, 1.0]]
    """
    there = (~np.isnan(values)).astype(np.float64)
    Z = np.zeros_like(there)  # standard deviations from the mean, 0 where missing
    for j, column in enumerate(values.T):
        moved, shares = _centred(_at_most_1(column)[0], mass)
        spread = float(np.sqrt(shares @ np.square(moved)))
        if spread > _CONSTANT:
            Z[:, j] = moved / spread
    total = (there * mass[:, None]).T @ there
    weighted = Z * mass[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = weighted.T @ there / total  # [i, j]: of column i where j is there
        squares = (weighted * Z).T @ there / total
        variance = squares - mean**2
        r = (weighted.T @ Z / total - mean * mean.T) / np.sqrt(variance * variance.T)
    varies = variance > _ROUNDING * np.maximum(squares, 1.0)
    return np.clip(np.where(varies & varies.T & (total > 0), r, 0.0), -1.0, 1.0)


def _centred(values: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return values less their mean, and each one's share of all that counts; 0 where one is missing."""
    there = ~np.isnan(values)
    mass = np.where(there, mass, 0.0)
    total = float(mass.sum()) or 1.0
    base = float(values[np.argmax(there)]) if there.any() else 0.0
    moved = np.where(there, values - base, 0.0)  # a large offset must not swallow the digits
    return np.where(there, moved - float(mass @ moved) / total, 0.0), mass / total


def _spread_of(column: ComparedColumn, masses: _Masses) -> float | None:
    """Return σ after/σ before of a number; None where the original does not vary."""
    moved, weight = _centred(column.before, masses.before)
    before = float(np.sqrt(weight @ np.square(moved)))
    moved, weight = _centred(column.after, masses.after)
    return float(np.sqrt(weight @ np.square(moved))) / before if before else None


def _correlation_change(numbers: Sequence[ComparedColumn], masses: _Masses) -> float | None:
    """Return the mean of |r' − r| over all pairs of numbers, each over the records that have both."""
    if len(numbers) < 2:
        return None
    before = correlations(np.column_stack([c.before for c in numbers]), masses.before)
    after = correlations(np.column_stack([c.after for c in numbers]), masses.after)
    return float(np.abs(after - before)[np.triu_indices(len(numbers), 1)].mean())


def _rare_share(categories: Sequence[ComparedColumn], masses: _Masses) -> float | None:
    """Return the share of rare categories after/before, over all columns; None where there are none."""
    total = np.zeros(2)
    for column in categories:
        shares = []
        levels = np.unique(column.before[~np.isnan(column.before)])
        for values, mass in ((column.before, masses.before), (column.after, masses.after)):
            there = np.isin(values, levels)
            counts = np.bincount(np.searchsorted(levels, values[there]), mass[there], len(levels))
            shares.append(counts / (float(mass[~np.isnan(values)].sum()) or 1.0))
        is_rare = shares[0] < _RARE
        total += [share[is_rare].sum() for share in shares]
    return float(total[1] / total[0]) if total[0] else None


class Tables(NamedTuple):
    """Share of the records in another cell, mean over tables of one, two and three columns.

    None where there are too few columns.
    """

    one: float | None
    two: float | None
    three: float | None


class WorstPair(NamedTuple):
    """The table of two columns that moved most, of those that were looked at."""

    columns: tuple[Any, ...]
    share: float
    """Of the records that stand in another cell."""
    sampling: float
    """The same for another sample of this size."""


@dataclass(frozen=True)
class Fidelity:
    """How far a released table is from its original, beside what another sample would be."""

    tables: Tables
    sampling: Tables
    """The same for other samples of the same size: bootstraps of the original."""
    worst_pair: WorstPair | None
    spreads: Mapping[Any, float]
    """σ after/σ before of each number."""
    correlations: float | None
    """Mean of |r' − r| over all pairs of numbers."""
    associations: float | None
    """Mean of |V' − V|, V Cramér's V of the tables of two columns."""
    associations_sampling: float | None
    """The same for other samples of the same size."""
    rare: float | None
    """Records in categories that under 5 % of the original's records have: share after/share before."""
    records: int
    """Of the original, as far as looked at."""
    sampled: bool = False
    """Whether there are more records than these."""

    @property
    def spread(self) -> float | None:
        """Mean of σ after/σ before over all numbers; None where there are none."""
        return float(np.mean([*self.spreads.values()])) if self.spreads else None

    @property
    def order(self) -> int:
        """The most columns that a table was made of: 1, 2 or 3."""
        return sum(share is not None for share in self.tables)

    def multiple(self, order: int) -> float:
        """Return how many times as far tables of 1, 2 or 3 columns moved as in another sample.

        0 where nothing moved; infinite where another sample moves nothing.
        """
        moved, sampling = self.tables[order - 1] or 0.0, self.sampling[order - 1] or 0.0
        if not moved:
            return 0.0
        return moved / sampling if sampling else float("inf")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        worst = self.worst_pair
        single = ("correlations", "associations", "associations_sampling", "rare")
        return {
            "tables": self.tables._asdict(),
            "sampling": self.sampling._asdict(),
            "spread": self.spread,
            "spreads": {str(name): value for name, value in self.spreads.items()},
            **{name: getattr(self, name) for name in single},
            "worst_pair": worst and {**worst._asdict(), "columns": [*map(str, worst.columns)]},
            "records": self.records,
            "sampled": self.sampled,
        }


def fidelity(
    original: Any,
    released: Any,
    columns: Iterable[Any] | None = None,
    *,
    kinds: Mapping[Any, Any] | None = None,
    weight: Any = None,
) -> Fidelity:
    """Measure how far tables, spreads and associations moved, beside what another sample would give.

    Parameters
    ----------
    original, released : frames of any library, or array-likes
        Columns are matched by name (in arrays by position); rows need not correspond.
    columns : names to compare, of any kind; by default all that both tables have
    kinds : of some columns, where their type does not say it, as for :func:`microagg.utility`
    weight : name of the column of weights in both tables; if the released one lacks it, its records count
        alike

    Returns
    -------
    Fidelity
        ``tables`` and ``sampling`` with ``one``, ``two`` and ``three``: the share of the records in another
        cell of a table of so many columns, in the released table and in another sample of the original;
        ``spread``, ``correlations``, ``associations``, ``rare``, ``worst_pair``.

    >>> import pyarrow as pa
    >>> fidelity(pa.table({"a": ["x", "x", "y", "y"]}), pa.table({"a": ["x", "y", "y", "y"]})).tables.one
    0.25
    """
    if is_frame(original) != is_frame(released):
        raise InputError("Compare two frames or two arrays; one of each was given.")
    if not is_frame(original):
        first, second = as_matrix(original), as_matrix(released)
        if first.shape[1] != second.shape[1]:
            raise InputError(
                f"Both arrays need the same columns; they have {first.shape[1]} and {second.shape[1]}."
            )
        columns_of_arrays = enumerate(zip(first.T, second.T, strict=True))
        return fidelity_of([ComparedColumn(j, x, y, False) for j, (x, y) in columns_of_arrays])
    before, after = Frame(original), Frame(released)
    if columns is None:
        names = [name for name in before.names if after.has(name) and name != weight]
        if not names:
            raise InputError(
                f"The tables share no column: {listed(before.names)} against {listed(after.names)}."
            )
    else:
        names = choose_columns(after, choose_columns(before, columns))
    weights = None if weight is None else weights_of(before, weight)[0]
    released_weights = weights_of(after, weight)[0] if after.has(weight) else None
    columns_of_frames = compared_columns(before, after, names, kinds or {})
    return fidelity_of(columns_of_frames, weights, released_weights)


def columns_of(both: Pair) -> list[ComparedColumn]:
    """Return the columns of ``both`` tables."""
    columns = zip(both.variables, both.original.T, both.protected.T, strict=True)
    return [ComparedColumn(v.name, x, y, v.is_category) for v, x, y in columns]


def fidelity_of(
    columns: Sequence[ComparedColumn],
    weights: Floats | None = None,
    released_weights: Floats | None = None,
    *,
    sampled: bool = False,
) -> Fidelity:
    """Measure the fidelity of columns that were read.

    Parameters
    ----------
    columns : at least one
    weights, released_weights : (n,) and (n',) of the original's and of the released records, in any unit;
        None: all count alike
    sampled : whether these records are a sample already

    O((n + n')·t) for t ≤ d + 300 tables of d columns.
    """
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(0)
    sizes = len(columns[0].before), len(columns[0].after)
    if not all(sizes):
        raise InputError("Fidelity needs records; a table has none.")
    if max(sizes) > _MOST_RECORDS:
        sampled = True
        rows = [rng.choice(n, min(n, _MOST_RECORDS), replace=False) for n in sizes]
        if sizes[0] == sizes[1]:
            rows[1] = rows[0]  # where rows correspond, no noise is added
        columns = [c._replace(before=c.before[rows[0]], after=c.after[rows[1]]) for c in columns]
        weights = None if weights is None else weights[rows[0]]
        released_weights = None if released_weights is None else released_weights[rows[1]]
    n = len(columns[0].before)
    # Weights may have a sum that is too large for a number.
    shares, after = (
        np.ones(size) if w is None else _at_most_1(w)[0]
        for w, size in ((weights, n), (released_weights, len(columns[0].after)))
    )
    shares, after = shares / shares.sum(), after / after.sum()
    # Threads of the library for products would wait for each other longer than they work.
    with threadpool_limits(1), ThreadPoolExecutor(thread_count()) as pool:
        columns = list(pool.map(_scaled, columns))
        cells = list(pool.map(_cells_of, columns))
        # A column of one value makes no table of its own.
        varied = [j for j, cell in enumerate(cells) if np.ptp(np.concatenate(cell[:2]))] or [0]
        columns, cells = [columns[j] for j in varied], [cells[j] for j in varied]
        sets = [sets_of(len(cells), order, rng) for order in (1, 2, 3)]
        masses = _Masses(shares, after, _other_samples(cells, shares, rng))
        moves = [
            np.array([*pool.map(lambda chosen: _move_of(cells, chosen, masses), of_order)])
            for of_order in sets
        ]
        numbers = [column for column in columns if not column.is_category]
        spreads = list(pool.map(lambda column: _spread_of(column, masses), numbers))
        off = _correlation_change(numbers, masses)
    means: list[Any] = [[float(np.mean(f)) for f in each.T.copy()] or [None] * 4 for each in moves]
    worst_pair = None
    if sets[1]:
        at = int(np.argmax(moves[1][:, 0]))
        names = tuple(columns[j].name for j in sets[1][at])
        worst_pair = WorstPair(names, *moves[1][at, :2].tolist())
    return Fidelity(
        tables=Tables(*(mean[0] for mean in means)),
        sampling=Tables(*(mean[1] for mean in means)),
        worst_pair=worst_pair,
        spreads={c.name: x for c, x in zip(numbers, spreads, strict=True) if x is not None},
        correlations=off,
        associations=means[1][2],
        associations_sampling=means[1][3],
        rare=_rare_share([column for column in columns if column.is_category], masses),
        records=n,
        sampled=sampled,
    )
