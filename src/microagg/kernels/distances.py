"""Distances of records and points, summed column by column, as every scan and every tree does."""

from __future__ import annotations

import numpy as np

from microagg.compile.jit import lean_subkernel


@lean_subkernel
def squared_distance(X, a, Y, b):
    """Return the squared distance between row ``a`` of X, (n, d), and row ``b`` of Y, (m, d)."""
    total = 0.0
    for j in range(X.shape[1]):
        gap = X[a, j] - Y[b, j]
        total += gap * gap
    return total


@lean_subkernel
def squares_to(X, row, point):
    """Return the squared distance between a row of X, (n, d), and a point, (d,)."""
    total = 0.0
    for j in range(X.shape[1]):
        total += (X[row, j] - point[j]) ** 2
    return total


@lean_subkernel
def distance(X, a, b):
    """Return the distance, not squared, between rows ``a`` and ``b`` of X, (n, d)."""
    return np.sqrt(squared_distance(X, a, X, b))
