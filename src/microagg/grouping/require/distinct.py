"""Distinct l-diversity: at least l different values of a confidential column in every group.

Protects  against the plainest disclosure that k leaves open: all records of a group agree in the
          confidential column, so that whoever is known to be in it has that value.
Rule      |{values in the group}| ≥ l.
Union     A union has the values of both groups, so at least as many.
Paper     Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam 2007, section 4 (l-diversity).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.base.typing import Labels
from microagg.grouping.require.requirement import Demand, Requirement, column_words
from microagg.kernels.require_kinds import DISTINCT
from microagg.plan.settings import check_count

__all__ = ["Distinct"]


@dataclass(frozen=True, eq=False)
class Distinct(Requirement):
    """At least ``least`` different values in every group.

    Parameters
    ----------
    codes : whole numbers of shape (n,), equal where values are equal
    least : int, at least 1
    column : name of the column, for messages

    >>> wanted = Distinct(np.array([4, 4, 7, 9]), 2, "diagnosis")
    >>> wanted.violation([0, 1]), wanted.violation([1, 2]), wanted.feasible()
    (0.5, 0.0, True)
    """

    codes: Labels = field(repr=False)
    least: int
    column: str = ""

    def __post_init__(self) -> None:
        check_count("l, the least number of different values,", self.least)

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        own = np.unique(self.codes, return_inverse=True)[1].reshape(-1)
        return Demand(DISTINCT, float(self.least), own, np.ones(len(own)))

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return (
            f"at least {self.least} different values of {column_words(self.column)} in each group"
        )

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        return (
            f"{self.least} different values of {column_words(self.column)} are asked in each group; the "
            f"whole table has {len(np.unique(self.codes))}. Ask for fewer."
        )
