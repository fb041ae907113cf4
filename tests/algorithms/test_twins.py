"""Methods against their naive twins: the same groups, whatever the records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive
from microagg.algorithms.fixed_size import centroid, diameter, mdav
from microagg.algorithms.variable_size.k_ward import k_ward
from microagg.algorithms.variable_size.kmeans_merge import kmeans_merge
from microagg.algorithms.variable_size.mst import mst, mst_c, mst_d
from microagg.algorithms.variable_size.mu_approx import mu_approx
from microagg.algorithms.variable_size.v_mdav import v_mdav
from oracles import same_groups
from strategies import tables

# The method, its twin, and values of its option.
TWINS = {
    "mdav": (mdav, naive.mdav, {}),
    "diameter": (diameter, naive.diameter, {}),
    "centroid": (centroid, naive.centroid, {}),
    "v-mdav": (v_mdav, naive.v_mdav, {"gamma": [0.2, 1.1, 0, 0.7, 1, 2, 3, 1e9]}),
    "mst": (mst, naive.mst, {}),
    "mst-d": (mst_d, lambda rows, k: naive.mst(rows, k, naive.diameter), {}),
    "mst-c": (mst_c, lambda rows, k: naive.mst(rows, k, naive.centroid), {}),
    "kmeans-merge": (kmeans_merge, naive.kmeans_merge, {"factor": [0.5, 1, 2, 3.7]}),
    "mu-approx": (mu_approx, naive.mu_approx, {}),
    "k-ward": (k_ward, naive.k_ward, {}),
}


def options(name):
    """Settings of a method, one by one."""
    _, _, values = TWINS[name]
    return [{key: value} for key, several in values.items() for value in several] or [{}]


def check_equal(name, X, k, **chosen):
    method, twin, _ = TWINS[name]
    if name == "k-ward":  # of equally cheap pairs a chain may join another one first
        X = X + np.random.default_rng(0).normal(size=X.shape)
    expected = naive.labels_of(twin(X.tolist(), k, **chosen), len(X))
    assert same_groups(method(X, k, **chosen).labels.tolist(), expected)


@pytest.mark.parametrize("name", TWINS)
@given(table=tables(max_rows=50), data=st.data())
def test_equals_the_naive_twin(name, table, data):
    check_equal(name, *table, **data.draw(st.sampled_from(options(name))))


def clusters(d):
    return microagg.simulate_clusters(12, d, 5, 15, sigma=0.05, random_state=d)[0]


def outliers(rng):
    """The running total starts near 1e15 and must still be right for what is of size 1."""
    X = rng.normal(size=(100, 2))
    X[:7] *= 1e15
    return X


def grid(rng):
    """Every distance occurs many times, so that the order of rows decides throughout."""
    X = np.array([[x, y] for x in range(10) for y in range(10)], dtype=float)
    return X[rng.permutation(100)]


LARGER = {
    "outliers": outliers,
    "grid": grid,
    "one column of clusters": lambda rng: clusters(1),
    "clusters": lambda rng: clusters(5),
    "clusters in many columns": lambda rng: clusters(12),
    "normal": lambda rng: rng.normal(size=(250, 3)),
}


LEFT_OUT = {
    # Lengths of edges to records so far away differ by rounding alone.
    *((name, "outliers") for name in ("mst", "mst-d", "mst-c")),
    ("k-ward", "normal"),  # the twin would take half a minute
}


@pytest.mark.parametrize(
    ("name", "data"), [(n, d) for n in TWINS for d in LARGER if (n, d) not in LEFT_OUT]
)
def test_equals_the_naive_twin_on_larger_tables(name, data):
    for k in (3, 8):
        for chosen in options(name)[:3]:
            check_equal(name, LARGER[data](np.random.default_rng(k)), k, **chosen)
