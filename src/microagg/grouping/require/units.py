"""Distinct units: at least k persons, firms or households in each group, not only k records.

Protects  against groups of k records that belong to fewer than k units: five records of one household
          hide each other, but not the household.
Rule      |{units in the group}| ≥ k.
Union     A union has the units of both groups, so at least as many.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from microagg.base.typing import Labels
from microagg.errors import InputError
from microagg.grouping.require.requirement import Demand, Requirement
from microagg.kernels.require_kinds import DISTINCT
from microagg.plan.settings import check_count

__all__ = ["Units", "check_units", "distinct_units"]


@dataclass(frozen=True, eq=False)
class Units(Requirement):
    """At least ``least`` distinct units in every group.

    Parameters
    ----------
    units : whole numbers of shape (n,), the unit of each record
    least : int, at least 1; k where the promise is about units
    column : name of the column, for messages

    >>> wanted = Units(np.array([5, 5, 7]), 2, "household")
    >>> wanted.violation([0, 1]), wanted.violation([1, 2])
    (0.5, 0.0)
    """

    units: Labels = field(repr=False)
    least: int
    column: str = ""

    def __post_init__(self) -> None:
        check_count("k, the least number of units in a group,", self.least)

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        own = np.unique(self.units, return_inverse=True)[1].reshape(-1)
        return Demand(DISTINCT, float(self.least), own, np.ones(len(own)))

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        of = f" ({self.column})" if self.column else ""
        return f"at least {self.least} distinct units{of} in each group"

    def reason(self) -> str:
        """Say why the whole table breaks the requirement, and the way out."""
        return _too_few(self.least, self.column, len(np.unique(self.units)))


def _too_few(k: int, column: str, found: int) -> str:
    return f"k={k} needs at least {k} distinct values of the unit {column}; the table has {found}. Lower k."


def check_units(units: Labels, k: int, column: str) -> None:
    """Refuse a table with fewer than k distinct units, where no groups could keep the promise."""
    found = len(np.unique(units))
    if found < k:
        raise InputError(_too_few(k, column, found))


def distinct_units(labels: Labels, units: Labels) -> Labels:
    """Count the distinct units of each group.

    >>> distinct_units(np.array([0, 0, 0, 1]), np.array([5, 5, 7, 5])).tolist()
    [2, 1]
    """
    pairs = np.unique(np.column_stack([labels, units]), axis=0)
    return np.bincount(pairs[:, 0], minlength=int(labels.max()) + 1)
