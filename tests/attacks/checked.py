"""A release beside its original, and the checks that every release has to pass; counted by pandas."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import naive_requirements as naive
from attacks.claims import CATEGORIES, check_admissible, check_aggregates, check_verdict
from attacks.counted import GONE, steps_of
from attacks.counted import cells as as_cells
from attacks.mixed_cases import QUANTITIES, Mixed


def read_back(path: Path) -> dict[Any, list[Any]]:
    if path.is_dir() or path.suffix == ".parquet":
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
    """A release, the rows of the original in the order of the file, and all that is to hold.

    ``claims`` has what is said of the release: its verdict, cells and recoded records. Rows of a file
    in random order are found by their number.
    """

    def __init__(self, case: Mixed, claims: Any, target: Path) -> None:
        self.case, self.claims, self.plan = case, claims, case.plan
        self.after = read_back(target)
        frame = case.frame
        if self.plan.missing.policy == "drop":
            gone = [is_missing(self._cells(frame, n), self._codes(n)) for n in self.protected]
            frame = frame[~np.any(gone, axis=0)].reset_index(drop=True)
        self.rows = len(frame)
        if not self.plan.keep_order:
            order = [float(row) for row in self.after["row"]]
            frame = frame.set_index("row", drop=False).loc[order].reset_index(drop=True)
        self.before = as_cells(frame)
        self.frame = frame
        # All columns together are counted in households as soon as one block is.
        self.units = self.units_if(bool(self.named_units))
        self.weight = (
            frame["w"].astype(float).to_numpy() if self.plan.weight else np.ones(len(frame))
        )

    @property
    def named_units(self) -> set[Any]:
        """Units of the plan and of its blocks."""
        return {block.unit.column for block in self.plan.blocks if block.unit is not None} | {
            self.plan.unit
        } - {None}

    def counts_units(self, block: Any) -> bool:
        """Whether k of a block counts units."""
        own = self.plan.unit if block.unit is None else block.unit.column
        return own is not None

    def moves_together(self, block: Any) -> bool:
        """Whether whole units of a block move together."""
        mode = self.plan.unit_section.mode if block.unit is None else block.unit.mode
        return self.counts_units(block) and mode == "together"

    def strata_of(self, block: Any) -> list[Any]:
        """Strata of a block."""
        return list((self.plan.strata if block.strata is None else block.strata).columns)

    @property
    def shared_columns(self) -> list[Any]:
        """All protected columns, and what groups share beside them."""
        strata = [name for block in self.plan.blocks for name in self.strata_of(block)]
        mean = self.plan.weight is not None and self.plan.weight.release == "mean"
        return list(dict.fromkeys([*self.protected, *strata, *(["w"] if mean else [])]))

    def fewest(self, names: list[Any]) -> int:
        """Units, or records, of the rarest combination in the file."""
        return min(self.shared(rows, self.units) for rows in classes(self.after, names))

    def classes_of(self, names: list[Any]) -> list[list[int]]:
        """Rows of the file that agree in some columns."""
        return classes(self.after, names)

    def held_by_k(self, block: Any, name: Any) -> set[str]:
        """Categories that at least k units of the original hold."""
        units = self.units_if(self.counts_units(block))
        held = defaultdict(set)
        gone = is_missing(self.before[name], self._codes(name))
        for row in np.flatnonzero(~gone).tolist():
            held[str(self.before[name][row])].add(row if units is None else units[row])
        return {value for value, own in held.items() if len(own) >= block.k}

    def units_if(self, counted: bool) -> list[str] | None:
        """The unit of each row, if units are counted."""
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

    def check(self) -> int:
        """Check everything; return how many released values were compared with their aggregates."""
        dropped = {*self.plan.drop}
        if self.plan.weight is not None and self.plan.weight.release == "drop":
            dropped.add("w")
        assert list(self.after) == [name for name in self.frame.columns if name not in dropped]
        assert len(self.after[self.protected[0]]) == self.rows
        self.check_promises()
        self.check_totals()
        self.check_missing()
        self.check_untouched()
        self.check_relations()
        check_admissible(self)
        check_verdict(self, self.claims)
        return check_aggregates(self)

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
            units = self.units_if(self.counts_units(block))
            for rows in classes(self.after, names):
                assert self.shared(rows, units) >= block.k, f"{names}: {len(rows)} rows"
                self.check_required(block.require, rows, units)

    def check_required(self, asked: Any, rows: list[int], units: list[str] | None) -> None:
        illness = self.before["illness"]
        for least in asked.distinct.values():
            assert naive.distinct(illness, least, rows) == 0
        for least in asked.entropy.values():
            assert naive.entropy(illness, least, rows) < 1e-9
        for most in asked.closeness.values():
            assert naive.closeness(illness, most, False, rows) < 1e-9
        amounts = (
            self.frame["turnover"].to_numpy() if "turnover" in self.frame else np.zeros(self.rows)
        )
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
            if strata.columns and not self.claims.recoded:
                parts = classes(self.before, list(strata.columns))
            for rows in parts:
                total = self.weight[rows].sum()
                rounded = 1e-6 * np.std(self.weight, ddof=1) * len(rows)
                assert released[rows].sum() == pytest.approx(total, rel=1e-9, abs=rounded)
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
                    # Means and the weight are rounded to a millionth of the standard deviation, weighted
                    # means to the steps of the column, so that its total over all strata stays.
                    slack = 1e-6 * spread * max(w.sum(), len(there))
                    if self.rounds_to_steps(block, name):
                        step = float(steps_of(x[np.isfinite(x)])[1])
                        among_all = len(parts) == 1 and name not in self.plan.related
                        slack += step * (self.weight.mean() if among_all else w.sum())
                    slack += 1e-6 * np.std(self.weight, ddof=1) * np.abs(y[there]).sum()
                    total = float((w * x[there]).sum())
                    assert abs(float((v * y[there]).sum()) - total) <= 1e-9 * abs(total) + slack

    def rounds_to_steps(self, block: Any, name: Any) -> bool:
        """Whether a column's means are weighted, and so rounded to the steps of its values."""
        weighted = len(set(self.weight.tolist())) > 1 and block.released == "mean"
        return weighted and self.plan.digits is None and name not in CATEGORIES

    def check_missing(self) -> None:
        for name in self.protected:
            before, after = (
                is_missing(c[name], self._codes(name)) for c in (self.before, self.after)
            )
            told = self.claims.cells[name]
            counts = (before.sum(), (~before & after).sum(), (before & ~after).sum())
            assert (told.missing, told.blanked, told.filled) == counts
            if self.plan.missing.policy == "pattern":
                assert told.filled == 0
            if self.plan.missing.policy in ("fill", "drop", "error") and name not in CATEGORIES:
                assert told.blanked == 0

    def check_untouched(self) -> None:
        gone = {*self.protected, *self.plan.drop, *self.plan.renumber}
        gone |= {self.plan.weight.column} if self.plan.weight else set()
        gone |= set(self.plan.strata.columns) if self.claims.recoded else set()
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
        if self.claims.recoded and one_form:  # else a recoded column has one form for 1.5 and 1.50
            moved = sum(
                tuple(str(self.before[c][i]) for c in self.plan.strata.columns)
                != tuple(str(self.after[c][i]) for c in self.plan.strata.columns)
                for i in range(self.rows)
            )
            assert self.claims.recoded == moved
        for name in self.plan.renumber:
            pairs = set(zip(map(str, self.before[name]), map(str, self.after[name]), strict=True))
            assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})

    def check_relations(self) -> None:
        if self.plan.relations:
            x, y = (numbers(self.after[name], []) for name in ("number", "double"))
            both = np.isfinite(x) & np.isfinite(y)
            assert np.allclose(2 * x[both], y[both], rtol=1e-9)
