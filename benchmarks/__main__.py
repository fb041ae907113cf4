"""Run all benchmarks, or those named: ``python -m benchmarks startup tables``.

Words that begin with -- are for the benchmarks themselves, such as --large for univariate.
"""

from __future__ import annotations

import sys
from importlib import import_module

BENCHMARKS = (
    "startup",
    "compilation",
    "tables",
    "mdav",
    "refine",
    "cores",
    "bounds",
    "outside_in",
    "mst",
    "nearest",
    "ordering",
    "univariate",
    "one_column",
    "measures",
    "analyses",
    "requirements",
    "fingerprints",
    "gower",
    "drafts",
    "decisions",
    "scale",
    "memory",
    "spark",
    "nist",
    "attacks",
    "ledger",
)
WHEN_NAMED = ("attack_peers", "page", "reference")


def main() -> None:
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    unknown = [name for name in names if name not in BENCHMARKS + WHEN_NAMED]
    if unknown or {"-h", "--help"} & {*sys.argv}:
        every = f"{', '.join(BENCHMARKS)}; only if named: {', '.join(WHEN_NAMED)}"
        print(f"{__doc__}\nBenchmarks: {every}")
        sys.exit(2 if unknown else 0)
    for name in names or BENCHMARKS:
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main()
