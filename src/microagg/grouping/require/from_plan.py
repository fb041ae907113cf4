"""The requirements that a plan asks for, made from the columns of a table; and those of some records only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from microagg.base.formatting import names, plural
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, shown
from microagg.grouping.require.amount_rules import LargestShare, Population, PPercent, RiskLimit
from microagg.grouping.require.requirement import Demand, Requirement
from microagg.grouping.require.value_rules import (
    FEWEST_NUMBERS,
    Closeness,
    Distinct,
    Entropy,
    HiddenValues,
    Units,
)
from microagg.plan.block import Block, Require
from microagg.tables.finite import first_row
from microagg.tables.frame import Frame


class Rule(NamedTuple):
    """How a requirement is made; the key in the plan is the key in :data:`RULES`."""

    sees: Literal["values", "numbers", "amounts", "weights"]
    """Codes of the values of a column, these and its numbers if it has many, its amounts, or the survey
    weights."""
    make: Callable[[Any, Any, RuleContext], Requirement]  # of it, what is asked, and the rest
    in_parts: bool = True  # whether groups can be judged by themselves, in parts of a table


class RuleContext(NamedTuple):
    """What else a rule may need."""

    column: str  # Name of the column, as it is shown
    units: Labels | None
    ordered: bool = False  # Whether the values of the column have an order


# Every key of a plan's ``require``, in the order in which groups are judged; for all engines.
RULES: dict[str, Rule] = {
    "distinct": Rule("values", lambda x, least, by: Distinct(x, least, by.column)),
    "entropy": Rule("values", lambda x, least, by: Entropy(x, least, by.column)),
    "closeness": Rule(
        "values", lambda x, most, by: Closeness(x, most, by.ordered, by.column), in_parts=False
    ),
    "hidden": Rule(
        "numbers",
        lambda x, percent, by: HiddenValues(x[0], percent, x[1], by.column),
        in_parts=False,
    ),
    "p_percent": Rule("amounts", lambda x, p, by: PPercent(x, p, by.units, by.column)),
    "n_k": Rule(
        "amounts", lambda x, rule, by: LargestShare(x, rule.n, rule.k, by.units, by.column)
    ),
    "population": Rule("weights", lambda x, least, _: Population(x, least)),
    "individual_risk": Rule("weights", lambda x, most, _: RiskLimit(x, most)),
}


def asked_columns(asked: Require) -> list[tuple[str, Any]]:
    """List the requirements in ``asked`` that look at a column: their key and the column."""
    return [
        (key, name)
        for key, rule in RULES.items()
        if rule.sees != "weights"
        for name in getattr(asked, key)
    ]


def make_requirements(
    block: Block,
    units: Labels | None,
    unit: Any,
    weights: Floats | None,
    look: Callable[[str, Any], tuple[Any, bool]],
) -> list[Requirement]:
    """Make the requirements of a block, k units among them.

    Parameters
    ----------
    block : the block of the plan
    units : (n,) unit of each record; None: k counts records
    unit : name of the column that the units come from
    weights : (n,) survey weights as given
    look : gets a key of :data:`RULES` and a column; returns what the rule sees of it, and whether that has
        an order
    """
    asked, requirements = block.require, list[Requirement]()
    if units is not None:
        requirements.append(Units(units, block.k or 1, names([unit])))
    for key, column in asked_columns(asked):
        seen, ordered = look(key, column)
        by = RuleContext(names([column]), units, ordered)
        requirements.append(RULES[key].make(seen, getattr(asked, key)[column], by))
    for key, rule in RULES.items():
        if rule.sees != "weights" or getattr(asked, key) is None:
            continue
        if weights is None:
            raise InputError(
                f"{key} is counted in survey weights; the plan names none. Name their column as weight."
            )
        requirements.append(rule.make(weights, getattr(asked, key), RuleContext("", units)))
    return requirements


def steering_requirements(block: Block, requirements: Sequence[Requirement]) -> list[Requirement]:
    """Return the ``requirements`` of a ``block`` that look at columns which it does not protect.

    Groups that are searched by such columns say something about whose values these are.
    """
    untouched = {names([column]) for column in block.require.columns}
    untouched -= {names([column]) for column in block.columns or ()}
    return [
        rule for rule in requirements if rule.column in untouched and not isinstance(rule, Units)
    ]


def requirements_of(
    frame: Frame,
    block: Block,
    units: Labels | None = None,
    unit: Any = None,
    weights: Floats | None = None,
) -> list[Requirement]:
    """Make the requirements of a block of a table in memory; arrays are of all records."""

    def look(key: str, column: Any) -> tuple[Any, bool]:
        if RULES[key].sees == "amounts":
            return amounts_of(frame, column), True
        if RULES[key].sees == "numbers":
            return values_and_numbers(frame, column), True
        has_order = (
            frame.is_numeric(column)
            or frame.kind_in_words(column) == "dates or times"
            or frame.is_ordered(column)
        )
        codes, levels = frame.categories(column)
        return np.where(codes < 0, len(levels), codes), has_order  # missing is the last value

    return make_requirements(block, units, unit, weights, look)


def values_and_numbers(frame: Frame, name: Any) -> tuple[Labels, Floats | None]:
    """Return the code of each value of the column ``name`` of ``frame``, missing the last, and its numbers.

    Both are (n,). The numbers are None if the column has categories, or so few different numbers that they
    may be codes.
    """
    codes, levels = frame.levels(name)
    has_numbers = frame.is_numeric(name) and len(levels) >= FEWEST_NUMBERS
    return codes, frame.doubles(name) if has_numbers else None


def amounts_of(frame: Frame, name: Any) -> Floats:
    """Return the column ``name`` of ``frame`` as amounts for rules of dominance, (n,)."""
    if not frame.is_numeric(name):
        raise InputError(
            f"Rules of dominance are about amounts; column {shown(name)} holds {frame.kind_in_words(name)}."
        )
    amounts = frame.doubles(name)
    if np.isnan(amounts).any():
        raise InputError(
            f"Rules of dominance need the amount of every record; column {shown(name)} is missing in "
            f"{first_row(np.isnan(amounts))}. Fill it or drop those records."
        )
    return amounts


@dataclass(frozen=True, eq=False)
class Within(Requirement):
    """A requirement of a table, for some of its records; what it compares with is the whole table."""

    whole: Requirement
    rows: Labels = field(repr=False)

    def demand(self) -> Demand:
        """Give the requirement in the form of the kernels."""
        demand = self.whole.demand()
        return demand._replace(codes=demand.codes[self.rows], amounts=demand.amounts[self.rows])

    def describe(self) -> str:
        """Say in words what every group satisfies."""
        return self.whole.describe()

    def reason(self) -> str:
        """Say why these records break the requirement even as one group."""
        return (
            f"Groups do not cross strata or patterns of missing values; {plural(len(self.rows), 'record')} "
            f"that share both cannot have {self.whole.describe()}, not even as one group. Ask for less, name "
            "coarser strata, or another policy for missing values."
        )


def whole_of(requirement: Requirement, kind: type[Requirement]) -> bool:
    """Return whether a ``requirement``, or that of the whole table that it is a part of, is of a ``kind``."""
    whole = requirement
    while isinstance(whole, Within):
        whole = whole.whole
    return isinstance(whole, kind)


def within(requirements: Sequence[Requirement], rows: Labels | None) -> Sequence[Requirement]:
    """Return the ``requirements`` of a table for its records ``rows`` alone; None: all."""
    if rows is None:
        return requirements
    return [Within(requirement, rows) for requirement in requirements]


def can_be_group(requirements: Sequence[Requirement], rows: Labels) -> bool:
    """Return whether the records of ``rows`` satisfy ``requirements``, those of a table, as one group."""
    return all(rule.feasible() for rule in within(requirements, rows))
