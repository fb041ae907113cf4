"""The user's own analyses, run on both tables: how far confidence intervals overlap.

:mod:`microagg.plan.analysis_formulas` reads the formulas, :mod:`microagg.measure.estimates` computes each
statistic and defines the overlap.

Records with a missing value in a named column are left out, in each table by itself. Where there are weights,
everything is weighted, in the released table by the released weight if it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, shown
from microagg.measure.both_tables import Pair
from microagg.measure.estimates import (
    LEAST,
    Analysis,
    Estimate,
    Figure,
    gini,
    mean,
    overlap,
    poverty,
    quantile,
    regression,
    reportable,
    window,
)
from microagg.plan.analysis_formulas import Formula, naming_formula, read_formula
from microagg.plan.checks import no_column
from microagg.tables.finite import check_finite
from microagg.tables.frame import Frame

_MOST_LEVELS = 50  # of a category that explains, or whose shares are asked for

Wanted = str | Sequence[Any]


def analyse(
    both: Pair,
    wanted: Wanted,
    released_weights: Floats | None = None,
    k: int = 1,
    categories: Collection[Any] = (),
) -> Analysis:
    """Run an analysis on both tables.

    Parameters
    ----------
    both : both tables, as frames
    wanted : the formula as the user wrote it
    released_weights : (n,) weights of the released table, if they differ from those of ``both``
    k : a coefficient is reported of a category with k or ``LEAST`` records
    categories : columns of numbers that are codes
    """
    formula = read_formula(wanted)
    before, after = both.frames("An analysis")
    weights = _unequal(both.weights)
    later = weights if released_weights is None else _unequal(released_weights)
    codes = {*categories, *(v.name for v in both.variables if v.is_category)}
    with naming_formula(wanted):
        for frame in (before, after):
            _check_columns(frame, formula)
        if formula.statistic == "regression":
            return _regression(before, after, formula, (weights, later), codes, max(k, LEAST))
        tables = _table(before, formula, weights), _table(after, formula, later)
        return _by_group(tables, formula)


def _unequal(weights: Floats | None) -> Floats | None:
    """Return weights that differ; equal weights are none."""
    return None if weights is None or weights.min() == weights.max() else weights


def check_analyses(
    analyses: Iterable[Wanted],
    table: Frame,
    gone: Collection[Any],
    whole: bool,
    categories: Collection[Any] = (),
) -> None:
    """Refuse analyses that cannot work with a table that is to be protected.

    Parameters
    ----------
    analyses : formulas as the user wrote them
    table : the table, or its first records
    gone : columns that the released table will not have
    whole : whether ``table`` has all records; if not, only names and types are checked
    categories : columns of numbers that are codes
    """
    for wanted in analyses:
        formula = read_formula(wanted)
        with naming_formula(wanted):
            for name in formula.columns:
                if name in gone:
                    raise InputError(
                        f"Column {shown(name)} is dropped or renumbered, and an analysis is for readers of "
                        "the released file. Name columns that stay."
                    )
            _check_columns(table, formula)
            if whole and formula.statistic == "regression":
                _regression(table, table, formula, (None, None), categories)
            elif whole:
                _by_group(2 * (_table(table, formula, None),), formula)


def _check_columns(frame: Frame, formula: Formula) -> None:
    """Refuse columns that a table does not have, and others than numbers where numbers are needed."""
    for name in formula.columns:
        if not frame.has(name):
            raise no_column(name, frame.names)
    name = formula.response
    if formula.statistic != "share" and not frame.is_numeric(name):
        raise InputError(
            f"It computes with column {shown(name)}, which holds {frame.kind_in_words(name)}. Name a "
            f"column of numbers, compare its shares, as in 'share({name})', or turn it into numbers first."
        )


def _numbers(frame: Frame, name: Any) -> Floats:
    """Values of a column, NaN where missing; infinite ones are refused."""
    values = frame.doubles(name)
    check_finite(np.where(np.isnan(values), 0.0, values), name)
    return values


@dataclass(frozen=True)
class _Table:
    """What one table has for a statistic: values, weights and the records of each group."""

    values: Floats
    """Of the column that is summarised, NaN where missing; of shares, the number of the category."""
    weights: Floats | None
    names: list[Any]
    """Of the groups; None: no group."""
    rows: Mapping[Any, Labels]
    """The records of each group that have a value."""


def _table(frame: Frame, formula: Formula, weights: Floats | None) -> _Table:
    """Read the columns of a statistic; the shares of categories are those of groups, one a category."""
    n = len(frame)
    names: list[Any]
    groups, names = np.zeros(n, dtype=np.int64), [""]
    if formula.by is not None:
        groups, names = frame.levels(formula.by)
    if formula.statistic == "share":
        codes, levels = frame.levels(formula.response)
        _check_levels(formula.response, levels)
        there = np.array([level is not None for level in levels], dtype=bool)[codes]
        values = np.where(there, codes, np.nan)
        pairs = [
            None if level is None or name is None else (level, name)[: 1 + (formula.by is not None)]
            for level in levels
            for name in names
        ]
        return _Table(values, weights, pairs, _rows(codes * len(names) + groups, pairs, values))
    values = _numbers(frame, formula.response)
    return _Table(values, weights, names, _rows(groups, names, values))


def _check_levels(name: Any, levels: Sequence[Any]) -> None:
    if len(levels) > _MOST_LEVELS:
        raise InputError(
            f"Column {shown(name)} has {len(levels):,} different values; as categories of an analysis at "
            f"most {_MOST_LEVELS} are compared. Name a column with fewer, or coarsen it in the plan."
        )


def _rows(groups: Labels, names: list[Any], values: Floats) -> dict[Any, Labels]:
    """Rows of each group that have a value; those of no group are left out."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(len(names) + 1))
    rows_of = {}
    for i, name in enumerate(names):
        rows = order[starts[i] : starts[i + 1]]
        rows = rows[~np.isnan(values[rows])]
        if name is not None and len(rows):
            rows_of[name] = rows
    return rows_of


def _by_group(tables: tuple[_Table, _Table], formula: Formula) -> Analysis:
    """Compute a statistic of each group in both tables."""
    first, second = tables
    usable = _usable(first, second)
    computed = [_statistic(table, formula) for table in tables]
    estimates = [
        _estimate(_group_name(name, formula), *(compute(name) for compute in computed))
        for name in usable
    ]
    labels = np.full(len(first.values), -1, dtype=np.int64)
    for i, name in enumerate(usable):
        rows = first.rows[name]
        if formula.statistic == "quantile":  # discloses only the values around it
            rows = rows[window(first.values[rows], _of(first.weights, rows), _number(formula))]
        labels[rows] = i
    about = formula.statistic if formula.statistic in ("quantile", "share") else ""
    every = {*first.names, *second.names}
    return Analysis(
        formula=formula.words,
        kind=formula.statistic,
        estimates=estimates,
        left_out=len(every) - len(usable),
        response=f"{about} {formula.response}".strip(),
        _groups=labels[~np.isnan(first.values)],
    )


def _number(formula: Formula) -> float:
    assert formula.number is not None  # quantiles and poverty lines have one
    return formula.number


def _of(weights: Floats | None, rows: Labels) -> Floats | None:
    return None if weights is None else weights[rows]


def _statistic(table: _Table, formula: Formula) -> Callable[[Any], Figure]:
    """Return the function that computes the statistic of a group."""
    x, w = table.values, table.weights
    if formula.statistic == "share":
        return _shares(table)
    if formula.statistic == "poverty":
        p, there = _number(formula), np.flatnonzero(~np.isnan(x))
        incomes, weights = x[there], _of(w, there)
        index = np.cumsum(~np.isnan(x)) - 1
        line = p * quantile(incomes, weights, 0.5).value
        return lambda name: poverty(incomes, weights, line, p, index[table.rows[name]])
    if formula.statistic == "quantile":
        compute: Callable[[Floats, Floats | None], Figure] = partial(quantile, p=_number(formula))
    else:
        compute = {"mean": mean, "gini": gini}[formula.statistic]
    return lambda name: compute(x[table.rows[name]], _of(w, table.rows[name]))


def _shares(table: _Table) -> Callable[[Any], Figure]:
    """Return what estimates the share of a category among the records of its group, or of all."""
    together: dict[Any, list[Labels]] = {}
    for name, rows in table.rows.items():
        together.setdefault(name[1:], []).append(rows)
    groups = {group: np.concatenate(several) for group, several in together.items()}

    def share(name: tuple[Any, ...]) -> Figure:
        rows, members = groups[name[1:]], table.rows[name]
        has = np.isin(rows, members).astype(np.float64)
        return mean(has, _of(table.weights, rows))._replace(records=len(members))

    return share


def _usable(first: _Table, second: _Table) -> list[Any]:
    """Return the groups whose estimates have intervals in both tables."""
    usable = [
        name
        for name, rows in first.rows.items()
        if min(len(rows), len(second.rows.get(name, ()))) > 1
    ]
    if not usable:
        raise InputError(
            "It needs a group with at least two records in both tables; there is none. Group by a column "
            "with fewer values."
        )
    return usable


def _regression(
    before: Frame,
    after: Frame,
    formula: Formula,
    weights: tuple[Floats | None, Floats | None],
    categories: Collection[Any],
    least: int = LEAST,
) -> Analysis:
    """Least squares with an intercept; a category explains by each of its values but the most frequent.

    Records with a value that fewer than ``least`` have are left out.
    """
    columns: list[list[Floats]] = [[], []]
    names, alone = list[str](), 0
    for name in formula.others:
        if before.is_numeric(name) and name not in categories:
            names.append(str(name))
            for side, frame in zip(columns, (before, after), strict=True):
                side.append(_numbers(frame, name))
            continue
        first, second = (_levels(frame, name) for frame in (before, after))
        common = _common_levels(first, second, least)
        alone += len({*first, *second}) - len(common)
        if len(common) < 2:
            raise InputError(
                f"Column {shown(name)} explains nothing: it needs two values that "
                f"{plural(least, 'record')} have in both tables."
            )
        usual = max(common, key=lambda level: int(first[level].sum()))
        for level in common:
            if level != usual:
                names.append(f"{name!s} = {_level_name(level)}")
        for side, fit in zip(columns, (first, second), strict=True):
            there = np.any([fit[level] for level in common], axis=0)
            side += [
                np.where(there, fit[level].astype(np.float64), np.nan)
                for level in common
                if level != usual
            ]
    others = [str(name) for name in formula.others]
    tables = []
    for frame, side, w in zip((before, after), columns, weights, strict=True):
        y, X = _numbers(frame, formula.response), np.column_stack(side)
        there = ~(np.isnan(y) | np.isnan(X).any(axis=1))
        w = None if w is None else w[there]
        tables.append(regression(y[there], X[there], w, others))
    estimates = [
        _estimate(name, *both) for name, *both in zip(["(intercept)", *names], *tables, strict=True)
    ]
    return Analysis(formula.words, "regression", estimates, alone, str(formula.response))


def _common_levels(first: Mapping[Any, Any], second: Mapping[Any, Any], least: int) -> list[Any]:
    """Choose values that ``least`` records have in both tables; no record, or ``least``, have others.

    The coefficient of a value that few have would disclose them, and so would those of all others.
    """
    sizes, others = (
        [int(has[level].sum()) if level in has else 0 for level in first] for has in (first, second)
    )
    levels = list(first)
    return [levels[i] for i in reportable(sizes, others, sum(sizes), least)]


def _levels(frame: Frame, name: Any) -> dict[Any, Any]:
    """Find the records that have each value of a column."""
    codes, levels = frame.levels(name)
    _check_levels(name, levels)
    return {level: codes == i for i, level in enumerate(levels) if level is not None}


def _estimate(name: str, first: Figure, second: Figure) -> Estimate:
    records, shared = min(first.records, second.records), overlap(first.interval, second.interval)
    return Estimate(
        name, records, first.value, first.interval, second.value, second.interval, shared
    )


def _group_name(name: Any, formula: Formula) -> str:
    if isinstance(name, tuple):
        return ", ".join(map(_level_name, name))
    return formula.words if formula.by is None else _level_name(name)


def _level_name(level: Any) -> str:
    return f"{level:.6g}" if isinstance(level, float) else str(level)
