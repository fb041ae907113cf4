"""How released numbers are rounded: by the plan, or to a millionth of a column's standard deviation.

Sixteen digits of a mean are of no use, but the fractions reveal the sizes of groups, and, to somebody who has
part of the values, the members. Columns that a relation binds are rounded together, so that it still holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode import number
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.plan.plan_settings import EXACT
from microagg.plan.relations import Relation
from microagg.tables.variable import Variable

# Released means keep this share of a column's standard deviation, unless digits are given.
_KEPT = 1e-6
_NO_FACTOR = 1e-12  # of a column that cancels out


def rounded(
    values: Floats,
    variable: Variable,
    labels: Labels,
    plan: Plan,
    block: Block,
    weights: Floats | None,
    whole: bool,
    spread: float,
) -> Floats:
    """Round the released values of groups by the plan.

    Parameters
    ----------
    values : (g,) of the groups, NaN for none
    variable : the column, of all n records
    labels : (n,) group of each record
    plan, block : with digits, and what groups release
    weights : (n,) with a mean of 1; None: all records count alike
    whole : whether the column is released as whole numbers
    spread : standard deviation of the column in the whole table
    """
    if variable.is_category:
        return values
    if variable.kind == "date":
        return np.rint(values)
    if whole:
        if plan.column(variable.name).round == "nearest":
            return number.nearest(values)
        there = ~variable.missing
        counted = None if weights is None else weights[there]
        mass = np.bincount(labels[there], weights=counted, minlength=len(values)).astype(np.float64)
        return number.totals(values, mass)
    if plan.digits == EXACT or (plan.digits is None and variable.name in plan.related):
        return values  # columns that relations bind are rounded together
    decimals = plan.digits
    if decimals is None:
        decimals = decimals_of(spread) if block.released in ("mean", "midrange") else None
    return to_digits(values, decimals)


def decimals_of(spread: float) -> int | None:
    """Return the decimals of a millionth of a column's standard deviation; None: all of them.

    >>> decimals_of(25.0), decimals_of(3e7), decimals_of(0.0)
    (5, 0, None)
    """
    finest = _KEPT * spread
    return max(0, int(np.ceil(-np.log10(finest)))) if 0 < finest < np.inf else None


def to_digits(released: Floats, decimals: Any) -> Floats:
    """Round to some decimals; None leaves the values as they are."""
    if decimals is None:
        return released
    # Values so large, or spread so narrowly, that they have no such decimals stay as they are.
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.round(released, decimals)
    # Adding 0 turns −0 into 0: −0 would reveal that a mean is just below.
    return np.where(np.isfinite(rounded), rounded + 0.0, released)


def round_related(
    values: Floats, names: Sequence[Any], decimals: Sequence[int | None], plan: Plan
) -> Floats:
    """Round columns that relations bind, so that every relation still holds.

    Each equation is solved for its column with the fewest decimals, which is computed from the others once
    they are rounded, and so has no digit of its own. Where rounding breaks an inequality, its terms
    are rounded to the side that keeps it.

    Parameters
    ----------
    values : (n, columns) released values, exact in the columns that relations name; NaN is missing
    names : of the columns
    decimals : to which each column is rounded; None: it stays as it is
    plan : with the relations

    Returns
    -------
    (n, columns) values
    """
    at = {name: j for j, name in enumerate(names)}
    there = [one for one in plan.relations if set(one.columns) <= at.keys()]
    bound = sorted({at[name] for one in there for name in one.columns})
    solved: dict[int, Floats] = {}  # column: its factors of the others, and a constant
    for one in there:
        if one.comparison != "=":
            continue
        row = _without_solved(_factors(one, at), solved)
        free = [j for j in bound if decimals[j] is not None and abs(row[j]) > _NO_FACTOR]
        if free:
            chosen = min(free, key=lambda j: decimals[j] or 0)
            own = -row / row[chosen]
            own[chosen] = 0.0
            solved = {
                j: np.where(np.arange(len(own)) == chosen, 0.0, old) + old[chosen] * own
                for j, old in solved.items()
            }
            solved[chosen] = own

    def computed(found: Floats) -> Floats:
        for j, factors in solved.items():
            used = np.flatnonzero(factors[:-1]).tolist()
            # No matrix product: its last digits may differ between equal rows.
            new = factors[-1] + sum(factors[i] * found[:, i] for i in used)
            if (factors == np.rint(factors)).all():
                new = np.round(new, max((decimals[i] or 0 for i in used), default=0))
            found[:, j] = np.where(np.isnan(values[:, j]), np.nan, new)
            # Without the others it is rounded by itself.
            alone = np.isnan(found[:, j]) & ~np.isnan(values[:, j])
            found[alone, j] = to_digits(values[alone, j], decimals[j])
        return found

    found = values.copy()
    for j in bound:
        found[:, j] = to_digits(values[:, j], decimals[j])
    found = computed(found)
    for one in there:
        if one.comparison == "=":
            continue
        wrong = np.flatnonzero(one.broken({name: found[:, at[name]] for name in one.columns}))
        if not len(wrong):
            continue
        row = _without_solved(_factors(one, at), solved) * (1 if one.comparison == "<=" else -1)
        for j in bound:
            if decimals[j] is not None and j not in solved and abs(row[j]) > _NO_FACTOR:
                unit = 10.0 ** (decimals[j] or 0)
                side = np.floor if row[j] > 0 else np.ceil
                found[wrong, j] = np.round(side(values[wrong, j] * unit) / unit, decimals[j] or 0)
        found[wrong] = computed(found.copy())[wrong]
    return found


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
