"""Lower bounds: how much of the loss each effort proves, its time, and its growth with n and k."""

from __future__ import annotations

import microagg
from benchmarks.harness import best_in_turns, growth_exponent, show
from benchmarks.refine import records
from microagg.base.typing import Floats


def by_size() -> None:
    """The balanced bound beside the fast one, as n grows."""
    rows, sizes, seconds = [], [2_000, 8_000, 32_000], []
    for n in sizes:
        X = records("normal", n)
        proved: dict[str, float] = {}

        def prove(effort: str, X: Floats = X, to: dict[str, float] = proved) -> None:
            to[effort] = microagg.lower_bound(X, 10, scale="none", effort=effort)

        fast, balanced = best_in_turns(
            lambda prove=prove: prove("fast"), lambda prove=prove: prove("balanced"), rounds=1
        )
        sse = microagg.partition(X, 10, scale="none", effort="fast").sse
        seconds.append(balanced)
        shares = [f"{100 * proved[effort] / sse:.1f} %" for effort in ("fast", "balanced")]
        rows.append([n, fast, balanced, balanced / fast, *shares])
    show(
        f"lower_bound, normal, d = 10, k = 10; balanced grows like n^{growth_exponent(sizes, seconds):.2f}",
        ["n", "fast, s", "balanced, s", "balanced / fast", "fast proves", "balanced proves"],
        rows,
    )


def by_k() -> None:
    """The same for several k; what is proved is in relation to a partition's SSE."""
    rows = []
    X = records("normal", 2_000)
    for k in (3, 5, 10, 20, 40):
        sse = microagg.partition(X, k, scale="none").sse
        row: list[object] = [k]
        for effort in ("fast", "balanced"):
            bounds: list[float] = []
            (seconds,) = best_in_turns(
                lambda e=effort, to=bounds, k=k: to.append(
                    microagg.lower_bound(X, k, scale="none", effort=e)
                ),
                rounds=1,
            )
            row += [seconds, f"{100 * bounds[-1] / sse:.1f} %"]
        rows.append(row)
    show(
        "lower_bound, normal, 2,000 records, d = 10",
        ["k", "fast, s", "proves", "balanced, s", "proves"],
        rows,
    )


def main() -> None:
    for effort in ("fast", "balanced"):
        for k in (3, 10):
            microagg.lower_bound(records("normal", 300), k, effort=effort)  # compile
    by_size()
    by_k()


if __name__ == "__main__":
    main()
