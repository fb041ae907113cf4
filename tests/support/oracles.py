"""What must be true of any partition, checked from the data and the labels alone."""

import math
from fractions import Fraction

import numpy as np


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
    Z = zscored(np.asarray(X, dtype=float).reshape(len(X), -1))
    sse = squares_within(Z, p.labels.tolist())
    sst = squares_within(Z, [0] * len(Z))
    assert math.isclose(p.sse, sse, rel_tol=1e-9, abs_tol=1e-9 * max(sst, 1e-300))
    assert math.isclose(p.sst, sst, rel_tol=1e-9)
    assert math.isclose(
        p.information_loss, 100 * sse / sst if sst else 0.0, rel_tol=1e-9, abs_tol=1e-7
    )


def squares_within(Z, labels) -> float:
    """Sum of squared distances to the group means, by its definition."""
    total = 0.0
    for g in set(labels):
        rows = [Z[i] for i in range(len(Z)) if labels[i] == g]
        for column in zip(*rows, strict=True):
            mean = math.fsum(column) / len(column)
            total += math.fsum((value - mean) ** 2 for value in column)
    return total


def zscored(X):
    """Z-scores with rational means and variances, so that offsets cannot hurt the oracle."""
    out = np.zeros(X.shape)
    n = len(X)
    for j in range(X.shape[1]):
        values = [Fraction(float(v)) for v in X[:, j]]
        mean = sum(values) / n
        variance = sum((v - mean) ** 2 for v in values) / max(n - 1, 1)
        if variance:
            sd = math.sqrt(variance)
            out[:, j] = [float(v - mean) / sd for v in values]
    return out


def same_groups(first, second) -> bool:
    """Whether two label vectors describe the same partition."""
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len(set(first)) == len(set(second))
