"""Tables in parts: loss, time and memory from disk, against the same job in memory.

``--large`` adds 5·10⁷ records of 5 columns and one column of 10⁸, which take a while and some ten
gigabytes of disk.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import growth_exponent, show

_PIECE = 1 << 20
_JOB = """
import json, resource, sys, time
from pathlib import Path
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan
source, target, engine, effort, columns = sys.argv[1:]
plan = Plan().override(k=5, columns=columns.split(","), effort=effort)
started = time.perf_counter()
memory = int(1.5 * 2**30) if engine == "disk" else None
found = run(Job(Path(source), Path(target), plan, engine=engine, memory=memory)).evidence
print(json.dumps({
    "seconds": time.perf_counter() - started,
    "loss": found.utility.information_loss,
    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
}))
"""


def write_normal(path: Path, n: int, d: int) -> None:
    """Write a Parquet file of normal numbers, a piece at a time."""
    rng = np.random.default_rng(1)
    writer = None
    for start in range(0, n, _PIECE):
        count = min(_PIECE, n - start)
        table = pa.table({f"x{j}": rng.normal(size=count) for j in range(d)})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def job(source: Path, engine: str, effort: str, d: int) -> dict[str, float]:
    """Run a job in a process of its own: seconds, loss in percent, GiB of resident memory."""
    target = source.with_name(f"out-{engine}.parquet")
    columns = ",".join(f"x{j}" for j in range(d))
    command = [sys.executable, "-c", _JOB, str(source), str(target), engine, effort, columns]
    found: dict[str, float] = json.loads(subprocess.check_output(command))
    return found


def main() -> None:
    large = "--large" in sys.argv
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        source = Path(folder) / "in.parquet"
        rows = []
        write_normal(source, 1_000_000, 10)
        for effort in ("fast", "balanced"):
            disk, memory = (job(source, engine, effort, 10) for engine in ("disk", "memory"))
            rows.append(
                [
                    effort,
                    memory["loss"],
                    disk["loss"],
                    disk["loss"] / memory["loss"],
                    memory["seconds"],
                    disk["seconds"],
                    disk["seconds"] / memory["seconds"],
                    memory["memory"],
                    disk["memory"],
                ]
            )
        show(
            "1,000,000 x 10, k = 5, file to file with evidence",
            ["effort", "loss", "disk", "ratio", "seconds", "disk", "ratio", "GiB", "disk"],
            rows,
        )
        sizes = [1_000_000, 3_000_000, *([50_000_000] if large else [])]
        rows = []
        for n in sizes:
            write_normal(source, n, 5)
            found = job(source, "disk", "fast", 5)
            rows.append([f"{n:,}", found["seconds"], found["memory"], found["loss"]])
        show("From disk, 5 columns, effort fast", ["records", "seconds", "GiB", "loss"], rows)
        exponent = growth_exponent(sizes, [float(row[1]) for row in rows])
        print(f"growth exponent over n: {exponent:.2f}\n")
        n = 100_000_000 if large else 3_000_000
        write_normal(source, n, 1)
        found = job(source, "disk", "balanced", 1)
        show(
            "One column from disk, cut optimally",
            ["records", "seconds", "GiB", "loss"],
            [[f"{n:,}", found["seconds"], found["memory"], found["loss"]]],
        )


if __name__ == "__main__":
    main()
