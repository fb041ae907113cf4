"""Ordering methods: what they lose and take, and how their time grows with the number of records."""

from __future__ import annotations

import os
import time

import numpy as np

import microagg
from benchmarks.harness import growth_exponent, show

METHODS = [m.name for m in microagg.methods() if m.order]
SIZES = [4_000, 16_000, 64_000]
# Fewer attempts than by default, the same for all sizes.
FEW = {"rep-ord-mic": {"starts": 1}, "random-projection": {"n_projections": 1}}
LARGEST = {"cbfs-mhm": 16_000}  # quadratic


def main() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for method in METHODS:
        options = FEW.get(method, {})
        microagg.partition(rng.normal(size=(300, 10)), 3, method=method, **options)  # compile
        used, seconds, loss = [], [], 0.0
        for n in SIZES:
            if n <= LARGEST.get(method, n):
                X = np.random.default_rng(n).normal(size=(n, 10))
                p = microagg.partition(X, 3, method=method, **options)
                used.append(n)
                seconds.append(p.seconds)
                loss = p.information_loss
        cells = [*seconds, *[""] * (len(SIZES) - len(used))]
        rows.append([method, *cells, f"n^{growth_exponent(used, seconds):.2f}", f"{loss:.2f}"])
    show(
        "ordering methods, normal data, d = 10, k = 3, one attempt: seconds",
        ["method", *(f"{n:,}" for n in SIZES), "growth", "IL of the largest"],
        rows,
    )
    rows = []
    for method in ("npn-mhm", "tsp"):
        X = rng.normal(size=(100_000, 10))
        reports: list[int] = []
        started = time.perf_counter()
        microagg.partition(X, 3, method=method, progress=reports.append)
        rows.append([method, time.perf_counter() - started, len(set(reports))])
    show("100,000 records, d = 10", ["method", "seconds", "different reports of progress"], rows)
    print(f"{os.cpu_count()} processors")


if __name__ == "__main__":
    main()
