"""Groups become one: those that some members left, or in which fewer than k have a value.

Neighbours become one: groups stand in an order in which those with similar released values are near each
other, and as many as are needed are taken in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.space import space_of
from microagg.ledger.base_groups import BaseGroups
from microagg.tables.variable import Variable

_MOST_JOINED = 60  # groups that become one; what needs more is withheld
_LEAF = 4  # groups that are not ordered further


def joined_groups(
    base: BaseGroups,
    touched: Labels,
    strata: Labels,
    is_enough: Callable[[Labels], bool],
    rest_joins: bool = True,
) -> dict[int, int]:
    """Return the group that some groups become a part of, by group.

    Parameters
    ----------
    base : all groups
    touched : groups that some members left, or that lack values
    strata : (touched,) of each
    is_enough : tells whether some units may be one group
    rest_joins : whether groups that are left over in a stratum join the last ones that became one
    """
    groups, places = base.of_units, _released_places(base, touched)
    order = np.argsort(groups, kind="stable")
    start = np.searchsorted(groups[order], np.append(touched, groups.max(initial=0) + 1))
    end = np.searchsorted(groups[order], touched, side="right")
    units_of = {
        group: order[begin:stop]
        for group, begin, stop in zip(touched.tolist(), start, end, strict=False)
    }

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
    return into


def join_for_values(
    base: BaseGroups,
    variables: Sequence[Variable],
    at: Labels,
    strata: Labels,
    k: int,
    draws: bool,
) -> int:
    """Let groups join in which fewer than k have a value of a new column, where that loses less.

    Parameters
    ----------
    base : all groups; those that join are one from now on
    variables : the columns of this file, of all n records
    at, strata : (n,) unit in the ledger, −1: a new one, and stratum of each
    k : least number of units that have a value
    draws : whether groups release the category of a random member

    Returns
    -------
    int
        Number of groups that became a part of others, or took others in.
    """
    joined, known = 0, np.flatnonzero(at >= 0)
    for variable in variables:
        has_value, groups = np.zeros(len(base.units), bool), base.of_units
        has_value[at[known[~variable.missing[known]]]] = True
        count = np.bincount(groups[has_value], minlength=len(base))
        few = (count > 0) & (count < k) & ~base.history(variable.name).stated
        touched = np.flatnonzero(few)
        if not len(touched):
            continue
        stratum = np.zeros(len(base), np.int64)
        of_row = groups[at[known]]
        stratum[of_row] = strata[known]
        into = joined_groups(
            base,
            touched,
            stratum[touched],
            lambda units, has_value=has_value: bool(has_value[units].sum() >= k),  # type: ignore[misc]
            rest_joins=False,
        )
        spaces = [space_of([v]).scaled for v in variables]
        for whole in {*into.values()}:
            parts = [part for part in into if into[part] == whole]
            rows = [known[of_row == part] for part in parts]
            before, after = (
                sum(
                    _loss(X[members[~v.missing[members]]], k)
                    for X, v in zip(spaces, variables, strict=True)
                    for members in cut
                )
                for cut in (rows, [np.concatenate(rows)])
            )
            if after < before:
                base.join(dict.fromkeys(parts, whole), draws)
                joined += len(parts)
    return joined


def _loss(X: Floats, k: int) -> float:
    """Return what members with a value lose: their sum of squares, from 0 if the value is blanked for all."""
    centre = X.mean(axis=0) if len(X) >= k else 0.0
    return float(np.square(X - centre).sum())


def _released_places(base: BaseGroups, groups: Labels) -> Floats:
    """Return the numbers that groups have released, in standard deviations, (groups, columns)."""
    columns = [np.zeros(len(groups))]
    for history in map(base.history, base.release_of):
        numbers = history.released[groups]
        spread = np.nanstd(numbers) if np.isfinite(numbers).any() else 0.0
        if spread > 0 and not history.texts:
            columns.append(np.nan_to_num((numbers - np.nanmean(numbers)) / spread))
    return np.column_stack(columns)


def _nearby_order(places: Floats) -> Labels:
    """Return an order in which neighbours are near: halves along the widest side, again and again."""
    ordered: list[Labels] = []
    halves = [np.arange(len(places))]
    while halves:
        some = halves.pop()
        inside = places[some]
        widest = int(np.argmax(np.ptp(inside, axis=0)))
        some = some[np.argsort(inside[:, widest], kind="stable")]
        if len(some) <= _LEAF:
            ordered.append(some)
        else:
            halves += [some[len(some) // 2 :], some[: len(some) // 2]]
    return np.concatenate(ordered)
