"""Wilber's algorithm for the concave least-weight subsequence problem.

Problem   Cut n sorted values into groups of at least k at the least cost.
Idea      With columns up to c settled, guess that the best starts of the next ones, as many as
          there are starts in question, are not after c: SMAWK. Then see with a second SMAWK, as
          if the guesses were right, whether a start after c would do better somewhere. At
          the first column where one does, the guesses before it are right, the column itself is
          now known, and no later column begins at c or before.
Cost      O(n) time and memory.
Paper     Wilber 1988; adapted to groups of k..2k−1 by Stamm & Schaub 2024, section 3.4.
Here      Guesses go at most 2k−1 columns ahead, beyond which no start up to c is allowed, and
          not past a window (windows.py). With a cost per group there is no such limit. Decisions
          are exact, see costs.py; ties go to the lower start.
"""

from __future__ import annotations

from microagg.algorithms.univariate.costs import settle, value
from microagg.algorithms.univariate.line import SortedLine
from microagg.algorithms.univariate.smawk import later_wins, smawk
from microagg.algorithms.univariate.windows import first_start, next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.jit import lean_kernel


@lean_kernel
def _wilber(line, state):
    back, guess, window = line.back, line.guess, line.window[0]
    k = window.k
    while not state[STOP]:
        begin, end = next_window(line)
        if begin > end:
            return
        lo = window.lo
        c = begin - 1
        r = first_start(line)
        while c < end:
            p = min(2 * c - r + 1, c + window.most, end)
            # Starts up to c, then those after c: only groups of k and more can begin there.
            better = 0
            for first, low, high in ((c + 1, r, c), (c + 1 + k, c + 1, p - k)):
                smawk(line, first, p, low, high, guess)
                for j in range(first, p + 1):
                    start = guess[j]
                    if low == r:
                        settle(line, start, j, value(line, start, j))
                    elif later_wins(line, back[lo + j] - lo, start, j):
                        better = j
                        break
            if better > 0:
                start = guess[better]
                settle(line, start, better, value(line, start, better))
                r = c + 1
                c = better
            else:
                r = max(r, back[lo + p] - lo)
                c = p
        if not window_done(line, state, end):
            return


def wilber(line: SortedLine, state: State) -> None:
    """Fill the line by guessing ahead and checking."""
    run(_wilber, line, state)
