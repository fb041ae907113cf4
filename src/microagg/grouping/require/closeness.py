"""t-closeness: a confidential column looks in every group nearly as in the whole table.

Protects  against learning about a person from the group: not only who has which value, but also
          that the values of a group are all high, or mostly of one kind.
Rule      The earth mover's distance of the group's shares p to those q of the whole table is at most t.
          Numbers and levels are ranked 1..m, neighbouring ranks 1/(m−1) apart:
          Σᵢ|Σ_{j≤i}(pⱼ − qⱼ)|/(m−1). Other values are all equally far: ½·Σ|p − q|.
Union     The shares of a union are a mixture of those of the two groups; both distances are convex
          in p, so the distance of the mixture is at most the larger one.
Cost      For ranks O(s log m) for a group of s records with prefix sums of the table's shares, not
          O(m): between two of its values the group's distribution function is flat, the table's rises.
Paper     Li, Li & Venkatasubramanian 2007. The whole table has distance 0: it always satisfies it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.base.typing import Labels
from microagg.errors import InputError, shown
from microagg.grouping.require.requirement import Demand, Requirement, column_words
from microagg.kernels.require_kinds import EQUAL, ORDERED
from microagg.plan.settings import as_number

__all__ = ["Closeness"]


@dataclass(frozen=True, eq=False)
class Closeness(Requirement):
    """An earth mover's distance to the whole table of at most ``most`` in every group.

    Parameters
    ----------
    codes : whole numbers or numbers of shape (n,), equal where values are equal; in order of the
        values if ``ordered``
    most : float from 0 to 1, the t of the rule
    ordered : whether values have an order, so that near ones are nearly the same
    column : name of the column, for messages

    >>> wanted = Closeness(np.array([10, 20, 30]), 0.25)
    >>> round(wanted.violation([1]), 3), round(wanted.violation([0]), 3)
    (0.083, 0.25)
    """

    codes: Labels = field(repr=False)
    most: float
    ordered: bool = True
    column: str = ""

    def __post_init__(self) -> None:
        number = as_number(self.most)
        if number is None or not 0 <= number <= 1:
            raise InputError(f"t of t-closeness is a number from 0 to 1; got {shown(self.most)}.")

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        _, own, count = np.unique(self.codes, return_inverse=True, return_counts=True)
        own = own.reshape(-1)
        # From counts, so that the last share is 1 and equal tables have equal shares.
        share = (np.cumsum(count) if self.ordered else count) / len(own)
        kind = ORDERED if self.ordered else EQUAL
        return Demand(kind, float(self.most), own, np.ones(len(own)), share=share)

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return (
            f"the distribution of {column_words(self.column)} in each group within {self.most:g} of that in "
            "the whole table (earth mover's distance)"
        )

    def reason(self) -> str:
        """Say why the whole table breaks the requirement: it never does."""
        return "The whole table is at distance 0 from itself."
