"""What the groups of a block release, and how it is put into the batches of a table.

The rules are those of :mod:`microagg.released`; here they work on records of one block, with what is known
of the whole table, and give plain numbers, which :func:`put_back` turns into columns of their own type.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from microagg.encode import integer
from microagg.encode.missing import group_states
from microagg.encode.space import released_values
from microagg.groups import Floats, Labels, group_means, sum_of_squares
from microagg.released import related, to_digits, with_codes
from microagg.scale_out.recipe import Coder, Recipe, Records, Words
from microagg.tables.dates import to_arrow
from microagg.tables.frames import Frame
from microagg.tables.variable import CATEGORIES, Variable

__all__ = ["Losses", "Shared", "losses_of", "put_back", "shared_values"]

_WHOLE = 2**53  # up to which whole numbers are doubles


class Shared(NamedTuple):
    """What each record of a block releases, the same for all records of a group."""

    values: Floats  # (n, columns), NaN where missing
    states: Labels  # (n, columns)
    weights: Floats | None  # the mean of the group, where that is released

    def words(self) -> Words:
        """As words, one row a record."""
        parts = [self.values.view(np.uint64), self.states.astype(np.uint64)]
        if self.weights is not None:
            parts.append(self.weights.view(np.uint64)[:, None])
        return np.hstack(parts)

    @classmethod
    def of(cls, words: Words, columns: int) -> Shared:
        """Read what :meth:`words` wrote."""
        values = np.ascontiguousarray(words[:, :columns]).view(np.float64)
        states = words[:, columns : 2 * columns].astype(np.int64)
        weights = None
        if words.shape[1] > 2 * columns:
            weights = np.ascontiguousarray(words[:, 2 * columns]).view(np.float64)
        return cls(values, states, weights)


def shared_values(recipe: Recipe, records: Records, labels: Labels) -> Shared:
    """Aggregate the records of a block by their groups 0, 1, …."""
    plan, block = recipe.plan, recipe.block
    g = int(labels.max()) + 1
    given = recipe.states(records)
    weights = recipe.relative_weights(records)
    values = np.empty(records.values.shape)
    states = np.empty(records.values.shape, dtype=np.int64)
    for j, coder in enumerate(recipe.coders):
        of_groups = group_states(given[:, [j]], labels, g, plan.missing.policy)[:, 0]
        variable = _variable(coder, np.ascontiguousarray(records.values[:, j]))
        found = released_values(variable, labels, g, block.released, weights)
        found = _rounded(found, coder, recipe, weights is not None)
        found[of_groups != 0] = np.nan
        values[:, j], states[:, j] = found[labels], of_groups[labels]
    mean = None
    if plan.weight is not None and plan.weight.release == "mean" and records.weights is not None:
        mean = group_means(records.weights, labels)[labels]
    return Shared(values, states, mean)


def _variable(coder: Coder, values: Floats) -> Variable:
    occurs = np.where(coder.often > 0, 0, -1)
    return Variable(
        coder.name,
        coder.kind,
        values,
        coder.setting,
        levels=coder.levels,
        rows=occurs,
        often=coder.often if len(coder.levels) else None,
    )


def stays_whole(recipe: Recipe, coder: Coder) -> bool:
    """Whether a column of whole numbers is released as whole numbers."""
    rounds = recipe.plan.column(coder.name).round == "nearest"
    return rounds and (coder.kind == "integer" or (coder.kind == "spiked" and coder.whole))


def _rounded(found: Floats, coder: Coder, recipe: Recipe, weighted: bool) -> Floats:
    plan = recipe.plan
    if coder.kind in CATEGORIES:
        return found
    if coder.kind == "date":
        return np.rint(found)
    if stays_whole(recipe, coder):
        return integer.nearest(found)
    if plan.digits is None and (weighted or related(plan, coder.name)):
        return found  # totals and relations hold exactly only without rounding
    return to_digits(found, coder.spread, plan.digits, recipe.block)


def put_back(recipe: Recipe, table: pa.Table, shared: Shared) -> pa.Table:
    """Put released values into a batch of the table, whose rows they belong to, in the columns' own types."""
    frame = Frame(table)
    new: dict[Any, Any] = {}
    for j, (coder, variable) in enumerate(zip(recipe.coders, recipe.variables(table), strict=True)):
        values, states = np.ascontiguousarray(shared.values[:, j]), shared.states[:, j]
        new[coder.name] = _native(recipe, frame, coder, variable, values, states)
    if shared.weights is not None and recipe.plan.weight is not None:
        name = recipe.plan.weight.column
        new[name] = frame.doubles_like(name, shared.weights)
    found = frame.with_columns(new)
    gone = set(recipe.plan.drop)
    if recipe.plan.weight is not None and recipe.plan.weight.release == "drop":
        gone.add(recipe.plan.weight.column)
    return found.select([name for name in found.column_names if name not in gone])


def _native(
    recipe: Recipe,
    frame: Frame,
    coder: Coder,
    variable: Variable,
    values: Floats,
    states: Labels,
) -> Any:
    name, coded = coder.name, states >= 2
    codes = recipe.plan.missing.codes.get(name, ())
    kind = frame.arrow_column(name).type
    if coder.kind in CATEGORIES:
        levels = pa.array(list(coder.levels))
        at = pa.array(np.nan_to_num(values).astype(np.int64), mask=np.isnan(values))
        array = levels.take(at)
        if coded.any():
            array = with_codes(array, states, codes)
        return array.cast(kind)
    if frame.is_numeric(name) and not (coded.any() and any(isinstance(c, str) for c in codes)):
        if coded.any():
            numbers = np.array([float(code) for code in codes])
            values = np.where(coded, numbers[np.where(coded, states - 2, 0)], values)
        return frame.numbers_like(name, values, stays_whole(recipe, coder))
    array = to_arrow(values, kind, 0, variable.format)
    return with_codes(array, states, codes) if coded.any() else array


class Losses(NamedTuple):
    """Sums of squares of a block, which add up over blocks."""

    within: float  # about the means of groups
    released: Floats  # (columns,) distances of records to what they release
    groups: int

    def plus(self, other: Losses) -> Losses:
        """Add those of another block."""
        return Losses(
            self.within + other.within,
            self.released + other.released,
            self.groups + other.groups,
        )


def losses_of(recipe: Recipe, records: Records, labels: Labels, shared: Shared) -> Losses:
    """Sums of squares of the records of a block, in coordinates."""
    X = recipe.coordinates(records)
    weights = recipe.relative_weights(records) if recipe.weighs else None
    w = np.ones(len(X)) if weights is None else weights
    released = np.zeros(len(recipe.coders))
    for j, coder in enumerate(recipe.coders):
        before = coder.encoder.apply(np.ascontiguousarray(records.values[:, j]))
        after = coder.encoder.apply(np.ascontiguousarray(shared.values[:, j]))
        apart = np.square(before - after).sum(axis=1) * coder.setting.importance
        released[j] = float(w @ apart)
    within = sum_of_squares(X, labels) if weights is None else sum_of_squares(X, labels, weights)
    return Losses(within, released, int(labels.max()) + 1)
