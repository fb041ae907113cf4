"""NPN, MDAV-MHM, CBFS-MHM and IMHM against naive twins, and their groups."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microagg
import naive
from microagg.algorithms.ordering.mhm import _ended, imhm_order, npn_order, visit_groups
from microagg.base.progress import DONE, STOP, new_state, records_done
from microagg.kernels.labels import canonical_labels
from strategies import tables


@given(tables(max_rows=60))
def test_nearest_point_next_equals_the_naive_twin(table):
    X, k = table
    assert npn_order(X, k).tolist() == naive.npn(X.tolist())


@pytest.mark.parametrize("d", [1, 4])
def test_nearest_point_next_equals_the_naive_twin_through_several_trees(d):
    X = np.random.default_rng(d).normal(size=(400, d))
    assert npn_order(X, 3).tolist() == naive.npn(X.tolist())


@given(tables(max_rows=60), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_order_equals_the_naive_twin(table, n_groups, seed):
    X = table[0] + np.random.default_rng(0).normal(size=table[0].shape)  # no ties of centroids
    labels = canonical_labels(np.random.default_rng(seed).integers(0, n_groups, len(X)))
    assert visit_groups(X, labels).tolist() == naive.visit_groups(X.tolist(), labels.tolist())


def test_a_hint_has_no_influence():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(900, 2))
    labels = canonical_labels(rng.integers(0, 300, 900))
    order = visit_groups(X, labels)
    assert order.tolist() == naive.visit_groups(X.tolist(), labels.tolist())
    followers = np.full(900, -1)
    followers[order[:-1]] = order[1:]
    for hint in (followers, rng.integers(-1, 900, 900)):
        assert visit_groups(X, labels, hint).tolist() == order.tolist()


@given(st.integers(2, 60), st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_imhm_equals_the_naive_twin(n, d, k, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    assert imhm_order(X, min(k, n)).tolist() == naive.imhm(X.tolist(), min(k, n))


def test_imhm_ends_when_iterations_are_hardly_worth_their_time():
    def iterations(falls):
        losses = [np.inf, 1.0]
        for fall in falls:
            losses.append(losses[-1] * (1 - fall))
            if _ended(losses):
                break
        return len(losses) - 1

    assert iterations([1e-2] * 5 + [0.0] * 9) == 7  # the first that lowers nothing
    assert iterations([1e-2] + [2e-4] * 50) == 52  # ten of them lower the SSE by 0.2 %
    assert iterations([1e-2] * 4 + [5e-5] * 50) == 15  # the last ten by less than 0.1 %
    assert iterations([1e-6] * 5) == 6  # too few to tell


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
