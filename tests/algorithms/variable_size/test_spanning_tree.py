"""The minimum spanning tree against its naive twin and scipy's."""

import numpy as np
import pytest
from hypothesis import given
from scipy.sparse.csgraph import minimum_spanning_tree as of_matrix
from scipy.spatial.distance import pdist, squareform

import microagg
import naive
from microagg.algorithms.variable_size import spanning_tree
from microagg.algorithms.variable_size.spanning_tree import spanning_edges
from microagg.base.progress import new_state
from strategies import tables


@given(table=tables(max_rows=80))
def test_equals_the_naive_twin(table):
    X, _ = table
    first, second, length = spanning_edges(X, new_state())
    expected = sorted(naive.spanning_edges(X.tolist()), key=lambda e: (-e[0], e[1], e[2]))
    assert [e[1:] for e in expected] == list(zip(first.tolist(), second.tolist(), strict=True))
    assert length.tolist() == [e[0] for e in expected]


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("kind", ["normal", "clusters", "grid", "two scales"])
def test_weight_equals_that_of_scipy(d, kind):
    rng = np.random.default_rng(d)
    X = rng.normal(size=(1000, d))
    if kind == "clusters":
        X, _ = microagg.simulate_clusters(n_clusters=30, n_features=d, random_state=d)
    elif kind == "grid":
        X = rng.integers(0, 12, size=(1000, d)).astype(float)
    elif kind == "two scales":
        X[::2] *= 1e5
    tree = microagg.minimum_spanning_tree(X, scale="none")
    # scipy takes an edge of (nearly) no length for none: equal records are left out, which adds nothing.
    theirs = of_matrix(squareform(pdist(np.unique(X, axis=0)))).sum()
    assert tree.length.sum() == pytest.approx(theirs, rel=1e-12)
    assert len(tree.first) == len(X) - 1
    assert np.allclose(tree.length, np.linalg.norm(X[tree.first] - X[tree.second], axis=1))


def test_equal_records_hang_on_the_first_of_them():
    X = np.array([[1.0, 5], [2, 2], [1, 5], [2, 2], [1, 5], [-0.0, 0], [0, -0.0]])
    first, second, length = spanning_edges(X, new_state())
    zero = length == 0
    assert list(zip(first[zero].tolist(), second[zero].tolist(), strict=True)) == [
        (0, 2),
        (0, 4),
        (1, 3),
        (5, 6),
    ]


def test_different_records_with_one_hash_stay_apart(monkeypatch):
    X = np.array([[1.0], [2.0], [1.0], [2.0]])
    monkeypatch.setattr(spanning_tree, "_hash_rows", lambda bits: np.zeros(4, dtype=np.uint64))
    assert spanning_tree._first_equal_rows(X).tolist() == [0, 1, 0, 3]


def test_many_equal_records_take_no_longer():
    # A search that cannot tell equal records apart would look at 200,000² pairs.
    X = np.random.default_rng(0).integers(0, 4, size=(200_000, 3)).astype(float)
    tree = microagg.minimum_spanning_tree(X)
    assert np.count_nonzero(tree.length) == 63


def test_one_record_has_no_edges():
    tree = microagg.minimum_spanning_tree([[1.0, 2.0]])
    assert tree.first.shape == tree.second.shape == tree.length.shape == (0,)


def test_progress_and_bad_input():
    reports = []
    microagg.minimum_spanning_tree(
        np.random.default_rng(0).normal(size=(5000, 3)), progress=reports.append
    )
    assert reports == sorted(reports)
    assert reports[-1] == 5000
    with pytest.raises(microagg.InputError, match="scale is one of"):
        microagg.minimum_spanning_tree([[1.0]], scale="z")
    with pytest.raises(microagg.InputError):
        microagg.minimum_spanning_tree([[float("nan")]])


def test_a_tree_cannot_be_changed():
    tree = microagg.minimum_spanning_tree([[1.0], [2.0], [4.0]])
    with pytest.raises(ValueError, match="read-only"):
        tree.first[0] = 1
    assert "shape=(3, 1)" in repr(tree)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_nothing(threads, monkeypatch):
    from microagg.algorithms.variable_size import spanning_tree
    from microagg.compile import threads as module

    X = np.random.default_rng(1).integers(0, 300, size=(6000, 3)).astype(float)
    expected = microagg.minimum_spanning_tree(X)
    for place in (module, spanning_tree):
        monkeypatch.setattr(place, "thread_count", lambda: threads)
    found = microagg.minimum_spanning_tree(X)
    assert np.array_equal(found.first, expected.first)
    assert np.array_equal(found.second, expected.second)
