"""Hansen & Mukherjee 2003, section 3: the best cut of a column as a shortest path, O(kn) time.

Problem   Cut n sorted values into groups of at least k at the least cost.
Idea      Nodes 0..n stand between the sorted values, and an arc for the group between two of them. All arcs
          lead forward, so nodes are taken in order: when a node's turn comes its distance is final, and its
          arcs are followed.
Here      An arc is measured when it is followed, so that memory is O(n). Costs are compared exactly, and ties
          go to the lower start (costs.py); the line is filled window by window (windows.py).
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.univariate.costs import prefers_exactly, settle, tolerance, value
from microagg.algorithms.univariate.windows import next_window
from microagg.compile.jit import lean_kernel


@lean_kernel
def hansen_mukherjee(line, state):
    """Fill a line; ``least`` is the distance of each node, ``guess`` where its last arc begins."""
    distance, guess, k = line.least, line.guess, line.window[0].k
    end = 0
    while True:
        begin, end = next_window(line, state, end)
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
                better = length < distance[j]
                if abs(length - distance[j]) <= tolerance(line, j):
                    better = prefers_exactly(line, i, guess[j], j)
                if better:
                    distance[j], guess[j] = length, i
