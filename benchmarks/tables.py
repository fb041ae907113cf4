"""Reading, checking, verifying and writing a large CSV file, against pandas."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.harness import growth_exponent, show


def around(path: Path, k: int) -> dict[str, float]:
    """Seconds by stage of ``microagg protect``; few large groups, since grouping is not measured."""
    out = path.with_name("safe.csv")
    command = [sys.executable, "-m", "microagg", "protect", str(path), str(out), "--k", str(k)]
    stages: dict[str, float] = json.loads(subprocess.check_output([*command, "--json", "--quiet"]))[
        "seconds"
    ]
    return stages


def main() -> None:
    sizes = [100_000, 300_000, 1_000_000]
    rows, totals = [], []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / "in.csv"
            X = np.random.default_rng(0).normal(size=(n, 10))
            pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).to_csv(path, index=False)
            started = time.perf_counter()
            frame = pd.read_csv(path)
            read = time.perf_counter() - started
            frame.to_csv(Path(folder) / "pandas.csv", index=False)
            peer = time.perf_counter() - started
            stages = around(path, n // 10)
            ours = sum(stages[s] for s in ("read", "check", "aggregate", "write"))
            totals.append(ours)
            rows.append(
                [
                    f"{n:,}",
                    stages["read"],
                    stages["check"],
                    stages["write"],
                    ours,
                    read,
                    peer,
                    ours / peer,
                ]
            )
    show(
        "microagg protect, 10 columns, without the grouping (write includes verification)",
        [
            "records",
            "read",
            "check",
            "write",
            "all",
            "pandas read",
            "pandas read + to_csv",
            "ratio",
        ],
        rows,
    )
    print(f"growth exponent over n: {growth_exponent(sizes, totals):.2f}\n")


if __name__ == "__main__":
    main()
