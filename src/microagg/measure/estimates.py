"""Estimates of the user's analyses with their intervals, and which of them can be published together.

Each estimate has a 95 % interval, weighted where there are weights. A mean has Student's interval. The errors
of weighted means, of the Gini coefficient and of the share at risk of poverty are linearised, as for a sample
with unequal chances: √(m/(m−1)·Σ(w·z)²) for the influence z of each record. A quantile is the mean of the ten
values around it, so that it is nobody's own, and its interval runs from one quantile to another: those of the
interval of its share (Woodruff 1952). A regression has classical errors, or the sandwich of XᵀWX and Σw²e²xxᵀ
with weights.

The overlap of two intervals is the mean of the shares of each that the other covers (Karr, Kohnen, Oganian,
Reiter & Sanil 2006): J = ½·[(min(u,u')−max(l,l'))/(u−l) + (min(u,u')−max(l,l'))/(u'−l')].
1: the same interval; 0: they touch; below 0: apart, the further the lower. An analysis has moved by 1 − J:
by this share of its interval, if both are equally wide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np

from microagg.base.formatting import number, plural, share
from microagg.base.typing import Floats, Labels
from microagg.errors import InputError, listed
from microagg.kernels.labels import combine, group_sizes

LEAST = 10
"""Least number of records of a group that is reported, or k if that is more. From the mean and interval of a
few whole numbers each of them could be computed."""


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
    """The statistic: regression, mean, quantile, share, gini or poverty."""
    estimates: list[Estimate]
    left_out: int
    """Groups with fewer than two records, which have no interval, and records of no group as one; also
    categories that only one of the tables has."""
    response: str = ""
    """The column that is explained; of quantiles and shares, these of it."""
    _groups: Labels | None = field(default=None, repr=False, compare=False)
    """The place of each original record's group among the estimates; −1: left out. Of the records
    that have a value to explain, which are the same for all analyses of a column. None: of a regression."""

    @property
    def overlap(self) -> float:
        """Mean overlap of the estimates' intervals; 1 is best."""
        return float(np.mean([estimate.overlap for estimate in self.estimates]))

    @property
    def worst(self) -> float:
        """Least overlap."""
        return min(estimate.overlap for estimate in self.estimates)

    @property
    def moved(self) -> float:
        """Share of its interval by which the analysis moved on average; 0 is best."""
        return 1 - self.overlap

    @property
    def before_after(self) -> str:
        """Its estimate in both tables, if it is one; empty if there are several.

        >>> one = Estimate("gini(x)", 9, 0.3, (0.2, 0.4), 0.25, (0.2, 0.3), 0.75)
        >>> Analysis("gini(x)", "gini", [one], 0).before_after
        '0.3 → 0.25'
        """
        if len(self.estimates) > 1:
            return ""
        put = share if self.kind in ("share", "poverty") else number
        return f"{put(self.estimates[0].original)} → {put(self.estimates[0].protected)}"

    @property
    def short(self) -> str:
        """The analysis and its estimate or, if it has several or quantiles, how far these moved."""
        moved = f"moved by {self.moved:.2f} of its 95 % intervals"
        value = "" if self.kind == "quantile" else self.before_after
        return f"{self.formula} {value or moved}"

    @property
    def words(self) -> str:
        """What became of the analysis: its estimate, if it is one, and how far intervals overlap."""
        only = self.before_after
        before_after = f"{only}; " if only else ""
        on_average = "" if only else f" on average, at worst {self.worst:.2f}"
        return (
            f"{self.formula}: {before_after}the 95 % intervals before and after overlap by "
            f"{self.overlap:.2f}{on_average} (1: the same, 0: they touch)"
        )

    def as_dict(self, keep: Collection[int] | None = None) -> dict[str, Any]:
        """Plain data for JSON: complete, for people who hold the originals, or only the estimates to keep."""
        shown = [e for i, e in enumerate(self.estimates) if keep is None or i in keep]
        return {
            "formula": self.formula,
            "kind": self.kind,
            "overlap": float(np.mean([e.overlap for e in shown])) if shown else None,
            "worst": min((e.overlap for e in shown), default=None),
            "left_out": self.left_out + len(self.estimates) - len(shown),
            "estimates": [asdict(estimate) for estimate in shown],
        }


def safe_together(analyses: Iterable[Analysis], least: int) -> list[dict[str, Any]]:
    """Return plain data of ``analyses``, from which nothing about fewer than ``least`` records follows.

    Groups with fewer records are not reported. Their total would follow from the mean of all records, so that
    further groups are left out, the smallest first, until ``least`` records are in no reported group.
    Means of one column by several others could be subtracted from each other: an analysis is left out if it,
    together with those before, would separate fewer than ``least`` records. The same rule holds for the
    categories of shares, and for the values around quantiles.

    >>> few = [Estimate(name, 1, 0.0, (0, 0), 0.0, (0, 0), 1.0) for name in "ab"]
    >>> safe_together([Analysis("x by y", "mean", few, 0, "x", np.array([0, 1]))], 2)[0]["left_out"]
    2
    """
    safe = []
    apart: dict[str, Labels] = {}  # the sets of records that reported analyses of a column separate
    for analysis in analyses:
        groups = analysis._groups
        if groups is None:
            keep = {i for i, e in enumerate(analysis.estimates) if e.records >= least}
        else:
            sizes = np.bincount(groups[groups >= 0], minlength=len(analysis.estimates)).tolist()
            records = [estimate.records for estimate in analysis.estimates]
            keep = set(reportable(sizes, records, len(groups), least))
            reported = np.where(np.isin(groups, list(keep)), groups, -1)
            before = apart.get(analysis.response, np.zeros_like(reported))
            together = combine([before, reported])
            if group_sizes(together).min() < least:
                keep = set()
            else:
                apart[analysis.response] = together
        safe.append({**analysis.as_dict(keep), "least": least})
    return safe


def reportable(sizes: Sequence[int], others: Sequence[int], total: int, least: int) -> list[int]:
    """Choose groups to report, such that no record or at least ``least`` are left over.

    ``sizes`` are the records of each group in one table, ``others`` in the other one; ``total`` are all
    records of the first.

    >>> reportable([5, 2, 3], [5, 2, 3], 10, 3)
    [0]
    """
    by_size = sorted(range(len(sizes)), key=lambda i: sizes[i])
    keep = [i for i in by_size if min(sizes[i], others[i]) >= least]
    left_over = total - sum(sizes[i] for i in keep)
    while keep and 0 < left_over < least:
        left_over += sizes[keep.pop(0)]
    return sorted(keep)


AROUND = 10
"""Values whose mean is a quantile."""
_LEVEL = 0.975


class Figure(NamedTuple):
    """One estimate in one table."""

    records: int
    value: float
    interval: tuple[float, float]
    """Of 95 %."""


def overlap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Mean of the shares of two intervals that the other covers.

    >>> overlap((0, 2), (1, 3)), overlap((0, 1), (0, 1)), overlap((0, 1), (2, 3))
    (0.5, 1.0, -1.0)
    """
    common = min(first[1], second[1]) - max(first[0], second[0])
    return float(
        np.mean(
            [
                common / (high - low) if high > low else float(common >= 0)  # a point is in or not
                for low, high in (first, second)
            ]
        )
    )


def mean(x: Floats, w: Floats) -> Figure:
    """Estimate the mean of at least two values."""
    middle = float(x[0] + np.average(x - x[0], weights=w))
    return _with_error(len(x), middle, _error(w, (x - middle) / w.sum()))


def gini(x: Floats, w: Floats) -> Figure:
    """Estimate the Gini coefficient: 0 if all have the same, near 1 if one has all.

    >>> round(gini(np.array([1.0, 3.0]), np.ones(2)).value, 3)
    0.25
    """
    total = float(w @ x)
    if total <= 0 or x.min() < 0:
        raise InputError(
            "A Gini coefficient is about amounts of 0 or more, not all 0; there are others. Choose another "
            "column or another statistic."
        )
    # Below or equal, with half of those that are equal: the rank of a record, and what those above it have.
    _, inverse = np.unique(x, return_inverse=True)
    inverse = inverse.reshape(-1)
    mass, amount = np.bincount(inverse, weights=w), np.bincount(inverse, weights=w * x)
    rank = ((np.cumsum(mass) - mass / 2) / w.sum())[inverse]
    above = ((total - np.cumsum(amount) + amount / 2) / w.sum())[inverse]
    ranked = float(w @ (x * rank))
    value = 2 * ranked / total - 1
    influence = (2 * (x * rank + above - ranked / w.sum()) - (value + 1) * x) / total
    return _with_error(len(x), value, _error(w, influence))


def poverty(x: Floats, w: Floats, line: float, of_median: float, rows: Labels) -> Figure:
    """Estimate the share of some records whose income is below a share of the median of all.

    ``x`` and ``w`` are of all records, ``rows`` those whose rate it is; the ``line`` is the share
    ``of_median``.
    """
    poor = x < line
    member_weights = np.zeros(len(x))
    member_weights[rows] = w[rows]
    mass = member_weights.sum()
    value = float(member_weights @ poor / mass)
    # The line moves with the median: what a record does to the rate by that.
    median = line / of_median
    at_line, at_median = _density(x, member_weights, line), _density(x, w, median)
    pull = of_median * at_line / at_median if at_median > 0 else 0.0
    influence = np.where(member_weights > 0, (poor - value) / mass, 0.0)
    influence -= pull * ((x < median) - 0.5) / w.sum()
    return _with_error(len(rows), value, _error(w, influence))


def _density(x: Floats, w: Floats, at: float) -> float:
    """Estimate the density at a point by normal kernels."""
    quarter, three = (_quantile(x, w, p) for p in (0.25, 0.75))
    width = 0.79 * max(three - quarter, 1e-9 * max(abs(three), 1.0)) * len(x) ** -0.2
    kernels = np.exp(-0.5 * np.square((x - at) / width)) / (width * np.sqrt(2 * np.pi))
    return float(np.average(kernels, weights=w))


def quantile(x: Floats, w: Floats, p: float) -> Figure:
    """Estimate a quantile: the mean of the values around it."""
    value = _quantile(x, w, p)
    half = _student(len(x) - 1) * _error(w, ((x <= value) - p) / w.sum())
    low, high = (_quantile(x, w, at) for at in (max(p - half, 0.0), min(p + half, 1.0)))
    return Figure(len(x), value, (min(low, value), max(high, value)))


def _quantile(x: Floats, w: Floats, p: float) -> float:
    rows = window(x, w, p)
    return float(x[rows[0]] + np.average(x[rows] - x[rows[0]], weights=w[rows]))


def window(x: Floats, w: Floats, p: float, around: int = AROUND) -> Labels:
    """Return the rows of the values around a quantile, ten if not said otherwise, or of all if fewer.

    >>> window(np.arange(21.0), np.ones(21), 0.5).tolist()
    [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    """
    # Equal values by their weights, so that the order of rows does not matter. With equal weights nothing
    # needs to be sorted but the window.
    order = None if w.min() == w.max() else np.lexsort((w, x))
    upto = np.cumsum(w if order is None else w[order])
    at = int(np.searchsorted(upto, upto[-1] * p * (1 - 1e-12)))
    count = min(len(x), around + (len(x) - around) % 2)  # as many on either side of the median
    start = min(max(min(at, len(x) - 1) - (count - 1) // 2, 0), len(x) - count)
    if order is None:
        order = np.argpartition(x, (start, start + count - 1))
        order[start : start + count] = sorted(order[start : start + count], key=lambda row: x[row])
    return order[start : start + count]


def regression(y: Floats, X: Floats, w: Floats, names: list[str]) -> list[Figure]:
    """Fit least squares with an intercept; return it and the coefficient of each column."""
    n, free = len(y), len(y) - X.shape[1] - 1
    if free < 1:
        raise InputError(
            f"A regression with {X.shape[1]} coefficients needs at least "
            f"{plural(X.shape[1] + 2, 'record')}; the table has {n} with a "
            "value in each of its columns. Name fewer columns."
        )
    centre, middle = np.average(X, axis=0, weights=w), np.average(y, weights=w)
    spread = np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 1.0)
    Z = (X - centre) / spread
    root = np.sqrt(w)[:, None]
    Q, R = np.linalg.qr(Z * root)
    if np.abs(np.diag(R)).min() <= 1e-10 * np.abs(np.diag(R)).max(initial=1e-300):
        raise InputError(
            f"The columns {listed(names)} of a regression must not determine each other, nor be "
            "constant; they do in one of the tables. Name fewer columns."
        )
    slope = np.linalg.solve(R, Q.T @ (root[:, 0] * (y - middle)))
    rest = y - middle - Z @ slope
    inverse = np.linalg.inv(R)
    if w.min() == w.max():
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
    return [_with_error(n, float(value), float(error), free) for value, error in rows]


def _error(w: Floats, influence: Floats) -> float:
    """Return the standard error from what each record adds."""
    m = len(w)
    return float(np.sqrt(m / max(m - 1, 1) * np.square(w * influence).sum()))


def _with_error(n: int, value: float, error: float, free: int | None = None) -> Figure:
    half = _student(n - 1 if free is None else free) * error
    return Figure(n, value, (value - half, value + half))


def _student(free: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(free, 1), _LEVEL))
