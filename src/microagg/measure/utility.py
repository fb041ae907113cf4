"""Utility: how much of the original a protected table still tells.

What a column lost has one unit for all kinds of columns: the share of its inertia. SST is the sum of squared
distances of its records to their mean. The information loss has the squared distances to the released values,
the loss of the groups those to the centroids of the groups, both as a share of SST. Each is
measured in the column's own geometry (see :mod:`microagg.encode.space`), exactly from the categories where
the grouping used projected coordinates:

- numbers and dates: (x − x')², of the transformed values where the plan transforms them for the distance;
- ordinal: the same with level numbers;
- spiked: squared distance of the two coordinates, off the spike or not and how far from those off it;
- nominal: of one-hot vectors, so that SST is n times Gini's index 1 − Σp² and SSE the sum of the groups' size
  times theirs, and a changed value costs 2;
- hierarchy: that of the ancestors at each depth, every depth with an equal share; a node above the codes is
  the mean of its codes;
- a level that several became by recoding is the mean of their records, and so is a band of numbers; where no
  group shares a recoded column, both losses are that of its recoding.

Only records with an original value count. A value that was blanked counts as the column's mean. Where
weights are given every record counts by its weight.

Where the groups are not known, the loss of the groups is taken to be that of the released values for numbers
and ordinal columns, as it is for means. Nominal columns and hierarchies are taken to be grouped by equal
protected rows or, where some row is alone in its class, by equal released values of the column itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.hierarchy import ancestors, node_members, numbered
from microagg.encode.inertia import Corners, Encoder, LevelCounts
from microagg.encode.number import NumberFigures
from microagg.encode.space import counted, fitted_encoder
from microagg.kernels.labels import canonical_labels, group_means, group_sizes
from microagg.measure.analyses import Wanted, analyse
from microagg.measure.both_tables import Pair, pair
from microagg.measure.estimates import Analysis
from microagg.tables.variable import Variable

UNORDERED = ("boolean", "nominal", "hierarchy")
LEAST_MORE = 200
"""By how many records must exceed groups."""
LARGEST_SHARE = 0.1
"""Of an entry of the diagonal, that one unit may make."""
_DECIMALS = 2


@dataclass(frozen=True)
class Utility:
    """Measures of loss. Unless said otherwise, each is 0 for an untouched table, and lower is better.

    Columns are measured in units of the original's standard deviation s (denominator n−1);
    x is an original value, x' the protected one. Losses are of columns of any kind; what needs numbers
    is about numbers and dates, and about the records where both values are there. With weights
    every record counts by its weight.
    """

    information_loss: float
    """IL = 100·SSE/SST = 100·ΣΣ((x−x')/s)²/ΣΣ((x−x̄)/s)² of the released values x', rounding and
    categories included; 0 to 100 for group means. Under 5 is usually hard to notice, over 30 a coarse
    picture. The head of :mod:`microagg.measure.utility` has the other kinds of columns."""
    by_column: Mapping[Any, float]
    """The same for each column alone."""
    group_loss: float
    """The same if each group released its exact centroid: the loss to which bounds and published figures
    refer. It equals the information loss if exact means are released. Where a group releases its most
    frequent category, the information loss is at most twice this loss."""
    group_loss_by_column: Mapping[Any, float]
    """The same for each column alone."""
    analyses: list[Analysis]
    """The user's own analyses on both tables, with the overlap of their confidence intervals: 1 is
    best, below 0 the intervals are apart."""
    changed: Mapping[Any, float]
    """Share of records whose category changed, of each column of categories, where both are there."""
    blanked: Mapping[Any, int]
    """Values of each column that are missing in the protected table only."""
    filled: Mapping[Any, int]
    """Values of each column that are missing in the original only."""
    groups_known: bool
    """Whether the loss of the groups is counted from the groups, and not assumed from equal values."""
    _inertia: Floats = field(repr=False, compare=False)
    """(d,) values of each column that are there, less one; 0 where they do not vary."""

    @property
    def even_loss(self) -> float:
        """The information loss if every column counted alike, whatever its importance."""
        total = float(self._inertia.sum())
        return float(np.array(list(self.by_column.values())) @ self._inertia) / (total or 1.0)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        by_column = ("by_column", "group_loss_by_column", "changed", "blanked", "filled")
        return {
            "information_loss": self.information_loss,
            "group_loss": self.group_loss,
            **{key: {str(n): x for n, x in getattr(self, key).items()} for key in by_column},
            "analyses": [analysis.as_dict() for analysis in self.analyses],
        }


def utility(
    original: Any,
    protected: Any,
    columns: Iterable[Any] | None = None,
    *,
    analyses: Iterable[Wanted] = (),
    kinds: Mapping[Any, Any] | None = None,
    weights: Any = None,
) -> Utility:
    """Measure what the protected table lost.

    Parameters
    ----------
    original, protected : frames or array-likes with the same rows in the same order
    columns : names to compare, of any kind; by default the numeric columns that both have
    analyses : your own; their confidence intervals in both tables are compared: means by
        the groups of a column, ``"income by region"``, and linear regressions,
        ``"income ~ age + rent"``; or as lists, ``["income", "~", "age", "rent"]``
    kinds : of some columns, where their type does not say it: a word such as ``"nominal"``, the levels of
        an ordinal column from low to high, or a ``Column``
    weights : name of the original's column of weights; every record then counts by its weight

    Returns
    -------
    Utility
        ``information_loss`` = 100·Σ(x−x')²/Σ(x−x̄)² of the released values x', with every column divided
        by the standard deviation of its original; columns that are constant do not count.

    >>> u = utility([1.0, 2.0, 3.0, 4.0], [1.5, 1.5, 3.5, 3.5])
    >>> round(u.information_loss, 6)
    20.0
    """
    figures = utility_of(pair(original, protected, columns, kinds=kinds, weights=weights), analyses)
    # Whose record is in which group is nothing to carry along.
    return replace(figures, analyses=[replace(each, _groups=None) for each in figures.analyses])


def utility_of(
    both: Pair, analyses: Iterable[Wanted] = (), shares: Losses | None = None
) -> Utility:
    """Measure the loss of ``both`` tables; ``analyses`` are as for :func:`utility`.

    ``shares`` are the losses of all records, if these are a sample of them.
    """
    shares = losses(both) if shares is None else shares
    there, there_after = (~np.isnan(values) for values in (both.original, both.protected))

    def by_name(figures: Any) -> dict[Any, Any]:
        return dict(zip(both.names, figures.tolist(), strict=True))

    if isinstance(analyses, str):
        analyses = [analyses]
    return Utility(
        information_loss=shares.overall(shares.released),
        by_column=by_name(100 * shares.released),
        group_loss=shares.overall(shares.within),
        group_loss_by_column=by_name(100 * shares.within),
        analyses=[analyse(both, wanted) for wanted in analyses],
        changed={v.name: both.changed(j) for j, v in enumerate(both.variables) if v.is_category},
        blanked=by_name((there & ~there_after).sum(axis=0)),
        filled=by_name((there_after & ~there).sum(axis=0)),
        groups_known=both.labels is not None,
        _inertia=np.where(both.varies, there.sum(axis=0) - 1.0, 0.0),
    )


class Losses(NamedTuple):
    """Of each column, shape (d,)."""

    within: Floats  # SSE/SST by the centroids of groups; 0 where nothing varies
    released: Floats  # the same of the released values
    inertia: Floats  # importance·(m − 1) for m values that are there, 0 where they do not vary

    def overall(self, shares: Floats) -> float:
        """Mean of the columns' shares by their inertia, in percent."""
        total = float(self.inertia.sum())
        return 100 * float(shares @ self.inertia) / total if total > 0 else 0.0


def losses(both: Pair) -> Losses:
    """Measure every column.

    >>> from dataclasses import replace
    >>> age = Variable("age", "number", np.array([1.0, 2.0, 3.0, 4.0]))
    >>> both = Pair([age], np.array([[1.0], [1.0], [3.0], [3.0]]))
    >>> losses(both).released.round(3).tolist()
    [0.4]
    >>> losses(replace(both, labels=np.array([[0], [0], [1], [1]]))).within.round(3).tolist()
    [0.2]
    """
    columns = []
    for j, variable in enumerate(both.variables):
        y = both.protected[:, j]
        groups = None if both.labels is None else np.ascontiguousarray(both.labels[:, j])
        if groups is None and variable.kind in UNORDERED:
            groups = both.classes
            if group_sizes(groups).min() == 1 and len(both) > 1:
                groups = np.unique(y, return_inverse=True)[1].reshape(-1).astype(np.int64)
        scale = LossScale.of(variable, counted(variable, weights=both.weights))
        within, released = scale.shares(both.original[:, j], y, groups, both.weights)
        if variable.name in both.recoded_only:
            within = released
        columns.append((within, released, variable.setting.importance * scale.inertia))
    return Losses(*np.array(columns).T)


class LossScale(NamedTuple):
    """What the losses of a column are measured by, from all its values; shares of several chunks add up."""

    inertia: float
    """Number of values that are there less one, by which columns count; 0 where they do not vary."""
    total: float
    """SST: squared distances of all values to their mean, in coordinates."""
    encoder: Encoder | None = None
    """Of numbers and orders: what takes values to coordinates with a mean of 0."""
    levels: tuple[Sequence[Labels], Floats | None, Floats] | None = None
    """Of unordered categories: the ancestor of each level at each depth; what may be released above them,
    see :func:`_category_squares`; and the weight of each level in the whole table."""

    @classmethod
    def of(cls, variable: Variable, all_values: LevelCounts | NumberFigures) -> LossScale:
        """Return that of a column, by how often levels occur or by figures of its numbers as z-scores."""
        inertia = all_values.inertia
        if isinstance(all_values, LevelCounts) and variable.kind in UNORDERED:
            often = all_values.often.astype(np.float64)
            depths, above = [np.arange(len(variable.levels))], variable.merged_from
            if variable.kind == "hierarchy":
                depths = [*map(numbered, ancestors(variable)[:-1]), *depths]
                below = node_members(variable)
                above = np.zeros((len(below), len(variable.levels)))
                for shares, codes in zip(above, below, strict=True):
                    shares[codes] = 1 / max(len(codes), 1)
            return cls(inertia, inertia, levels=(depths, above, often))
        return cls(inertia, inertia * variable.share, fitted_encoder(variable, all_values))

    def shares(
        self, x: Floats, y: Floats, groups: Labels | None, w: Floats | None
    ) -> tuple[float, float]:
        """Return squares within groups and to released values, as shares of the column's SST.

        Parameters
        ----------
        x : (n,) original values in the numbering of the column; records that miss it do not count
        y : (n,) released values, NaN where missing
        groups : (n,) group of each record; None: not known, and the first share is the second
        w : (n,) weights with a mean of 1 over all records; None: all count alike
        """
        there = ~np.isnan(x)
        if not self.inertia > 0 or not there.any():
            return 0.0, 0.0
        x, y = x[there], y[there]
        groups = None if groups is None else groups[there]
        w = None if w is None else w[there]
        if self.levels is not None:
            assert groups is not None  # known or assumed
            weight = np.ones(len(x)) if w is None else w
            depths, above, often = self.levels
            shares, mass = [], float(often.sum())
            for numbers in depths:  # the mean over those that vary
                p = np.bincount(numbers, weights=often) / mass
                if np.count_nonzero(p) > 1:
                    level = x.astype(np.int64)
                    squares = _category_squares(level, y, groups, weight, p, numbers, above)
                    shares.append(np.array(squares) / (mass * (1 - float(np.square(p).sum()))))
            within, released = np.mean(shares, axis=0).tolist()
            return within, released
        assert self.encoder is not None
        if isinstance(self.encoder, Corners):  # what has no place in the order is at the mean
            y = np.where(y < len(self.encoder.points), y, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            C, R = self.encoder.apply(x), self.encoder.apply(y)
        R[np.isnan(y) | ~np.isfinite(R).all(axis=1)] = np.nan
        within, released = _number_squares(C, R, groups, w)
        return within / self.total, released / self.total


def _number_squares(
    C: Floats, R: Floats, groups: Labels | None, w: Floats | None
) -> tuple[float, float]:
    """Squared distances of records to the centroids of their groups, and to what was released for them.

    Parameters
    ----------
    C, R : (n, c) coordinates of the records that have a value, and of what was released, NaN for nothing:
        blanked values are taken to be at the mean of the whole column, 0
    groups, w : as for :meth:`LossScale.shares`
    """
    there = ~np.isnan(R[:, 0])
    released = _squares(C - np.where(there[:, None], R, 0.0), w)
    if groups is None:
        return released, released
    centroids = np.zeros(C.shape)
    if there.any():
        labels = canonical_labels(groups[there])
        weights = None if w is None else w[there]
        for c in range(C.shape[1]):
            centroids[there, c] = group_means(C[there, c], labels, weights)[labels]
    return _squares(C - centroids, w), released


def _squares(moved: Floats, w: Floats | None) -> float:
    """Weighted sum of squared lengths."""
    if w is None:
        return float(np.vdot(moved, moved))
    return float(w @ np.square(moved).sum(axis=1))


def _category_squares(
    level: Labels,
    y: Floats,
    groups: Labels,
    weight: Floats,
    p: Floats,
    numbers: Labels,
    above: Floats | None,
) -> tuple[float, float]:
    """Squared distances of one-hot vectors within groups, and to what was released.

    ``level``, ``y``, ``groups`` and ``weight`` are of the records that have a value: its level, the released
    level or NaN, the group and the weight. ``p`` is the share of each ancestor in the whole column, where
    blanked values are; ``numbers`` the ancestor of each level, without a hierarchy the level itself;
    ``above`` (nodes, levels) the share of each level below the nodes that may be released, which are numbered
    after the levels.
    """
    numbered, m = numbers[level], len(p)
    to_mean = 1 - 2 * p[numbered] + float(np.square(p).sum())
    there = ~np.isnan(y)
    released = np.where(there, 2.0, to_mean)  # of a level that the original has not, for now
    value = np.where(there, y, -1).astype(np.int64)
    known = there & (value < len(numbers))
    released[known] = 2.0 * (numbered[known] != numbers[value[known]])
    node = value - len(numbers)
    is_node = there & (node >= 0) & (node < (0 if above is None else len(above)))
    if above is not None and is_node.any():
        at = np.array([np.bincount(numbers, weights=under, minlength=m) for under in above])
        squares = np.square(at).sum(axis=1)[node[is_node]]
        released[is_node] = 1 - 2 * at[node[is_node], numbered[is_node]] + squares
    within = float(weight[~there] @ to_mean[~there])
    if there.any():
        _, group = np.unique(groups[there], return_inverse=True)
        group = group.reshape(-1)
        of_group = np.bincount(group, weights=weight[there])
        cells, cell = np.unique(group * np.int64(m) + numbered[there], return_inverse=True)
        of_cell = np.bincount(cell.reshape(-1), weights=weight[there])
        # Cell by cell, so that groups of one level lose nothing at all, whatever is rounded.
        within += float((of_cell * (1 - of_cell / of_group[cells // m])).sum())
    return within, float(weight @ released)


class WithinGroups(NamedTuple):
    """The pooled covariance within groups of columns that were averaged by the same groups."""

    columns: list[Any]
    relative: Floats
    """(d, d) entries over the product of the two released standard deviations, rounded to hundredths."""


def within_groups(
    names: Sequence[Any],
    before: Floats,
    after: Floats,
    labels: Labels,
    weights: Floats | None = None,
    units: Labels | None = None,
) -> WithinGroups | None:
    """Return what averaging takes from variances and covariances, as far as it may be told; None: nothing.

    The covariance of the original is that of the released group means plus the pooled covariance within
    groups, W. With W, the variances of the whole file, its correlations and its linear regressions become
    those of the original; nothing follows for parts of the file. W is a statistic of originals, so that it
    goes into the public report under conditions: records exceed groups by 200 or more, no unit makes more
    than a tenth of a column's entry (in a table of 45 firms W gave the largest one away), and each entry is
    rounded to a hundredth of the product of the two columns' released standard deviations. A column that
    fails is left out.

    Parameters
    ----------
    names : of the d columns
    before, after : (n, d) complete numbers and the means that their groups release, rows in the same order
    labels : (n,) group of each record
    weights : (n,) of the records; None: all count alike
    units : (n,) number of each record's unit; None: each record is one

    >>> x = np.arange(300.0)[:, None] * [1, -2]
    >>> labels = np.arange(300) // 3
    >>> found = within_groups(["a", "b"], x, x[labels * 3 + 1], labels)
    >>> found.columns, found.relative.tolist()  # groups of three neighbours: nearly nothing is lost
    (['a', 'b'], [[0.0, 0.0], [0.0, 0.0]])
    """
    n = len(before)
    if n - len(np.unique(labels)) < LEAST_MORE:
        return None
    shares = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    middle = shares @ after
    centred, moved = after - middle, before - after
    scale = np.sqrt(shares @ np.square(centred))
    squares = shares[:, None] * np.square(moved)
    unit = np.arange(n) if units is None else np.unique(units, return_inverse=True)[1].reshape(-1)
    total = squares.sum(axis=0)
    largest = np.array([np.bincount(unit, column).max() for column in squares.T])
    is_safe = (scale > 0) & (total > 0) & (largest <= LARGEST_SHARE * total)
    kept = np.flatnonzero(is_safe).tolist()
    if not len(kept):
        return None
    deviations = (before - shares @ before)[:, kept]
    restored = (deviations * shares[:, None]).T @ deviations
    released = (centred[:, kept] * shares[:, None]).T @ centred[:, kept]
    relative = (restored - released) / np.outer(scale[kept], scale[kept])
    return WithinGroups([names[j] for j in kept], np.round(relative, _DECIMALS) + 0.0)
