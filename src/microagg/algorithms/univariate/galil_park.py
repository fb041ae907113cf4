"""Galil & Park's algorithm for the concave least-weight subsequence problem.

Problem   Cut n sorted values into groups of at least k at the least cost.
Idea      Keep for some columns ahead the best start among those known so far, by SMAWK on a
          square of the matrix. Settle column after column by that, and compare each new start at
          the last of the columns ahead only: if it loses there it loses before, too. If it
          wins there, all older starts are beaten from there on: what they give for the
          columns between is kept, and the next square begins at the new start.
Cost      O(n) time and memory.
Paper     Galil & Park 1990; adapted to groups of k..2k−1 by Stamm & Schaub 2024, section 3.4.
Here      A square goes at most 2k−1 columns ahead, beyond which no start so far is allowed, and
          not past a window (windows.py). With a cost per group there is no such limit. Decisions
          are exact, see costs.py; ties go to the lower start.
"""

from __future__ import annotations

from microagg.algorithms.univariate.costs import settle, value
from microagg.algorithms.univariate.line import SortedLine
from microagg.algorithms.univariate.smawk import later_wins, smawk
from microagg.algorithms.univariate.windows import first_start, next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.jit import inlined_subkernel, lean_kernel


@inlined_subkernel
def _look_ahead(line, base, done, ahead, guessed):
    """Best starts of columns done+1..ahead among base..done and what was known up to guessed."""
    guess, square = line.guess, line.square
    smawk(line, done + 1, ahead, base, done, square)
    for j in range(done + 1, ahead + 1):
        if j > guessed or later_wins(line, guess[j], square[j], j):
            guess[j] = square[j]


@lean_kernel
def _galil_park(line, state):
    guess, window = line.guess, line.window[0]
    k, most = window.k, window.most
    while not state[STOP]:
        begin, end = next_window(line)
        if begin > end:
            return
        base = first_start(line)
        ahead = guessed = begin - 1
        for j in range(begin, end + 1):
            if j > ahead:
                ahead = min(2 * (j - 1) - base + 1, j - 1 + most, end)
                _look_ahead(line, base, j - 1, ahead, guessed)
                guessed = max(guessed, ahead)
            else:
                new = j - 1
                if k == 1 and later_wins(line, guess[j], new, j):
                    guess[j] = base = new
                    ahead = j
                elif later_wins(line, guess[ahead], new, ahead):
                    base = new
                    ahead = j
            start = guess[j]
            settle(line, start, j, value(line, start, j))
        if not window_done(line, state, end):
            return


def galil_park(line: SortedLine, state: State) -> None:
    """Fill the line by looking ahead in squares."""
    run(_galil_park, line, state)
