"""The block tree and the nearest neighbours that it finds."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from microagg.base.progress import DONE, STOP, new_state
from microagg.compile.threads import share_out
from microagg.kernels.block_tree import LEAF, build_tree
from microagg.kernels.nearest_neighbours import nearest_neighbours


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


def test_each_piece_is_worked_on_once():
    state = new_state()
    seen = np.zeros(1000, dtype=int)

    def work(begin, end, thread):
        seen[begin:end] += 1

    share_out(work, 1000, state, 500, at_once=7)
    assert set(seen) == {1}
    assert state[DONE] == 500


def test_sharing_out_stops_when_asked():
    state = new_state()
    done = []

    def work(begin, end, thread):
        done.append(begin)
        state[STOP] = 1

    share_out(work, 10_000, state, at_once=1)
    assert len(done) <= 16


def test_an_error_in_a_thread_is_raised():
    def work(begin, end, thread):
        raise ValueError("as it should")

    with pytest.raises(ValueError, match="as it should"):
        share_out(work, 100, new_state(), at_once=1)
