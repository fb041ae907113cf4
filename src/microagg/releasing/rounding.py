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
from microagg.encode.missing import rows_of_each
from microagg.encode.number import totals
from microagg.encode.steps import Steps, usual_steps
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.plan.relations import Relation
from microagg.tables.variable import Variable

_NO_FACTOR = 1e-12  # of a column that cancels out


def default_steps(spread: float, own: Steps | None) -> Steps | None:
    """Return the steps to which means are rounded unless the plan has digits; None: they are not.

    ``spread`` is the standard deviation of the column. ``own`` has the steps of its values where means are
    weighted, else None: the mean of k whole numbers times k is always whole, nothing to test a guess by.
    """
    usual = usual_steps(spread)
    return usual if own is None else own.no_finer(usual)


class Rounding(NamedTuple):
    """How the released numbers of a column are rounded."""

    steps: Steps | None = None  # None: they are not
    whole: bool = False  # whether they are whole numbers
    keeps_totals: bool = False  # groups go up or down so that totals stay, not to the nearest step

    def nearest(self, values: Floats) -> Floats:
        """Round each value to the nearest step."""
        return values if self.steps is None else self.steps.nearest(values)

    def of_groups(
        self,
        values: Floats,
        variable: Variable,
        labels: Labels,
        weights: Floats | None,
        cells: Labels | None,
    ) -> Floats:
        """Round the released values of groups, (g,), NaN for none; see ``release_records``."""
        if self.steps is None or not self.keeps_totals:
            return self.nearest(values)
        there = ~variable.missing
        counted = None if weights is None else weights[there]
        mass = np.bincount(labels[there], weights=counted, minlength=len(values))
        cell_of_group = np.zeros(len(values), dtype=np.int64)
        if cells is not None:
            cell_of_group[labels] = cells

        def by_cell(steps: Floats) -> Floats:
            """Keep Σ mass·value of each cell to within half a step, if that can be."""
            for groups in rows_of_each(cell_of_group):
                steps[groups] = totals(steps[groups], mass[groups].astype(np.float64))
            return steps

        return self.steps.rounded(values, by_cell)


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
    kind, name = variable.kind, variable.name
    if block.is_swapped:  # among values of others a mean with decimals would show that it is one
        whole = kind != "date" and own.are_whole and name not in plan.related
    else:
        whole = kind == "integer" or (kind == "spiked" and own.are_whole)
        whole = whole and plan.column(name).round in ("nearest", "totals")
    least = own if weighted and block.released == "mean" and not block.is_swapped else None
    if whole or kind == "date":
        units = Steps.of_decimals(0)
        units = units if least is None else least.no_finer(units)
        return Rounding(units, whole, whole and plan.column(name).round == "totals")
    if plan.digits is not None:
        some = isinstance(plan.digits, int)
        return Rounding(Steps.of_decimals(int(plan.digits)) if some else None)
    means = block.is_swapped or block.released in ("mean", "midrange")
    steps = default_steps(spread, least) if means else None
    return Rounding(steps, keeps_totals=steps is not None and steps is least)


def round_related(
    values: Floats, names: Sequence[Any], steps: Sequence[Steps | None], plan: Plan, weighted: bool
) -> Floats:
    """Round columns that relations bind, so that every relation still holds.

    Each equation is solved for one column, which is computed from the others once they are rounded, and so
    has no digit of its own: for the one with the longest steps, whose spread is the largest; where means are
    ``weighted``, for the one with the shortest, since another one would get finer digits than its own values.
    Where rounding breaks an inequality, its terms are rounded to the side that keeps it.

    ``values``, (n, columns), are exact; ``steps`` has those to which each column of ``names`` is rounded,
    None for one that stays as it is.
    """
    at = {name: j for j, name in enumerate(names)}
    relations = [relation for relation in plan.relations if set(relation.columns) <= at.keys()]
    bound = sorted({at[name] for relation in relations for name in relation.columns})
    of_column = {j: column_steps for j in bound if (column_steps := steps[j]) is not None}
    solved: dict[int, Floats] = {}  # column: its factors of the others, and a constant

    def length(j: int) -> float:
        size = of_column[j].size or np.inf  # a column of one value keeps it
        return size if weighted else -size

    def rounded_alone(j: int, numbers: Floats) -> Floats:
        return of_column[j].nearest(numbers) if j in of_column else numbers

    for relation in relations:
        if relation.comparison != "=":
            continue
        row = _row(relation, at, solved)
        free = [j for j in of_column if abs(row[j]) > _NO_FACTOR]
        if free:
            chosen = min(free, key=length)
            factors = -row / row[chosen]
            factors[chosen] = 0.0
            for j, old in solved.items():
                factor, old[chosen] = old[chosen], 0.0
                solved[j] = old + factor * factors
            solved[chosen] = factors

    def computed(released: Floats) -> Floats:
        for j, factors in solved.items():
            used = np.flatnonzero(factors[:-1]).tolist()
            # No matrix product: its last digits may differ between equal rows.
            new = factors[-1] + sum(factors[i] * released[:, i] for i in used)
            if (factors == np.rint(factors)).all():
                decimals = (of_column[i].decimals for i in used if i in of_column)
                new = np.round(new, max(decimals, default=0))
            released[:, j] = np.where(np.isnan(values[:, j]), np.nan, new)
            without = np.isnan(released[:, j]) & ~np.isnan(values[:, j])  # the others
            released[without, j] = rounded_alone(j, values[without, j])
        return released

    released = values.copy()
    for j in bound:
        released[:, j] = rounded_alone(j, values[:, j])
    released = computed(released)
    for relation in relations:
        terms = {name: released[:, at[name]] for name in relation.columns}
        wrong = np.flatnonzero(relation.broken(terms)) if relation.comparison != "=" else ()
        if not len(wrong):
            continue
        row = _row(relation, at, solved) * (1 if relation.comparison == "<=" else -1)
        for j, column_steps in of_column.items():
            if j not in solved and abs(row[j]) > _NO_FACTOR:
                inwards = np.floor if row[j] > 0 else np.ceil
                released[wrong, j] = column_steps.rounded(values[wrong, j], inwards)
        released[wrong] = computed(released.copy())[wrong]
    return released


def _row(relation: Relation, at: Mapping[Any, int], solved: Mapping[int, Floats]) -> Floats:
    """Return the factor of each column, and the constant last, with solved columns replaced."""
    row = np.zeros(len(at) + 1)
    for name, factor in relation.terms.items():
        row[at[name]] = factor
    row[-1] = relation.constant
    for j, factors in solved.items():
        factor, row[j] = row[j], 0.0
        row = row + factor * factors
    return row
