"""Signs that unprotected columns disclose more than k promises: facts, no sentences.

Three things fool people. Records of one person, household or firm that make up a group: k records, but not
k units. Identifiers, also those that are missing in places or stand in several records. And columns
from which a protected one can be computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.strata import count_units
from microagg.kernels.labels import combine, group_sizes
from microagg.measure.both_tables import Pair
from microagg.measure.classes import missing_alone
from microagg.measure.known_columns import Known
from microagg.measure.utility import UNORDERED

# Random groups to compare with, and the most records to draw for them.
_GROUPS_BY_CHANCE = 20_000
_RECORDS_BY_CHANCE = 1_000_000

# A unit has rarely more records than five years have months, and a column of fewer values than these
# is a classification.
_RECORDS_OF_A_UNIT = 60
_FEWEST_UNITS = 10
# At most this share of random groups may hold fewer than k units, and the share of the real groups
# must be higher by this much.
_RARE_BY_CHANCE = 0.25
_EXCESS = 0.1
_ONE_GROUP = 0.001  # share of groups that is no accident

_NEARLY_ALL = 0.9
# An identifier that repeats has a year of months for each value at most, on average, and at least ten
# values; a hundred if they are numbers, since in a small table those of any quantity hardly repeat.
_RECORDS_OF_AN_ID = 12
_FEWEST_IDS = 10
_FEWEST_NUMBERED_IDS = 100
# Its ten most frequent values have hardly more than their part of the records.
_FREQUENT = 10
_MORE_THAN_THEIR_PART = 0.05
# Numbers of a quantity repeat more where they lie close together; those of an identifier repeat as often
# everywhere. Cut the ascending values into ten blocks: the block may explain at most this share of how
# often a value repeats. On 228 whole-number columns of real tables identifiers had up to 0.07.
_BLOCKS = 10
_BY_PLACE = 0.1

_RANK_CORRELATION = 0.99
_FEWEST_RECORDS = 10
# Rows in random order go up about as often as down; of 20 steps, 19 go one way with a chance of 10⁻¹⁵.
_ONE_WAY = 0.95
_FEWEST_STEPS = 20
# A function is reported only if it is no accident: each value occurs in this many records on average,
# and without a function this many of them would differ from others of the same value.
_RECORDS_OF_A_LEVEL = 10
_DIFFERENT_BY_CHANCE = 10


class UnitsInGroups(NamedTuple):
    """How many different values of a column the groups hold; shares of groups are from 0 to 1.

    A missing value counts as different from all others.
    """

    distinct: int
    """Distinct values in the table, missing ones aside."""
    one_value: float
    """Share of groups in which the column has one value throughout."""
    below_k: float
    """Share of groups with fewer than k distinct values."""
    one_value_by_chance: float
    """What ``one_value`` would be if groups of the same sizes were drawn at random."""
    below_k_by_chance: float
    """The same for ``below_k``."""
    looks_like_unit: bool
    """Whether the values look like persons, households or firms that groups fail to mix."""


class Identifier(NamedTuple):
    """How far the values of a column point to single records."""

    present: int
    """Records with a value."""
    distinct: int
    """Distinct values."""
    how: str | None
    """"distinct" (wherever present), "nearly distinct" (90 % and more), "repeats" (many values that few
    records each have, no measurement and no date), or None: no sign of an identifier."""


class Determined(NamedTuple):
    """A protected column that follows from a known one."""

    known: Any
    protected: Any
    records: int
    """Records in which the known one is present."""
    rank_correlation: float | None
    """Spearman's; None if the known one has no order."""
    function: bool
    """Whether records with equal known values have equal protected ones, throughout."""


class SortedColumn(NamedTuple):
    """A column by which the rows of a file are sorted, or nearly so."""

    name: Any
    rank_correlation: float
    """Spearman's, with the number of the row; nearly 0 where rows are sorted within parts of the file."""


def sorted_column(name: Any, codes: Labels) -> SortedColumn | None:
    """Tell whether rows are sorted by the column ``name``, also within parts of the file; None: they are not.

    ``codes`` ascend with the values, −1 is missing. A file that is sorted within each region goes one way
    in nearly all rows, whatever the rank correlation over all of them.

    >>> sorted_column("pay", np.arange(20)).rank_correlation
    1.0
    >>> round(sorted_column("pay", np.tile(np.arange(50), 4)).rank_correlation, 2)
    0.25
    >>> sorted_column("pay", np.arange(20) * 7 % 20) is None
    True
    """
    there = codes[codes >= 0]
    steps = np.diff(there)
    up, down = np.count_nonzero(steps > 0), np.count_nonzero(steps < 0)
    if len(there) < _FEWEST_RECORDS or not up + down:
        return None
    correlation = float(np.clip(_ranks(there) @ _ranks(np.arange(len(there))), -1, 1))
    one_way = float(max(up, down) / (up + down))
    nearly = up + down >= _FEWEST_STEPS and one_way >= _ONE_WAY
    if nearly or abs(correlation) > _RANK_CORRELATION:
        return SortedColumn(name, round(correlation, 9))
    return None


def units_in_groups(labels: Labels, column: Known, k: int) -> UnitsInGroups:
    """Count the different values of a column in the groups 0, 1, …, and in random ones.

    Random groups are drawn with a fixed seed, all records at a time, until there are 20,000, or
    a million records were drawn.

    >>> found = units_in_groups(np.array([0, 0, 1, 1]), Known(np.array([0, 0, 1, 2])), k=2)
    >>> found.one_value, found.below_k, round(found.one_value_by_chance, 2)
    (0.5, 0.5, 0.17)
    """
    codes = missing_alone(column.codes)
    groups = len(group_sizes(labels))
    one_value, below_k = _homogeneous(labels, codes, k)
    times = max(1, min(-(-_GROUPS_BY_CHANCE // groups), _RECORDS_BY_CHANCE // len(codes)))
    # From the frequencies alone, so that the order of records makes no difference.
    values, slots = _by_frequency(codes), _by_frequency(labels)
    drawn = np.random.default_rng(0).permuted(np.tile(values, (times, 1)), axis=1).reshape(-1)
    apart = (slots + groups * np.arange(times)[:, None]).reshape(-1)  # groups of each draw
    one_by_chance, below_by_chance = _homogeneous(apart, drawn, k)
    sizes = column.sizes[column.sizes > 0]
    excess = max(one_value - one_by_chance, below_k - below_by_chance)
    looks_like_unit = (
        _may_name_units(column)
        and len(sizes) >= _FEWEST_UNITS
        and np.median(sizes) <= _RECORDS_OF_A_UNIT
        and below_by_chance <= _RARE_BY_CHANCE
        and excess >= _EXCESS
    )
    by_chance = one_by_chance, below_by_chance
    return UnitsInGroups(len(sizes), one_value, below_k, *by_chance, bool(looks_like_unit))


def _by_frequency(codes: Labels) -> Labels:
    """Return the values of records, numbered by how often they occur and put in that order."""
    often = np.sort(np.unique(codes, return_counts=True)[1])
    return np.repeat(np.arange(len(often)), often)


def identifier(column: Known) -> Identifier:
    """Tell whether a column's values, missing ones aside, point to single records or few.

    >>> identifier(Known(np.array([2, -1, 0, -1, -1, 1]))).how
    'distinct'
    """
    sizes = column.sizes[column.sizes > 0]
    present, distinct = int(sizes.sum()), len(sizes)
    how = None
    if present > 1 and distinct == present:
        how = "distinct"
    elif present > 1 and distinct >= _NEARLY_ALL * present:
        how = "nearly distinct"
    elif distinct >= (_FEWEST_NUMBERED_IDS if column.ordered else _FEWEST_IDS):
        frequent = int(np.sort(sizes)[-_FREQUENT:].sum()) / present
        if (
            present <= _RECORDS_OF_AN_ID * distinct
            and frequent <= _FREQUENT / distinct + _MORE_THAN_THEIR_PART
            and _may_name_units(column)
        ):
            how = "repeats"
    return Identifier(present, distinct, how)


def identifiers(columns: Mapping[Any, Known]) -> dict[Any, Identifier]:
    """Find those of ``columns`` that point to single records; measurements may differ nearly everywhere."""
    signs = {name: identifier(column) for name, column in columns.items()}
    return {
        name: sign
        for name, sign in signs.items()
        if sign.how is not None
        and not (sign.how == "nearly distinct" and columns[name].kind == "real")
    }


def unmixed_units(
    classes: Sequence[tuple[Labels, int]],
    columns: Mapping[Any, Known],
    seen_again: Mapping[Any, Known] = MappingProxyType({}),
) -> dict[Any, tuple[UnitsInGroups, int]]:
    """Find columns of whose values classes hold too few, and the k of the classes.

    Parameters
    ----------
    classes : of blocks whose k counts records, the class of each record by the released values, and k;
        groups that release the same values are one class, to anyone who has the file
    columns : that are units if they look like it, and classes hold fewer than k of their values
    seen_again : names or codes that may be units; some classes hold one of them only, more than by chance
    """
    units = {}
    for name, column in [*columns.items(), *seen_again.items()]:
        for labels, k in classes:
            sign = units_in_groups(labels, column, k)
            unmixed = sign.looks_like_unit
            if name in seen_again:
                by_chance = sign.one_value_by_chance + _ONE_GROUP
                unmixed = sign.distinct >= k and sign.one_value > by_chance
            if unmixed:
                units[name] = sign, k
                break
    return units


def _may_name_units(column: Known) -> bool:
    """Return whether values may be names or numbers of units: no measurements, dates or counts."""
    if column.kind != "whole":
        return column.kind == "other"
    m = len(column.sizes)
    blocks = min(_BLOCKS, m // 5)
    ranks = _ranks(column.sizes)
    if blocks < 2 or not ranks.any():
        return True
    # The share of the variation of ascending values' frequencies (as ranks) that follows from their place.
    # What chance alone would give is taken off (Kelley's ε²), so that it is about 0 if place has no say.
    block = np.arange(m) * blocks // m
    between = np.square(np.bincount(block, ranks)) @ (1 / np.bincount(block))
    return bool((between * (m - 1) - (blocks - 1)) / (m - blocks) <= _BY_PLACE)


def determines(known: Mapping[Any, Known], both: Pair) -> list[Determined]:
    """Find protected columns of ``both`` tables that follow from ``known`` ones, by their original values.

    Either by order: Spearman's rank correlation is 0.99 or more, or −0.99 or less; ties have their
    mean rank, records where either value is missing are left aside, and fewer than ten records tell
    nothing. Or as a function of a value that many records share, whatever its order; of protected
    categories without order, only that.

    Each column is sorted once; then O(n) for each pair of columns.
    """
    determined, columns = [], []
    for variable, original in zip(both.variables, both.original.T, strict=True):
        ascending = np.unique(original, return_inverse=True)[1].reshape(-1)
        values = np.where(np.isnan(original), -1, ascending)
        columns.append((variable, values, _ranks_if_complete(values)))
    for name, column in known.items():
        known_ranks = _ranks_if_complete(column.codes)
        for variable, values, ranks in columns:
            codes, first, second = column.codes, known_ranks, ranks
            if first is None or second is None:
                there = (codes >= 0) & (values >= 0)
                codes, values = codes[there], values[there]
                first, second = _ranks(codes), _ranks(values)
            if len(codes) < _FEWEST_RECORDS:
                continue
            sign = Determined(name, variable.name, len(codes), None, _is_function(codes, values))
            if column.ordered and variable.kind not in UNORDERED:
                sign = sign._replace(rank_correlation=float(np.clip(first @ second, -1, 1)))
            if sign.function or abs(sign.rank_correlation or 0.0) >= _RANK_CORRELATION:
                determined.append(sign)
    return determined


def _is_function(codes: Labels, values: Labels) -> bool:
    """Return whether the values follow from the codes, and not by accident."""
    n, distinct = len(codes), np.count_nonzero(np.bincount(codes))
    sizes = group_sizes(values)
    if n < _RECORDS_OF_A_LEVEL * distinct or np.count_nonzero(sizes) > distinct:
        return False
    differ = 1 - float(np.square(sizes / n).sum())
    if (n - distinct) * differ < _DIFFERENT_BY_CHANCE:
        return False
    return int(combine([codes, values]).max()) + 1 == distinct


def _homogeneous(labels: Labels, codes: Labels, k: int) -> tuple[float, float]:
    """Share of groups with one code, and with fewer than k distinct ones."""
    distinct = count_units(labels, codes)
    return float(np.mean(distinct == 1)), float(np.mean(distinct < k))


def _ranks(codes: Labels) -> Floats:
    """Mean ranks of ascending codes, less their mean, as a vector of length 1; all 0 if constant."""
    sizes = group_sizes(codes)
    middle = np.cumsum(sizes) - sizes / 2 - len(codes) / 2  # 0 on average over the records
    length = float(np.sqrt(np.square(middle) @ sizes))
    return middle[codes] / length if length > 0 else np.zeros(len(codes))


def _ranks_if_complete(codes: Labels) -> Floats | None:
    return _ranks(codes) if codes.min(initial=0) >= 0 else None
