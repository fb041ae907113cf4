"""Population: the records of every group stand for enough persons of the population.

Protects  against a group that is rare in the population although the sample has k of its records.
Rule      Σw ≥ a number, over the sampling weights w of the group's records.
Union     Weights are not negative, so the sum of a union is at least that of each group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.base.typing import Floats
from microagg.errors import InputError, shown
from microagg.grouping.require.requirement import Demand, Requirement, column_words
from microagg.kernels.require_kinds import POPULATION
from microagg.plan.settings import as_number

__all__ = ["Population", "check_amounts"]


def check_amounts(amounts: Floats, column: str, what: str) -> None:
    """Refuse amounts that are negative or not finite, with the row of the first."""
    wrong = np.flatnonzero(~(np.isfinite(amounts) & (amounts >= 0)))
    if len(wrong):
        raise InputError(
            f"{what} needs finite values from 0 up; {column_words(column)} has another one in row "
            f"{wrong[0]} and {len(wrong)} in all. Correct or drop these records, or leave the requirement "
            "out."
        )


@dataclass(frozen=True, eq=False)
class Population(Requirement):
    """Weights that add up to at least ``least`` in every group.

    Parameters
    ----------
    weights : floats of shape (n,), from 0 up
    least : number above 0
    column : name of the column, for messages

    >>> wanted = Population(np.array([10.0, 30.0, 40.0]), 50)
    >>> wanted.violation([0, 1]), wanted.violation([1, 2])
    (0.2, 0.0)
    """

    weights: Floats = field(repr=False)
    least: float
    column: str = ""

    def __post_init__(self) -> None:
        number = as_number(self.least)
        if number is None or not 0 < number < np.inf:
            raise InputError(f"A population is a number above 0; got {shown(self.least)}.")
        check_amounts(self.weights, self.column, "A population")

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        codes = np.zeros(len(self.weights), np.int64)
        return Demand(POPULATION, float(self.least), codes, self.weights)

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return f"weights ({column_words(self.column)}) of at least {self.least:g} in each group"

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        return (
            f"Weights of {self.least:g} are asked in each group; those of the whole table add up to "
            f"{self.weights.sum():.6g}. Ask for less."
        )
