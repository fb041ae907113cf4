"""The neighbour bound: how little any partition into groups of at least k can lose.

Bound     A group of s records has SSE = (1/2s) Σᵢ Σⱼ |xᵢ − xⱼ|². For each member i the inner sum is at
          least that over its s−1 nearest neighbours, and (1/2s) times that sum grows with s. So
              SSE ≥ Σᵢ (1/2k) · (squared distances from i to its k−1 nearest neighbours).
Cost      That of the nearest neighbours; any n.
Rounding  Sums of n·k products of d + 2 roundings each are off by a relative (n·k + d + 9) ε at most,
          with ε = 2⁻⁵³ for a rounding, and by as many 2⁻¹⁰⁷⁴ where products underflow; the bound is lowered
          by four times that, so that it holds in exact arithmetic for the scaled values as they are.
"""

from __future__ import annotations

import numpy as np

from microagg.groups import Floats
from microagg.kernels.block_tree import build_tree
from microagg.kernels.neighbours import nearest_neighbours
from microagg.progress import DONE, STOP, State, new_state


def neighbour_bound(X: Floats, k: int, *, state: State | None = None) -> float:
    """Bound the SSE of any partition of X into groups of at least k from below.

    >>> neighbour_bound(np.array([[0.0], [1.0], [5.0], [6.0]]), 2)
    0.999...
    """
    state = new_state() if state is None else state
    n, d = X.shape
    if k == 1:
        state[DONE] = n
        return 0.0
    squares = nearest_neighbours(build_tree(X), k - 1, state, n).square
    if state[STOP]:  # not all were found
        return 0.0
    total = float(np.sum(squares)) / (2 * k)
    safe: float = total * (1 - 4 * (n * k + d + 9) * 2.0**-53) - 4 * n * k * d * 2.0**-1074
    return max(safe, 0.0)
