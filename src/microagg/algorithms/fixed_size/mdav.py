"""MDAV: maximum distance to the average vector.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Work from the outside in. The record r farthest from the centroid of what is
          left and its k−1 nearest form a group; so do the record s farthest from r and
          its k−1 nearest. With 2k..3k−1 records left one more group is formed around the
          farthest, and the last k..2k−1 records stay together.
Cost      O(n²/k · d) time at worst, O(n·d) memory; the searches are pruned, so that normal
          data take about n^1.2 with 4 columns and n^1.4 with 10. A heuristic: no bound on its
          loss is proved.
Paper     Domingo-Ferrer & Torra 2005 (as MDAV-generic). The steps above are the variant whose
          losses on the reference data sets are the published ones (tests/support/published.py).
Here      Ties go to the lower row index. s is searched once the group of r is gone: that is
          the farthest record before the removal, unless that one itself went, in
          which case it is the farthest of what is left. The rounds are in kernels/outside_in.py;
          their searches find what scans over all records would. With weights the centroid is
          the weighted one; who is near to whom does not depend on weights.
"""

from __future__ import annotations

from microagg.algorithms.result import Outcome
from microagg.base.progress import State, new_state
from microagg.base.typing import Floats
from microagg.kernels.outside_in import mdav_labels


def mdav(
    X: Floats, k: int, *, weights: Floats | None = None, state: State | None = None
) -> Outcome:
    """Partition by maximum distance to the average vector.

    Parameters
    ----------
    weights : float64 array of shape (n,), optional

    >>> import numpy as np
    >>> mdav(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).labels.tolist()
    [1, 0, 2, 2, 1, 0]
    """
    return Outcome(mdav_labels(X, k, new_state() if state is None else state, weights))
