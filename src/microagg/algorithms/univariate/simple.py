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

from microagg.algorithms.univariate.costs import best_start, settle
from microagg.algorithms.univariate.line import SortedLine
from microagg.algorithms.univariate.windows import next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.jit import lean_kernel

# simple+ begins at the best start of this many columns before: to wait for that of the last one takes
# longer than to try the few starts between.
_LAG = 2


@lean_kernel
def _simple(line, state, monotone):
    raw, back, window, origin = line.raw, line.back, line.window[0], line.origin
    k = window.k
    while not state[STOP]:
        begin, end = next_window(line)
        if begin > end:
            return
        lo = window.lo
        alike = max(begin - k - 1, 0)  # from here on the starts have equal costs for sure
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
            best, cost = best_start(line, first, last, j)
            settle(line, best, j, cost)
        if not window_done(line, state, end):
            return


def simple(line: SortedLine, state: State) -> None:
    """Fill the line by trying all starts."""
    run(_simple, line, state, False)


def simple_plus(line: SortedLine, state: State) -> None:
    """Fill the line by trying the starts from a last best one on."""
    run(_simple, line, state, True)
