"""k-Ward: its trees, and records that are equal or nearly so."""

import numpy as np
import pytest

from algorithms.test_twins import check_equal
from microagg.algorithms.variable_size import k_ward as module
from microagg.algorithms.variable_size.k_ward import k_ward
from microagg.kernels.labels import sum_of_squares


@pytest.mark.parametrize("k", [2, 3, 5])
def test_equals_the_naive_twin_when_trees_are_made_anew(k, monkeypatch):
    monkeypatch.setattr(module, "_FEW", 4)
    X = np.random.default_rng(k).lognormal(size=(90, 2))
    check_equal("k-ward", X, k)


def test_more_complete_groups_than_fit_beside_their_tree(monkeypatch):
    # Hundreds of pairs of twins are complete one after the other, long before a tree is worn.
    X = np.repeat(np.random.default_rng(0).normal(size=(400, 3)), 2, axis=0)
    X += 1e-6 * np.random.default_rng(1).normal(size=X.shape)
    twins = k_ward(X, 2).labels.reshape(-1, 2)
    assert (twins[:, 0] == twins[:, 1]).mean() > 0.99


def test_equal_records_stay_together_and_end_soon():
    X = np.repeat(np.arange(40.0), 100)[:, None]
    assert sum_of_squares(X, k_ward(X, 4).labels) == 0
