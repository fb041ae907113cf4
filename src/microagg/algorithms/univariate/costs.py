"""Costs of groups of sorted values, and exact decisions between two starts.

All univariate algorithms choose where the last group of the first j values begins: the start
i with the least f[i] + C(i, j), where f is the least cost of a prefix and C(i, j) that of the
group x[i..j−1]. They ask here for

``value``        f[i] + C(i, j) in plain doubles, O(1), up to terms that depend on j alone;
``tolerance``    the largest difference of two such values that may be due to rounding;
``prefers``      whether one start is better than another: by ``value`` if the difference is
                 larger than the tolerance, else exactly. Equal costs go to the lower
                 start, that is the larger last group; so all algorithms give the same groups.
``settle``       to record the choice.

Numerics  Sums are those of a window (windows.py): neither an offset nor a long table costs
          accuracy. What doubles cannot decide is decided by sums in doubled precision, ties by
          residues, see exact.py.
Ties      Groups of equal values cost nothing. Columns whose f are equal for that reason, or
          were once found equal, share an ``ORIGIN``, so that heavily tied data stay fast.
Costs     Stamm & Schaub, Corollary 7: sse around the mean, sae around the median, max (half the
          range; twice that here), round-up to the maximum, round-down to the minimum. All
          are ordered minimisable, concave, and splitting is beneficial for them.
Extras    A group may cost more by its size, see ``line.Extra``. That is a convex function of the
          size, which keeps the cost concave (their section 6); splitting is beneficial
          up to 2k−1 only if there is no cost per group.
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
from microagg.algorithms.univariate.line import (
    ANSWER,
    ANSWERS,
    ASK_COLUMN,
    ASK_RIVAL,
    ASK_START,
    ASKED,
    BOUND,
    CARRIED,
    CARRIED_DOUBLED,
    COST,
    E1,
    EXTRA,
    EXTRA_LOW,
    EXTRA_MODULAR,
    FH,
    FL,
    FR,
    FREE,
    HI,
    INVERSE,
    INVERSE_LOW,
    KNOWN,
    LARGEST_EXTRA,
    LO,
    MODULAR,
    ORIGIN,
    P1,
    PLACE,
    R1,
    READY,
    S1,
    TINY,
    TRAIL,
    H,
    K,
)
from microagg.compile.no_refcount import lean_subkernel
from microagg.kernels.doubled_sums import two_sum

# What Python may be asked for: to compare two starts, to carry f over to the next window (which
# is compiled apart, since most columns do without it), or for more room.
COMPARE, CARRY, GROW = 1, 2, 3

# A group's cost is off by less than 16 half-ulps of size · width²; twice that for two of them,
# and twice again for good measure.
_SLOPE = 2.0**-47
_DOUBLED_SLOPE = 2.0**-98


@lean_subkernel
def value(x, w, q, i, j):
    """Cost of the best partition of column j whose last group begins at i.

    In doubles, up to a term that is common to all starts.
    """
    cost, lo = q[PLACE, COST], q[PLACE, LO]
    d = w[P1, j] - w[P1, i]
    if cost == SSE:
        c = -(d * d * w[INVERSE, w.shape[1] - (j - i)])
    elif cost == SAE:
        half = (j - i) // 2
        c = (w[P1, j] - w[P1, j - half]) - (w[P1, i + half] - w[P1, i])
    elif cost == MAX:
        c = x[lo + j - 1] - x[lo + i]
    elif cost == ROUND_UP:
        c = (j - i) * (x[lo + j - 1] - x[lo]) - d
    else:
        c = d - (j - i) * (x[lo + i] - x[lo])
    return w[H, i] + c + w[EXTRA, w.shape[1] - (j - i)]


@lean_subkernel
def tolerance(x, w, q, j):
    """Largest difference of two values for column j that may be due to rounding.

    Differences to the first value are off by half an ulp, sums and products by one each; a sum
    over the window so far is at most j · width, one of squares j · width², and each of at
    most j/k groups adds such an error to f, as does its extra cost.
    """
    lo, k = q[PLACE, LO], q[PLACE, K]
    width = x[lo + j - 1] - x[lo]
    if q[PLACE, COST] == SSE:
        width *= width
    steps = (j + k) * w[INVERSE, w.shape[1] - k]
    error = _SLOPE * steps * (j * width + steps * w[BOUND, LARGEST_EXTRA])
    return error + 2 * w[BOUND, CARRIED] + w[BOUND, TINY]


@lean_subkernel
def settle(x, raw, back, w, q, i, j):
    """Record that the last group of column j begins at i."""
    lo = q[PLACE, LO]
    w[H, j] = value(x, w, q, i, j)
    back[lo + j] = lo + i
    same = q[PLACE, FREE] and raw[lo + i] == raw[lo + j - 1]
    q[ORIGIN, j] = q[ORIGIN, i] if same else lo + j
    q[KNOWN, j] = 0


@lean_subkernel
def prefers(x, raw, back, w, q, i, rival, j):
    """Return whether start i is better for column j than ``rival``; exact, ties to the lower."""
    a, b = value(x, w, q, i, j), value(x, w, q, rival, j)
    if abs(a - b) > tolerance(x, w, q, j) or a == np.inf or b == np.inf:
        return a < b
    return prefers_exactly(x, raw, back, w, q, i, rival, j)


@lean_subkernel
def best_of_close(x, raw, back, w, q, first, last, j, limit):
    """Best start among those of first..last whose value is at most ``limit``, and its value."""
    lo, best, least = q[PLACE, LO], first - 1, np.inf  # a start before the first is none
    free = q[PLACE, FREE] and raw[lo + first] == raw[lo + j - 1]
    for i in range(first, last + 1):
        v = value(x, w, q, i, j)
        if v > limit:
            continue
        if best < first or (
            not (free and q[ORIGIN, i] == q[ORIGIN, best])
            and prefers_exactly(x, raw, back, w, q, i, best, j)
        ):
            best, least = i, v
    return best, least


@lean_subkernel
def prefers_exactly(x, raw, back, w, q, i, rival, j):
    """Do the same without looking at plain doubles."""
    lo = q[PLACE, LO]
    low, high = min(i, rival), max(i, rival)
    free = q[PLACE, FREE] and raw[lo + low] == raw[lo + j - 1]
    if free and q[ORIGIN, i] == q[ORIGIN, rival]:
        return i < rival
    h, e, r, scale = 0.0, 0.0, np.uint64(0), 0.0
    for start in (rival, i):  # in a loop, so that what is called is expanded only once
        a, b, c = total(x, raw, back, w, q, start, j)
        h, e = add(a, b, -h, -e)
        r = minus(c, r)
        scale += abs(a)
    if abs(h) > 2 * doubled_error(x, w, q, j) + 2.0**-98 * scale:
        return h < 0
    if r == 0:
        if free:
            q[ORIGIN, high] = q[ORIGIN, low]
        return i < rival
    return _prefers_along(x, back, w, q, lo + i, lo + rival, lo + j)


@lean_subkernel
def _group(x, raw, w, q, i, j):
    """Cost of the group i..j−1 in doubled precision (two numbers) and as a residue.

    Without its extra cost.
    """
    lo, cost, s = q[PLACE, LO], q[PLACE, COST], j - i
    # The group's sums: of all values, or for sae of the upper half less the lower.
    a, b = (j - s // 2, i + s // 2) if cost == SAE else (i, i)
    h, e = two_sum(w[S1, j], -w[S1, a])
    h, e = two_sum(h, e + (w[E1, j] - w[E1, a]))
    c = minus(np.uint64(q[R1, j]), np.uint64(q[R1, a]))
    if cost == SSE:
        at = w.shape[1] - s
        h, e = times(h, e, h, e)
        h, e = times(h, e, -w[INVERSE, at], -w[INVERSE_LOW, at])
        c = minus(np.uint64(0), by(by(c, c), np.uint64(q[MODULAR, s])))
    elif cost == SAE:
        g, m = add(w[S1, b], w[E1, b], -w[S1, i], -w[E1, i])
        h, e = add(h, e, -g, -m)
        c = minus(c, minus(np.uint64(q[R1, b]), np.uint64(q[R1, i])))
    elif cost == MAX:
        h, e = two_sum(x[lo + j - 1], -x[lo + i])
        c = minus(residue(raw[lo + j - 1]), residue(raw[lo + i]))
    else:
        at = j - 1 if cost == ROUND_UP else i
        g, m = two_sum(x[lo + at], -x[lo])
        g, m = times(g, m, float(s), 0.0)
        h, e = add(h, e, -g, -m)
        c = minus(c, by(residue(raw[lo + at]), np.uint64(s)))
        if cost == ROUND_UP:
            h, e, c = -h, -e, minus(np.uint64(0), c)
    return h, e, c


@lean_subkernel
def doubled_error(x, w, q, j):
    """Bound on the error of F up to column j in doubled precision."""
    lo, k = q[PLACE, LO], q[PLACE, K]
    width = x[lo + j - 1] - x[lo]
    if q[PLACE, COST] == SSE:
        width *= width
    steps = (j + k) * w[INVERSE, w.shape[1] - k]
    error = _DOUBLED_SLOPE * steps * (j * j * width + steps * w[BOUND, LARGEST_EXTRA])
    return error + w[BOUND, CARRIED_DOUBLED] + w[BOUND, TINY]


@lean_subkernel
def total(x, raw, back, w, q, i, j):
    """F of column i plus the cost of the group i..j−1, doubled and as a residue.

    F of i and of the columns before it are computed along its partition where not yet known.
    """
    lo = q[PLACE, LO]
    if not q[PLACE, READY]:
        ready(x, raw, w, q)
    q[TRAIL, 0] = j
    depth = 1
    while not q[KNOWN, i]:
        q[TRAIL, depth] = i
        depth += 1
        i = back[lo + i] - lo
    h, e, r = w[FH, i], w[FL, i], np.uint64(q[FR, i])
    while depth > 0:
        depth -= 1
        end = q[TRAIL, depth]
        a, b, c = _group(x, raw, w, q, i, end)
        h, a = two_sum(h, a)
        h, e = two_sum(h, e + (a + b))
        r = plus(r, c)
        if not q[PLACE, FREE]:
            at = w.shape[1] - (end - i)
            h, e = add(h, e, w[EXTRA, at], w[EXTRA_LOW, at])
            r = plus(r, np.uint64(q[EXTRA_MODULAR, end - i]))
        if depth > 0:
            w[FH, end], w[FL, end], q[FR, end], q[KNOWN, end] = h, e, r, 1
        i = end
    return h, e, r


@lean_subkernel
def ready(x, raw, w, q):
    """Prefix sums of the window in doubled precision and as residues."""
    lo = q[PLACE, LO]
    w[S1, 0] = w[E1, 0] = 0.0
    q[R1, 0] = 0
    s, e, r, base = 0.0, 0.0, np.uint64(0), x[lo]
    for t in range(q[PLACE, HI] - lo):
        y, z = two_sum(x[lo + t], -base)
        s, d = two_sum(s, y)
        e += d + z  # may grow with the length: each rounding here is one of 2^-106
        r = plus(r, residue(raw[lo + t]))
        w[S1, t + 1], w[E1, t + 1], q[R1, t + 1] = s, e, r
    q[PLACE, READY] = 1


@lean_subkernel
def _prefers_along(x, back, w, q, i, rival, j):
    """Compare both partitions group by group, back to where they part; else ask Python."""
    high, low, scale, longest, groups = 0.0, 0.0, 0.0, 0, 0
    a, b, end_a, end_b = i, rival, j, j
    # Each round takes in the last group not yet counted of the path that reaches further.
    while end_a != end_b or end_a == j:
        first = end_a >= end_b
        start, end, sign = (a, end_a, 1.0) if first else (b, end_b, -1.0)
        h, e = doubled_cost(x, q[PLACE, COST], start, end)
        at = w.shape[1] - (end - start)
        h, e = add(h, e, w[EXTRA, at], w[EXTRA_LOW, at])
        high, low = add(high, low, sign * h, sign * e)
        scale += h
        longest, groups = max(longest, end - start), groups + 1
        if first:
            end_a, a = a, np.int64(back[a])
        else:
            end_b, b = b, np.int64(back[b])
    if abs(high) > 2.0**-100 * (longest + groups + 8) * scale + w[BOUND, TINY]:
        return high < 0
    return _answer(q, i, rival, j)


@lean_subkernel
def _answer(q, i, rival, j):
    """Python's answer, or any answer at all while the question is being put."""
    new = q[PLACE, ANSWERS]
    for at in range(new):
        if q[ASK_START, at] == i and q[ASK_RIVAL, at] == rival and q[ASK_COLUMN, at] == j:
            return q[ANSWER, at] != 0
    if not q[PLACE, ASKED]:
        q[PLACE, ASKED] = COMPARE
        q[ASK_START, new], q[ASK_RIVAL, new], q[ASK_COLUMN, new] = i, rival, j
    return i < rival
