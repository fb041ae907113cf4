"""The user's own analyses, run on both tables: how far confidence intervals overlap.

``"income by region"`` compares the mean of income in each region, ``"income ~ age + rent"`` the
coefficients of a linear regression with an intercept. As a list, for names with signs in
them: ``["income", "by", "region"]``, ``["income", "~", "age", "rent"]``.

The overlap of two intervals is the mean of the shares of each that the other covers (Karr,
Kohnen, Oganian, Reiter & Sanil 2006):
J = ½·[(min(u,u')−max(l,l'))/(u−l) + (min(u,u')−max(l,l'))/(u'−l')].
1: the same interval; 0: they touch; below 0: apart, the further the lower.

Records with a missing value in a named column are left out, in each table by itself. With weights, means and
coefficients are weighted and their standard errors linearised, as for a sample with unequal chances:
of a mean m/(m−1)·Σw²(x−x̄)²/(Σw)², of coefficients the sandwich of XᵀWX and Σw²e²xxᵀ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from microagg.errors import InputError, listed, shown
from microagg.groups import Floats, Labels, group_sizes
from microagg.measure.classes import combine
from microagg.measure.pairs import Pair
from microagg.plan_checks import no_column
from microagg.tables.frames import Frame, check_finite

__all__ = [
    "Analysis",
    "Estimate",
    "analyse",
    "check_analyses",
    "check_named",
    "columns_of",
    "safe_together",
]

_LEVEL = 0.975


@dataclass(frozen=True)
class Estimate:
    """One number of an analysis with its 95 % intervals in both tables."""

    name: str
    records: int
    original: float
    original_interval: tuple[float, float]
    protected: float
    protected_interval: tuple[float, float]
    overlap: float


@dataclass(frozen=True)
class Analysis:
    """An analysis and what it gives in both tables."""

    formula: str
    kind: str
    """"means" or "regression"."""
    estimates: list[Estimate]
    left_out: int
    """Groups with fewer than two records, which have no interval, and records of no group as one."""
    response: str = ""
    """The column that is explained."""
    _groups: Labels | None = field(default=None, repr=False, compare=False)
    """Of means: the place of each original record's group among the estimates; −1: left out. Of the records
    that have a value to explain, which are the same for all analyses of a column."""

    @property
    def overlap(self) -> float:
        """Mean overlap of the estimates' intervals; 1 is best."""
        return float(np.mean([estimate.overlap for estimate in self.estimates]))

    @property
    def worst(self) -> float:
        """Least overlap."""
        return float(min(estimate.overlap for estimate in self.estimates))

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON, complete: for whoever holds the originals."""
        return {
            "formula": self.formula,
            "kind": self.kind,
            "estimates": [asdict(estimate) for estimate in self.estimates],
            "left_out": self.left_out,
            "overlap": self.overlap,
            "worst": self.worst,
        }

    def _told(self, keep: Collection[int], least: int) -> dict[str, Any]:
        shown = [estimate for i, estimate in enumerate(self.estimates) if i in keep]
        return {
            "formula": self.formula,
            "kind": self.kind,
            "overlap": float(np.mean([e.overlap for e in shown])) if shown else None,
            "worst": min((e.overlap for e in shown), default=None),
            "left_out": self.left_out + len(self.estimates) - len(shown),
            "least": least,
            "estimates": [asdict(estimate) for estimate in shown],
        }


def safe_together(analyses: Iterable[Analysis], least: int) -> list[dict[str, Any]]:
    """Plain data of analyses, from which nothing about fewer than ``least`` records follows.

    Groups with fewer records are not told. Their total would follow from the mean of all records, so that
    further groups are left out, the smallest first, until ``least`` records are in none that is told.
    Means of one column by several others could be subtracted from each other: those that, together with
    the ones told before, would set fewer than ``least`` records apart are not told.

    >>> few = [Estimate(name, 1, 0.0, (0, 0), 0.0, (0, 0), 1.0) for name in "ab"]
    >>> safe_together([Analysis("x by y", "means", few, 0, "x", np.array([0, 1]))], 2)[0]["left_out"]
    2
    """
    found = []
    apart: dict[str, Labels] = {}  # the sets of records that what was told of a column tells apart
    for analysis in analyses:
        groups = analysis._groups
        if groups is None:
            keep = {i for i, e in enumerate(analysis.estimates) if e.records >= least}
        else:
            keep = _tellable(analysis.estimates, groups, least)
            told = np.where(np.isin(groups, list(keep)), groups, -1)
            before = apart.get(analysis.response, np.zeros_like(told))
            together = combine([before, told])
            if group_sizes(together).min() < least:
                keep = set()
            else:
                apart[analysis.response] = together
        found.append(analysis._told(keep, least))
    return found


def _tellable(estimates: list[Estimate], groups: Labels, least: int) -> set[int]:
    """Places of the groups to tell, such that none or at least ``least`` records are left over."""
    sizes = np.bincount(groups[groups >= 0], minlength=len(estimates))
    by_size = sorted(range(len(estimates)), key=lambda i: (sizes[i], i))
    keep = [i for i in by_size if min(sizes[i], estimates[i].records) >= least]
    left_over = len(groups) - int(sizes[keep].sum())
    while keep and 0 < left_over < least:
        left_over += int(sizes[keep.pop(0)])
    return set(keep)


Wanted = str | Sequence[Any]


def analyse(both: Pair, wanted: Wanted) -> Analysis:
    """Run an analysis on both tables."""
    response, sign, others = _parse(wanted)
    before, after = both.frames("An analysis")
    weights = both.weights
    if weights is not None and weights.min() == weights.max():
        weights = None  # equal weights are none
    with _blaming(wanted):
        for frame in (before, after):
            _check_columns(frame, response, sign, others)
        if sign == "by":
            return _means(before, after, response, others[0], weights)
        return _regression(before, after, response, others, weights)


def check_analyses(
    analyses: Iterable[Wanted], table: Frame, gone: Collection[Any], whole: bool
) -> None:
    """Refuse analyses that cannot work with a table that is to be protected.

    Parameters
    ----------
    gone : columns that the released table will not have
    whole : whether the table has all records, or is only the names and types of one
    """
    for wanted in analyses:
        response, sign, others = _parse(wanted)
        with _blaming(wanted):
            for name in (response, *others):
                if name in gone:
                    raise InputError(
                        f"Column {shown(name)} is dropped or renumbered, and an analysis is for readers of "
                        "the released file. Name columns that stay."
                    )
            _check_columns(table, response, sign, others)
            if whole and sign == "by":
                _usable(*(2 * [_group_means(*_grouped(table, response, others[0]), None)]))
            elif whole:
                _fit(table, response, others, None)


def check_named(analyses: Iterable[Wanted], names: Collection[Any]) -> None:
    """Refuse analyses that name columns which a table does not have."""
    for wanted in analyses:
        for name in columns_of(wanted):
            if name not in names:
                with _blaming(wanted):
                    raise no_column(name, names)


@contextmanager
def _blaming(wanted: Wanted) -> Iterator[None]:
    """Say of an error that the formula of an analysis is at fault."""
    try:
        yield
    except InputError as error:
        raise InputError(f"The analysis {shown(wanted)} cannot be done: {error}") from None


def _check_columns(frame: Frame, response: Any, sign: str, others: Sequence[Any]) -> None:
    """Refuse columns that a table does not have, and others than numbers where numbers are needed."""
    for name in (response, *others):
        if not frame.has(name):
            raise no_column(name, frame.names)
    for name in (response, *(others if sign == "~" else ())):
        if not frame.is_numeric(name):
            way_out = "Compare means by it instead, as in 'income by region'"
            if name == response:
                way_out = "Explain a column of numbers"
            raise InputError(
                f"It computes with column {shown(name)}, which holds {frame.kind_in_words(name)}. "
                f"{way_out}, or turn it into numbers first."
            )


def _numbers(frame: Frame, name: Any) -> Floats:
    """Values of a column, NaN where missing; infinite ones are refused."""
    values = frame.doubles(name)
    check_finite(np.where(np.isnan(values), 0.0, values), name)
    return values


def columns_of(wanted: Wanted) -> list[Any]:
    """Columns that an analysis names.

    >>> columns_of("income ~ age + rent")
    ['income', 'age', 'rent']
    """
    response, _, others = _parse(wanted)
    return [response, *others]


def _parse(wanted: Wanted) -> tuple[Any, str, list[Any]]:
    """Split an analysis into its response, its sign and its other columns."""
    parts: list[Any]
    if isinstance(wanted, str):
        for sign in ("~", " by "):
            left, found, right = wanted.partition(sign)
            if found:
                names = right.split("+") if sign == "~" else [right]
                parts = [left.strip(), sign.strip(), *(name.strip() for name in names)]
                break
        else:
            parts = []
    else:
        parts = list(wanted)
    signed = len(parts) >= 3 and (parts[1] == "~" or (parts[1] == "by" and len(parts) == 3))
    if signed and "" not in parts:
        return parts[0], parts[1], parts[2:]
    raise InputError(
        "An analysis is written 'income by region' or 'income ~ age + rent', or as a list such as "
        f"['income', '~', 'age', 'rent']; got {shown(wanted)}."
    )


def _means(
    before: Frame, after: Frame, response: Any, group: Any, weights: Floats | None
) -> Analysis:
    """Mean of a column in each group of another, with t intervals."""
    values, labels, levels = _grouped(before, response, group)
    first = _group_means(values, labels, levels, weights)
    later = _grouped(after, response, group)
    second = _group_means(*later, weights)
    usable = _usable(first, second)
    estimates = [
        _estimate(_level_name(level), first[level], second[level], (0, 0)) for level in usable
    ]
    place = {level: i for i, level in enumerate(usable)}
    own = np.array([place.get(level, -1) for level in levels], dtype=np.int64)[labels]
    return Analysis(
        formula=f"{_plain(response)} by {_plain(group)}",
        kind="means",
        estimates=estimates,
        left_out=len({*levels, *later[2]}) - len(usable),
        response=_plain(response),
        _groups=own[~np.isnan(values)],
    )


def _usable(first: Mapping[Any, Any], second: Mapping[Any, Any]) -> list[Any]:
    """Groups whose means have intervals in both tables."""
    found = [name for name in first if name in second and min(first[name][0], second[name][0]) > 1]
    if not found:
        raise InputError(
            "Means need a group with at least two records in both tables; there is none. Group by a "
            "column with fewer values."
        )
    return found


def _grouped(frame: Frame, response: Any, group: Any) -> tuple[Floats, Labels, list[Any]]:
    """Values to explain, the number of each record's group, and the groups; a missing group is None."""
    labels, levels = frame.levels(group)
    return _numbers(frame, response), labels, levels


def _group_means(
    values: Floats, labels: Labels, levels: list[Any], weights: Floats | None
) -> dict[Any, tuple[int, float, float]]:
    """Records, mean and standard error of each group that has values."""
    counts = np.array([level is not None for level in levels], dtype=bool)[labels]
    there = counts & ~np.isnan(values)
    w = np.ones(int(there.sum())) if weights is None else weights[there]
    values, labels = values[there], labels[there]
    sizes = np.bincount(labels, minlength=len(levels))
    mass = np.bincount(labels, weights=w, minlength=len(levels))
    base = values[0] if values.size else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.bincount(labels, weights=w * (values - base), minlength=len(levels)) / mass
        squares = np.bincount(
            labels,
            weights=np.square(w * (values - base - means[labels])),
            minlength=len(levels),
        )
        errors = np.sqrt(squares * sizes / np.maximum(sizes - 1, 1)) / mass
    rows = zip(levels, sizes.tolist(), (means + base).tolist(), errors.tolist(), strict=True)
    return {level: (size, mean, error) for level, size, mean, error in rows if size}


def _regression(
    before: Frame, after: Frame, response: Any, others: list[Any], weights: Floats | None
) -> Analysis:
    """Least squares with an intercept, t intervals; classical standard errors unless there are weights."""
    tables = [_fit(frame, response, others, weights) for frame in (before, after)]
    names = ["(intercept)", *(_plain(name) for name in others)]
    spent = len(names) - 1  # beside the one that every interval spends
    estimates = [
        _estimate(name, first, second, (spent, spent))
        for name, first, second in zip(names, *tables, strict=True)
    ]
    formula = f"{_plain(response)} ~ {' + '.join(names[1:])}"
    return Analysis(formula, "regression", estimates, 0, _plain(response))


def _fit(
    frame: Frame, response: Any, others: list[Any], weights: Floats | None
) -> list[tuple[int, float, float]]:
    """Records, coefficient and standard error of the intercept and each column."""
    y = _numbers(frame, response)
    X = np.column_stack([_numbers(frame, name) for name in others])
    there = ~(np.isnan(y) | np.isnan(X).any(axis=1))
    y, X = y[there], X[there]
    w = np.ones(len(y)) if weights is None else weights[there]
    n, free = len(y), len(y) - len(others) - 1
    if free < 1:
        raise InputError(
            f"A regression on {len(others)} columns needs at least {len(others) + 2} records; the "
            f"table has {n} with a value in each of them. Name fewer columns."
        )
    centre, middle = np.average(X, axis=0, weights=w), np.average(y, weights=w)
    spread = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)
    Z = (X - centre) / spread
    root = np.sqrt(w)[:, None]
    Q, R = np.linalg.qr(Z * root)
    if np.abs(np.diag(R)).min() <= 1e-10 * np.abs(np.diag(R)).max(initial=1e-300):
        raise InputError(
            f"The columns {listed(others)} of a regression must not determine each other, nor be "
            "constant; they do in one of the tables. Name fewer columns."
        )
    slope = np.linalg.solve(R, Q.T @ (root[:, 0] * (y - middle)))
    rest = y - middle - Z @ slope
    inverse = np.linalg.inv(R)
    if weights is None:
        variance = np.square(rest).sum() / free
        errors = np.sqrt(variance * np.square(inverse).sum(axis=1)) / spread
        shift = np.linalg.norm(inverse.T @ (centre / spread))
        of_intercept = np.sqrt(variance * (1 / n + shift**2))
    else:
        # What each record adds to the mean and to the slopes; the intercept is ȳ − x̄·slopes.
        mean_parts = w * rest / w.sum()
        slope_parts = (w * rest)[:, None] * (Z @ inverse @ inverse.T) / spread
        grown = n / free
        errors = np.sqrt(grown * np.square(slope_parts).sum(axis=0))
        of_intercept = np.sqrt(grown * np.square(mean_parts - slope_parts @ centre).sum())
    slope = slope / spread
    rows = [(middle - centre @ slope, of_intercept), *zip(slope, errors, strict=True)]
    return [(n, float(value), float(error)) for value, error in rows]


def _estimate(
    name: str,
    first: tuple[int, float, float],
    second: tuple[int, float, float],
    spent: tuple[int, int],
) -> Estimate:
    intervals = [
        _interval(found, len_spent) for found, len_spent in zip((first, second), spent, strict=True)
    ]
    return Estimate(
        name=name,
        records=min(first[0], second[0]),
        original=first[1],
        original_interval=intervals[0],
        protected=second[1],
        protected_interval=intervals[1],
        overlap=overlap(*intervals),
    )


def _interval(found: tuple[int, float, float], spent: int) -> tuple[float, float]:
    """95 % interval from records, estimate and standard error."""
    from scipy.special import stdtrit

    n, value, error = found
    half = float(stdtrit(n - 1 - spent, _LEVEL)) * error
    return value - half, value + half


def overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Mean of the shares of two intervals that the other covers.

    >>> overlap((0, 2), (1, 3)), overlap((0, 1), (0, 1)), overlap((0, 1), (2, 3))
    (0.5, 1.0, -1.0)
    """
    common = min(first[1], second[1]) - max(first[0], second[0])
    shares = []
    for low, high in (first, second):
        if high > low:
            shares.append(common / (high - low))
        else:  # a point is covered or not
            shares.append(1.0 if common >= 0 else 0.0)
    return float(np.mean(shares))


def _plain(name: Any) -> str:
    return name if isinstance(name, str) else str(name)


def _level_name(level: Any) -> str:
    return f"{level:.6g}" if isinstance(level, float) else str(level)
