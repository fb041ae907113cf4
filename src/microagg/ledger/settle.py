"""The values that groups of a ledger release: old digits, or new ones that all files together allow.

A group in which nothing changed releases the digits that it released before. One in which something did
releases a new value if :mod:`microagg.ledger.equations` lets it; otherwise the old one stays. A file of a
larger k releases unions of groups: each group is settled as if its own value were released, and the union's
value follows from theirs, so that it says nothing more. Swapped groups have lists of values, which are
frozen, and dealt afresh; their means are the means of the lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.encode.space import names_of_levels
from microagg.errors import InputError, shown
from microagg.ledger.base_groups import BaseGroups, ColumnHistory, Flags, group_lots, joined_values
from microagg.ledger.choosing import FileUnits
from microagg.ledger.hashing import hashed_texts
from microagg.releasing.release_values import Aggregated, Rounded
from microagg.releasing.swap import Shared
from microagg.tables.variable import Variable


class _Step(NamedTuple):
    """What would be stated about a column."""

    history: ColumnHistory
    sums: Floats
    masses: Floats
    versions: Labels
    changed: Flags
    """(groups,) whether a group's members have other values than in its last equation."""
    present: Labels  # (groups,) units that have a value


@dataclass(eq=False)
class GroupValues:
    """The groups of one release of a ledger, and their values."""

    base: BaseGroups  # all base groups; the histories of the columns of this release are changed
    place: Labels  # (n,) unit of each record
    here: Labels  # (base groups of this file,) their numbers
    labels: Labels  # (n,) of these, that of each record
    unions: Labels  # (n,) group of each record in this file, a union of base groups
    strata: Labels  # (n,)
    weights: Floats | None  # (n,) of entry; None: all are alike
    file: FileUnits  # with the plan, k, and which columns are swapped
    counts: dict[str, int] = field(default_factory=dict)
    # Of columns that release means, what rounding changes at most.
    rounding: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._groups, self._number = self.base.of_units, self.base.merged.shape[1]
        self._plan, self._k, self._swapped = self.file.plan, self.file.k, self.file.swapped

    def settle(
        self,
        variables: Sequence[Variable],
        of_base: Aggregated,
        of_unions: Aggregated,
        rounded: Rounded,
    ) -> Aggregated:
        """Return what groups release.

        Parameters
        ----------
        variables : the columns, of all n records
        of_base, of_unions : what base groups, and the groups of this file, would release without a ledger
        rounded : rounds numbers of a column, named by its place, to the digits of the plan
        """
        labels, here = self.labels, _flags(self.here, len(self.base))
        steps = [self._step(variable, here) for variable in variables]
        refused = self._refused(variables, steps)
        row = np.empty(len(self.here), np.int64)  # one of each base group
        row[labels] = np.arange(len(labels))
        renewed, kept = np.zeros(len(here), bool), np.zeros(len(here), bool)
        blanked = 0
        values, states = of_unions[0].copy(), of_unions[1].copy()
        for j, (variable, step) in enumerate(zip(variables, steps, strict=True)):
            history = step.history
            group_values, group_states = of_base[0][row, j].copy(), of_base[1][row, j].copy()
            if str(variable.name) in self._swapped:
                group_values, masses = self._means_of_lists(variable, history)
                group_values = rounded(j, group_values)
                group_states = np.isnan(group_values).astype(np.int64)
                stays = np.ones(len(row), bool)
                kept |= step.changed
                blanked += int(group_states.sum())
            else:
                few = here & ~history.stated & (step.present < self._k) & (step.present > 0)
                self._state(
                    variable, step, refused, group_values, group_states, partial(rounded, j)
                )
                group_values[few[self.here]], group_states[few[self.here]] = np.nan, 1
                renewed |= step.changed & ~refused
                kept |= step.changed & refused
                blanked += int(few.sum())
                stays = (few | (step.changed & refused))[self.here]
                masses = history.group_masses(self._groups)[self.here]
            if self.unions is labels:
                values[:, j], states[:, j] = group_values[labels], group_states[labels]
                continue
            union = self.unions[row]
            lots = None
            if self._plan.blocks[0].draws and variable.is_category:
                lots = group_lots(self.base.key, str(variable.name), self.here)
                stays[:] = True
            joined = joined_values(group_values, masses, union, variable.is_category, lots)
            joined = rounded(j, joined)
            # Where all its groups release what their members have now, it is the union's own value; but a
            # drawn one is always that of the same group, so that no change in another one shows.
            as_groups = (np.bincount(union, stays) > 0)[self.unions]
            values[as_groups, j] = joined[self.unions][as_groups]
            states[as_groups, j] = np.isnan(values[as_groups, j])
        self.counts = {
            "groups": len(self.here),
            "groups_renewed": int(renewed.sum()),
            "groups_kept": int((kept & here).sum()),
            "columns_blanked": blanked,
        }
        return values, states

    def _state(
        self,
        variable: Variable,
        step: _Step,
        refused: Flags,
        values: Floats,
        states: Labels,
        rounded: Callable[[Floats], Floats],
    ) -> None:
        """State the new values of groups in the ledger, and put the old ones of the others in their place.

        ``values`` and ``states`` of the base groups of this file are changed; groups that are ``refused``
        must not show a change.
        """
        history, here = step.history, _flags(self.here, len(self.base))
        new = here & ~history.stated & (step.present >= self._k) | (step.changed & ~refused)
        is_in = new[self._groups]
        history.state(is_in, step.versions, step.sums, step.masses, self._number)
        old = (history.stated & ~new)[self.here]
        at = self.here[old]
        number = _numbers(variable, history, history.released[at], history.origin[at])
        number = np.where(step.changed[at], rounded(number), number)
        values[old], states[old] = number, np.isnan(number)
        is_new = new[self.here]
        at = self.here[is_new]
        history.released[at] = _as_held(variable, history, values[is_new])
        history.origin[at], history.stated[at] = variable.origin, True
        if variable.kind in ("number", "integer"):
            probes = np.sqrt(np.arange(2.0, 200.0))
            self.rounding[str(variable.name)] = float(np.abs(rounded(probes) - probes).max())

    def _step(self, variable: Variable, here: Flags) -> _Step:
        history = self.base.history(variable.name)
        groups = self._groups
        sums, masses = self._parts(variable)
        versions = history.versions_of(sums, masses)
        changed = _flags(groups[versions != history.last], len(here)) & here & history.stated
        present = np.bincount(groups[versions >= 0], minlength=len(here))
        return _Step(history, sums, masses, versions, changed, present)

    def _refused(self, variables: Sequence[Variable], steps: Sequence[_Step]) -> Flags:
        """Return the groups of which some column changed in a way that must not show."""
        g = len(self.base)
        order = np.argsort(self._groups, kind="stable")
        start = np.searchsorted(self._groups[order], np.arange(g + 1))
        refused = np.zeros(g, bool)
        for variable, step in zip(variables, steps, strict=True):
            if str(variable.name) in self._swapped:
                continue
            for group in np.flatnonzero(step.changed & ~refused):
                units = order[start[group] : start[group + 1]]
                groups_then = self.base.merged[self.base.entry[units]][:, step.history.numbers - 1]
                now = units, step.versions[units], step.sums[units]
                refused[group] = not step.history.may_state(
                    *now, self._k, not variable.is_category, groups_then
                )
        return refused

    def _means_of_lists(self, variable: Variable, history: ColumnHistory) -> tuple[Floats, Floats]:
        """Return the mean of each base group's frozen list, or its most frequent category, and its length.

        One-column groups are a second partition: means of the values themselves could be solved against
        the values that k units share.
        """
        at = np.full(len(self.base), -1)
        at[self.here] = np.arange(len(self.here))
        inside = np.flatnonzero((at[self._groups] >= 0) & history.stated[self._groups])
        of_list = at[self._groups[inside]]
        origin = history.origin[self._groups[inside]]
        numbers = _numbers(variable, history, history.lists[inside], origin)
        masses = np.bincount(of_list, ~np.isnan(numbers), minlength=len(self.here))
        means = np.full(len(self.here), np.nan)
        joined = joined_values(numbers, np.ones(len(inside)), of_list, variable.is_category)
        means[: len(joined)] = joined
        return means, masses.astype(np.float64)

    def share(self, variables: Sequence[Variable], shared: Shared) -> Shared:
        """Return what is dealt in swapped groups: the frozen lists, and those of new groups and columns.

        Parameters
        ----------
        variables : the columns, of all n records
        shared : what would be dealt without a ledger
        """
        values, states = shared.values.copy(), shared.states.copy()
        base = self.here[self.labels]
        order = np.lexsort((self.place, base))
        place = np.argsort(self._groups, kind="stable")  # lists are in the order of groups
        place = place[np.isin(self._groups[place], self.here)]
        assert (self._groups[place] == base[order]).all()
        kept, here = np.zeros(len(self.base), bool), _flags(self.here, len(self.base))
        for j, variable in enumerate(variables):
            step = self._step(variable, here)
            history, versions = step.history, step.versions
            old = history.stated[base[order]]
            number = history.lists[place[old]]
            frozen = _numbers(variable, history, number, history.origin[base[order][old]])
            if (np.isnan(frozen) & ~np.isnan(number)).any():
                raise InputError(
                    "Swapped lists are frozen; a category that one of them holds occurs no more in "
                    f"{shown(variable.name)}. Keep a record with it, or leave the column out."
                )
            values[order[old], j], states[order[old], j] = frozen, np.isnan(frozen)
            new = order[~old]
            by_value = new[np.lexsort((values[new, j], base[new]))]
            history.lists[place[~old]] = _as_held(variable, history, values[by_value, j])
            groups = np.unique(base[new])
            history.stated[groups], history.origin[groups] = True, variable.origin
            kept[self._groups[(versions != history.last) & (history.last >= 0)]] = True
            is_new = np.isin(self._groups, groups)
            history.state(is_new, versions, step.sums, step.masses, self._number)
            # Refused are lists with a value that too few units are left for, since other groups are withheld.
            pairs = np.column_stack([self.strata, values[:, j].view(np.int64)])
            counts = np.unique(pairs, axis=0, return_counts=True)[1]
            few = int((counts < self._plan.k).sum())
            if few:
                raise InputError(
                    f"Swapped values stand for at least {plural(self._plan.k, 'unit')} of a stratum; of "
                    f"the frozen lists {plural(few, 'value')} of {shown(variable.name)} would stand for "
                    "fewer. Release the table with all members of the groups that are withheld, with the k "
                    "of the first file, or as means."
                )
        self.counts = {"groups": len(self.here), "groups_kept": int(kept[self.here].sum())}
        return Shared(values, states)

    def _parts(self, variable: Variable) -> tuple[Floats, Floats]:
        """Return what each unit adds to the sum of its group, and with which weight; NaN: nothing.

        Of categories and of swapped columns a number that stands for the value takes its place: nobody has
        to know by how much it changed.
        """
        numbers = variable.values + (variable.origin if variable.kind == "date" else 0)
        name = str(variable.name)
        history = self.base.history(name)
        if (history.category != variable.is_category).any():
            was, now = ("numbers", "categories")[:: 1 if variable.is_category else -1]
            raise InputError(
                "A column of a ledger keeps its kind, since means and most frequent values of one group tell "
                f"more together; {shown(variable.name)} held {was} and now holds {now}. Give it the kind of "
                "before, or leave it out."
            )
        history.category = np.array([variable.is_category])
        if variable.is_category:
            codes = self._codes(name, map(str, variable.levels))
            levels = variable.level_numbers
            numbers = np.where(levels < 0, np.nan, np.append(codes, np.nan)[levels])
        elif name in self._swapped:
            distinct, which = np.unique(numbers, return_inverse=True)
            codes = self._codes(name, map(repr, distinct.tolist()))
            numbers = np.where(np.isnan(numbers), np.nan, codes[which.reshape(-1)])
        at_row, n = self.place, len(self._groups)
        there = np.flatnonzero(~np.isnan(numbers))
        mass = np.ones(len(there)) if self.weights is None else self.weights[there]
        # In ascending order, so that the sum does not depend on the order of the file.
        order = np.lexsort((mass, numbers[there], at_row[there]))
        at = at_row[there][order]
        sums, masses = np.full(n, np.nan), np.full(n, np.nan)
        if len(at):
            first = np.flatnonzero(np.append(True, np.diff(at) != 0))
            sums[at[first]] = np.add.reduceat((mass * numbers[there])[order], first)
            masses[at[first]] = np.add.reduceat(mass[order], first)
        return sums, masses

    def lots(self, variable: Variable) -> Labels:
        """Return for each record a number that decides whose category its group draws: the lowest one's.

        It depends on the unit, the column and the category alone. So the same members draw the same one in
        every file, also after changes back and forth; where some changed, whoever did not is drawn anew only
        if the one drawn before did; and a wave of new values is drawn by itself.

        Parameters
        ----------
        variable : a column of categories, of all n records
        """
        texts = [*map(str, variable.levels), ""]  # the last: missing
        pairs = zip(self.place.tolist(), variable.level_numbers.tolist(), strict=True)
        return hashed_texts(
            self.base.key,
            "draw",
            (f"{variable.name}\0{unit}\0{texts[level]}" for unit, level in pairs),
        )

    def _codes(self, name: str, texts: Iterable[str]) -> Floats:
        codes = hashed_texts(self.base.key, "value", (f"{name}\0{text}" for text in texts))
        return (codes % 2**40).astype(np.float64)


def _flags(places: Labels, length: int) -> Flags:
    flags = np.zeros(length, bool)
    flags[places] = True
    return flags


def _as_held(variable: Variable, history: ColumnHistory, values: Floats) -> Floats:
    """Return released values as the ledger holds them."""
    if not variable.is_category:
        return values
    names = names_of_levels(variable)
    levels = np.unique(values[~np.isnan(values)]).tolist()
    texts = {level: str(names[int(level)]) for level in levels}
    new = [text for text in dict.fromkeys(texts.values()) if text not in history.texts]
    history.texts += new
    number = {level: history.texts.index(text) for level, text in texts.items()}
    return np.array([number.get(value, np.nan) for value in values.tolist()], np.float64)


def _numbers(variable: Variable, history: ColumnHistory, numbers: Floats, origin: Labels) -> Floats:
    """Return values of the ledger in the numbering of the variable; NaN also where it has none."""
    if not variable.is_category:
        return numbers + (origin - variable.origin)
    level_of = {
        str(name): level
        for level, name in enumerate(names_of_levels(variable))
        if level >= len(variable.rows) or variable.rows[level] >= 0
    }
    levels = [level_of.get(text, np.nan) for text in history.texts]
    places = np.where(np.isnan(numbers), len(levels), np.nan_to_num(numbers)).astype(np.int64)
    return np.append(np.array(levels, np.float64), np.nan)[places]
