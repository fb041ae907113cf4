"""One large column by stage, and over numpy's argsort, by number of threads.

python -m benchmarks one_column --values=1e8 --k=10 --threads=1,16

Processor seconds tell what all threads work together, which wall time on a shared machine does not; a stage
whose wall time does not fall with the threads is serial. The goal is for 1e8 values on 16 processors.
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
from microagg.algorithms.univariate.chain import best_ends
from microagg.algorithms.univariate.order import labels_by_row, sorted_order
from microagg.algorithms.univariate.sorted_cut import cost_number, fastest_plain, share_lost
from microagg.algorithms.univariate.stamm_schaub import ALGORITHMS
from microagg.base.progress import new_state
from microagg.compile.threads import limit_threads
from microagg.encode.prepare import prepare

ROUNDS = 3
STAGES = ["check", "sort", "cut", "loss", "labels", "partition"]


def setting(name: str, usual: str) -> str:
    """What the command line says of a setting."""
    words = (word.removeprefix(f"--{name}=") for word in sys.argv if word.startswith(f"--{name}="))
    return next(words, usual)


def main() -> None:
    n, k = int(float(setting("values", "1e7"))), int(setting("k", "10"))
    threads = [int(count) for count in setting("threads", "1,2,4,8,16").split(",")]
    x = np.random.default_rng(0).random(n)
    best: dict[tuple[str, int], tuple[float, float]] = {}

    def timed(stage: str, count: int, action: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        result = action()
        taken = time.perf_counter() - wall, time.process_time() - cpu
        best[stage, count] = min(best.get((stage, count), taken), taken)
        return result

    microagg.partition(x[:1_000_000], k)  # compiles
    found: set[bytes] = set()
    for _ in range(ROUNDS):
        timed("np.argsort", 1, partial(np.argsort, x))
        for count in threads:
            limit_threads(count)
            timed("check", count, lambda: prepare(x, k, "zscore").sst)
            rows, values = timed("sort", count, partial(sorted_order, x))
            cut = partial(
                best_ends,
                ALGORITHMS[fastest_plain(k, n)],
                values,
                k,
                cost_number("sse"),
                new_state(),
            )
            ends = timed("cut", count, cut)
            timed("loss", count, partial(share_lost, values, ends))
            timed("labels", count, partial(labels_by_row, rows, ends))
            del rows, values
            timed("partition", count, partial(microagg.partition, x, k))
            found.add(ends.tobytes())
    assert len(found) == 1, "the groups depend on the number of threads"
    sort = best["np.argsort", 1][0]
    table = [["np.argsort", 1, *best["np.argsort", 1], 1.0, "", ""]]
    for stage in STAGES:
        for count in threads:
            wall, cpu = best[stage, count]
            goal = "≤ 0.35" if stage == "partition" and count == 16 else ""
            faster = best[stage, threads[0]][0] / wall
            table.append([stage, count, wall, cpu, wall / sort, goal, faster])
    show(
        f"One column of {n:,} uniform values, k = {k}, on {os.cpu_count()} processors",
        ["stage", "threads", "wall", "processor", "over argsort", "goal", "times faster"],
        table,
    )
