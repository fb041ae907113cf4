"""Tallies of the groups of a pool: what a change does to the requirements, before it is made.

For counts of distinct codes that is known at once, for other requirements by a loop over the codes that occur
in the pool (kernels/require_demands.py).
"""

from __future__ import annotations

from microagg.compile.no_refcount import lean_subkernel
from microagg.kernels.require_demands import shortage
from microagg.kernels.require_kinds import DISTINCT, KIND, LEVEL, POPULATION, RISK, TOLERANCE

FOUND, TOTAL = -2, -1  # at the end of a group's tallies: codes that it has, sum of amounts


@lean_subkernel
def number_codes(codes, rows, order, own, code, m):
    """Number the codes of the pool's records in ascending order."""
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
def _one_after(rule, table, own, amount, code, tally, size, out, extra):
    """Shortage of one requirement, other than distinct codes, after a change; see ``after``."""
    total = tally[TOTAL]
    if out >= 0:
        total -= amount[out]
    if extra >= 0:
        total += amount[extra]
    if rule[KIND] == POPULATION or rule[KIND] == RISK:
        return shortage(rule, table, code, tally, 0, size, total)
    old, new = own[out] if out >= 0 else 0, own[extra] if extra >= 0 else 0
    of_old, of_new = tally[old], tally[new]  # kept, rather than added back: that would be rounded
    if out >= 0:
        tally[old] -= amount[out]
    if extra >= 0:
        tally[new] += amount[extra]
    found = shortage(rule, table, code, tally, code[-1], size, total)
    tally[old], tally[new] = of_old, of_new
    return found


@lean_subkernel
def after(rule, table, own, amount, code, tally, size, k, g, out, extra):
    """Violation of group g without record ``out`` and with ``extra``; −1 stands for none."""
    records = size[g] - (out >= 0) + (extra >= 0)
    lacking = (k - records) / k if records < k else 0.0
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
            lacking += _one_after(
                rule[r], table, own[r], amount[r], code[r], tally[r, g], records, out, extra
            )
    return lacking if lacking > TOLERANCE else 0.0


@lean_subkernel
def note(own, amount, tally, x, g, sign):
    """Add a record to the tallies of a group, or take it away."""
    for r in range(len(own)):
        c = own[r, x]
        if sign > 0 and tally[r, g, c] == 0:
            tally[r, g, FOUND] += 1
        tally[r, g, c] += sign * amount[r, x]
        if sign < 0 and tally[r, g, c] == 0:
            tally[r, g, FOUND] -= 1
        tally[r, g, TOTAL] += sign * amount[r, x]
