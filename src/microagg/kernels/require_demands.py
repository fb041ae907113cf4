"""Requirements other than k, in the form that loops need.

Every requirement looks at a group through one tally: what the group has of each code of a column
(records of a value or a unit, or the amount that a unit contributes), and through its size and its total
amount. ``shortage`` says how far a tally is from what is asked, 0 when nothing is missing. The loops that
search for groups keep tallies up to date and never need to know which requirement they serve.
"""

from __future__ import annotations

import numpy as np

from microagg.compile.jit import kernel, lean_kernel, lean_subkernel, subkernel
from microagg.kernels.kd_search import in_order, keep
from microagg.kernels.require_kinds import (
    CODES,
    DISTINCT,
    ENTROPY,
    EQUAL,
    EXTRA,
    FIRST,
    HIDDEN,
    KIND,
    LARGEST,
    LEVEL,
    ORDERED,
    P_PERCENT,
    POPULATION,
    TOLERANCE,
)


@lean_subkernel
def _area(table, begin, height, start, stop):
    """Sum of |height − share| over the codes start ≤ i < stop, whose shares rise."""
    low, high = start, stop  # the first share that is not below the height
    if start < stop:
        if table[begin + start, 0] >= height:
            high = start
        elif table[begin + stop - 1, 0] < height:
            low = stop
    while low < high:
        middle = (low + high) // 2
        if table[begin + middle, 0] < height:
            low = middle + 1
        else:
            high = middle
    under = height * (low - start) - (table[begin + low, 1] - table[begin + start, 1])
    over = (table[begin + stop, 1] - table[begin + low, 1]) - height * (stop - low)
    return under + over


@lean_subkernel
def _ordered_distance(table, begin, last, code, tally, entries, size):
    """Earth mover's distance to the whole table, neighbouring ranks 1/(m−1) apart."""
    if last <= 0:
        return 0.0
    total, reached, start = 0.0, 0.0, 0
    for c in range(entries):
        if tally[c] > 0:
            total += _area(table, begin, reached / size, start, code[c])
            reached, start = reached + tally[c], code[c]
    total += _area(table, begin, reached / size, start, last)
    return total / last


@lean_subkernel
def _largest_sum(tally, entries, count):
    """Sum of the ``count`` largest tallies, found one below the other; ``count`` is small."""
    total, bound, members = 0.0, np.inf, 0
    while members < count:
        most, times = -1.0, 0
        for c in range(entries):
            if tally[c] < bound:
                if tally[c] > most:
                    most, times = tally[c], 1
                elif tally[c] == most:
                    times += 1
        if most <= 0:
            break
        used = min(times, count - members)
        total, members, bound = total + used * most, members + used, most
    return total


@lean_subkernel
def _given_away(table, begin, last, code, tally, entries):
    """Count the records of a group that has only values near theirs.

    ``last`` is the number of codes. Their values ascend from ``begin`` in the table, and behind them stands
    how near others must be, below 0 for a value that is no news.
    """
    lowest, highest = -1, -1
    for c in range(entries):
        if tally[c] > 0:
            highest = c
            if lowest < 0:
                lowest = c
    most = 0.0
    for c in range(entries):
        if tally[c] > 0:
            value, near = table[begin + code[c], 0], table[begin + last + code[c], 0]
            below = value - table[begin + code[lowest], 0]
            above = table[begin + code[highest], 0] - value
            if below <= near and above <= near:
                most += tally[c]
    return most


@lean_kernel
def risk_of(size, population):
    """Risk of each record of a group of ``size`` that stands for ``population`` persons.

    The posterior mean of 1/F (Benedetti & Franconi 1998), with the usual approximation, which is
    on the safe side, from three records on. Written so that p near 1 costs no digits.
    """
    p = min(size / population, 1.0) if population > 0 else 1.0
    gap = 1.0 - p
    if size == 1:
        return p * (1 + gap / 2 + gap * gap / 3) if gap < 1e-5 else p / gap * np.log(1 / p)
    if size == 2:
        if gap < 1e-4:
            return p * (0.5 + gap / 6 + gap * gap / 12)
        return p / (gap * gap) * (p * np.log(p) + gap)
    return p / (size - gap)


@lean_subkernel
def shortage(rule, table, code, tally, entries, size, total):
    """Measure how far a group is from what a rule asks, in the rule's own unit; 0 when nothing is missing.

    Parameters
    ----------
    rule, table : a row of ``Demands.rule``, and ``Demands.table``
    code, tally : (at least entries,) codes of the group's records, ascending, and what it has of each
    entries : how many codes count; some may have a tally of 0
    size : records of the group, at least 1
    total : sum of the tallies
    """
    kind, level, lacking = rule[KIND], rule[LEVEL], 0.0
    begin = int(rule[FIRST])
    if kind == DISTINCT:
        have = 0
        for c in range(entries):
            have += tally[c] > 0
        lacking = (level - have) / level
    elif kind == ENTROPY:
        logs = 0.0
        for c in range(entries):
            if tally[c] > 1:
                logs += tally[c] * np.log(tally[c])
        lacking = 1 - (np.log(size) - logs / size) / np.log(level) if level > 1 else 0.0
    elif kind == ORDERED:
        lacking = _ordered_distance(table, begin, int(rule[CODES]) - 1, code, tally, entries, size)
        lacking -= level
    elif kind == EQUAL:
        for c in range(entries):
            lacking += max(tally[c] / size - table[begin + code[c], 0], 0.0)
        lacking -= level
    elif kind == P_PERCENT:
        first = second = 0.0  # the two largest tallies
        for c in range(entries):
            if tally[c] > first:
                first, second = tally[c], first
            elif tally[c] > second:
                second = tally[c]
        least = level * first  # 0 also where it is too small for a number
        lacking = 1 - (total - first - second) / least if least > 0 else 0.0
    elif kind == LARGEST:
        top = _largest_sum(tally, entries, int(rule[EXTRA]))
        lacking = top / total - level if total > 0 else 0.0
    elif kind == HIDDEN:
        lacking = _given_away(table, begin, int(rule[CODES]) // 2, code, tally, entries) / size
    elif kind == POPULATION:
        lacking = (level - total) / level
    else:
        lacking = risk_of(size, total) - level
    return lacking if lacking > TOLERANCE else 0.0


@subkernel
def violation_of(demands, rows, size, k):
    """Sum of all shortages of the group rows[:size], that of records included; from the records.

    Parameters
    ----------
    demands : of n records
    rows : (at least size,) rows of a group
    size : how many of these count
    k : least number of records

    Returns
    -------
    0 where nothing is missing
    """
    violation = max(k - size, 0) / k
    keys, tally, code = np.empty(size), np.empty(size), np.empty(size, np.intp)
    order = np.empty(size, np.intp)
    for r in range(len(demands.rule)):
        total = 0.0
        for a in range(size):  # into a heap: numba's own sorting takes seconds to compile
            keep(keys, order, a, size, float(demands.codes[r, rows[a]]), a)
            total += demands.amounts[r, rows[a]]
        in_order(keys, order, size)
        entries = 0
        for a in range(size):
            row = rows[order[a]]
            if entries == 0 or code[entries - 1] != demands.codes[r, row]:
                code[entries], tally[entries] = demands.codes[r, row], 0.0
                entries += 1
            tally[entries - 1] += demands.amounts[r, row]
        violation += shortage(demands.rule[r], demands.table, code, tally, entries, size, total)
    return violation


@kernel
def violations(demands, rows, start, k):
    """Violation of each group; group g is rows[start[g] : start[g + 1]].

    Parameters
    ----------
    demands : of n records
    rows : (n,) rows, group by group
    start : (g + 1,) where the groups begin, and the end
    k : least number of records

    Returns
    -------
    (g,) doubles, 0 where nothing is missing
    """
    by_group = np.empty(start.size - 1)
    for g in range(by_group.size):
        by_group[g] = violation_of(
            demands, rows[start[g] : start[g + 1]], start[g + 1] - start[g], k
        )
    return by_group
