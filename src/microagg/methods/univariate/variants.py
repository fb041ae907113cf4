"""Variants of the univariate problem: a cost per group, at most q groups, a soft minimum, own costs.

Problem   Cut n sorted values into groups at the least cost, where
          - each group costs ``group_cost`` more, so that large groups may pay; or
          - there are at most ``max_groups`` groups; or
          - groups under k are allowed, at ``size_penalty`` for each record that they lack; or
          - the cost of a group is any function of its values.
Idea      Splitting a group of 2k is no longer beneficial in the first two, so that a group
          has no largest size; the costs are still concave, so that the best start of the
          last group never moves back. With a cost per group, a queue holds the starts that
          will be best for some stretch of columns, and a new start takes over the end of it,
          found by bisection. With q groups, the best starts of each layer are found by
          divide and conquer between those of their neighbours.
Cost      group_cost O(n log n), max_groups O(q n log n), size_penalty O(kn); own costs call the
          function O(n²) times, or O(kn) if splitting is declared to be beneficial.
Paper     Stamm & Schaub 2024, section 6 (limitations and outlook) names the variants and says that
          Wilber's and Galil & Park's algorithms solve the first; the queue used here is
          Hirschberg & Larmore's (1987), for the sake of its short code.
Here      Costs are compared in doubled precision from prefix sums around the median. They are not
          certified as those of the plain problem are: costs that agree in about 28
          digits of the largest sum count as equal, and then the lower start wins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.errors import InputError
from microagg.groups import Floats, Labels
from microagg.kernels.sums import two_sum
from microagg.methods.univariate.compiled import entry, inner
from microagg.methods.univariate.exact import MAX, ROUND_DOWN, ROUND_UP, SAE, add, divided, times

__all__ = ["cut_into_at_most", "cut_with_group_cost", "cut_with_own_cost", "cut_with_soft_minimum"]

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


@entry
def _fill_sums(x, base, s, q):  # type: ignore[no-untyped-def]
    for t in range(x.size):
        y, z = two_sum(x[t], -base)
        s[t + 1, 0], s[t + 1, 1] = add(s[t, 0], s[t, 1], y, z)
        y, z = times(y, z, y, z)
        q[t + 1, 0], q[t + 1, 1] = add(q[t, 0], q[t, 1], y, z)


@inner
def _between(p, i, j):  # type: ignore[no-untyped-def]
    return add(p[j, 0], p[j, 1], -p[i, 0], -p[i, 1])


@entry
def _cost(sums, i, j):  # type: ignore[no-untyped-def]
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


@inner
def _value(sums, f, i, j):  # type: ignore[no-untyped-def]
    h, e = _cost(sums, i, j)
    return add(f[i, 0], f[i, 1], h, e)


@inner
def _better(sums, f, i, rival, j):  # type: ignore[no-untyped-def]
    """Whether start i beats ``rival`` for column j; equal costs go to the lower start."""
    h, e = _value(sums, f, i, j)
    g, d = _value(sums, f, rival, j)
    h, e = add(h, e, -g, -d)
    if abs(h) <= sums.equal:
        return i < rival
    return h < 0


@entry
def _queue(sums, k, group_cost, f, back, starts, since):  # type: ignore[no-untyped-def]
    n = sums.x.size
    starts[0], since[0] = 0, k
    front, size = 0, 1
    for j in range(k, n + 1):
        i = j - k  # a start that can be used from this column on
        if i >= k:
            # Starts that i beats before they come into use are never the best.
            while (
                size > front
                and since[size - 1] >= j
                and (_better(sums, f, i, starts[size - 1], since[size - 1]))
            ):
                size -= 1
            if size == front:
                starts[size], since[size] = i, j
                size += 1
            elif _better(sums, f, i, starts[size - 1], n):
                low, high = max(since[size - 1], j), n  # i is not best at low, unless low is j
                if _better(sums, f, i, starts[size - 1], low):
                    high = low
                while high - low > 1:
                    middle = (low + high) // 2
                    if _better(sums, f, i, starts[size - 1], middle):
                        high = middle
                    else:
                        low = middle
                starts[size], since[size] = i, high
                size += 1
        while front + 1 < size and since[front + 1] <= j:
            front += 1
        back[j] = starts[front]
        h, e = _value(sums, f, starts[front], j)
        f[j, 0], f[j, 1] = add(h, e, group_cost, 0.0)


@entry
def _layer(sums, k, before, after, back, first, columns):  # type: ignore[no-untyped-def]
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


@entry
def _soft(sums, k, penalty, f, back):  # type: ignore[no-untyped-def]
    n = sums.x.size
    for j in range(1, n + 1):
        least, least_low, best = np.inf, 0.0, 0
        for i in range(max(j - 2 * k + 1, 0), j):
            h, e = _value(sums, f, i, j)
            if j - i < k:
                h, e = add(h, e, penalty * (k - (j - i)), 0.0)
            g, _ = add(h, e, -least, -least_low) if least < np.inf else (-1.0, 0.0)
            if g < -sums.equal:
                least, least_low, best = h, e, i
        f[j, 0], f[j, 1], back[j] = least, least_low, best


def cut_with_group_cost(x: Floats, k: int, cost: int, group_cost: float) -> Labels:
    """Ends of the groups when each group costs ``group_cost`` more."""
    f, back = _empty_costs(len(x)), np.zeros(len(x) + 1, dtype=np.int64)
    starts, since = np.empty_like(back), np.empty_like(back)
    _queue(_sums(x, cost), k, group_cost, f, back, starts, since)
    return ends_of(back)


def cut_into_at_most(x: Floats, k: int, cost: int, max_groups: int) -> Labels:
    """Ends of the groups when there are at most ``max_groups``."""
    n = len(x)
    layers = min(max_groups, n // k)
    if layers * n > _MOST_BACK_POINTERS:
        raise InputError(
            f"max_groups={max_groups} on {n} values needs {layers * n:,} back pointers, more than "
            f"{_MOST_BACK_POINTERS:,}. Use group_cost, which needs no layers, or fewer values."
        )
    sums = _sums(x, cost)
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


def cut_with_soft_minimum(x: Floats, k: int, cost: int, size_penalty: float) -> Labels:
    """Ends of the groups when a group may lack records, at ``size_penalty`` each."""
    f, back = _empty_costs(len(x)), np.zeros(len(x) + 1, dtype=np.int64)
    f[:, 1] = 0.0
    _soft(_sums(x, cost), k, size_penalty, f, back)
    return ends_of(back)


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
