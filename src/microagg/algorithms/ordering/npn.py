"""NPN-MHM: nearest point next.

Problem   Put records in a sequence in which neighbours are near, to be cut optimally.
Idea      Start at the record farthest from the centroid; go on to the nearest one not yet seen.
Cost      At most O(n²·d), near O(n log n · d) for few columns: the nearest record left is found
          in a tree from which records are taken away. The cut takes O(kn·d).
Paper     Domingo-Ferrer, Martínez-Ballesté, Mateo-Sanz & Sebé 2006, as described in sections 1 and
          3 of Mortazavi 2020.
Here      Ties go to the lower row index. The losses published for NPN-MHM are not quite those of
          the description (docs/papers/mortazavi.md).
"""

from __future__ import annotations

import numpy as np

from microagg.algorithms.ordering.cut import Order
from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats
from microagg.compile.jit import lean_kernel
from microagg.kernels.kd_search import nearest
from microagg.kernels.kd_tree import build, remove

# Records between two looks at the watcher, and the least for which a new tree is built.
_LOOK = 64


@lean_kernel
def _walk(tree, X, order, begin, end, distances, rows, state):
    """Place the records after those before ``begin``, which are placed, up to ``end``."""
    for t in range(begin, end):
        if t % _LOOK == 0:
            if state[STOP]:
                return
            state[DONE] = t
        nearest(tree, X[order[t - 1]], 1, distances, rows)
        order[t] = rows[0]
        remove(tree, rows[0])


def farthest_from_centroid(X: Floats) -> int:
    """Row of the record farthest from the centroid, the lowest of equals.

    The centroid is rounded: records that differ by no more than that are equals.
    """
    centred = X - X.mean(axis=0)
    distance = np.einsum("ij,ij->i", centred, centred)
    return int((distance >= distance.max() * (1 - 1e-12)).argmax())


def npn_order(X: Floats, k: int, *, state: State | None = None) -> Order:
    """Order records from the one farthest from the centroid on, always to the nearest unseen.

    >>> npn_order(np.array([[0.0], [9.0], [1.0], [7.0]]), 2).tolist()
    [1, 3, 2, 0]
    """
    state = new_state() if state is None else state
    n = len(X)
    order = np.zeros(n, dtype=np.int64)
    order[0] = farthest_from_centroid(X)
    unseen = np.ones(n, dtype=bool)
    begin, end = 0, 1
    while end < n and not state[STOP]:
        unseen[order[begin:end]] = False
        rows = np.flatnonzero(unseen)
        # A tree that is half empty has loose boxes: a new one for each half of what is left.
        begin, end = end, n if len(rows) < _LOOK else end + (len(rows) + 1) // 2
        _walk(build(X, rows), X, order, begin, end, np.empty(1), np.empty(1, np.intp), state)
    if not state[STOP]:
        state[DONE] = n
    return order
