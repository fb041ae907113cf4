"""What must be true of any partition, checked from the data and the labels alone."""

import math

import numpy as np

import naive_weighted


def check_partition(p, X, k) -> None:
    """Sizes, cover, canonical labels, and the loss recomputed from the labels."""
    n = len(X)
    assert p.labels.shape == (n,)
    assert p.labels.dtype == np.int64
    seen = []
    for label in p.labels.tolist():
        if label not in seen:
            seen.append(label)
    assert seen == list(range(len(seen))), "groups are numbered by first appearance"
    counts = [p.labels.tolist().count(g) for g in seen]
    assert p.sizes.tolist() == counts
    assert p.sizes.dtype == np.int64
    assert p.n_groups == len(counts)
    assert sum(counts) == n
    assert min(counts) >= k
    assert p.k == k


def check_loss(p, X) -> None:
    """SSE, SST and IL recomputed record by record, for z-scored data."""
    n = len(X)
    rows = np.asarray(X, dtype=float).reshape(n, -1).tolist()
    # With rational means and variances, so that offsets cannot hurt the oracle.
    Z = np.array(naive_weighted.zscored(rows, [1.0] * n))
    sse = squares_within(Z, p.labels)
    sst = squares_within(Z, np.zeros(n))
    assert math.isclose(p.sse, sse, rel_tol=1e-9, abs_tol=1e-9 * max(sst, 1e-300))
    assert math.isclose(p.sst, sst, rel_tol=1e-9)
    assert math.isclose(
        p.information_loss, 100 * sse / sst if sst else 0.0, rel_tol=1e-9, abs_tol=1e-7
    )


def squares_within(X, labels, weights=None) -> float:
    """Sum of squared distances to the group means, by its definition."""
    weights = np.ones(len(X)) if weights is None else weights
    total = 0.0
    for g in set(labels):
        group, heavy = X[labels == g], weights[labels == g]
        centre = np.average(group, axis=0, weights=heavy)
        total += float((heavy[:, None] * (group - centre) ** 2).sum())
    return total


def same_groups(first, second) -> bool:
    """Whether two label vectors describe the same partition."""
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len(set(first)) == len(set(second))
