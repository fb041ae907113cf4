"""How long until the first group? Imports, commands and first calls, each in a process of its own.

A first start finds nothing compiled: the folder of compiled code is empty. A next start finds what the first
one compiled. ``python -m benchmarks startup`` prints the table and writes docs/startup.md.
"""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import show

PAGE = Path(__file__).parents[1] / "docs" / "startup.md"
_NEXT = 3  # runs of which the middle one is given

_PARTITION = (
    "import numpy as np, microagg; "
    "microagg.partition(np.random.default_rng(0).normal(size=(1000, 10)), 3, method='mdav')"
)
# What it is, the words after ``python``, and whether its first start compiles.
STARTS: dict[str, tuple[list[str], bool]] = {
    "`import microagg`": (["-c", "import microagg"], False),
    "`microagg --help`": (["-m", "microagg", "--help"], False),
    "`partition` of 1,000 × 10 by mdav": (["-c", _PARTITION], True),
    "`microagg protect` of 300 records": (
        ["-m", "microagg", "protect", "few.csv", "out.csv", "--k", "5", "--columns", "a,b,c"],
        True,
    ),
    "`microagg protect` of a survey: 1,000 persons with household, weight, categories and gaps": (
        ["-m", "microagg", "protect", "survey.csv", "out.csv", "--k", "5"],
        True,
    ),
    "`microagg demo`": (["-m", "microagg", "demo", "--folder", "demo"], True),
}


class Took(NamedTuple):
    """Seconds of one process with those that it starts: by the clock, and of the processor."""

    wall: float
    processor: float


def _write_tables(folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(0)
    csv.write_csv(pa.table({name: rng.normal(size=300) for name in "abc"}), folder / "few.csv")
    n = 1000
    income = rng.lognormal(8, 1, n).round(2)
    survey: dict[str, Any] = {
        "person": np.arange(n) + 10_000,
        "household": np.sort(rng.integers(0, n // 3, n)) + 500,
        "weight": rng.uniform(50, 150, n).round(1),
        "sex": rng.choice(["female", "male"], n),
        "education": rng.choice(["low", "middle", "high"], n),
        "sector": rng.choice(["trade", "health", "farming", "arts", "none"], n),
        "age": rng.integers(18, 90, n),
        "income": pa.array(income, mask=rng.random(n) < 0.1),
        "rent": rng.gamma(3, 200, n).round(),
    }
    csv.write_csv(pa.table(survey), folder / "survey.csv")


def _run(words: list[str], folder: Path, cache: str | None) -> Took:
    environment = dict(os.environ) if cache is None else {**os.environ, "NUMBA_CACHE_DIR": cache}
    (folder / "out.csv").unlink(missing_ok=True)
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, check=False
    )
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return Took(wall, sum(after[:2]) - sum(before[:2]))


def measured() -> list[list[str]]:
    """Rows of the table: what, then the first start and the next one."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_tables(folder)
        for what, (words, compiles) in STARTS.items():
            with tempfile.TemporaryDirectory() as empty:
                cache = empty if compiles else None
                first = _run(words, folder, cache)
                runs = [_run(words, folder, cache) for _ in range(_NEXT)]
            again = Took(*(median(times) for times in zip(*runs, strict=True)))
            rows.append([what, *(f"{one:.1f}" for took in (first, again) for one in took)])
    return rows


HEADER = ["start", "first: seconds", "of the processors", "next: seconds", "of the processors"]


def page(rows: list[list[str]], machine: str) -> str:
    """Put the table on its page.

    >>> page([["`x`", "2.0", "3.0", "1.0", "1.0"]], "two cores").splitlines()[-1]
    '| `x` | 2.0 | 3.0 | 1.0 | 1.0 |'
    """
    lines = [
        "# The first minutes",
        "",
        "microagg compiles its loops for your processor when they are first used, and keeps the result in a "
        "folder of its own. So the first run of a kind takes longer than the next ones; `microagg warmup` "
        "compiles everything in advance. A *first* start finds nothing compiled, a *next* one finds what "
        f"the first one compiled. Whole processes on {machine}; of the next starts, the middle one of "
        f"{_NEXT}. `python -m benchmarks startup` writes this page.",
        "",
        f"| {' | '.join(HEADER)} |",
        "|---|" + "---:|" * (len(HEADER) - 1),
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    rows = measured()
    load = os.getloadavg()[0]
    show(f"Starts; load of the machine at the end {load:.1f}", HEADER, rows)
    machine = f"{os.cpu_count()} cores ({platform.machine()}, Python {platform.python_version()})"
    if load > 1.5 * (os.cpu_count() or 1):
        machine += ", of which other programs used most: the seconds of the processors count"
    PAGE.write_text(page(rows, machine), encoding="utf-8")


if __name__ == "__main__":
    main()
