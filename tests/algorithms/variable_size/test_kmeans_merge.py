"""k-means with merging against scikit-learn."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

import microagg
from microagg.algorithms.variable_size.kmeans_merge import kmeans_merge
from microagg.kernels.labels import canonical_labels, sum_of_squares
from oracles import same_groups


@pytest.mark.parametrize("n", [5_000, 10_000])
def test_clusters_are_those_of_scikit_learn(n):
    # With groups of at least one record nothing is merged; scikit-learn gets the same start.
    X = np.random.default_rng(n).normal(size=(n, 3))
    X -= X.mean(axis=0)
    ours = canonical_labels(kmeans_merge(X, 1, factor=0.02).labels)
    centres = np.array([X[ours == c].mean(axis=0) for c in range(ours.max() + 1)])
    theirs = KMeans(len(centres), init=centres, n_init=1, tol=0).fit(X)
    assert theirs.n_iter_ <= 2  # ours had come to an end
    assert same_groups(ours.tolist(), theirs.labels_.tolist())


@pytest.mark.parametrize(
    ("data", "factor"), [("tarragona", 0.5), ("tarragona", 1), ("tarragona", 2), ("census", 1)]
)
def test_loses_about_as_much_as_with_random_starts(data, factor, reference):
    X = reference(data)
    Z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    k = 5
    losses = []
    for seed in range(2):
        found = KMeans(int(factor * len(Z) / k), n_init=1, random_state=seed).fit(Z)
        into = _merged(Z, found.labels_, k)
        losses.append(100 * sum_of_squares(Z, canonical_labels(into)) / (Z**2).sum())
    ours = microagg.partition(X, k, method="kmeans-merge", factor=factor).information_loss
    assert ours <= 1.1 * np.mean(losses)


def _merged(Z, labels, k):
    """The paper's merging in the order of labels."""
    labels = labels.copy()
    while True:
        sizes = np.bincount(labels)
        small = np.flatnonzero((sizes > 0) & (sizes < k))
        if small.size == 0:
            return labels
        there = np.flatnonzero(sizes)
        centres = {c: Z[labels == c].mean(axis=0) for c in there}
        a = min(small, key=lambda c: sizes[c])
        b = min((c for c in there if c != a), key=lambda c: np.sum((centres[c] - centres[a]) ** 2))
        labels[labels == a] = b
