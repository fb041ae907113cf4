"""The best cut of one column with weights into runs of its sorted values.

Problem   Partition n numbers with weights into groups of at least k records, each a run of the sorted
          values, at the least weighted SSE.
Idea      Shortest path: an arc for each run of k to 2k−1 values. From a start the runs grow one value at
          a time, and with them their weighted mean and SSE (Welford's update, which has no
          prefix sums that could cancel). Larger runs can be split at no loss.
Cost      O(kn) time, O(n) memory, whatever the name of the method: with weights all univariate
          methods cut by this program, since they would find the same groups.
Paper     Hansen & Mukherjee 2003, section 3, whose graph this is; West 1979 for the update.
Here      The cut is the best among runs, up to rounding: costs that differ by less than a part in 10¹²
          count as equal, and the larger last group wins. It need not be the best of all
          partitions, as it is without weights: k counts records, so a light record may fill up a group
          that is far from it. Of 8, 10, 13, 34 with weights 3, 3, 10, 10 the best pairs are 8 with 13
          and 10 with 34. :mod:`microagg.algorithms.refine` improves the cut.
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.univariate.order import labels_by_row, sorted_order
from microagg.base.progress import DONE, STOP, State
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel
from microagg.kernels.doubled_sums import two_sum

_NOISE = 1e-12  # of the cost of the last groups: what is nearer may be equal
_AT_ONCE = 1 << 14  # starts between two looks at the state


@lean_kernel
def _relax(x, weights, k, begin, end, high, low, back):
    """Extend the best partitions of the first begin..end−1 values by one group.

    ``high + low`` is the least cost of the first j values, in doubled precision: the last group
    decides, whatever was summed up before it.
    """
    n = x.size
    for i in range(begin, end):
        if high[i] == np.inf:
            continue
        mass, mean, sse = 0.0, x[i], 0.0
        for j in range(i + 1, min(i + 2 * k - 1, n) + 1):
            weight, gap = weights[j - 1], x[j - 1] - mean
            sse += gap * gap * (mass * weight / (mass + weight))
            mass += weight
            mean += gap * (weight / mass)
            if j - i < k:
                continue
            s, e = two_sum(high[i], sse)
            s, e = two_sum(s, e + low[i])
            if high[j] < np.inf:
                gain = (high[j] - s) + (low[j] - e)
                if gain <= _NOISE * (sse + gain):
                    continue
            high[j], low[j], back[j] = s, e, i


def cut_weighted(X: Floats, weights: Floats, k: int, state: State) -> Labels:
    """Labels of the best groups of one column, numbered by first appearance.

    >>> from microagg.base.progress import new_state
    >>> X = np.array([[0.0], [1.0], [3.0], [5.0], [5.5]])
    >>> cut_weighted(X, np.ones(5), 2, new_state()).tolist()
    [0, 0, 1, 1, 1]

    Heavy records are better left alone.

    >>> cut_weighted(X, np.array([1.0, 1.0, 1.0, 9.0, 9.0]), 2, new_state()).tolist()
    [0, 0, 0, 1, 1]
    """
    rows, x = sorted_order(np.ascontiguousarray(X[:, 0]))
    n, ordered = len(x), weights[rows]
    high, low, back = np.full(n + 1, np.inf), np.zeros(n + 1), np.zeros(n + 1, np.intp)
    high[0] = 0.0
    for begin in range(0, n, _AT_ONCE):
        if state[STOP]:  # nobody will look at this
            return np.zeros(n, np.int64)
        end = min(begin + _AT_ONCE, n)
        _relax(x, ordered, k, begin, end, high, low, back)
        state[DONE] = end
    ends, column = [], n
    while column > 0:
        ends.append(column)
        column = int(back[column])
    return labels_by_row(rows, np.array(ends[::-1], dtype=np.int64))
