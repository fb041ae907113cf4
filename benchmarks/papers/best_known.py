"""The best partitions known to us: a file of labels for each data set and k, in docs/best.

A file begins with lines ``# name: value`` and then has the group of each record, one a line, in the
order of the data set. Whoever has the data can so check the SSE, the sizes and the gap.
A partition is replaced only by a better one, a bound only by a higher one.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.scale import fit_scale, total_squares
from microagg.kernels.labels import sum_of_squares

FOLDER = Path(__file__).parents[2] / "docs" / "best"
DATA = ("tarragona", "census", "eia")
SIZES = (3, 4, 5, 10)


class Known(NamedTuple):
    """A partition of z-scored records, and how low the SSE of any could be."""

    labels: Labels
    sse: float
    sst: float
    bound: float

    @property
    def loss(self) -> float:
        """100·SSE/SST."""
        return 100 * self.sse / self.sst

    @property
    def gap(self) -> float:
        """By what share of its SSE the partition could still improve at most."""
        return 1 - self.bound / self.sse


def path_of(data: str, k: int) -> Path:
    """Where the labels of a data set are."""
    return FOLDER / f"{data}_{k}.txt"


def read(data: str, k: int, X: Floats) -> Known:
    """Read a partition; its SSE is computed from the labels, not believed."""
    path = path_of(data, k)
    labels = np.loadtxt(path, dtype=np.int64)
    head = dict(line[2:].split(": ") for line in path.read_text().splitlines() if line[0] == "#")
    scaled = fit_scale(X).apply(X)
    bound = float(head["lower bound of the SSE"])
    return Known(labels, sum_of_squares(scaled, labels), total_squares(X, "zscore"), bound)


def write(data: str, k: int, known: Known) -> None:
    """Write a partition."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    head = {
        "data": f"{data}, z-scored",
        "k": k,
        "groups": int(known.labels.max()) + 1,
        "SSE": repr(known.sse),
        "IL in percent": f"{known.loss:.6f}",
        "lower bound of the SSE": repr(known.bound),
        "gap in percent": f"{100 * known.gap:.3f}",
    }
    lines = [f"# {name}: {value}" for name, value in head.items()]
    lines += [str(group) for group in known.labels.tolist()]
    path_of(data, k).write_text("\n".join(lines) + "\n")


def keep_better(data: str, k: int, found: Known, X: Floats) -> Known:
    """Write what is better than the file; return what it holds then."""
    if path_of(data, k).exists():
        known = read(data, k, X)
        labels, sse = (
            (found.labels, found.sse) if found.sse < known.sse else (known.labels, known.sse)
        )
        found = Known(labels, sse, known.sst, max(found.bound, known.bound))
        if found.sse == known.sse and found.bound == known.bound:
            return known
    write(data, k, found)
    return found
