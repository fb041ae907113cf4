"""How much faster several cores are than one: wall seconds by the number of threads, and the same groups.

``python -m benchmarks cores`` takes about three minutes on one core, mostly for the runs with one thread;
``python -m benchmarks cores --stages`` also tells where the time of the largest number of threads goes.
Only an idle machine tells anything.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

import microagg
from benchmarks.harness import show
from microagg.algorithms import auto
from microagg.algorithms.refine import refine
from microagg.compile import threads
from microagg.kernels import outside_in
from microagg.kernels import remaining as left
from microagg.kernels import search_ahead as ahead

_TASKS: list[tuple[str, int, int, dict[str, Any]]] = [
    ("auto fast", 1_000_000, 3, {"effort": "fast"}),
    ("auto", 100_000, 3, {}),
    ("mdav", 200_000, 3, {"method": "mdav"}),
    ("centroid", 100_000, 3, {"method": "centroid"}),
    ("v-mdav", 50_000, 3, {"method": "v-mdav"}),
]
_STAGES = [
    (auto, "halves"),
    (auto, "share_out"),
    (refine, "share_out"),
    (refine, "split_groups"),
    (refine, "grouped"),
    (left, "build"),
    (left, "build_shells"),
    (ahead, "choose"),
    (ahead, "share_with_helpers"),
    (ahead, "rounds_ahead"),
    (outside_in, "rounds"),
]


def _counts() -> list[int]:
    """1, 2, 4, … threads, up to all."""
    most = threads.thread_count()
    return sorted({most, *(2**a for a in range(5) if 2**a <= most)})


def _timed(spent: dict[str, float]) -> list[tuple[Any, str, Callable[..., Any]]]:
    """Time the stages from now on; what they were before. Blocks at the same time add up."""
    before = []
    for module, name in _STAGES:
        plain = getattr(module, name)
        before.append((module, name, plain))

        def timed(
            *given: Any, plain: Any = plain, key: str = f"{module.__name__}.{name}", **named: Any
        ) -> Any:
            started = time.perf_counter()
            try:
                return plain(*given, **named)
            finally:
                spent[key] += time.perf_counter() - started

        setattr(module, name, timed)
    return before


def by_threads(stages: bool) -> None:
    """Print a table of seconds; the groups must be the same for all numbers of threads."""
    counts = _counts()
    rows = []
    for name, n, k, options in _TASKS:
        X = np.random.default_rng(0).normal(size=(n, 10))
        for count in counts:
            threads.limit_threads(count)
            microagg.partition(X[:30_000], k, **options)  # compile
        seconds, found = [], set()
        for count in counts:
            threads.limit_threads(count)
            spent: dict[str, float] = defaultdict(float)
            before = _timed(spent) if stages and count == counts[-1] else []
            started = time.perf_counter()
            labels = microagg.partition(X, k, **options).labels
            seconds.append(time.perf_counter() - started)
            found.add(labels.tobytes())
            for module, stage, plain in before:
                setattr(module, stage, plain)
            for stage, took in spent.items():
                print(f"{name}, {count} threads: {stage} {took:.3f} s")
        assert len(found) == 1
        rows.append([name, f"{n:,}", *seconds, f"{seconds[0] / seconds[-1]:.1f}"])
    show(
        "seconds by threads, ten normal columns, k = 3",
        ["method", "records", *map(str, counts), "times faster"],
        rows,
    )


def main() -> None:
    by_threads("--stages" in sys.argv)


if __name__ == "__main__":
    main()
