"""Figures 4 and 5 of Stamm & Schaub 2024: run time over k, by algorithm and by way of costing."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import microagg
from benchmarks.harness import best_in_turns
from benchmarks.papers.pages import save, table, write
from microagg.groups import Floats, Labels
from microagg.kernels.jit import kernel

N = 1_000_000
SIZES = [2, 5, 10, 30, 100, 300, 1000, 3000, 10000]
METHODS = ["simple", "simple-plus", "galil-park", "wilber", "staggered", "hansen-mukherjee"]
# The O(kn) algorithms are left out where they would take minutes.
LARGEST_K = {"simple": 300, "hansen-mukherjee": 300, "simple-plus": 1000}


@kernel
def _plain(x, k, way, restart, back):  # type: ignore[no-untyped-def]
    """simple+ with costs from prefix sums in plain doubles, as in sections 4, 4.1 and 4.3."""
    n = x.size
    s, q, f = np.zeros(n + 1), np.zeros(n + 1), np.full(n + 1, np.inf)
    ends, ends2 = np.zeros(n // restart + 2), np.zeros(n // restart + 2)
    for t in range(n):
        start = t % restart == 0
        if start and t:
            ends[t // restart - 1], ends2[t // restart - 1] = s[t], q[t]
        s[t + 1] = (0.0 if start else s[t]) + x[t]
        q[t + 1] = (0.0 if start else q[t]) + x[t] * x[t]
    f[0] = 0.0
    for j in range(k, n + 1):
        for i in range(max(back[j - 1], j - 2 * k + 1), j - k + 1):
            s1, s2 = s[j], q[j]
            if way == 1:  # restarted sums: add the cells between
                a, b = i // restart, (j - 1) // restart
                for cell in range(a, b):
                    s1 += ends[cell]
                    s2 += ends2[cell]
                if i % restart:
                    s1 -= s[i]
                    s2 -= q[i]
            else:
                s1 -= s[i]
                s2 -= q[i]
            v = f[i] - s1 * s1 / (j - i)
            if way < 2:
                v += s2
            if v < f[j]:
                f[j] = v
                back[j] = i


def plain(x: Floats, k: int, way: int) -> Labels:
    """Labels of sorted values by plain prefix sums."""
    back = np.zeros(len(x) + 1, dtype=np.int64)
    _plain(x, k, way, k if way == 1 else len(x) + 1, back)
    marks = np.zeros(len(x), dtype=np.int64)
    j = int(back[len(x)])
    while j > 0:
        marks[j] = 1
        j = int(back[j])
    return np.cumsum(marks)


WAYS = {"prefix sums (eq. 7)": 0, "restarted every k (4.1)": 1, "fewer operations (4.3)": 2}


def figure_4(x: Floats) -> str:
    header = ["k", "np.argsort", *METHODS]
    rows, curves = [], {name: [] for name in header[1:]}
    for k in SIZES:
        used = [m for m in METHODS if k <= LARGEST_K.get(m, k)]
        actions = [lambda: np.argsort(x)] + [
            lambda k=k, m=m: microagg.partition(x, k, method=m) for m in used
        ]
        seconds = dict(zip(["np.argsort", *used], best_in_turns(*actions, rounds=2), strict=True))
        rows.append([k, *(f"{seconds[n]:.3f}" if n in seconds else "" for n in header[1:])])
        for name, value in seconds.items():
            curves[name].append((k, value))
    figure, axes = plt.subplots()
    for name, points in curves.items():
        axes.plot(
            *zip(*points, strict=True), ".-", label=name, color="k" if "sort" in name else None
        )
    axes.set(
        xscale="log", yscale="log", xlabel="least group size k", ylabel="seconds, n = 1,000,000"
    )
    axes.legend(ncols=2, fontsize=8)
    return table(header, rows) + "\n" + save(figure, "stamm_schaub_figure_4")


def figure_5(x: Floats) -> str:
    ordered = np.sort(x)
    column = ordered.reshape(-1, 1)
    rows, curves = [], {}
    for k in [3, 10, 30, 100]:
        actions = [lambda k=k, w=w: plain(ordered, k, w) for w in WAYS.values()]
        exact = lambda k=k: microagg.partition(ordered, k, method="simple-plus")  # noqa: E731
        seconds = best_in_turns(*actions, exact, rounds=2)
        best = microagg.partition(column, k, method="simple-plus", scale="none").sse
        cells = []
        for (name, way), value in zip(WAYS.items(), seconds, strict=False):
            excess = 100 * (_sse(ordered, plain(ordered, k, way)) / best - 1)
            cells.append(f"{value:.3f} s, +{excess:.2g} %")
            curves.setdefault(name, []).append((k, value))
        curves.setdefault("ours, exact, whole call", []).append((k, seconds[-1]))
        rows.append([k, *cells, f"{seconds[-1]:.3f} s, optimal"])
    figure, axes = plt.subplots()
    for name, points in curves.items():
        axes.plot(*zip(*points, strict=True), ".-", label=name)
    axes.set(
        xscale="log", yscale="log", xlabel="least group size k", ylabel="seconds, n = 1,000,000"
    )
    axes.legend(fontsize=8)
    header = ["k", *WAYS, "ours, whole call with sorting"]
    return table(header, rows) + "\n" + save(figure, "stamm_schaub_figure_5")


def _sse(ordered: Floats, labels: Labels) -> float:
    from microagg.groups import sum_of_squares

    return sum_of_squares(ordered.reshape(-1, 1), labels)


def main() -> None:
    x = np.random.default_rng(0).random(N)
    for method in METHODS:
        microagg.partition(x[:100], 3, method=method)  # compile
    write(
        "stamm_schaub",
        f"""# Stamm & Schaub 2024: run time by algorithm and by way of computing costs

One million uniform random values, whole calls (sorting, partition, labels in the caller's order);
best of two in turns. The paper gives curves without numbers. What it says of them, beside ours:

- the O(kn) algorithms win for small k and lose for large k, simple+ before simple;
- of the O(n) algorithms, staggered is the fastest, by about a fifth;
- restarted sums cost about four times plain ones (Figure 5, of which only simple+ is repeated
  here). Ours are restarted too, in windows that hold whole groups, and every decision that
  rounding could turn is checked; the excess of the other ways over the optimum is in the table.

Seconds depend on the machine; ratios less so. Written by `make papers`.

## Figure 4: seconds by algorithm

{figure_4(x)}
## Figure 5: seconds by way of computing the cost, simple+

{figure_5(x)}""",
    )


if __name__ == "__main__":
    main()
