"""Windows: a few dozen groups at a time, within which sums are exact enough.

Problem   Sums over a long table, or far from zero, lose the digits that decide.
Idea      A window's prefix sums begin anew, relative to its first value, and its f relative to a
          column through which the best partitions of all later ones go. If there is no such
          column near by, f is carried over in doubled precision. The best start of a column is
          never before that of an earlier one, so the starts still needed are those from the
          last best one on; windows are as long as these stretches ask for.
Cost      O(n) in all.
Paper     Stamm & Schaub 2024, sections 4.1 and 4.2, restart every k values, but a group of 2k−1
          can then touch three cells, which their formula does not cover.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microagg.algorithms.univariate.costs import (
    CARRY,
    COMPARE,
    GROW,
    doubled_error,
    ready,
    settle,
    total,
)
from microagg.algorithms.univariate.exact import SSE, add, minus, prefers_rationally, times
from microagg.algorithms.univariate.line import (
    AHEAD,
    ANSWER,
    ANSWERS,
    ASK_COLUMN,
    ASK_RIVAL,
    ASK_START,
    ASKED,
    BEHIND,
    BOUND,
    CARRIED,
    CARRIED_DOUBLED,
    COST,
    E1,
    FH,
    FL,
    FR,
    HI,
    KNOWN,
    LO,
    MOST,
    ORIGIN,
    P1,
    PLACE,
    READY,
    S1,
    SETTLED,
    SPAN,
    TRAIL,
    UNTIL,
    H,
    K,
    SortedLine,
    narrower,
    wider,
)
from microagg.base.progress import DONE, State
from microagg.compile.no_refcount import lean_kernel, lean_subkernel
from microagg.kernels.doubled_sums import two_sum


def run(algorithm: Callable[..., None], line: SortedLine, state: State) -> None:
    """Run a kernel over the line; give what it asks for.

    What it cannot decide is answered in rational numbers.
    """
    given, values = line, line.raw.view(np.float64)
    while True:
        q = line.q
        algorithm(line.x, line.raw, line.back, line.w, q, state)
        if not q[PLACE, ASKED]:
            break
        if q[PLACE, ASKED] == CARRY:
            _carry(line.x, line.raw, line.back, line.w, q)
        elif q[PLACE, ASKED] == GROW:
            q[PLACE, ASKED] = 0
            line = wider(line)
        else:
            at = int(q[PLACE, ANSWERS])
            i, rival, j = int(q[ASK_START, at]), int(q[ASK_RIVAL, at]), int(q[ASK_COLUMN, at])
            cost = int(q[PLACE, COST])
            q[ANSWER, at] = prefers_rationally(values, line.back, cost, line.extra.of, i, rival, j)
            q[PLACE, ANSWERS] += 1
            if at + 1 == q.shape[1]:
                line = wider(line)
    if line is not given:
        narrower(line, given)


@lean_subkernel
def next_window(x, raw, back, w, q):
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
    if settled == 0:
        hi = min(q[PLACE, AHEAD] * q[PLACE, SPAN], n)
        _begin(x, w, q, settled, hi)
        for t in range(1, k):
            w[H, t], q[ORIGIN, t] = np.inf, t
        return k, hi
    floor, hi = _reach(back, q, settled)
    if hi - floor + 2 > w.shape[1]:
        q[PLACE, ASKED] = GROW
        return 1, 0
    a = _ancestor(back, q, settled, floor)
    if a < 0:
        q[PLACE, ASKED] = CARRY
        return 1, 0
    _begin(x, w, q, a, hi)
    _retrace(x, raw, back, w, q, settled)
    return settled + 1 - q[PLACE, LO], hi - q[PLACE, LO]


@lean_subkernel
def needed(back, q, settled):
    """First column at which a group of a later column may begin."""
    return max(settled - q[PLACE, MOST] + 1, np.int64(back[settled]))


@lean_subkernel
def first_start(back, q, begin):
    """First start, counted from LO, of the columns from ``begin`` on."""
    settled = q[PLACE, SETTLED]
    return needed(back, q, settled) - q[PLACE, LO] if settled > 0 else 0


@lean_subkernel
def _reach(back, q, settled):
    """Return how far back a common ancestor may lie, and the last column of the next window."""
    span = max(q[PLACE, SPAN], (settled - needed(back, q, settled)) // 2)
    floor = max(settled - q[PLACE, BEHIND] * span, 0)
    return floor, min(settled + q[PLACE, AHEAD] * span, q[PLACE, UNTIL])


@lean_subkernel
def _ancestor(back, q, settled, floor):
    """Column through which the partitions of all columns still needed go; −1 if none is near.

    The last column of a shrinking set gives way to the one that its partition comes from.
    """
    if floor == 0:
        return 0
    first = needed(back, q, settled)
    for t in range(settled - floor + 1):
        q[TRAIL, t] = floor + t >= first
    count = settled - first + 1
    for j in range(settled, floor - 1, -1):
        if q[TRAIL, j - floor]:
            if count == 1:
                return j
            if back[j] < floor:
                return -1
            count -= q[TRAIL, back[j] - floor]
            q[TRAIL, back[j] - floor] = 1
    return -1


@lean_subkernel
def window_done(q, state, last):
    """Call a window settled, unless a question came up; return whether it is."""
    if q[PLACE, ASKED]:
        return False
    q[PLACE, SETTLED] = q[PLACE, LO] + last
    state[DONE] = max(state[DONE], q[PLACE, SETTLED])
    return True


@lean_subkernel
def _begin(x, w, q, lo, hi):
    """Start a window at a column that all its partitions share: its cost counts as 0."""
    q[PLACE, LO], q[PLACE, HI], q[PLACE, READY] = lo, hi, 0
    w[BOUND, CARRIED] = w[BOUND, CARRIED_DOUBLED] = 0.0
    _prefix_sums(x, w, lo, hi)
    w[H, 0] = w[FH, 0] = w[FL, 0] = 0.0
    q[FR, 0] = 0
    q[ORIGIN, 0], q[KNOWN, 0] = lo, 1


@lean_subkernel
def _prefix_sums(x, w, lo, hi):
    """Sum x less the first value, rounded once each since they are carried along doubled."""
    s, e, base = 0.0, 0.0, x[lo]
    w[P1, 0] = 0.0
    for t in range(hi - lo):
        s, r = two_sum(s, x[lo + t] - base)
        e += r
        w[P1, t + 1] = s + e


@lean_subkernel
def _retrace(x, raw, back, w, q, settled):
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


@lean_kernel
def _carry(x, raw, back, w, q):
    """Start a window at the first column still needed, and carry the f over as they are.

    For partitions that have nothing recent in common, as on evenly spaced values or for large k.
    """
    k, settled = q[PLACE, K], q[PLACE, SETTLED]
    _, hi = _reach(back, q, settled)
    lo = needed(back, q, settled)
    count = settled - lo + 1
    q[PLACE, ASKED] = COMPARE  # the window waits to be taken up
    first = lo - q[PLACE, LO]
    alike = True
    for t in range(first, first + count):
        alike = alike and q[ORIGIN, t] == q[ORIGIN, first]
    error = 0.0
    if not alike:
        for t in range(first, first + count):
            if not q[KNOWN, t]:
                i = back[q[PLACE, LO] + t] - q[PLACE, LO]
                w[FH, t], w[FL, t], q[FR, t] = total(x, raw, back, w, q, i, t)
        error = doubled_error(x, w, q, first + count - 1)
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
        ready(x, raw, w, q)
        if q[PLACE, COST] == SSE:
            _shift(x[lo], base, w, count)
    for t in range(count):
        if alike:
            w[FH, t] = w[FL, t] = 0.0
            q[FR, t] = 0
        w[H, t] = w[FH, t]
        largest = max(largest, abs(w[FH, t]))
    groups = (hi - lo) // k  # each adds to f, and rounds
    w[BOUND, CARRIED] = error + 2.0**-52 * (groups + 8) * largest
    w[BOUND, CARRIED_DOUBLED] = error + 2.0**-104 * (groups + 64) * largest


@lean_subkernel
def _shift(new, old, w, count):
    """Make F of the first columns, less squares around the old value, that around the new one.

    With d = new − old, Σ(x − old)² − Σ(x − new)² = 2d·Σ(x − new) + m·d² for m values.
    """
    d, z = two_sum(new, -old)
    for m in range(1, count):
        a, b = times(float(m), 0.0, d, z)
        a, b = add(a, b, 2 * w[S1, m], 2 * w[E1, m])
        a, b = times(a, b, d, z)
        w[FH, m], w[FL, m] = add(w[FH, m], w[FL, m], a, b)
