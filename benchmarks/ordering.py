"""Ordering methods: what they lose and take, and how their time grows with the number of records."""

from __future__ import annotations

import os

import numpy as np

import microagg
from benchmarks.harness import growth_exponent, show

METHODS = [m.name for m in microagg.methods() if m.order]
SIZES = [4_000, 16_000, 64_000]
# Fewer attempts than by default, the same for all sizes.
FEW = {"rep-ord-mic": {"starts": 1}, "random-projection": {"n_projections": 1}}
LARGEST = {"cbfs-mhm": 16_000}  # quadratic


def measured(method: str, n: int) -> tuple[float, float]:
    """Seconds and SSE of a method for n normal records of ten columns."""
    X = np.random.default_rng(n).normal(size=(n, 10))
    p = microagg.partition(X, 3, method=method, **FEW.get(method, {}))
    return p.seconds, p.sse


def growth() -> None:
    """Time and loss of each method beside those of mdav in the same run."""
    rows = []
    peer: dict[int, tuple[float, float]] = {}
    for method in ("mdav", *METHODS):
        small = np.random.default_rng(0).normal(size=(300, 10))
        microagg.partition(small, 3, method=method, **FEW.get(method, {}))  # compile
        used = [n for n in SIZES if n <= LARGEST.get(method, n)]
        found = {n: measured(method, n) for n in used}
        peer = peer or found
        seconds = [found[n][0] for n in used]
        at, ours = used[-1], found[used[-1]]
        rows.append(
            [
                method,
                *(f"{s:.3g}" for s in seconds),
                *[""] * (len(SIZES) - len(used)),
                f"n^{growth_exponent(used, seconds):.2f}",
                f"{ours[0] / peer[at][0]:.2f}",
                f"{ours[1] / peer[at][1]:.3f}",
            ]
        )
    show(
        "ordering methods, normal data, d = 10, k = 3, one attempt: seconds; time and SSE over those of "
        "mdav, largest n",
        ["method", *(f"{n:,}" for n in SIZES), "growth", "time / mdav", "SSE / mdav"],
        rows,
    )


def large() -> None:
    """A hundred thousand records, watched."""
    rows = []
    X = np.random.default_rng(0).normal(size=(100_000, 10))
    for method in ("npn-mhm", "tsp"):
        reports: list[int] = []
        p = microagg.partition(X, 3, method=method, progress=reports.append)
        still = int(np.unique(reports, return_counts=True)[1].max())
        rising = "yes" if reports == sorted(reports) and reports[-1] == len(X) else "no"
        rows.append([method, f"{p.seconds:.1f}", len(reports), rising, still])
    show(
        "100,000 records, d = 10",
        ["method", "seconds", "reports", "rise to the end", "most reports of the same number"],
        rows,
    )


def main() -> None:
    growth()
    large()
    print(f"{os.cpu_count()} processors")


if __name__ == "__main__":
    main()
