"""Figures 4 and 5 of Stamm & Schaub 2024: run time over k, by algorithm and by way of costing."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np

import microagg
from benchmarks.harness import best_in_turns
from benchmarks.papers.pages import save, table, write
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import lean_kernel, lean_subkernel

N = 1_000_000
SIZES = [2, 5, 10, 30, 100, 300, 1000, 3000, 10000]
METHODS = ["simple", "simple-plus", "galil-park", "wilber", "staggered", "hansen-mukherjee"]
# The O(kn) algorithms are left out where they would take minutes.
LARGEST_K = {"simple": 300, "hansen-mukherjee": 300, "simple-plus": 1000}


@lean_kernel
def _prefix_sums(x, restart, s, q, ends, ends2):
    """Sums of values and squares that begin anew every ``restart`` values; those of whole cells."""
    for t in range(x.size):
        start = t % restart == 0
        if start and t:
            ends[t // restart - 1], ends2[t // restart - 1] = s[t], q[t]
        s[t + 1] = (0.0 if start else s[t]) + x[t]
        q[t + 1] = (0.0 if start else q[t]) + x[t] * x[t]


@lean_subkernel
def _value(f, s, q, ends, ends2, restart, way, i, j):
    """f[i] and the cost of the group i..j−1 in plain doubles, as in sections 4, 4.1 and 4.3."""
    s1, s2 = s[j], q[j]
    if way == 1:  # restarted sums: add the cells between
        for cell in range(i // restart, (j - 1) // restart):
            s1 += ends[cell]
            s2 += ends2[cell]
        if i % restart:
            s1 -= s[i]
            s2 -= q[i]
    else:
        s1 -= s[i]
        s2 -= q[i]
    v = f[i] - s1 * s1 / (j - i)
    return v + s2 if way < 2 else v


@lean_kernel
def _simple_plus(k, way, restart, f, s, q, ends, ends2, back, rows, counts):
    for j in range(k, f.size):
        for i in range(max(back[j - 1], j - 2 * k + 1), j - k + 1):
            v = _value(f, s, q, ends, ends2, restart, way, i, j)
            if v < f[j]:
                f[j], back[j] = v, i


@lean_subkernel
def _later_wins(k, way, restart, f, s, q, ends, ends2, low, high, j):
    if high > j - k:
        return False
    if low < j - 2 * k + 1:
        return True
    return _value(f, s, q, ends, ends2, restart, way, high, j) < _value(
        f, s, q, ends, ends2, restart, way, low, j
    )


@lean_kernel
def _staggered(k, way, restart, f, s, q, ends, ends2, back, rows, counts):
    """SMAWK on blocks of k columns; of level l, every 2^l-th column, the rows lie in rows[l]."""
    n = f.size - 1
    for first in range(k, n + 1, k):
        last = min(first + k - 1, n)
        low = max(first - 2 * k + 1, 0)
        columns, level = last - first + 1, 0
        while columns >> level > 0:
            top = 0
            for at in range(last - k - low + 1 if level == 0 else counts[level - 1]):
                row = low + at if level == 0 else rows[level - 1, at]
                while top > 0 and _later_wins(
                    k, way, restart, f, s, q, ends, ends2,
                    rows[level, top - 1], row, first + (top << level) - 1,
                ):  # fmt: skip
                    top -= 1
                if top < columns >> level:
                    rows[level, top] = row
                    top += 1
            counts[level] = top
            level += 1
        while level > 0:
            level -= 1
            at = 0
            for c in range(0, columns >> level, 2):
                j = first + ((c + 1) << level) - 1
                beyond = j + (1 << level)
                stop = back[beyond] if c + 1 < columns >> level else rows[level, counts[level] - 1]
                best = rows[level, at]
                while rows[level, at] < stop:
                    at += 1
                    if _later_wins(k, way, restart, f, s, q, ends, ends2, best, rows[level, at], j):
                        best = rows[level, at]
                back[j] = best
        for j in range(first, last + 1):
            f[j] = _value(f, s, q, ends, ends2, restart, way, back[j], j)


def plain(x: Floats, k: int, algorithm: str, way: int) -> Labels:
    """Labels of sorted values by plain prefix sums."""
    n = len(x)
    restart = k if way == 1 else n + 1
    s, q, f = np.zeros(n + 1), np.zeros(n + 1), np.full(n + 1, np.inf)
    ends, ends2 = np.zeros(n // restart + 2), np.zeros(n // restart + 2)
    back = np.zeros(n + 1, dtype=np.int64)
    f[0] = 0.0
    _prefix_sums(x, restart, s, q, ends, ends2)
    fill = _simple_plus if algorithm == "simple-plus" else _staggered
    rows, counts = np.empty((64, 3 * k + 1), dtype=np.int64), np.empty(64, dtype=np.int64)
    fill(k, way, restart, f, s, q, ends, ends2, back, rows, counts)
    marks = np.zeros(n, dtype=np.int64)
    j = int(back[n])
    while j > 0:
        marks[j] = 1
        j = int(back[j])
    return np.cumsum(marks)


WAYS = {"prefix sums (eq. 7)": 0, "restarted every k (4.1)": 1, "fewer operations (4.3)": 2}
OURS = "ours, whole call with sorting"


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
    for algorithm in ("simple-plus", "staggered"):
        for way in WAYS.values():
            plain(ordered[:100], 3, algorithm, way)  # compile
        for k in [3, 10, 30, 100, 1000] if algorithm == "staggered" else [3, 10, 30, 100]:
            actions = [lambda k=k, a=algorithm, w=w: plain(ordered, k, a, w) for w in WAYS.values()]
            exact = lambda k=k, a=algorithm: microagg.partition(ordered, k, method=a)  # noqa: E731
            seconds = best_in_turns(*actions, exact, rounds=2)
            best = microagg.partition(column, k, method=algorithm, scale="none").sse
            cells = []
            for (name, way), value in zip(WAYS.items(), seconds, strict=False):
                sse = _sse(ordered, plain(ordered, k, algorithm, way))
                excess = max(100 * (sse / best - 1), 0.0)  # the sums themselves are rounded
                cells.append(f"{value:.3f} s, +{excess:.2g} %")
                curves.setdefault((algorithm, name), []).append((k, value))
            curves.setdefault((algorithm, OURS), []).append((k, seconds[-1]))
            rows.append([algorithm, k, *cells, f"{seconds[-1]:.3f} s, optimal"])
    figure, axes = plt.subplots()
    styles = dict(zip([*WAYS, OURS], ["--", "-", ":", "-."], strict=True))
    for (algorithm, name), points in curves.items():
        colour = "tab:blue" if algorithm == "simple-plus" else "tab:red"
        label = f"{algorithm}, {name}"
        axes.plot(*zip(*points, strict=True), styles[name], color=colour, label=label)
    axes.set(
        xscale="log", yscale="log", xlabel="least group size k", ylabel="seconds, n = 1,000,000"
    )
    axes.legend(fontsize=7)
    header = ["algorithm", "k", *WAYS, OURS]
    return table(header, rows) + "\n" + save(figure, "stamm_schaub_figure_5")


def _sse(ordered: Floats, labels: Labels) -> float:
    from microagg.kernels.labels import sum_of_squares

    return sum_of_squares(ordered.reshape(-1, 1), labels)


def main() -> None:
    x = np.random.default_rng(0).random(N)
    for method in METHODS:
        microagg.partition(x[:100], 3, method=method)  # compile
    write(
        "stamm_schaub",
        f"""# Stamm & Schaub 2024: run time by algorithm and by way of computing costs

One million uniform random values, whole calls (sorting, partition, labels in the caller's order);
best of two in turns. The paper gives curves without numbers. What it says about them, next to ours:

- the O(kn) algorithms win for small k and lose for large k, simple+ before simple;
- of the O(n) algorithms, staggered is the fastest, by about a fifth;
- restarted sums cost about four times plain ones, for simple+ and staggered (Figure 5; the paper
  shows no other algorithm). Ours are restarted too, in windows that hold whole groups, and every
  decision that rounding could turn is checked; the excess of the other ways over the optimum is
  in the table. The plain ways are short loops written for this page, without sorting.

Seconds depend on the machine; ratios less so. Written by `make papers`.

## Figure 4: seconds by algorithm

{figure_4(x)}
## Figure 5: seconds by way of computing the cost, simple+ and staggered

{figure_5(x)}""",
    )


if __name__ == "__main__":
    main()
