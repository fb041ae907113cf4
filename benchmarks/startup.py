"""Does the command answer at once? Imports and --help against their peers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from benchmarks.harness import best_in_turns, show


def python(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    empty, numpy, microagg, cluster, help_ = best_in_turns(
        lambda: python("-c", "pass"),
        lambda: python("-c", "import numpy"),
        lambda: python("-c", "import microagg"),
        lambda: python("-c", "import sklearn.cluster"),
        lambda: python("-m", "microagg", "--help"),
        rounds=7,
    )
    show(
        "Startup, whole processes",
        ["what", "seconds", "peer", "its seconds", "ratio", "goal"],
        [
            ["import microagg", microagg, "import numpy", numpy, microagg / numpy, "≤ 1.5"],
            ["microagg --help", help_, "import sklearn.cluster", cluster, help_ / cluster, "≤ 0.6"],
            ["python -c pass", empty, "", "", "", ""],
        ],
    )
    first = (
        "import time, numpy as np, microagg; X = np.random.default_rng(0).normal(size=(1000, 10)); "
        "s = time.perf_counter(); microagg.partition(X, 3, method='mdav'); "
        "print(time.perf_counter() - s)"
    )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        calls = [
            float(subprocess.check_output([sys.executable, "-c", first], env=environment))
            for _ in range(2)
        ]
    show(
        "partition(method='mdav'), 1,000 × 10",
        ["first ever, with compilation", "next process"],
        [[f"{calls[0]:.2f} s", f"{calls[1]:.2f} s"]],
    )


if __name__ == "__main__":
    main()
