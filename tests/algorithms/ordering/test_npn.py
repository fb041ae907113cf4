"""NPN against its naive twin."""

import numpy as np
import pytest
from hypothesis import given

import naive
from microagg.algorithms.ordering.mhm import npn_order
from strategies import tables


@given(tables(max_rows=60))
def test_equals_the_naive_twin(table):
    X, k = table
    assert npn_order(X, k).tolist() == naive.npn(X.tolist())


@pytest.mark.parametrize("d", [1, 4])
def test_equals_the_naive_twin_through_several_trees(d):
    X = np.random.default_rng(d).normal(size=(400, d))
    assert npn_order(X, 3).tolist() == naive.npn(X.tolist())
