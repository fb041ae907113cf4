"""Recursive (c, l)-diversity: the most frequent value is not too frequent beside the rare ones.

Protects  against an attacker who can rule out l−2 values: what remains is still no clear majority.
Rule      r₁ < c·(r_l + r_{l+1} + … + r_m), where r₁ ≥ r₂ ≥ … count the values in the group.
Union     Write S_j for the sum of the j largest counts and N for the size. For two vectors of
          counts a and b over the same values, S_j(a+b) ≤ S_j(a) + S_j(b): the j values that are
          most frequent in the union are some j values in each group. So the rest N − S_{l−1} of the
          union is at least the sum of both rests, and r₁ = S₁ at most the sum of both r₁:
          r₁(a+b) ≤ r₁(a) + r₁(b) < c·rest(a) + c·rest(b) ≤ c·rest(a+b).
          The requirement is closed under union, strictness included, for any c > 0 and l ≥ 1.
Paper     Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam 2007, section 4 (l-diversity).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.base.typing import Labels
from microagg.errors import InputError, shown
from microagg.grouping.require.requirement import Demand, Requirement, column_words
from microagg.kernels.require_kinds import RECURSIVE
from microagg.plan.settings import as_number, check_count

__all__ = ["Recursive"]


@dataclass(frozen=True, eq=False)
class Recursive(Requirement):
    """Recursive (c, l)-diversity in every group.

    Parameters
    ----------
    codes : whole numbers of shape (n,), equal where values are equal
    c : number above 0
    least : int, the l of the rule, at least 2 (with 1 it would say nothing about values)
    column : name of the column, for messages

    >>> wanted = Recursive(np.array([0, 0, 1, 2]), c=2.0, least=2)
    >>> wanted.violation([0, 1, 2, 3]), wanted.violation([0, 1]) > 0
    (0.0, True)
    """

    codes: Labels = field(repr=False)
    c: float
    least: int
    column: str = ""

    def __post_init__(self) -> None:
        check_count("l of recursive diversity", self.least, 2)
        number = as_number(self.c)
        if number is None or not 0 < number < np.inf:
            raise InputError(f"c of recursive diversity is a number above 0; got {shown(self.c)}.")

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        own = np.unique(self.codes, return_inverse=True)[1].reshape(-1)
        return Demand(RECURSIVE, float(self.c), own, np.ones(len(own)), extra=float(self.least))

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return (
            f"in each group the most frequent value of {column_words(self.column)} under {self.c:g} times "
            f"the values from the {self.least}. place on"
        )

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        count = np.sort(np.unique(self.codes, return_counts=True)[1])[::-1]
        return (
            f"Recursive diversity with c={self.c:g} and l={self.least} is asked of "
            f"{column_words(self.column)} in each group; in the whole table the most frequent value has "
            f"{count[0]} records and those from the {self.least}. place on {count[self.least - 1 :].sum()}. "
            "Raise c or lower l."
        )
