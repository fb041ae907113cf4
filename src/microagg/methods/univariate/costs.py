"""Costs of groups of sorted values, and exact decisions between two starts.

All univariate algorithms choose where the last group of the first j values begins: the start
i with the least f[i] + C(i, j), where f is the least cost of a prefix and C(i, j) that of the
group x[i..j−1]. They work through the columns j in windows, and ask here for

``next_window``  the next columns to settle, with prefix sums around;
``value``        f[i] + C(i, j) in plain doubles, O(1), up to terms that depend on j alone;
``tolerance``    the largest difference of two such values that may be due to rounding;
``prefers``      whether one start is better than another: by ``value`` if the difference is
                 larger than the tolerance, else exactly. Equal costs go to the lower
                 start, that is the larger last group; so all algorithms give the same groups.

Numerics  A window holds a few dozen groups. Its prefix sums begin anew, relative to its first
          value, and its f relative to a column through which the best partitions of all later
          ones go: neither an offset nor a long table costs accuracy (Stamm & Schaub 2024,
          sections 4.1 and 4.2, restart every k values, but a group of 2k−1 can then touch three
          cells, which their formula does not cover). What doubles cannot decide is
          decided by sums in doubled precision, ties by residues, see exact.py.
Ties      Groups of equal values cost nothing. Columns whose f are equal for that reason, or
          were once found equal, share an ``ORIGIN``, so that heavily tied data stay fast.
Costs     Stamm & Schaub, Corollary 7: sse around the mean, sae around the median, max (half the
          range; twice that here), round-up to the maximum, round-down to the minimum. All
          are ordered minimisable, concave, and splitting is beneficial for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.groups import Floats
from microagg.kernels.sums import two_sum
from microagg.methods.univariate.compiled import entry, inner
from microagg.methods.univariate.exact import (
    MAX,
    ROUND_DOWN,
    ROUND_UP,
    SAE,
    SSE,
    add,
    by,
    doubled_cost,
    inverses,
    minus,
    plus,
    prefers_rationally,
    residue,
    times,
)
from microagg.progress import DONE, State

__all__ = ["COSTS", "SSE", "Line", "new_line", "run"]

COSTS = {"sse": SSE, "sae": SAE, "max": MAX, "round-up": ROUND_UP, "round-down": ROUND_DOWN}

# Rows of Line.w, by column of the window unless said otherwise. For sse, f is short of the sum of
# squares so far, which is common to all starts: only −(sum)²/size of each group counts. P1 is
# the sum of values and H is f, in doubles; S1 + E1 and FH + FL are the same in doubled
# precision; INVERSE + INVERSE_LOW is 1/(2k−t) at t.
P1, H, S1, E1, FH, FL, INVERSE, INVERSE_LOW, BOUND = range(9)
# Rows of Line.q: residues of sums and of f; columns of equal f; whether FH, FL and FR of a
# column are known; residues of 1/s at s; room for a partition, for SMAWK and for starts that
# are not yet settled; questions and answers.
R1, FR, ORIGIN, KNOWN, MODULAR, TRAIL, PLACE, STACK, GUESS, FOUND = range(10)
ASK_START, ASK_RIVAL, ASK_COLUMN, ANSWER = range(10, 14)
# Places of q[PLACE]: k and cost; first value of the window, columns settled so far, last column
# of the window; whether its doubled sums are there; what Python is asked for, if anything;
# how many answers there are; the column to stop at; whether progress is reported elsewhere;
# how far back a window may reach for a common ancestor; how many columns it settles.
K, COST, LO, SETTLED, HI, READY, ASKED, ANSWERS, UNTIL, QUIET, BEHIND, AHEAD = range(12)
# What Python may be asked for: to compare two starts, or to carry f over to the next window. The
# latter is compiled apart, since most columns do without it.
_COMPARE, _CARRY = 1, 2
# Places of w[BOUND]: error of the carried H, of the carried F, absolute error of values.
CARRIED, CARRIED_DOUBLED, TINY = range(3)

# A group's cost is off by less than 16 half-ulps of size · width²; twice that for two of them,
# and twice again for good measure.
_SLOPE = 2.0**-47
_DOUBLED_SLOPE = 2.0**-98
# Values of k, and for k below each how far a window reaches back and ahead, in units of k. From
# 64 on partitions meet too rarely to reach far back; for large k a window must fit into a cache.
_REACH = ((64, 32, 64), (1500, 8, 40), (2**63, 8, 12))


class Line(NamedTuple):
    """The state of a computation over sorted values. A *column* j means the first j values.

    Kernels take the arrays one by one: numba counts references of what it takes from a tuple.
    """

    x: Floats  # (n,) the values, ascending, brought near 1 by a power of two if need be
    raw: NDArray[np.int64]  # (n,) the bits of the values as given
    back: NDArray[np.signedinteger]  # (n+1,) where the last group of the best partition begins
    w: Floats  # (9, size of a window)
    q: NDArray[np.int64]  # (14, size of a window)


def new_line(x: Floats, k: int, cost: int) -> Line:
    """Prepare sorted values: O(k), but for values of extreme size."""
    n = len(x)
    near, tiny = near_one(x)
    behind, ahead = next((b * k, a * k) for limit, b, a in _REACH if k < limit)
    width = max(min(behind + ahead, 4 * n) + 2, 64)
    w = np.empty((9, width))
    w[BOUND, : TINY + 1] = 0.0, 0.0, tiny
    q = np.empty((14, width), dtype=np.int64)
    q[PLACE, : AHEAD + 1] = 0
    q[PLACE, K], q[PLACE, COST], q[PLACE, UNTIL] = k, cost, n
    q[PLACE, BEHIND], q[PLACE, AHEAD] = behind, ahead
    inverses(w[INVERSE], w[INVERSE_LOW], q[MODULAR], k)
    small = n < 2**31 - 1
    back = np.empty(n + 1, dtype=np.int32) if small else np.empty(n + 1, dtype=np.int64)
    return Line(near, x.view(np.int64), back, w, q)


def near_one(x: Floats) -> tuple[Floats, float]:
    """Scale by a power of two so that squares neither overflow nor vanish; absolute error.

    Only tables that hold both huge and tiny values lose digits by that, which the error says.
    """
    largest = max(abs(float(x[0])), abs(float(x[-1])))
    if largest == 0.0 or 2.0**-300 < largest < 2.0**300:
        return x, 2.0**-1000
    return np.ldexp(x, -int(np.frexp(largest)[1])), 2.0**-1000


def run(algorithm: Callable[..., None], line: Line, state: State) -> None:
    """Run a kernel over the line; answer what it cannot decide with rational numbers."""
    q, values = line.q, line.raw.view(np.float64)
    while True:
        algorithm(line.x, line.raw, line.back, line.w, q, state)
        if not q[PLACE, ASKED]:
            break
        if q[PLACE, ASKED] == _CARRY:
            _carry(line.x, line.raw, line.back, line.w, q)
            continue
        at = int(q[PLACE, ANSWERS])
        i, rival, j = int(q[ASK_START, at]), int(q[ASK_RIVAL, at]), int(q[ASK_COLUMN, at])
        cost = int(q[PLACE, COST])
        q[ANSWER, at] = prefers_rationally(values, line.back, cost, i, rival, j)
        q[PLACE, ANSWERS] += 1
        if at + 1 == q.shape[1]:
            q = np.concatenate([q, np.empty_like(q)], axis=1)
    line.q[:] = q[:, : line.q.shape[1]]


@inner
def next_window(x, raw, back, w, q):  # type: ignore[no-untyped-def]
    """Move to the next columns; return the first and the last of them, counted from LO.

    A window that waits for an answer is taken up again as it was. After the last window, and
    when Python is asked for the next, the first is larger than the last.
    """
    n, k, settled = q[PLACE, UNTIL], q[PLACE, K], q[PLACE, SETTLED]
    if q[PLACE, ASKED]:
        q[PLACE, ASKED] = 0
        return max(settled, k - 1) + 1 - q[PLACE, LO], q[PLACE, HI] - q[PLACE, LO]
    if settled >= n:
        return 1, 0
    q[PLACE, ANSWERS] = 0
    hi = min(settled + q[PLACE, AHEAD], n)
    if settled == 0:
        _begin(x, w, q, settled, hi)
        for t in range(1, k):
            w[H, t], q[ORIGIN, t] = np.inf, t
        return k, hi
    a = _ancestor(back, q, settled)
    if a < 0:
        q[PLACE, ASKED] = _CARRY
        return 1, 0
    _begin(x, w, q, a, hi)
    _retrace(x, raw, back, w, q, settled)
    return settled + 1 - q[PLACE, LO], hi - q[PLACE, LO]


@inner
def _ancestor(back, q, settled):  # type: ignore[no-untyped-def]
    """Column through which the partitions of all columns still needed go; −1 if none is near.

    The last column of a shrinking set gives way to the one that its partition comes from.
    """
    k = q[PLACE, K]
    floor = max(settled - q[PLACE, BEHIND], 0)
    needed = max(settled - 2 * k + 2, 0)
    for t in range(settled - floor + 1):
        q[TRAIL, t] = floor + t >= needed
    count = settled - needed + 1
    for j in range(settled, floor - 1, -1):
        if q[TRAIL, j - floor]:
            if count == 1:
                return j
            if back[j] < floor:
                return -1
            count -= q[TRAIL, back[j] - floor]
            q[TRAIL, back[j] - floor] = 1
    return -1


@inner
def window_done(q, state, last):  # type: ignore[no-untyped-def]
    """Call a window settled, unless a question came up; return whether it is."""
    if q[PLACE, ASKED]:
        return False
    q[PLACE, SETTLED] = q[PLACE, LO] + last
    if not q[PLACE, QUIET]:
        state[DONE] = q[PLACE, SETTLED]
    return True


@inner
def _begin(x, w, q, lo, hi):  # type: ignore[no-untyped-def]
    """Start a window at a column that all its partitions share: its cost counts as 0."""
    q[PLACE, LO], q[PLACE, HI], q[PLACE, READY] = lo, hi, 0
    w[BOUND, CARRIED] = w[BOUND, CARRIED_DOUBLED] = 0.0
    _prefix_sums(x, w, lo, hi)
    w[H, 0] = w[FH, 0] = w[FL, 0] = 0.0
    q[FR, 0] = 0
    q[ORIGIN, 0], q[KNOWN, 0] = lo, 1


@inner
def _prefix_sums(x, w, lo, hi):  # type: ignore[no-untyped-def]
    """Sums of x less the first value, rounded once each since they are carried along doubled."""
    s, e, base = 0.0, 0.0, x[lo]
    w[P1, 0] = 0.0
    for t in range(hi - lo):
        s, r = two_sum(s, x[lo + t] - base)
        e += r
        w[P1, t + 1] = s + e


@inner
def _retrace(x, raw, back, w, q, settled):  # type: ignore[no-untyped-def]
    """Compute f anew for the columns whose partitions come from the first of the window.

    The columns that come from elsewhere are needed no more.
    """
    lo = q[PLACE, LO]
    for j in range(1, settled - lo + 1):
        i = back[lo + j] - lo
        if i >= 0 and j >= q[PLACE, K] and w[H, i] < np.inf:
            settle(x, raw, back, w, q, i, j)
        else:
            w[H, j], q[ORIGIN, j] = np.inf, lo + j


@entry
def _carry(x, raw, back, w, q):  # type: ignore[no-untyped-def]
    """Start a window at the first column still needed, and carry the f over as they are.

    For partitions that have nothing recent in common, as on evenly spaced values or for large k.
    """
    k, settled = q[PLACE, K], q[PLACE, SETTLED]
    hi = min(settled + q[PLACE, AHEAD], q[PLACE, UNTIL])
    lo, count = settled - 2 * k + 2, 2 * k - 1
    q[PLACE, ASKED] = _COMPARE  # the window waits to be taken up
    first = lo - q[PLACE, LO]
    alike = True
    for t in range(first, first + count):
        alike = alike and q[ORIGIN, t] == q[ORIGIN, first]
    error = 0.0
    if not alike:
        for t in range(first, first + count):
            if not q[KNOWN, t]:
                i = back[q[PLACE, LO] + t] - q[PLACE, LO]
                w[FH, t], w[FL, t], q[FR, t] = _total(x, raw, back, w, q, i, t)
        error = _doubled_error(x, w, q, first + count - 1)
    base, h, e, r = x[q[PLACE, LO]], w[FH, first], w[FL, first], np.uint64(q[FR, first])
    for t in range(count):
        w[FH, t], w[FL, t] = add(w[FH, first + t], w[FL, first + t], -h, -e)
        q[FR, t] = minus(np.uint64(q[FR, first + t]), r)
        q[ORIGIN, t] = q[ORIGIN, first + t]
        q[KNOWN, t] = 1
    q[PLACE, LO], q[PLACE, HI], q[PLACE, READY] = lo, hi, 0
    _prefix_sums(x, w, lo, hi)
    largest = 0.0
    if not alike:
        _ready(x, raw, w, q)
        if q[PLACE, COST] == SSE:
            _shift(x[lo], base, w, count)
    for t in range(count):
        if alike:
            w[FH, t] = w[FL, t] = 0.0
            q[FR, t] = 0
        w[H, t] = w[FH, t]
        largest = max(largest, abs(w[FH, t]))
    w[BOUND, CARRIED] = error + 2.0**-52 * ((hi - lo) // k + 8) * largest
    w[BOUND, CARRIED_DOUBLED] = error + 2.0**-98 * largest


@inner
def _shift(new, old, w, count):  # type: ignore[no-untyped-def]
    """Make F of the first columns, less squares around the old value, that around the new one.

    With d = new − old, Σ(x − old)² − Σ(x − new)² = 2d·Σ(x − new) + m·d² for m values.
    """
    d, z = two_sum(new, -old)
    for m in range(1, count):
        a, b = times(float(m), 0.0, d, z)
        a, b = add(a, b, 2 * w[S1, m], 2 * w[E1, m])
        a, b = times(a, b, d, z)
        w[FH, m], w[FL, m] = add(w[FH, m], w[FL, m], a, b)


@inner
def value(x, w, q, i, j):  # type: ignore[no-untyped-def]
    """Cost of the best partition of column j whose last group begins at i.

    In doubles, up to a term that is common to all starts.
    """
    cost, lo = q[PLACE, COST], q[PLACE, LO]
    d = w[P1, j] - w[P1, i]
    if cost == SSE:
        c = -(d * d * w[INVERSE, 2 * q[PLACE, K] - (j - i)])
    elif cost == SAE:
        half = (j - i) // 2
        c = (w[P1, j] - w[P1, j - half]) - (w[P1, i + half] - w[P1, i])
    elif cost == MAX:
        c = x[lo + j - 1] - x[lo + i]
    elif cost == ROUND_UP:
        c = (j - i) * (x[lo + j - 1] - x[lo]) - d
    else:
        c = d - (j - i) * (x[lo + i] - x[lo])
    return w[H, i] + c


@inner
def tolerance(x, w, q, j):  # type: ignore[no-untyped-def]
    """Largest difference of two values for column j that may be due to rounding.

    Differences to the first value are off by half an ulp, sums and products by one each; a sum
    over the window so far is at most j · width, one of squares j · width², and each of at
    most j/k groups adds such an error to f.
    """
    lo, k = q[PLACE, LO], q[PLACE, K]
    width = x[lo + j - 1] - x[lo]
    if q[PLACE, COST] == SSE:
        width *= width
    steps = (j + k) * j * w[INVERSE, k]
    return _SLOPE * steps * width + 2 * w[BOUND, CARRIED] + w[BOUND, TINY]


@inner
def settle(x, raw, back, w, q, i, j):  # type: ignore[no-untyped-def]
    """Record that the last group of column j begins at i."""
    lo = q[PLACE, LO]
    w[H, j] = value(x, w, q, i, j)
    back[lo + j] = lo + i
    same = raw[lo + i] == raw[lo + j - 1]
    q[ORIGIN, j] = q[ORIGIN, i] if same else lo + j
    q[KNOWN, j] = 0


@inner
def prefers(x, raw, back, w, q, i, rival, j):  # type: ignore[no-untyped-def]
    """Whether start i is better for column j than ``rival``; exact, ties to the lower."""
    a, b = value(x, w, q, i, j), value(x, w, q, rival, j)
    if abs(a - b) > tolerance(x, w, q, j) or a == np.inf or b == np.inf:
        return a < b
    return prefers_exactly(x, raw, back, w, q, i, rival, j)


@inner
def best_of_close(x, raw, back, w, q, first, last, j, limit):  # type: ignore[no-untyped-def]
    """Best start among those of first..last whose value is at most ``limit``, and its value."""
    lo, best, least = q[PLACE, LO], first - 1, np.inf  # a start before the first is none
    free = raw[lo + first] == raw[lo + j - 1]
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


@inner
def prefers_exactly(x, raw, back, w, q, i, rival, j):  # type: ignore[no-untyped-def]
    """The same without looking at plain doubles."""
    lo = q[PLACE, LO]
    low, high = min(i, rival), max(i, rival)
    free = raw[lo + low] == raw[lo + j - 1]
    if free and q[ORIGIN, i] == q[ORIGIN, rival]:
        return i < rival
    h, e, r, scale = 0.0, 0.0, np.uint64(0), 0.0
    for start in (rival, i):  # in a loop, so that what is called is expanded only once
        a, b, c = _total(x, raw, back, w, q, start, j)
        h, e = add(a, b, -h, -e)
        r = minus(c, r)
        scale += abs(a)
    if abs(h) > 2 * _doubled_error(x, w, q, j) + 2.0**-98 * scale:
        return h < 0
    if r == 0:
        if free:
            q[ORIGIN, high] = q[ORIGIN, low]
        return i < rival
    return _prefers_along(x, back, w, q, lo + i, lo + rival, lo + j)


@inner
def _group(x, raw, w, q, i, j):  # type: ignore[no-untyped-def]
    """Cost of the group i..j−1 in doubled precision (two numbers) and as a residue."""
    lo, cost, s = q[PLACE, LO], q[PLACE, COST], j - i
    # The group's sums: of all values, or for sae of the upper half less the lower.
    a, b = (j - s // 2, i + s // 2) if cost == SAE else (i, i)
    h, e = two_sum(w[S1, j], -w[S1, a])
    h, e = two_sum(h, e + (w[E1, j] - w[E1, a]))
    c = minus(np.uint64(q[R1, j]), np.uint64(q[R1, a]))
    if cost == SSE:
        at = 2 * q[PLACE, K] - s
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


@inner
def _doubled_error(x, w, q, j):  # type: ignore[no-untyped-def]
    """Bound on the error of F up to column j in doubled precision."""
    lo, k = q[PLACE, LO], q[PLACE, K]
    width = x[lo + j - 1] - x[lo]
    if q[PLACE, COST] == SSE:
        width *= width
    steps = (j + k) * w[INVERSE, k]
    return _DOUBLED_SLOPE * steps * j * j * width + w[BOUND, CARRIED_DOUBLED] + w[BOUND, TINY]


@inner
def _total(x, raw, back, w, q, i, j):  # type: ignore[no-untyped-def]
    """F of column i plus the cost of the group i..j−1, doubled and as a residue.

    F of i and of the columns before it are computed along its partition where not yet known.
    """
    lo = q[PLACE, LO]
    if not q[PLACE, READY]:
        _ready(x, raw, w, q)
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
        if depth > 0:
            w[FH, end], w[FL, end], q[FR, end], q[KNOWN, end] = h, e, r, 1
        i = end
    return h, e, r


@inner
def _ready(x, raw, w, q):  # type: ignore[no-untyped-def]
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


@inner
def _prefers_along(x, back, w, q, i, rival, j):  # type: ignore[no-untyped-def]
    """Compare both partitions group by group, back to where they part; else ask Python."""
    cost = q[PLACE, COST]
    high, low, scale = 0.0, 0.0, 0.0
    a, b, end_a, end_b = i, rival, j, j
    # Each round takes in the last group not yet counted of the path that reaches further.
    while end_a != end_b or end_a == j:
        if end_a >= end_b:
            h, e = doubled_cost(x, cost, a, end_a)
            high, low = add(high, low, h, e)
            end_a, a = a, np.int64(back[a])
        else:
            h, e = doubled_cost(x, cost, b, end_b)
            high, low = add(high, low, -h, -e)
            end_b, b = b, np.int64(back[b])
        scale += h
    if abs(high) > 2.0**-100 * (q[PLACE, K] + 8) * scale + w[BOUND, TINY]:
        return high < 0
    return _answer(q, i, rival, j)


@inner
def _answer(q, i, rival, j):  # type: ignore[no-untyped-def]
    """Python's answer, or any answer at all while the question is being put."""
    new = q[PLACE, ANSWERS]
    for at in range(new):
        if q[ASK_START, at] == i and q[ASK_RIVAL, at] == rival and q[ASK_COLUMN, at] == j:
            return q[ANSWER, at] != 0
    if not q[PLACE, ASKED]:
        q[PLACE, ASKED] = _COMPARE
        q[ASK_START, new], q[ASK_RIVAL, new], q[ASK_COLUMN, new] = i, rival, j
    return i < rival
