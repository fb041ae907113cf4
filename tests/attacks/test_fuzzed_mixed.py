"""Random mixed tables by random plans, from file to file: what is claimed is counted again by pandas."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import naive_requirements as naive
from attacks.mixed_cases import QUANTITIES, SECRET_K, SECRET_P, Mixed, draw_mixed
from microagg.errors import InputError, TableError
from microagg.evidence import Evidence
from microagg.job import Job, run

GONE = "(missing)"


def as_cells(frame: pd.DataFrame) -> dict[Any, list[Any]]:
    """Columns as lists in which missing values are equal."""
    return {
        name: [GONE if gone else v for v, gone in zip(frame[name], frame[name].isna(), strict=True)]
        for name in frame.columns
    }


def read_back(path: Path) -> dict[Any, list[Any]]:
    if path.suffix == ".parquet":
        return as_cells(pd.read_parquet(path))
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return {name: [GONE if v == "" else v for v in table[name]] for name in table.columns}


def numbers(cells: list[Any], codes: list[Any]) -> np.ndarray:
    """Cells as numbers, codes for missing as NaN."""
    gone = {GONE, *map(str, codes), *(str(float(c)) for c in codes if not isinstance(c, str))}
    return np.array([np.nan if str(v) in gone else float(v) for v in cells])


def is_missing(cells: list[Any], codes: list[Any]) -> np.ndarray:
    gone = {GONE, *map(str, codes), *(str(float(c)) for c in codes if not isinstance(c, str))}
    return np.array([str(v) in gone for v in cells])


def classes(cells: dict[Any, list[Any]], names: list[Any]) -> list[list[int]]:
    """Rows that agree in all of some columns."""
    found = defaultdict(list)
    for row, key in enumerate(zip(*(cells[name] for name in names), strict=True)):
        found[key].append(row)
    return list(found.values())


class Checked:
    """A release, the rows of the original in the order of the file, and all that is to hold."""

    def __init__(self, case: Mixed, evidence: Evidence, target: Path) -> None:
        self.case, self.evidence, self.plan = case, evidence, evidence.plan
        self.after = read_back(target)
        frame = case.frame
        if self.plan.missing.policy == "drop":
            gone = [is_missing(self._cells(frame, n), self._codes(n)) for n in self.protected]
            frame = frame[~np.any(gone, axis=0)].reset_index(drop=True)
        self.rows = len(frame)
        if self.plan.shuffle:
            order = [int(row) for row in self.after["row"]]
            frame = frame.set_index("row", drop=False).loc[order].reset_index(drop=True)
        self.before = as_cells(frame)
        self.frame = frame
        named = [self.plan.unit, *(b.unit.column for b in self.plan.blocks if b.unit is not None)]
        # All columns together are counted in households as soon as one block is.
        self.units = self.units_if(any(name is not None for name in named))
        self.weight = (
            frame["w"].astype(float).to_numpy() if self.plan.weight else np.ones(len(frame))
        )

    def units_if(self, counted: bool) -> list[str] | None:
        return [str(v) for v in self.before["household"]] if counted else None

    @property
    def protected(self) -> list[Any]:
        return [name for block in self.plan.blocks for name in block.columns or ()]

    @staticmethod
    def _cells(frame: pd.DataFrame, name: str) -> list[Any]:
        return as_cells(frame[[name]])[name]

    def _codes(self, name: str) -> list[Any]:
        return self.case.codes.get(name, [])

    def shared(self, rows: list[int], units: list[str] | None) -> int:
        return len(rows) if units is None else len({units[row] for row in rows})

    def check(self) -> None:
        dropped = {*self.plan.drop}
        if self.plan.weight is not None and self.plan.weight.release == "drop":
            dropped.add("w")
        assert list(self.after) == [name for name in self.frame.columns if name not in dropped]
        assert len(self.after[self.protected[0]]) == self.rows
        self.check_promises()
        self.check_totals()
        self.check_missing()
        self.check_untouched()
        self.check_verdict(self.evidence.verdict)
        self.check_relations()

    def promises(self) -> list[tuple[Any, list[Any]]]:
        found = []
        for block in self.plan.blocks:
            strata = self.plan.strata if block.strata is None else block.strata
            beside = list(strata.columns)
            if self.plan.weight is not None and self.plan.weight.release == "mean":
                beside.append("w")
            own = list(block.columns or ())
            sets = [[name] for name in own] if block.per_column else [own]
            found += [(block, [*names, *beside]) for names in sets]
        return found

    def check_promises(self) -> None:
        for block, names in self.promises():
            units = self.units_if(block.unit is not None or self.plan.unit is not None)
            for rows in classes(self.after, names):
                assert self.shared(rows, units) >= block.k, f"{names}: {len(rows)} rows"
                self.check_required(block.require, rows, units)

    def check_required(self, asked: Any, rows: list[int], units: list[str] | None) -> None:
        illness = self.before["illness"]
        for least in asked.distinct.values():
            assert naive.distinct(illness, least, rows) == 0
        for least in asked.entropy.values():
            assert naive.entropy(illness, least, rows) < 1e-9
        for rule in asked.recursive.values():
            assert naive.recursive_holds(illness, rule.c, rule.l, rows)
        for most in asked.closeness.values():
            assert naive.closeness(illness, most, False, rows) < 1e-9
        amounts = self.frame["turnover"].to_numpy()
        for p in asked.p_percent.values():
            assert naive.p_percent_margin(amounts, p, units, rows) < 1e-9
        for rule in asked.n_k.values():
            assert naive.largest_share_margin(amounts, rule.n, rule.k, units, rows) < 1e-9
        if asked.population is not None:
            assert self.weight[rows].sum() >= asked.population - 1e-9

    def check_totals(self) -> None:
        """Sums of weights, and weighted sums of unrounded means, by stratum."""
        released = self.weight
        if self.plan.weight is not None and self.plan.weight.release == "mean":
            released = np.array([float(v) for v in self.after["w"]])
        for block in self.plan.blocks:
            strata = self.plan.strata if block.strata is None else block.strata
            parts = [list(range(self.rows))]
            if strata.columns and not self.evidence.recoded:
                parts = classes(self.before, list(strata.columns))
            for rows in parts:
                assert released[rows].sum() == pytest.approx(self.weight[rows].sum(), rel=1e-9)
            for name in block.columns or ():
                setting = self.plan.column(name)
                whole = self.plan.column(name).round != "no" and name in ("integer", "spiked")
                if name not in QUANTITIES or block.released != "mean" or whole or setting.release:
                    continue
                if self.plan.digits is not None or self.plan.missing.policy in ("majority", "fill"):
                    continue
                x, y = (
                    numbers(cells[name], self._codes(name)) for cells in (self.before, self.after)
                )
                spread = float(np.nanstd(x)) if np.isfinite(x).any() else 0.0
                for rows in parts:
                    there = [row for row in rows if np.isfinite(y[row])]
                    if not there:
                        continue
                    assert np.isfinite(x[there]).all()
                    w, v = self.weight[there], released[there]
                    # Without weights means are rounded to a millionth of the standard deviation.
                    slack = 0.0 if len(set(self.weight)) > 1 else 1e-6 * spread * len(there)
                    total = float((w * x[there]).sum())
                    assert abs(float((v * y[there]).sum()) - total) <= 1e-9 * abs(total) + slack

    def check_missing(self) -> None:
        for name in self.protected:
            before, after = (
                is_missing(c[name], self._codes(name)) for c in (self.before, self.after)
            )
            told = self.evidence.cells[name]
            counts = (before.sum(), (~before & after).sum(), (before & ~after).sum())
            assert (told.missing, told.blanked, told.filled) == counts
            if self.plan.missing.policy == "pattern":
                assert told.filled == 0
            if self.plan.missing.policy in ("fill", "drop", "error"):
                assert told.blanked == 0

    def check_untouched(self) -> None:
        gone = {*self.protected, *self.plan.drop, *self.plan.renumber}
        gone |= {self.plan.weight.column} if self.plan.weight else set()
        gone |= set(self.plan.strata.columns) if self.evidence.recoded else set()
        for name in set(self.frame.columns) - gone:
            same = [
                str(a) == str(b) for a, b in zip(self.before[name], self.after[name], strict=True)
            ]
            if not all(same):  # as a number of another form
                a, b = (numbers(cells[name], []) for cells in (self.before, self.after))
                assert np.array_equal(a, b, equal_nan=True), name
        if self.plan.weight is not None and self.plan.weight.release == "keep":
            kept = [float(v) for v in self.after["w"]]
            assert kept == [float(v) for v in self.before["w"]]
        one_form = "wave" not in self.frame or self.frame["wave"].dtype.kind == "i"
        if (
            self.evidence.recoded and one_form
        ):  # else a recoded column has one form for 1.5 and 1.50
            moved = sum(
                tuple(str(self.before[c][i]) for c in self.plan.strata.columns)
                != tuple(str(self.after[c][i]) for c in self.plan.strata.columns)
                for i in range(self.rows)
            )
            assert self.evidence.recoded == moved
        for name in self.plan.renumber:
            pairs = set(zip(map(str, self.before[name]), map(str, self.after[name]), strict=True))
            assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})

    def check_verdict(self, verdict: str) -> None:
        """Green stands only over a file in which k units share all that is not confidential."""
        if verdict != "green":
            return
        hidden = {*self.plan.confidential, *self.plan.renumber}
        known = [name for name in self.after if name not in hidden]
        k = max(block.k or 1 for block in self.plan.blocks)
        least = min(self.shared(rows, self.units) for rows in classes(self.after, known))
        assert least >= k, f"green, but {known} are shared by {least}"

    def check_relations(self) -> None:
        if self.plan.relations:
            x, y = (numbers(self.after[name], []) for name in ("number", "double"))
            both = np.isfinite(x) & np.isfinite(y)
            assert np.allclose(2 * x[both], y[both], rtol=1e-9)


def secrets(case: Mixed) -> set[str]:
    """Original values of protected quantities, and what a plan does not name, as they would be told."""
    found: set[str] = set()
    for block in case.plan.blocks:
        for name in block.columns or ():
            if name in ("boolean", "ordinal"):
                continue
            codes = {GONE, "-8", "-8.0", "refused", "0.0", "<NA>", "0"}
            for value in as_cells(case.frame[[name]])[name]:
                found |= {str(value), repr(value)} - codes
                if not isinstance(value, str):
                    found |= {str(value).split(".")[0].split(" ")[0]} - codes
    return found


def fuzz(folder: Path, seeds: range, public_of_each: int = 5) -> Counter[str]:
    """Protect random mixed tables; count how they end."""
    ends: Counter[str] = Counter()
    for seed in seeds:
        for path in folder.iterdir():
            path.unlink()
        try:
            ends[protect_one(folder, seed, seed % public_of_each == 0)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}") from error
    return ends


def protect_one(folder: Path, seed: int, public: bool) -> str:
    """Protect one random table, check all of it, and tell how it ended."""
    try:
        case = draw_mixed(seed)
    except InputError:  # settings that exclude each other
        return "no plan"
    source, target = folder / f"in{case.ending}", folder / f"out{case.ending}"
    case.write(source)
    report = folder / "report.html" if public else None
    refused = None
    try:
        evidence = run(Job(source, target, case.plan, report=report, public=public)).evidence
    except (InputError, TableError) as error:
        refused = str(error)
    if refused is not None:
        assert refused.endswith((".", "?")), refused
        assert not [value for value in secrets(case) if value in refused], refused
        assert not target.exists()
        return "refused"
    checked = Checked(case, evidence, target)
    checked.check()
    if report is not None:
        told = report.read_text(), report.with_suffix(".json").read_text()
        for threshold in (SECRET_P, SECRET_K):
            assert str(threshold) not in told[0] + told[1]
        checked.check_verdict(json.loads(told[1])["verdict"])
    return str(evidence.verdict)


def test_random_mixed_tables_keep_every_promise_or_are_refused(tmp_path):
    ends = fuzz(tmp_path, range(60))
    assert ends["amber"] + ends["green"] >= 30
    assert ends["green"] >= 2
    assert set(ends) <= {"green", "amber", "refused", "no plan"}


@pytest.mark.long
@pytest.mark.parametrize("start", range(10_000, 14_000, 500))
def test_four_thousand_random_mixed_tables(tmp_path, start):
    fuzz(tmp_path, range(start, start + 500))
