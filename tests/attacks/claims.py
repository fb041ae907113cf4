"""What the command claims about a release (its JSON and exit code), held against counts by other means.

Nothing here calls the package: the file that was written, the original and the plan are read, and every
figure is counted by pandas and plain Python.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from attacks.counted import GONE, rare, sets_of_rows, steps_of

# Cautions that come from signs, not from counts of classes: which columns look like ids, or give others away.
SIGNS = (
    "identif",
    "looks like an id",
    "gives",
    "follows from",
    "one and the same",
    "of the groups",
)
LEVELS = ["lowlevel", "midlevel", "toplevel"]
CATEGORIES = ("boolean", "nominal", "ordinal", "hierarchy")


class Cells(NamedTuple):
    """Cells of a column that are no aggregate."""

    missing: int = 0
    blanked: int = 0
    filled: int = 0


@dataclass(frozen=True)
class Claims:
    """The JSON of the command, as the checks need it."""

    plan: Any
    said: dict[str, Any]
    exit_code: int

    @property
    def verdict(self) -> str:
        return str(self.said["verdict"])

    @property
    def recoded(self) -> int:
        return int(self.said.get("records_in_another_stratum", 0))

    @property
    def cells(self) -> Any:
        found = self.said.get("missing", {}).get("columns", {})
        told = {name: Cells(c["missing"], c["blanked"], c["filled"]) for name, c in found.items()}
        return defaultdict(Cells, told)

    @property
    def cautions(self) -> set[tuple[str, tuple[str, ...]]]:
        """Severity and columns of each, by which engines are compared."""
        return {(c["severity"], tuple(c["columns"])) for c in self.said["cautions"]}

    def has_sign(self) -> bool:
        """Whether an amber caution is about a sign."""
        return any(
            c["severity"] == "amber"
            and (any(word in c["words"] for word in SIGNS) or {"turnover", "row"} & {*c["columns"]})
            for c in self.said["cautions"]
        )


def reasons_for_amber(checked: Any) -> list[str]:
    """Why a release cannot be green, counted in the written file."""
    plan, after = checked.plan, checked.after
    found = []
    k = min(block.k for block in plan.blocks)
    if k == 1:
        found.append("k = 1")
    if len(plan.blocks) > 1:
        found.append("several blocks")
    if any(block.per_column and len(block.columns) > 1 for block in plan.blocks):
        found.append("columns by themselves")
    hidden = {*plan.confidential, *plan.renumber}
    shown = [name for name in after if name not in hidden]
    for what, names in (("protected", checked.shared_columns), ("known", shown)):
        if checked.fewest(names) < k:
            found.append(f"{what} values are shared by fewer than k")
    if "illness" in plan.confidential and _disclosed(after["illness"], checked.classes_of(shown)):
        found.append("records that look alike disclose a confidential value")
    strata = {name for block in plan.blocks for name in checked.strata_of(block)}
    for name in after:
        if name not in ("household",) or name in strata:
            continue
        if name in plan.renumber or "household" in checked.named_units:
            rows = [other for other in shown if other != name]
            kinds = sets_of_rows(after, name, rows)
            if max(map(len, kinds.values())) > 1 and rare(kinds, k)[1]:
                found.append(f"sets of rows of {name} are shared by fewer than k")
    return found


def _disclosed(values: list[Any], rows_alike: list[list[int]]) -> int:
    """Records whose confidential value all have who look like them, unless it is common.

    Half of everybody has a common value; of numbers with many values, more than a tenth.
    """
    times = Counter(values)
    amounts = len(times) >= 13 and all(value == GONE or isinstance(value, Real) for value in times)
    often = len(values) / 10 if amounts else len(values) / 2 - 0.5
    return sum(
        len(rows)
        for rows in rows_alike
        if len({values[row] for row in rows}) == 1 and times[values[rows[0]]] <= often
    )


def check_verdict(checked: Any, claims: Claims) -> None:
    """Green exactly if nothing speaks against it; amber exits with 0 and refusals with 2."""
    assert claims.exit_code == (1 if claims.verdict == "red" else 0)
    against = reasons_for_amber(checked)
    if claims.verdict == "green":
        assert not against, f"green, but {against}"
    elif claims.verdict == "amber":
        assert against or claims.has_sign(), f"amber without a reason: {claims.said['cautions']}"


def check_admissible(checked: Any) -> None:
    """No category is released that fewer than k units hold."""
    for block in checked.plan.blocks:
        units = checked.units_if(checked.counts_units(block))
        for name in block.columns:
            if name not in CATEGORIES:
                continue
            held = defaultdict(set)
            for row, value in enumerate(checked.before[name]):
                held[str(value)].add(row if units is None else units[row])
            codes = {GONE, *map(str, checked.case.codes.get(name, []))}
            for value in {str(v) for v in checked.after[name]} - codes:
                below = {
                    own for level, rows in held.items() if level.startswith(value) for own in rows
                }
                own = (
                    held[value] if value in held else below if value != "*" else range(checked.rows)
                )
                assert len(own) >= block.k, f"{name}: {value} is held by {len(own)}"


def check_aggregates(checked: Any) -> int:
    """Released values are the aggregates of the records that share them; return how many were compared.

    Groups that release the same values are one class in the file, and what is the mean, the most frequent
    category or the nearest level of each is so of their union.
    """
    compared = 0
    for block, names in checked.promises():
        if checked.moves_together(block):  # values of a household are means over several classes
            continue
        for rows in checked.classes_of(names):
            for name in names:
                if name in (block.columns or ()):
                    compared += _check_aggregate(checked, block, name, rows)
    return compared


def _check_aggregate(checked: Any, block: Any, name: str, rows: list[int]) -> int:
    plan, codes = checked.plan, checked.case.codes.get(name, [])
    gone = {GONE, *map(str, codes), *(str(float(c)) for c in codes if not isinstance(c, str))}
    released = checked.after[name][rows[0]]
    there = [row for row in rows if str(checked.before[name][row]) not in gone]
    if str(released) in gone or not there:
        return 0
    weights = checked.weight[there]
    if name in CATEGORIES:
        _check_category(checked, block, name, str(released), there, weights)
        return 1
    setting = plan.column(name)
    if name == "date" or setting.release or block.released not in ("mean", "median"):
        return 0
    x = np.array([float(checked.before[name][row]) for row in there])
    y = float(released)
    all_values = [float(v) for v in checked.before[name] if str(v) not in gone]
    spread = np.std(all_values)
    slack = 1e-5 * spread + 1e-9 * abs(y)
    if plan.digits is not None:
        slack += 0.5 * 10.0**-plan.digits
    if setting.round != "no":
        slack += {"nearest": 0.5, "totals": 2.0}[setting.round] + 1e-9
    if checked.rounds_to_steps(block, name):
        first, step = steps_of(all_values)
        slack += 2 * float(step)
        if step > 1e-6 * spread:
            steps = (Fraction(str(y)) - first) / (step or 1)
            assert steps.denominator == 1, f"{name}: {y} has finer digits than the values"
    if block.released == "mean" or name == "spiked":  # other aggregates are of numbers and dates
        mean = float((weights * x).sum() / weights.sum())
        assert abs(mean - y) <= slack, f"{name}: {y} is not the mean {mean}"
        return 1
    if len(set(weights.tolist())) > 1:
        return 0
    assert 2 * np.sum(x <= y + slack) >= len(x), f"{name}: {y} is below the median"
    assert 2 * np.sum(x >= y - slack) >= len(x), f"{name}: {y} is above the median"
    return 1


def _check_category(
    checked: Any, block: Any, name: str, released: str, there: list[int], weights: np.ndarray
) -> None:
    own = [str(checked.before[name][row]) for row in there]
    votes: Counter[str] = Counter()
    for value, weight in zip(own, weights.tolist(), strict=True):
        votes[value] += weight
    able = checked.held_by_k(block, name)
    if name in ("boolean", "nominal"):
        most = max(votes[value] for value in votes if value in able)
        assert votes[released] >= most - 1e-9, f"{name}: {released} is not the most frequent"
    elif name == "ordinal" and checked.plan.column(name).release is None:
        places = np.array([LEVELS.index(value) for value in own])
        mean = float((weights * places).sum() / weights.sum())
        least = min(abs(LEVELS.index(level) - mean) for level in able)
        assert abs(LEVELS.index(released) - mean) <= least + 1e-9, (
            f"{name}: {released} is not nearest"
        )
    elif name == "hierarchy" and checked.plan.column(name).release == "node":
        assert released == "*" or all(value.startswith(released) for value in own)
