"""The neighbour bound: how little any partition into groups of at least k can lose.

Bound     A group of s records has SSE = (1/2s) Σᵢ Σⱼ |xᵢ − xⱼ|². For each member i the inner sum is at
          least that over its s−1 nearest neighbours, and (1/2s) times that sum grows with s. So
              SSE ≥ Σᵢ (1/2k) · (squared distances from i to its k−1 nearest neighbours).
Weights   A group of weight W has SSE = Σᵢ wᵢ/2 · (weighted mean of |xᵢ − xⱼ|² over its members). Let
          d₁ ≤ … ≤ dₖ₋₁ be the squared distances from i to its nearest and v the least weight of all. Of
          the members nearer than such a mean, each may weigh what it does; at least k−1 less
          their number are farther, at the least with weight v. So the mean is at least
              min over t of (Σ_{s≤t} w_s·d_s + v·Σ_{s>t} d_s) / (wᵢ + Σ_{s≤t} w_s + v·(k−1−t)),
          which is the bound above where all weights are equal.
Cost      That of the nearest neighbours; any n.
Rounding  Sums of n·k products of d + 2 roundings each are off by a relative (n·k + d + 9) ε at most
          (those with weights by less than twice that),
          with ε = 2⁻⁵³ for a rounding, and by as many 2⁻¹⁰⁷⁴ where products underflow; the bound is lowered
          by four times that, so that it holds in exact arithmetic for the scaled values as they are.
"""

from __future__ import annotations

import numpy as np

from microagg.base.progress import DONE, STOP, State, new_state
from microagg.base.typing import Floats
from microagg.kernels.block_tree import build_tree, nearest_neighbours


def neighbour_bound(
    X: Floats, k: int, *, weights: Floats | None = None, state: State | None = None
) -> float:
    """Bound the SSE of any partition of X into groups of at least k from below.

    Parameters
    ----------
    X : (n, d) scaled records, n ≥ k; never written to
    k : least size of a group
    weights : (n,) above 0
    state : progress, and the wish to stop, upon which nothing is proved

    Returns
    -------
    a bound in the unit of the SSE, rounding accounted for

    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> neighbour_bound(X, 2), neighbour_bound(X, 2, weights=np.array([1.0, 3.0, 1.0, 3.0]))
    (0.999..., 1.249...)
    """
    state = new_state() if state is None else state
    n, d = X.shape
    if k == 1:
        state[DONE] = n
        return 0.0
    tree = build_tree(X)
    near = nearest_neighbours(tree, k - 1, state, n)
    if state[STOP]:  # not all were found
        return 0.0
    if weights is None:
        total = float(np.sum(near.square)) / (2 * k)
    else:
        mass = weights[tree.rows]
        total = float(np.sum(mass * _least_means(near.square, mass[near.position], mass))) / 2
    safe: float = total * (1 - 4 * (n * k + d + 9) * 2.0**-53) - 4 * n * k * d * 2.0**-1074
    return max(safe, 0.0)


def _least_means(squares: Floats, weights: Floats, own: Floats) -> Floats:
    """Least weighted means of squared distances from each record to k−1 others, shape (n,).

    ``squares`` and ``weights`` of shape (n, k − 1) are those of the nearest, nearest first.
    """
    light, others = float(own.min()), squares.shape[1]
    least = np.full(len(own), np.inf)
    heavy, mass = np.zeros(len(own)), own.copy()
    # What lies farther, summed from the end on: subtracting what is passed would lose digits.
    rest = np.zeros((others + 1, len(own)))
    for t in range(others - 1, -1, -1):
        rest[t] = rest[t + 1] + squares[:, t]
    for t in range(others + 1):
        mean = (heavy + light * rest[t]) / (mass + light * (others - t))
        np.minimum(least, mean, out=least)
        if t < others:
            heavy += weights[:, t] * squares[:, t]
            mass += weights[:, t]
    return least
