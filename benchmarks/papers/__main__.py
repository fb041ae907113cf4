"""Write docs/papers: ``python -m benchmarks.papers [name ...]``."""

from __future__ import annotations

import sys
from importlib import import_module

PAPERS = (
    "hansen_mukherjee",
    "stamm_schaub",
    "stamm_schaub_figure_6",
    "solanas_martinez",
    "laszlo_mukherjee",
    "mortazavi",
    "optimality",
)


def main() -> None:
    for name in [a for a in sys.argv[1:] if a in PAPERS] or PAPERS:
        import_module(f"benchmarks.papers.{name}").main()


if __name__ == "__main__":
    main()
