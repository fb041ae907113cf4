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
Here      With max_groups all values are one window (line.py), and every comparison is decided as those
          of the plain problem are (costs.py): in doubled precision beyond a bound on its error,
          equality by residues, and what is different yet too close in Python's integers. Equal costs
          go to the lower start, and to fewer groups. Own costs are compared as the doubles that
          the function returns.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from microagg.algorithms.univariate.costs import (
    doubled_error,
    group_doubled,
    group_residue,
    prefers_along,
    ready,
)
from microagg.algorithms.univariate.exact import add, plus, rational_cost
from microagg.algorithms.univariate.line import SortedLine
from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.compile.no_refcount import lean_kernel
from microagg.errors import InputError

_MOST_BACK_POINTERS = 2**28


@lean_kernel
def _one_group(line, k, doubled, residues):
    """Least costs of all columns with one group; return a bound on errors of least costs."""
    ready(line)
    for j in range(k, line.x.size + 1):
        doubled[j, 0], doubled[j, 1] = group_doubled(line, 0, j)
        residues[j] = group_residue(line, 0, j)
    return doubled_error(line, line.x.size)


@lean_kernel
def _layer(
    line, k, before, residues_before, after, residues, backs, layer, columns, error, answers
):
    """Best starts of all columns, given the costs with one group fewer.

    ``answers`` holds Python's about start, rival and column: whether the start is better. Returns
    what is still to be asked, or three times −1.
    """
    n, first = line.x.size, (layer + 1) * k
    # What is still to do: stretches of columns with the range of their best starts.
    top = 0
    columns[0, 0], columns[0, 1], columns[0, 2], columns[0, 3] = first, n, first - k, n - k
    while top >= 0:
        low, high, least, most = columns[top]
        top -= 1
        j = (low + high) // 2
        best = least
        c, d = group_doubled(line, best, j)
        h, e = add(before[best, 0], before[best, 1], c, d)
        r = plus(residues_before[best], group_residue(line, best, j))
        for i in range(least + 1, min(most, j - k) + 1):
            c, d = group_doubled(line, i, j)
            g, d = add(before[i, 0], before[i, 1], c, d)
            gap = add(g, d, -h, -e)[0]
            if abs(gap) <= 2 * error:
                if plus(residues_before[i], group_residue(line, i, j)) == r:
                    continue  # equal: the lower start stays
                gap = prefers_along(line, backs, (layer - 1) * (n + 1), n + 1, i, best, j)
                if gap == 0:
                    for t in range(len(answers)):
                        if answers[t, 0] == i and answers[t, 1] == best and answers[t, 2] == j:
                            gap = answers[t, 3]
                    if gap == 0:
                        return i, best, j
            if gap < 0:
                best, h, e = i, g, d
                r = plus(residues_before[i], group_residue(line, i, j))
        backs[layer * (n + 1) + j], residues[j] = best, r
        after[j, 0], after[j, 1] = h, e
        if low < j:
            top += 1
            columns[top, 0], columns[top, 1] = low, j - 1
            columns[top, 2], columns[top, 3] = least, best
        if j < high:
            top += 1
            columns[top, 0], columns[top, 1] = j + 1, high
            columns[top, 2], columns[top, 3] = best, most
    return -1, -1, -1


def cut_into_at_most(x: Floats, k: int, cost: int, max_groups: int) -> Labels:
    """Find the ends of the groups when there are at most ``max_groups``; fewer, if more are no better."""
    n = len(x)
    layers = min(max_groups, n // k)
    if layers * n > _MOST_BACK_POINTERS:
        raise InputError(
            f"max_groups={max_groups} on {plural(n, 'value')} needs {layers * n:,} back pointers, more than "
            f"{_MOST_BACK_POINTERS:,}. Use group_cost, which needs no layers, or fewer values."
        )
    backs = np.zeros((layers, n + 1), dtype=np.int32)

    def ends_of_layer(layer: int, j: int) -> list[int]:
        """Return the ends of the groups of column j, ``layer + 1`` of them."""
        ends = [j]
        for back in backs[layer:0:-1]:
            ends.append(int(back[ends[-1]]))
        return ends[::-1]

    def exactly(ends: list[int]) -> Fraction:
        groups = zip([0, *ends], ends, strict=False)
        return sum((rational_cost(x[i:j], cost) for i, j in groups), Fraction(0))

    line = SortedLine(x, k, cost, width=n + 2)
    line.window["hi"] = n
    columns = np.empty((n + 2, 4), dtype=np.int64)
    costs, residues = _no_costs(n)
    error = _one_group(line.arrays, k, costs, residues)
    best, least = 0, (costs[n].sum(), residues[n])
    for layer in range(1, layers):
        fewer, residues_of_fewer = costs, residues
        costs, residues = _no_costs(n)
        answers = np.empty((0, 4), dtype=np.int64)
        while True:
            i, rival, j = _layer(
                line.arrays,
                k,
                fewer,
                residues_of_fewer,
                costs,
                residues,
                backs.ravel(),
                layer,
                columns,
                error,
                answers,
            )
            if i < 0:
                break
            ours, theirs = (exactly([*ends_of_layer(layer - 1, start), j]) for start in (i, rival))
            answer = i, rival, j, -1 if ours < theirs else 1
            answers = np.concatenate([answers, [answer]])
        # One group more is not always better: too many leave no choice of their sizes.
        total = costs[n].sum(), residues[n]
        if abs(total[0] - least[0]) > 2 * error + 2.0**-50 * abs(least[0]):
            better = total[0] < least[0]
        else:
            ways = (exactly(ends_of_layer(t, n)) for t in (layer, best))
            better = total[1] != least[1] and next(ways) < next(ways)
        if better:
            best, least = layer, total
    return np.array(ends_of_layer(best, n), dtype=np.int64)


def _no_costs(n: int) -> tuple[Floats, NDArray[np.uint64]]:
    """Room for the least costs of n values: in doubled precision, and as residues."""
    return np.full((n + 1, 2), np.inf), np.zeros(n + 1, dtype=np.uint64)


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
