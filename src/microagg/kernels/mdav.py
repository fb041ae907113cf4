"""The loops of MDAV, for the method and for all that lay out neighbouring records by it.

The method itself, its paper and its cost are in methods/fixed_size/mdav.py.
"""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats, Labels
from microagg.kernels.jit import kernel, subkernel
from microagg.kernels.kd_tree import farthest, nearest
from microagg.kernels.left import all_left, outermost, renewed, take
from microagg.progress import DONE, STOP, State

__all__ = ["mdav_labels", "rounds"]


@subkernel
def _take_group(left, seed, k, group, distances, rows):
    """Give a record and its k−1 nearest a label and take them away."""
    take(left, seed, group)
    for a in range(nearest(left.tree, left.X[seed], k - 1, distances, rows)):
        take(left, rows[a], group)


@kernel
def rounds(left, m, k, group, state):
    """Form groups until fewer than 2k of the m records are left, or tree or shells are worn."""
    distances, rows = np.empty(k), np.empty(k, np.intp)
    worn = False
    while m >= 2 * k and m > left.enough and not worn and not state[STOP]:
        pair = m >= 3 * k
        r, worn = outermost(left, m)
        _take_group(left, r, k, group, distances, rows)
        if pair:
            s = farthest(left.tree, left.X[r])
            _take_group(left, s, k, group + 1, distances, rows)
        m -= 2 * k if pair else k
        group += 2 if pair else 1
        state[DONE] = left.labels.size - m
    return m, group


def mdav_labels(X: Floats, k: int, state: State, weights: Floats | None = None) -> Labels:
    """Groups 0, 1, … of MDAV; those not formed when asked to stop are −1.

    With weights the centroid of what is left is the weighted one.

    >>> from microagg.progress import new_state
    >>> mdav_labels(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2, new_state()).tolist()
    [1, 0, 2, 2, 1, 0]
    """
    left = all_left(X, weights)
    m, group = rounds(left, len(X), k, 0, state)
    while m >= 2 * k and not state[STOP]:
        left = renewed(left)
        m, group = rounds(left, m, k, group, state)
    if not state[STOP]:
        left.labels[left.labels < 0] = group
        state[DONE] = len(X)
    return left.labels
