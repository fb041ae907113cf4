"""simple and simple+: the dynamic program over groups of k..2k−1 values.

Problem   Cut n sorted values into groups of at least k at the least cost.
Idea      The best partition of the first j values ends with a group that begins at some
          i with k ≤ j − i ≤ 2k − 1, since splitting a larger group is beneficial. simple tries
          all k starts; simple+ begins at the best start of a column before, which for concave costs
          the best start of j is never before.
Cost      O(kn) time, O(n) memory; simple+ tries far fewer starts in practice.
Paper     Stamm & Schaub 2024, Algorithm 2 (the printed bound j−2k+2 forbids groups of 2k−1 and is
          a misprint for j−2k+1).
Here      Decisions are exact, see costs.py; ties go to the lower start. Starts whose
          costs are equal because all values between are equal are not tried one by one.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.univariate.costs import best_of_close, tolerance, value
from microagg.algorithms.univariate.exact import SSE
from microagg.algorithms.univariate.line import (
    COST,
    INVERSE,
    KNOWN,
    LO,
    ORIGIN,
    P1,
    PLACE,
    H,
    K,
    SortedLine,
)
from microagg.algorithms.univariate.windows import next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.no_refcount import lean_kernel, lean_subkernel, scan

# simple+ begins at the best start of this many columns before: to wait for that of the last one takes
# longer than to try the few starts between.
_LAG = 2
# Up to this many starts, one pass over them is faster than two with wide instructions.
SHORT = 24


@lean_subkernel
def least_two(x, w, q, first, last, j):
    """Best start for column j among first..last in doubles, its value and the next one."""
    best, least, second = first, np.inf, np.inf
    for i in range(first, last + 1):
        v = value(x, w, q, i, j)
        second = min(second, max(v, least))
        best = i if v < least else best
        least = min(v, least)
    return best, least, second


@lean_subkernel
def least_two_sse(p1, h, inverse, offset, first, last, pj):
    """Do the same for sse."""
    best, least, second = first, np.inf, np.inf
    for i in range(first, last + 1):
        d = pj - p1[i]
        v = h[i] - d * d * inverse[offset + i]
        second = min(second, max(v, least))
        best = i if v < least else best
        least = min(v, least)
    return best, least, second


@scan
def near_least_sse(p1, h, inverse, offset, first, last, pj, slack):
    """Return the least value plus slack, how many starts are up to that, the sum of their distances."""
    least = np.inf
    for i in range(first, last + 1):
        d = pj - p1[i]
        least = min(least, h[i] - d * d * inverse[offset + i])
    limit = least + slack
    count, total = 0, 0
    for i in range(first, last + 1):
        d = pj - p1[i]
        near = h[i] - d * d * inverse[offset + i] <= limit
        count += near
        total += (i - first) * near
    return limit, count, total


@lean_kernel
def _simple(x, raw, back, w, q, state, monotone):
    k, sse = q[PLACE, K], q[PLACE, COST] == SSE
    p1, h, inverse, origin, known = w[P1], w[H], w[INVERSE], q[ORIGIN], q[KNOWN]
    while not state[STOP]:
        begin, end = next_window(x, raw, back, w, q)
        if begin > end:
            return
        lo = q[PLACE, LO]
        alike = max(begin - k - 1, 0)  # from here on the starts have equal f for sure
        while alike > 0 and origin[alike - 1] == origin[alike]:
            alike -= 1
        for j in range(begin, end + 1):
            first = max(j - 2 * k + 1, 0)
            if monotone and lo + j - _LAG >= k:
                first = max(first, back[lo + j - _LAG] - lo)
            last = j - k
            if last > 0 and origin[last] != origin[last - 1]:
                alike = last
            if alike <= first and raw[lo + first] == raw[lo + j - 1]:
                last = first
            slack, offset = tolerance(x, w, q, j), h.size - j
            if sse and last - first >= SHORT:
                limit, count, total = near_least_sse(
                    p1, h, inverse, offset, first, last, p1[j], slack
                )
                best, clear = first + total, count == 1
                least = value(x, w, q, best, j) if clear else limit
            else:
                if sse:
                    best, least, second = least_two_sse(p1, h, inverse, offset, first, last, p1[j])
                else:
                    best, least, second = least_two(x, w, q, first, last, j)
                limit = least + slack
                clear = second > limit
            if not clear:
                best, least = best_of_close(x, raw, back, w, q, first, last, j, limit)
            h[j] = least
            back[lo + j] = lo + best
            origin[j] = origin[best] if raw[lo + best] == raw[lo + j - 1] else lo + j
            known[j] = 0
        if not window_done(q, state, end):
            return


def simple(line: SortedLine, state: State) -> None:
    """Fill the line by trying all starts."""
    run(lambda *arrays: _simple(*arrays, False), line, state)


def simple_plus(line: SortedLine, state: State) -> None:
    """Fill the line by trying the starts from a last best one on."""
    run(lambda *arrays: _simple(*arrays, True), line, state)
