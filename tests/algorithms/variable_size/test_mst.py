"""M, M-d and M-c: the cutting of any tree against a naive twin, and trees that serve several times."""

import json

import numpy as np
import pytest

import microagg
import naive
from microagg.algorithms.variable_size.mst import cut_edges
from oracles import same_groups


def random_tree(rng, n, shape):
    """Edges of a tree of n records in random order: a path, a star, a bush or anything."""
    parents = {
        "path": lambda i: i - 1,
        "star": lambda i: 0,
        "bush": lambda i: i // 3,
        "any": lambda i: rng.integers(i),
    }[shape]
    edges = [(int(parents(i)), i) for i in range(1, n)]
    names = rng.permutation(n)
    ends = np.sort(np.array([(names[a], names[b]) for a, b in edges]), axis=1)
    return ends[rng.permutation(n - 1)].astype(np.intp)


@pytest.mark.parametrize("shape", ["path", "star", "bush", "any"])
@pytest.mark.parametrize("k", [1, 2, 5, 40])
@pytest.mark.parametrize("n", [2, 3, 83, 200])
def test_cuts_any_tree_as_the_paper_does(shape, k, n):
    ends = random_tree(np.random.default_rng(n + k), n, shape)
    edges = [(float(-e), int(a), int(b)) for e, (a, b) in enumerate(ends)]
    k = min(k, n)
    expected = naive.labels_of(naive.cut_edges(edges, n, k), n)
    first, second = np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
    assert same_groups(cut_edges(first, second, n, k).tolist(), expected)


@pytest.mark.parametrize("method", ["mst", "mst-d", "mst-c"])
def test_one_tree_serves_many_k(method):
    X = np.random.default_rng(0).normal(size=(300, 3))
    tree = microagg.minimum_spanning_tree(X)
    for k in (1, 2, 5, 20, 300):
        given = microagg.partition(X, k, method=method, tree=tree)
        assert given.labels.tolist() == microagg.partition(X, k, method=method).labels.tolist()
    assert json.loads(json.dumps(given.as_dict()))["options"]["tree"]["shape"] == [300, 3]


def test_a_tree_of_other_data_is_refused():
    X = np.random.default_rng(0).normal(size=(30, 3))
    tree = microagg.minimum_spanning_tree(X)
    with pytest.raises(
        microagg.InputError, match="30 records, 3 columns; the data have 29 records"
    ):
        microagg.partition(X[:29], 3, method="mst", tree=tree)
    for other in (X[::-1], X + np.eye(30, 3)):
        with pytest.raises(microagg.InputError, match="other data of the same shape"):
            microagg.partition(other, 3, method="mst", tree=tree)
    with pytest.raises(
        microagg.InputError, match="another scale: it was built with scale='zscore'"
    ):
        microagg.partition(X, 3, method="mst-d", tree=tree, scale="range")
    with pytest.raises(microagg.InputError, match="minimum_spanning_tree returns; got 7"):
        microagg.partition(X, 3, method="mst-c", tree=7)


def test_a_tree_fits_the_same_data_in_another_form():
    X = np.random.default_rng(0).integers(0, 9, size=(30, 3))
    tree = microagg.minimum_spanning_tree(X.tolist())
    p = microagg.partition(np.asfortranarray(X + 1e9), 3, method="mst", tree=tree)
    assert p.sizes.min() >= 3
