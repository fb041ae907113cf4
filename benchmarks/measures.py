"""The measures at a million records, against scikit-learn's KDTree looking for one neighbour."""

from __future__ import annotations

import time

import numpy as np
from sklearn.neighbors import KDTree

import microagg
from benchmarks.harness import growth_exponent, show
from microagg.encode.scale import fit_scale

_QUERIES = 2_000  # of the peer; its time for all records follows


def halved(X: np.ndarray, k: int) -> np.ndarray:
    """Means of groups of k to 2k−1, made by halving along the widest column: quick, and tight."""
    safe = np.empty_like(X)
    todo = [np.arange(len(X))]
    while todo:
        rows = todo.pop()
        if len(rows) < 2 * k:
            safe[rows] = X[rows].mean(axis=0)
            continue
        column = X[rows, np.argmax(X[rows].var(axis=0))]
        order = np.argpartition(column, len(rows) // 2)
        todo += [rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]]
    return safe


def peer_seconds(X: np.ndarray, safe: np.ndarray) -> tuple[float, float]:
    """Seconds to find each original's nearest protected row: among all rows, among distinct ones."""
    scaling = fit_scale(X)
    some = scaling.apply(X)[np.random.default_rng(0).choice(len(X), _QUERIES, replace=False)]
    points = scaling.apply(safe)
    found = []
    for rows in (points, np.unique(points, axis=0)):
        started = time.perf_counter()
        tree = KDTree(rows)
        built = time.perf_counter()
        tree.query(some, k=1)
        found.append(built - started + (time.perf_counter() - built) / _QUERIES * len(X))
    return found[0], found[1]


def main() -> None:
    rows, sizes, totals = [], [100_000, 300_000, 1_000_000], []
    warm = np.random.default_rng(1).normal(size=(1000, 10))
    microagg.risk(warm, halved(warm, 10)).as_dict()
    for n in sizes:
        X = np.random.default_rng(0).normal(size=(n, 10))
        safe = halved(X, 10)
        started = time.perf_counter()
        utility, risk = microagg.utility(X, safe), microagg.risk(X, safe)
        utility.as_dict()
        others = time.perf_counter() - started
        risk.link()
        total = time.perf_counter() - started
        among_all, among_distinct = peer_seconds(X, safe)
        totals.append(total)
        rows.append(
            [
                f"{n:,}",
                total - others,
                others,
                among_all,
                among_distinct,
                total / among_all,
                total / among_distinct,
                others / among_all,
            ]
        )
    show(
        "all measures, 10 normal columns, k = 10; seconds",
        [
            "records",
            "linkage",
            "others",
            "KDTree, all rows",
            "KDTree, distinct rows",
            "ratio to all",
            "to distinct",
            "others to all",
        ],
        rows,
    )
    print(f"growth exponent over n: {growth_exponent(sizes, totals):.2f}\n")


if __name__ == "__main__":
    main()
