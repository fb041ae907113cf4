"""Tallies of a pool's groups: what a change does to the requirements, before it is made.

Without requirements the tallies are None, and the compiler leaves out all of this except for the size of a
group. For counts of distinct codes the effect of a change is known at once, for other requirements it takes
a loop over the codes that occur in the pool (kernels/require_demands.py).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.compile.jit import inlined_subkernel, lean_subkernel, subkernel
from microagg.kernels.require_demands import shortage
from microagg.kernels.require_kinds import DISTINCT, KIND, LEVEL, POPULATION, RISK, TOLERANCE

FOUND, TOTAL = -2, -1  # at the end of a group's tallies: number of its codes, sum of its amounts


class Tallies(NamedTuple):
    """How often each group of a pool has each code that the requirements look at."""

    rule: Any  # (requirements, 5) as in Demands
    table: Any  # (entries, 2) as in Demands
    own: Any  # (requirements, records) the place of a record's code among the codes of the pool
    amount: Any  # (requirements, records) what the record adds to the tally of its code
    code: Any  # (requirements, records + 1) codes of the pool, ascending; at the end their number
    tally: Any  # (requirements, groups, records + 2) by the code's place; then found and total
    short: Any  # (groups,) violation of each group


@subkernel
def new_tallies(demands, records, groups):
    """Allocate the tallies of a pool, or return None if there are no demands."""
    if demands is None:
        return None
    requirements = len(demands.rule)
    return Tallies(
        demands.rule,
        demands.table,
        np.empty((requirements, records), np.intp),
        np.empty((requirements, records)),
        np.empty((requirements, records + 1), np.intp),
        np.empty((requirements, groups, records + 2)),
        np.empty(groups),
    )


@lean_subkernel
def number_codes(codes, rows, order, own, code, m):
    """Give the codes of m records numbers in ascending order; ``order`` is scratch."""
    for x in range(m):  # insertion: a pool is small
        mine, a = codes[rows[x]], x
        while a > 0 and codes[rows[order[a - 1]]] > mine:
            order[a] = order[a - 1]
            a -= 1
        order[a] = x
    entries = 0
    for a in range(m):
        mine = codes[rows[order[a]]]
        if entries == 0 or code[entries - 1] != mine:
            code[entries] = mine
            entries += 1
        own[order[a]] = entries - 1
    code[-1] = entries


@lean_subkernel
def look_up(tallies, demands, rows, order, m):
    """Look up the codes and amounts of the pool's first m rows; ``order`` is scratch."""
    if tallies is not None:
        for r in range(len(demands.rule)):
            number_codes(demands.codes[r], rows, order, tallies.own[r], tallies.code[r], m)
            for x in range(m):
                tallies.amount[r, x] = demands.amounts[r, rows[x]]


@inlined_subkernel
def clear(tallies, g):
    """Empty the tallies of a group."""
    if tallies is not None:
        for r in range(len(tallies.rule)):
            tallies.tally[r, g, FOUND] = tallies.tally[r, g, TOTAL] = 0.0
            for c in range(tallies.code[r, -1]):
                tallies.tally[r, g, c] = 0.0


@inlined_subkernel
def count(tallies, x, g, sign):
    """Add a record to the tallies of a group, or subtract it."""
    if tallies is not None:
        own, amount, tally = tallies.own, tallies.amount, tallies.tally
        for r in range(len(own)):
            c = own[r, x]
            if sign > 0 and tally[r, g, c] == 0:
                tally[r, g, FOUND] += 1
            tally[r, g, c] += sign * amount[r, x]
            if sign < 0 and tally[r, g, c] == 0:
                tally[r, g, FOUND] -= 1
            tally[r, g, TOTAL] += sign * amount[r, x]


@lean_subkernel
def _shortage_after(rule, table, own, amount, code, tally, size, out, extra):
    """Return the shortage of one requirement, other than distinct codes, as in ``violation_after``."""
    total = tally[TOTAL]
    if out >= 0:
        total -= amount[out]
    if extra >= 0:
        total += amount[extra]
    if rule[KIND] == POPULATION or rule[KIND] == RISK:
        return shortage(rule, table, code, tally, 0, size, total)
    old, new = own[out] if out >= 0 else 0, own[extra] if extra >= 0 else 0
    of_old, of_new = tally[old], tally[new]  # kept, since to add them back would round
    if out >= 0:
        tally[old] -= amount[out]
    if extra >= 0:
        tally[new] += amount[extra]
    lacking = shortage(rule, table, code, tally, code[-1], size, total)
    tally[old], tally[new] = of_old, of_new
    return lacking


@lean_subkernel
def violation_after(tallies, size, k, g, out, extra):
    """Return the violation of group g without record ``out`` and with ``extra``; −1 stands for none."""
    records = size[g] - (out >= 0) + (extra >= 0)
    lacking = (k - records) / k if records < k else 0.0
    if tallies is not None:
        rule, own, tally = tallies.rule, tallies.own, tallies.tally
        for r in range(len(rule)):
            if rule[r, KIND] == DISTINCT:
                have = tally[r, g, FOUND]
                if extra >= 0 and tally[r, g, own[r, extra]] == 0:
                    have += 1
                if out >= 0 and tally[r, g, own[r, out]] == 1:
                    have -= 1
                if out >= 0 and extra >= 0 and own[r, out] == own[r, extra]:
                    have = tally[r, g, FOUND]
                if have < rule[r, LEVEL]:
                    lacking += (rule[r, LEVEL] - have) / rule[r, LEVEL]
            elif records > 0:
                amount, code = tallies.amount[r], tallies.code[r]
                lacking += _shortage_after(
                    rule[r], tallies.table, own[r], amount, code, tally[r, g], records, out, extra
                )
    return lacking if lacking > TOLERANCE else 0.0


@lean_subkernel
def count_violation(tallies, size, k, g):
    """Return the violation of a group after a change, and keep it in the tallies."""
    lacking = violation_after(tallies, size, k, g, -1, -1)
    if tallies is not None:
        tallies.short[g] = lacking
    return lacking


@lean_subkernel
def violation(tallies, begin, end):
    """Return the sum of the violations of the groups begin..end−1."""
    total = 0.0
    if tallies is not None:
        for g in range(begin, end):
            total += tallies.short[g]
    return total
