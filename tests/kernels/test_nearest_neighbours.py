"""The block tree and the nearest neighbours that it finds."""

import numpy as np
import pytest

import naive
from microagg.base.progress import new_state
from microagg.kernels.block_tree import LEAF, build_tree, nearest_neighbours


@pytest.mark.parametrize("n", [2, LEAF - 1, LEAF, LEAF + 1, 2 * LEAF, 230])
@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("kind", ["normal", "ties", "equal"])
def test_neighbours_equal_those_of_a_sort(n, d, kind):
    rng = np.random.default_rng(n + d)
    X = {
        "normal": lambda: rng.normal(size=(n, d)),
        "ties": lambda: rng.integers(0, 3, size=(n, d)).astype(float),
        "equal": lambda: np.zeros((n, d)),
    }[kind]()
    m = min(5, n - 1)
    tree = build_tree(X)
    assert sorted(tree.rows) == list(range(n))
    found = nearest_neighbours(tree, m, new_state(), 0)
    rows = X.tolist()
    for p in range(n):
        i = int(tree.rows[p])
        expected = sorted((naive.squared_distance(rows[i], rows[j]), j) for j in range(n) if j != i)
        got = list(zip(found.square[p], tree.rows[found.position[p]], strict=True))
        assert got == expected[:m]
