"""Diameter-based fixed-size microaggregation, method D.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Work from the outside in, two groups at a time: each of the two records that are
          farthest apart gathers k−1 others around it, each time the one nearest to the
          centroid of the group so far. With k..2k−1 records left these form the last group;
          fewer than k join the nearest groups.
Cost      O(n³·d / k) time at worst, O(n·d) memory; the searches are pruned, so that normal data
          take about n^1.1 with 4 columns and n^1.5 with 10. A heuristic: no bound on its loss is
          proved.
Paper     Domingo-Ferrer & Mateo-Sanz 2002, as given by Laszlo & Mukherjee 2005, section 4.2
          (diameterBasedFixedSize), where the farthest pair takes cubic time or an n×n matrix.
Here      Ties go to the lower row indices. When the second record of the pair is in the group
          of the first, no second group is formed in that round, which gives the published figures.
          The last records go by the centroids before any of them joined, ties to the older group.
          The rounds are in kernels/outside_in.py, the pair in kernels/farthest_pair.py.
"""

from __future__ import annotations

from microagg.algorithms.result import Outcome
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats
from microagg.kernels.farthest_pair import reach_of
from microagg.kernels.outside_in import join_nearest, outside_in


def diameter(X: Floats, k: int, *, state: State | None = None) -> Outcome:
    """Partition by gathering groups around the two records that are farthest apart.

    >>> import numpy as np
    >>> diameter(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).labels.tolist()
    [0, 1, 2, 2, 0, 1]
    """
    state = new_state() if state is None else state
    reach = reach_of(X)
    labels, m, group = outside_in(X, k, state, least=2 * k, both=2 * k, reach=reach, moving=True)
    if m >= k:
        labels[labels < 0] = group
    else:
        join_nearest(X, labels, group)
    if not state[STOP]:
        state[DONE] = len(X)
    return Outcome(labels)
