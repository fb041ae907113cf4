"""Exact univariate microaggregation against microagg1d 0.4.0 and against sorting alone."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from microagg.groups import Floats, canonical_labels, sum_of_squares

SIZES = [3, 10, 100, 1000, 10000]
NAMESAKES = {
    "simple": "simple",
    "wilber": "wilber",
    "galil-park": "galil_park",
    "staggered": "staggered",
}
GOALS = {1_000_000: (6, 8), 10_000_000: (4, 6)}  # times faster for k ≤ 10 and above


def ours(x: Floats, k: int, method: str = "auto") -> microagg.Partition:
    return microagg.partition(x, k, method=method)


def excess(x: Floats, theirs: np.ndarray, mine: np.ndarray) -> str:
    """By how much the peer's SSE is above ours."""
    column = x.reshape(-1, 1)
    ratio = sum_of_squares(column, canonical_labels(theirs)) / sum_of_squares(column, mine)
    return f"+{100 * (ratio - 1):.2g} %"


def against_defaults(peer, n: int) -> None:  # type: ignore[no-untyped-def]
    x = np.random.default_rng(0).random(n)
    rows = []
    for k in SIZES:
        mine, theirs, sort = best_in_turns(
            lambda k=k: ours(x, k),
            lambda k=k: peer(x, k),
            lambda: np.argsort(x),
            rounds=3 if n < 5_000_000 else 2,
        )
        goal = GOALS[n][k > 10]
        extra = excess(x, peer(x, k), ours(x, k).labels)
        rows.append([k, mine, mine / sort, theirs, theirs / mine, f"≥ {goal}", extra])
    show(
        f"partition(x, k), n = {n:,}, uniform, sorting included, against microagg1d's defaults",
        ["k", "seconds", "over argsort", "peer", "times faster", "goal", "peer's SSE above ours"],
        rows,
    )


def against_namesakes(peer) -> None:  # type: ignore[no-untyped-def]
    x = np.random.default_rng(0).random(1_000_000)
    rows = []
    for name, theirs in NAMESAKES.items():
        for k in [3, 100] if name == "simple" else [3, 100, 10000]:
            mine, other = best_in_turns(
                lambda n=name, k=k: ours(x, k, n),
                lambda t=theirs, k=k: peer(x, k, method=t),
                rounds=2,
            )
            rows.append([name, k, mine, other, other / mine, "≥ 3"])
    show(
        "By algorithm, n = 1,000,000",
        ["algorithm", "k", "seconds", "namesake", "times faster", "goal"],
        rows,
    )


def growth() -> None:
    sizes = [100_000, 300_000, 1_000_000, 3_000_000]
    rows = []
    for k in SIZES:
        seconds = []
        for n in sizes:
            x = np.random.default_rng(0).random(n)
            seconds += best_in_turns(lambda x=x, k=k: ours(x, k), rounds=3)
        rows.append([k, *seconds, f"n^{growth_exponent(sizes, seconds):.2f}"])
    show("Growth", ["k", *(f"{n:,}" for n in sizes), "exponent"], rows)


def first_call_and_memory() -> None:
    code = (
        "import resource, time, numpy as np, microagg\n"
        "x = np.random.default_rng(0).random(1000)\n"
        "s = time.perf_counter(); microagg.partition(x, 3)\n"
        "print(time.perf_counter() - s)\n"
        "x = np.random.default_rng(0).random(10_000_000)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "microagg.partition(x, 3)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / x.nbytes)\n"
    )
    with tempfile.TemporaryDirectory() as cache:
        out = subprocess.check_output(
            [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": cache}, text=True
        )
    seconds, memory = map(float, out.split())
    show(
        "First call ever, and memory beyond the input at n = 10,000,000, k = 3",
        ["first call", "goal", "peak memory / input", "goal"],
        [[f"{seconds:.2f} s", "≤ 8 s", memory, "≤ 6"]],
    )


def main() -> None:
    first_call_and_memory()
    growth()
    try:
        from microagg1d import univariate_microaggregation as peer  # compiles for a minute
    except ImportError:
        print("microagg1d is not installed: no comparison with it; see `make bench`.")
        return
    peer(np.random.default_rng(0).random(1000), 3)
    for n in GOALS:
        against_defaults(peer, n)
    against_namesakes(peer)


if __name__ == "__main__":
    main()
