"""mu-Approx against its naive twin and its bound."""

import numpy as np
import pytest
from hypothesis import given, settings

import naive
from algorithms.test_twins import check_equal
from microagg.algorithms.variable_size.mu_approx import mu_approx
from microagg.kernels.labels import canonical_labels, sum_of_squares
from strategies import tables


@pytest.mark.parametrize("k", [2, 8])
def test_equals_the_naive_twin_around_a_hub(k):
    # Every record is nearest to the first: branches of one record each, more than one window.
    rng = np.random.default_rng(k)
    X = np.zeros((90, 90))
    X[np.arange(1, 90), np.arange(1, 90)] = rng.uniform(1, 1.4, 89)
    check_equal("mu-approx", X, k)


@given(table=tables(max_rows=60))
def test_no_group_is_larger_than_the_bound_needs(table):
    X, k = table
    assert np.bincount(mu_approx(X, k).labels).max() <= max(2 * k - 1, 3 * k - 3)


@settings(max_examples=10)
@given(table=tables(max_rows=8))
def test_loss_is_within_the_proved_factor(table):
    X, k = table
    X = X[:8] - X[:8].mean(axis=0)
    k = min(k, len(X))
    sse = sum_of_squares(X, canonical_labels(mu_approx(X, k).labels))
    size = max(2 * k - 1, 3 * k - 3)
    assert sse <= (4 * k - 2) * size**2 * naive.least_sse(X.tolist(), k) + 1e-9 * (X**2).sum()


def test_many_equal_records_take_no_time():
    sizes = np.bincount(canonical_labels(mu_approx(np.zeros((50_000, 2)), 3).labels))
    assert sizes.min() == 3
    assert sizes.max() <= 6
