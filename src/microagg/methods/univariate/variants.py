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
Here      With max_groups, costs are compared in doubled precision from prefix sums around the median.
          They are not certified as those of the plain problem are: costs that agree in about
          28 digits of the largest sum count as equal, and then the lower start wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.errors import InputError
from microagg.groups import Floats, Labels
from microagg.kernels.lean import lean_kernel, lean_subkernel
from microagg.kernels.sums import two_sum
from microagg.methods.univariate.exact import MAX, ROUND_DOWN, ROUND_UP, SAE, add, divided, times
from microagg.methods.univariate.line import near_one

__all__ = ["cut_into_at_most", "cut_with_own_cost"]

_MOST_BACK_POINTERS = 2**28


class _Sums(NamedTuple):
    """Prefix sums of the values and their squares around the median, in doubled precision."""

    x: Floats
    cost: int
    s: Floats  # (n+1, 2)
    q: Floats  # (n+1, 2)
    equal: float  # costs that differ by less count as equal


def _sums(x: Floats, cost: int) -> _Sums:
    s, q = np.zeros((len(x) + 1, 2)), np.zeros((len(x) + 1, 2))
    _fill_sums(x, x[len(x) // 2], s, q)
    largest = q[-1, 0] if cost == 0 else np.abs(s[:, 0]).max() + x[-1] - x[0]
    return _Sums(x, cost, s, q, float(largest) * 2.0**-94)


@lean_kernel
def _fill_sums(x, base, s, q):
    for t in range(x.size):
        y, z = two_sum(x[t], -base)
        s[t + 1, 0], s[t + 1, 1] = add(s[t, 0], s[t, 1], y, z)
        y, z = times(y, z, y, z)
        q[t + 1, 0], q[t + 1, 1] = add(q[t, 0], q[t, 1], y, z)


@lean_subkernel
def _between(p, i, j):
    return add(p[j, 0], p[j, 1], -p[i, 0], -p[i, 1])


@lean_kernel
def _cost(sums, i, j):
    """Cost of the group x[i..j−1] in doubled precision, O(1)."""
    x, n = sums.x, j - i
    if sums.cost == MAX:
        h, e = two_sum(x[j - 1], -x[i])
        return 0.5 * h, 0.5 * e
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
def _value(sums, f, i, j):
    h, e = _cost(sums, i, j)
    return add(f[i, 0], f[i, 1], h, e)


@lean_kernel
def _layer(sums, k, before, after, back, first, columns):
    """Best starts of all columns from ``first`` on, given the costs with one group fewer."""
    n = sums.x.size
    # What is still to do: stretches of columns with the range of their best starts.
    top = 0
    columns[0, 0], columns[0, 1], columns[0, 2], columns[0, 3] = first, n, first - k, n - k
    while top >= 0:
        low, high, least, most = columns[top]
        top -= 1
        j = (low + high) // 2
        best = least
        h, e = _value(sums, before, best, j)
        for i in range(least + 1, min(most, j - k) + 1):
            g, d = _value(sums, before, i, j)
            if add(g, d, -h, -e)[0] < -sums.equal:
                best, h, e = i, g, d
        back[j], after[j, 0], after[j, 1] = best, h, e
        if low < j:
            top += 1
            columns[top, 0], columns[top, 1] = low, j - 1
            columns[top, 2], columns[top, 3] = least, best
        if j < high:
            top += 1
            columns[top, 0], columns[top, 1] = j + 1, high
            columns[top, 2], columns[top, 3] = best, most


def cut_into_at_most(x: Floats, k: int, cost: int, max_groups: int) -> Labels:
    """Ends of the groups when there are at most ``max_groups``."""
    n = len(x)
    layers = min(max_groups, n // k)
    if layers * n > _MOST_BACK_POINTERS:
        raise InputError(
            f"max_groups={max_groups} on {n} values needs {layers * n:,} back pointers, more than "
            f"{_MOST_BACK_POINTERS:,}. Use group_cost, which needs no layers, or fewer values."
        )
    # Sums of squares of values near the largest double would overflow.
    sums = _sums(near_one(x)[0], cost)
    before = _empty_costs(n)
    backs = np.zeros((layers, n + 1), dtype=np.int32)
    columns = np.empty((n + 2, 4), dtype=np.int64)
    best, least = 0, before[n]
    for layer in range(layers):
        after = _empty_costs(n)
        after[0, 0] = np.inf
        if layer == 0:
            for j in range(k, n + 1):
                after[j] = _cost(sums, 0, j)
        else:
            _layer(sums, k, before, after, backs[layer], (layer + 1) * k, columns)
        before = after
        # One group more is not always better: too many leave no choice of their sizes.
        if layer == 0 or (after[n] - least).sum() < -sums.equal:
            best, least = layer, after[n]
    ends, j = [], n
    for layer in range(best, -1, -1):
        ends.append(j)
        j = int(backs[layer, j])
    return np.array(ends[::-1], dtype=np.int64)


def cut_with_own_cost(
    x: Floats, k: int, cost: Callable[[Floats], float], splitting_is_beneficial: bool
) -> Labels:
    """Ends of the groups for a cost that is a Python function of a group's sorted values."""
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


def _empty_costs(n: int) -> Floats:
    f = np.zeros((n + 1, 2))
    f[1:, 0] = np.inf
    return f
