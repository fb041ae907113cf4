"""Hansen & Mukherjee's shortest path.

Problem   Cut n sorted values into groups of at least k at the least sum of squares.
Idea      Nodes 0..n stand between the sorted values; an arc from i to j stands for the group of
          the values between them and has its cost as length. Only arcs over k..2k−1 values
          can be in a shortest path from 0 to n, which is the best partition. All
          arcs lead forward, so the nodes are taken in order: when a node's turn comes its
          distance is final, and its arcs are followed.
Cost      O(kn) time; O(n) memory, since an arc is measured when it is followed.
Paper     Hansen & Mukherjee 2003, section 3.
Here      Decisions are exact, see costs.py; of paths of equal length the one whose last arc
          begins lower is kept.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.univariate.costs import prefers_exactly, settle, tolerance, value
from microagg.algorithms.univariate.line import SortedLine
from microagg.algorithms.univariate.windows import next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.jit import lean_kernel


@lean_kernel
def _shortest_path(line, state):
    distance, guess, k = line.least, line.guess, line.window[0].k
    while not state[STOP]:
        begin, end = next_window(line)
        if begin > end:
            return
        for j in range(begin, end + 1):
            distance[j] = np.inf  # of the best path so far, whose last arc begins at the guess
        for i in range(max(begin - 2 * k + 1, 0), end + 1):
            if i >= begin:
                settle(line, guess[i], i, distance[i])
            if distance[i] == np.inf:
                continue
            for j in range(max(i + k, begin), min(i + 2 * k - 1, end) + 1):
                length = value(line, i, j)
                gap = length - distance[j]
                if gap < 0 and -gap > tolerance(line, j):
                    better = True
                elif gap > 0 and gap > tolerance(line, j):
                    better = False
                else:
                    better = prefers_exactly(line, i, guess[j], j)
                if better:
                    distance[j], guess[j] = length, i
        if not window_done(line, state, end):
            return


def hansen_mukherjee(line: SortedLine, state: State) -> None:
    """Fill the line by following all arcs."""
    run(_shortest_path, line, state)
