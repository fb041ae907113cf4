"""Rules about the survey weights of each group: how much of the population it stands for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from microagg.base.formatting import number, share
from microagg.base.typing import Floats, Labels
from microagg.grouping.require.requirement import Demand, Requirement, check_amounts, column_words
from microagg.kernels.require_kinds import POPULATION, RISK

# As p nears 1 the formulas of the risk are 0/0; from here on a series is more exact.
_NEAR_ONE = 1e-4


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
        """Write a number of persons."""
        return number(int(figure))

    def describe(self) -> str:
        return f"weights ({column_words(self.column)}) of at least {self.least:g} in each group"

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
        """Write a risk in percent."""
        return share(figure)

    def describe(self) -> str:
        return (
            f"an individual risk of at most {self.most:g}, by the weights {column_words(self.column)}, in "
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
