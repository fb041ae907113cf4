"""The diameter and the centroid method against their naive twins and the published figures."""

import numpy as np
import pytest
from hypothesis import given

import microagg
import naive
from microagg.algorithms.fixed_size import centroid, diameter
from oracles import same_groups
from published import CENTROID, CENTROID_CHECKED, DIAMETER
from strategies import tables

BOTH = pytest.mark.parametrize(
    ("method", "twin"),
    [(diameter, naive.diameter), (centroid, naive.centroid)],
    ids=["diameter", "centroid"],
)


def check_equal(method, twin, X, k):
    expected = naive.labels_of(twin(X.tolist(), k), len(X))
    assert same_groups(method(X, k).labels.tolist(), expected)


@BOTH
@given(table=tables())
def test_equals_the_naive_twin(method, twin, table):
    check_equal(method, twin, *table)


@BOTH
@pytest.mark.parametrize("k", [2, 3, 10])
def test_equals_the_naive_twin_when_outliers_leave_early(method, twin, k):
    X = np.random.default_rng(k).normal(size=(100, 2))
    X[:7] *= 1e15
    check_equal(method, twin, X, k)


@BOTH
@pytest.mark.parametrize("k", [3, 7])
def test_equals_the_naive_twin_on_a_grid(method, twin, k):
    # Every distance occurs many times, so that the order of rows decides throughout.
    X = np.array([[x, y] for x in range(10) for y in range(10)], dtype=float)
    X = X[np.random.default_rng(k).permutation(100)]
    check_equal(method, twin, X, k)


@BOTH
@pytest.mark.parametrize("d", [1, 5, 12])
def test_equals_the_naive_twin_on_clusters(method, twin, d):
    X, _ = microagg.simulate_clusters(12, d, 5, 15, sigma=0.05, random_state=d)
    check_equal(method, twin, X, 4)


@pytest.mark.parametrize("data", DIAMETER)
@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_published_information_loss_of_diameter(data, k, reference):
    loss = microagg.partition(reference(data), k, method="diameter").information_loss
    assert round(loss, 2) == DIAMETER[data][k]


@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_published_information_loss_of_centroid(k, reference):
    loss = microagg.partition(reference("census"), k, method="centroid").information_loss
    assert round(loss, 2) == CENTROID["census"][k]


@pytest.mark.parametrize("k", CENTROID_CHECKED)
def test_information_loss_of_centroid_where_the_paper_departs_from_its_pseudocode(k, reference):
    loss = microagg.partition(reference("tarragona"), k, method="centroid").information_loss
    assert round(loss, 2) == CENTROID_CHECKED[k] < CENTROID["tarragona"][k]


def test_the_second_group_is_skipped_when_the_first_took_its_record():
    # The farthest pair are records 2 and 5; 3 and then 5 join 2, so there is nothing to gather at 5.
    X = np.array([[8.0, 8], [8, 7], [4, 1], [2, 7], [9, 6], [2, 9]])
    assert diameter(X, 3).labels.tolist() == [1, 1, 0, 0, 1, 0]
