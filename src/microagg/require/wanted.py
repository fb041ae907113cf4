"""The requirements that a plan asks for, made from the columns of a table; and those of some records only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from microagg.errors import InputError, shown
from microagg.groups import Floats, Labels
from microagg.plan import Block
from microagg.require.closeness import Closeness
from microagg.require.distinct import Distinct
from microagg.require.dominance import LargestShare, PPercent
from microagg.require.entropy import Entropy
from microagg.require.individual_risk import IndividualRisk
from microagg.require.population import Population
from microagg.require.recursive import Recursive
from microagg.require.requirement import Demand, Requirement
from microagg.require.units import Units
from microagg.tables.frames import Frame
from microagg.words import names

__all__ = ["Within", "amounts_of", "requirements_of", "whole_of", "within"]


def requirements_of(
    frame: Frame,
    block: Block,
    units: Labels | None = None,
    unit: Any = None,
    weights: Floats | None = None,
) -> list[Requirement]:
    """Make the requirements of a block, k units among them; arrays are of all records.

    Parameters
    ----------
    frame : the table
    block : with k and what it requires beside
    units, unit : the unit of each record, and the column that it comes from
    weights : survey weights of the records, as given
    """
    asked, found = block.require, list[Requirement]()
    if units is not None:
        found.append(Units(units, block.k or 1, names([unit])))
    for column, least in asked.distinct.items():
        found.append(Distinct(_values(frame, column), least, names([column])))
    for column, l_value in asked.entropy.items():
        found.append(Entropy(_values(frame, column), l_value, names([column])))
    for column, rule in asked.recursive.items():
        found.append(Recursive(_values(frame, column), rule.c, rule.l, names([column])))
    for column, most in asked.closeness.items():
        ordered = _has_order(frame, column)
        found.append(Closeness(_values(frame, column), most, ordered, names([column])))
    for column, p in asked.p_percent.items():
        found.append(PPercent(amounts_of(frame, column), p, units, names([column])))
    for column, largest in asked.n_k.items():
        amounts = amounts_of(frame, column)
        found.append(LargestShare(amounts, largest.n, largest.k, units, names([column])))
    for wanted in ("population", "individual_risk"):
        if getattr(asked, wanted) is not None and weights is None:
            raise InputError(
                f"{wanted} is counted in survey weights; the plan names none. Name their column as weight."
            )
    if asked.population is not None and weights is not None:
        found.append(Population(weights, asked.population))
    if asked.individual_risk is not None and weights is not None:
        found.append(IndividualRisk(weights, asked.individual_risk))
    return found


def _values(frame: Frame, name: Any) -> Labels:
    """Number the values of a column, in their order; missing is a value of its own, the last."""
    codes, levels = frame.categories(name)
    return np.where(codes < 0, len(levels), codes)


def _has_order(frame: Frame, name: Any) -> bool:
    return (
        frame.is_numeric(name)
        or frame.kind_in_words(name) == "dates or times"
        or frame.is_ordered(name)
    )


def amounts_of(frame: Frame, name: Any, tells_row: bool = True) -> Floats:
    """Amounts for rules of dominance; a part of a table cannot tell the row in which one is missing."""
    if not frame.is_numeric(name):
        raise InputError(
            f"Rules of dominance are about amounts; column {shown(name)} holds {frame.kind_in_words(name)}."
        )
    found = frame.doubles(name)
    if np.isnan(found).any():
        row = int(np.argmax(np.isnan(found))) + 1
        raise InputError(
            f"Rules of dominance need the amount of every record; column {shown(name)} is missing in "
            + (f"row {row} (the first record is row 1)" if tells_row else "some")
            + ". Fill it or drop those records."
        )
    return found


@dataclass(frozen=True, eq=False)
class Within(Requirement):
    """A requirement of a table, for some of its records; what it compares with is the whole table."""

    whole: Requirement
    rows: Labels = field(repr=False)

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        found = self.whole.demand()
        return found._replace(codes=found.codes[self.rows], amounts=found.amounts[self.rows])

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return self.whole.describe()

    def reason(self) -> str:
        """Say why these records break the requirement even as one group."""
        return (
            f"Groups do not cross strata or patterns of missing values; {len(self.rows):,} records that "
            f"share both cannot have {self.whole.describe()}, not even as one group. Ask for less, name "
            "coarser strata, or another policy for missing values."
        )


def whole_of(requirement: Requirement, kind: type[Requirement]) -> bool:
    """Whether a requirement, or the one of the whole table that it comes from, is of a kind."""
    whole = requirement
    while isinstance(whole, Within):
        whole = whole.whole
    return isinstance(whole, kind)


def within(requirements: Sequence[Requirement], rows: Labels | None) -> Sequence[Requirement]:
    """Return the requirements for some records; None: all."""
    if rows is None:
        return requirements
    return [Within(requirement, rows) for requirement in requirements]
