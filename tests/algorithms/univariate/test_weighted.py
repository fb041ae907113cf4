"""The best cut with weights against rational arithmetic and all methods against each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive_weighted
from microagg.algorithms.univariate.weighted import cut_weighted
from microagg.base.progress import DONE, STOP, new_state

UNIVARIATE = [method.name for method in microagg.methods() if method.family == "univariate"]


@given(
    n=st.integers(1, 25),
    k=st.integers(1, 6),
    high=st.sampled_from([3, 100, 10**9]),
    spread=st.sampled_from([1, 9, 10**6]),
    seed=st.integers(0, 2**32 - 1),
)
def test_no_cut_into_runs_is_better(n, k, high, spread, seed):
    rng = np.random.default_rng(seed)
    n = max(n, k)
    x = rng.integers(0, high, size=n).astype(float)
    weights = rng.integers(1, spread + 1, size=n).astype(float)
    labels = cut_weighted(x[:, None], weights, k, new_state()).tolist()
    assert min(map(labels.count, labels)) >= k
    found = naive_weighted.sse(x[:, None], weights, labels)
    least = naive_weighted.least_sse_of_runs(x, weights, k)
    assert least <= found <= least * (1 + 1e-11)
    order = np.array(labels)[np.argsort(x, kind="stable")]
    assert np.count_nonzero(np.diff(order)) == len(set(labels)) - 1  # each group is a run


def test_ties_go_to_the_larger_last_group():
    # 1 joins 0 or 2 at the same cost.
    x, weights = np.array([0.0, 0, 1, 2, 2]), np.array([1.0, 1, 3, 1, 1])
    assert cut_weighted(x[:, None], weights, 2, new_state()).tolist() == [0, 0, 1, 1, 1]


def test_a_long_column_far_from_0_loses_no_digits():
    # Every pair of neighbours is a group of its own, at costs far below those summed up before.
    x = np.repeat(np.arange(50_000.0), 2) + np.tile([0, 2.0**-20], 50_000) + 2.0**30
    weights = np.tile([1.0, 3.0], 50_000)
    x[:2] -= [1e9, 0]
    labels = cut_weighted(x[:, None], weights, 2, new_state())
    assert labels.tolist() == np.repeat(np.arange(50_000), 2).tolist()


@pytest.mark.parametrize("method", UNIVARIATE)
def test_all_methods_find_the_same_runs(method):
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=200), rng.lognormal(size=200)
    found = microagg.partition(x, 4, weights, method=method)
    labels = cut_weighted(x[:, None], weights, 4, new_state())
    assert found.labels.tolist() == labels.tolist()


def test_stops_when_asked_and_tells_of_progress():
    x, weights = np.arange(100.0)[:, None], np.arange(1.0, 101)
    state = new_state()
    cut_weighted(x, weights, 3, state)
    assert state[DONE] == 100
    state = new_state()
    state[STOP] = 1
    assert set(cut_weighted(x, weights, 3, state).tolist()) == {0}
    assert state[DONE] == 0
