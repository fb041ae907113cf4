"""Run all benchmarks, or those named: ``python -m benchmarks startup tables``."""

from __future__ import annotations

import sys
from importlib import import_module

BENCHMARKS = (
    "startup",
    "tables",
    "mdav",
    "refine",
    "outside_in",
    "mst",
    "nearest",
    "ordering",
    "univariate",
    "measures",
)


def main() -> None:
    for name in sys.argv[1:] or BENCHMARKS:
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
