"""kmeans-merge against scikit-learn's k-means, mu-approx against a search for neighbours alone."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree
from sklearn.cluster import KMeans

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from microagg.algorithms.variable_size.kmeans_merge import kmeans_merge
from microagg.algorithms.variable_size.mu_approx import mu_approx
from microagg.base.typing import Floats

K = 3


def normal(n: int, d: int) -> Floats:
    X = np.random.default_rng(0).normal(size=(n, d))
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def against_scikit_learn() -> None:
    rows = []
    for n, d in [(2_000, 4), (5_000, 4), (10_000, 4), (10_000, 10)]:
        X = normal(n, d)
        peer = KMeans(n // K, n_init=1, random_state=0)
        own, theirs = best_in_turns(
            lambda X=X: kmeans_merge(X, K), lambda X=X, peer=peer: peer.fit(X), rounds=2
        )
        rows.append([f"{n:,}", d, own, theirs, theirs / own])
    show(
        f"kmeans-merge, whole, normal data, k = {K}, against KMeans(n/k) alone",
        ["records", "d", "seconds", "scikit-learn", "times faster"],
        rows,
    )


def growth(name: str, method, d: int, sizes: list[int]) -> None:
    rows, seconds = [], []
    for n in sizes:
        X = normal(n, d)
        own, peer = best_in_turns(
            lambda X=X: method(X, K), lambda X=X: KDTree(X).query(X, k=K, workers=-1), rounds=2
        )
        loss = microagg.partition(X, K, method=name).information_loss
        seconds.append(own)
        rows.append([f"{n:,}", own, peer, own / peer, f"{loss:.2f}"])
    rows.append(["", f"n^{growth_exponent(sizes, seconds):.2f}", "", "", ""])
    show(
        f"{name}, normal data, {d} columns, k = {K}, against scipy's {K} nearest neighbours alone",
        ["records", "seconds", "scipy", "ratio", "IL"],
        rows,
    )


def main() -> None:
    for method in (kmeans_merge, mu_approx):
        method(normal(100, 2), K)  # compile
    against_scikit_learn()
    for d, sizes in [(4, [10_000, 30_000, 100_000, 300_000]), (10, [10_000, 20_000, 50_000])]:
        growth("kmeans-merge", kmeans_merge, d, sizes)
        growth("mu-approx", mu_approx, d, sizes)


if __name__ == "__main__":
    main()
