"""The tour: a permutation, shorter than where it starts, with no move left that would shorten it."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given

import microagg
from microagg.algorithms.ordering.mhm import npn_order
from microagg.algorithms.ordering.tsp import greedy_tour, tsp_order
from microagg.base.progress import new_state
from microagg.kernels.block_tree import nearest_rows
from strategies import tables


def tour_length(X, tour):
    """Length of the closed tour."""
    return float(np.linalg.norm(X[tour] - X[np.roll(tour, -1)], axis=1).sum())


@given(tables(max_rows=60))
def test_the_tour_visits_all_and_is_no_longer_than_its_start(table):
    X, k = table
    order = tsp_order(X, k)
    assert sorted(order.tolist()) == list(range(len(X)))
    if len(X) > 1:
        near, _ = nearest_rows(X, min(10, len(X) - 1), new_state())
        start = greedy_tour(X, near, new_state())
        assert sorted(start.tolist()) == list(range(len(X)))
        assert tour_length(X, order) <= tour_length(X, start) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_no_two_steps_can_be_replaced(seed):
    # With 10 others, the neighbours tried are all there are: the tour is 2-optimal.
    X = np.random.default_rng(seed).random((11, 2))
    tour = tsp_order(X, 2).tolist()

    def step(a, b):
        return float(np.linalg.norm(X[a] - X[b]))

    pairs = list(zip(tour, [*tour[1:], tour[0]], strict=True))
    for (a, b), (c, d) in combinations(pairs, 2):
        assert step(a, b) + step(c, d) <= (step(a, c) + step(b, d)) * (1 + 1e-9)


def test_greedy_takes_the_shortest_steps_first():
    # Steps of 1, 2, 3 are taken. The step from the 6 to the 0 would close a circle.
    X = np.array([[0.0], [1], [3], [6], [40], [41.5]])
    near, _ = nearest_rows(X, 5, new_state())
    assert greedy_tour(X, near, new_state()).tolist() == [5, 4, 3, 2, 1, 0]
    # With one neighbour each, three paths are left to connect: 5–4 to 3, then on from 2 to 1–0.
    X = np.array([[0.0], [1], [5], [7], [40], [41.5]])
    near, _ = nearest_rows(X, 1, new_state())
    assert greedy_tour(X, near, new_state()).tolist() == [5, 4, 3, 2, 1, 0]


def test_a_circle_is_walked_around():
    angle = np.random.default_rng(1).permutation(40) * (2 * np.pi / 40)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    assert tour_length(X, tsp_order(X, 3)) == pytest.approx(80 * np.sin(np.pi / 40))


def test_random_points_come_near_the_known_constant():
    # The shortest tour of n random points in the unit square is about 0.7124·√n·(1 + 0.33/n).
    X = np.random.default_rng(2).random((2000, 2))
    tour = tour_length(X, tsp_order(X, 3))
    assert tour < 1.08 * 0.7124 * np.sqrt(2000)
    assert tour < 0.87 * tour_length(X, npn_order(X, 3))


def test_one_order_serves_every_k():
    X = np.random.default_rng(3).normal(size=(100, 3))
    order = microagg.order(X, "tsp")
    for k in (2, 5, 11):
        p = microagg.partition(X, k, method="tsp")
        assert microagg.cut(X, order, k).labels.tolist() == p.labels.tolist()
