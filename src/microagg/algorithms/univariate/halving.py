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

from microagg.algorithms.univariate.costs import best_start, settle
from microagg.algorithms.univariate.line import SortedLine
from microagg.algorithms.univariate.windows import next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.jit import lean_kernel


@lean_kernel
def _halving(line, state):
    back, window = line.back, line.window[0]
    k = window.k
    while not state[STOP]:
        begin, end = next_window(line)
        if begin > end:
            return
        lo = window.lo
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
                    best, cost = best_start(line, first, last, j)
                    settle(line, best, j, cost)
                step //= 2
        if not window_done(line, state, end):
            return


def halving(line: SortedLine, state: State) -> None:
    """Fill the line by bisection in blocks of k columns."""
    run(_halving, line, state)
