"""t-closeness by microaggregation: the three algorithms of the paper.

Problem   Groups of at least k records whose distribution of a confidential column is within t of that of the
          whole table, by the earth mover's distance over ranks.
Idea      Merging: groups for k alone; the group that is farthest from the table is united with the one whose
          centroid is nearest, until all are close.
          k first: groups as by MDAV; while a group is too far, the next nearest record to its seed comes in
          for the member whose leaving brings it closest to the table.
          t first: the table is sorted by the confidential column and cut into k' quantiles; every group
          takes from each the record nearest to its seed. k' is so large that this alone makes them close.
Cost      Merging O(g²), k first O(n²·k), t first O(n²/k') distances. Heuristics.
Paper     Soria-Comas, Domingo-Ferrer, Sánchez & Martínez 2015, Algorithms 1, 2 and 3.
Here      Ties go to the lower row. Where records share a value of the confidential column ranks
          are those of the values, and the bound of t first holds for distinct ones only; so all three end by
          merging what is still too far, and every result is t-close. The n mod k' records over
          go to the middle quantile, or to both of them in turns; a group takes two from one that
          has more left than there are groups to come. As in their code, k' grows until each group takes
          one such record at most.
"""

from __future__ import annotations

import numpy as np

from microagg.base.progress import new_state
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_subkernel, subkernel
from microagg.kernels.distances import squares_to
from microagg.kernels.label_loops import sum_up
from microagg.kernels.labels import canonical_labels
from microagg.kernels.outside_in import mdav_labels
from microagg.kernels.require_demands import violation_of
from microagg.kernels.require_kinds import LEVEL, TOLERANCE, Demands


def closeness_group_size(n: int, k: int, t: float) -> int:
    """Size of the groups of t first for n records, at least k.

    >>> [closeness_group_size(1080, 2, t) for t in (0.01, 0.05, 0.09, 0.13, 0.17, 0.21, 0.25)]
    [49, 10, 6, 4, 3, 3, 2]
    """
    size = max(k, int(np.ceil(n / (2 * (n - 1) * t + 1))))
    size = min(size, n)
    return size + (n % size) // (n // size)


@lean_subkernel
def _farthest(X, used, point):
    best, row = -1.0, -1
    for i in range(len(X)):
        if not used[i]:
            square = squares_to(X, i, point)
            if square > best:
                best, row = square, i
    return row


@lean_subkernel
def _nearest(X, used, point, quantile, wanted):
    """Return the remaining record nearest to a point, of a quantile, or of any if ``wanted`` is −1."""
    best, row = np.inf, -1
    for i in range(len(X)):
        if not used[i] and (wanted < 0 or quantile[i] == wanted):
            square = squares_to(X, i, point)
            if square < best:
                best, row = square, i
    return row


@lean_subkernel
def _seed(X, used, centre, before):
    """Return the record that begins a group: opposite to the one before, or, if that is −1, far out."""
    if before >= 0:
        return _farthest(X, used, X[before])
    count = 0
    centre[:] = 0.0  # the mean of the remaining records
    for i in range(len(X)):
        if not used[i]:
            count += 1
            for j in range(X.shape[1]):
                centre[j] += X[i, j]
    for j in range(X.shape[1]):
        centre[j] /= count
    return _farthest(X, used, centre)


@kernel
def _merge_farthest(X, demands, labels, n_groups, k):
    """Unite the group farthest from the table with its nearest one until all are close."""
    n, d = X.shape
    size, centroid = np.empty(n_groups), np.empty((n_groups, d))
    sum_up(X, labels, size, centroid)
    far, rows = np.zeros(n_groups), np.empty(n, np.intp)
    for g in range(n_groups):
        for j in range(d):
            centroid[g, j] /= size[g]
    fresh = np.ones(n_groups, np.bool_)
    while True:
        for g in range(n_groups):
            if fresh[g] and size[g] > 0:
                m = 0
                for i in range(n):
                    if labels[i] == g:
                        rows[m] = i
                        m += 1
                far[g], fresh[g] = violation_of(demands, rows, m, k), False
        worst = 0
        for g in range(n_groups):
            if far[g] > far[worst] + TOLERANCE:
                worst = g
        if far[worst] == 0:
            return
        best, partner = np.inf, -1
        for g in range(n_groups):
            if g != worst and size[g] > 0:
                square = squares_to(centroid, g, centroid[worst])
                if square < best:
                    best, partner = square, g
        if partner < 0:
            return
        for j in range(d):
            total = centroid[worst, j] * size[worst] + centroid[partner, j] * size[partner]
            centroid[worst, j] = total / (size[worst] + size[partner])
        size[worst], size[partner] = size[worst] + size[partner], 0
        far[partner], fresh[worst] = 0.0, True
        for i in range(n):
            if labels[i] == partner:
                labels[i] = worst


def merging(X: Floats, k: int, demands: Demands, labels: Labels | None = None) -> Labels:
    """Algorithm 1: MDAV's groups, or those given, united until each is t-close.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    k : least size of a group
    demands : one requirement of closeness, of the n records
    labels : (n,) int64, never written to; None: MDAV's

    Returns
    -------
    (n,) int64, the caller's, by first appearance
    """
    if labels is None:
        labels = mdav_labels(X, k, new_state())
    merged = canonical_labels(labels).copy()
    _merge_farthest(X, demands, merged, int(merged.max()) + 1, k)
    return canonical_labels(merged)


@subkernel
def _exchange(X, demands, k, seed, tried, rows):
    """Bring rows[:k] close to the table by records ever farther from the seed."""
    changed = np.empty(k, np.intp)
    lacking = violation_of(demands, rows, k, k)
    while lacking > 0:
        y = _nearest(X, tried, X[seed], rows, -1)
        if y < 0:
            return
        tried[y] = True
        best, at = lacking, -1
        for a in range(k):
            for b in range(k):
                changed[b] = rows[b]
            changed[a] = y
            far = violation_of(demands, changed, k, k)
            if far < best - TOLERANCE:  # of members equally good, the first
                best, at = far, a
        if at >= 0:
            rows[at], lacking = y, best


@kernel
def _k_first(X, demands, k, labels):
    n, d = X.shape
    used, centre, rows = np.zeros(n, np.bool_), np.empty(d), np.empty(k, np.intp)
    left, group, before = n, 0, -1
    while left >= 2 * k:
        seed = _seed(X, used, centre, before)
        tried = used.copy()
        for a in range(k):
            rows[a] = _nearest(X, tried, X[seed], rows, -1)
            tried[rows[a]] = True
        _exchange(X, demands, k, seed, tried, rows)
        for a in range(k):
            used[rows[a]], labels[rows[a]] = True, group
        left, group = left - k, group + 1
        before = seed if before < 0 else -1  # every other group begins opposite to the one before
    for i in range(n):
        if not used[i]:
            labels[i] = group


def k_first(X: Floats, k: int, demands: Demands) -> Labels:
    """Algorithm 2: MDAV whose groups exchange members for the sake of closeness, then merging.

    ``X``, ``k``, ``demands`` and what is returned are as for :func:`merging`.
    """
    labels = np.full(len(X), -1)
    _k_first(X, demands, k, labels)
    return merging(X, k, demands, labels)


@kernel
def _t_first(X, quantile, size, groups, labels):
    n, d = X.shape
    used, centre, left = np.zeros(n, np.bool_), np.empty(d), np.zeros(size, np.intp)
    for i in range(n):
        left[quantile[i]] += 1
    before = -1
    for group in range(groups):
        seed, extra = _seed(X, used, centre, before), False
        for q in range(size):
            times = 1
            if not extra and left[q] > groups - group:
                times, extra = 2, True
            for _ in range(times):
                row = _nearest(X, used, X[seed], quantile, q)
                used[row], labels[row] = True, group
                left[q] -= 1
        before = seed if before < 0 else -1


def t_first(X: Floats, k: int, demands: Demands) -> Labels:
    """Algorithm 3: a record of each quantile of the confidential column in every group, then merging.

    ``X``, ``k``, ``demands`` and what is returned are as for :func:`merging`.
    """
    n = len(X)
    size = min(closeness_group_size(n, k, float(demands.rule[0, LEVEL])), n)
    lengths = np.full(size, n // size)
    middle = [size // 2] if size % 2 else [size // 2 - 1, size // 2]
    for extra in range(n % size):  # the records over are in the middle
        lengths[middle[extra % len(middle)]] += 1
    quantile, labels = np.empty(n, dtype=np.int64), np.full(n, -1)
    quantile[np.argsort(demands.codes[0], kind="stable")] = np.repeat(np.arange(size), lengths)
    _t_first(X, quantile, size, n // size, labels)
    return merging(X, k, demands, labels)
