"""A release that has others before it: its groups, and the ledger afterwards.

Base groups are made once, when a unit first enters, and never change. So the way of a table is

choose   Which records are released, see :mod:`microagg.ledger.choosing`.
group    Newcomers form groups among themselves; everybody else is in the group of entry. Where the plan asks
         for more units than base groups have, groups of the file are unions of them.
settle   :mod:`microagg.ledger.settle` has the values that groups release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.algorithms.result import Partition
from microagg.base.typing import Floats, Labels
from microagg.encode.space import Space
from microagg.errors import InputError
from microagg.grouping.group_table import merge_groups
from microagg.grouping.read_table import Intake, PartInput
from microagg.grouping.require.amount_rules import Population
from microagg.grouping.require.from_plan import whole_of, within
from microagg.grouping.require.requirement import Requirement, check_feasible
from microagg.grouping.require.value_rules import Units
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.ledger.base_groups import BaseGroups
from microagg.ledger.choosing import FileUnits
from microagg.ledger.hashing import hashed_rows
from microagg.ledger.joining import Information, Joining, join_for_values, joined_for_leavers
from microagg.ledger.ledger_file import Ledger
from microagg.ledger.recount import smallest_combination
from microagg.ledger.settle import GroupValues
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

Solve = Callable[[Space, Labels, Sequence[Requirement], int, Floats | None], Partition]


class Carrying:
    """One release of a ledger on its way; the ledger that is given stays as it is."""

    values: GroupValues
    rows: Labels  # records that are released, ascending
    counts: dict[str, int]  # what becomes of whom; for the board

    def __init__(self, ledger: Ledger, key: bytes, column: Any = None, leavers: str = "withhold"):
        self._ledger, self._column, self._leavers = ledger, column, leavers
        self._base = BaseGroups(ledger, key)
        self.joining: dict[str, Joining] = {}
        """What groups that became one lose, and those that could have, by the names of their counts."""

    def choose(self, table: Frame, text: pa.Table | None, plan: Plan) -> Labels:
        """Return the rows that are released, ascending; for parameters see :class:`.FileUnits`."""
        self._units = units = FileUnits(
            table, text, plan, self._base, self._ledger.about, self._column, self._leavers
        )
        self.counts, self.rows = units.counts, units.rows
        return self.rows

    def freeze(self, intake: Intake) -> Intake:
        """Return the table with the weights of entry."""
        new = replace(intake, given=len(intake), suppressed=0)
        policy = new.plan.missing.policy
        # Groups of before do not keep to patterns of missing values of now: each has a value if k units do.
        if policy == "pattern" and (len(self._base.units) or self._units.have_several_rows):
            missing = replace(new.plan.missing, policy="fill")
            new = replace(new, plan=replace(new.plan, missing=missing))
        if intake.weights is None:
            return new
        units, of_row = self._units, self._units.of_row
        weights = np.full(len(units.keys), np.nan)
        weights[of_row] = intake.weights
        if (weights[of_row] != intake.weights).any():
            raise InputError(
                "With a ledger all records of a unit have one weight; some units have two. Give each unit "
                "one weight, or leave the weight out."
            )
        known = (units.at >= 0) & units.released
        if known.any():
            assert self._base.weights is not None  # all releases have a weight, or none
            entry = self._base.weights[units.at[known]]
            self.counts["weights_of_entry"] = int((weights[known] != entry).sum())
            weights[known] = entry
        self._entry_weights = weights
        return replace(new, weights=weights[of_row])

    def group(self, intake: Intake, block: Block, given: PartInput, solve: Solve) -> Partition:
        """Return the groups of this file: base groups, or unions of them.

        Parameters
        ----------
        intake : the records that are released
        block, given : with k, and the coordinates
        solve : groups the records of a space, of cells that satisfy the requirements, by k and weights
        """
        file, ledger = self._units, self._base
        n, k = len(intake), block.k or 1
        at, strata = file.at[file.of_row], file.stratum[file.of_row]
        if (at >= 0).any():
            information = Information(given.variables)
            self.joining = {"groups_joined": joined_for_leavers(ledger, information, at, file.k)}
            if not file.swapped:
                self.joining |= join_for_values(
                    ledger, information, given.variables, at, strata, file.k, block.draws
                )
            self.counts |= {name: joining.groups for name, joining in self.joining.items()}
        new = np.flatnonzero(at < 0)
        is_first = not len(ledger.units) and not file.have_several_rows and k == file.k
        labels = np.where(at < 0, -1, ledger.of_units[at]) if len(ledger.units) else at.copy()
        required = [rule for rule in given.requirements if not whole_of(rule, Units)]
        partition: Partition | None = None
        if is_first:
            partition = solve(given.space, given.cells, given.requirements, k, None)
            labels = partition.labels.copy()
        elif len(new):
            partition, of_new = self._group_newcomers(new, required, given, solve)
            labels[new] = len(ledger) + of_new
        place = self._enter(labels)
        base = canonical_labels(labels)
        unions = base
        units = np.bincount(np.unique(np.column_stack([base, file.of_row]), axis=0)[:, 0])
        if not is_first and (units.min() < k or required):
            partition = self._unions(base, units, required, block, given, solve)
            unions = partition.labels
        here = np.empty(int(base.max()) + 1, np.int64)
        here[base] = labels
        self.values = GroupValues(ledger, place, here, base, unions, strata, intake.weights, file)
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

    def _group_newcomers(
        self, new: Labels, required: Sequence[Requirement], given: PartInput, solve: Solve
    ) -> tuple[Partition, Labels]:
        """Group the newcomers; return also the group of each of their records."""
        file = self._units
        units, first, of_new = np.unique(file.of_row[new], return_index=True, return_inverse=True)
        of_new, several = of_new.reshape(-1), len(units) < len(new)
        if required and several:
            raise InputError(
                "With a ledger, units of several rows are grouped by k alone; the plan requires more. "
                "Leave require out, or give each unit one row."
            )
        cells = file.stratum[units] if several else given.cells[new[first]]
        cells = _large_cells(cells, file.stratum[units], file.k)
        rules = within(required, new[first])
        check_feasible(rules)
        X = _means(given.space.scaled[new], of_new)
        partition = solve(Space(X, "none"), cells, rules, file.k, None)
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
        strata = self._units.stratum[self._units.of_row]
        k, options = block.k or 1, dict(block.options)
        partition = Partition(base, 1, block.method, block.scale, options, 0.0, 0.0, 0.0)
        if units.min() < k:
            X, sizes = _means(given.space.scaled, base), np.bincount(base).astype(np.float64)
            enough = Population(units.astype(np.float64), k, str(self._units.column))
            cells = canonical_labels(strata[np.unique(base, return_index=True)[1]])
            partition = solve(Space(X, "none"), cells, [enough], 1, sizes / sizes.mean())
            partition = replace(partition, labels=canonical_labels(partition.labels[base]))
        if not required:
            return partition
        cells = canonical_labels(strata)
        return merge_groups(replace(partition, k=1), given.space, cells, required)

    def _enter(self, labels: Labels) -> Labels:
        """Add the newcomers, and what is known of everybody in this file; return the unit of each record."""
        file, base = self._units, self._base
        new = file.released & (file.at < 0)
        group_of = np.full(len(file.at), -1)
        group_of[file.of_row] = labels
        place = file.at.copy()
        place[new] = base.enter(file.keys[new], group_of[new], file.rows_of_units[new])
        there, seen = place[file.released], np.zeros(len(base.units), np.int64)
        seen[there] = file.known[file.released]
        base.seen = np.column_stack([base.seen, seen])
        if file.plan.weight is not None:
            weights = np.full(len(base.units), np.nan)
            if base.weights is not None:
                weights[: len(base.weights)] = base.weights
            weights[there] = self._entry_weights[file.released]
            base.weights = weights
        return np.asarray(place[file.of_row])

    def mean_weights(self) -> Floats | None:
        """Return for each record the mean weight of its group, over all who entered in it; None: no weights.

        Rows that are added later would make it another equation in the same weights.
        """
        base, values = self._base, self.values
        if base.weights is None:
            return None
        union = np.empty(len(values.here), np.int64)
        union[values.labels] = values.unions
        sums, masses = (
            np.bincount(union, np.bincount(base.of_units, parts)[values.here])
            for parts in (base.rows * base.weights, base.rows)
        )
        return np.asarray((sums / masses)[values.unions])

    def cohorts(self, strata: Labels) -> Labels:
        """Return ``strata`` in which newcomers are apart: they share values among themselves."""
        return np.asarray(2 * strata + (self._units.at[self._units.of_row] < 0))

    # The ledger after the release.

    @property
    def smallest(self) -> int:
        """Units in the rarest combination over all files."""
        return smallest_combination(self._base.of_units, self._base.seen)

    def ledger(
        self, written: Frame, is_csv: bool, order: Labels, facts: Mapping[str, Any]
    ) -> Ledger:
        """Return the ledger with this release.

        Parameters
        ----------
        written : the file as it was read back: what it shows of each unit is the class of its rows
        is_csv : whether its values are text of a CSV file
        order : (n,) which of the released records each of its rows is
        facts : more of them that are in the open
        """
        before, file = self._ledger, self._units
        plan, protected = file.plan, [str(name) for name in file.roles.protected]
        kind, strata = plan.blocks[0].release, [str(name) for name in file.roles.strata]
        classes_by = [*([] if plan.is_swapped else protected), *strata]
        if plan.weight is not None and plan.weight.release != "drop":
            classes_by.append(str(plan.weight.column))
        about = {
            "key": str(file.column),
            "k": file.k,
            "weight": None if plan.weight is None else str(plan.weight.column),
            "strata": strata,
            "release": {**dict.fromkeys(protected, kind), **self._base.release_of},
        }
        arrays = self._base.arrays()
        shown = np.zeros(self._base.seen.shape, np.int64)
        if before.releases:
            shown[: len(arrays["shown"]), :-1] = arrays["shown"]
        classes = hashed_rows(self._base.key, "class", written, classes_by, is_csv)
        shown[self.values.place[order], -1] = classes
        arrays["shown"] = shown
        ledger = Ledger(about, list(before.releases), list(before.chain), arrays)
        self.counts |= self.values.counts
        ledger.add(
            {
                "number": len(before.releases) + 1,
                "k": plan.k,
                "kind": kind,
                "columns": protected,
                "classes_by": classes_by,
                "rounding": self.values.rounding,
                "plan": hashlib.sha256(plan.to_toml().encode()).hexdigest(),
                "counts": self.counts,
                **facts,
            }
        )
        return ledger


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
