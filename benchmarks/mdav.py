"""MDAV against a plain one that scans whatever is left, and gives the same groups."""

from __future__ import annotations

import numpy as np
from numba import njit

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from microagg.algorithms.fixed_size import mdav
from microagg.base.typing import Floats, Labels
from microagg.encode.scale import fit_scale
from microagg.kernels.labels import canonical_labels


@njit(cache=True, nogil=True)
def _distances(X, left, m, point, out):
    for a in range(m):
        total = 0.0
        for j in range(point.size):
            gap = X[left[a], j] - point[j]
            total += gap * gap
        out[a] = total


@njit(cache=True, nogil=True)
def _take(X, left, m, seed, k, distance, total, labels, group):
    """Label the seed and its k−1 nearest; close the gaps they leave; return how many are left."""
    _distances(X, left, m, X[left[seed]].copy(), distance)
    distance[seed] = -1.0
    limit = np.partition(distance[:m], k - 1)[k - 1]
    kept, room = 0, k
    for a in range(m):
        room -= distance[a] < limit
    for a in range(m):
        at_limit = distance[a] == limit and room > 0
        if distance[a] < limit or at_limit:
            room -= at_limit
            labels[left[a]] = group
            total -= X[left[a]]
        else:
            left[kept], distance[kept] = left[a], distance[a]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def plain_mdav(X, k):
    """Linear scans over what is left, on one core; the k nearest by partial selection."""
    n = len(X)
    labels, left, distance = np.empty(n, np.int64), np.arange(n), np.empty(n)
    total = X.sum(axis=0)
    m, group = n, 0
    while m >= 2 * k:
        pair = m >= 3 * k
        _distances(X, left, m, total / m, distance)
        m = _take(X, left, m, np.argmax(distance[:m]), k, distance, total, labels, group)
        group += 1
        if pair:
            m = _take(X, left, m, np.argmax(distance[:m]), k, distance, total, labels, group)
            group += 1
    labels[left[:m]] = group
    return labels


def compare(n: int, d: int, k: int) -> tuple[float, float, float]:
    """Seconds of ours and of the plain one, and the information loss of both."""
    raw = np.random.default_rng(0).normal(size=(n, d))
    X = fit_scale(raw).apply(raw)
    found: dict[str, Labels] = {}
    own, plain = best_in_turns(
        lambda: found.update(own=mdav(X, k).labels),
        lambda: found.update(plain=plain_mdav(X, k)),
        rounds=2 if n <= 20_000 else 1,
    )
    assert np.array_equal(canonical_labels(found["own"]), canonical_labels(found["plain"]))
    return own, plain, microagg.partition(raw, k, method="mdav").information_loss


def seconds(n: int, d: int, k: int) -> float:
    X: Floats = np.random.default_rng(0).normal(size=(n, d))
    return best_in_turns(lambda: mdav(X, k), rounds=2)[0]


def main() -> None:
    compare(1_000, 2, 3)  # compile
    rows = []
    for d, k in [(4, 3), (10, 3), (10, 10), (30, 3)]:
        for n in (20_000, 50_000):
            own, plain, loss = compare(n, d, k)
            rows.append([f"{n:,}", d, k, own, plain, plain / own, f"{loss:.2f}"])
    show(
        "mdav, normal data, same groups as plain scans (numba, one core)",
        ["records", "d", "k", "seconds", "plain seconds", "times faster", "IL"],
        rows,
    )
    sizes = [20_000, 50_000, 100_000, 200_000]
    show(
        "mdav, growth with the number of records, k = 3",
        ["d", *(f"{n:,}" for n in sizes), "growth"],
        [
            [d, *times, f"n^{growth_exponent(sizes, times):.2f}"]
            for d in (2, 4, 10)
            for times in [[seconds(n, d, 3) for n in sizes]]
        ],
    )


if __name__ == "__main__":
    main()
