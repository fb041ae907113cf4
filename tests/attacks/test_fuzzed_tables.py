"""Random tables by random plans, from file to file: what is claimed is counted again by other means."""

from __future__ import annotations

import csv
import itertools
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from microagg.errors import MicroaggError
from microagg.formats.files import read_file
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan

NAMES = [
    "age",
    "in come",
    'q"uote',
    "com,ma",
    "línea",
    "id",
    "x" * 70,
    "<b>bold</b>",
    "=1+1",
    "new\nline",
]
WORDS = ["", "north", "south", "a,b", '"', "007", "NA", "1e5", " x ", "ünï", "<i>", "=cmd"]


def random_cells(rng: np.random.Generator, n: int) -> list[str]:
    """A column of text cells of some kind."""
    kind = rng.integers(9)
    if kind == 0:
        return [
            repr(v) for v in np.exp(rng.normal(3, 1, n)).round(int(rng.integers(0, 4))).tolist()
        ]
    if kind == 1:
        return [str(v) for v in rng.integers(0, 90, n)]
    if kind == 2:
        return [str(i) for i in rng.permutation(n) + 1000]
    if kind == 3:
        return [str(WORDS[i]) for i in rng.integers(0, len(WORDS), n)]
    if kind == 4:
        return [str(v) for v in rng.integers(1, 4, n)]
    if kind == 5:
        return [f"{v:05d}" for v in rng.integers(0, 99999, n)]
    if kind == 6:
        return ["7"] * n
    if kind == 7:
        return [str(10**20 + int(v)) for v in rng.integers(0, 5, n)]
    cells = [f"{v:.3f}" for v in rng.normal(0, 1e6, n)]
    if rng.random() < 0.5 and n:
        cells[int(rng.integers(n))] = str(rng.choice(["", "n/a", "inf", "nan", "1e400"]))
    return cells


def random_table(rng: np.random.Generator) -> dict[str, list[str]]:
    n = int(rng.integers(1, 40))
    names = rng.permutation(NAMES)[: rng.integers(1, 7)]
    return {str(name): random_cells(rng, n) for name in names}


def random_plan(rng: np.random.Generator, names: list[str]) -> Plan:
    order = [str(name) for name in rng.permutation(names)]
    cut = sorted(rng.integers(0, len(order) + 1, 4).tolist())
    columns, drop, renumber, confidential = (order[a:b] for a, b in itertools.pairwise([0, *cut]))
    settings = {"drop": drop, "renumber": renumber, "confidential": confidential}
    if columns:
        settings["columns"] = columns
    free = [name for name in order if name not in columns]
    if free and rng.random() < 0.3:
        settings["unit"] = free[0]
    return Plan.of(
        k=int(rng.integers(1, 6)),
        method=str(rng.choice(["mdav", "v-mdav", "mst", "pca"])),
        per_column=bool(rng.random() < 0.15),
        round=bool(rng.random() < 0.3),
        keep_order=None if rng.random() < 0.2 else True,
        aggregate=str(rng.choice(["mean", "median", "maximum"])),
        **settings,
    )


def read_rows(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = [row for row in csv.reader(file) if row]
    return header, rows


def write_table(path: Path, table: dict[str, list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))


def check_release(table: dict[str, list[str]], job: Job) -> None:
    """Count in the written file, with nothing of the package."""
    evidence = run(job).evidence
    plan, roles = evidence.plan, evidence.roles
    header, rows = read_rows(job.target)
    assert header == [name for name in table if name not in plan.drop]
    assert len(rows) == len(next(iter(table.values())))
    cells = {name: [row[j] for row in rows] for j, name in enumerate(header)}
    units = cells.get(plan.unit) if plan.unit is not None else None
    for part in evidence.parts:
        shared = defaultdict(set)
        for i, key in enumerate(zip(*(cells[name] for name in part.columns), strict=True)):
            shared[key].add(i if units is None else units[i])
        if plan.unit is None or units is not None:
            assert min(map(len, shared.values())) >= part.partition.k
    untouched = roles.released
    original = list(zip(*(table[name] for name in untouched), strict=True)) if untouched else []
    written = list(zip(*(cells[name] for name in untouched), strict=True)) if untouched else []
    assert (Counter(written) == Counter(original)) if not plan.keep_order else (written == original)
    for name in plan.renumber:
        pairs = set(zip(table[name], cells[name], strict=True)) if plan.keep_order else set()
        assert len({a for a, _ in pairs}) >= len({b for _, b in pairs if b})
    if evidence.verdict == "green" and plan.unit is None:
        known = [*roles.protected, *roles.known]
        counts = Counter(zip(*(cells[name] for name in known), strict=True))
        assert min(counts.values()) >= evidence.k


def fuzz(folder: Path, seeds: range) -> Counter[str]:
    """Protect random tables; count how they end."""
    ends: Counter[str] = Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        table = random_table(rng)
        source, target = folder / "in.csv", folder / "out.csv"
        write_table(source, table)
        target.unlink(missing_ok=True)
        refused: MicroaggError | None = None
        try:
            check_release(table, Job(source, target, random_plan(rng, list(table))))
        except MicroaggError as error:
            refused = error
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
        if refused is not None:
            assert str(refused).endswith((".", "?")), f"seed {seed}: {refused}"
            assert not target.exists()
        ends["released" if refused is None else type(refused).__name__] += 1
        left = [path.name for path in folder.iterdir() if path not in (source, target)]
        assert not left, f"seed {seed} left {left}"
        assert read_rows(source)[1] == read_file(source).as_written.to_pandas().to_numpy().tolist()
    return ends


def test_random_tables_keep_every_promise_or_are_refused(tmp_path):
    ends = fuzz(tmp_path, range(150))
    assert ends["released"] >= 40
    assert set(ends) <= {"released", "InputError", "TableError"}


@pytest.mark.long
@pytest.mark.parametrize("start", range(0, 10_000, 1_000))
def test_ten_thousand_random_tables(tmp_path, start):
    fuzz(tmp_path, range(start, start + 1_000))
