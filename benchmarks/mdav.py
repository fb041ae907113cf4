"""MDAV against a plain numpy MDAV that gives the same groups."""

from __future__ import annotations

import numpy as np

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from microagg.encode.scale import fit_scale
from microagg.groups import Floats, Labels, canonical_labels
from microagg.methods.fixed_size.mdav import mdav


def numpy_mdav(X: Floats, k: int) -> Labels:
    """MDAV in whole-array operations, as one would write it in an afternoon."""
    labels = np.empty(len(X), dtype=np.int64)
    left = np.arange(len(X))
    group = 0

    def take(seed: int) -> None:
        nonlocal left, group
        distance = ((X[left] - X[left[seed]]) ** 2).sum(axis=1)
        distance[seed] = -1
        chosen = np.argpartition(distance, k - 1)[:k]
        labels[left[chosen]] = group
        group += 1
        left = np.delete(left, chosen)

    while len(left) >= 2 * k:
        pair = len(left) >= 3 * k
        centre = X[left].mean(axis=0)
        r = int(((X[left] - centre) ** 2).sum(axis=1).argmax())
        record = X[left[r]]
        take(r)
        if pair:
            take(int(((X[left] - record) ** 2).sum(axis=1).argmax()))
    labels[left] = group
    return labels


def main() -> None:
    rows = []
    for d, k in [(4, 3), (10, 3), (10, 10)]:
        sizes, ours = [2_000, 5_000, 10_000, 20_000], []
        for n in sizes:
            raw = np.random.default_rng(0).normal(size=(n, d))
            X = fit_scale(raw).apply(raw)
            assert np.array_equal(canonical_labels(mdav(X, k)), canonical_labels(numpy_mdav(X, k)))
            own, peer = best_in_turns(
                lambda X=X, k=k: mdav(X, k), lambda X=X, k=k: numpy_mdav(X, k), rounds=2
            )
            ours.append(own)
            loss = microagg.partition(raw, k, method="mdav").information_loss
            rows.append([f"{n:,}", d, k, own, peer, peer / own, f"{loss:.2f}"])
        rows.append(["", d, k, "", "", f"n^{growth_exponent(sizes, ours):.2f}", ""])
    show(
        "mdav, normal data, same groups as plain numpy",
        ["records", "d", "k", "seconds", "numpy seconds", "times faster", "IL"],
        rows,
    )


if __name__ == "__main__":
    main()
