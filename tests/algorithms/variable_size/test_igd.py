"""IGD and IMHM: never worse than where they start."""

import numpy as np
from hypothesis import given

import microagg
from microagg.algorithms.fixed_size import mdav
from microagg.algorithms.variable_size.igd import igd
from microagg.kernels.labels import sum_of_squares
from strategies import tables


@given(tables(max_rows=60))
def test_never_worse_than_mdav(table):
    X, k = table
    labels = igd(X, k).labels
    assert np.bincount(labels).min() >= k
    assert np.bincount(labels).max() < max(2 * k, len(X) + 1 if len(X) < 2 * k else 2 * k)
    assert sum_of_squares(X, labels) <= sum_of_squares(X, mdav(X, k).labels) * (1 + 1e-9)


@given(tables(max_rows=60))
def test_imhm_is_never_worse_than_mdav_mhm(table):
    X, k = table
    once = microagg.partition(X, k, method="mdav-mhm")
    often = microagg.partition(X, k, method="imhm")
    assert often.sse <= once.sse * (1 + 1e-9) + 1e-300


def test_no_group_is_left_that_could_be_dissolved():
    X = np.random.default_rng(0).normal(size=(120, 2))
    labels = igd(X, 3).labels
    loss = sum_of_squares(X, labels)
    centroids = np.array([X[labels == g].mean(axis=0) for g in range(labels.max() + 1)])
    for g in range(labels.max() + 1):
        moved = labels.copy()
        for i in np.flatnonzero(labels == g):
            distance = np.square(centroids - X[i]).sum(axis=1)
            distance[g] = np.inf
            moved[i] = distance.argmin()
        moved = np.unique(moved, return_inverse=True)[1]
        # Centroids do not follow here, as they do in the method: close to it, not the same.
        assert sum_of_squares(X, moved) >= loss * 0.98


def test_records_leave_for_nearer_groups():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [0.3], [5.3], [9.0], [9.1], [9.2]])
    assert igd(X, 3).labels.tolist() == [0, 0, 0, 1, 1, 1, 0, 1, 2, 2, 2]
