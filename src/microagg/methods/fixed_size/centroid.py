"""Centroid-based fixed-size microaggregation, method C.

Problem   Partition n records of d columns into groups of at least k, small SSE.
Idea      Work from the outside in, one group at a time: the record farthest from the centroid
          of what is left gathers k−1 others around it, each time the one nearest to the
          centroid of the group so far. The last records, fewer than k, join the nearest groups.
Cost      O(n²·d) time at worst, O(n·d) memory; the searches are pruned, so that normal data take
          about n^1.2 with up to 10 columns. A heuristic: no bound on its loss is proved.
Paper     Laszlo & Mukherjee 2005, section 4.2 (centroidBasedFixedSize). Its figures for the
          Tarragona data are not those of its own pseudocode; all others are.
Here      Ties go to the lower row index. The searches go through shells and a tree
          (kernels/left.py) and find what scans over all records would.
"""

from __future__ import annotations

from microagg.groups import Floats
from microagg.kernels.jit import kernel
from microagg.kernels.left import all_left, outermost, renewed
from microagg.methods.fixed_size.gather import gather, join_nearest
from microagg.progress import DONE, STOP, State, new_state
from microagg.results import Outcome


@kernel
def _rounds(left, m, k, group, state):
    """Form groups until fewer than k of the m records are left, or tree or shells are worn."""
    worn = False
    while m >= k and m > left.enough and not worn and not state[STOP]:
        seed, worn = outermost(left, m)
        gather(left, seed, k, group)
        m -= k
        group += 1
        state[DONE] = left.labels.size - m
    return m, group


def centroid(X: Floats, k: int, *, state: State | None = None) -> Outcome:
    """Partition by gathering groups around the record farthest from the centroid.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled, n ≥ k
    k : int, at least 1
    state : shared state of a watched run, see :mod:`microagg.progress`

    Returns
    -------
    Outcome: the group of each record.

    >>> import numpy as np
    >>> centroid(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).labels.tolist()
    [2, 0, 1, 1, 2, 0]
    """
    state = new_state() if state is None else state
    left = all_left(X)
    m, group = _rounds(left, len(X), k, 0, state)
    while m >= k and not state[STOP]:
        left = renewed(left)
        m, group = _rounds(left, m, k, group, state)
    if not state[STOP]:
        join_nearest(X, left.labels, group)
        state[DONE] = len(X)
    return Outcome(left.labels)
