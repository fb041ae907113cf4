"""What each column lost, in one unit for all kinds: the share of its inertia.

For a column, SST is the sum of squared distances of its records to their mean. The information loss has the
squared distances to the released values, the loss of the groups those to the centroids of the groups, both as
a share of SST. Each is measured in the column's own
geometry (see :mod:`microagg.encode.space`), exactly from the categories where the grouping used projected
coordinates:

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
weights are given every record counts by its weight. Engines that read a table in parts add up shares by chunk
(:class:`LossScale`).

Where the groups are not known, the loss of the groups is taken to be that of the released values for numbers
and ordinal columns, as it is for means. Nominal columns and hierarchies are taken to be grouped by equal
protected rows or, where some row is alone in its class, by equal released values of the column itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.hierarchy import ancestors
from microagg.encode.inertia import Corners, Encoder, LevelCounts
from microagg.encode.number import NumberFigures
from microagg.encode.space import counted, fitted_encoder
from microagg.kernels.labels import canonical_labels, group_means, group_sizes
from microagg.measure.both_tables import Pair
from microagg.tables.variable import Variable

_UNORDERED = ("boolean", "nominal", "hierarchy")


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
    >>> losses(replace(both, labels=np.array([0, 0, 1, 1]))).within.round(3).tolist()
    [0.2]
    """
    shares = np.zeros((3, len(both.names)))
    for j in range(len(both.names)):
        shares[:, j] = _column(both, j)
    return Losses(*shares)


def _column(both: Pair, j: int) -> tuple[float, float, float]:
    x, y, groups, w = both.original[:, j], both.protected[:, j], both.groups_of(j), both.weights
    variable = both.variables[j]
    if groups is None and variable.kind in _UNORDERED:
        groups = _assumed_groups(both, j)
    scale = LossScale.of(variable, counted(variable, weights=w))
    within, released = scale.shares(x, y, groups, w)
    if both.names[j] in both.recoded_only:
        within = released
    return within, released, variable.setting.importance * scale.inertia


def _assumed_groups(both: Pair, j: int) -> Labels:
    """Assume groups of a column if they are not known."""
    sizes = group_sizes(both.classes)
    if sizes.min() > 1 or len(both) == 1:
        return both.classes
    y = both.protected[:, j]
    return np.unique(y, return_inverse=True)[1].reshape(-1).astype(np.int64)


class LossScale(NamedTuple):
    """What the losses of a column are measured by: known of all its values, whichever are looked at.

    Shares of the records of several chunks add up.
    """

    inertia: float
    """Number of values that are there less one, by which columns count; 0 where they do not vary."""
    total: float
    """SST: squared distances of all values to their mean, in coordinates."""
    encoder: Encoder | None = None
    """Of numbers and orders: what takes values to coordinates with a mean of 0."""
    levels: tuple[Sequence[Labels], Floats | None, Floats] | None = None
    """Of unordered categories: depths, nodes above and weights, see :func:`category_shares`."""

    @classmethod
    def of(cls, variable: Variable, all_values: LevelCounts | NumberFigures) -> LossScale:
        """Return that of a column, whatever its values, by what its encoder is fitted to.

        That is how often each level occurs in the table, or figures of the numbers as z-scores.
        """
        inertia = all_values.inertia
        if isinstance(all_values, LevelCounts) and variable.kind in _UNORDERED:
            often = all_values.often.astype(np.float64)
            return cls(inertia, inertia, levels=(*depths_of(variable), often))
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
            return category_shares(*self.levels, x.astype(np.int64), y, groups, weight)
        assert self.encoder is not None
        if isinstance(self.encoder, Corners):  # what has no place in the order is at the mean
            y = np.where(y < len(self.encoder.points), y, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            C, R = self.encoder.apply(x), self.encoder.apply(y)
        R[np.isnan(y) | ~np.isfinite(R).all(axis=1)] = np.nan
        within, released = number_squares(C, R, groups, w)
        return within / self.total, released / self.total


def number_squares(
    C: Floats, R: Floats, groups: Labels | None, w: Floats | None
) -> tuple[float, float]:
    """Squared distances of records to the centroids of their groups, and to what was released for them.

    Parameters
    ----------
    C, R : (n, c) coordinates of the records that have a value, and of what was released, NaN for nothing:
        blanked values are taken to be at the mean of the whole column, 0
    groups : (n,) labels; None: not known, and the first figure is the second
    w : (n,) weights; None: all count alike

    Examples
    --------
    >>> C = np.array([[-3.0], [-1.0], [4.0]])
    >>> number_squares(C, np.array([[-3.0], [-3.0], [np.nan]]), np.array([0, 0, 1]), None)
    (18.0, 20.0)
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


def depths_of(variable: Variable) -> tuple[list[Labels], Floats | None]:
    """Return the ancestor of each level for each depth, and the shares of levels in what may be released.

    A category without a hierarchy has one depth; for the shares see :func:`category_squares`.
    """
    levels = np.arange(len(variable.levels))
    if variable.kind != "hierarchy":
        return [levels], variable.merged_from
    names = ancestors(variable)
    return [*map(_numbered, names[:-1]), levels], _codes_above(names)


def category_shares(
    depths: Sequence[Labels],
    above: Floats | None,
    often: Floats,
    level: Labels,
    y: Floats,
    groups: Labels,
    weight: Floats,
) -> tuple[float, float]:
    """Squares within groups and to released values over SST, mean over the depths that vary.

    Parameters
    ----------
    depths : number of each level's ancestor at each depth of a hierarchy, one array a depth
    often : weight of each level in the whole table
    above, level, y, groups, weight : as for :func:`category_squares`
    """
    shares, mass = [], float(often.sum())
    for numbers in depths:
        p = np.bincount(numbers, weights=often) / mass
        if np.count_nonzero(p) > 1:
            squares = category_squares(level, y, groups, weight, p, numbers, above)
            shares.append(np.array(squares) / (mass * (1 - float(np.square(p).sum()))))
    within, released = np.mean(shares, axis=0).tolist()
    return within, released


def category_squares(
    level: Labels,
    y: Floats,
    groups: Labels,
    weight: Floats,
    p: Floats,
    numbers: Labels,
    above: Floats | None = None,
) -> tuple[float, float]:
    """Squared distances of one-hot vectors within groups, and to what was released.

    ``level``, ``y``, ``groups`` and ``weight`` are of the records that have a value: its level, the released
    level or NaN, the group and the weight. ``p`` is the share of each ancestor in the whole column, where
    blanked values are; ``numbers`` the ancestor of each level, without a hierarchy the level itself;
    ``above`` (nodes, levels) the share of each level below the nodes that may be released, which are numbered
    after the levels.

    >>> level, y, groups = np.array([0, 0, 1]), np.array([0.0, 0.0, 0.0]), np.array([0, 0, 0])
    >>> within, released = category_squares(
    ...     level, y, groups, np.ones(3), np.array([2 / 3, 1 / 3]), np.arange(2)
    ... )
    >>> round(within, 3), released
    (1.333, 2.0)
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


def _codes_above(names: list[list[str]]) -> Floats:
    """Shares of the levels below each node above the codes, in the order of ``inner_nodes``."""
    counts = [np.ones(len(names[-1]))]
    for of_depth in map(np.array, names[:-1]):
        counts += [of_depth == node for node in sorted(set(of_depth.tolist()))]
    below = np.array(counts, dtype=np.float64)
    return np.asarray(below / below.sum(axis=1, keepdims=True))


def _numbered(names: list[str]) -> Labels:
    """Give names numbers by first appearance."""
    number_of: dict[str, int] = {}
    return np.array([number_of.setdefault(name, len(number_of)) for name in names], dtype=np.int64)
