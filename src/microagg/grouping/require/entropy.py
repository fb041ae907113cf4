"""Entropy l-diversity: the values of a confidential column are spread in every group.

Protects  against groups with l values of which one is nearly everybody's.
Rule      exp(H) ≥ l with H = −Σ p·ln p over the shares p of the values in the group: as many values
          as if they were equally frequent.
Union     The shares of a union are a mixture λp + (1−λ)q of those of the two groups, and H is concave:
          H(λp + (1−λ)q) ≥ λH(p) + (1−λ)H(q) ≥ min(H(p), H(q)). So both ≥ ln l gives ≥ ln l.
Note      The whole table must have entropy ln l itself: a column with one very common value allows
          no l much over 1. Recursive diversity (recursive.py) is milder.
Paper     Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam 2007, section 4 (l-diversity).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.base.typing import Labels
from microagg.errors import InputError, shown
from microagg.grouping.require.requirement import Demand, Requirement, column_words
from microagg.kernels.require_kinds import ENTROPY
from microagg.plan.settings import as_number

__all__ = ["Entropy"]


@dataclass(frozen=True, eq=False)
class Entropy(Requirement):
    """exp(entropy) of at least ``least`` in every group.

    Parameters
    ----------
    codes : whole numbers of shape (n,), equal where values are equal
    least : number from 1 up
    column : name of the column, for messages

    >>> wanted = Entropy(np.array([0, 0, 0, 1]), 2.0)
    >>> wanted.violation([2, 3]), wanted.violation([0, 1])
    (0.0, 1.0)
    """

    codes: Labels = field(repr=False)
    least: float
    column: str = ""

    def __post_init__(self) -> None:
        number = as_number(self.least)
        if number is None or not 1 <= number < np.inf:
            raise InputError(
                f"l of entropy diversity is a number from 1 up; got {shown(self.least)}."
            )

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        own = np.unique(self.codes, return_inverse=True)[1].reshape(-1)
        return Demand(ENTROPY, float(self.least), own, np.ones(len(own)))

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return (
            f"values of {column_words(self.column)} in each group spread like {self.least:g} equally "
            "frequent ones"
        )

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        share = np.unique(self.codes, return_counts=True)[1] / len(self.codes)
        most = float(np.exp(-(share * np.log(share)).sum()))
        return (
            f"Entropy diversity {self.least:g} of {column_words(self.column)} is asked in each group; the "
            f"whole table has {most:.4g}, and no partition has more in its poorest group. Ask for less, or "
            "for recursive diversity."
        )
