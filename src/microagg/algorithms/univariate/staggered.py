"""staggered: SMAWK on blocks of k columns along the diagonal.

Problem   Cut n sorted values into groups of at least k at the least cost.
Idea      The best starts of the next k columns are all among columns settled already, at most
          2k−1 back, and the matrix of their costs is totally monotone: SMAWK finds them.
Cost      O(n) time and memory.
Paper     Stamm & Schaub 2024, section 3.5 and Algorithm 1.
Here      Blocks begin anew in every window (windows.py); starts before the best one of the column
          before the block are left out. Decisions are exact, see costs.py; ties go to the
          lower start.
"""

from __future__ import annotations

from microagg.algorithms.univariate.costs import settle, value
from microagg.algorithms.univariate.line import SortedLine
from microagg.algorithms.univariate.smawk import smawk
from microagg.algorithms.univariate.windows import next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.jit import lean_kernel


@lean_kernel
def _staggered(line, state):
    window = line.window[0]
    k = window.k
    while not state[STOP]:
        begin, end = next_window(line)
        if begin > end:
            return
        lo = window.lo
        for first in range(begin, end + 1, k):
            last = min(first + k - 1, end)
            low = max(first - 2 * k + 1, 0)
            if lo + first > k:
                low = max(low, line.back[lo + first - 1] - lo)
            smawk(line, first, last, low, last - k, line.guess)
            for j in range(first, last + 1):
                start = line.guess[j]
                settle(line, start, j, value(line, start, j))
        if not window_done(line, state, end):
            return


def staggered(line: SortedLine, state: State) -> None:
    """Fill the line by SMAWK in blocks of k columns."""
    run(_staggered, line, state)
