"""Arithmetic of a partition given by labels: numbering, members, sizes, means, sums of squares.

All sums are taken of differences to a member of the group, so that a large offset
in the data costs no accuracy and a group of equal values has exactly that mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microagg.base.progress import STOP, State
from microagg.base.typing import Floats, Labels, Members

# Sums of values beyond this are taken in units of 2**64, so that they do not overflow.
_HUGE = 1e280
_LARGEST = 2**62  # combinations that a 64-bit integer tells apart


def canonical_labels(labels: NDArray[np.integer]) -> Labels:
    """Renumber the groups 0..g-1 by first appearance in row order.

    Parameters
    ----------
    labels : (n,) whole numbers of any kind; kept, never written to

    Returns
    -------
    (n,) int64; the array given where it is numbered so already

    >>> canonical_labels(np.array([7, 2, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    from microagg.kernels.label_loops import is_canonical, renumber

    numbers: Labels = np.ascontiguousarray(labels, dtype=np.int64)
    if is_canonical(numbers):
        return numbers
    if numbers.min() < 0 or numbers.max() >= numbers.size:
        numbers = np.unique(numbers, return_inverse=True)[1].reshape(-1)
    new = numbers.copy()
    renumber(new, np.full(int(numbers.max()) + 1, -1))
    return new


def combine(columns: Sequence[Labels]) -> Labels:
    """Label the records so that two have the same label exactly if they agree in all columns.

    Labels are numbered 0, 1, … by first appearance in row order.

    Parameters
    ----------
    columns : at least one, each (n,) int64 of −1 and up; kept, never written to

    Returns
    -------
    (n,) int64, the caller's

    >>> combine([np.array([0, 1, 0, 1]), np.array([-1, 5, -1, 7])]).tolist()
    [0, 1, 0, 2]
    """
    labels = np.zeros(len(columns[0]), dtype=np.int64)
    combinations = 1  # that the labels can tell apart
    for column in columns:
        levels = int(column.max()) + 2
        if combinations > _LARGEST // levels:
            labels = _dense(labels)
            combinations = int(labels.max()) + 1
        labels = labels * levels + (column + 1)
        combinations *= levels
    return _dense(labels)


def _dense(labels: Labels) -> Labels:
    """Give the distinct values numbers by first appearance."""
    import pyarrow as pa

    return pa.array(labels).dictionary_encode().indices.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def members_of(labels: Labels, width: int) -> Members:
    """List the records of the groups 0, 1, …, each ascending.

    Parameters
    ----------
    labels : (n,) int64, groups 0..g−1, −1 for records in none
    width : records of the largest group, or more

    Returns
    -------
    (g, width) int32 row numbers, −1 behind the last; the caller's

    >>> members_of(np.array([0, 1, 0, 1, -1, 1]), 3).tolist()
    [[0, 2, -1], [1, 3, 5]]
    """
    rows = np.argsort(labels, kind="stable")[np.count_nonzero(labels < 0) :]
    group = labels[rows]
    sizes = np.bincount(group)
    members = np.full((len(sizes), width), -1, np.int32)
    members[group, np.arange(len(rows)) - (np.cumsum(sizes) - sizes)[group]] = rows
    return members


def labels_of(members: Members, n: int) -> Labels:
    """Label n records by the groups that hold them.

    Parameters
    ----------
    members : (g, width) int32 row numbers, −1 behind the last of a group
    n : records of the table

    Returns
    -------
    (n,) int64, groups 0..g−1, −1 for records in none; the caller's

    >>> labels_of(np.array([[0, 2, -1], [1, 3, 5]]), 6).tolist()
    [0, 1, 0, 1, -1, 1]
    """
    labels = np.full(n, -1)
    group, position = np.nonzero(members >= 0)
    labels[members[group, position]] = group
    return labels


def split_large(labels: Labels, k: int, split: Callable[[Any], Labels], state: State) -> None:
    """Split groups of 2k or more records, in place, unless asked to stop.

    Parameters
    ----------
    labels : (n,) int64, groups 0..g−1; the first part of a group keeps its number, others get new ones
    k : least size of a group
    split : given the rows of a group, ascending, labels them 0, 1, …
    state : the wish to stop
    """
    sizes = np.bincount(labels)
    n_groups, ends = len(sizes), np.cumsum(sizes)
    rows = np.argsort(labels, kind="stable")
    for g in np.flatnonzero(sizes >= 2 * k):
        if state[STOP]:
            return
        members = rows[ends[g] - sizes[g] : ends[g]]
        parts = split(members)
        labels[members] = np.where(parts == 0, g, n_groups + parts - 1)
        n_groups += int(parts.max())


def group_sizes(labels: Labels) -> Labels:
    """Count the records of each group.

    Parameters
    ----------
    labels : (n,) int64, groups 0..g−1

    Returns
    -------
    (g,) int64
    """
    return np.bincount(labels).astype(np.int64, copy=False)


def group_means(column: Floats, labels: Labels, weights: Floats | None = None) -> Floats:
    """Average one column in each group, shape (g,); weights are above 0, in any unit.

    Parameters
    ----------
    column : (n,) finite doubles, in the unit of the column; never written to
    labels : (n,) int64, groups 0..g−1, each with a record
    weights : (n,) above 0, in any unit

    Returns
    -------
    (g,) doubles, in the unit of the column

    >>> column, labels = np.array([0.1, 0.1, 0.1, 1e9, 1e9 + 1]), np.array([0, 0, 0, 1, 1])
    >>> group_means(column, labels).tolist()
    [0.1, 1000000000.5]
    >>> group_means(column, labels, np.array([1.0, 7.0, 2.0, 3.0, 1.0])).tolist()
    [0.1, 1000000000.25]
    """
    sizes = np.bincount(labels)
    base = np.empty(sizes.size)
    base[labels[::-1]] = column[::-1]  # the first member of each group is written last
    unit = 2.0**64 if np.abs(column).max(initial=0.0) > _HUGE else 1.0
    column, base = column / unit, base / unit
    if weights is None:
        return (base + np.bincount(labels, weights=column - base[labels]) / sizes) * unit
    # A power of two brings the weights to at most 1, exactly: no product overflows.
    weights = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
    mass = np.bincount(labels, weights=weights)
    # The second time from the mean itself: a light first member may be far from all others.
    for _ in range(2):
        base = base + np.bincount(labels, weights=weights * (column - base[labels])) / mass
    return base * unit


def sum_of_squares(X: Floats, labels: Labels, weights: Floats | None = None) -> float:
    """Sum the squared distances of the records to the means of their groups (SSE).

    With weights the means are weighted, and so is each square.

    Parameters
    ----------
    X : (n, d) finite doubles, C-contiguous; never written to
    labels : (n,) int64, groups 0..g−1
    weights : (n,) above 0

    Returns
    -------
    the SSE, in the squared unit of X

    >>> X, labels = np.array([[1.0], [3.0], [10.0]]), np.array([0, 0, 1])
    >>> sum_of_squares(X, labels), sum_of_squares(X, labels, np.array([1.0, 3.0, 5.0]))
    (2.0, 3.0)
    """
    from microagg.kernels.label_loops import squares_within, weighted_squares_within

    if weights is not None:
        return float(weighted_squares_within(X, weights, labels, int(labels.max()) + 1))
    return float(squares_within(X, labels, int(labels.max()) + 1))


def standard_deviation(values: Floats) -> float:
    """Return the standard deviation (denominator n−1) of (n,) finite doubles, 0 for fewer than 2.

    No square overflows, whatever the size of the values.

    >>> standard_deviation(np.array([1e200, 3e200])) / 1e200
    1.414213562373095...
    """
    if len(values) < 2:
        return 0.0
    exponent = int(np.frexp(np.abs(values).max())[1])
    small = np.ldexp(values, -exponent)
    with np.errstate(over="ignore"):
        return float(np.ldexp((small - small[0]).std(ddof=1), exponent))
