"""Rules of dominance: no contributor can compute another's amount from a group's total.

Protects  amounts of firms. A released mean times the size of the group is a total; a firm that knows its own
          contribution, or a coalition that knows several, can bound the largest of the others.
Rules     p %: total − x₁ − x₂ ≥ (p/100)·x₁: the second largest contributor cannot tell the largest one
          within p %. (n, k): the n largest contributions are at most k % of the total.
          Contributions of one contributor (a firm with several records) are added before.
Union     Contributions of a union are the sum a + b of two vectors over contributors. The sum S_j of
          the j largest is subadditive, S_j(a+b) ≤ S_j(a) + S_j(b), since the contributors that are
          largest in the union are some j in each group; the total is additive. p %: the rest T − S₂ of
          a union is at least the sum of the rests, its x₁ = S₁ at most the sum of the x₁. (n, k):
          S_n(a+b) ≤ S_n(a) + S_n(b) ≤ k·T(a) + k·T(b). Both are closed under union.
          It needs amounts from 0 up: negative ones are refused.
Secrecy   Someone who knows p or k can sharpen the bounds, so they are not published.
Source    Hundepool et al., Handbook on Statistical Disclosure Control, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from microagg.base.formatting import percent
from microagg.base.typing import Floats, Labels
from microagg.grouping.require.requirement import Demand, Requirement, check_amounts, column_words
from microagg.kernels.require_kinds import LARGEST, P_PERCENT


@dataclass(frozen=True, eq=False)
class PPercent(Requirement):
    """The p % rule in every group.

    >>> wanted = PPercent(np.array([52_000.0, 50_000.0, 8_000.0]), 10)
    >>> wanted.violation([0, 1, 2]), round(wanted.violation([0, 1]), 3)
    (0.0, 1.0)
    """

    amounts: Floats = field(repr=False)
    p: float = field(repr=False)
    units: Labels | None = field(default=None, repr=False)
    column: str = ""

    def __post_init__(self) -> None:
        check_amounts(self.amounts, self.column, "The p % rule")

    def demand(self) -> Demand:
        codes, amounts = _contributors(self.amounts, self.units), _relative(self.amounts)
        return Demand(P_PERCENT, self.p / 100, codes, amounts)

    def figure(self, labels: Labels) -> float:
        """Return the least 100·(total − x₁ − x₂)/x₁ of a group."""
        totals, largest = _contributions(self.amounts, self.units, labels, 2)
        rest, first = totals - largest.sum(axis=1), largest[:, 0]
        share = np.divide(100 * rest, first, out=np.full(len(rest), np.inf), where=first > 0)
        return float(share.min())

    def say(self, figure: float) -> str:
        """Write a figure of a group in percent."""
        return percent(figure)

    def describe(self) -> str:
        return f"the p % rule with p = {self.p:g} for {column_words(self.column)} in each group"

    def reason(self) -> str:
        return (
            f"The p % rule is asked of {column_words(self.column)} in each group; the whole table as one "
            "group breaks it, since two contributors have nearly all of the total. Lower p, or leave the "
            "column out of the release."
        )


@dataclass(frozen=True, eq=False)
class LargestShare(Requirement):
    """The (n, k) rule in every group.

    >>> wanted = LargestShare(np.array([52.0, 50.0, 8.0]), 2, 90.9)
    >>> wanted.feasible(), LargestShare(np.array([50.0, 49.0, 1.0]), 1, 90.0).feasible()
    (False, True)
    """

    amounts: Floats = field(repr=False)
    count: int = field(repr=False)  # the n of the rule
    percent: float = field(repr=False)  # the k of the rule
    units: Labels | None = field(default=None, repr=False)
    column: str = ""
    larger_is_worse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_amounts(self.amounts, self.column, "The (n, k) rule")

    def demand(self) -> Demand:
        codes, amounts = _contributors(self.amounts, self.units), _relative(self.amounts)
        return Demand(LARGEST, self.percent / 100, codes, amounts, extra=float(self.count))

    def figure(self, labels: Labels) -> float:
        """Return the largest share of a group's total, in percent, that its n largest contributors have."""
        totals, largest = _contributions(self.amounts, self.units, labels, self.count)
        sums = largest.sum(axis=1)
        share = np.divide(sums, totals, out=np.zeros(len(sums)), where=totals > 0)
        return 100 * float(share.max())

    def say(self, figure: float) -> str:
        """Write a figure of a group in percent."""
        return percent(figure)

    def describe(self) -> str:
        return (
            f"the {self.count} largest contributors with at most {self.percent:g} % of the total of "
            f"{column_words(self.column)} in each group"
        )

    def reason(self) -> str:
        return (
            f"The (n, k) rule is asked of {column_words(self.column)} in each group; the whole table as one "
            "group breaks it, since a few contributors have nearly all of the total. Raise k, or leave the "
            "column out of the release."
        )


def _contributors(amounts: Floats, units: Labels | None) -> Labels:
    """Return the number of each record's contributor: its unit, or the record where there are no units."""
    return np.arange(len(amounts)) if units is None else np.unique(units, return_inverse=True)[1]


def _relative(amounts: Floats) -> Floats:
    """Amounts as shares of the largest one, so that no total overflows; the rules do not change."""
    largest = float(amounts.max(initial=0.0))
    return amounts / largest if largest > 0 else amounts


def _contributions(
    amounts: Floats, units: Labels | None, labels: Labels, count: int
) -> tuple[Floats, Floats]:
    """Total of each group, and its largest contributions, (g, count); those of one unit are added."""
    contributors = _contributors(amounts, units)
    m = int(contributors.max()) + 1
    pairs, rank = np.unique(labels * m + contributors, return_inverse=True)
    group, added = pairs // m, np.bincount(rank, weights=amounts)
    order = np.lexsort((-added, group))
    group, added = group[order], added[order]
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    largest = np.zeros((int(labels.max()) + 1, count))
    among = rank < count
    largest[group[among], rank[among]] = added[among]
    return np.bincount(labels, weights=amounts).astype(np.float64), largest
