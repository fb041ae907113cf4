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

from microagg.algorithms.univariate.costs import settle
from microagg.algorithms.univariate.line import GUESS, LO, PLACE, K, SortedLine
from microagg.algorithms.univariate.smawk import smawk
from microagg.algorithms.univariate.windows import next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.no_refcount import lean_kernel


@lean_kernel
def _staggered(x, raw, back, w, q, state):
    k = q[PLACE, K]
    while not state[STOP]:
        begin, end = next_window(x, raw, back, w, q)
        if begin > end:
            return
        lo = q[PLACE, LO]
        for first in range(begin, end + 1, k):
            last = min(first + k - 1, end)
            low = max(first - 2 * k + 1, 0)
            if lo + first > k:
                low = max(low, back[lo + first - 1] - lo)
            smawk(x, raw, back, w, q, first, last, low, last - k, GUESS)
            for j in range(first, last + 1):
                settle(x, raw, back, w, q, q[GUESS, j], j)
        if not window_done(q, state, end):
            return


def staggered(line: SortedLine, state: State) -> None:
    """Fill the line by SMAWK in blocks of k columns."""
    run(_staggered, line, state)
