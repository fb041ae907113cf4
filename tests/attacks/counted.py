"""Counts in released files that share no code with the package: pandas and plain Python only."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pandas as pd

GONE = "(missing)"


def cells(frame: pd.DataFrame) -> dict[Any, list[Any]]:
    """Columns as lists in which missing values are equal."""
    return {
        name: [GONE if gone else v for v, gone in zip(frame[name], frame[name].isna(), strict=True)]
        for name in frame.columns
    }


def sets_of_rows(
    columns: dict[Any, list[Any]], link: Any, shown: Iterable[Any]
) -> dict[Any, tuple[Any, ...]]:
    """Released rows of each value of a linking column, sorted; a row without a value is alone."""
    found: dict[Any, list[Any]] = defaultdict(list)
    rows = zip(*(columns[name] for name in shown), strict=True)
    for at, (own, row) in enumerate(zip(columns[link], rows, strict=True)):
        found[("none", at) if own == GONE else own].append(tuple(map(str, row)))
    return {own: tuple(sorted(rows)) for own, rows in found.items()}


def rare(kinds: dict[Any, Any], k: int) -> tuple[int, int]:
    """How many have a kind of their own, and how many share theirs with fewer than k - 1 others."""
    times = Counter(kinds.values())
    return sum(times[kind] == 1 for kind in kinds.values()), sum(
        times[kind] < k for kind in kinds.values()
    )


def steps_of(values: Iterable[float]) -> tuple[Fraction, Fraction]:
    """One of some numbers as they are written, and the step of which all are multiples apart from it."""
    written = {Fraction(str(value)) for value in values}
    unit = math.lcm(*(value.denominator for value in written))
    first = min(written)
    return first, Fraction(math.gcd(*(int((value - first) * unit) for value in written)), unit)
