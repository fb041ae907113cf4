"""Attacks that broke green files once: by order, by digits, by several files, each before and now.

Each is carried out on a release as it was written before (order kept, digits exact, no ledger) and as it is
written now. ``python -m benchmarks attacks --area=known`` runs them and writes their table.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

_TESTS = Path(__file__).parent.parent / "tests"


def known_attacks() -> Iterator[dict[str, Any]]:
    """Carry out each attack; give its name, whom it is about, and whom it finds before, now, by chance."""
    sys.path[:0] = [str(_TESTS), str(_TESTS / "support")]
    with TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for attack in (_adjacent_rows, _sorted_register, _half_register, _several_files):
            yield from attack(Path(name))


@contextmanager
def _orders() -> Iterator[list[Any]]:
    """Record the random orders of files, which no attacker has, to judge an attack."""
    module = importlib.import_module("microagg.engines.memory.protect")
    draw, drawn = module.random_order, []

    def recorded(n: int) -> Any:
        drawn.append(draw(n))
        return drawn[-1]

    module.random_order = recorded  # type: ignore[attr-defined]
    try:
        yield drawn
    finally:
        module.random_order = draw  # type: ignore[attr-defined]


def _adjacent_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Adjacent rows that look alike are one household."""
    import microagg
    from attacks.test_order_attacks import COLUMNS, same_home
    from conftest import reference_file

    table = pd.read_csv(reference_file("eusilc"), usecols=COLUMNS)[COLUMNS]
    table.to_csv(folder / "in.csv", index=False)
    found = {}
    with _orders() as orders:
        for keep_order in (True, None):
            microagg.protect_file(
                folder / "in.csv", folder / "out.csv", k=5, effort="fast", keep_order=keep_order
            )
            order = np.arange(len(table)) if keep_order else orders[-1]
            homes = table["db030"].to_numpy()[order]
            found[keep_order] = same_home(pd.read_csv(folder / "out.csv"), homes)
    yield {
        "attack": "adjacent rows that look alike are one household (household survey, k = 5)",
        "of": "100 such pairs",
        "before": round(100 * found[True][0]),
        "now": round(100 * found[None][0], 1),
        "chance": round(100 * found[None][1], 1),
    }


def _sorted_register(folder: Path) -> Iterator[dict[str, Any]]:
    """A register of one column gives the confidential value by its rank."""
    import microagg
    from conftest import reference_file

    table = pd.read_csv(reference_file("census")).sort_values("AGI", ignore_index=True)
    ill = np.random.default_rng(0).choice(["flu", "cold", "none", "other"], len(table))
    table.assign(ill=ill).to_csv(folder / "in.csv", index=False)
    right = {}
    for keep_order in (True, None):
        microagg.protect_file(
            folder / "in.csv",
            folder / "out.csv",
            k=5,
            columns=list(table),
            confidential=["ill"],
            require={"distinct": {"ill": 2}},
            effort="fast",
            keep_order=keep_order,
        )
        told = pd.read_csv(folder / "out.csv", keep_default_na=False)["ill"].to_numpy()
        right[keep_order] = int((told == ill).sum())
    yield {
        "attack": "illness by the rank of one column in a sorted file (census, k = 5)",
        "of": f"{len(table):,} people",
        "before": right[True],
        "now": right[None],
        "chance": len(table) // 4,
    }


def _half_register(folder: Path) -> Iterator[dict[str, Any]]:
    """Only the right members of a group leave a last one whose values are whole."""
    import microagg
    from attacks.test_digits import guesses, register

    for name, words in (("census", "census"), ("eusilc", "1,200 of the household survey")):
        before = register(name)
        known = np.random.default_rng(0).random(len(before.table)) < 0.5
        columns, steps = list(before.steps), np.array(list(before.steps.values()))
        found = []
        for digits, off in (("exact", 0 * steps), (6, 0 * steps + 5e-7), (None, steps)):
            data = microagg.protect(
                before.table[[*columns, before.weight]],
                k=3,
                columns=columns,
                weight=before.weight,
                digits=digits,
                method="mdav",
            ).data
            found.append(guesses(before, data, known, off))
        yield {
            "attack": f"half a register and the digits of weighted means ({words}, k = 3)",
            "of": f"{found[0].groups} people",
            "before": found[1].certain,
            "now": found[2].certain,
            "chance": "",
        }


def _several_files(folder: Path) -> Iterator[dict[str, Any]]:
    """Means of several partitions of the same people are equations; rows are matched by somebody who can."""
    import microagg
    from conftest import reference_file

    table = pd.read_csv(reference_file("census"))
    table["person"] = np.arange(len(table)) * 7 + 1001
    table.to_csv(folder / "in.csv", index=False)
    columns = [name for name in table if name != "person"]
    for sizes in ((3, 4), (3, 4, 5, 6, 7)):
        found = []
        for ledger in (None, folder / f"{len(sizes)}.sqlite"):
            labels = []
            with _orders() as orders:
                for k in sizes:
                    microagg.protect_file(
                        folder / "in.csv",
                        folder / "out.csv",
                        k=k,
                        columns=columns,
                        unit="person",
                        drop=["person"],
                        effort="fast",
                        ledger=ledger,
                    )
                    after = pd.read_csv(folder / "out.csv")
                    groups = after.groupby(columns, sort=False).ngroup().to_numpy()
                    labels.append(groups[np.argsort(orders[-1])])
            found.append(_solved(labels))
        yield {
            "attack": f"{len(sizes)} files, k = {sizes[0]} to {sizes[-1]}, rows matched (census; "
            "now with a ledger)",
            "of": f"{len(table):,} people",
            "before": found[0],
            "now": found[1],
            "chance": "",
        }


def _solved(partitions: Sequence[Any]) -> int:
    """Count people whose value follows from the means of the groups of several partitions."""
    rows = [(labels == group).astype(float) for labels in partitions for group in np.unique(labels)]
    singular, basis = np.linalg.svd(np.array(rows), full_matrices=False)[1:]
    basis = basis[singular > 1e-9 * singular[0]]
    return int((np.square(basis).sum(axis=0) > 1 - 1e-9).sum())


def table_of_known(results: Sequence[dict[str, Any]]) -> str:
    """Return the table of the page."""
    lines = ["| attack | of | found before | found now | by chance |", "|---|---|---|---|---|"]
    for row in results:
        figures = (
            f"{value:,}" if isinstance(value, int | float) else value
            for value in (row["before"], row["now"], row["chance"])
        )
        lines.append(f"| {row['attack']} | {row['of']} | {' | '.join(figures)} |")
    return "\n".join(lines)
