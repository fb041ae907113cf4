"""Memory of jobs in memory: the largest resident memory, against what the choice of engine counts on.

``--large`` adds tables of 5·10⁶ records.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from benchmarks.harness import show

_JOB = """
import json, resource, sys
from pathlib import Path
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan
from microagg.engines.memory_needed import needed
from microagg.formats.batches import open_batches
source, target, columns = sys.argv[1:]
plan = Plan().override(k=5, columns=columns.split(","), effort="fast", known=[])
expected = needed(open_batches(Path(source)), plan)
run(Job(Path(source), Path(target), plan, engine="memory"))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps({"expected": expected, "peak": peak}))
"""


def table_of(kind: str, rows: int, columns: int) -> tuple[pa.Table, list[str]]:
    """Make a table, and name the columns to protect."""
    chance = np.random.default_rng(1)
    towns = pa.array([f"town {j}" for j in range(12)])
    found: dict[str, pa.Array] = {}
    for j in range(columns):
        if kind == "nominal" or (kind == "mixed" and j % 2):
            found[f"x{j}"] = towns.take(pa.array(chance.integers(0, 12, rows)))
        else:
            found[f"x{j}"] = pa.array(chance.normal(size=rows))
    protected = list(found)
    if kind == "known":
        protected = protected[: max(columns // 4, 1)]
    return pa.table(found), protected


def measured(kind: str, ending: str, rows: int, columns: int) -> dict[str, float]:
    """Run a job in a process of its own: bytes that were expected, and the most that it took."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        source, target = (Path(folder) / f"{name}{ending}" for name in ("in", "out"))
        table, protected = table_of(kind, rows, columns)
        (pq.write_table if ending == ".parquet" else arrow_csv.write_csv)(table, source)
        del table
        command = [sys.executable, "-c", _JOB, str(source), str(target), ",".join(protected)]
        found: dict[str, float] = json.loads(subprocess.check_output(command))
        return found


def main() -> None:
    sizes = [200_000, 1_000_000, *([5_000_000] if "--large" in sys.argv else [])]
    rows = []
    for kind, ending, columns in (
        ("number", ".parquet", 2),
        ("number", ".parquet", 8),
        ("number", ".csv", 8),
        ("nominal", ".parquet", 4),
        ("mixed", ".parquet", 8),
        ("known", ".parquet", 8),
    ):
        for size in sizes:
            found = measured(kind, ending, size, columns)
            expected, peak = found["expected"] / 2**30, found["peak"] / 2**30
            rows.append([kind, ending, size, columns, expected, peak, peak / expected])
    show(
        "jobs in memory",
        ["kind", "file", "records", "columns", "expected GiB", "largest GiB", "ratio"],
        rows,
    )


if __name__ == "__main__":
    main()
