"""Orders by projection: the directions, and the two ways to cut."""

import numpy as np
import pytest

import microagg
from microagg.algorithms.ordering.projections import component, z_direction

PROJECTIONS = ["pca", "z-score", "random-projection"]


def test_the_component_explains_most_variance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    X -= X.mean(axis=0)
    v = component(X)
    assert np.linalg.norm(v) == pytest.approx(1)
    values, vectors = np.linalg.eig(np.cov(X.T))
    assert abs(v @ vectors[:, values.argmax()]) == pytest.approx(1)
    assert v[np.abs(v).argmax()] > 0


def test_z_score_orders_by_the_sum_of_z_scores():
    X = np.random.default_rng(1).normal(size=(50, 3)) * [1, 10, 100]
    X[:, 1] += 5
    z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    for scale in ("zscore", "none", "range"):
        order = microagg.order(X, "z-score", scale=scale)
        assert order.tolist() == np.argsort(z.sum(axis=1)).tolist()
    assert z_direction(np.array([[1.0, 0.0], [-1.0, 0.0]])).tolist() == [pytest.approx(0.5**0.5), 0]


@pytest.mark.parametrize("method", PROJECTIONS)
@pytest.mark.parametrize("data", ["tarragona", "eia"])
def test_cutting_by_all_columns_never_loses_more(method, data, reference):
    X = reference(data)
    options = {"n_projections": 1} if method == "random-projection" else {}
    best = microagg.partition(X, 5, method=method, **options)
    projected = microagg.partition(X, 5, method=method, cut="projected", **options)
    assert best.sse <= projected.sse * (1 + 1e-12)


def test_the_projected_cut_is_the_best_of_the_projected_values():
    X = np.random.default_rng(3).normal(size=(120, 3))
    z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    projected = z @ component(z)
    expected = microagg.partition(projected, 4, method="simple", scale="none").labels
    got = microagg.partition(X, 4, method="pca", cut="projected").labels
    assert got.tolist() == expected.tolist()


def test_one_column_is_cut_optimally():
    x = np.random.default_rng(4).lognormal(size=80)
    best = microagg.partition(x, 3, method="simple")
    for method in PROJECTIONS:
        assert microagg.partition(x, 3, method=method).sse == pytest.approx(best.sse, rel=1e-12)
