"""How columns of any kind go together, before and after.

Two numbers by their correlation. A number and a category by the correlation ratio η = √(SS between
categories / SS total). Two categories by Cramér's V = √(χ²/(n·(min(r, c) − 1))) of their table with r rows
and c columns that occur. Each over the records where both columns are there in both tables, by weight where
records have weights; 0 with a column that is constant there. What is ordinal is a category here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.measure import deviations
from microagg.measure.both_tables import Pair

# Tables of two categories with more cells than this for each record are counted by what occurs.
_CELLS_FOR_A_RECORD = 4


def changed(both: Pair) -> dict[Any, float]:
    """Share of records whose category differs, where both are there, of each column of categories."""
    shares = {}
    for j in _category_places(both):
        there, w = _rows(both, [j])
        moved = both.wrong_categories(j)[there]
        shares[both.names[j]] = float(w @ moved / w.sum()) if len(w) else 0.0
    return shares


def level_deviations(both: Pair) -> dict[Any, float]:
    """½·Σ|p'−p| over the levels of each column of categories, where both are there."""
    deviations_by_column = {}
    for j in _category_places(both):
        there, w = _rows(both, [j])
        first, second = both.original[there, j], both.protected[there, j]
        deviations_by_column[both.names[j]] = _apart(
            first.astype(np.int64), second.astype(np.int64), w
        )
    return deviations_by_column


def associations(both: Pair) -> tuple[Floats, Floats]:
    """Matrices of the associations of all columns before and after, shape (d, d), 1 with themselves.

    O(n) for each pair of columns.
    """
    if not any(both.is_category):
        return deviations.correlations(both)
    d = len(both.names)
    before, after = np.zeros((d, d)), np.zeros((d, d))
    numbers = [j for j in range(d) if not both.is_category[j]]
    if numbers:
        for matrix, correlations in zip(
            (before, after), deviations.correlations(both.quantities), strict=True
        ):
            matrix[np.ix_(numbers, numbers)] = correlations
    for i, j in _pairs_with_category(both):
        there, w = _rows(both, [i, j])
        for matrix, table in ((before, both.original), (after, both.protected)):
            x, y = table[there, i], table[there, j]
            matrix[i, j] = matrix[j, i] = _association(both, (i, j), x, y, w)
    for matrix, table in ((before, both.original), (after, both.protected)):
        for j in _category_places(both):
            there, w = _rows(both, [j])
            matrix[j, j] = float(len(w) > 0 and np.ptp(table[there, j]) > 0)
    return before, after


def _association(both: Pair, columns: tuple[int, int], x: Floats, y: Floats, w: Floats) -> float:
    if len(w) < 2:
        return 0.0
    i, j = columns
    if both.is_category[i] and both.is_category[j]:
        return _cramer(x.astype(np.int64), y.astype(np.int64), w)
    if both.is_category[i]:
        return _ratio(x.astype(np.int64), y, w)
    return _ratio(y.astype(np.int64), x, w)


def _ratio(codes: Labels, values: Floats, w: Floats) -> float:
    """Correlation ratio of numbers by categories."""
    # Neither a large offset nor a large unit matters: a power of two changes no digit.
    small = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    moved = small - small[0]
    moved = moved - np.average(moved, weights=w)
    total = float(w @ np.square(moved))
    if total == 0:
        return 0.0
    mass, sums = np.bincount(codes, weights=w), np.bincount(codes, weights=w * moved)
    between = float(np.square(sums[mass > 0]) @ (1 / mass[mass > 0]))
    return float(np.sqrt(min(max(between / total, 0.0), 1.0)))


def _cramer(x: Labels, y: Labels, w: Floats) -> float:
    """Cramér's V of two columns of level numbers."""
    p, q = np.bincount(x, weights=w), np.bincount(y, weights=w)
    width = len(q)
    least = min(np.count_nonzero(p), np.count_nonzero(q)) - 1
    if least < 1:
        return 0.0
    cells, mass = _counted(x * width + y, w)
    rows, columns = cells // width, cells % width
    # χ²/n = Σ n_ij²/(n_i·n_j) − 1
    chi = float((np.square(mass) / (p[rows] * q[columns])).sum()) - 1
    return float(np.sqrt(min(max(chi / least, 0.0), 1.0)))


def _apart(first: Labels, second: Labels, w: Floats) -> float:
    """½·Σ|p'−p| over all values."""
    if not len(w):
        return 0.0
    codes, mass = _counted(np.concatenate([first, second]), np.concatenate([w, -w]))
    return float(np.abs(mass).sum() / (2 * w.sum())) if len(codes) else 0.0


def _counted(codes: Labels, w: Floats) -> tuple[Labels, Floats]:
    """Codes that occur, and the sum of the weights of each."""
    if codes.max(initial=0) <= _CELLS_FOR_A_RECORD * len(codes):
        mass = np.bincount(codes, weights=w).astype(np.float64)
        occurs: Labels = np.flatnonzero(np.bincount(codes))
        return occurs, mass[occurs]
    occurs, index = np.unique(codes, return_inverse=True)
    return occurs, np.bincount(index.reshape(-1), weights=w).astype(np.float64)


def _category_places(both: Pair) -> list[int]:
    return [j for j, category in enumerate(both.is_category) if category]


def _pairs_with_category(both: Pair) -> Iterator[tuple[int, int]]:
    for i, j in itertools.combinations(range(len(both.names)), 2):
        if both.is_category[i] or both.is_category[j]:
            yield i, j


def _rows(both: Pair, columns: list[int]) -> tuple[NDArray[np.bool_] | slice, Floats]:
    """Return the records that have values in some columns before and after, and their weights."""
    if both.is_complete:
        return slice(None), both.row_weights
    there = np.asarray(both.both_there[:, columns].all(axis=1))
    return there, both.row_weights[there]
