"""RepOrdMic: its order against a naive twin, its descent, its starts."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive
from entries import entry
from microagg.algorithms.ordering import group_walk
from microagg.algorithms.ordering.group_walk import neighbour_lists, new_buffers, order_by_groups
from microagg.algorithms.ordering.mhm import farthest_from_centroid
from microagg.algorithms.ordering.rep_ord_mic import iterations, k_means, numbers_of_clusters
from microagg.base.progress import STOP, new_state
from microagg.encode.scale import fit_scale
from microagg.kernels import kd_search, kd_tree
from microagg.kernels.kd_tree import build
from microagg.kernels.labels import canonical_labels, sum_of_squares
from strategies import tables

drop, nearest = entry(kd_tree.drop), entry(kd_search.nearest)


def buffers_for(X):
    return new_buffers(neighbour_lists(X, new_state()), X)


@given(tables(max_rows=60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_order_equals_the_naive_twin(table, n_groups, seed):
    X = table[0]
    labels = canonical_labels(np.random.default_rng(seed).integers(0, n_groups, len(X)))
    order = order_by_groups(X, labels, farthest_from_centroid(X), buffers_for(X), new_state())
    assert order.tolist() == naive.order_by_groups(X.tolist(), labels.tolist())


@pytest.mark.parametrize("k", [2, 3, 10])
def test_every_iteration_equals_the_naive_twin(k, monkeypatch):
    # Groups that stay the same are not gone through anew, and searches begin with what they last found.
    monkeypatch.setattr(group_walk, "NEAR", 2)
    monkeypatch.setattr(group_walk, "_SCANNED_RECORDS", 20)
    monkeypatch.setattr(group_walk, "_SEARCHES", 4)
    X = np.round(np.random.default_rng(k).normal(size=(240, 2)), 1)
    buffers = buffers_for(X)
    for start in (np.arange(240) % 7, np.arange(240) % 5):
        labels, count = start, 0
        for found in iterations(X, k, labels, buffers, new_state()):
            expected = naive.order_by_groups(X.tolist(), canonical_labels(labels).tolist())
            assert found.order.tolist() == expected
            labels, count = found.labels, count + 1
        assert count > 2


@pytest.mark.parametrize("n_groups", [12, 900])
def test_order_equals_the_naive_twin_when_neighbours_are_used_up(n_groups, monkeypatch):
    # A record knows few of its neighbours, which often are seen before: a list, then trees are asked.
    monkeypatch.setattr(group_walk, "NEAR", 2)
    monkeypatch.setattr(group_walk, "_SCANNED_RECORDS", 40)
    X = np.random.default_rng(0).normal(size=(900, 2))
    labels = canonical_labels(np.random.default_rng(1).integers(0, n_groups, 900))
    searches = []
    made = group_walk._new_search
    monkeypatch.setattr(
        group_walk, "_new_search", lambda *a: searches.append(made(*a)) or searches[-1]
    )
    order = order_by_groups(X, labels, farthest_from_centroid(X), buffers_for(X), new_state())
    assert order.tolist() == naive.order_by_groups(X.tolist(), labels.tolist())
    if n_groups == 900:
        assert {s.left.size > 0 for s in searches} == {True, False}, "lists and trees"


@given(tables(max_rows=60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_loss_never_rises(table, n_groups, seed):
    X, k = table
    labels = np.random.default_rng(seed).integers(0, n_groups, len(X))
    losses = [it.sse for it in iterations(X, k, labels, buffers_for(X), new_state())]
    assert len(losses) >= 1
    for before, after in pairwise(losses):
        assert after <= before * (1 + 1e-12)


def test_the_loss_falls_from_any_start_and_the_last_cut_is_kept():
    X = np.random.default_rng(1).normal(size=(400, 3))
    mdav = microagg.partition(X, 4, method="mdav")
    p = microagg.partition(X, 4, method="rep-ord-mic", start_labels=mdav.labels)
    assert p.sse < mdav.sse
    assert json.loads(json.dumps(p.as_dict()))["options"]["start_labels"] == mdav.labels.tolist()
    Z = fit_scale(X).apply(X)
    *_, last = iterations(Z, 4, mdav.labels.copy(), buffers_for(Z), new_state())
    assert canonical_labels(last.labels).tolist() == p.labels.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 9, 400, 5000, 5001, 64_000, 10**6])
@pytest.mark.parametrize("starts", [1, 7, 200])
def test_numbers_of_clusters(n, starts):
    numbers = numbers_of_clusters(n, starts)
    assert numbers == sorted(set(numbers))
    assert numbers[0] >= 1
    assert numbers[-1] <= max(n // 2, 1)
    assert len(numbers) == min(starts, 200, max(n // 2, 1))
    assert n / numbers[0] <= 5000


def test_k_means_improves_and_takes_the_lowest_of_equals():
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(size=(50, 2)) + 9 * i for i in range(3)])
    labels = k_means(X, 3, 4, new_state())
    centres = np.array([X[labels == c].mean(axis=0) for c in range(3)])
    nearest_centre = np.square(X[:, None] - centres).sum(axis=2).argmin(axis=1)
    assert labels.tolist() == nearest_centre.tolist(), "a fixed point of Lloyd's iteration"
    assert sum_of_squares(X, labels) < sum_of_squares(X, np.zeros(150, dtype=np.int64))
    assert set(k_means(np.zeros((9, 1)), 4, 3, new_state()).tolist()) == {0}


@pytest.mark.parametrize("d", [1, 3])
def test_dropping_many_leaves_the_nearest_right(d):
    rng = np.random.default_rng(d)
    X = rng.integers(0, 9, (700, d)) * 1.0
    tree, left = build(X, np.arange(700)), np.ones(700, dtype=bool)
    distances, rows = np.empty(1), np.empty(1, np.intp)
    for part in np.split(rng.permutation(700), 50)[:-1]:
        drop(tree, part)
        left[part] = False
        for point in X[rng.integers(0, 700, 5)]:
            nearest(tree, point, 1, distances, rows)
            expected = np.where(left, np.square(X - point).sum(axis=1), np.inf).argmin()
            assert rows[0] == expected


def test_k_means_of_a_large_table_assigns_all_records_to_centres_of_a_sample():
    rng = np.random.default_rng(6)
    X = np.concatenate([rng.normal(size=(3000, 2)) + 99 * i for i in range(4)])
    labels = k_means(X, 40, 7, new_state())
    assert labels.shape == (12_000,)
    for c in np.unique(labels):
        assert len(set((np.flatnonzero(labels == c) // 3000).tolist())) == 1
    stopped = new_state()
    stopped[STOP] = 1
    assert k_means(X, 40, 7, stopped).tolist() == [0] * 12_000
