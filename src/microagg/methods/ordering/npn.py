"""NPN-MHM: nearest point next.

Problem   Put records in a sequence in which neighbours are near, to be cut optimally.
Idea      Start at the record farthest from the centroid; go on to the nearest one not yet seen.
Cost      At most O(n²·d), near O(n log n · d) for few columns: the nearest record left is found
          in a tree from which records are taken away. The cut takes O(kn·d).
Paper     Domingo-Ferrer, Martínez-Ballesté, Mateo-Sanz & Sebé 2006, as described in sections 1 and
          3 of Mortazavi 2020.
Here      Ties go to the lower row index.
"""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats
from microagg.kernels.jit import kernel
from microagg.kernels.left_tree import nearest, new_tree, room, take
from microagg.methods.ordering.cut import Order
from microagg.progress import DONE, STOP, State, new_state

# Records between two looks at the watcher.
_LOOK = 64


@kernel
def _walk(tree, first, order, stack, gap, state):  # type: ignore[no-untyped-def]
    n = order.size
    current = first
    for t in range(n):
        if t % _LOOK == 0:
            if state[STOP]:
                return
            state[DONE] = t
        order[t] = current
        take(tree, current)
        current = nearest(tree, tree.X[current], stack, gap)
    state[DONE] = n


def farthest_from_centroid(X: Floats) -> int:
    """Row of the record farthest from the centroid, the lowest of equals."""
    centred = X - X.mean(axis=0)
    return int(np.einsum("ij,ij->i", centred, centred).argmax())


def npn_order(X: Floats, k: int, *, progress: State | None = None) -> Order:
    """Order records from the one farthest from the centroid on, always to the nearest unseen.

    Parameters
    ----------
    X : float64 array of shape (n, d), C-contiguous, centred and scaled
    k : int, of no influence here
    progress : shared state of a watched run, see :mod:`microagg.progress`

    Returns
    -------
    int64 array of shape (n,): row numbers in their order.

    >>> npn_order(np.array([[0.0], [9.0], [1.0], [7.0]]), 2).tolist()
    [1, 3, 2, 0]
    """
    order = np.zeros(len(X), dtype=np.int64)
    state = new_state() if progress is None else progress
    _walk(new_tree(X), farthest_from_centroid(X), order, *room(), state)
    return order
