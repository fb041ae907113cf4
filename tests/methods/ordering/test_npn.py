"""NPN, and the tree of the records that are left, against plain search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from microagg.kernels.left_tree import nearest, new_tree, room, take
from microagg.methods.ordering.npn import npn_order
from microagg.progress import DONE, STOP, new_state
from strategies import tables


@given(tables(max_rows=60))
def test_equals_the_naive_twin(table):
    X, k = table
    assert npn_order(X, k).tolist() == naive.npn(X.tolist())


@pytest.mark.parametrize("d", [1, 2, 7])
@pytest.mark.parametrize("kind", ["normal", "tied"])
def test_nearest_left_while_records_go(d, kind):
    rng = np.random.default_rng(d)
    n = 700
    X = rng.normal(size=(n, d)) if kind == "normal" else rng.integers(0, 4, (n, d)) * 1.0
    tree, left = new_tree(X), np.ones(n, dtype=bool)
    for row in rng.permutation(n):
        point = X[rng.integers(n)]
        distance = np.where(left, np.square(X - point).sum(axis=1), np.inf)
        assert nearest(tree, point, *room()) == distance.argmin()
        take(tree, row)
        left[row] = False
    assert nearest(tree, X[0], *room()) == -1


@pytest.mark.parametrize("n", [1, 63, 64, 65, 127, 128, 129, 2048, 5000])
def test_trees_of_all_sizes(n):
    X = np.random.default_rng(n).normal(size=(n, 2))
    tree = new_tree(X)
    stack, gap = room()
    assert all(nearest(tree, X[row], stack, gap) == row for row in range(n))


@given(st.integers(0, 2**32 - 1))
def test_of_equals_the_lower_row_wins(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (300, 2)) * 1.0
    tree = new_tree(X)
    for row in rng.permutation(300)[:150]:
        take(tree, row)
    left = [row for row in range(300) if tree.place[row] >= 0]
    for point in ([0.0, 0.0], [1.0, 0.0], [0.5, 0.5]):
        expected = min(left, key=lambda i: (naive.squared_distance(X[i].tolist(), point), i))
        assert nearest(tree, np.array(point), *room()) == expected


def test_stops_when_asked():
    state = new_state()
    state[STOP] = 1
    npn_order(np.random.default_rng(0).normal(size=(100, 2)), 3, progress=state)
    assert state[DONE] == 0
