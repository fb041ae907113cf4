"""Groups become one: those that some members left, or in which fewer than k have a value.

Neighbours become one: groups stand in an order in which those with similar released values are near each
other, and as many as are needed are taken in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.categories import nominal_encoder
from microagg.encode.inertia import count_levels
from microagg.encode.space import space_of
from microagg.ledger.base_groups import BaseGroups, Flags
from microagg.tables.variable import Variable

_MOST_JOINED = 60  # groups that become one; what needs more is withheld
_MOST_LEVELS = 12  # of a category by which groups are near or far
_LEAF = 4  # groups that are not ordered further


def joined_groups(
    base: BaseGroups,
    touched: Labels,
    strata: Labels,
    is_enough: Callable[[Labels], bool],
    rest_joins: bool = True,
) -> tuple[Labels, Labels]:
    """Return those of the ``touched`` groups that become one with others, and the group that each is then in.

    ``is_enough`` tells whether some units may be one group; ``rest_joins`` whether groups that are left over
    in a stratum join the last ones that became one.
    """
    groups, places = base.of_units, _released_places(base, touched)
    order = np.argsort(groups, kind="stable")
    start, end = (np.searchsorted(groups[order], touched, side) for side in ("left", "right"))
    units_of = {g: order[i:j] for g, i, j in zip(touched.tolist(), start, end, strict=True)}

    def are_enough(parts: list[int]) -> bool:
        return is_enough(np.concatenate([units_of[part] for part in parts]))

    into: dict[int, int] = {}
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        waiting: list[int] = []
        whole: list[int] = []  # the last that became one
        for group in touched[inside[_nearby_order(places[inside])]].tolist():
            waiting.append(group)
            if are_enough(waiting):
                whole, waiting = waiting, []
                into |= dict.fromkeys(whole, min(whole))
            elif len(waiting) >= _MOST_JOINED:
                waiting = waiting[1:]
        if rest_joins and whole and waiting and are_enough([*whole, *waiting]):
            into |= dict.fromkeys([*whole, *waiting], min(*whole, *waiting))
    return np.array([*into], np.int64), np.array([*into.values()], np.int64)


class Joining(NamedTuple):
    """Groups that became one, or could have; what is lost is in percent of the information of the file."""

    groups: int
    lost: float
    otherwise: float  # what would be lost if those that became one had not, or if the others had


class Information:
    """What the records of a file hold, and what groups of them lose of it, with exact means."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._variables = variables

    @cached_property
    def _columns(self) -> list[tuple[Floats, Flags]]:
        return [(space_of([variable]).scaled, variable.missing) for variable in self._variables]

    def lost(self, labels: Labels, groups: int, k: float) -> Floats:
        """Return what each group loses, in percent; records of label −1 are not looked at.

        A group in which fewer than k records have a value of a column is blank there.
        """
        lost = np.zeros(groups)
        for X, missing in self._columns:
            there = np.flatnonzero((labels >= 0) & ~missing)
            at = labels[there]
            count = np.bincount(at, minlength=groups)
            for x in X[there].T:
                sums = np.bincount(at, x, groups)
                kept = np.where(count >= k, sums * sums / np.maximum(count, 1), 0.0)
                lost += np.bincount(at, x * x, groups) - kept
        total = sum(float(np.square(X).sum()) for X, _ in self._columns)
        return 100 * lost / (total or 1.0)


def joined_for_leavers(base: BaseGroups, information: Information, at: Labels, k: int) -> Joining:
    """Return the groups that became one since some left; otherwise they would be withheld.

    ``at`` (n,) is the unit of each record in the ledger; −1: a new one.
    """
    before, now = base.merged[:, -2:].T
    is_joined = np.isin(now, now[now != before])
    if not is_joined.any():
        return Joining(0, 0.0, 0.0)
    known = np.flatnonzero(at >= 0)
    group, labels = base.of_units[at[known]], np.full(len(at), -1)
    labels[known] = np.where(is_joined[group], group, -1)
    lost, held = (float(information.lost(labels, len(base), least).sum()) for least in (k, np.inf))
    return Joining(len(np.unique(before[is_joined])), lost, held)


def join_for_values(
    base: BaseGroups,
    information: Information,
    variables: Sequence[Variable],
    at: Labels,
    strata: Labels,
    k: int,
    draws: bool,
) -> dict[str, Joining]:
    """Let groups join in which fewer than k have a value of a new column, where that loses less.

    Returned are, by the names of their counts, the groups that became one with others, and those that could
    have but are blank. ``at`` and ``strata`` (n,) are unit, −1: a new one, and stratum of each record.
    """
    decided = {"groups_joined_for_values": np.zeros(3), "groups_not_joined": np.zeros(3)}
    known, size = np.flatnonzero(at >= 0), len(base)
    for variable in variables:
        has_value, groups = np.zeros(len(base.units), bool), base.of_units
        has_value[at[known[~variable.missing[known]]]] = True
        count = np.bincount(groups[has_value], minlength=size)
        few = (count > 0) & (count < k) & ~base.history(variable.name).stated
        touched = np.flatnonzero(few)
        if not len(touched):
            continue
        stratum = np.zeros(size, np.int64)
        of_row = groups[at[known]]
        stratum[of_row] = strata[known]
        parts, wholes = joined_groups(
            base,
            touched,
            stratum[touched],
            lambda units, has_value=has_value: bool(has_value[units].sum() >= k),  # type: ignore[misc]
            rest_joins=False,
        )
        whole_of = np.full(size, -1)
        whole_of[parts] = wholes
        labels = np.full((2, len(at)), -1)
        labels[:, known] = np.where(whole_of[of_row] < 0, -1, [of_row, whole_of[of_row]])
        of_parts, together = (information.lost(side, size, k) for side in labels)
        apart = np.bincount(wholes, of_parts[parts], size)
        joins = together < apart
        base.join(parts[joins[wholes]], wholes[joins[wholes]], draws)
        for name, some, lost, otherwise in (
            ("groups_joined_for_values", joins, together, apart),
            ("groups_not_joined", ~joins, apart, together),
        ):
            decided[name] += some[wholes].sum(), lost[some].sum(), otherwise[some].sum()
    return {name: Joining(int(n), lost, other) for name, (n, lost, other) in decided.items()}


def _released_places(base: BaseGroups, groups: Labels) -> Floats:
    """Return where what groups have released lies, every column with the same inertia."""
    columns = [np.zeros((len(groups), 1))]
    for history in map(base.history, base.release_of):
        numbers, levels = history.released[groups], len(history.texts)
        spread = np.nanstd(numbers) if np.isfinite(numbers).any() else 0.0
        if 0 < levels <= _MOST_LEVELS:
            counts = count_levels(np.nan_to_num(numbers, nan=-1).astype(np.int64), levels)
            columns.append(nominal_encoder(levels, counts).apply(numbers))
        elif not levels and spread > 0:
            columns.append(np.nan_to_num((numbers - np.nanmean(numbers)) / spread)[:, None])
    return np.hstack(columns)


def _nearby_order(places: Floats) -> Labels:
    """Return an order in which neighbours are near: halves of what spreads most, again and again."""
    ordered: list[Labels] = []
    halves = [np.arange(len(places))]
    while halves:
        some = halves.pop()
        inside = places[some]
        widest = int(np.argmax(np.var(inside, axis=0)))
        some = some[np.argsort(inside[:, widest], kind="stable")]
        if len(some) <= _LEAF:
            ordered.append(some)
        else:
            halves += [some[len(some) // 2 :], some[: len(some) // 2]]
    return np.concatenate(ordered)
