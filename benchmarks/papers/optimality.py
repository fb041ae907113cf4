"""docs/optimality.md: how near the optimum our partitions are, and docs/best: their labels.

``python -m benchmarks.papers optimality [seconds]``: seconds of search for each table and k, and twice
as many of proof; 60 unless told.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

import microagg
from benchmarks.papers import best_known
from benchmarks.papers.best_known import DATA, SIZES, Known
from benchmarks.papers.pages import FOLDER, save, table
from microagg.base.typing import Floats

sys.path.append(str(Path(__file__).parents[2] / "tests"))
sys.path.append(str(Path(__file__).parents[2] / "tests" / "support"))

import published
from conftest import reference_data

CURVE = (0.5, 1, 2, 5, 10, 20)  # seconds
OTHERS = ("mdav", "v-mdav", "centroid", "mst-c", "tsp", "rep-ord-mic", "kmeans-merge")


class Cell(NamedTuple):
    """What was found for a data set and k."""

    default: microagg.Partition
    best: microagg.Partition
    known: Known


TEXT = """# How near the optimum

Microaggregation of several columns is NP-hard, and heuristics do not say how far from the optimum they
stop. Here is how microagg gets near, and how it proves how near. Written by `make papers`.

## In a sentence each

- **`auto`**, the default, starts from MDAV (small tables: from halves of halves) and anneals: again and again
  a few neighbouring groups are taken apart, rebuilt around random records, and improved by moves and swaps.
  With `effort="best"` it pools the groups of many good partitions and lets an integer program
  choose among them; `time_limit` says when to stop.
- **`refine`** does the same to a partition of any other method, or made elsewhere, and never makes it worse.
- **`lower_bound`** proves how low any partition could go. `effort="fast"`, any n: a group's SSE is the
  sum of its squared pairwise distances over its size, so each record pays at least for its k−1 nearest.
  `"balanced"` and `"best"` put a price on each record such that no partition into groups of k to 2k−1 is
  cheaper than what all records pay. First prices come from semidefinite programs: how two records share a
  group is a matrix that is symmetric and semidefinite, and each of its rows must be that of a group. What
  holds for all partitions is added where it is broken: who shares with several others lets these share
  too, and twelve records are one group of ten or more, not 1.2. `"balanced"` has a single program for up to
  1,200 records and one for each neighbourhood beyond, which is linear in n; it goes on longest where records
  pay most. `"best"` has larger ones. For k up to 5, where all groups of interest can be searched, a linear
  program over groups then raises the prices, and `"best"` adds cuts to that as well.
- **`optimal`** has both sides: it goes on until they meet, or says how far they stayed apart.

A bound holds in exact arithmetic for the scaled values: prices are taken as the doubles they are,
what groups or rows cost is checked with an allowance for rounding, and what is in doubt is subtracted.

## The reference tables

IL = 100·SSE/SST of z-scored data. "Our prototype" is the best that a prototype of these ideas found
earlier, in up to several minutes. "Best known" is the lowest loss of all runs so far: its labels are
in [best](best), one file for each row, with SSE and bound, for anyone to check. The lower bound is in the
same unit, and the gap is how much of the best known loss could at most still be saved.

{table}
The default loses {least:.1f} to {most:.1f} % less than the best published heuristic. In {below} of
{cells} rows the best known is below what the prototype had. The smallest gap is {smallest:.2f} %.

To check a row, with the data at hand:

```python
import numpy as np, microagg

X = np.loadtxt("census.csv", delimiter=",", skiprows=1)
labels = np.loadtxt("docs/best/census_3.txt", dtype=int)
found = microagg.refine(X, labels, k=3, effort="fast")
print(np.bincount(labels).min(), found.information_loss)
```

## Loss over time

One run each, on two cores, compilation left out; `auto` with several time limits. `rep-ord-mic`, with its 200
starts, is not shown for the largest table, where it takes minutes.

{picture}
"""


def of_published(data: str, k: int) -> tuple[float, str]:
    """The lowest loss that a published heuristic has, and its name."""
    tables = {"MDAV": published.MDAV, "D": published.DIAMETER, "C": published.CENTROID,
              "V-MDAV": published.V_MDAV, "mu-Approx": published.MU_APPROX,
              "MDAV-MHM": published.MDAV_MHM, "CBFS-MHM": published.CBFS_MHM,
              "IMHM": published.IMHM, "IGD": published.IGD,
              "RepOrdMic": published.REP_ORD_MIC}  # fmt: skip
    return min(
        (losses[data][k], name) for name, losses in tables.items() if k in losses.get(data, {})
    )


def examine(data: str, k: int, seconds: float) -> Cell:
    """Search and prove; the labels in docs/best become what is best of all runs so far."""
    X = reference_data(data)
    default = microagg.partition(X, k)
    best = microagg.partition(X, k, effort="best", time_limit=seconds)
    found = [Known(best.labels, best.sse, best.sst, 0.0)]
    try:
        proof = microagg.partition(X, k, method="optimal", time_limit=2 * seconds)
        found.append(Known(proof.labels, proof.sse, proof.sst, proof.lower_bound or 0.0))
    except microagg.InputError:  # out of reach
        bound = microagg.lower_bound(X, k, effort="best", time_limit=4 * seconds)
        found.append(found[0]._replace(bound=bound))
    for each in found:
        known = best_known.keep_better(data, k, each, X)
    print(f"{data} k={k}: {default.information_loss:.4f} {best.information_loss:.4f} "
          f"{known.loss:.4f}, gap {100 * known.gap:.2f} %")  # fmt: skip
    return Cell(default, best, known)


def shown(X: Floats) -> list[str]:
    """The other methods that a table is shown with."""
    return [method for method in OTHERS if method != "rep-ord-mic" or len(X) < 10_000]


def over_time(X: Floats, k: int, times: Sequence[float]) -> list[tuple[str, float, float]]:
    """Method, seconds and loss of the others once and of auto with several limits."""
    points = []
    for method in shown(X):
        microagg.partition(X[:300], k, method=method)  # compile
        started = time.perf_counter()
        loss = microagg.partition(X, k, method=method).information_loss
        points.append((method, time.perf_counter() - started, loss))
    for limit in times:
        started = time.perf_counter()
        found = microagg.partition(X, k, effort="best", time_limit=limit)
        points.append(("auto, best", time.perf_counter() - started, found.information_loss))
    return points


def plot(name: str, tables: dict[str, tuple[Floats, int]]) -> str:
    """Loss over time, one panel a table."""
    figure, panels = plt.subplots(1, len(tables), figsize=(11, 4))
    for axes, (title, (X, k)) in zip(panels, tables.items(), strict=True):
        points = over_time(X, k, CURVE)
        for method in shown(X):
            spot = [(t, loss) for m, t, loss in points if m == method]
            colour = f"C{OTHERS.index(method)}"
            axes.plot(*zip(*spot, strict=True), "o", color=colour, label=method)
        line = [(t, loss) for m, t, loss in points if m == "auto, best"]
        axes.plot(*zip(*line, strict=True), "k.-", label="auto, effort best")
        axes.set(title=title, xscale="log", xlabel="seconds", ylabel="IL in percent")
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize=8)
    figure.tight_layout()
    return save(figure, name).replace("](", "](papers/")


def main() -> None:
    seconds = float(next((a for a in sys.argv[1:] if a.replace(".", "").isdigit()), 60))
    microagg.partition(reference_data(DATA[0])[:300], SIZES[0])  # load what is compiled
    cells = {(data, k): examine(data, k, seconds) for data in DATA for k in SIZES}
    rows = []
    for (data, k), cell in cells.items():
        loss, name = of_published(data, k)
        before = published.BEST_KNOWN[data][k]
        rows.append([
            data, k, f"{loss:.4g} ({name})", f"{before:.5g}",
            f"{cell.default.information_loss:.5g} ({cell.default.seconds:.1f} s)",
            f"{cell.best.information_loss:.5g}", f"**{cell.known.loss:.6g}**",
            f"{100 * cell.known.bound / cell.known.sst:.6g}", f"{100 * cell.known.gap:.2f} %",
        ])  # fmt: skip
    normal = np.random.default_rng(0).normal(size=(20_000, 10))
    picture = plot("optimality_over_time", {
        "Census, k = 3": (reference_data("census"), 3),
        "EIA, k = 5": (reference_data("eia"), 5),
        "normal, 20,000 × 10, k = 10": (normal, 10),
    })  # fmt: skip
    below = sum(c.known.loss < published.BEST_KNOWN[d][k] for (d, k), c in cells.items())
    saved = [1 - c.default.information_loss / of_published(d, k)[0] for (d, k), c in cells.items()]
    header = ["data", "k", "best published heuristic", "our prototype",
              "`auto`, default", f"`auto`, best, {seconds:g} s", "best known",
              "lower bound", "gap"]  # fmt: skip
    text = TEXT.format(
        table=table(header, rows), picture=picture, below=below, cells=len(cells),
        least=100 * min(saved), most=100 * max(saved),
        smallest=100 * min(c.known.gap for c in cells.values()),
    )  # fmt: skip
    (FOLDER.parent / "optimality.md").write_text(text)
    print("wrote docs/optimality.md")
