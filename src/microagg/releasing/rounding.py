"""How released numbers are rounded: by the plan, to a millionth of the deviation, or to the column's steps.

Sixteen digits of a mean are of no use, but the fractions reveal the sizes of groups, and, to somebody who has
part of the values, the members. Weighted means do so with far fewer digits (:mod:`microagg.encode.steps`):
they are rounded to the steps in which the column moves, so that its weighted total stays. Columns that a
relation binds are rounded together, so that it still holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.steps import Steps, usual_steps
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.plan.relations import Relation
from microagg.tables.variable import Variable

_NO_FACTOR = 1e-12  # of a column that cancels out


def default_steps(spread: float, own: Steps | None) -> Steps | None:
    """Return the steps to which means are rounded unless the plan has digits; None: they are not.

    Parameters
    ----------
    spread : standard deviation of the column
    own : where means are weighted, the steps of the column's values; None: means are not weighted. The mean
        of k whole numbers times k is always whole: it offers nothing to test a guess by.
    """
    usual = usual_steps(spread)
    return usual if own is None else own.no_finer(usual)


class Rounding(NamedTuple):
    """How the released numbers of a column are rounded."""

    steps: Steps | None = None
    """None: they are not."""
    whole: bool = False
    """Whether they are whole numbers."""
    keeps_totals: bool = False
    """Whether groups are rounded up or down so that totals stay, and not each to the nearest step."""

    def nearest(self, values: Floats) -> Floats:
        """Round each value to the nearest step."""
        return values if self.steps is None else self.steps.nearest(values)


def keeps_integers(
    plan: Plan, name: Any, kind: str, is_whole: bool, is_swapped: bool = False
) -> bool:
    """Return whether a column is released as whole numbers.

    Parameters
    ----------
    plan : with how the column, ``name``, is rounded
    kind : of the column
    is_whole : whether all its numbers are whole
    is_swapped : whether its values are swapped within groups
    """
    if is_swapped:  # among values of others a mean with decimals would show that it is one
        return is_whole and name not in plan.related
    kept = kind == "integer" or (kind == "spiked" and is_whole)
    return kept and plan.column(name).round in ("nearest", "totals")


def rounding_of(
    variable: Variable, plan: Plan, block: Block, own: Steps, spread: float, weighted: bool
) -> Rounding:
    """Return how the released numbers of a column are rounded.

    Parameters
    ----------
    variable : the column
    plan, block : with digits, and what groups release
    own : the steps of the column's values in the whole table
    spread : standard deviation of the column in the whole table
    weighted : whether means are weighted
    """
    if variable.is_category:
        return Rounding()
    is_date, name = variable.kind == "date", variable.name
    whole = not is_date and keeps_integers(
        plan, name, variable.kind, own.are_whole, block.is_swapped
    )
    least = own if weighted and block.released == "mean" and not block.is_swapped else None
    if whole or is_date:
        units = Steps.of_decimals(0)
        units = units if least is None else least.no_finer(units)
        return Rounding(units, whole, whole and plan.column(name).round == "totals")
    if plan.digits is not None:
        some = isinstance(plan.digits, int)
        return Rounding(Steps.of_decimals(int(plan.digits)) if some else None)
    means = block.is_swapped or block.released in ("mean", "midrange")
    steps = default_steps(spread, least) if means else None
    return Rounding(steps, keeps_totals=steps is not None and steps is least)


def rounded(
    values: Floats,
    variable: Variable,
    labels: Labels,
    weights: Floats | None,
    rounding: Rounding,
    cells: Labels | None,
) -> Floats:
    """Round the released values of groups.

    Parameters
    ----------
    values : (g,) of the groups, NaN for none
    variable : the column, of all n records
    labels : (n,) group of each record
    weights : (n,) with a mean of 1; None: all records count alike
    rounding : see :func:`rounding_of`
    cells : (n,) records of different ones, such as strata, never share a group: totals stay in each
    """
    if rounding.steps is None or not rounding.keeps_totals:
        return rounding.nearest(values)
    there = ~variable.missing
    counted = None if weights is None else weights[there]
    mass = np.bincount(labels[there], weights=counted, minlength=len(values)).astype(np.float64)
    of_groups = np.zeros(len(values), dtype=np.int64)
    if cells is not None:
        of_groups[labels] = cells
    return rounding.steps.keeping_totals(values, mass, of_groups)


def round_related(
    values: Floats, names: Sequence[Any], steps: Sequence[Steps | None], plan: Plan, weighted: bool
) -> Floats:
    """Round columns that relations bind, so that every relation still holds.

    Each equation is solved for one column, which is computed from the others once they are rounded, and so
    has no digit of its own: for the one with the longest steps, whose spread is the largest; where means are
    weighted, for the one with the shortest, since another one would get finer digits than its own values.
    Where rounding breaks an inequality, its terms are rounded to the side that keeps it.

    Parameters
    ----------
    values : (n, columns) released values, exact in the columns that relations name; NaN is missing
    names : of the columns
    steps : to which each column is rounded; None: it stays as it is
    plan : with the relations
    weighted : whether means are weighted

    Returns
    -------
    (n, columns) values
    """
    at = {name: j for j, name in enumerate(names)}
    relations = [relation for relation in plan.relations if set(relation.columns) <= at.keys()]
    bound = sorted({at[name] for relation in relations for name in relation.columns})
    solved: dict[int, Floats] = {}  # column: its factors of the others, and a constant

    def length(j: int) -> float:
        column_steps = steps[j]
        # A column of one value keeps it.
        return np.inf if column_steps is None else column_steps.size or np.inf

    def rounded_alone(j: int, numbers: Floats) -> Floats:
        column_steps = steps[j]
        return numbers if column_steps is None else column_steps.nearest(numbers)

    for relation in relations:
        if relation.comparison != "=":
            continue
        row = _without_solved(_factors(relation, at), solved)
        free = [j for j in bound if steps[j] is not None and abs(row[j]) > _NO_FACTOR]
        if free:
            chosen = min(free, key=lambda j: length(j) if weighted else -length(j))
            factors = -row / row[chosen]
            factors[chosen] = 0.0
            solved = {
                j: np.where(np.arange(len(factors)) == chosen, 0.0, old) + old[chosen] * factors
                for j, old in solved.items()
            }
            solved[chosen] = factors

    def computed(released: Floats) -> Floats:
        for j, factors in solved.items():
            used = np.flatnonzero(factors[:-1]).tolist()
            # No matrix product: its last digits may differ between equal rows.
            new = factors[-1] + sum(factors[i] * released[:, i] for i in used)
            if (factors == np.rint(factors)).all():
                decimals = (rounding.decimals for i in used if (rounding := steps[i]) is not None)
                new = np.round(new, max(decimals, default=0))
            released[:, j] = np.where(np.isnan(values[:, j]), np.nan, new)
            # Without the others it is rounded by itself.
            alone = np.isnan(released[:, j]) & ~np.isnan(values[:, j])
            released[alone, j] = rounded_alone(j, values[alone, j])
        return released

    released = values.copy()
    for j in bound:
        released[:, j] = rounded_alone(j, values[:, j])
    released = computed(released)
    for relation in relations:
        if relation.comparison == "=":
            continue
        wrong = np.flatnonzero(
            relation.broken({name: released[:, at[name]] for name in relation.columns})
        )
        if not len(wrong):
            continue
        row = _without_solved(_factors(relation, at), solved) * (
            1 if relation.comparison == "<=" else -1
        )
        for j in bound:
            column_steps = steps[j]
            if column_steps is not None and j not in solved and abs(row[j]) > _NO_FACTOR:
                released[wrong, j] = column_steps.rounded(
                    values[wrong, j], np.floor if row[j] > 0 else np.ceil
                )
        released[wrong] = computed(released.copy())[wrong]
    return released


def _factors(relation: Relation, at: Mapping[Any, int]) -> Floats:
    """Return the factor of each column, and the constant last."""
    row = np.zeros(len(at) + 1)
    for name, factor in relation.terms.items():
        row[at[name]] = factor
    row[-1] = relation.constant
    return row


def _without_solved(row: Floats, solved: Mapping[int, Floats]) -> Floats:
    """Put what solved columns are in their place."""
    for j, factors in solved.items():
        factor, row = row[j], np.where(np.arange(len(row)) == j, 0.0, row)
        row = row + factor * factors
    return row
