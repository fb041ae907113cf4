"""k-Ward against its naive twin, which looks at all pairs of groups in every step."""

import numpy as np
import pytest
from hypothesis import given

import microagg
import naive
from microagg.algorithms.variable_size import k_ward as module
from microagg.algorithms.variable_size.k_ward import k_ward
from microagg.kernels.labels import sum_of_squares
from oracles import same_groups
from strategies import tables


def check_equal(X, k):
    expected = naive.labels_of(naive.k_ward(X.tolist(), k), len(X))
    assert same_groups(k_ward(X, k).labels.tolist(), expected)


@given(tables(max_rows=30))
def test_equals_the_naive_twin(table):
    # Without ties: of equally cheap pairs a chain may join another one first.
    X = table[0] + np.random.default_rng(0).normal(size=table[0].shape)
    check_equal(X, table[1])


@pytest.mark.parametrize("k", [2, 3, 5])
def test_equals_the_naive_twin_when_trees_are_made_anew(k, monkeypatch):
    monkeypatch.setattr(module, "_FEW", 4)
    X = np.random.default_rng(k).lognormal(size=(90, 2))
    check_equal(X, k)


@pytest.mark.parametrize("d", [1, 6])
def test_equals_the_naive_twin_on_clusters(d):
    X, _ = microagg.simulate_clusters(8, d, 3, 12, sigma=0.05, random_state=d)
    check_equal(X, 3)


def test_more_complete_groups_than_fit_beside_their_tree(monkeypatch):
    # Hundreds of pairs of twins are complete one after the other, long before a tree is worn.
    X = np.repeat(np.random.default_rng(0).normal(size=(400, 3)), 2, axis=0)
    X += 1e-6 * np.random.default_rng(1).normal(size=X.shape)
    twins = k_ward(X, 2).labels.reshape(-1, 2)
    assert (twins[:, 0] == twins[:, 1]).mean() > 0.99


def test_equal_records_stay_together_and_end_soon():
    X = np.repeat(np.arange(40.0), 100)[:, None]
    assert sum_of_squares(X, k_ward(X, 4).labels) == 0
