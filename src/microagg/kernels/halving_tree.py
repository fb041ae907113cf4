"""Which leaf of a halving tree each record falls into."""

from __future__ import annotations

from microagg.compile.no_refcount import lean_kernel


@lean_kernel
def leaves_of(X, directions, thresholds, leaves):
    """Fill in the leaf of each row of X.

    Node i has the children 2i + 1 and 2i + 2; a row goes to the second if its product with the direction
    of the node is at least the threshold. Below the last node are the leaves, from left to right.
    """
    inner, d = directions.shape
    for i in range(X.shape[0]):
        node = 0
        while node < inner:
            along = 0.0
            for j in range(d):
                along += X[i, j] * directions[node, j]
            node = 2 * node + (2 if along >= thresholds[node] else 1)
        leaves[i] = node - inner
