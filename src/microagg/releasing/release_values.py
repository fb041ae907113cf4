"""What groups release in each column: the value, its state, and the column in its own type.

A group releases the admissible value nearest to its centroid (:mod:`microagg.encode`), rounded as the
plan says. It depends on the group alone, so that all its records share it. Where a group has no value,
it releases a missing one, and a code for missing only if all its records have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode import number
from microagg.encode.missing import group_states
from microagg.encode.space import names_of_levels, released_values, with_admissible
from microagg.errors import InputError, shown
from microagg.kernels.labels import standard_deviation
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.tables.dates import to_arrow
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable

# Released means keep this share of a column's standard deviation, unless digits are given.
_KEPT = 1e-6


@dataclass(frozen=True)
class MissingCounts:
    """Counts of values of one column that are not the aggregate of present values."""

    missing: int
    """Missing before."""
    blanked: int
    """Values that are released as missing."""
    filled: int
    """Missing values in whose place the group's value is released."""
    codes_lost: int
    """Codes for missing that are released as plainly missing."""


@dataclass(frozen=True, eq=False)
class Released:
    """Released columns of one block."""

    values: Floats  # (n, columns), in the numbering of the variables; NaN: missing
    states: Labels  # (n, columns)
    groups: Labels  # (n, columns) group of each record, by which a column was aggregated
    missing_counts: Mapping[Any, MissingCounts]
    columns: Mapping[Any, Any]  # native columns by name


def release_block(
    frame: Frame,
    variables: Sequence[Variable],
    states: Labels,
    labels: Labels,
    block: Block,
    plan: Plan,
    weights: Floats | None = None,
    of_households: tuple[Labels, Sequence[bool]] | None = None,
    units: Labels | None = None,
) -> Released:
    """Aggregate the columns of a block by the groups of its records.

    ``states`` (n, columns) includes values that the join of patterns blanked. Where whole households move
    together, ``of_households`` is the group of each record's household, and for each column whether a
    household has one value, which is then averaged over whole groups of households. A category that fewer
    than k of the ``units`` hold is not released.
    """
    values = np.empty((len(labels), len(variables)))
    released = np.empty(values.shape, dtype=np.int64)
    groups = np.empty(values.shape, dtype=np.int64)
    columns, missing_counts = {}, {}
    for j, variable in enumerate(variables):
        own = labels
        if of_households is not None and of_households[1][j]:
            own = of_households[0]
        groups[:, j] = own
        able = with_admissible(variable, block.k or 1, units)
        whole = keeps_integers(plan, variable.name, variable.kind, _is_whole(frame, variable))
        if whole:
            frame.check_roundable(variable.name, variable.values[~variable.missing])
        values[:, j], released[:, j] = release_column(
            able, states[:, j], own, plan, block, weights, whole
        )
        counts = count_missing(variable.states, released[:, j])
        missing_counts[variable.name] = MissingCounts(*counts)
        make = _native_category if variable.is_category else native_column
        columns[variable.name] = make(frame, variable, values[:, j], released[:, j], whole)
    return Released(values, released, groups, missing_counts, columns)


def release_column(
    variable: Variable,
    states: Labels,
    labels: Labels,
    plan: Plan,
    block: Block,
    weights: Floats | None,
    whole: bool,
    spread: float | None = None,
) -> tuple[Floats, Labels]:
    """Return the released value of each record in a column, in the numbering of the variable, and its state.

    ``states`` includes values that the join of patterns blanked; for ``whole`` see :func:`keeps_integers`;
    ``spread`` is the standard deviation of the column, by default that of these records.
    """
    g = int(labels.max()) + 1
    # What the join of patterns blanked is missing for its whole group.
    of_groups = group_states(states[:, None], labels, g, plan.missing.policy)[:, 0]
    found = released_values(variable, labels, g, block.released, weights)
    # A group without an admissible value releases a missing one.
    of_groups = np.where((of_groups == 0) & np.isnan(found), 1, of_groups)
    found = _rounded(found, variable, labels, plan, block, weights, whole, spread)
    found[of_groups != 0] = np.nan
    return found[labels], of_groups[labels]


def count_missing(before: Labels, after: Labels) -> tuple[int, int, int, int]:
    """Count the fields of :class:`MissingCounts` in the states of a column before and after."""
    return (
        int(np.count_nonzero(before)),
        int(np.count_nonzero((before == 0) & (after != 0))),
        int(np.count_nonzero((before != 0) & (after == 0))),
        int(np.count_nonzero((before >= 2) & (after == 1))),
    )


def keeps_integers(plan: Plan, name: Any, kind: str, is_whole: bool) -> bool:
    """Return whether a column is released as whole numbers; ``is_whole``: all its numbers are whole."""
    kept = kind == "integer" or (kind == "spiked" and is_whole)
    return kept and plan.column(name).round in ("nearest", "totals")


def _is_whole(frame: Frame, variable: Variable) -> bool:
    if variable.kind != "spiked" or not frame.is_numeric(variable.name):
        return False
    there = variable.values[~variable.missing]
    return bool((there == np.rint(there)).all())


def _rounded(
    found: Floats,
    variable: Variable,
    labels: Labels,
    plan: Plan,
    block: Block,
    weights: Floats | None,
    whole: bool,
    spread: float | None,
) -> Floats:
    """Round the released values of groups by the plan."""
    if variable.is_category:
        return found
    if variable.kind == "date":
        return np.rint(found)
    if whole:
        if plan.column(variable.name).round == "nearest":
            return number.nearest(found)
        there = ~variable.missing
        own = None if weights is None else weights[there]
        mass = np.bincount(labels[there], weights=own, minlength=len(found)).astype(np.float64)
        return number.totals(found, mass)
    related = any(variable.name in relation.columns for relation in plan.relations)
    if plan.digits is None and (weights is not None or related):
        return found  # totals and relations hold exactly only without rounding
    if spread is None:
        spread = standard_deviation(variable.values[~variable.missing])
    return to_digits(found, spread, plan.digits, block)


def to_digits(released: Floats, spread: float, decimals: int | None, block: Block) -> Floats:
    """Round to the digits asked for, or means to a millionth of the column's standard deviation.

    Sixteen digits of a mean are of no use, but the fractions reveal the sizes of groups.
    """
    if decimals is None:
        finest = _KEPT * spread
        if block.released not in ("mean", "midrange") or not 0 < finest < np.inf:
            return released
        decimals = max(0, int(np.ceil(-np.log10(finest))))
    # Values so large, or spread so narrowly, that they have no such decimals stay as they are.
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.round(released, decimals)
    # Adding 0 turns −0 into 0: −0 would reveal that a mean is just below.
    return np.where(np.isfinite(found), found + 0.0, released)


def native_column(
    frame: Frame, variable: Variable, values: Floats, state: Labels, whole: bool
) -> Any:
    """Make the released column of a quantity or a date, in the type of the original."""
    name = variable.name
    coded = state >= 2
    texts = coded.any() and any(isinstance(code, str) for code in variable.codes)
    if frame.is_numeric(name) and not texts:
        if coded.any():
            numbers = np.array([float(code) for code in variable.codes])
            values = np.where(coded, numbers[np.where(coded, state - 2, 0)], values)
        return frame.numbers_like(name, values, whole)
    kind = frame.arrow_column(name).type
    if variable.kind == "date":
        array = to_arrow(values, kind, variable.origin, variable.format)
    else:
        array = _texts_of_numbers(values)
        array = array if frame.is_numeric(name) else array.cast(kind)
    if coded.any():
        array = with_codes(array, state, variable.codes)
    return frame.arrow_like(name, array)


def _native_category(
    frame: Frame, variable: Variable, values: Floats, state: Labels, whole: bool
) -> Any:
    import pyarrow as pa

    levels = np.where(np.isnan(values), -1, np.nan_to_num(values)).astype(np.int64)
    if levels.max(initial=-1) >= len(variable.levels):  # nodes, which no record has
        if frame.kind_in_words(variable.name) not in ("text", "categories"):
            raise InputError(
                f"Nodes of a hierarchy are text, which stands in a column of text; {shown(variable.name)} "
                f"holds {frame.kind_in_words(variable.name)}. Turn it into text first, or release leaves."
            )
        names = [str(name) for name in names_of_levels(variable)]
        array = pa.array([None if level < 0 else names[level] for level in levels], pa.string())
        array = with_codes(array, state, variable.codes) if (state >= 2).any() else array
        return frame.arrow_like(variable.name, array)
    rows = np.where(levels < 0, -1, np.append(variable.rows, -1)[levels])
    if (state >= 2).any():
        assert variable.tags is not None
        of_tag = np.full(len(variable.codes), -1)
        coded = np.flatnonzero(variable.tags >= 0)[::-1]
        of_tag[variable.tags[coded]] = coded
        rows = np.where(state >= 2, of_tag[np.maximum(state - 2, 0)], rows)
    return frame.taken(variable.name, rows)


def _texts_of_numbers(values: Floats) -> Any:
    import pyarrow as pa

    texts = [
        None if np.isnan(v) else (str(int(v)) if v == int(v) else repr(v)) for v in values.tolist()
    ]
    return pa.array(texts, pa.string())


def with_codes(array: Any, state: Labels, codes: Sequence[Any]) -> Any:
    """Put the codes of missing values into a column of text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array([str(codes[s - 2]) if s >= 2 else None for s in state.tolist()], array.type)
    return pc.if_else(pa.array(state >= 2), texts, array)
