"""Swapping: the rows of a group release the values of its members, dealt at random, column by column.

A mean says the same about all members and shrinks every spread. Swapping keeps the values and breaks the
rows, in two steps.

Share   Each value becomes one that at least k units of its stratum share, since a value that one person has
        would name that person wherever it stands. A value that k units hold stays. Other numbers, dates and
        levels of an order become the mean of their neighbours in their own column, by the optimal groups of
        one column; a rare category becomes the most frequent one of its group that k units hold. Missing is a
        value like any other. What is left over, fewer than k units, takes the nearest value that is shared.
Deal    Within each group the values of a column are given to the rows in a random order, every column by
        itself. Columns that a relation binds, or that ``together`` names, are shared and dealt as tuples.

Given the groups and the list of values of each group and column, all ways to deal are equally likely: the
dealing tells nothing about whose value is whose. docs/swapping.md has the proof, and what does not follow.

Random numbers come from a secret of the operating system that is drawn once for a release and kept nowhere:
a task that is run again deals the same way, and the plan's seed says nothing about it. O(n log n) a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.encode.categories import modes
from microagg.encode.inertia import present_means
from microagg.encode.missing import rows_of_each
from microagg.encode.space import encoder_of, space_of
from microagg.encode.strata import count_units
from microagg.grouping.group_table import group
from microagg.grouping.one_cell import Problem
from microagg.grouping.partition import partition
from microagg.grouping.require.amount_rules import LargestShare, PPercent
from microagg.grouping.require.from_plan import within
from microagg.grouping.require.requirement import Requirement
from microagg.grouping.require.value_rules import Units
from microagg.kernels.labels import canonical_labels, combine, group_means
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.releasing.dealt import Dealt, dealt_rows
from microagg.releasing.rounding import Rounding
from microagg.tables.variable import Variable

Round = Callable[[Variable, Floats, bool], Floats]
"""Rounds values of a column as its release asks for; the last argument: whether they are means."""


class Shared(NamedTuple):
    """Columns of a block before they are dealt: every value is shared by at least k units of its stratum."""

    values: Floats  # (n, columns) in the numbering of the variables; NaN: missing
    states: Labels  # (n, columns)


class Holders(NamedTuple):
    """Whose values the records have, and how many units must share one."""

    strata: Labels  # (n,) 0, 1, …, each with at least k units
    units: Labels | None  # (n,) unit of each record; None: every record is one
    k: int

    def of(self, rows: Labels) -> Holders:
        """Return those of some records."""
        units = None if self.units is None else self.units[rows]
        return Holders(canonical_labels(self.strata[rows]), units, self.k)

    def are_enough(self, rows: Labels) -> bool:
        """Return whether some records are of at least k units."""
        count = len(rows) if self.units is None else len(np.unique(self.units[rows]))
        return count >= self.k

    def is_common(self, codes: Labels) -> NDArray[np.bool_]:
        """Return where at least k units of the stratum have the code."""
        classes = combine([self.strata, codes])
        held: NDArray[np.bool_] = count_units(classes, self.units, int(classes.max()) + 1) >= self.k
        return held[classes]

    def modes(self, codes: Labels) -> Floats:
        """Return the most frequent code of each record's stratum; NaN: it has none, −1 is no code."""
        return modes(codes, self.strata, int(self.strata.max()) + 1)[self.strata]


class Swapping(NamedTuple):
    """What swapping needs to know beyond the groups."""

    secret: bytes  # random bytes of the operating system, drawn once for a release
    strata: Labels  # (n,) stratum with which each record is released
    requirements: Sequence[Requirement] = ()
    part: str = ""  # names the part of the table that these records are
    frozen: Callable[[Sequence[Variable], Shared], Shared] | None = None
    """Returns what is dealt, where earlier releases of the same people have settled it."""
    lots: Callable[[Variable], Labels] | None = None
    """Returns (n,) numbers; the lowest of a group draws its category, if earlier releases have drawn."""


class ReleaseTerms(NamedTuple):
    """What decides, beside its groups, which values the records of a block release."""

    block: Block
    plan: Plan
    weights: Floats | None = None  # (n,) with a mean of 1 over the table; None: all count alike
    units: Labels | None = None  # (n,) unit of each record; None: every record is one
    swapping: Swapping | None = None  # if values are swapped, or categories drawn
    cells: Labels | None = None  # (n,) groups do not cross them: rounding keeps the totals of each


def swap_block(
    variables: Sequence[Variable],
    states: Labels,
    labels: Labels,
    roundings: Sequence[Rounding],
    swapping: Swapping,
    terms: ReleaseTerms,
) -> Dealt:
    """Share the values of columns and deal them to the rows of their groups.

    Of the requirements, the p % and (n, k) rules of protected columns hold for shared values, too. The
    arguments are those of :func:`.release_values.release_records`.
    """
    plan = terms.plan
    names = [variable.name for variable in variables]
    rounding_by = dict(zip(names, roundings, strict=True))

    def rounded(variable: Variable, values: Floats, are_means: bool) -> Floats:
        rounding = rounding_by[variable.name]
        by_default = are_means and variable.name not in plan.related
        always = variable.kind == "date" or rounding.whole or plan.digits is not None
        return (rounding.nearest(values) if always or by_default else values) + 0.0

    holders = Holders(canonical_labels(swapping.strata), terms.units, terms.block.k or 1)
    shared = Shared(np.empty(states.shape), np.empty(states.shape, dtype=np.int64))
    bundles = [[names.index(name) for name in bundle] for bundle in plan.bundles_of(terms.block)]
    bundled = {j for columns in bundles for j in columns}
    for columns in [*bundles, *([j] for j in range(len(names)) if j not in bundled)]:
        shown_names = {str(names[j]) for j in columns}
        dominance = (r for r in swapping.requirements if isinstance(r, PPercent | LargestShare))
        rules = [rule for rule in dominance if rule.column in shown_names]
        if columns in bundles:
            shared.values[:, columns], shared.states[:, columns] = _share_tuples(
                [variables[j] for j in columns], states[:, columns], holders, rounded, rules
            )
        else:
            [j] = columns
            shared.values[:, j], shared.states[:, j] = _share_column(
                variables[j], states[:, j], labels, holders, rounded, rules
            )
    if swapping.frozen is not None:
        shared = swapping.frozen(variables, shared)
    return deal(shared, names, labels, swapping, bundles)


def share_numbers(
    values: Floats,
    holders: Holders,
    rounded: Callable[[Floats], Floats] | None = None,
    rules: Sequence[Requirement] = (),
) -> Floats:
    """Return for each number, none missing, the one that it shares with at least k units of its stratum.

    ``rounded`` rounds means; ``rules`` are p % and (n, k) rules that the records which share a value satisfy.

    >>> x = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 9.0])
    >>> share_numbers(x, Holders(np.zeros(7, dtype=int), None, 3)).tolist()
    [0.0, 0.0, 0.0, 3.75, 3.75, 3.75, 3.75]
    """
    common = holders.is_common(np.unique(values, return_inverse=True)[1].reshape(-1))
    shared = values.copy()
    if common.all() and not rules:
        return shared
    for rows in rows_of_each(holders.strata):
        rare = rows[~common[rows]]
        if len(rare) and holders.are_enough(rare):
            order, neighbours = _neighbours(values, rare, holders)
            means = group_means(values[order], neighbours)
            shared[order] = (means if rounded is None else rounded(means))[neighbours]
        elif len(rare):
            levels = np.unique(values[rows[common[rows]]])
            shared[rare] = levels[_nearest(levels, values[rare])]
        if rules:
            _satisfy(values, shared, rows, rules, rounded)
    return shared


def drawn_category(
    variable: Variable,
    states: Labels,
    labels: Labels,
    units: Labels | None,
    k: int,
    swapping: Swapping,
) -> Floats:
    """Return for each group the category of one random member, (g,), each first made one that k units share.

    NaN: the member has none. The mode of every group is the most frequent category, so that rare ones vanish;
    drawn ones keep their shares on average. The arguments are those of :func:`swap_block`, of one column.
    """
    holders = Holders(canonical_labels(swapping.strata), units, k)
    shared, _ = _share_column(variable, states, labels, holders, lambda _, values, __: values, ())
    if swapping.lots is None:
        rows = dealt_rows(labels, swapping.secret, f"{swapping.part}/draw/{variable.name}")
        return shared[rows[np.unique(labels, return_index=True)[1]]]
    order = np.lexsort((swapping.lots(variable), labels))
    return shared[order[np.unique(labels[order], return_index=True)[1]]]


def deal(
    shared: Shared,
    names: Sequence[Any],
    labels: Labels,
    swapping: Swapping,
    bundles: Sequence[Sequence[int]] = (),
) -> Dealt:
    """Deal the shared values of each group to its rows, the columns of a bundle in the same order.

    ``bundles`` lists columns by their positions.
    """
    first = {j: columns[0] for columns in bundles for j in columns}
    of_names = [[names[j] for j in columns] for columns in bundles]
    dealt = Dealt(labels, [], [], [], [], of_names)
    for j, name in enumerate(names):
        rows = dealt_rows(labels, swapping.secret, f"{swapping.part}/{first.get(j, j)}")
        dealt = dealt.with_column(name, shared.values[:, j], rows, shared.states[:, j])
    return dealt


def _share_column(
    variable: Variable,
    states: Labels,
    labels: Labels,
    holders: Holders,
    rounded: Round,
    rules: Sequence[Requirement],
) -> tuple[Floats, Labels]:
    """Share the values and the states of one column."""
    states, filled = _share_states(states, holders)
    values = np.where(states == 0, variable.values, np.nan)
    there = np.flatnonzero((states == 0) & ~filled)
    if len(there):
        column, inside, is_level = variable.take(there), holders.of(there), variable.is_category
        occurring = np.flatnonzero(variable.rows >= 0).astype(np.float64)

        def admissible(means: Floats) -> Floats:
            return (
                occurring[_nearest(occurring, means)] if is_level else rounded(column, means, True)
            )

        if is_level and variable.kind != "ordinal":
            values[there] = _share_levels(column, labels[there], inside)
        else:
            shared = share_numbers(values[there], inside, admissible, within(rules, there))
            values[there] = shared if is_level else rounded(column, shared, False)
    values[filled] = np.nan
    _fill(variable, values, np.flatnonzero(filled), labels, holders)
    return values, np.where((states == 0) & np.isnan(values), 1, states)


def _share_states(states: Labels, holders: Holders) -> tuple[Labels, NDArray[np.bool_]]:
    """Return states that k units of a stratum share, and where a missing value is to be filled.

    A rare code becomes plainly missing. Where fewer than k units then miss the value it is filled; where
    fewer than k units have one it is blanked.
    """
    states = states.copy()
    filled = np.zeros(len(states), dtype=bool)
    if not states.any():
        return states, filled
    states[(states > 1) & ~holders.is_common(states)] = 1
    common = holders.is_common(states)
    is_held = np.zeros(int(holders.strata.max()) + 1, dtype=bool)  # by k units of a stratum
    is_held[holders.strata[common & (states == 0)]] = True
    filled = (states == 1) & is_held[holders.strata] & ~common
    states[(states == 0) & ~common] = 1
    states[filled] = 0
    # Fewer than k units of a stratum that miss a value, where no k have one: the others have a code.
    rare = (states == 1) & ~holders.is_common(states)
    if rare.any():
        states[rare] = holders.modes(np.where(states > 1, states, -1))[rare].astype(np.int64)
    return states, filled


def _share_levels(variable: Variable, labels: Labels, holders: Holders) -> Floats:
    """Replace categories that fewer than k units hold; NaN where no category of a stratum has k units."""
    levels = variable.level_numbers
    common, strata = holders.is_common(levels), holders.strata
    shared = np.where(common, variable.values, np.nan)
    rare = np.flatnonzero(~common)
    if not len(rare):
        return shared
    if variable.kind == "hierarchy":
        points = encoder_of(variable).apply(np.arange(len(variable.levels), dtype=np.float64))
        for rows in rows_of_each(strata[rare]):
            at = rare[rows]
            there = np.unique(levels[common & (strata == strata[at[0]])])
            for level in np.unique(levels[at]) if len(there) else ():
                apart = np.square(points[there] - points[level]).sum(axis=1)
                shared[at[levels[at] == level]] = there[np.argmin(apart)]
        return shared
    admissible = np.where(common, levels, -1)
    of_group = modes(admissible, labels, int(labels.max()) + 1)[labels]
    replacement = np.where(np.isnan(of_group), holders.modes(admissible), of_group)
    shared[rare] = replacement[rare]
    return shared


def _fill(
    variable: Variable, values: Floats, rows: Labels, labels: Labels, holders: Holders
) -> None:
    """Give missing values that must not stay missing a shared one: the group's most usual, or the nearest."""
    if not len(rows):
        return
    there = ~np.isnan(values)
    if variable.is_category:
        codes = np.where(there, np.nan_to_num(values), -1).astype(np.int64)
        of_group = modes(codes, labels, int(labels.max()) + 1)[labels[rows]]
        values[rows] = np.where(np.isnan(of_group), holders.modes(codes)[rows], of_group)
        return
    of_groups = present_means(values, labels, int(labels.max()) + 1)
    for members in rows_of_each(holders.strata):
        at = members[~there[members]]
        at = at[np.isin(at, rows)]
        levels = np.unique(values[members[there[members]]])
        if len(at) and len(levels):
            wanted = of_groups[labels[at]]
            middle = _mean(values[members[there[members]]])
            values[at] = levels[_nearest(levels, np.where(np.isnan(wanted), middle, wanted))]


def _share_tuples(
    variables: Sequence[Variable],
    states: Labels,
    holders: Holders,
    rounded: Round,
    rules: Sequence[Requirement],
) -> tuple[Floats, Labels]:
    """Share columns as tuples: common ones stay, others become means and modes of groups in these columns."""
    values = np.column_stack([variable.values for variable in variables])
    values[states != 0] = np.nan
    parts = [np.unique(column, return_inverse=True, equal_nan=True)[1] for column in values.T]
    codes = combine([*(part.reshape(-1) for part in parts), *states.T])
    shared = holders.is_common(codes)
    pattern = combine([holders.strata, *states.T])
    rare = np.flatnonzero(~shared)
    of_pattern = canonical_labels(pattern[rare]) if len(rare) else rare
    for rows in rows_of_each(of_pattern) if len(rare) else ():
        at = rare[rows]
        if not holders.are_enough(at) or any(rule.violation(at) for rule in rules):
            continue
        block = Block(k=holders.k, options={"effort": "fast"})
        needed = [*within(rules, at)]
        if holders.units is not None:
            needed.append(Units(holders.units[at], holders.k))
        columns = [variable.take(at) for variable in variables]
        cell = np.zeros(len(at), dtype=np.int64)
        tuple_labels = group(Problem(space_of(columns), block, needed), cell).labels
        g = int(tuple_labels.max()) + 1
        for j, column in enumerate(columns):  # whose values are all there, or all missing
            if column.is_category:
                of_groups = modes(column.level_numbers, tuple_labels, g)
            else:
                of_groups = rounded(column, group_means(column.values, tuple_labels), True)
            values[at, j] = of_groups[tuple_labels]
        shared[at] = True
    states = states.copy()
    if not shared.all():
        from scipy.spatial import cKDTree

        # Other records get the tuple of the nearest record of their stratum whose tuple is shared.
        matrix = space_of(variables, states=True).scaled
        for rows in rows_of_each(holders.strata):
            others, there = rows[~shared[rows]], rows[shared[rows]]
            if len(others) and len(there):
                nearest = there[cKDTree(matrix[there]).query(matrix[others])[1]]
                values[others], states[others] = values[nearest], states[nearest]
            else:  # no tuple has k units: all of them are missing
                values[others], states[others] = np.nan, 1
    return values, np.where((states == 0) & np.isnan(values), 1, states)


def _satisfy(
    values: Floats,
    shared: Floats,
    rows: Labels,
    rules: Sequence[Requirement],
    rounded: Callable[[Floats], Floats] | None,
) -> None:
    """Join the values that neighbours share until the records of each satisfy the rules."""
    levels, place = np.unique(shared[rows], return_inverse=True)
    groups = [rows[place.reshape(-1) == at] for at in range(len(levels))]
    while len(groups) > 1:
        wrong = [
            at for at, rows in enumerate(groups) if any(rule.violation(rows) > 0 for rule in rules)
        ]
        if not wrong:
            break
        means = [_mean(values[members]) for members in groups]
        sides = [at for at in (wrong[0] - 1, wrong[0] + 1) if 0 <= at < len(groups)]
        other = min(sides, key=lambda at: abs(means[at] - means[wrong[0]]))
        low, high = sorted((wrong[0], other))
        groups[low : high + 1] = [np.concatenate(groups[low : high + 1])]
    for members in groups:
        if len(np.unique(shared[members])) > 1:
            mean = np.array([_mean(values[members])])
            shared[members] = mean if rounded is None else rounded(mean)


def _neighbours(values: Floats, rows: Labels, holders: Holders) -> tuple[Labels, Labels]:
    """Return rows in the order of their values, and the group of neighbours of each, 0, 1, ….

    The groups are optimal for k records; neighbouring ones are joined until each has k units.
    """
    order = rows[np.argsort(values[rows], kind="stable")]
    labels = partition(values[order], holders.k, scale="none").labels
    units, g = holders.units, int(labels.max()) + 1
    if units is None or (count_units(labels, units[order], g) >= holders.k).all():
        return order, labels
    begins, start = np.zeros(len(order), dtype=np.int64), 0
    for end in [*np.flatnonzero(np.diff(labels)) + 1, len(order)]:
        if holders.are_enough(order[start:end]):
            begins[start] = 1
            start = end
    # What is left over at the end belongs to the last group.
    return order, np.cumsum(begins) - 1


def _nearest(levels: Floats, wanted: Floats) -> Labels:
    """Return the place of the nearest of sorted levels, the lower of two."""
    after = np.clip(np.searchsorted(levels, wanted), 1, max(len(levels) - 1, 1))
    low, high = after - 1, np.minimum(after, len(levels) - 1)
    return np.where(wanted - levels[low] <= levels[high] - wanted, low, high)


def _mean(values: Floats) -> float:
    """Return a mean that is exact for data far from 0."""
    return float(group_means(values, np.zeros(len(values), dtype=np.int64))[0])
