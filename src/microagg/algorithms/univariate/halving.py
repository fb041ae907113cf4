"""Halving: row minima of blocks by bisection, our own choice for large k.

Problem   Cut n sorted values into groups of at least k at the least cost.
Idea      The best starts of the next k columns are all among columns that are settled already,
          and they never decrease. So settle the middle one of the block, then the middles of both
          halves between the best starts around them, and so on.
Cost      O(n log k) time, O(n) memory. SMAWK needs O(n), but bisection looks at the starts one
          after the other, several in one instruction, and is faster for every k we measured.
Paper     The blocks are those of the staggered algorithm (Stamm & Schaub 2024, Algorithm 1).
Here      Decisions are exact, see costs.py; ties go to the lower start.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.univariate.costs import best_of_close, settle, tolerance, value
from microagg.algorithms.univariate.exact import SSE
from microagg.algorithms.univariate.line import COST, INVERSE, LO, P1, PLACE, H, K, SortedLine
from microagg.algorithms.univariate.simple import SHORT, least_two_sse, near_least_sse
from microagg.algorithms.univariate.windows import next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.no_refcount import lean_kernel, lean_subkernel


@lean_subkernel
def _near_least(x, w, q, first, last, j, slack):
    """Do as near_least_sse does, for any cost."""
    least = np.inf
    for i in range(first, last + 1):
        least = min(least, value(x, w, q, i, j))
    count, total = 0, 0
    for i in range(first, last + 1):
        if value(x, w, q, i, j) <= least + slack:
            count += 1
            total += i - first
    return least + slack, count, total


@lean_kernel
def _halving(x, raw, back, w, q, state):
    k, sse = q[PLACE, K], q[PLACE, COST] == SSE
    p1, h, inverse = w[P1], w[H], w[INVERSE]
    while not state[STOP]:
        begin, end = next_window(x, raw, back, w, q)
        if begin > end:
            return
        lo = q[PLACE, LO]
        for block in range(begin, end + 1, k):
            stop = min(block + k, end + 1)
            # Best starts before the block and, while bisecting, on both sides of a column.
            floor = max(back[lo + block - 1] - lo, 0) if lo + block > k else 0
            step = 1
            while 2 * step <= stop - block:
                step *= 2
            while step > 0:
                for j in range(block + step - 1, stop, 2 * step):
                    first = back[lo + j - step] - lo if j - step >= block else floor
                    first = max(first, j - 2 * k + 1, 0)
                    last = j - k
                    if j + step < stop:
                        last = min(last, back[lo + j + step] - lo)
                    slack = tolerance(x, w, q, j)
                    if sse and last - first < SHORT:
                        best, least, second = least_two_sse(
                            p1, h, inverse, h.size - j, first, last, p1[j]
                        )
                        limit, clear = least + slack, second > least + slack
                    else:
                        if sse:
                            limit, count, total = near_least_sse(
                                p1, h, inverse, h.size - j, first, last, p1[j], slack
                            )
                        else:
                            limit, count, total = _near_least(x, w, q, first, last, j, slack)
                        best, clear = first + total, count == 1
                    if not clear:
                        best, _ = best_of_close(x, raw, back, w, q, first, last, j, limit)
                    settle(x, raw, back, w, q, best, j)
                step //= 2
        if not window_done(q, state, end):
            return


def halving(line: SortedLine, state: State) -> None:
    """Fill the line by bisection in blocks of k columns."""
    run(_halving, line, state)
