"""Exact univariate microaggregation against microagg1d 0.4.0 and against sorting alone.

With --large also ten million values, where a call of the peer takes up to 15 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from microagg.base.typing import Floats
from microagg.kernels.labels import canonical_labels, sum_of_squares

SIZES = [3, 10, 100, 1000, 10000]
NAMESAKES = {
    "simple": "simple",
    "wilber": "wilber",
    "galil-park": "galil_park",
    "staggered": "staggered",
}
# Times faster than the peer's defaults for k ≤ 10 and above; at smaller n no figure was set.
GOALS = {1_000: (1, 1), 10_000: (1, 1), 100_000: (1, 1), 1_000_000: (6, 8), 10_000_000: (4, 6)}
LARGE = 10_000_000
BY_NAME = ["hansen-mukherjee", "simple", "simple-plus", "wilber", "galil-park", "staggered"]
# All that the peer offers; its simple is O(kn) and never the fastest for large k.
VARIANTS = [
    *(("simple", stable) for stable in range(4)),
    *((name, stable) for name in ("wilber", "galil_park", "staggered") for stable in range(3)),
]


def ours(x: Floats, k: int, method: str = "auto") -> microagg.Partition:
    return microagg.partition(x, k, method=method)


def excess(x: Floats, theirs: np.ndarray, mine: np.ndarray) -> str:
    """By how much the peer's SSE is above ours."""
    column = x.reshape(-1, 1)
    ratio = sum_of_squares(column, canonical_labels(theirs)) / sum_of_squares(column, mine)
    return f"+{100 * (ratio - 1):.2g} %"


def fastest_variant(peer, n: int, k: int) -> tuple[str, int]:
    """The method and the stability of the peer that are fastest on some of so many values."""
    x = np.random.default_rng(1).random(min(n, max(100_000, 10 * k)))
    variants = [v for v in VARIANTS if v[0] != "simple" or k <= 100]
    runs = [lambda v=v: peer(x, k, method=v[0], stable=v[1]) for v in variants]
    return variants[int(np.argmin(best_in_turns(*runs, rounds=2)))]


def against_peer(peer, n: int) -> None:
    x = np.random.default_rng(0).random(n)
    rows = []
    for k in SIZES:
        if 2 * k > n:
            continue
        name, stable = fastest_variant(peer, n, k)
        mine, theirs, fastest, sort = best_in_turns(
            lambda k=k: ours(x, k),
            lambda k=k: peer(x, k),
            lambda k=k, m=name, s=stable: peer(x, k, method=m, stable=s),
            lambda: np.argsort(x),
            rounds=max(1, min(100, 5_000_000 // n)),
        )
        goal = GOALS[n][k > 10]
        extra = excess(x, peer(x, k), ours(x, k).labels)
        variant = f"{name}, {stable}"
        rows.append(
            [
                k,
                mine,
                mine / sort,
                theirs,
                theirs / mine,
                f"≥ {goal}",
                extra,
                variant,
                fastest / mine,
            ]
        )
    show(
        f"partition(x, k), n = {n:,}, uniform, sorting included, against microagg1d: its defaults, "
        "and its fastest variant at any stability",
        [
            "k",
            "seconds",
            "over argsort",
            "defaults",
            "times faster",
            "goal",
            "their SSE above ours",
            "fastest",
            "times faster",
        ],
        rows,
    )


def against_namesakes(peer) -> None:
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
    sizes = [1_000_000, 2_000_000, 4_000_000, 8_000_000]  # all well above the largest k
    tables = [np.random.default_rng(0).random(n) for n in sizes]
    rows = []
    for k in SIZES:
        seconds = best_in_turns(*(lambda x=x, k=k: ours(x, k) for x in tables), rounds=5)
        exponent = f"n^{growth_exponent(sizes, seconds):.2f}"
        rows.append([k, *seconds, exponent, "0.95 to 1.1"])
    show("Growth", ["k", *(f"{n:,}" for n in sizes), "exponent", "goal"], rows)


def over_argsort() -> None:
    x = np.random.default_rng(0).random(LARGE)
    calls = [lambda k=k: ours(x, k) for k in (2, *SIZES)]
    sort, *seconds = best_in_turns(lambda: np.argsort(x), *calls, rounds=2)
    rows = [[k, s, s / sort, "≤ 3"] for k, s in zip((2, *SIZES), seconds, strict=True)]
    show(f"Over np.argsort, n = {LARGE:,}", ["k", "seconds", "over argsort", "goal"], rows)


def first_calls() -> None:
    code = (
        "import sys, time, numpy as np, microagg\n"
        "x = np.random.default_rng(0).random(5000)\n"
        "s = time.perf_counter(); microagg.partition(x, int(sys.argv[2]), method=sys.argv[1])\n"
        "print(time.perf_counter() - s)\n"
    )
    rows = []
    for method, k in [("auto", 3), ("auto", 1000), *((name, 3) for name in BY_NAME)]:
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            command = [sys.executable, "-c", code, method, str(k)]
            rows.append(
                [method, k, float(subprocess.check_output(command, env=environment)), "≤ 8"]
            )
    show("First call ever, compilation included", ["method", "k", "seconds", "goal"], rows)


def memory() -> None:
    code = (
        "import resource, numpy as np, microagg\n"
        "microagg.partition(np.arange(100.0), 3)\n"
        f"x = np.random.default_rng(0).random({LARGE})\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "microagg.partition(x, 3)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / x.nbytes)\n"
    )
    ratio = float(subprocess.check_output([sys.executable, "-c", code]))
    show(
        f"Memory beyond the input, n = {LARGE:,}, k = 3",
        ["peak / input", "goal"],
        [[ratio, "≤ 6"]],
    )


def main() -> None:
    large = "--large" in sys.argv
    first_calls()
    memory()
    growth()
    if large:
        over_argsort()
    try:
        from microagg1d import univariate_microaggregation as peer  # compiles for a minute
    except ImportError:
        print("microagg1d is not installed: no comparison with it; see `make bench`.")
        return
    peer(np.random.default_rng(0).random(1000), 3)
    for n in GOALS:
        if n < LARGE or large:
            against_peer(peer, n)
    against_namesakes(peer)


if __name__ == "__main__":
    main()
