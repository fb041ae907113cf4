"""MDAV-MHM and CBFS-MHM against a naive twin, their groups, and the published figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive
from microagg.groups import canonical_labels
from microagg.methods.fixed_size.mdav import mdav
from microagg.methods.ordering import by_groups
from microagg.methods.ordering.by_groups import Visits, visit_groups
from microagg.methods.ordering.cut import labels_along
from microagg.methods.ordering.imhm import imhm_order
from microagg.progress import DONE, STOP, new_state, records_done
from published import MDAV_MHM
from strategies import tables


@given(tables(max_rows=60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_order_equals_the_naive_twin(table, n_groups, seed):
    X = table[0] + np.random.default_rng(0).normal(size=table[0].shape)  # no ties of centroids
    labels = canonical_labels(np.random.default_rng(seed).integers(0, n_groups, len(X)))
    assert visit_groups(X, labels).tolist() == naive.visit_groups(X.tolist(), labels.tolist())


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("near", [2, 24])
def test_every_visit_of_imhm_equals_the_naive_twin(k, near, monkeypatch):
    # With short lists most searches ask a tree; groups that are new since the lists come in as well.
    monkeypatch.setattr(by_groups, "_NEAR", near)
    X = np.random.default_rng(k).normal(size=(400, 3))
    visits, labels = Visits(X), mdav(X, k).labels
    for _ in range(12):
        order = visits.order(labels)
        assert order.tolist() == naive.visit_groups(X.tolist(), canonical_labels(labels).tolist())
        labels = labels_along(X, order, k, new_state())


@given(tables(max_rows=40), st.integers(0, 2**32 - 1))
def test_lists_of_earlier_visits_have_no_influence(table, seed):
    # Ties of all kinds: the order of the groups decides, now as when the lists were made.
    X, rng = table[0], np.random.default_rng(seed)
    visits, labels = Visits(X), rng.integers(0, 6, len(X))
    for _ in range(5):
        assert visits.order(labels).tolist() == visit_groups(X, labels).tolist()
        labels = labels.copy()
        labels[rng.integers(len(X))] = rng.integers(7)


def test_imhm_reports_its_iterations_and_stops():
    X = np.random.default_rng(2).normal(size=(3000, 8))
    seen: list[int] = []

    class Watched(np.ndarray):
        def __setitem__(self, key, value):
            super().__setitem__(key, value)
            seen.append(records_done(self.view(np.ndarray)))

    imhm_order(X, 3, state=new_state().view(Watched))
    assert seen[-1] == 3000
    iterations = seen[seen.index(375) :]
    assert len({done for done in iterations if done < 3000}) > 5
    assert [done for done in iterations if done] == sorted(done for done in iterations if done)
    state = new_state()
    state[STOP] = 1
    assert imhm_order(X, 3, state=state).tolist() == list(range(3000))
    assert state[DONE] < 3000


@pytest.mark.parametrize(("method", "groups"), [("mdav-mhm", "mdav"), ("cbfs-mhm", "centroid")])
@pytest.mark.parametrize("k", [2, 5])
def test_never_loses_more_than_the_groups(method, groups, k):
    X = np.random.default_rng(k).lognormal(size=(203, 3))
    assert microagg.partition(X, k, method=method).sse <= microagg.partition(
        X, k, method=groups
    ).sse * (1 + 1e-12)


@pytest.mark.parametrize("data", MDAV_MHM)
@pytest.mark.parametrize("k", [3, 5, 10])
def test_published_information_loss(data, k, reference):
    p = microagg.partition(reference(data), k, method="mdav-mhm")
    # Within 0.05 points, but for four cells in which ours loses less.
    assert p.information_loss <= MDAV_MHM[data][k] + 0.05
    assert p.information_loss >= MDAV_MHM[data][k] - 0.25
