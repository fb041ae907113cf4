"""Distances of records and points, summed column by column, as every scan and every tree does."""

from __future__ import annotations

import numpy as np

from microagg.compile.jit import lean_subkernel


@lean_subkernel
def squared_distance(X, a, Y, b):
    """Return the squared distance between row a of X and row b of Y."""
    total = 0.0
    for j in range(X.shape[1]):
        gap = X[a, j] - Y[b, j]
        total += gap * gap
    return total


@lean_subkernel
def squares_to(X, row, point):
    """Return the squared distance between a row of X and a point."""
    total = 0.0
    for j in range(X.shape[1]):
        total += (X[row, j] - point[j]) ** 2
    return total


@lean_subkernel
def distance(X, a, b):
    """Return the distance between two rows of X."""
    return np.sqrt(squared_distance(X, a, X, b))
