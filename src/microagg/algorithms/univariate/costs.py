"""Costs of groups of sorted values, and exact decisions between two starts.

All univariate algorithms choose where the last group of the first j values begins: the start
i with the least f[i] + C(i, j), where f is the least cost of a prefix and C(i, j) that of the
group x[i..j−1]. Equal costs go to the lower start, that is the larger last group; so all find the same.

Numerics  Sums are those of a window (windows.py): neither an offset nor a long table costs
          accuracy. What doubles cannot decide is decided by sums in doubled precision, ties by
          residues, see exact.py.
Levels    Measured with 20,000 values and k = 10. Without residues whole numbers take 28 times as long.
          Without the comparison along partitions, amounts with noise in their last bits take 1,800
          times as long, since Python's integers then decide. Sums in doubled precision carry costs
          from window to window where partitions have nothing in common.
Ties      Groups of equal values cost nothing. Columns whose f are equal for that reason, or
          were once found equal, share an ``origin``, so that heavily tied data stay fast.
Costs     Stamm & Schaub, Corollary 7: sse around the mean, sae around the median, max (half the
          range; twice that here), round-up to the maximum, round-down to the minimum. All
          are ordered minimisable, concave, and splitting is beneficial for them.
Extra     Every group may cost a fixed amount more (their section 6). The cost stays concave, but
          splitting is beneficial up to 2k−1 only without it.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.univariate.exact import (
    MAX,
    ROUND_UP,
    SAE,
    SSE,
    add,
    by,
    doubled_cost,
    minus,
    plus,
    residue,
    times,
)
from microagg.compile.jit import inlined_subkernel, lean_subkernel
from microagg.kernels.doubled_sums import two_sum

# What Python may be asked for: to compare two starts, to carry costs over to the next window (which
# is compiled apart, since most columns do without it), or for more room.
COMPARE, CARRY, GROW = 1, 2, 3

# A group's cost is off by less than 16 half-ulps of size · width²; twice that for two of them,
# and twice again for good measure.
_SLOPE = 2.0**-47
_DOUBLED_SLOPE = 2.0**-98

# Partitions that do not meet within this many groups are compared in rational numbers, which are kept.
_GROUPS_ALONG = 200


@inlined_subkernel
def value(line, i, j):
    """Cost of the best partition of column j whose last group begins at i.

    In doubles, up to a term that is common to all starts.
    """
    x, sums, window = line.x, line.sums, line.window[0]
    cost, lo = window.cost, window.lo
    d = sums[j] - sums[i]
    if cost == SSE:
        c = -(d * d * line.inverse[line.inverse.size - (j - i)])
    elif cost == SAE:
        half = (j - i) // 2
        c = (sums[j] - sums[j - half]) - (sums[i + half] - sums[i])
    elif cost == MAX:
        c = x[lo + j - 1] - x[lo + i]
    elif cost == ROUND_UP:
        c = (j - i) * (x[lo + j - 1] - x[lo]) - d
    else:
        c = d - (j - i) * (x[lo + i] - x[lo])
    return line.least[i] + c


@inlined_subkernel
def _reach(line, j):
    """Return what errors grow with: the groups of column j, at most, and the width of its values."""
    x, window = line.x, line.window[0]
    width = x[window.lo + j - 1] - x[window.lo]
    if window.cost == SSE:
        width *= width
    return (j + window.k) * line.inverse[line.inverse.size - window.k], width


@inlined_subkernel
def tolerance(line, j):
    """Largest difference of two values for column j that may be due to rounding.

    Differences to the first value are off by half an ulp, sums and products by one each; a sum
    over the window so far is at most j · width, one of squares j · width², and each of at
    most j/k groups adds such an error to its cost, as does its extra cost.
    """
    window = line.window[0]
    groups, width = _reach(line, j)
    error = _SLOPE * groups * (j * width + groups * window.extra)
    return error + 2 * window.carried + window.tiny


@inlined_subkernel
def doubled_error(line, j):
    """Bound on the error of the least cost of column j in doubled precision."""
    window = line.window[0]
    groups, width = _reach(line, j)
    error = _DOUBLED_SLOPE * groups * (j * j * width + groups * window.extra)
    return error + window.carried_doubled + window.tiny


@inlined_subkernel
def settle(line, i, j, cost):
    """Record that the last group of column j begins at i, at this value of the column."""
    raw, window, origin = line.raw, line.window[0], line.origin
    lo = window.lo
    line.least[j] = cost + window.extra
    line.back[lo + j] = lo + i
    same = window.free and raw[lo + i] == raw[lo + j - 1]
    origin[j] = origin[i] if same else lo + j
    line.known[j] = 0


@inlined_subkernel
def best_start(line, first, last, j):
    """Best start of column j among first..last, and its value."""
    best, least, second = first, np.inf, np.inf
    for i in range(first, last + 1):
        v = value(line, i, j)
        second = min(second, max(v, least))
        best = i if v < least else best
        least = min(v, least)
    limit = least + tolerance(line, j)
    if second > limit:
        return best, least
    return _best_of_close(line, first, last, j, limit)


@lean_subkernel
def _best_of_close(line, first, last, j, limit):
    """Best start among those of first..last whose value is at most ``limit``, and its value."""
    raw, window, origin = line.raw, line.window[0], line.origin
    lo, best, least = window.lo, first - 1, np.inf  # a start before the first is none
    free = window.free and raw[lo + first] == raw[lo + j - 1]
    for i in range(first, last + 1):
        v = value(line, i, j)
        if v > limit:
            continue
        if best < first or (
            not (free and origin[i] == origin[best]) and prefers_exactly(line, i, best, j)
        ):
            best, least = i, v
    return best, least


@lean_subkernel
def prefers_exactly(line, i, rival, j):
    """Return whether start i is better for column j than ``rival``, without looking at plain doubles.

    Ties go to the lower start.
    """
    raw, window, origin = line.raw, line.window[0], line.origin
    lo, low, high = window.lo, min(i, rival), max(i, rival)
    free = window.free and raw[lo + low] == raw[lo + j - 1]
    if free and origin[i] == origin[rival]:
        return i < rival
    h, e, r, scale = 0.0, 0.0, np.uint64(0), 0.0
    for start in (rival, i):  # in a loop, so that what is called is expanded only once
        a, b, c = total(line, start, j)
        h, e = add(a, b, -h, -e)
        r = minus(c, r)
        scale += abs(a)
    if abs(h) > 2 * doubled_error(line, j) + 2.0**-98 * scale:
        return h < 0
    if r == 0:
        if free:
            origin[high] = origin[low]
        return i < rival
    along = _prefers_along(line, lo + i, lo + rival, lo + j)
    return _answer(line, lo + i, lo + rival, lo + j) if along == 0 else along < 0


@inlined_subkernel
def _group(line, i, j):
    """Cost of the group i..j−1 without its extra cost: in doubled precision, and as a residue."""
    x, raw, window, columns, size = line.x, line.raw, line.window[0], line.columns, j - i
    lo, cost = window.lo, window.cost
    if cost == MAX:
        h, e = two_sum(x[lo + j - 1], -x[lo + i])
        return h, e, minus(residue(raw[lo + j - 1]), residue(raw[lo + i]))
    # The group's sum: of all values, or for sae of the upper half less the lower.
    a, b = (j - size // 2, i + size // 2) if cost == SAE else (i, i)
    h, e = two_sum(columns[j].sum, -columns[a].sum)
    h, e = two_sum(h, e + (columns[j].sum_low - columns[a].sum_low))
    r = minus(columns[j].sum_residue, columns[a].sum_residue)
    if cost == SSE:
        h, e = times(h, e, h, e)
        inverse = line.inverse[line.inverse.size - size]
        h, e = times(h, e, -inverse, -line.sizes[size].inverse_low)
        return h, e, minus(np.uint64(0), by(by(r, r), line.sizes[size].inverse_residue))
    if cost == SAE:
        g, m = add(columns[b].sum, columns[b].sum_low, -columns[i].sum, -columns[i].sum_low)
        h, e = add(h, e, -g, -m)
        return h, e, minus(r, minus(columns[b].sum_residue, columns[i].sum_residue))
    end = lo + (j - 1 if cost == ROUND_UP else i)
    g, m = two_sum(x[end], -x[lo])
    g, m = times(g, m, float(size), 0.0)
    h, e = add(h, e, -g, -m)
    r = minus(r, by(residue(raw[end]), np.uint64(size)))
    return (-h, -e, minus(np.uint64(0), r)) if cost == ROUND_UP else (h, e, r)


@inlined_subkernel
def total(line, i, j):
    """Least cost of column i plus the cost of the group i..j−1, doubled and as a residue.

    Those of i and of the columns before it are computed along its partition where not yet known.
    """
    back, window, columns, room = line.back, line.window[0], line.columns, line.room
    room[0].trail = j
    depth = 1
    while not line.known[i]:
        room[depth].trail = i
        depth += 1
        i = back[window.lo + i] - window.lo
    h, e, r = columns[i].cost, columns[i].cost_low, columns[i].cost_residue
    while depth > 0:
        depth -= 1
        end = room[depth].trail
        a, b, c = _group(line, i, end)
        h, a = two_sum(h, a)
        h, e = two_sum(h, e + (a + b))
        r = plus(r, c)
        if not window.free:
            h, e = add(h, e, window.extra, 0.0)
            r = plus(r, window.extra_residue)
        if depth > 0:
            columns[end].cost, columns[end].cost_low, columns[end].cost_residue = h, e, r
            line.known[end] = 1
        i = end
    return h, e, r


@lean_subkernel
def _prefers_along(line, i, rival, j):
    """Compare both partitions group by group, back to where they part: −1, 1, or 0 if too close.

    Each group's cost is computed around its own middle, so that what is lost is a share of the
    costs that differ, not of those of all values.
    """
    back, window = line.back, line.window[0]
    high, low, scale, longest, groups = 0.0, 0.0, 0.0, 0, 0
    a, b, end_a, end_b = i, rival, j, j
    # Each round takes in the last group not yet counted of the path that reaches further.
    while (end_a != end_b or end_a == j) and groups < _GROUPS_ALONG:
        first = end_a >= end_b
        start, end, sign = (a, end_a, 1.0) if first else (b, end_b, -1.0)
        h, e = doubled_cost(line.x, window.cost, start, end)
        h, e = add(h, e, window.extra, 0.0)
        high, low = add(high, low, sign * h, sign * e)
        scale += h
        longest, groups = max(longest, end - start), groups + 1
        if first:
            end_a, a = a, np.int64(back[a])
        else:
            end_b, b = b, np.int64(back[b])
    met = groups < _GROUPS_ALONG
    if met and abs(high) > 2.0**-100 * (longest + groups + 8) * scale + window.tiny:
        return -1 if high < 0 else 1
    return 0


@lean_subkernel
def _answer(line, i, rival, j):
    """Python's answer, or any answer at all while the question is being put.

    An answer holds as long as both starts have the best starts that they had: these may be guesses.
    """
    window, room, back = line.window[0], line.room, line.back
    new = window.answers
    for at in range(new):
        asked = room[at]
        is_same = asked.start == i and asked.rival == rival and asked.column == j
        if is_same and asked.before_start == back[i] and asked.before_rival == back[rival]:
            return asked.answer != 0
    if not window.asked:
        window.asked = COMPARE
        room[new].start, room[new].rival, room[new].column = i, rival, j
        room[new].before_start, room[new].before_rival = back[i], back[rival]
    return i < rival
