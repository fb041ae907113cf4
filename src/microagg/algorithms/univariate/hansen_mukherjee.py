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
from microagg.algorithms.univariate.line import GUESS, PLACE, H, K, SortedLine
from microagg.algorithms.univariate.windows import next_window, run, window_done
from microagg.base.progress import STOP, State
from microagg.compile.no_refcount import lean_kernel


@lean_kernel
def _shortest_path(x, raw, back, w, q, state):
    k = q[PLACE, K]
    while not state[STOP]:
        begin, end = next_window(x, raw, back, w, q)
        if begin > end:
            return
        for j in range(begin, end + 1):
            w[H, j] = np.inf  # the length of the best path found so far, which came by GUESS
        for i in range(max(begin - 2 * k + 1, 0), end + 1):
            if i >= begin:
                settle(x, raw, back, w, q, q[GUESS, i], i)
            if w[H, i] == np.inf:
                continue
            for j in range(max(i + k, begin), min(i + 2 * k - 1, end) + 1):
                length = value(x, w, q, i, j)
                gap = length - w[H, j]
                if gap < 0 and -gap > tolerance(x, w, q, j):
                    better = True
                elif gap > 0 and gap > tolerance(x, w, q, j):
                    better = False
                else:
                    better = prefers_exactly(x, raw, back, w, q, i, q[GUESS, j], j)
                if better:
                    w[H, j], q[GUESS, j] = length, i
        if not window_done(q, state, end):
            return


def hansen_mukherjee(line: SortedLine, state: State) -> None:
    """Fill the line by following all arcs."""
    run(_shortest_path, line, state)
