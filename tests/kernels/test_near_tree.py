"""The tree of nearest records and the heap against plain scans."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microagg.kernels.heap import new_heap, pop, put, take_out
from microagg.kernels.near_tree import forget, move, nearest, new_room, new_tree


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 200), d=st.integers(1, 4))
def test_nearest_is_that_of_a_scan(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 5, size=(n, d)) * rng.choice([1.0, 0.1])  # many ties
    rows = rng.permutation(n)[: rng.integers(1, n + 1)]
    group = rng.integers(0, 3, size=n)
    tree, there = new_tree(X, rows), set(rows.tolist())
    for _ in range(20):
        row = int(rng.choice(rows))
        if rng.random() < 0.5:
            forget(tree, row)
            there.discard(row)
        elif row in there:
            X[row] = rng.normal(size=d) * 3
            move(tree, row, X[row])
        point, own = rng.integers(0, 5, size=d) * 1.0, int(rng.integers(0, 4))
        best = (np.inf, n)
        for i in sorted(there):
            if group[i] != own:
                total = 0.0
                for a, b in zip(X[i], point, strict=True):
                    total += (a - b) * (a - b)
                best = min(best, (total, i))
        assert nearest(tree, point, group, own, np.inf, n, new_room()) == best


def test_what_is_known_already_is_beaten_only_by_nearer_or_equal_and_lower_rows():
    X = np.array([[0.0], [2.0], [2.0]])
    tree, group = new_tree(X, np.arange(3)), np.arange(3)
    point = np.array([1.0])
    assert nearest(tree, point, group, -1, 1.0, 1, new_room()) == (1.0, 0)
    assert nearest(tree, point, group, 0, 1.0, 1, new_room()) == (1.0, 1)
    assert nearest(tree, point, group, 0, 0.5, 7, new_room()) == (0.5, 7)


@given(seed=st.integers(0, 2**32 - 1))
def test_heap_gives_the_least_key(seed):
    rng = np.random.default_rng(seed)
    heap, keys = new_heap(30), {}
    for _ in range(200):
        item = int(rng.integers(30))
        action = rng.random()
        if action < 0.6:
            keys[item] = (float(rng.integers(4)), float(rng.integers(3)))
            put(heap, item, *keys[item])
        elif action < 0.8:
            take_out(heap, item)
            keys.pop(item, None)
        elif keys:
            expected = min(keys, key=lambda i: (keys[i], i))
            assert pop(heap) == expected
            del keys[expected]
        assert heap.size[0] == len(keys)
