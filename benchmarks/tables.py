"""A long CSV file, read, checked, verified and written, against pandas; wide ones, time over columns."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.harness import best_in_turns, growth_exponent, show


def around(path: Path, k: int) -> dict[str, float]:
    """Seconds by stage of ``microagg protect``; few large groups, since grouping is not measured."""
    out = path.with_name("safe.csv")
    command = [sys.executable, "-m", "microagg", "protect", str(path), str(out), "--k", str(k)]
    stages: dict[str, float] = json.loads(subprocess.check_output([*command, "--json", "--quiet"]))[
        "seconds"
    ]
    return stages


def without_grouping(stages: dict[str, float]) -> float:
    """Seconds for reading, checking, aggregating, verifying and writing."""
    return sum(stages[stage] for stage in ("read", "check", "aggregate", "write"))


def pandas_round_trip(path: Path) -> None:
    """Read and write the same file with the peer."""
    pd.read_csv(path).to_csv(path.with_name("pandas.csv"), index=False)


def wide() -> None:
    """Time of whole jobs over the number of columns; 60 records, so that columns are what costs."""
    sizes, seconds = [1_000, 2_000, 4_000, 10_000], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wide.csv"
        for m in sizes:
            X = np.random.default_rng(0).normal(size=(60, m)).round(3)
            pd.DataFrame(X, columns=[f"c{j}" for j in range(m)]).to_csv(path, index=False)
            seconds.append(min(sum(around(path, 5).values()) for _ in range(2)))
    show(
        "microagg protect, 60 records, all stages",
        ["columns", "seconds", "ms per column"],
        [[f"{m:,}", total, 1000 * total / m] for m, total in zip(sizes, seconds, strict=True)],
    )
    print(f"growth exponent over columns: {growth_exponent(sizes, seconds):.2f}\n")


def main() -> None:
    sizes = [100_000, 300_000, 1_000_000]
    rows, totals = [], []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            path = Path(folder) / "in.csv"
            X = np.random.default_rng(0).normal(size=(n, 10))
            pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).to_csv(path, index=False)
            (peer,) = best_in_turns(lambda: pandas_round_trip(path), rounds=2)  # noqa: B023
            stages = min((around(path, n // 10) for _ in range(2)), key=without_grouping)
            ours = without_grouping(stages)
            totals.append(ours)
            parts = [stages[stage] for stage in ("read", "check", "aggregate", "write")]
            rows.append([f"{n:,}", *parts, ours, peer, ours / peer])
    show(
        "microagg protect, 10 columns, without the grouping (write includes verification)",
        ["records", "read", "check", "aggregate", "write", "all", "pandas read + to_csv", "ratio"],
        rows,
    )
    print(f"growth exponent over n: {growth_exponent(sizes, totals):.2f}\n")
    wide()


if __name__ == "__main__":
    main()
