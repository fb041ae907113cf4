"""Rules about the amounts and the survey weights of each group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from microagg.base.formatting import number, percent, share
from microagg.base.typing import Floats, Labels
from microagg.grouping.require.requirement import Demand, Requirement, check_amounts
from microagg.kernels.require_kinds import LARGEST, P_PERCENT, POPULATION, RISK

# As p nears 1 the formulas of the risk are 0/0; from here on a series is more exact.
_NEAR_ONE = 1e-4


class _Dominance(Requirement):
    """Rules of dominance: no contributor can compute another's amount from a group's total.

    Protects  amounts of firms. A released mean times the size of the group is a total; a firm that knows its
              own contribution, or a coalition that knows several, can bound the largest of the others.
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

    amounts: Floats
    units: Labels | None

    def say(self, figure: float) -> str:
        return percent(figure)

    def _contributors(self) -> Labels:
        """Return the number of each record's contributor: its unit, or itself where there are no units."""
        if self.units is None:
            return np.arange(len(self.amounts))
        return np.unique(self.units, return_inverse=True)[1]

    def _demand(self, kind: int, most: float, extra: float = 0.0) -> Demand:
        """Return the demand, of shares of the largest amount, so that no total overflows."""
        largest = float(self.amounts.max(initial=0.0))
        shares = self.amounts / largest if largest > 0 else self.amounts
        return Demand(kind, most / 100, self._contributors(), shares, extra)

    def _contributions(self, labels: Labels, count: int) -> tuple[Floats, Floats]:
        """Total of each group, and its largest contributions, (g, count); those of one unit are added."""
        contributors = self._contributors()
        m = int(contributors.max()) + 1
        pairs, rank = np.unique(labels * m + contributors, return_inverse=True)
        group, added = pairs // m, np.bincount(rank, weights=self.amounts)
        order = np.lexsort((-added, group))
        group, added = group[order], added[order]
        rank = np.arange(len(group)) - np.searchsorted(group, group)
        largest = np.zeros((int(labels.max()) + 1, count))
        among = rank < count
        largest[group[among], rank[among]] = added[among]
        return np.bincount(labels, weights=self.amounts).astype(np.float64), largest


@dataclass(frozen=True, eq=False)
class PPercent(_Dominance):
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
        return self._demand(P_PERCENT, self.p)

    def figure(self, labels: Labels) -> float:
        """Return the least 100·(total − x₁ − x₂)/x₁ of a group."""
        totals, largest = self._contributions(labels, 2)
        rest, first = totals - largest.sum(axis=1), largest[:, 0]
        shares = np.divide(100 * rest, first, out=np.full(len(rest), np.inf), where=first > 0)
        return float(shares.min())

    def describe(self) -> str:
        return f"the p % rule with p = {self.p:g} for {self.named} in each group"

    def reason(self) -> str:
        return (
            f"The p % rule is asked of {self.named} in each group; the whole table as one "
            "group breaks it, since two contributors have nearly all of the total. Lower p, or leave the "
            "column out of the release."
        )


@dataclass(frozen=True, eq=False)
class LargestShare(_Dominance):
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
        return self._demand(LARGEST, self.percent, float(self.count))

    def figure(self, labels: Labels) -> float:
        """Return the largest share of a group's total, in percent, that its n largest contributors have."""
        totals, largest = self._contributions(labels, self.count)
        sums = largest.sum(axis=1)
        shares = np.divide(sums, totals, out=np.zeros(len(sums)), where=totals > 0)
        return 100 * float(shares.max())

    def describe(self) -> str:
        return (
            f"the {self.count} largest contributors with at most {self.percent:g} % of the total of "
            f"{self.named} in each group"
        )

    def reason(self) -> str:
        return (
            f"The (n, k) rule is asked of {self.named} in each group; the whole table as one "
            "group breaks it, since a few contributors have nearly all of the total. Raise k, or leave the "
            "column out of the release."
        )


@dataclass(frozen=True, eq=False)
class Population(Requirement):
    """Weights that add up to at least ``least`` in every group.

    Protects  against a group that is rare in the population although the sample has k of its records.
    Rule      Σw ≥ a number, over the sampling weights w of the group's records.
    Union     Weights are not negative, so the sum of a union is at least that of each group.

    >>> wanted = Population(np.array([10.0, 30.0, 40.0]), 50)
    >>> wanted.violation([0, 1]), wanted.violation([1, 2])
    (0.2, 0.0)
    """

    weights: Floats = field(repr=False)
    least: float
    column: str = ""

    def __post_init__(self) -> None:
        check_amounts(self.weights, self.column, "A population")

    def demand(self) -> Demand:
        codes = np.zeros(len(self.weights), np.int64)
        return Demand(POPULATION, float(self.least), codes, self.weights)

    def figure(self, labels: Labels) -> float:
        """Return the least sum of the weights of a group."""
        return float(np.bincount(labels, weights=self.weights).min())

    def say(self, figure: float) -> str:
        return number(int(figure))

    def describe(self) -> str:
        return f"weights ({self.named}) of at least {self.least:g} in each group"

    def reason(self) -> str:
        return (
            f"Weights of {self.least:g} are asked in each group; those of the whole table add up to "
            f"{self.weights.sum():.6g}. Ask for less."
        )


@dataclass(frozen=True, eq=False)
class RiskLimit(Requirement):
    """An individual risk of at most ``most`` in every group, see :func:`individual_risk`.

    Protects  in samples: a group with f records that stands for F persons hides each better, the larger F.
    Union     The risk rises with p and falls with f (for p/(f−1+p) by its derivatives; for 1 and 2 as
              the mean of 1/F, where F is f plus a negative binomial number that falls with p and rises
              with f; between the formulas p/(2+p) is below that of f = 2). A union has f = f₁ + f₂ and
              p between p₁ and p₂. Let p₁ be the larger one: p ≤ p₁ and f ≥ f₁, so the risk is at
              most that of the first group.

    >>> wanted = RiskLimit(np.array([17.0, 8.0, 50.0]), 0.1)
    >>> wanted.violation([0, 1, 2]), round(wanted.violation([0]), 8)
    (0.0, 0.07707583)
    """

    weights: Floats = field(repr=False)
    most: float
    column: str = ""
    larger_is_worse: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_amounts(self.weights, self.column, "The individual risk")

    def demand(self) -> Demand:
        return Demand(RISK, float(self.most), np.zeros(len(self.weights), np.int64), self.weights)

    def figure(self, labels: Labels) -> float:
        """Return the largest risk of a group."""
        populations = np.bincount(labels, weights=self.weights)
        return float(individual_risk(np.bincount(labels), populations).max())

    def say(self, figure: float) -> str:
        return share(figure)

    def describe(self) -> str:
        return (
            f"an individual risk of at most {self.most:g}, by the weights {self.named}, in "
            "each group"
        )

    def reason(self) -> str:
        risk = self.figure(np.zeros(len(self.weights), np.int64))
        return (
            f"An individual risk of at most {self.most:g} is asked in each group; that of the whole table "
            f"as one group is {risk:.3g}. Allow more."
        )


def individual_risk(sizes: ArrayLike, populations: ArrayLike) -> Floats:
    """Risk of the records of each class of f records that stands for F persons, by the sampling weights.

    ``sizes`` has f and ``populations`` F of each class, (classes,). The number of persons is taken to be
    negative binomial given f, with success probability p = f/F (Benedetti & Franconi 1998, as sdcMicro
    computes it). The risk is the expectation of 1 over that number: p/(1−p)·ln(1/p) for f = 1,
    p/(1−p)²·(p·ln p + 1 − p) for f = 2, and p/(f − (1 − p)) from 3 on, which is a little over the exact value
    and so on the safe side. If F is below f, p counts as 1.

    >>> individual_risk(np.array([3, 1, 2]), np.array([108.0, 45.5, 100.0])).round(8).tolist()
    [0.01369863, 0.08579129, 0.01877883]
    """
    f = np.asarray(sizes, dtype=np.float64)
    with np.errstate(over="ignore", divide="ignore"):
        p = np.minimum(f / np.asarray(populations, dtype=np.float64), 1.0)
    q = 1 - p
    near_one = q < _NEAR_ONE
    safe_q = np.where(near_one, 0.5, q)
    log_p = np.log(p)
    frequency_one = np.where(near_one, 1 - q / 2, -p / safe_q * log_p)
    two = np.where(near_one, 0.5 - q / 3, p / safe_q**2 * (p * log_p + q))
    return np.where(f == 1, frequency_one, np.where(f == 2, two, p / (f - q)))
