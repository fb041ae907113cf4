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

          The farthest distance of a record can only shrink as others leave. So the one found
          earlier is an upper bound, and exact while that partner is left: only records
          whose bound is the largest are searched again, in the tree of the records left. Before
          its first search a record's bound is by way of the centre of all: its distance to it
          and that of the outermost record left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from microagg.groups import Floats
from microagg.kernels.jit import kernel, subkernel
from microagg.kernels.kd_tree import farthest
from microagg.kernels.left import all_left, renewed
from microagg.methods.fixed_size.gather import gather, join_nearest
from microagg.progress import DONE, STOP, State, new_state
from microagg.results import Outcome

_ROUNDING = 1e-12  # relative, far above what a sum of squares can be off by


class _Bounds(NamedTuple):
    """How far the farthest other record can be, for each record."""

    bound: Any  # (n,) squared
    partner: Any  # (n,) the record at that distance; −1 when it is a bound only
    radius: Any  # (n,) distance to a fixed centre
    outward: Any  # (n,) rows by radius, largest first
    heap: Any  # (n,) rows, the largest bound on top, then the lowest row
    counters: Any  # first place of outward that is left; length of the heap


def _bounds(X: Floats) -> _Bounds:
    n = len(X)
    radius = np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1))
    outward = np.argsort(-radius, kind="stable")
    return _Bounds(
        bound=np.full(n, np.inf),
        partner=np.full(n, -1),
        radius=radius,
        outward=outward,
        heap=np.arange(n),  # equal bounds in row order are a heap
        counters=np.array([0, n]),
    )


@subkernel
def _sift_down(heap, size, bound):
    """Let the top of the heap, whose bound fell, sink to its place."""
    row = heap[0]
    a = 0
    while 2 * a + 1 < size:
        child = 2 * a + 1
        if child + 1 < size:
            left, right = heap[child], heap[child + 1]
            if bound[right] > bound[left] or (bound[right] == bound[left] and right < left):
                child += 1
        below = heap[child]
        if bound[below] < bound[row] or (bound[below] == bound[row] and below > row):
            break
        heap[a] = below
        a = child
    heap[a] = row


@subkernel
def _farthest_pair(left, bounds):
    """The two records left that are farthest apart, the first of several in row order."""
    bound, partner, radius, outward, heap, counters = bounds
    while left.labels[outward[counters[0]]] >= 0:
        counters[0] += 1
    outermost = radius[outward[counters[0]]]
    while True:
        row = heap[0]
        if left.labels[row] >= 0:
            counters[1] -= 1
            heap[0] = heap[counters[1]]
        elif partner[row] >= 0 and left.labels[partner[row]] < 0:
            return row, partner[row]
        else:
            partner[row] = -1
            cap = ((radius[row] + outermost) * (1 + _ROUNDING)) ** 2
            if cap < bound[row]:
                bound[row] = cap
            else:
                partner[row] = farthest(left.tree, left.X[row])
                bound[row] = 0.0
                for j in range(left.X.shape[1]):
                    gap = left.X[partner[row], j] - left.X[row, j]
                    bound[row] += gap * gap
        _sift_down(heap, counters[1], bound)


@kernel
def _rounds(left, bounds, m, k, group, state):
    """Form groups until fewer than 2k of the m records are left, or the tree is worn."""
    while m >= 2 * k and m > left.enough and not state[STOP]:
        first, second = _farthest_pair(left, bounds)
        gather(left, first, k, group)
        m -= k
        group += 1
        if left.labels[second] < 0:
            gather(left, second, k, group)
            m -= k
            group += 1
        state[DONE] = left.labels.size - m
    return m, group


def diameter(X: Floats, k: int, *, state: State | None = None) -> Outcome:
    """Partition by gathering groups around the two records that are farthest apart.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled, n ≥ k
    k : int, at least 1
    state : shared state of a watched run, see :mod:`microagg.progress`

    Returns
    -------
    Outcome: the group of each record.

    >>> diameter(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2).labels.tolist()
    [0, 1, 2, 2, 0, 1]
    """
    state = new_state() if state is None else state
    left, bounds = all_left(X), _bounds(X)
    m, group = _rounds(left, bounds, len(X), k, 0, state)
    while m >= 2 * k and not state[STOP]:
        left = renewed(left)
        m, group = _rounds(left, bounds, m, k, group, state)
    if m >= k:
        left.labels[left.labels < 0] = group
    else:
        join_nearest(X, left.labels, group)
    if not state[STOP]:
        state[DONE] = len(X)
    return Outcome(left.labels)
