"""MDAV with weights against its naive twin, and ties and groups that are left out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive
from microagg.algorithms.fixed_size import diameter, mdav
from oracles import same_groups
from strategies import tables


@given(table=tables(max_rows=60), seed=st.integers(0, 2**32 - 1))
def test_equals_the_naive_twin_with_weights(table, seed):
    X, k = table
    # Whole weights of whole numbers: both then sum up without rounding, and ties stay ties.
    X = np.round(X - X.min())
    weights = 2.0 ** np.random.default_rng(seed).integers(0, 4, size=len(X))
    expected = naive.labels_of(naive.mdav(X.tolist(), k, weights.tolist()), len(X))
    assert same_groups(mdav(X, k, weights=weights).labels.tolist(), expected)


def test_ties_go_to_the_lower_row():
    # The corners of a square are equally far from its centre, and the sides equally long.
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert mdav(X, 2).labels.tolist() == [0, 0, 1, 1]


def test_the_second_group_is_skipped_when_the_first_took_its_record():
    # The farthest pair are records 2 and 5; 3 and then 5 join 2, so there is nothing to gather at 5.
    X = np.array([[8.0, 8], [8, 7], [4, 1], [2, 7], [9, 6], [2, 9]])
    assert diameter(X, 3).labels.tolist() == [1, 1, 0, 0, 1, 0]
