"""Heuristics whose groups all have k records, but for the last ones: mdav, centroid, diameter.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Work from the outside in: a record far out gathers k−1 others around it, in mdav and diameter one
          on the other side does so too, and so on with what is left.
mdav      The record r farthest from the centroid of what is left and its k−1 nearest form a group; so do the
          record s farthest from r and its k−1 nearest. With 2k..3k−1 records left one more group is formed
          around the farthest, and the last k..2k−1 records stay together. About n^1.2 with 4 columns of
          normal data and n^1.4 with 10; O(n²/k · d) at worst.
          Domingo-Ferrer & Torra 2005 (as MDAV-generic). The steps above are the variant whose
          losses on the reference data sets are the published ones (tests/support/published.py). s is
          searched once the group of r is gone: that is the farthest record before the removal, unless that
          one itself went, in which case it is the farthest of what is left. With weights the centroid is
          the weighted one; who is near to whom does not depend on weights.
centroid  Method C, centroid-based: the record farthest from the centroid of what is left gathers k−1 others,
          each time the one nearest to the centroid of the group so far. The last records, fewer than k, join
          the nearest groups. About n^1.2 with up to 10 columns; O(n²·d) at worst.
          Laszlo & Mukherjee 2005, section 4.2 (centroidBasedFixedSize). Its figures for the Tarragona data
          are not those of its own pseudocode; all others are.
diameter  Method D, diameter-based: each of the two records that are farthest apart gathers k−1 others in the
          same way. With k..2k−1 records left these form the last group; fewer than k join the nearest groups.
          About n^1.1 with 4 columns and n^1.5 with 10; O(n³·d / k) at worst.
          Domingo-Ferrer & Mateo-Sanz 2002, as given by Laszlo & Mukherjee 2005, section 4.2
          (diameterBasedFixedSize), where the farthest pair takes cubic time or an n×n matrix. When the second
          record of the pair is in the group of the first, no second group is formed in that round,
          which gives the published figures.
Cost      As given for each; O(n·d) memory. No bound on their loss is proved.
Here      Ties go to the lower row index. Last records go by the centroids before any of them joined, ties to
          the older group; the papers leave both open. The rounds are in kernels/outside_in.py, the farthest
          pair in kernels/farthest_pair.py; their searches find what scans over all records would.
"""

from __future__ import annotations

from microagg.algorithms.result import Outcome
from microagg.base.progress import STOP, State, new_state
from microagg.base.typing import Floats
from microagg.kernels.farthest_pair import farthest_bounds
from microagg.kernels.outside_in import join_nearest, mdav_labels, outside_in


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
    return Outcome(labels)


def diameter(X: Floats, k: int, *, state: State | None = None) -> Outcome:
    """Partition by gathering groups around the two records that are farthest apart.

    >>> import numpy as np
    >>> diameter(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).labels.tolist()
    [0, 1, 2, 2, 0, 1]
    """
    state = new_state() if state is None else state
    bounds = farthest_bounds(X)
    labels, m, group = outside_in(X, k, state, least=2 * k, both=2 * k, bounds=bounds, moving=True)
    if m >= k:
        labels[labels < 0] = group
    else:
        join_nearest(X, labels, group)
    return Outcome(labels)
