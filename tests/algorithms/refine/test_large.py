"""Annealing of large groups: sizes and books are right after every run, and it goes lower than before."""

import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive
from microagg.algorithms.refine import search_passes
from microagg.algorithms.refine.anneal import Heat
from microagg.algorithms.refine.large import anneal_large_patches
from microagg.base.progress import new_state
from microagg.kernels.labels import canonical_labels, sum_of_squares
from strategies import tables

search = importlib.import_module("microagg.algorithms.refine.refine")


@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(2, 9),
    most=st.integers(2, 6),
    weighted=st.booleans(),
    hot=st.sampled_from([0.0, 0.1, 5.0]),
)
def test_a_pass_keeps_sizes_and_books(seed, k, most, weighted, hot):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2 * k, 12 * k))
    X = rng.normal(size=(n, 2)) if seed % 2 else rng.integers(0, 3, (n, 2)) * 1.0
    labels = canonical_labels(np.minimum(rng.permutation(n) // k, n // k - 1))
    weights = rng.lognormal(size=n) if weighted else None
    run, rest = search_passes.Run(X, k, seed, new_state(), weights), (20.0, Heat(hot, 0.0, 1.0))

    def work(patches, begin, end):
        anneal_large_patches(X, weights, patches, begin, end, k, most, *rest, run.state)

    old = search_passes.grouped(X, labels, n // k)
    new, sse = search_passes.search_patches_once(run, old, 0, (16, 128), work)
    found = search_passes.labelled(new)
    sizes = np.bincount(found)
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1
    assert sizes.sum() == n
    assert sse == pytest.approx(sum_of_squares(X, found, weights))


@given(table=tables(max_rows=9, max_columns=2))
def test_small_tables_come_near_the_optimum(table):
    X, k = table
    if len(X) > 9:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "LARGE_K", 0)
        patch.setattr(search_passes, "LARGE_K", 0)
        labels = search.refine(X, np.zeros(len(X), dtype=np.int64), k)
    assert np.bincount(labels).min() >= k
    X = X - X.mean(axis=0)
    optimum = naive.least_sse(X.tolist(), k)
    assert optimum - 1e-9 <= sum_of_squares(X, labels) <= 1.6 * optimum + 1e-9


@pytest.mark.parametrize(("data", "k"), [("census", 25), ("eia", 15)])
def test_below_pools_of_two_groups(data, k, reference, monkeypatch):
    found = microagg.partition(reference(data), k).sse
    monkeypatch.setattr(search, "LARGE_K", 10**6)
    monkeypatch.setattr(search_passes, "LARGE_K", 10**6)
    assert found < 0.99 * microagg.partition(reference(data), k).sse


@pytest.mark.long
def test_best_goes_lower_than_the_default(reference):
    X = reference("tarragona")
    default = microagg.partition(X, 20).information_loss
    assert microagg.partition(X, 20, effort="best").information_loss <= default
