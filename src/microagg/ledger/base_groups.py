"""What a ledger knows: the base group of each unit, and of each column what its groups released.

Base groups are made once, when units first enter; later units have groups of their own. Groups only ever
become one, as a whole and for ever.

A unit's part of a sum is that of all its rows, with weights. Each distinct part is a version, numbered from
0; an equation has for each member of the group the version that is in the sum. Of categories a number that
stands for the category takes the place of the value: a group's counts, and so its mode, change by the same
rules.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.ledger.equations import NOT_IN_SUM, gives_few_away, has_dominant_change
from microagg.ledger.hashing import hashed_texts
from microagg.ledger.ledger_file import Ledger

NO_EQUATION = -2
_MOST_VERSIONS = 120  # of one value, so that their numbers fit into a byte

Flags = NDArray[np.bool_]


def joined_values(
    values: Floats,
    masses: Floats,
    of_value: Labels,
    are_categories: bool,
    lots: Labels | None = None,
) -> Floats:
    """Return the mean of values, or the category with the largest mass, of each union.

    Parameters
    ----------
    values : (values,) NaN: none
    masses : (values,) how much each weighs
    of_value : (values,) union of each, 0, 1, …
    are_categories : whether values are numbers of categories
    lots : (values,) the category with the lowest one is drawn instead; None: none is drawn

    >>> joined_values(np.array([1.0, 4.0, np.nan]), np.array([1.0, 2.0, 9.0]), np.array([0, 0, 1]), False)
    array([ 3., nan])
    """
    unions = int(of_value.max(initial=-1)) + 1
    there = np.flatnonzero(~np.isnan(values) & (masses > 0))
    at, joined = of_value[there], np.full(unions, np.nan)
    if are_categories and lots is not None:
        order = np.argsort(-lots[there], kind="stable")  # the lowest comes last
        joined[at[order]] = values[there][order]
    elif are_categories:
        pairs, which = np.unique(np.column_stack([at, values[there]]), axis=0, return_inverse=True)
        mass = np.bincount(which.reshape(-1), masses[there], minlength=len(pairs))
        order = np.lexsort((-pairs[:, 1], mass))  # of equal masses the first category comes last
        joined[pairs[order, 0].astype(np.int64)] = pairs[order, 1]
    else:
        mass = np.bincount(at, masses[there], minlength=unions)
        sums = np.bincount(at, masses[there] * values[there], minlength=unions)
        np.divide(sums, mass, out=joined, where=mass > 0)
    return joined


def group_lots(key: bytes, name: str, groups: Labels) -> Labels:
    """Return for each group a number: of groups that become one, the lowest one's category is drawn."""
    return hashed_texts(key, "join", (f"{name}\0{group}" for group in groups.tolist()))


def equations_of(versions: Labels, groups_then: Labels) -> Labels:
    """Return the equations of a group, one for each part of it that stated its own at the time.

    Both are (members, releases): as :attr:`ColumnHistory.equations`, and the group that each was in then.
    Returned is the version of each member in each equation; −1: not in the sum.
    """
    equations = [np.zeros((len(versions), 0), np.int64)]
    for column, then in zip(versions.T, groups_then.T, strict=True):
        is_in = column != NO_EQUATION
        equations += [
            np.where(is_in & (then == group), column, NOT_IN_SUM)[:, None]
            for group in np.unique(then[is_in])
        ]
    return np.hstack(equations)


class ColumnHistory:
    """The versions of a column's values, its equations and what was released, by unit and base group."""

    def __init__(self, arrays: dict[str, NDArray[Any]], units: int, groups: int) -> None:
        """Take over what a ledger holds, with room for as many units and groups as there are now."""

        def whole(name: str, fill: float, kind: str, length: int, *width: int) -> Any:
            there = arrays.get(name, np.zeros((0, *width)))
            extended = np.full((length, *there.shape[1:]), fill, kind)
            extended[: len(there)] = there
            return extended

        self.equations = whole("equations", NO_EQUATION, "i1", units, 0)
        """(units, equations) version in each; −1: not in the sum; −2: the group has no such equation."""
        self.numbers = arrays.get("numbers", np.zeros(0, np.int64))
        """(equations,) number of the release that stated it."""
        self.last = whole("last", NOT_IN_SUM, "i1", units)
        """(units,) version in the last equation of the group."""
        self.sums = whole("sums", np.nan, "f8", units, 0)  # (units, versions) part of a sum
        self.masses = whole("masses", np.nan, "f8", units, 0)
        """(units, versions) weight, or number of rows, that goes with it."""
        self.stated = whole("stated", 0, "?", groups)
        """(groups,) whether the group has released a value."""
        self.released = whole("released", np.nan, "f8", groups)
        """(groups,) that value; of a category its number among the texts."""
        self.origin = whole("origin", 0, "i8", groups)  # (groups,) what 0 stands for, of dates
        self.lists = whole("lists", np.nan, "f8", units)
        """(units,) swapped values, in each group in ascending order: not those of the unit."""
        self.category = arrays.get("category", np.zeros(0, np.bool_))
        """(1,) whether values are categories; empty: none was released yet."""
        texts = arrays.get("texts")
        self.texts: list[str] = [] if texts is None else json.loads(texts.tobytes())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what the ledger is to hold."""
        arrays = {name: value for name, value in vars(self).items() if name != "texts"}
        return {**arrays, "texts": np.frombuffer(json.dumps(self.texts).encode(), np.uint8)}

    def group_masses(self, groups: Labels) -> Floats:
        """Return what the last equation of each group weighs, by the group of each unit: rows, or weights."""
        at = np.flatnonzero(self.last >= 0)
        weights = self.masses[at, self.last[at]] if len(at) else None
        return np.bincount(groups[at], weights, minlength=len(self.stated)).astype(np.float64)

    def join(self, parts: Labels, into: Labels, groups: Labels, lots: Labels | None = None) -> None:
        """Let groups, ``parts`` of others from now on, release the value of all of them together.

        ``groups`` are those of the units before; ``lots`` of the parts are as for :func:`joined_values`.
        """
        stated = self.stated[parts]
        values = self.released[parts] + self.origin[parts]
        masses = np.where(stated, self.group_masses(groups)[parts], 0.0)
        whole, of_part = np.unique(into, return_inverse=True)
        joined = joined_values(values, masses, of_part.reshape(-1), bool(self.texts), lots)
        self.released[whole] = joined - self.origin[whole]
        self.stated[whole] = np.bincount(of_part.reshape(-1), stated) > 0

    def versions_of(self, sums: Floats, masses: Floats) -> Labels:
        """Return for each unit the version that it has now; −1: none; one more than there are: a new one.

        A value that is back is its old version: it is no new unknown.
        """
        versions = np.where(np.isnan(sums), NOT_IN_SUM, (~np.isnan(self.sums)).sum(axis=1))
        for version in range(self.sums.shape[1] - 1, -1, -1):
            same = (self.sums[:, version] == sums) & (self.masses[:, version] == masses)
            versions[same] = version
        return versions

    def may_state(
        self,
        members: Labels,
        versions: Labels,
        sums: Floats,
        k: int,
        amounts: bool,
        groups_then: Labels,
    ) -> bool:
        """Tell whether a group of these members may release a new value.

        The sum would have these versions and parts of sums of them; ``amounts`` tells whether these are
        amounts, of which nobody may make nearly all of the change; ``groups_then`` is as for
        :func:`equations_of`.
        """
        there = self.equations[members]
        if versions.max(initial=0) >= _MOST_VERSIONS:
            return False
        if gives_few_away(np.column_stack([equations_of(there, groups_then), versions]), k):
            return False
        if not amounts:
            return True
        new = np.where(versions == NOT_IN_SUM, 0.0, np.nan_to_num(sums))
        for versions_then in there[:, (there != NO_EQUATION).any(axis=0)].T:
            old = self.sums[members, np.maximum(versions_then, 0)]
            if has_dominant_change(new, np.where(versions_then < 0, 0.0, old)):
                return False
        return True

    def state(
        self, units: Flags, versions: Labels, sums: Floats, masses: Floats, number: int
    ) -> None:
        """Add an equation of a release for the groups of some units; parts as for :meth:`versions_of`."""
        if not units.any():
            return
        row = np.where(units, versions, NO_EQUATION).astype("i1")
        self.equations = np.column_stack([self.equations, row])
        self.numbers = np.append(self.numbers, number)
        self.last[units] = versions[units]
        count = (~np.isnan(self.sums)).sum(axis=1)
        new = units & (versions == count) & (versions >= 0)
        width = max(int(versions[new].max(initial=-1)) + 1 - self.sums.shape[1], 0)
        more = np.full((len(units), width), np.nan)
        self.sums, self.masses = np.hstack([self.sums, more]), np.hstack([self.masses, more])
        self.sums[new, versions[new]] = sums[new]
        self.masses[new, versions[new]] = masses[new]


class BaseGroups:
    """Units and base groups up to this release; the ledger that is given stays as it is."""

    def __init__(self, ledger: Ledger, key: bytes) -> None:
        self._held = arrays = ledger.arrays
        files, nobody = len(ledger.releases), np.zeros(0, np.int64)
        self.key = key
        self.release_of: dict[str, str] = dict(ledger.about.get("release", {}))
        """Of each column that was released: as means, or swapped."""
        self.units: Labels = arrays.get("units", nobody)  # (units,) keyed hashes
        self.entry: Labels = arrays.get("entry", nobody)  # (units,) group in which each entered
        merged = arrays.get("merged", np.zeros((0, 1), np.int64))
        self.merged: Labels = np.column_stack([merged, merged[:, -1]]) if files else merged
        """(groups, releases) the group that each was a part of, with this release."""
        self.seen: Labels = arrays.get("seen", np.zeros((0, files), np.int64))
        """(units, files) what is known of each in each file; 0: it is not in it."""
        self.rows: Labels = arrays.get("rows", nobody)
        """(units,) rows that each had when it entered."""
        self.weights: Floats | None = arrays.get("weights")  # (units,) of entry
        self._histories: dict[str, ColumnHistory] = {}

    def __len__(self) -> int:
        return len(self.merged)

    @property
    def of_units(self) -> Labels:
        """(units,) base group of each, as of this release."""
        return np.asarray(self.merged[self.entry, -1])

    def find(self, keys: Labels) -> Labels:
        """Return the places of units, by their keyed hashes; −1: they are new."""
        if not len(self.units):
            return np.full(len(keys), -1)
        order = np.argsort(self.units)
        place = np.minimum(np.searchsorted(self.units[order], keys), len(order) - 1)
        return np.where(self.units[order[place]] == keys, order[place], -1)

    def history(self, name: Any) -> ColumnHistory:
        """Return what the ledger knows of a column, which may be nothing yet; until more units enter."""
        name, start = str(name), f"{name}/"
        if name not in self._histories:
            held = [full for full in self._held if full.startswith(start)]
            arrays = {full.removeprefix(start): self._held[full] for full in held}
            self._histories[name] = ColumnHistory(arrays, len(self.units), len(self))
        return self._histories[name]

    def join(self, parts: Labels, wholes: Labels, draws: bool) -> None:
        """Let groups be ``parts`` of others for ever; these ``wholes`` release one value from now on.

        ``draws`` tells whether groups release the category of a random member.
        """
        for name in self.release_of if len(parts) else ():
            lots = group_lots(self.key, name, parts) if draws else None
            self.history(name).join(parts, wholes, self.of_units, lots)
        renamed = np.arange(len(self))
        renamed[parts] = wholes
        self.merged[:, -1] = renamed[self.merged[:, -1]]

    def enter(self, keys: Labels, groups: Labels, rows: Labels) -> Labels:
        """Add units; return their places. Groups that do not exist yet are numbered on."""
        places = len(self.units) + np.arange(len(keys))
        self.units = np.concatenate([self.units, keys])
        self.entry = np.concatenate([self.entry, groups])
        self.rows = np.concatenate([self.rows, rows])
        self.seen = np.pad(self.seen, ((0, len(keys)), (0, 0)))
        added = np.arange(len(self), max(int(groups.max(initial=-1)) + 1, len(self)))[:, None]
        self.merged = np.vstack([self.merged, np.repeat(added, self.merged.shape[1], axis=1)])
        self._histories = {
            name: ColumnHistory(history.arrays(), len(self.units), len(self))
            for name, history in self._histories.items()
        }
        return places

    def arrays(self) -> dict[str, Any]:
        """Return what the ledger is to hold, also of columns that are not in this release."""
        names = ("units", "entry", "merged", "seen", "rows", "weights")
        arrays = {**self._held, **{name: getattr(self, name) for name in names}}
        for name, history in self._histories.items():
            arrays |= {f"{name}/{part}": array for part, array in history.arrays().items()}
        return {name: array for name, array in arrays.items() if array is not None}
