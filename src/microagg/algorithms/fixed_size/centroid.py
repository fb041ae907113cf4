"""Centroid-based fixed-size microaggregation, method C.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Work from the outside in, one group at a time: the record farthest from the centroid
          of what is left gathers k−1 others around it, each time the one nearest to the
          centroid of the group so far. The last records, fewer than k, join the nearest groups.
Cost      O(n²·d) time at worst, O(n·d) memory; the searches are pruned, so that normal data take
          about n^1.2 with up to 10 columns. A heuristic: no bound on its loss is proved.
Paper     Laszlo & Mukherjee 2005, section 4.2 (centroidBasedFixedSize). Its figures for the
          Tarragona data are not those of its own pseudocode; all others are.
Here      Ties go to the lower row index. The last records go by the centroids before any of them
          joined, ties to the older group; the paper leaves both open. The rounds are in
          kernels/outside_in.py; their searches find what scans over all records would.
"""

from __future__ import annotations

from microagg.algorithms.result import Outcome
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats
from microagg.kernels.outside_in import join_nearest, outside_in


def centroid(X: Floats, k: int, *, state: State | None = None) -> Outcome:
    """Partition by gathering groups around the record farthest from the centroid.

    >>> import numpy as np
    >>> centroid(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).labels.tolist()
    [2, 0, 1, 1, 2, 0]
    """
    state = new_state() if state is None else state
    labels, _, group = outside_in(X, k, state, least=k, moving=True)
    if not state[STOP]:
        join_nearest(X, labels, group)
        state[DONE] = len(X)
    return Outcome(labels)
