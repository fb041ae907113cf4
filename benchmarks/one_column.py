"""One large column by stage, and over numpy's argsort, for some numbers of threads.

    python -m benchmarks.one_column [VALUES] [K] [THREADS …]

Processor seconds tell what all threads work together, which wall time on a shared machine does not; a stage
whose wall time does not fall with the threads is the serial share.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import microagg
from benchmarks.harness import show
from microagg.encode.prepare import prepare
from microagg.kernels.threads import limit_threads
from microagg.methods.univariate.ends import best_ends
from microagg.methods.univariate.order import labels_by_row, sorted_order
from microagg.methods.univariate.sorted_cut import cost_number, plain_fill, share_lost
from microagg.progress import new_state

ROUNDS = 3


def main(n: int, k: int, threads: list[int]) -> None:
    x = np.random.default_rng(0).random(n)
    best: dict[tuple[str, int], tuple[float, float]] = {}

    def timed(stage: str, count: int, action: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = action()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        best[stage, count] = min(best.get((stage, count), (wall, cpu)), (wall, cpu))
        return result

    microagg.partition(x[:1_000_000], k)  # compiles
    for _ in range(ROUNDS):
        timed("np.argsort", 0, partial(np.argsort, x))
        for count in threads:
            limit_threads(count)
            timed("check and scale", count, lambda: prepare(x, k, "zscore").sst)
            rows, values = timed("sort", count, partial(sorted_order, x))
            cut = partial(best_ends, plain_fill(k, n), values, k, cost_number("sse"), new_state())
            ends = timed("cut", count, cut)
            timed("loss", count, partial(share_lost, values, ends))
            timed("labels", count, partial(labels_by_row, rows, ends))
            del rows, values, ends
            timed("partition", count, partial(microagg.partition, x, k))
    sort = best["np.argsort", 0][0]
    rows = [
        [stage, count, wall, cpu, wall / sort, best[stage, threads[0]][0] / wall if count else 1.0]
        for (stage, count), (wall, cpu) in sorted(best.items())
    ]
    show(
        f"One column of {n:,} uniform values, k = {k}, on {os.cpu_count()} processors",
        ["stage", "threads", "wall", "processor", "over argsort", f"times {threads[0]} thread(s)"],
        rows,
    )


if __name__ == "__main__":
    given = sys.argv[1:]
    n = int(float(given[0])) if given else 10_000_000
    k = int(given[1]) if len(given) > 1 else 10
    main(n, k, [int(count) for count in given[2:]] or [1, 2, 4, 8, 16])
