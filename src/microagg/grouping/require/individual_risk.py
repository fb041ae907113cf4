"""Individual risk: the chance to find the person behind a record, from the sampling weights.

Protects  in samples: a group with f records that stands for F persons hides each better, the larger F.
Rule      The risk of a record is the posterior mean of 1/F given f, with p = f/Σw: p/(1−p)·ln(1/p) for
          f = 1, p/(1−p)²·(p·ln p + 1 − p) for f = 2, and p/(f − (1 − p)) from 3 on, which is a little
          over the exact value and so on the safe side. It is at most r in every group.
Union     The risk rises with p and falls with f (for p/(f−1+p) by its derivatives; for 1 and 2 as
          the mean of 1/F, where F is f plus a negative binomial number that falls with p and rises
          with f; between the formulas p/(2+p) is below that of f = 2). A union has f = f₁ + f₂ and
          p between p₁ and p₂. Let p₁ be the larger one: p ≤ p₁ and f ≥ f₁, so the risk is at
          most that of the first group.
Note      Weights under 1, where a group would stand for fewer persons than it has, count as p = 1.
Paper     Benedetti & Franconi 1998, as sdcMicro computes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, shown
from microagg.grouping.require.population import check_amounts
from microagg.grouping.require.requirement import Demand, Requirement, column_words
from microagg.kernels.require_kinds import RISK
from microagg.plan.settings import as_number

__all__ = ["IndividualRisk", "individual_risk"]


def individual_risk(sizes: Labels, populations: Floats) -> Floats:
    """Risk of the records of each class, from its records f and its weights F.

    >>> individual_risk(np.array([3, 1, 2]), np.array([108.0, 45.5, 100.0])).round(8).tolist()
    [0.01369863, 0.08579129, 0.01877883]
    """
    from microagg.kernels.require_demands import risk_of

    pairs = zip(sizes.tolist(), populations.tolist(), strict=True)
    return np.array([risk_of(size, population) for size, population in pairs], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class IndividualRisk(Requirement):
    """A risk of at most ``most`` in every group.

    Parameters
    ----------
    weights : floats of shape (n,), from 0 up
    most : float above 0, up to 1
    column : name of the column, for messages

    >>> wanted = IndividualRisk(np.array([17.0, 8.0, 50.0]), 0.1)
    >>> wanted.violation([0, 1, 2]), round(wanted.violation([0]), 8)
    (0.0, 0.07707583)
    """

    weights: Floats = field(repr=False)
    most: float
    column: str = ""

    def __post_init__(self) -> None:
        number = as_number(self.most)
        if number is None or not 0 < number <= 1:
            raise InputError(
                f"An individual risk is a number above 0, up to 1; got {shown(self.most)}."
            )
        check_amounts(self.weights, self.column, "The individual risk")

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        return Demand(RISK, float(self.most), np.zeros(len(self.weights), np.int64), self.weights)

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return (
            f"an individual risk of at most {self.most:g}, by the weights {column_words(self.column)}, in "
            "each group"
        )

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        risk = individual_risk(np.array([len(self.weights)]), self.weights.sum(keepdims=True))[0]
        return (
            f"An individual risk of at most {self.most:g} is asked in each group; that of the whole table "
            f"as one group is {risk:.3g}. Allow more."
        )
