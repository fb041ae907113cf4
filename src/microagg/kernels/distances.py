"""Distances of records and points, summed column by column, as every scan and every tree does."""

from __future__ import annotations

import numpy as np

from microagg.compile.jit import lean_subkernel


@lean_subkernel
def squared_distance(X, a, Y, b):
    """Return the squared distance between row ``a`` of X, (n, d), and row ``b`` of Y, (m, d).

    Parameters
    ----------
    X, Y : (n, d) and (m, d) doubles; only read
    a, b : a row of each
    """
    total = 0.0
    for j in range(X.shape[1]):
        gap = X[a, j] - Y[b, j]
        total += gap * gap
    return total


@lean_subkernel
def squares_to(X, row, point):
    """Return the squared distance between a row of X, (n, d), and a point, (d,).

    Parameters
    ----------
    X : (n, d) doubles; only read
    row : one of its rows
    point : (d,) doubles
    """
    total = 0.0
    for j in range(X.shape[1]):
        total += (X[row, j] - point[j]) ** 2
    return total


@lean_subkernel
def distance(X, a, b):
    """Return the distance, not squared, between rows ``a`` and ``b`` of X, (n, d).

    Parameters
    ----------
    X : (n, d) doubles; only read
    a, b : two of its rows
    """
    return np.sqrt(squared_distance(X, a, X, b))
