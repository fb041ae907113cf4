"""auto and refine beside MDAV: loss, time, growth, threads, memory; and what each pass of the search wins."""

from __future__ import annotations

import importlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from unittest import mock

import numpy as np

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from benchmarks.mdav import plain_mdav
from benchmarks.papers.pages import reference
from microagg.algorithms.auto import auto
from microagg.algorithms.fixed_size import mdav
from microagg.base.typing import Floats, Labels
from microagg.compile import threads
from microagg.encode.scale import fit_scale
from microagg.kernels.labels import canonical_labels, sum_of_squares

_KINDS = ("normal", "clustered")


def records(kind: str, n: int, d: int = 10) -> Floats:
    """Scaled records: one normal cloud, or Gaussian clusters of 10 to 100."""
    if kind == "normal":
        raw = np.random.default_rng(0).normal(size=(n, d))
    else:
        raw = microagg.simulate_clusters(n_clusters=n // 50, n_features=d)[0][:n]
    return fit_scale(raw).apply(raw)


def against_mdav() -> None:
    rows = []
    for kind in _KINDS:
        X = records(kind, 20_000)
        for k in (3, 10):
            found: dict[str, Labels] = {}

            def keep(name: str, method: Callable[[], Labels], to: dict[str, Labels]) -> None:
                to[name] = canonical_labels(method())

            plain, own, fast = best_in_turns(
                lambda k=k, X=X, to=found: keep("plain", lambda: plain_mdav(X, k), to),
                lambda k=k, X=X, to=found: keep("mdav", lambda: mdav(X, k).labels, to),
                lambda k=k, X=X, to=found: keep(
                    "fast", lambda: auto(X, k, effort="fast").labels, to
                ),
            )
            (balanced,) = best_in_turns(
                lambda k=k, X=X, to=found: keep("balanced", lambda: auto(X, k).labels, to), rounds=1
            )
            loss = {name: sum_of_squares(X, labels) for name, labels in found.items()}
            for effort, seconds in (("fast", fast), ("balanced", balanced)):
                less = f"{100 * (loss[effort] / loss['mdav'] - 1):+.1f} %"
                rows.append([kind, k, effort, seconds, plain / seconds, seconds / own, less])
    show(
        "auto, 20,000 records, d = 10, beside plain MDAV (numba, one core) and mdav",
        ["data", "k", "effort", "seconds", "plain / auto", "auto / mdav", "SSE to MDAV's"],
        rows,
    )


def on_threads() -> None:
    X = records("normal", 20_000)
    rows = []
    for k in (3, 10, 100):
        counted = threads.thread_count
        times = {}
        for count in (1, 2):
            threads.thread_count = lambda c=count: c
            times[count] = best_in_turns(lambda k=k: auto(X, k), rounds=2)[0]
        threads.thread_count = counted
        rows.append([k, times[1], times[2], times[1] / times[2]])
    show(
        "auto, balanced, 20,000 records, normal, d = 10, by threads",
        ["k", "one", "two", "times faster"],
        rows,
    )


def one(kind: str, n: int, k: int, effort: str) -> None:
    """Print seconds, SSE per record and peak memory of one run, compiled before."""
    auto(records("normal", 3_000), k, effort=effort)
    X = records(kind, n)
    found: list[Labels] = []
    (seconds,) = best_in_turns(lambda: found.append(auto(X, k, effort=effort).labels), rounds=1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(seconds, sum_of_squares(X, canonical_labels(found[0])) / n, peak)


def growth() -> None:
    rows = []
    for kind, k, effort in [
        ("normal", 10, "fast"),
        ("clustered", 10, "fast"),
        ("normal", 3, "fast"),
        ("clustered", 3, "fast"),
        ("normal", 10, "balanced"),
    ]:
        sizes, seconds, peak = [20_000, 200_000, 1_000_000], [], ""
        for n in sizes:
            call = f"from benchmarks.refine import one; one({kind!r}, {n}, {k}, {effort!r})"
            done = subprocess.run(
                [sys.executable, "-c", call], capture_output=True, text=True, check=True
            )
            took, _, peak = done.stdout.split()
            seconds.append(float(took))
        ends = growth_exponent([sizes[0], sizes[-1]], [seconds[0], seconds[-1]])
        rows.append([kind, k, effort, *seconds, f"n^{ends:.2f}", f"{float(peak):.2f} GiB"])
    show(
        "auto, d = 10, seconds by records; peak memory of the whole process at the largest",
        ["data", "k", "effort", "20,000", "200,000", "1,000,000", "growth", "memory"],
        rows,
    )


def by_pass() -> None:
    """How much more is lost without a pass, and the processor seconds with and without it.

    A pass that wins nothing on any table could go.
    """
    cases: list[tuple[str, str, object, list[tuple[int, str]]]] = [
        (
            "recombination",
            "_recombined",
            lambda _, partitions, *__: partitions[0],
            [(3, "best"), (5, "best"), (10, "best")],
        ),
        (
            "parting of pairs",
            "parted",
            lambda _, labels, __: labels,
            [(15, "fast"), (15, "balanced"), (40, "fast"), (40, "balanced")],
        ),
    ]
    search, passes = (
        importlib.import_module(f"microagg.algorithms.refine.{name}")
        for name in ("refine", "search_passes")
    )
    rows = []
    for what, function, nothing, settings in cases:
        for data in ("tarragona", "census", "eia"):
            raw = reference(data)
            X = fit_scale(raw).apply(raw)
            for k, effort in settings:
                losses, seconds = [], []
                for leave_out in (False, False, True):  # the first time for compiling
                    with ExitStack() as stack:
                        for module in (search, passes):
                            if leave_out and hasattr(module, function):
                                stack.enter_context(mock.patch.object(module, function, nothing))
                        begun = time.process_time()
                        labels = canonical_labels(auto(X, k, effort=effort).labels)
                        seconds.append(time.process_time() - begun)
                    losses.append(sum_of_squares(X, labels))
                less = f"{100 * (losses[2] / losses[1] - 1):+.3f} %"
                rows.append([what, data, k, effort, less, seconds[1], seconds[2]])
    header = ["without", "data", "k", "effort", "SSE", "seconds with", "without"]
    show("What each pass of the search wins", header, rows)


def main() -> None:
    for effort in ("fast", "balanced"):
        auto(records("normal", 3_000), 3, effort=effort)  # compile
    plain_mdav(records("normal", 1_000), 3)
    against_mdav()
    on_threads()
    growth()
    by_pass()


if __name__ == "__main__":
    main()
