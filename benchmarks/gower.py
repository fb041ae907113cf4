"""Mixed data: our geometry against groups by Gower's distance, as peers form them.

The twins are plain numpy, as mixed data are done elsewhere: every round computes Gower's distance (the mean
over columns of |a − b|/range for numbers and of a ≠ b for categories) from one record, or from the
record of means and modes, to all that are left. ``gower_mdav`` takes groups of k around the record
farthest from the middle and the record farthest from that one; ``k_member`` grows each group by the record
that is nearest to what the group would release, O(n²) rounds of work. All release means and modes.

Gower's distance counts columns unequally: two records differ by 1 in a category, but in a number with a long
tail hardly at all. ``ours`` gives all columns the same inertia; ``ours, weighed`` gives each an importance of
its part in the mean Gower distance of two records, which is a setting of the plan.

Loss is measured twice: ours, the mean over columns of SSE/SST (categories by Gini's index); and theirs, the
mean Gower distance of a record from what is released for it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.harness import growth_exponent, show
from microagg.base.typing import Floats, Labels
from microagg.encode.categories import modes
from microagg.encode.space import Space, space_of
from microagg.grouping.group_table import group
from microagg.grouping.one_cell import Problem
from microagg.kernels.labels import group_means, sum_of_squares
from microagg.plan.block import Block
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable, variable_of

K = 5
# Categories with the shares of their levels, roughly those of a census of adults.
LEVELS = {
    "work": [0.70, 0.08, 0.06, 0.06, 0.04, 0.03, 0.02, 0.01],
    "education": [
        0.32,
        0.22,
        0.16,
        0.05,
        0.05,
        0.04,
        0.03,
        0.03,
        0.03,
        0.02,
        0.02,
        0.01,
        0.01,
        0.01,
    ],
    "marital": [0.46, 0.33, 0.14, 0.03, 0.03, 0.01],
    "occupation": [0.13, 0.13, 0.12, 0.12, 0.11, 0.11, 0.07, 0.05, 0.04, 0.04, 0.03, 0.03, 0.02],
    "relation": [0.40, 0.26, 0.16, 0.11, 0.05, 0.02],
    "sex": [0.67, 0.33],
}


def census(n: int, seed: int = 0) -> pd.DataFrame:
    """Simulate adults: two traits that all columns share a part of, margins like those of a census."""
    rng = np.random.default_rng(seed)
    wealth, age = rng.normal(size=(2, n))

    def with_share(trait: Floats, share: float) -> Floats:
        return share * trait + np.sqrt(1 - share**2) * rng.normal(size=n)

    found: dict[str, Any] = {}
    for j, (name, shares) in enumerate(LEVELS.items()):
        ranks = with_share(wealth if j % 2 else age, 0.6).argsort().argsort() / n
        level = np.searchsorted(np.cumsum(shares)[:-1], ranks, side="right")
        found[name] = [f"{name} {number}" for number in level]
    found["age"] = np.clip(38 + 13 * with_share(age, 0.9), 17, 90).round()
    found["schooling"] = np.clip(10 + 2.5 * with_share(wealth, 0.7), 1, 16).round()
    found["weight"] = np.exp(12 + 0.5 * rng.normal(size=n)).round()
    gain = with_share(wealth, 0.5)
    found["gain"] = np.where(gain > 1.4, np.exp(8 + gain), 0).round()
    found["loss"] = np.where(rng.random(n) < 0.05, 1870 + 370 * rng.normal(size=n), 0).round()
    found["hours"] = np.clip(40 + 12 * with_share(wealth, 0.3), 1, 99).round()
    return pd.DataFrame(found)


class Table:
    """Numbers over their range and categories as codes, for Gower's distance."""

    def __init__(self, variables: list[Variable]) -> None:
        numbers = [v.values for v in variables if not v.is_category]
        self.numbers = np.column_stack([x / max(np.ptp(x), 1e-300) for x in numbers])
        self.codes = np.column_stack([v.level_numbers for v in variables if v.is_category])
        self.columns = len(variables)

    def distances(self, left: Labels, number: Floats, code: Labels) -> Floats:
        """From one record, or what would be one, to those that are left."""
        apart = np.abs(self.numbers[left] - number).sum(axis=1)
        return np.asarray((apart + (self.codes[left] != code).sum(axis=1)) / self.columns)

    def middle(self, rows: Labels) -> tuple[Floats, Labels]:
        """Means and modes."""
        code = [np.bincount(column).argmax() for column in self.codes[rows].T]
        return self.numbers[rows].mean(axis=0), np.array(code)

    def released_distance(self, labels: Labels) -> float:
        """Mean Gower distance of the records from what their groups release."""
        g = int(labels.max()) + 1
        total = 0.0
        for column in self.numbers.T:
            total += np.abs(column - group_means(column, labels)[labels]).sum()
        for codes in self.codes.T:
            total += np.count_nonzero(modes(codes, labels, g)[labels] != codes)
        return float(total / self.columns / len(labels))


def gower_mdav(table: Table, k: int) -> Labels:
    """Groups of k from the outside in, by Gower's distance."""
    labels = np.empty(len(table.codes), dtype=np.int64)
    left, groups = np.arange(len(labels)), 0
    while len(left) >= 3 * k:
        seed = left[table.distances(left, *table.middle(left)).argmax()]
        for _ in range(2):
            distance = table.distances(left, table.numbers[seed], table.codes[seed])
            taken = np.argpartition(distance, k - 1)[:k]
            labels[left[taken]] = groups
            groups += 1
            distance[taken] = -1.0
            seed = left[distance.argmax()]
            left = np.delete(left, taken)
    if len(left) >= 2 * k:
        seed = left[table.distances(left, *table.middle(left)).argmax()]
        distance = table.distances(left, table.numbers[seed], table.codes[seed])
        taken = np.argpartition(distance, k - 1)[:k]
        labels[left[taken]] = groups
        groups += 1
        left = np.delete(left, taken)
    labels[left] = groups
    return labels


def k_member(table: Table, k: int) -> Labels:
    """Grow groups one record at a time, each the nearest to what the group would release."""
    labels = np.empty(len(table.codes), dtype=np.int64)
    left, groups, seed = np.arange(len(labels)), 0, 0
    while len(left) >= 2 * k:
        distance = table.distances(left, table.numbers[seed], table.codes[seed])
        members = [int(left[distance.argmax()])]
        left = left[left != members[0]]
        while len(members) < k:
            nearest = table.distances(left, *table.middle(np.array(members))).argmin()
            members.append(int(left[nearest]))
            left = np.delete(left, nearest)
        labels[members] = groups
        groups += 1
        seed = members[0]
    labels[left] = groups
    return labels


def ours(space: Space, effort: str) -> Labels:
    """Groups by the method auto on the encoded matrix."""
    block = Block(k=K, options={"effort": effort})
    return group(Problem(space, block), np.zeros(len(space.matrix), dtype=np.int64)).labels


def weighed(variables: list[Variable]) -> list[Variable]:
    """Give each column the importance that it has in the mean Gower distance of two records."""
    found = []
    for variable in variables:
        if variable.is_category:
            shares = np.bincount(variable.level_numbers) / len(variable)
            part = 1 - np.square(shares).sum()
        else:
            x = np.sort(variable.values)
            n = len(x)
            pairs = (
                2 * ((2 * np.arange(n) - n + 1) @ x) / n**2
            )  # mean |a − b|, from the sorted values
            part = pairs / max(np.ptp(x), 1e-300)
        found.append(replace(variable, setting=replace(variable.setting, importance=float(part))))
    return found


def timed(work: Callable[[], Labels]) -> tuple[float, Labels]:
    started = time.perf_counter()
    labels = work()
    return time.perf_counter() - started, labels


def compare(n: int, with_k_member: bool) -> dict[str, tuple[float, float, float]]:
    """Seconds and both losses of each way, the time to encode included in ours."""
    frame = Frame(census(n))
    variables = [variable_of(frame, name) for name in frame.names]
    table = Table(variables)
    ways: dict[str, Callable[[], Labels]] = {
        "ours, fast": lambda: ours(space_of(variables), "fast"),
        "ours, balanced": lambda: ours(space_of(variables), "balanced"),
        "ours, weighed, fast": lambda: ours(space_of(weighed(variables)), "fast"),
        "ours, weighed": lambda: ours(space_of(weighed(variables)), "balanced"),
        "gower mdav": lambda: gower_mdav(table, K),
    }
    if with_k_member:
        ways["k-member"] = lambda: k_member(table, K)
    found = {}
    space = space_of(variables)
    for name, way in ways.items():
        seconds, labels = timed(way)
        assert np.bincount(labels).min() >= K
        lost = 100 * sum_of_squares(space.scaled, labels) / np.square(space.scaled).sum()
        found[name] = (seconds, float(lost), table.released_distance(labels))
    return found


def main() -> None:
    compare(1_000, with_k_member=False)  # compile
    sizes = [1_000, 3_000, 10_000, 30_000] if "--large" in sys.argv else [1_000, 3_000, 10_000]
    results = {n: compare(n, with_k_member=True) for n in sizes}
    rows = []
    for n, found in results.items():
        for name, (seconds, lost, distance) in found.items():
            first = found["ours, weighed, fast"]
            ratios = [seconds / first[0], lost / first[1], distance / first[2]]
            rows.append([f"{n:,}", name, seconds, lost, distance, *ratios])
    header = ["records", "way", "seconds", "SSE/SST %", "mean Gower", "× time", "× SSE", "× Gower"]
    show(f"12 mixed columns, k = {K}; ratios to ours, weighed, fast", header, rows)
    growth = [
        [name, f"n^{growth_exponent(sizes, [results[n][name][0] for n in sizes]):.2f}"]
        for name in results[sizes[0]]
    ]
    show("growth of time with the number of records", ["way", "growth"], growth)


if __name__ == "__main__":
    main()
