"""The user's own analyses, run on both tables: how far confidence intervals overlap.

:mod:`microagg.plan.analysis_formulas` reads the formulas, :mod:`microagg.measure.estimates` computes each
statistic and defines the overlap.

Records with a missing value in a named column are left out, in each table by itself. Where there are weights,
everything is weighted, in the released table by the released weight if it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

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
    frames = before, after = both.frames("An analysis")
    weights = _all_weights(both.weights, len(before))
    later = weights if released_weights is None else _all_weights(released_weights, len(after))
    codes = {*categories, *(v.name for v in both.variables if v.is_category)}
    with naming_formula(wanted):
        for frame in frames:
            _check_columns(frame, formula)
        if formula.statistic == "regression":
            return _regression(frames, formula, (weights, later), codes, max(k, LEAST))
        return _by_group((_table(before, formula, weights), _table(after, formula, later)), formula)


def _all_weights(weights: Floats | None, n: int) -> Floats:
    """Return weights of all records; 1 if they do not differ."""
    return np.ones(n) if weights is None or weights.min() == weights.max() else weights


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
            weights = np.ones(len(table))
            if whole and formula.statistic == "regression":
                _regression((table, table), formula, (weights, weights), categories)
            elif whole:
                _by_group(2 * (_table(table, formula, weights),), formula)


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


class _Table(NamedTuple):
    """What one table has for a statistic."""

    values: Floats
    """(n,) of the column that is summarised, NaN where missing; of shares, the number of the category."""
    weights: Floats
    """(n,)"""
    rows: dict[Any, Labels]
    """The records of each group that have a value, by its name; None: of no group."""


def _table(frame: Frame, formula: Formula, weights: Floats) -> _Table:
    """Read the columns of a statistic; the shares of categories are those of groups, one a category."""
    names: list[Any]
    groups, names = np.zeros(len(frame), dtype=np.int64), [""]
    if formula.by is not None:
        groups, names = frame.levels(formula.by)
    if formula.statistic == "share":
        codes, levels = frame.levels(formula.response)
        _check_levels(formula.response, levels)
        there = np.array([level is not None for level in levels], dtype=bool)[codes]
        values, groups = np.where(there, codes, np.nan), codes * len(names) + groups
        names = [
            None if level is None or name is None else (level, name)[: 1 + (formula.by is not None)]
            for level in levels
            for name in names
        ]
    else:
        values = _numbers(frame, formula.response)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(len(names) + 1))
    rows = {name: order[starts[i] : starts[i + 1]] for i, name in enumerate(names)}
    return _Table(values, weights, {n: at[~np.isnan(values[at])] for n, at in rows.items()})


def _check_levels(name: Any, levels: Sequence[Any]) -> None:
    if len(levels) > _MOST_LEVELS:
        raise InputError(
            f"Column {shown(name)} has {len(levels):,} different values; as categories of an analysis at "
            f"most {_MOST_LEVELS} are compared. Name a column with fewer, or coarsen it in the plan."
        )


def _by_group(tables: tuple[_Table, _Table], formula: Formula) -> Analysis:
    """Compute a statistic of each group in both tables."""
    first, second = tables
    usable = [
        name
        for name, rows in first.rows.items()
        if name is not None and min(len(rows), len(second.rows.get(name, ()))) > 1
    ]
    if not usable:
        raise InputError(
            "It needs a group with at least two records in both tables; there is none. Group by a column "
            "with fewer values."
        )
    names = [_group_name(name, formula) for name in usable]
    figures = [_figures(table, usable, formula) for table in tables]
    labels = np.full(len(first.values), -1, dtype=np.int64)
    for i, name in enumerate(usable):
        rows = first.rows[name]
        if formula.statistic == "quantile":  # discloses only the values around it
            rows = rows[window(first.values[rows], first.weights[rows], formula.number or 0.0)]
        labels[rows] = i
    about = formula.statistic if formula.statistic in ("quantile", "share") else ""
    return Analysis(
        formula=formula.words,
        kind=formula.statistic,
        estimates=list(map(_estimate, names, *figures)),
        left_out=len({*first.rows, *second.rows}) - len(usable),
        response=f"{about} {formula.response}".strip(),
        _groups=labels[~np.isnan(first.values)],
    )


def _figures(table: _Table, groups: list[Any], formula: Formula) -> list[Figure]:
    """Compute the statistic of each group."""
    x, w, p = table.values, table.weights, formula.number or 0.0
    if formula.statistic == "share":  # of a category among the records of its group, or among all
        together: dict[Any, list[Labels]] = {}
        for name, rows in table.rows.items():
            if name is not None:
                together.setdefault(name[1:], []).append(rows)
        shares = []
        for name in groups:
            rows, members = np.concatenate(together[name[1:]]), table.rows[name]
            share = mean(np.isin(rows, members).astype(np.float64), w[rows])
            shares.append(share._replace(records=len(members)))
        return shares
    if formula.statistic == "poverty":
        there = ~np.isnan(x)
        x, w, index = x[there], w[there], np.cumsum(there) - 1
        line = p * quantile(x, w, 0.5).value
        return [poverty(x, w, line, p, index[table.rows[name]]) for name in groups]
    statistics: dict[str, Callable[..., Figure]] = {
        "mean": mean,
        "gini": gini,
        "quantile": partial(quantile, p=p),
    }
    compute = statistics[formula.statistic]
    return [compute(x[table.rows[name]], w[table.rows[name]]) for name in groups]


def _regression(
    frames: tuple[Frame, Frame],
    formula: Formula,
    weights: tuple[Floats, Floats],
    categories: Collection[Any],
    least: int = LEAST,
) -> Analysis:
    """Least squares with an intercept; a category explains by each of its values but the most frequent.

    Records with a value that fewer than ``least`` have are left out: its coefficient would disclose them,
    and so would those of all others.
    """
    columns: list[list[Floats]] = []  # that explain, in both tables
    names, alone = ["(intercept)"], 0
    for name in formula.others:
        if frames[0].is_numeric(name) and name not in categories:
            names.append(str(name))
            columns.append([_numbers(frame, name) for frame in frames])
            continue
        first, second = fits = [_levels(frame, name) for frame in frames]
        levels = list(first)
        sizes = [int(first[level].sum()) for level in levels]
        others = [int(second[level].sum()) if level in second else 0 for level in levels]
        common = [levels[i] for i in reportable(sizes, others, sum(sizes), least)]
        alone += len({*first, *second}) - len(common)
        if len(common) < 2:
            raise InputError(
                f"Column {shown(name)} explains nothing: it needs two values that "
                f"{plural(least, 'record')} have in both tables."
            )
        usual = max(common, key=lambda level: sizes[levels.index(level)])
        there = [np.any([fit[level] for level in common], axis=0) for fit in fits]
        for level in common:
            if level != usual:
                names.append(f"{name!s} = {_level_name(level)}")
                columns.append(
                    [
                        np.where(has, fit[level], np.nan)
                        for has, fit in zip(there, fits, strict=True)
                    ]
                )
    figures = []
    for frame, explaining, w in zip(frames, zip(*columns, strict=True), weights, strict=True):
        y, X = _numbers(frame, formula.response), np.column_stack(explaining)
        complete = ~(np.isnan(y) | np.isnan(X).any(axis=1))
        figures.append(
            regression(y[complete], X[complete], w[complete], [*map(str, formula.others)])
        )
    estimates = list(map(_estimate, names, *figures))
    return Analysis(formula.words, "regression", estimates, alone, str(formula.response))


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
