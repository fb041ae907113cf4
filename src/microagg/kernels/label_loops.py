"""Loops over labels: numbering, sums and sums of squares, in one or two passes over the records."""

from __future__ import annotations

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_kernel, lean_subkernel
from microagg.compile.threads import helpers, share_with_helpers

_MANY = 100_000  # records from which on threads sum them up faster than one


@lean_kernel
def is_canonical(labels):
    """Return whether groups are numbered 0, 1, 2, … by first appearance already."""
    last = -1
    for label in labels:
        if label > last + 1 or label < 0:
            return False
        if label == last + 1:
            last = label
    return True


@lean_kernel
def renumber(labels, number):
    """Renumber groups by first appearance, in place; ``number`` holds a −1 for each group."""
    groups = 0
    for i in range(labels.size):
        label = labels[i]
        if number[label] < 0:
            number[label] = groups
            groups += 1
        labels[i] = number[label]


@lean_subkernel
def sum_up(X, labels, size, total):
    """Count the records of each group and sum up their values, in the order of rows.

    Parameters
    ----------
    X : (n, d) doubles
    labels : (n,) groups 0..g−1, below 0 for records in none
    size, total : (g,) numbers of any kind, and (g, d) doubles; filled
    """
    size[:] = 0
    total[:] = 0.0
    for i in range(labels.size):
        g = labels[i]
        if g >= 0:
            size[g] += 1
            for j in range(X.shape[1]):
                total[g, j] += X[i, j]


@lean_kernel
def _squares_of(X, labels, begin, end, groups, squares):
    """Sum the squares of the columns in the groups begin..end−1, in one pass over all records.

    Sums are of differences to the first member, so that large offsets do no harm: the squares
    cancel to no less than about a group's own spread. What a row needs lies side by side: ``groups``
    holds the size of each, then first value, sum and squares by column, all 0 at first.
    """
    n, d = X.shape
    for i in range(n):
        if not begin <= labels[i] < end:
            continue
        group = groups[labels[i] - begin]
        group[0, 0] += 1.0
        for j in range(d):
            if group[0, 0] == 1.0:
                group[j + 1, 0] = X[i, j]
            y = X[i, j] - group[j + 1, 0]
            group[j + 1, 1] += y
            group[j + 1, 2] += y * y
    for g in range(end - begin):
        for j in range(1, d + 1):
            less = groups[g, j, 1] * groups[g, j, 1] / groups[g, 0, 0]
            squares[begin + g, j - 1] = max(groups[g, j, 2] - less, 0.0)


def squares_within(X: Floats, labels: Labels, n_groups: int) -> float:
    """Sum of squared distances of the rows of X to the means of their groups."""
    squares = np.empty((n_groups, X.shape[1]))
    # Each thread reads all labels, and does the sums of its own groups.
    parts = min(1 + helpers(), n_groups) if len(X) >= _MANY else 1

    def work(part: int, _: int, __: int) -> None:
        begin, end = n_groups * part // parts, n_groups * (part + 1) // parts
        groups = np.zeros((end - begin, X.shape[1] + 1, 3))
        _squares_of(X, labels, begin, end, groups, squares)

    share_with_helpers(work, parts, at_once=1)
    sums = squares.reshape(-1)
    # One after the other, whatever threads have computed.
    return float(np.cumsum(sums, out=sums)[-1])


@kernel
def weighted_squares_within(X, weights, labels, n_groups):
    """Sum of weighted squared distances of the rows of X to the weighted means of their groups.

    In two passes: a light first member may be far from all others, and the squares of differences to
    it would then cancel to much less than themselves. What a mean is off by its own rounding is taken
    out again: among large values that are near to each other it is no small part of their distances.
    """
    n, d = X.shape
    first = np.full(n_groups, -1)
    mass, mean = np.zeros(n_groups), np.zeros((n_groups, d))
    for i in range(n):
        g = labels[i]
        if first[g] < 0:
            first[g] = i
        mass[g] += weights[i]
        for j in range(d):
            mean[g, j] += weights[i] * (X[i, j] - X[first[g], j])
    for g in range(n_groups):
        for j in range(d):
            mean[g, j] = X[first[g], j] + mean[g, j] / mass[g]
    within = np.zeros(n_groups)  # by group: a sum over all would lose the digits of small ones
    off = np.zeros((n_groups, d))
    for i in range(n):
        g, square = labels[i], 0.0
        for j in range(d):
            distance = X[i, j] - mean[g, j]
            square += distance**2
            off[g, j] += weights[i] * distance
        within[g] += weights[i] * square
    for g in range(n_groups):
        for j in range(d):
            within[g] -= off[g, j] ** 2 / mass[g]
        within[g] = max(within[g], 0.0)
    return within.sum()
