"""A release that has others before it: who is in it, and in which groups.

Base groups are made once, when a unit first enters, and never change. So the way of a table is

choose   Which records are released. Newcomers of a stratum with fewer than k of them wait. Base groups that
         some members left become one for ever where then k or more left and k or more stayed; otherwise they
         are withheld, as are groups that lie in two strata, and those of which what is known, over all
         files, would tell fewer than k members apart.
group    Newcomers form groups among themselves; everybody else is in the group of entry. Where the plan asks
         for more units than base groups have, groups of the file are unions of them.
settle   :mod:`microagg.ledger.settle` has the values that groups release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.encode.space import Space, space_of
from microagg.errors import InputError, shown
from microagg.grouping.group_table import merge_groups
from microagg.grouping.read_table import Intake, PartInput
from microagg.grouping.require.from_plan import whole_of, within
from microagg.grouping.require.requirement import Requirement, check_feasible
from microagg.grouping.require.value_rules import Units
from microagg.grouping.require.weight_rules import Population
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.ledger.checks import check_supported
from microagg.ledger.columns import ColumnHistory, Flags
from microagg.ledger.hashing import hashed_rows, hashed_texts
from microagg.ledger.joining import joined_groups, released_places
from microagg.ledger.ledger_file import Ledger
from microagg.ledger.recount import ABSENT, rarest_of_groups, smallest_combination
from microagg.ledger.settle import GroupValues, Members, group_lots
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame, values_as_written
from microagg.tables.variable import Variable

if TYPE_CHECKING:
    import pyarrow as pa

Solve = Callable[[Space, Labels, Sequence[Requirement], int, Floats | None], Partition]


class _Figures(NamedTuple):
    """What became of each base group, (groups,)."""

    present: Labels
    """Units in the table."""
    absent: Labels
    stratum: Labels
    moved: Flags
    """Whether its units are in several strata."""
    alone: Labels
    """Units in its rarest combination of what is known in this file."""
    joint: Labels
    """The same over all files."""


class Carrying:
    """One release of a ledger on its way; the ledger that is given stays as it is."""

    values: GroupValues
    rows: Labels
    """Records that are released, ascending."""

    def __init__(self, ledger: Ledger, key: bytes, column: Any = None, leavers: str = "withhold"):
        self._before, self._key, self._named, self._leavers = ledger, key, column, leavers
        arrays, files = ledger.arrays, len(ledger.releases)
        self._units: Labels = arrays.get("units", np.zeros(0, np.int64))
        self._entry: Labels = arrays.get("entry", np.zeros(0, np.int64))
        merged = arrays.get("merged", np.zeros((0, 0), np.int64))
        last = merged[:, -1:] if files else np.zeros((0, 1), np.int64)
        self._merged: Labels = np.hstack([merged, last])
        self._seen: Labels = arrays.get("seen", np.zeros((0, files), np.int64))
        self._shown: Labels = arrays.get("shown", np.zeros((0, files), np.int64))
        self._weights: Floats | None = arrays.get("weights")
        self._rows_at_entry: Labels = arrays.get("rows", np.zeros(0, np.int64))
        self._release_of = dict(ledger.about.get("release", {}))
        self._histories: dict[str, ColumnHistory] = {}
        self.counts: dict[str, int] = {}
        """What becomes of whom; for the board."""

    @property
    def _groups(self) -> Labels:
        """(units,) base group of each, as of this release."""
        return np.asarray(self._merged[self._entry, -1])

    # Who is in the release.

    def choose(self, table: Frame, text: pa.Table | None, plan: Plan) -> Labels:
        """Return the rows that are released, ascending.

        Parameters
        ----------
        table : the table as it came
        text : the same as it stands in a CSV file
        plan : with a role for every column

        Raises
        ------
        InputError
            If the plan asks for what a ledger does not cover, the table is another one, or nobody is left.
        """
        self._plan, self._roles = plan, plan.roles(table.names)
        roles = self._roles
        written, is_csv = (table, False) if text is None else (Frame(text), True)
        self._column = check_supported(plan, roles, self._named, self._before.about, self._leavers)
        self._k = min(plan.k, self._before.about.get("k", plan.k))
        keys = self._hashed_units(written, is_csv)
        units, first, of_row = np.unique(keys, return_index=True, return_inverse=True)
        self.counts["units"] = len(units)
        of_row = of_row.reshape(-1)
        rows_of_unit = np.bincount(of_row, minlength=len(units))
        if plan.blocks[0].is_swapped and rows_of_unit.max() > 1:
            raise InputError(
                "Swapping with a ledger deals one row for each unit; here "
                f"{plural(int((rows_of_unit > 1).sum()), 'unit')} have several. Release means."
            )
        self._at = self._find(units)
        if len(self._units) and not (self._at >= 0).any():
            raise InputError(
                f"A ledger is about one table; none of the {plural(len(units), 'unit')} in "
                f"{shown(self._column)} is in it. Name the ledger of this table, or a new one."
            )
        stratum = hashed_rows(self._key, "stratum", written, roles.strata, is_csv)
        if (stratum != stratum[first][of_row]).any():
            raise InputError(
                "With a ledger all records of a unit are in one stratum; some units have records in two. "
                "Correct them, or leave the strata out."
            )
        self._stratum = stratum[first]
        known = hashed_rows(self._key, "known", written, roles.known, is_csv)
        self._known = self._known_of_units(known, of_row, len(units))
        chosen = self._in_large_strata(self._newcomers() | self._staying())
        if not chosen.any():
            words = [f"{name.replace('_', ' ')} {count:,}" for name, count in self.counts.items()]
            raise InputError(
                f"A release holds at least {plural(plan.k, 'unit')} (k); all of them wait or are withheld "
                f"({', '.join(words)}). Wait for more of them, or accept leavers: --leavers accept."
            )
        rows = np.flatnonzero(chosen[of_row])
        self._chosen, self._of_row, self._keys, self.rows = chosen, of_row[rows], units, rows
        return rows

    def _hashed_units(self, written: Frame, is_csv: bool) -> Labels:
        texts = values_as_written(written, self._column, is_csv).to_pylist()
        if None in texts:
            raise InputError(
                f"With a ledger every record tells whose it is; {shown(self._column)} is missing in row "
                f"{texts.index(None) + 1} (the first record is row 1). Fill it, or drop those records."
            )
        keys = hashed_texts(self._key, "unit", map(str, texts))
        has_unit = self._plan.unit_of(self._plan.blocks[0]).column is not None
        if not has_unit and len(np.unique(keys)) < len(keys):
            raise InputError(
                f"--key names a column with one record for each value; {shown(self._column)} has some twice. "
                "If a unit has several records, name it by --unit."
            )
        return keys

    def _known_of_units(self, known: Labels, of_row: Labels, units: int) -> Labels:
        """Return a number for what is known of all rows of a unit, in whatever order they stand.

        How many rows a unit has shows only where its number does.
        """
        order = np.lexsort((known, of_row))
        known, of_row = known[order], of_row[order]
        if self._column not in self._roles.renumbered:
            other = np.append(True, (np.diff(known) != 0) | (np.diff(of_row) != 0))
            known, of_row = known[other], of_row[other]
        sums = np.zeros(units, np.int64)
        np.add.at(sums, of_row, known)
        sums[sums == ABSENT] = 1
        return sums

    def _find(self, units: Labels) -> Labels:
        """Return the place of units in the ledger; −1: they are new."""
        if not len(self._units):
            return np.full(len(units), -1)
        order = np.argsort(self._units)
        place = np.minimum(np.searchsorted(self._units[order], units), len(order) - 1)
        return np.where(self._units[order[place]] == units, order[place], -1)

    def _newcomers(self) -> Flags:
        """Return the new units that do not wait.

        Means of a column that is swapped are means of frozen lists, which newcomers do not have.
        """
        new = self._at < 0
        values, which = np.unique(self._stratum, return_inverse=True)
        enough = np.bincount(which.reshape(-1)[new], minlength=len(values)) >= self._k
        if not self._plan.blocks[0].is_swapped and self._swapped & {
            *map(str, self._roles.protected)
        }:
            enough[:] = False
        enters = new & enough[which.reshape(-1)]
        self.counts |= {"new": int(enters.sum()), "waiting": int((new & ~enters).sum())}
        return np.asarray(enters)

    @property
    def _swapped(self) -> frozenset[str]:
        """Columns whose values are swapped, in this file or before."""
        block = self._plan.blocks[0]
        now = [str(name) for name in self._roles.protected] if block.is_swapped else []
        before = [name for name, release in self._release_of.items() if release == "swap"]
        return frozenset([*now, *before])

    def _figures(self) -> _Figures:
        here = self._at >= 0
        at, groups, g = self._at[here], self._groups, len(self._merged)
        seen = self._seen_with_this_file()
        present = np.bincount(groups[at], minlength=g)
        low, high = np.full(g, np.iinfo(np.int64).max), np.full(g, np.iinfo(np.int64).min)
        np.minimum.at(low, groups[at], self._stratum[here])
        np.maximum.at(high, groups[at], self._stratum[here])
        return _Figures(
            present,
            np.bincount(groups, minlength=g) - present,
            high,
            (present > 0) & (low != high),
            rarest_of_groups(groups, seen[:, -1:], g),
            rarest_of_groups(groups, seen, g),
        )

    def _seen_with_this_file(self) -> Labels:
        """Return what is known of each unit of the ledger in each file, as if all here were released."""
        now = np.zeros(len(self._units), np.int64)
        here = self._at >= 0
        now[self._at[here]] = self._known[here]
        return np.column_stack([self._seen, now])

    def _staying(self) -> Flags:
        """Return the known units whose group is released."""
        swapped = self._plan.blocks[0].is_swapped
        is_untouched = any(name not in self._roles.strata for name in self._roles.released)
        figures, k = self._figures(), self._k
        if not (is_untouched or swapped or self._leavers == "accept"):
            self._join_groups(figures)
            figures = self._figures()
        there = (figures.present > 0) & ~figures.moved
        left = there & (figures.absent > 0)
        if not (is_untouched or swapped):
            left &= figures.joint < k
        accepted = left & (figures.present >= k) & (not swapped) & (self._leavers == "accept")
        told_apart = there & ~left & (figures.joint < k) & (figures.alone >= k)
        released = there & ~(left & ~accepted) & ~told_apart
        for name, which in (
            ("withheld_for_leavers", left & ~accepted),
            ("withheld_for_moves", figures.moved),
            ("withheld_for_known", told_apart),
            ("accepted_with_leavers", accepted),
        ):
            self.counts[name] = int(figures.present[which].sum())
        self.counts["left"] = int(figures.absent[figures.present > 0].sum())
        here = self._at >= 0
        chosen = np.zeros(len(here), bool)
        chosen[here] = released[self._groups[self._at[here]]]
        return chosen

    def _join_groups(self, figures: _Figures) -> None:
        """Let groups that some left become one, where then k or more left and k or more stayed."""
        touched = np.flatnonzero(
            (figures.present > 0)
            & ~figures.moved
            & (figures.absent > 0)
            & (figures.joint < self._k)
        )
        if not len(touched):
            return
        groups, seen = self._groups, self._seen_with_this_file()
        histories = {name: self._history(name) for name in self._release_of}
        into = joined_groups(
            touched,
            figures.stratum[touched],
            groups,
            released_places(touched, histories),
            lambda units: smallest_combination(units * 0, seen[units]) >= self._k,
        )
        self._let_join(into)
        self.counts["groups_joined"] = len(into)

    def _let_join(self, into: Mapping[int, int]) -> None:
        """Let groups be a part of others for ever; they release one value from now on."""
        if not into:
            return
        parts = np.fromiter(into, np.int64, len(into))
        wholes = np.fromiter(into.values(), np.int64, len(into))
        for name in self._release_of:
            draws = self._plan.blocks[0].draws
            lots = group_lots(self._key, name, parts) if draws else None
            self._history(name).join(parts, wholes, self._groups, lots)
        renamed = np.arange(len(self._merged))
        renamed[parts] = wholes
        self._merged[:, -1] = renamed[self._merged[:, -1]]

    def _in_large_strata(self, chosen: Flags) -> Flags:
        """Return the units of strata that have as many as the plan asks for."""
        values, which = np.unique(self._stratum, return_inverse=True)
        which = which.reshape(-1)
        small = np.bincount(which[chosen], minlength=len(values)) < self._plan.k
        waits = chosen & small[which]
        new = self._at < 0
        self.counts["new"] -= int((waits & new).sum())
        self.counts["waiting"] += int((waits & new).sum())
        self.counts["withheld_for_k"] = int((waits & ~new).sum())
        return chosen & ~waits

    # Groups.

    def freeze(self, intake: Intake) -> Intake:
        """Return the table with the weights of entry."""
        new = replace(intake, given=len(intake), suppressed=0)
        policy = new.plan.missing.policy
        # Groups of before do not keep to patterns of missing values of now: each has a value if k units do.
        if policy == "pattern" and (len(self._units) or len(self._of_row) > self._chosen.sum()):
            missing = replace(new.plan.missing, policy="fill")
            new = replace(new, plan=replace(new.plan, missing=missing))
        if intake.weights is None:
            return new
        first = np.full(len(self._at), -1)
        first[self._of_row[::-1]] = np.arange(len(self._of_row))[::-1]
        weights = np.full(len(self._at), np.nan)
        weights[first >= 0] = intake.weights[first[first >= 0]]
        if (weights[self._of_row] != intake.weights).any():
            raise InputError(
                "With a ledger all records of a unit have one weight; some units have two. Give each unit "
                "one weight, or leave the weight out."
            )
        known = (self._at >= 0) & (first >= 0)
        assert self._weights is not None or not known.any()
        if self._weights is not None:
            entry = self._weights[self._at[known]]
            self.counts["weights_of_entry"] = int((weights[known] != entry).sum())
            weights[known] = entry
        self._entry_weights = weights
        return replace(new, weights=weights[self._of_row])

    def group(self, intake: Intake, block: Block, given: PartInput, solve: Solve) -> Partition:
        """Return the groups of this file: base groups, or unions of them.

        Parameters
        ----------
        intake : the records that are released
        block, given : with k, and the coordinates
        solve : groups the records of a space, of cells that satisfy the requirements, by k and weights
        """
        n, k = len(intake), block.k or 1
        at = self._at[self._of_row]
        if (at >= 0).any() and not self._swapped:
            self._join_for_values(given.variables, at)
        new = np.flatnonzero(at < 0)
        is_first = not len(self._units) and len(np.unique(self._of_row)) == n and k == self._k
        labels = np.where(at < 0, -1, self._groups[at]) if len(self._units) else np.full(n, -1)
        required = [rule for rule in given.requirements if not whole_of(rule, Units)]
        partition: Partition | None = None
        if is_first:
            partition = solve(given.space, given.cells, given.requirements, k, None)
            labels = partition.labels.copy()
        elif len(new):
            partition, of_new = self._group_newcomers(new, required, given, solve)
            labels[new] = len(self._merged) + of_new
        self._extend(labels)
        base = canonical_labels(labels)
        unions = base
        units = np.bincount(np.unique(np.column_stack([base, self._of_row]), axis=0)[:, 0])
        if not is_first and (units.min() < k or required):
            partition = self._unions(base, units, required, block, given, solve)
            unions = partition.labels
        here = np.empty(int(base.max()) + 1, np.int64)
        here[base] = labels
        self._name_values(base, here, unions)
        if is_first and partition is not None:
            return partition
        weights = intake.relative_weights
        X = given.space.scaled
        return Partition(
            labels=unions,
            k=k,
            method=block.method if partition is None else partition.method,
            scale=block.scale,
            options=dict(block.options) if partition is None else partition.options,
            sse=sum_of_squares(X, unions, weights),
            sst=sum_of_squares(X, np.zeros(n, np.int64), weights),
            seconds=0.0 if partition is None else partition.seconds,
            weighted=weights is not None,
        )

    def _join_for_values(self, variables: Sequence[Variable], at: Labels) -> None:
        """Let groups join in which fewer than k have a value of a new column, where that loses less.

        Parameters
        ----------
        variables : the columns, of all n records
        at : (n,) unit of each in the ledger; −1: it is new
        """
        known = np.flatnonzero(at >= 0)
        histories = {name: self._history(name) for name in self._release_of}
        joined = 0
        for variable in variables:
            has_value, groups = np.zeros(len(self._units), bool), self._groups
            has_value[at[known[~variable.missing[known]]]] = True
            count = np.bincount(groups[has_value], minlength=len(self._merged))
            few = (count > 0) & (count < self._k) & ~self._history(str(variable.name)).stated
            touched = np.flatnonzero(few)
            if not len(touched):
                continue
            strata = np.zeros(len(self._merged), np.int64)
            strata[groups[at[known]]] = self._stratum[self._of_row[known]]
            into = joined_groups(
                touched,
                strata[touched],
                groups,
                released_places(touched, histories),
                partial(_have_values, has_value, self._k),
                rest_joins=False,
            )
            of_row, spaces = groups[at[known]], [space_of([v]).scaled for v in variables]
            for whole in {*into.values()}:
                parts = [part for part in into if into[part] == whole]
                rows = [known[of_row == part] for part in parts]
                before, after = (
                    sum(
                        _squares(X[members[~v.missing[members]]], self._k)
                        for X, v in zip(spaces, variables, strict=True)
                        for members in cut
                    )
                    for cut in (rows, [np.concatenate(rows)])
                )
                if after < before:
                    self._let_join(dict.fromkeys(parts, whole))
                    joined += len(parts)
        self.counts["groups_joined_for_values"] = joined

    def _group_newcomers(
        self, new: Labels, required: Sequence[Requirement], given: PartInput, solve: Solve
    ) -> tuple[Partition, Labels]:
        """Group the newcomers; return also the group of each of their records."""
        units, first, of_new = np.unique(self._of_row[new], return_index=True, return_inverse=True)
        of_new, several = of_new.reshape(-1), len(units) < len(new)
        if required and several:
            raise InputError(
                "With a ledger, units of several rows are grouped by k alone; the plan requires more. "
                "Leave require out, or give each unit one row."
            )
        cells = self._stratum[units] if several else given.cells[new[first]]
        cells = _large_cells(cells, self._stratum[units], self._k)
        rules = within(required, new[first])
        check_feasible(rules)
        X = _means(given.space.scaled[new], of_new)
        partition = solve(Space(X, "none"), cells, rules, self._k, None)
        return partition, partition.labels[of_new]

    def _unions(
        self,
        base: Labels,
        units: Labels,
        required: Sequence[Requirement],
        block: Block,
        given: PartInput,
        solve: Solve,
    ) -> Partition:
        """Find unions of base groups that satisfy the plan: each base group moves as a whole."""
        strata = self._stratum[self._of_row]
        first = np.unique(base, return_index=True)[1]
        k = block.k or 1
        of_base = np.arange(len(units))
        partition: Partition | None = None
        if units.min() < k:
            X, sizes = _means(given.space.scaled, base), np.bincount(base).astype(np.float64)
            enough = Population(units.astype(np.float64), k, str(self._column))
            cells = canonical_labels(strata[first])
            partition = solve(Space(X, "none"), cells, [enough], 1, sizes / sizes.mean())
            of_base = partition.labels
        labels = canonical_labels(of_base[base])
        whole = Partition(labels, 1, block.method, block.scale, dict(block.options), 0.0, 0.0, 0.0)
        whole = whole if partition is None else replace(partition, labels=labels)
        if not required:
            return whole
        cells = canonical_labels(strata)
        return merge_groups(replace(whole, k=1), given.space, cells, required)

    def _name_values(self, base: Labels, here: Labels, unions: Labels) -> None:
        strata = self._stratum[self._of_row]
        for name in self._roles.protected:
            self._history(str(name))
        members = Members(
            self._groups, self._entry, self._merged, self._place, here, base, unions, strata
        )
        self.values = GroupValues(
            members,
            self._histories,
            self._swapped,
            self._key,
            self._plan.k,
            self._k,
            self._plan.blocks[0].draws,
        )

    def _extend(self, labels: Labels) -> None:
        """Add the newcomers, and what is known of everybody in this file."""
        new = self._chosen & (self._at < 0)
        group_of = np.full(len(self._at), -1)
        group_of[self._of_row] = labels
        place = self._at.copy()
        place[new] = len(self._units) + np.arange(int(new.sum()))
        before = len(self._merged)
        added = np.arange(before, max(int(labels.max()) + 1, before))[:, None]
        self._merged = np.vstack([self._merged, np.repeat(added, self._merged.shape[1], axis=1)])
        self._units = np.concatenate([self._units, self._keys[new]])
        self._entry = np.concatenate([self._entry, group_of[new]])
        for history in self._histories.values():
            history.extend(len(self._units), len(self._merged))
        seen = np.zeros((len(self._units), self._seen.shape[1] + 1), np.int64)
        seen[: len(self._seen), :-1] = self._seen
        seen[place[self._chosen], -1] = self._known[self._chosen]
        self._seen, self._place = seen, place[self._of_row]
        rows = np.bincount(self._of_row, minlength=len(self._at))
        self._rows_at_entry = np.concatenate([self._rows_at_entry, rows[new]])
        if self._plan.weight is not None:
            weights = np.full(len(self._units), np.nan)
            if self._weights is not None:
                weights[: len(self._weights)] = self._weights
            weights[place[self._chosen]] = self._entry_weights[self._chosen]
            self._weights = weights

    def mean_weights(self) -> Floats | None:
        """Return for each record the mean weight of its group, over all who entered in it; None: no weights.

        Rows that are added later would make it another equation in the same weights.
        """
        if self._weights is None:
            return None
        groups, members = self._groups, self.values.members
        rows = self._rows_at_entry
        union = np.empty(len(members.here), np.int64)
        union[members.labels] = members.unions
        sums, masses = (
            np.bincount(union, np.bincount(groups, parts)[members.here])
            for parts in (rows * self._weights, rows)
        )
        return np.asarray((sums / masses)[members.unions])

    def cohorts(self, strata: Labels) -> Labels:
        """Return strata in which newcomers are apart: they share values among themselves."""
        new = self._at[self._of_row] < 0
        return np.asarray(2 * strata + new)

    def _history(self, name: str) -> ColumnHistory:
        if name not in self._histories:
            start = f"{name}/"
            arrays = {
                full.removeprefix(start): array
                for full, array in self._before.arrays.items()
                if full.startswith(start)
            }
            self._histories[name] = ColumnHistory(arrays, len(self._units), len(self._merged))
        return self._histories[name]

    # The ledger after the release.

    def note_file(self, file: Frame, is_csv: bool, order: Labels) -> None:
        """Take in what the written file shows of each unit: the class of its rows.

        Parameters
        ----------
        file : as it was read back
        is_csv : whether its values are text of a CSV file
        order : (n,) which of the released records each of its rows is
        """
        block, weight = self._plan.blocks[0], self._plan.weight
        self._classes_by = [
            str(name)
            for name in (
                *(() if block.is_swapped else self._roles.protected),
                *self._roles.strata,
                *([] if weight is None or weight.release == "drop" else [weight.column]),
            )
        ]
        classes = hashed_rows(self._key, "class", file, self._classes_by, is_csv)
        shown = np.zeros(self._seen.shape, np.int64)
        shown[: len(self._shown), :-1] = self._shown
        shown[self._place[order], -1] = classes
        self._shown = shown

    @property
    def smallest(self) -> int:
        """Units in the rarest combination over all files."""
        return smallest_combination(self._groups, self._seen)

    def ledger(self, facts: Mapping[str, Any]) -> Ledger:
        """Return the ledger with this release."""
        before, plan = self._before, self._plan
        block = plan.blocks[0]
        new = {str(name): block.release for name in self._roles.protected}
        about = {
            "key": str(self._column),
            "k": self._k,
            "weight": None if plan.weight is None else str(plan.weight.column),
            "strata": [str(name) for name in self._roles.strata],
            "release": {**new, **self._release_of},
        }
        arrays = dict(before.arrays)
        arrays |= {
            "units": self._units,
            "entry": self._entry,
            "merged": self._merged,
            "seen": self._seen,
            "shown": self._shown,
            "rows": self._rows_at_entry,
        }
        if self._weights is not None:
            arrays["weights"] = self._weights
        for name, history in self._histories.items():
            arrays |= {f"{name}/{part}": array for part, array in history.arrays().items()}
        ledger = Ledger(about, list(before.releases), list(before.chain), arrays)
        self.counts |= self.values.counts
        ledger.add(
            {
                "number": len(before.releases) + 1,
                "k": plan.k,
                "kind": block.release,
                "columns": [str(name) for name in self._roles.protected],
                "classes_by": self._classes_by,
                "rounding": self.values.rounding,
                "plan": hashlib.sha256(plan.to_toml().encode()).hexdigest(),
                "counts": self.counts,
                **facts,
            }
        )
        return ledger


def _have_values(has_value: Flags, k: int, units: Labels) -> bool:
    return bool(has_value[units].sum() >= k)


def _squares(X: Floats, k: int) -> float:
    """Return what members with a value lose: their sum of squares, from 0 if the value is blanked for all."""
    centre = X.mean(axis=0) if len(X) >= k else 0.0
    return float(np.square(X - centre).sum())


def _means(X: Floats, labels: Labels) -> Floats:
    sums = np.zeros((int(labels.max()) + 1, X.shape[1]))
    np.add.at(sums, labels, X)
    return np.ascontiguousarray(sums / np.bincount(labels)[:, None])


def _large_cells(cells: Labels, strata: Labels, k: int) -> Labels:
    """Put cells of fewer than k records together with the largest of their stratum."""
    larger = np.unique(cells, return_inverse=True)[1].reshape(-1)
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        sizes = np.bincount(larger[inside], minlength=int(larger.max()) + 1)
        small = inside[sizes[larger[inside]] < k]
        larger[small] = int(np.argmax(sizes))
        if 0 < (larger[inside] == np.argmax(sizes)).sum() < k:
            larger[inside] = larger[inside[0]]
    return canonical_labels(larger)
