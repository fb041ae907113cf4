"""Cuts: whole groups never break them, fractions do, and those that do are found."""

import numpy as np
import pytest

import microagg
import naive
from microagg.bounds.column_generation import Generation
from microagg.bounds.cuts import (
    NO_CUTS,
    NO_SETS,
    DualPrices,
    Sets,
    broken_cuts,
    broken_islands,
    broken_triples,
)
from microagg.bounds.repeated_pricing import Pricer
from microagg.kernels.labels import members_of


def test_triples_that_are_held_too_often():
    # Three groups that share records pairwise, half of each: any two of three records.
    members = np.array([[0, 1, 3, -1, -1], [1, 2, 4, -1, -1], [0, 2, 5, -1, -1]], dtype=np.int32)
    found = broken_triples(6, members, np.full(3, 0.5), 10)
    assert found.members.tolist() == [[0, 1, 2]]
    assert found.most.tolist() == [1]
    assert broken_triples(6, members, np.full(3, 0.1), 10).members.shape == (0, 3)


def test_islands_that_hold_too_many_groups():
    # Four records in 4/3 groups of three, five records in a group and two halves of another.
    members = np.array(
        [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3], [4, 5, 6], [6, 7, 8], [4, 7, 8]], np.int32
    )
    x = np.array([1 / 3, 1 / 3, 1 / 3, 1 / 3, 0.5, 0.5, 0.5])
    found = broken_islands(9, 3, members, x, 10)
    assert [row[row >= 0].tolist() for row in found.members] == [[4, 5, 6, 7, 8], [0, 1, 2, 3]]
    assert found.need.tolist() == [3, 3]
    assert broken_islands(9, 3, members, x, 1).members.tolist() == [[4, 5, 6, 7, 8]]
    assert len(broken_islands(9, 3, members, x / 2, 10).need) == 0
    assert len(broken_cuts(9, 3, members, np.ones(7), 10).need) == 0  # whole groups


def test_whole_groups_keep_every_cut():
    rng = np.random.default_rng(0)
    for _ in range(200):
        k = int(rng.integers(2, 5))
        n = int(rng.integers(2 * k, 20))
        labels = rng.permutation(np.minimum(np.arange(n) // k, n // k - 1))
        groups = members_of(labels, 2 * k - 1)
        size, need = int(rng.integers(1, n + 1)), int(rng.integers(1, k + 1))
        held = rng.choice(n, size, replace=False)
        sets = Sets(held[None].astype(np.int32), np.array([need]))
        counting = [len(set(row.tolist()) & set(held.tolist())) >= need for row in groups]
        assert (sets.counting(groups).toarray()[:, 0] > 0).tolist() == counting
        assert sum(counting) <= sets.most[0]


def test_sets_of_other_widths_beside_each_other():
    one = Sets(np.array([[0, 1, 2]], np.int32), np.array([2]))
    two = Sets(np.array([[3, 4, 5, 6, 7]], np.int32), np.array([5]))
    both = NO_SETS.extended(one).extended(two)
    assert both.members.tolist() == [[0, 1, 2, -1, -1], [3, 4, 5, 6, 7]]
    assert both.most.tolist() == [1, 1]


@pytest.mark.parametrize("seed", range(4))
def test_islands_close_the_gap_of_clusters(seed):
    # Clusters of five with k = 4: the linear program has 5/4 groups in each, whole groups are one.
    rng = np.random.default_rng(seed)
    X = np.repeat(100.0 * np.arange(2), 5)[:, None] + rng.normal(size=(10, 2))
    optimum = naive.least_sse(X.tolist(), 4)
    generation = Generation(
        Pricer(X, 4), [np.repeat([0, 1], 5)], DualPrices(np.zeros(10), NO_CUTS, 0.0)
    )
    generation.run()
    assert generation.best.bound < 0.99 * optimum
    while generation.cut(optimum):
        pass
    assert 0.999999 * optimum < generation.best.bound <= optimum * (1 + 1e-12)
    assert microagg.lower_bound(X, 4, scale="none", effort="best") <= optimum * (1 + 1e-12)
