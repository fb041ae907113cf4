"""Groups become one: those that some members left, or in which fewer than k have a value.

Neighbours become one: groups stand in an order in which those with similar released values are near each
other, and as many as are needed are taken in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.ledger.columns import ColumnHistory

_MOST_JOINED = 60  # groups that become one; what needs more is withheld
_LEAF = 4  # groups that are not ordered further


def joined_groups(
    touched: Labels,
    strata: Labels,
    groups: Labels,
    places: Floats,
    is_enough: Callable[[Labels], bool],
    rest_joins: bool = True,
) -> dict[int, int]:
    """Return the group that some groups become a part of, by group.

    Parameters
    ----------
    touched : groups that some members left, or that lack values
    strata : (touched,) of each
    groups : (units,) group of each unit
    places : (touched, dimensions) near each other where groups have released similar values
    is_enough : tells whether some units may be one group
    rest_joins : whether groups that are left over in a stratum join the last ones that became one
    """
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


def released_places(groups: Labels, histories: Mapping[str, ColumnHistory]) -> Floats:
    """Return the numbers that groups have released, in standard deviations, (groups, columns)."""
    columns = [np.zeros(len(groups))]
    for history in histories.values():
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
