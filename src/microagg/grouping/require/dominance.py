"""Dominance: no contributor to a group's total can be told from it by another one.

Protects  amounts of firms. A released mean times the size of the group is a total; who knows his own
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
Secrecy   Whoever knows p or k can sharpen the bounds; they stay out of what is published.
Source    Hundepool et al., Handbook on Statistical Disclosure Control, chapter 4.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, shown
from microagg.grouping.require.population import check_amounts
from microagg.grouping.require.requirement import Demand, Requirement, column_words
from microagg.kernels.require_kinds import LARGEST, P_PERCENT
from microagg.plan.settings import as_number, check_count

__all__ = ["LargestShare", "PPercent"]


def _contributors(amounts: Floats, units: Labels | None) -> Labels:
    """Number the contributor of each record; without units each record is one."""
    if units is None:
        return np.arange(len(amounts))
    return np.unique(units, return_inverse=True)[1].reshape(-1)


def _relative(amounts: Floats) -> Floats:
    """Amounts as shares of the largest one, so that no total overflows; the rules do not change."""
    largest = float(amounts.max(initial=0.0))
    return amounts / largest if largest > 0 else amounts


@dataclass(frozen=True, eq=False)
class PPercent(Requirement):
    """The p % rule in every group.

    Parameters
    ----------
    amounts : floats of shape (n,), from 0 up
    p : number above 0, in percent
    units : whole numbers of shape (n,), the contributor of each record; None: each is one
    column : name of the column, for messages

    >>> wanted = PPercent(np.array([52_000.0, 50_000.0, 8_000.0]), 10)
    >>> wanted.violation([0, 1, 2]), round(wanted.violation([0, 1]), 3)
    (0.0, 1.0)
    """

    amounts: Floats = field(repr=False)
    p: float = field(repr=False)
    units: Labels | None = field(default=None, repr=False)
    column: str = ""

    def __post_init__(self) -> None:
        number = as_number(self.p)
        if number is None or not 0 < number < np.inf:
            raise InputError(f"p of the p % rule is a number above 0; got {shown(self.p)}.")
        check_amounts(self.amounts, self.column, "The p % rule")

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        codes = _contributors(self.amounts, self.units)
        return Demand(P_PERCENT, self.p / 100, codes, _relative(self.amounts))

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return f"the p % rule with p = {self.p:g} for {column_words(self.column)} in each group"

    def public(self) -> str:
        """Say the same without the threshold."""
        return f"a p % rule for {column_words(self.column)} in each group"

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        return (
            f"The p % rule is asked of {column_words(self.column)} in each group; the whole table as one "
            "group breaks it, since two contributors have nearly all of the total. Lower p, or leave the "
            "column out of the release."
        )


@dataclass(frozen=True, eq=False)
class LargestShare(Requirement):
    """The (n, k) rule in every group.

    Parameters
    ----------
    amounts : floats of shape (n,), from 0 up
    count : int, at least 1: the n of the rule
    percent : number above 0, under 100: the k of the rule
    units : whole numbers of shape (n,), the contributor of each record; None: each is one
    column : name of the column, for messages

    >>> wanted = LargestShare(np.array([52.0, 50.0, 8.0]), 2, 90.9)
    >>> wanted.feasible(), LargestShare(np.array([50.0, 49.0, 1.0]), 1, 90.0).feasible()
    (False, True)
    """

    amounts: Floats = field(repr=False)
    count: int = field(repr=False)
    percent: float = field(repr=False)
    units: Labels | None = field(default=None, repr=False)
    column: str = ""

    def __post_init__(self) -> None:
        check_count("n of the (n, k) rule", self.count)
        number = as_number(self.percent)
        if number is None or not 0 < number < 100:
            raise InputError(
                f"k of the (n, k) rule is a percentage above 0, under 100; got {shown(self.percent)}."
            )
        check_amounts(self.amounts, self.column, "The (n, k) rule")

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        codes = _contributors(self.amounts, self.units)
        amounts = _relative(self.amounts)
        return Demand(LARGEST, self.percent / 100, codes, amounts, extra=float(self.count))

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return (
            f"the {self.count} largest contributors with at most {self.percent:g} % of the total of "
            f"{column_words(self.column)} in each group"
        )

    def public(self) -> str:
        """Say the same without the thresholds."""
        return f"an (n, k) dominance rule for {column_words(self.column)} in each group"

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        return (
            f"The (n, k) rule is asked of {column_words(self.column)} in each group; the whole table as one "
            "group breaks it, since a few contributors have nearly all of the total. Raise k, or leave the "
            "column out of the release."
        )
