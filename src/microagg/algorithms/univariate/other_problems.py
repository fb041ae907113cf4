"""Variants of the univariate problem: at most q groups, own costs.

Problem   Cut n sorted values into groups at the least cost, where
          - there are at most ``max_groups`` groups; or
          - the cost of a group is any function of its values.
          (A cost per group and a soft minimum size are in ``line.Extra``.)
Idea      With at most q groups, splitting a group of 2k is no longer beneficial, so that a group has
          no largest size; the costs are still concave, so that the best start of the
          last group never moves back. The best starts of each layer, with one group more
          than the last, are found by divide and conquer between those of their neighbours.
Cost      max_groups O(q n log n) time, O(q n) memory; own costs call the function O(n²) times, or
          O(kn) if splitting is declared to be beneficial.
Paper     Stamm & Schaub 2024, section 6 (limitations and outlook) names the variants.
Here      With max_groups every comparison is decided as those of the plain problem are (exact.py): in
          doubled precision beyond a bound on its error, equality by residues, and what is different
          yet too close in Python's integers. Equal costs go to the lower start, and to fewer
          groups. Own costs are compared as the doubles that the function returns.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.univariate.exact import (
    MAX,
    ROUND_DOWN,
    ROUND_UP,
    SAE,
    SSE,
    add,
    by,
    divided,
    doubled_cost,
    inverses,
    minus,
    plus,
    rational_cost,
    residue,
    times,
)
from microagg.algorithms.univariate.line import near_one
from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.compile.no_refcount import lean_kernel, lean_subkernel
from microagg.errors import InputError
from microagg.kernels.doubled_sums import two_sum

_MOST_BACK_POINTERS = 2**28
_TINY = 2.0**-1000  # what values lose that were brought near 1, see line.near_one


class _PrefixSums(NamedTuple):
    """Prefix sums of the values and their squares around the median, in three ways."""

    x: Floats
    cost: int
    s: Floats  # (n+1, 2) in doubled precision
    q: Floats  # (n+1, 2)
    residues: NDArray[np.uint64]  # (n+1, 3) of sums and squares of the values, and of 1/size
    error: float  # doubled precision decides between partitions whose costs differ by more


class _LeastCosts(NamedTuple):
    """Least costs of all columns with a number of groups."""

    doubled: Floats  # (n+1, 2)
    residue: NDArray[np.uint64]  # (n+1,)


def _sums(x: Floats, cost: int, layers: int) -> _PrefixSums:
    """Sum up; a bound on errors comes with it.

    A sum of n terms is off by at most 3n units of 2^-106 of its largest part, a group's cost by
    12 n^1.5 such units of the sum of squares, since no mean exceeds its root; for the other costs
    of n² times the width. Each group adds its error; what is beyond that is for good measure.
    """
    near = near_one(x)[0]
    n = len(x)
    s, q = np.zeros((n + 1, 2)), np.zeros((n + 1, 2))
    residues = np.zeros((n + 1, 3), dtype=np.uint64)
    _fill_sums(near, x.view(np.int64), near[n // 2], s, q, residues)
    modular = np.zeros(n + 1, dtype=np.int64)
    inverses(np.empty(n + 1), np.empty(n + 1), modular, n)
    residues[:, 2] = modular.view(np.uint64)
    terms = n**1.5 * q[-1, 0] if cost == SSE else n**2 * (near[-1] - near[0])
    error = 2.0**-98 * (layers + 1) * float(terms) + _TINY
    return _PrefixSums(near, cost, s, q, residues, error)


@lean_kernel
def _fill_sums(x, raw, base, s, q, residues):
    for t in range(x.size):
        y, z = two_sum(x[t], -base)
        s[t + 1, 0], s[t + 1, 1] = add(s[t, 0], s[t, 1], y, z)
        y, z = times(y, z, y, z)
        q[t + 1, 0], q[t + 1, 1] = add(q[t, 0], q[t, 1], y, z)
        r = residue(raw[t])
        residues[t + 1, 0] = plus(residues[t, 0], r)
        residues[t + 1, 1] = plus(residues[t, 1], by(r, r))


@lean_subkernel
def _between(p, i, j):
    return add(p[j, 0], p[j, 1], -p[i, 0], -p[i, 1])


@lean_subkernel
def _cost(sums, i, j):
    """Cost of the group x[i..j−1] in doubled precision, twice the cost for ``max``; O(1)."""
    x, n = sums.x, j - i
    if sums.cost == MAX:
        return two_sum(x[j - 1], -x[i])
    if sums.cost == SAE:
        half = n // 2
        h, e = _between(sums.s, j - half, j)
        g, d = _between(sums.s, i, i + half)
        return add(h, e, -g, -d)
    if sums.cost in (ROUND_UP, ROUND_DOWN):
        end = x[j - 1] if sums.cost == ROUND_UP else x[i]
        h, e = two_sum(end, -x[x.size // 2])
        h, e = times(h, e, float(n), 0.0)
        g, d = _between(sums.s, i, j)
        sign = 1.0 if sums.cost == ROUND_UP else -1.0
        return add(sign * h, sign * e, -sign * g, -sign * d)
    h, e = _between(sums.s, i, j)
    h, e = times(h, e, h, e)
    h, e = divided(h, e, float(n))
    g, d = _between(sums.q, i, j)
    return add(g, d, -h, -e)


@lean_subkernel
def _value_of(p, t):
    """Residue of a single value."""
    return minus(p[t + 1, 0], p[t, 0])


@lean_subkernel
def _residue(sums, i, j):
    """Residue of the cost of the group x[i..j−1]."""
    p, n = sums.residues, j - i
    total = minus(p[j, 0], p[i, 0])
    if sums.cost == MAX:
        return minus(_value_of(p, j - 1), _value_of(p, i))
    if sums.cost == SAE:
        half = n // 2
        upper = minus(p[j, 0], p[j - half, 0])
        return minus(upper, minus(p[i + half, 0], p[i, 0]))
    if sums.cost == ROUND_UP:
        return minus(by(_value_of(p, j - 1), np.uint64(n)), total)
    if sums.cost == ROUND_DOWN:
        return minus(total, by(_value_of(p, i), np.uint64(n)))
    return minus(minus(p[j, 1], p[i, 1]), by(by(total, total), p[n, 2]))


@lean_subkernel
def _prefers_along(sums, backs, layer, i, rival, j):
    """Compare two partitions group by group, back to where they part: −1, 1, or 0 if too close.

    Each group's cost is computed around its own middle, so that what is lost is a share of the
    costs that differ, not of those of all values.
    """
    high, low, scale, longest, groups = 0.0, 0.0, 0.0, 0, 0
    a, b, end_a, end_b = i, rival, j, j
    while True:
        for sign in (1.0, -1.0):
            start, end = (a, end_a) if sign > 0 else (b, end_b)
            h, e = doubled_cost(sums.x, sums.cost, start, end)
            high, low = add(high, low, sign * h, sign * e)
            scale += h
            longest, groups = max(longest, end - start), groups + 1
        if a == b:
            break
        layer -= 1
        end_a, end_b = a, b
        a, b = np.int64(backs[layer, a]), np.int64(backs[layer, b])
    if abs(high) > 2.0**-100 * (longest + groups + 8) * scale + _TINY:
        return -1 if high < 0 else 1
    return 0


@lean_kernel
def _layer(sums, k, before, after, backs, layer, columns, answers):
    """Best starts of all columns, given the costs with one group fewer.

    ``answers`` holds Python's about start, rival and column: whether the start is better. Returns
    what is still to be asked, or three times −1.
    """
    n, first = sums.x.size, (layer + 1) * k
    # What is still to do: stretches of columns with the range of their best starts.
    top = 0
    columns[0, 0], columns[0, 1], columns[0, 2], columns[0, 3] = first, n, first - k, n - k
    while top >= 0:
        low, high, least, most = columns[top]
        top -= 1
        j = (low + high) // 2
        best = least
        c, d = _cost(sums, best, j)
        h, e = add(before.doubled[best, 0], before.doubled[best, 1], c, d)
        r = plus(before.residue[best], _residue(sums, best, j))
        for i in range(least + 1, min(most, j - k) + 1):
            c, d = _cost(sums, i, j)
            g, d = add(before.doubled[i, 0], before.doubled[i, 1], c, d)
            gap = add(g, d, -h, -e)[0]
            if abs(gap) <= sums.error:
                if plus(before.residue[i], _residue(sums, i, j)) == r:
                    continue  # equal: the lower start stays
                gap = _prefers_along(sums, backs, layer, i, best, j)
                if gap == 0:
                    for t in range(len(answers)):
                        if answers[t, 0] == i and answers[t, 1] == best and answers[t, 2] == j:
                            gap = answers[t, 3]
                    if gap == 0:
                        return i, best, j
            if gap < 0:
                best, h, e = i, g, d
                r = plus(before.residue[i], _residue(sums, i, j))
        backs[layer, j], after.residue[j] = best, r
        after.doubled[j, 0], after.doubled[j, 1] = h, e
        if low < j:
            top += 1
            columns[top, 0], columns[top, 1] = low, j - 1
            columns[top, 2], columns[top, 3] = least, best
        if j < high:
            top += 1
            columns[top, 0], columns[top, 1] = j + 1, high
            columns[top, 2], columns[top, 3] = best, most
    return -1, -1, -1


@lean_kernel
def _one_group(sums, k, costs):
    for j in range(k, sums.x.size + 1):
        costs.doubled[j, 0], costs.doubled[j, 1] = _cost(sums, 0, j)
        costs.residue[j] = _residue(sums, 0, j)


def _ends(backs: NDArray[np.int32], layer: int, j: int) -> list[int]:
    """Return the ends of the groups of column j, ``layer + 1`` of them."""
    ends = []
    for t in range(layer, -1, -1):
        ends.append(j)
        j = int(backs[t, j])
    return ends[::-1]


def _rational(x: Floats, cost: int, ends: list[int]) -> Fraction:
    starts = [0, *ends[:-1]]
    return sum(
        (rational_cost(x[i:j], cost) for i, j in zip(starts, ends, strict=True)), Fraction(0)
    )


def cut_into_at_most(x: Floats, k: int, cost: int, max_groups: int) -> Labels:
    """Find the ends of the groups when there are at most ``max_groups``; fewer, if more are no better."""
    n = len(x)
    layers = min(max_groups, n // k)
    if layers * n > _MOST_BACK_POINTERS:
        raise InputError(
            f"max_groups={max_groups} on {plural(n, 'value')} needs {layers * n:,} back pointers, more than "
            f"{_MOST_BACK_POINTERS:,}. Use group_cost, which needs no layers, or fewer values."
        )
    sums = _sums(x, cost, layers)
    backs = np.zeros((layers, n + 1), dtype=np.int32)
    columns = np.empty((n + 2, 4), dtype=np.int64)
    before = _no_costs(n)
    _one_group(sums, k, before)
    best, least = 0, (before.doubled[n].sum(), before.residue[n])
    for layer in range(1, layers):
        after = _no_costs(n)
        answers = np.empty((0, 4), dtype=np.int64)
        while True:
            i, rival, j = _layer(sums, k, before, after, backs, layer, columns, answers)
            if i < 0:
                break
            ours, theirs = (
                _rational(x, cost, [*_ends(backs, layer - 1, start), j]) for start in (i, rival)
            )
            answer = i, rival, j, -1 if ours < theirs else 1
            answers = np.concatenate([answers, [answer]])
        before = after
        # One group more is not always better: too many leave no choice of their sizes.
        found = after.doubled[n].sum(), after.residue[n]
        if abs(found[0] - least[0]) > 2 * sums.error + 2.0**-50 * least[0]:
            better = found[0] < least[0]
        else:
            ways = (_rational(x, cost, _ends(backs, t, n)) for t in (layer, best))
            better = found[1] != least[1] and next(ways) < next(ways)
        if better:
            best, least = layer, found
    return np.array(_ends(backs, best, n), dtype=np.int64)


def _no_costs(n: int) -> _LeastCosts:
    return _LeastCosts(np.full((n + 1, 2), np.inf), np.zeros(n + 1, dtype=np.uint64))


def cut_with_own_cost(
    x: Floats, k: int, cost: Callable[[Floats], float], splitting_is_beneficial: bool
) -> Labels:
    """Find the ends of the groups for a cost that is a Python function of a group's sorted values."""
    n = len(x)
    f = [0.0] + [np.inf] * n
    back = np.zeros(n + 1, dtype=np.int64)
    for j in range(k, n + 1):
        first = max(j - 2 * k + 1, 0) if splitting_is_beneficial else 0
        for i in range(first, j - k + 1):
            if f[i] < np.inf:
                value = f[i] + float(cost(x[i:j]))
                if value != value:
                    raise InputError(
                        "A cost must be a number; the function given returned NaN for the sorted values "
                        f"{i + 1} to {j}."
                    )
                if value < f[j]:
                    f[j], back[j] = value, i
    return ends_of(back)


def ends_of(back: NDArray[np.integer]) -> Labels:
    """Follow the starts of the last groups back from the end."""
    ends, j = [], len(back) - 1
    while j > 0:
        ends.append(j)
        j = int(back[j])
    return np.array(ends[::-1], dtype=np.int64)
