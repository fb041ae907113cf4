"""What is compiled by a first call, and how long does it take? Kernel by kernel, for each way.

Each way runs in a process of its own with an empty cache. Seconds are of the processor, of a kernel without
those that it calls; ``python -m benchmarks compilation --all`` names every kernel, not the longest alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import event

from benchmarks.harness import show

_LONGEST = 12  # kernels that are named
_RECORDS = 1_000


def _frame(n: int = _RECORDS) -> Any:
    import pyarrow as pa

    rng = np.random.default_rng(1)
    columns = {f"c{j}": rng.normal(size=n) for j in range(10)}
    return pa.table(
        {**columns, "unit": rng.integers(0, n // 3, n), "illness": rng.integers(0, 5, n)}
    )


def _protect(**asked: Any) -> None:
    import microagg

    columns = [f"c{j}" for j in range(10)]
    microagg.protect(_frame(), 3, columns=columns, **asked)


def _command(*flags: str) -> None:
    from pyarrow import csv

    from microagg.cli.main import app

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "in.csv")
        csv.write_csv(_frame().drop_columns(["unit", "illness"]), source)
        words = ["protect", source, Path(folder, "out.csv"), "--k", "3", "--quiet", *flags]
        if "--report" in flags:
            words.append(Path(folder, "report.html"))
        app([str(word) for word in words], standalone_mode=False)


def _partition(method: str, columns: int = 10) -> None:
    import microagg

    X = np.random.default_rng(0).normal(size=(_RECORDS, columns))
    microagg.partition(X, 3, method=method)


WAYS = {
    "auto": lambda: _partition("auto"),
    "mdav": lambda: _partition("mdav"),
    "one column": lambda: _partition("auto", 1),
    "unit": lambda: _protect(unit="unit"),
    "distinct": lambda: _protect(confidential=["illness"], require={"distinct": {"illness": 2}}),
    "closeness": lambda: _protect(
        confidential=["illness"], require={"closeness": {"illness": 0.4}}
    ),
    "protect": lambda: _command(),
    "protect, report": lambda: _command("--report"),
}


class _Clock(event.Listener):
    """Sums the seconds of each kernel, without those that it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.times: dict[str, int] = defaultdict(int)
        self._open: list[list[float]] = []  # when it began, and what its own calls took

    def on_start(self, event: event.Event) -> None:
        self._open.append([time.process_time(), 0.0])

    def on_end(self, event: event.Event) -> None:
        begun, within = self._open.pop()
        whole = time.process_time() - begun
        if self._open:
            self._open[-1][1] += whole
        function = event.data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__qualname__}".removeprefix("microagg.")
        self.seconds[name] += whole - within
        self.times[name] += 1


def _measure(way: str) -> None:
    """Run one way and give the seconds of each kernel as JSON."""
    warnings.simplefilter("ignore")  # the table is not for release
    clock = _Clock()
    begun = time.perf_counter()
    with event.install_listener("numba:compile", clock):
        WAYS[way]()
    wall = time.perf_counter() - begun
    print(json.dumps({"seconds": clock.seconds, "times": clock.times, "wall": wall}))


def main() -> None:
    most = None if "--all" in sys.argv else _LONGEST
    for way in WAYS:
        with tempfile.TemporaryDirectory() as empty:
            told = subprocess.check_output(
                [sys.executable, "-m", "benchmarks.compilation", "--way", way],
                env={**os.environ, "NUMBA_CACHE_DIR": empty},
                text=True,
            )
        found = json.loads(told.splitlines()[-1])
        seconds, times = found["seconds"], found["times"]
        rows = sorted(seconds, key=lambda name: -seconds[name])
        show(
            f"{way}: {len(rows)} kernels, {sum(seconds.values()):.1f} s of the processor; done after "
            f"{found['wall']:.1f} s",
            ["kernel", "seconds", "times"],
            [[name, seconds[name], times[name]] for name in rows[:most]],
        )


if __name__ == "__main__":
    if "--way" in sys.argv:
        _measure(sys.argv[sys.argv.index("--way") + 1])
    else:
        main()
