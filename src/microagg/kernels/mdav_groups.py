"""MDAV's groups, for the method and for all that lay out neighbouring records by it.

The method itself, its paper and its cost are in algorithms/fixed_size/mdav.py.
"""

from __future__ import annotations

from microagg.base.progress import DONE, STOP, State
from microagg.base.typing import Floats, Labels
from microagg.kernels.outside_in import outside_in


def mdav_labels(X: Floats, k: int, state: State, weights: Floats | None = None) -> Labels:
    """Form the groups 0, 1, … of MDAV; those not formed when asked to stop are −1.

    With weights the centroid of what is left is the weighted one.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous, n ≥ k; never written to
    k : least size of a group
    state : progress in records, and the wish to stop
    weights : (n,) above 0

    Returns
    -------
    (n,) int64, the caller's

    >>> import numpy as np
    >>> from microagg.base.progress import new_state
    >>> mdav_labels(np.array([[0.0], [9.0], [1.0], [8.0], [0.5], [30.0]]), 2, new_state()).tolist()
    [1, 0, 2, 2, 1, 0]
    """
    labels, _, group = outside_in(X, k, state, least=2 * k, both=3 * k, weights=weights)
    if not state[STOP]:
        labels[labels < 0] = group
        state[DONE] = len(X)
    return labels
