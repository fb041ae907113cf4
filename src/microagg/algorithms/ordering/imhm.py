"""IMHM: the optimal cut, used again and again.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      From the groups of mdav: visit the records group by group, cut that sequence optimally, which
          gives new groups, and so on while the SSE falls. It never rises, since the old groups are
          runs of the new sequence.
Cost      That of mdav, and in each iteration O(kn·d) for the cut and n/k searches for the nearest
          centroid not yet visited, each of which is O(n/k · d) at worst. Normal data of 5,000 to 80,000
          records, k = 5, take some dozens of iterations and about n^1.3 with 2 columns, 50 to 150 and
          n^1.4 with 5, 60 to 180 and n^1.5 with 10.
Paper     Mortazavi, Jalili & Gohargazi 2013. Of it the papers at hand give the cut (Algorithm 2 in the
          appendix of Mortazavi 2020, see cut.py) and say that it was used for several columns in an
          iterative optimisation with several parameters (section 3).
Here      How that optimisation goes the papers at hand do not say, and its published losses are not
          ours (docs/papers/mortazavi.md). We repeat the visit of mdav-mhm (by_groups.py), which
          has no parameter. It ends when the SSE falls by less than a ten-millionth, or by less than a
          thousandth in ten iterations together. Without the latter the iterations grow with the table, to
          436 for 80,000 records of 10 columns in place of 175, and the whole as n², for a SSE that is
          1 to 2 % lower. On the reference tables the losses are the same to all digits of the papers.
"""

from __future__ import annotations

from itertools import count

import numpy as np

from microagg.algorithms.ordering.by_groups import visit_groups
from microagg.algorithms.ordering.cut import Order, labels_along
from microagg.base.progress import DONE, STOP, State, new_state, part
from microagg.base.typing import Floats
from microagg.kernels.labels import sum_of_squares
from microagg.kernels.outside_in import mdav_labels

_LEAST = 1e-7  # by which one iteration lowers the SSE
_FEW, _WORTHWHILE = 10, 1e-3  # iterations, and by how much they lower it together


def imhm_order(X: Floats, k: int, *, state: State | None = None) -> Order:
    """Order records by the groups of mdav, then by those of the cut, while the loss falls.

    >>> imhm_order(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).tolist()
    [5, 1, 3, 2, 4, 0]
    """
    state = new_state() if state is None else state
    n = len(X)
    with part(state, 1 / 8):
        labels = mdav_labels(X, k, state)
    order: Order = np.arange(n)
    hint, losses = np.full(n, -1), [np.inf]
    for t in count(1):
        if state[STOP]:
            break
        order = visit_groups(X, labels, hint)
        labels = labels_along(X, order, k, new_state())
        losses.append(sum_of_squares(X, labels))
        if _ended(losses):
            state[DONE] = n
            break
        hint[order[:-1]] = order[1:]
        state[DONE] = n // 8 + (n - n // 8) * t // (t + 16)  # some dozens are usual
    return order


def _ended(losses: list[float]) -> bool:
    """Return whether the SSE falls no more, or the last few iterations were hardly worth their time."""
    now = losses[-1]
    if not now < losses[-2] * (1 - _LEAST):
        return True
    return len(losses) > _FEW and not now < losses[-1 - _FEW] * (1 - _WORTHWHILE)
