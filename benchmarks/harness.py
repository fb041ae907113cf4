"""Timing and tables that all benchmarks share.

Times on a shared machine are noise; what is printed for comparison are ratios of the best
of several runs, taken in turns in the same process or minute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table


def best_in_turns(*actions: Callable[[], object], rounds: int = 3) -> list[float]:
    """Best time of each action, run in turns so that all see the same weather."""
    best = [float("inf")] * len(actions)
    for _ in range(rounds):
        for a, action in enumerate(actions):
            started = time.perf_counter()
            action()
            best[a] = min(best[a], time.perf_counter() - started)
    return best


def growth_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Slope of log time over log size: 1 for linear, 2 for quadratic cost."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table."""
    table = Table(*header, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=110).print(table)
