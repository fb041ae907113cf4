"""A release that has others before it: who is in it, in which groups, and with which values.

Base groups are made once, when a unit first enters, and never change. So the way of a table is

choose   Which records are released. Newcomers of a stratum with fewer than k of them wait; a base group is
         withheld if some of its members left or moved, or if what is known about them, over all files, would
         tell fewer than k of them apart.
group    Newcomers form groups among themselves; everybody else is in the group of entry.
settle   A group in which nothing changed releases the digits that it released before. One in which something
         did releases a new value if :mod:`microagg.ledger.equations` lets it; otherwise the old one stays.
         Swapped groups have lists of values, which are frozen, and dealt afresh.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.encode.space import Space, names_of_levels
from microagg.errors import InputError, shown
from microagg.grouping.read_table import Intake, PartInput
from microagg.grouping.require.from_plan import whole_of, within
from microagg.grouping.require.requirement import Requirement, check_feasible
from microagg.grouping.require.value_rules import Units
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.ledger.checks import check_supported
from microagg.ledger.columns import ColumnHistory, Flags
from microagg.ledger.ledger_file import Ledger
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.releasing.swap import Shared
from microagg.tables.as_written import values_as_written
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable

if TYPE_CHECKING:
    import pyarrow as pa

ABSENT = 0
Solve = Callable[[Space, Labels, Sequence[Requirement]], Partition]


def smallest_combination(groups: Labels, seen: Labels) -> int:
    """Count the units in the rarest combination of base group, known columns and presence over all files.

    Parameters
    ----------
    groups : (units,) base group of each
    seen : (units, files) what is known of each in each file; 0: it is not in it
    """
    there = np.isin(groups, groups[(seen != ABSENT).any(axis=1)])
    return int(np.bincount(_combinations(groups[there], seen[there])).min(initial=len(groups)))


def _combinations(groups: Labels, seen: Labels) -> Labels:
    codes = np.unique(groups, return_inverse=True)[1].reshape(-1)
    for column in seen.T:
        values, which = np.unique(column, return_inverse=True)
        codes = np.unique(codes * len(values) + which.reshape(-1), return_inverse=True)[1]
        codes = codes.reshape(-1)
    return codes


class Carrying:
    """One release of a ledger on its way; the ledger that is given stays as it is."""

    def __init__(self, ledger: Ledger, key: bytes, column: Any = None, leavers: str = "withhold"):
        self._before, self._key, self._named, self._leavers = ledger, key, column, leavers
        arrays = ledger.arrays
        self._units = arrays.get("units", np.zeros(0, "S16"))
        self._groups: Labels = arrays.get("groups", np.zeros(0, np.int64))
        self._strata: Labels = arrays.get("strata", np.zeros(0, np.int64))
        self._seen: Labels = arrays.get("seen", np.zeros((0, len(ledger.releases)), np.int64))
        self._weights: Floats | None = arrays.get("weights")
        self._histories: dict[str, ColumnHistory] = {}
        self.counts: dict[str, int] = {}
        """What becomes of whom; for the board."""

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
        self._plan, roles = plan, plan.roles(table.names)
        self._roles = roles
        written, is_csv = (table, False) if text is None else (Frame(text), True)
        self._column = check_supported(plan, roles, self._named, self._before.about, self._leavers)
        self._k = min(plan.k, self._before.about.get("k", plan.k))
        keys = self._hashed_keys(written, is_csv)
        units, first, of_row = np.unique(keys, return_index=True, return_inverse=True)
        of_row = of_row.reshape(-1)
        rows_of_unit = np.bincount(of_row, minlength=len(units))
        if plan.blocks[0].is_swapped and rows_of_unit.max() > 1:
            raise InputError(
                "Swapping with a ledger deals one row for each unit; here "
                f"{plural(int((rows_of_unit > 1).sum()), 'unit')} have several. Release means."
            )
        self._at = at = self._find(units)
        if len(self._units) and not (at >= 0).any():
            raise InputError(
                f"A ledger is about one table; none of the {plural(len(units), 'unit')} in "
                f"{shown(self._column)} is in it. Name the ledger of this table, or a new one."
            )
        stratum = self._hashed(written, roles.strata, is_csv)
        if (stratum != stratum[first][of_row]).any():
            raise InputError(
                "With a ledger all records of a unit are in one stratum; some units have records in two. "
                "Correct them, or leave the strata out."
            )
        known = self._hashed(written, roles.known, is_csv)
        # The sum is the same in whatever order the rows of a unit stand; 0 means absent. How many rows a
        # unit has shows only where its number does.
        pairs = np.column_stack([of_row, known])
        if self._column not in roles.renumbered:
            pairs = np.unique(pairs, axis=0)
        self._known = np.zeros(len(units), np.int64)
        np.add.at(self._known, pairs[:, 0], pairs[:, 1])
        self._known[self._known == ABSENT] = 1
        stratum = stratum[first]
        chosen = self._newcomers(stratum) | self._staying(stratum)
        if not chosen.any():
            raise InputError(
                f"A release holds at least {plural(plan.k, 'unit')} (k); all of them wait or are withheld "
                f"({self._words_of_counts()}). Wait for more of them, or accept leavers: --leavers accept."
            )
        rows = np.flatnonzero(chosen[of_row])
        self._stratum = stratum
        self._chosen, self._of_row, self._keys = chosen, of_row[rows], units
        return rows

    def _words_of_counts(self) -> str:
        return ", ".join(
            f"{name.replace('_', ' ')} {count:,}" for name, count in self.counts.items()
        )

    def _find(self, units: Any) -> Labels:
        """Return the place of units in the ledger; −1: they are new."""
        if not len(self._units):
            return np.full(len(units), -1)
        order = np.argsort(self._units)
        place = np.minimum(np.searchsorted(self._units, units, sorter=order), len(order) - 1)
        found = order[place]
        return np.where(self._units[found] == units, found, -1)

    def _newcomers(self, stratum: Labels) -> Flags:
        """Return the new units that do not wait."""
        new = self._at < 0
        values, which = np.unique(stratum, return_inverse=True)
        which = which.reshape(-1)
        enough = np.bincount(which[new], minlength=len(values)) >= self._plan.k
        self.counts["new"] = int((new & enough[which]).sum())
        self.counts["waiting"] = int((new & ~enough[which]).sum())
        return np.asarray(new & enough[which])

    def _staying(self, stratum: Labels) -> Flags:
        """Return the known units whose group is released."""
        here = self._at >= 0
        at, k = self._at[here], self._k
        g = len(self._strata)
        now = np.zeros(len(self._units), np.int64)
        now[at] = self._known[here]
        present = np.bincount(self._groups[at], minlength=g)
        absent = np.bincount(self._groups, minlength=g) - present
        low, high = np.full(g, np.iinfo(np.int64).max), np.full(g, np.iinfo(np.int64).min)
        np.minimum.at(low, self._groups[at], stratum[here])
        np.maximum.at(high, self._groups[at], stratum[here])
        moved = (present > 0) & (low != high)
        alone = self._least(now[:, None])
        joint = self._least(np.column_stack([self._seen, now]))
        untouched = [name for name in self._roles.released if name not in self._roles.strata]
        swapped = self._plan.blocks[0].is_swapped
        left = (present > 0) & (absent > 0) & ~moved
        if not (untouched or swapped):
            left &= joint < k
        accepted = left & (present >= k) & (not swapped) & (self._leavers == "accept")
        told_apart = (present > 0) & ~moved & ~left & (joint < k) & (alone >= k)
        released = (present > 0) & ~moved & ~(left & ~accepted) & ~told_apart
        short = released & (present < self._plan.k)
        if short.any():
            raise InputError(
                f"Base groups are for ever: k is at most that of the ledger, {self._before.about['k']:,}; "
                f"the plan has {self._plan.k:,}. Lower k, or start the next ledger with a larger one."
            )
        for name, which in (
            ("withheld_for_leavers", left & ~accepted),
            ("withheld_for_moves", moved),
            ("withheld_for_known", told_apart),
            ("accepted_with_leavers", accepted),
        ):
            self.counts[name] = int(present[which].sum())
        self.counts["left"] = int(absent[present > 0].sum())
        self._strata = np.where(released, high, self._strata)
        chosen = np.zeros(len(here), bool)
        chosen[here] = released[self._groups[at]]
        return chosen

    def _least(self, seen: Labels) -> Labels:
        """Return for each group its rarest combination; groups that are nowhere have many."""
        codes = _combinations(self._groups, seen)
        counts = np.bincount(codes)[codes]
        found = np.full(len(self._strata), len(codes) + 1)
        np.minimum.at(found, self._groups, counts)
        return found

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
        """Group newcomers among themselves; everybody else is in the group of entry.

        ``solve`` groups the records of a space, of cells that hold at least k of them.
        """
        n, k = len(intake), block.k or 1
        at = self._at[self._of_row]
        new = np.flatnonzero(at < 0)
        whole = len(new) == n and len(np.unique(self._of_row)) == n
        found: Partition | None = None
        labels = np.where(at < 0, -1, self._groups[at]) if len(self._groups) else np.full(n, -1)
        if whole:
            found = solve(given.space, given.cells, given.requirements)
            labels = found.labels.copy()
        elif len(new):
            units, first, of_new = np.unique(
                self._of_row[new], return_index=True, return_inverse=True
            )
            of_new, several = of_new.reshape(-1), len(units) < len(new)
            required = [rule for rule in given.requirements if not whole_of(rule, Units)]
            if required and several:
                raise InputError(
                    "With a ledger, units of several rows are grouped by k alone; the plan requires more. "
                    "Leave require out, or give each unit one row."
                )
            X = np.zeros((len(units), given.space.scaled.shape[1]))
            np.add.at(X, of_new, given.space.scaled[new])
            X /= np.bincount(of_new)[:, None]
            cells = self._stratum[units] if several else given.cells[new[first]]
            cells = _large_cells(cells, self._stratum[units], k)
            rules = within(required, new[first])
            check_feasible(rules)
            found = solve(Space(np.ascontiguousarray(X), "none"), cells, rules)
            labels[new] = len(self._strata) + found.labels[of_new]
        self._extend(labels)
        canonical = canonical_labels(labels)
        self._base = np.empty(int(canonical.max()) + 1, np.int64)
        self._base[canonical] = labels
        if whole and found is not None:
            return found
        weights = intake.relative_weights
        X = given.space.scaled
        return Partition(
            labels=canonical,
            k=k,
            method=block.method if found is None else found.method,
            scale=block.scale,
            options=dict(block.options) if found is None else found.options,
            sse=sum_of_squares(X, canonical, weights),
            sst=sum_of_squares(X, np.zeros(n, np.int64), weights),
            seconds=0.0 if found is None else found.seconds,
            weighted=weights is not None,
        )

    def _extend(self, labels: Labels) -> None:
        """Add the newcomers, and what is known of everybody in this file."""
        new = self._chosen & (self._at < 0)
        group_of = np.full(len(self._at), -1)
        group_of[self._of_row] = labels
        place = self._at.copy()
        place[new] = len(self._units) + np.arange(int(new.sum()))
        strata = np.full(max(int(labels.max()) + 1, len(self._strata)), 0)
        strata[: len(self._strata)] = self._strata
        strata[group_of[new]] = self._stratum[new]
        self._strata = strata
        self._units = np.concatenate([self._units, self._keys[new]])
        self._groups = np.concatenate([self._groups, group_of[new]])
        seen = np.zeros((len(self._units), self._seen.shape[1] + 1), np.int64)
        seen[: len(self._seen), :-1] = self._seen
        seen[place[self._chosen], -1] = self._known[self._chosen]
        self._seen, self._place = seen, place[self._of_row]
        if self._plan.weight is not None:
            weights = np.full(len(self._units), np.nan)
            if self._weights is not None:
                weights[: len(self._weights)] = self._weights
            weights[place[self._chosen]] = self._entry_weights[self._chosen]
            self._weights = weights

    # Values.

    def settle(
        self,
        variables: Sequence[Variable],
        labels: Labels,
        values: Floats,
        states: Labels,
        weights: Floats | None,
    ) -> tuple[Floats, Labels]:
        """Return what groups release: the digits of before where nothing changed, or nothing may.

        Parameters
        ----------
        variables : the columns, of all n records
        labels : (n,) group of each record, as :meth:`group` gave them
        values, states : (n, columns) what the groups would release without a ledger
        weights : (n,) of entry; None: all are alike
        """
        g = len(self._strata)
        order = np.argsort(self._groups, kind="stable")
        start = np.searchsorted(self._groups[order], np.arange(g + 1))
        here = np.zeros(g, bool)
        here[self._base] = True
        refused = np.zeros(g, bool)
        steps = []
        for variable in variables:
            history = self._history(variable)
            sums, masses = self._parts(variable, weights)
            versions = history.versions_of(sums, masses)
            changed = np.zeros(g, bool)
            changed[self._groups[versions != history.last]] = True
            changed &= here & history.stated
            for group in np.flatnonzero(changed & ~refused):
                members = order[start[group] : start[group + 1]]
                refused[group] = not history.may_state(
                    members, versions[members], sums[members], self._k, not variable.is_category
                )
            has_value = np.bincount(self._groups[versions >= 0], minlength=g)
            steps.append((history, sums, masses, versions, changed, has_value))
        row = np.empty(len(self._base), np.int64)  # one of each group
        row[labels] = np.arange(len(labels))
        values, states = values.copy(), states.copy()
        renewed, kept = np.zeros(g, bool), np.zeros(g, bool)
        blanked = 0
        for j, variable in enumerate(variables):
            history, sums, masses, versions, changed, has_value = steps[j]
            first = here & ~history.stated & (has_value >= self._k)
            few = here & ~history.stated & (has_value < self._k) & (has_value > 0)
            new = first | (changed & ~refused)
            old = here & history.stated & ~new
            renewed |= changed & ~refused
            kept |= changed & refused
            blanked += int((few & here).sum())
            history.state(new[self._groups], versions, sums, masses)
            was_old = old[self._base]
            at = self._base[was_old]
            number = self._values_of(variable, history, history.released[at], history.origin[at])
            of_groups, of_states = values[row, j], states[row, j]
            of_groups[was_old], of_states[was_old] = number, np.isnan(number)
            is_few = few[self._base]
            of_groups[is_few], of_states[is_few] = np.nan, 1
            values[:, j], states[:, j] = of_groups[labels], of_states[labels]
            is_new = new[self._base]
            at = self._base[is_new]
            history.released[at] = self._numbers_of(variable, history, of_groups[is_new])
            history.origin[at], history.stated[at] = variable.origin, True
        self.counts |= {
            "groups": int(here.sum()),
            "groups_renewed": int(renewed.sum()),
            "groups_kept": int(kept.sum()),
            "columns_blanked": blanked,
        }
        return values, states

    def share(self, variables: Sequence[Variable], labels: Labels, shared: Shared) -> Shared:
        """Return what is dealt in swapped groups: the frozen lists, and those of new groups and columns.

        Parameters
        ----------
        variables : the columns, of all n records
        labels : (n,) group of each record, as :meth:`group` gave them
        shared : what would be dealt without a ledger
        """
        values, states = shared.values.copy(), shared.states.copy()
        order = np.lexsort((self._place, self._base[labels]))
        place = np.argsort(self._groups, kind="stable")  # lists are in the order of groups
        place = place[np.isin(self._groups[place], self._base)]
        assert (self._groups[place] == self._base[labels][order]).all()
        kept = np.zeros(len(self._strata), bool)
        for j, variable in enumerate(variables):
            history = self._history(variable)
            old = history.stated[self._base[labels][order]]
            number = history.lists[place[old]]
            origin = history.origin[self._base[labels][order][old]]
            frozen = self._values_of(variable, history, number, origin)
            if (np.isnan(frozen) & ~np.isnan(number)).any():
                raise InputError(
                    "Swapped lists are frozen; a category that one of them holds occurs no more in "
                    f"{shown(variable.name)}. Keep a record with it, or leave the column out."
                )
            values[order[old], j], states[order[old], j] = frozen, np.isnan(frozen)
            new = order[~old]
            by_value = new[np.lexsort((values[new, j], self._base[labels[new]]))]
            history.lists[place[~old]] = self._numbers_of(variable, history, values[by_value, j])
            groups = np.unique(self._base[labels[new]])
            history.stated[groups], history.origin[groups] = True, variable.origin
            sums, masses = self._parts(variable, None)
            versions = history.versions_of(sums, masses)
            kept[self._groups[(versions != history.last) & (history.last >= 0)]] = True
            history.state(np.isin(self._groups, groups), versions, sums, masses)
        self._check_shared(variables, values)
        here = np.zeros(len(self._strata), bool)
        here[self._base] = True
        self.counts |= {"groups": int(here.sum()), "groups_kept": int((kept & here).sum())}
        return Shared(values, states)

    def _check_shared(self, variables: Sequence[Variable], values: Floats) -> None:
        """Refuse lists whose values stand for fewer than k units, since other groups are withheld."""
        for j, variable in enumerate(variables):
            pairs = np.column_stack([self._stratum[self._of_row], values[:, j].view(np.int64)])
            counts = np.unique(pairs, axis=0, return_counts=True)[1]
            if counts.min() < self._plan.k:
                raise InputError(
                    f"Swapped values stand for at least {plural(self._plan.k, 'unit')} of a stratum; without "
                    f"the groups that are withheld, {plural(int((counts < self._plan.k).sum()), 'value')} of "
                    f"{shown(variable.name)} would stand for fewer. Release the table with all members of "
                    "these groups, or means with a ledger of their own."
                )

    def cohorts(self, strata: Labels) -> Labels:
        """Return strata in which newcomers are apart: they share values among themselves."""
        new = self._at[self._of_row] < 0
        return np.asarray(2 * strata + new)

    def _history(self, variable: Variable) -> ColumnHistory:
        name = str(variable.name)
        if name not in self._histories:
            start = f"{name}/"
            there = {
                full.removeprefix(start): array
                for full, array in self._before.arrays.items()
                if full.startswith(start)
            }
            self._histories[name] = ColumnHistory(there, len(self._units), len(self._strata))
        return self._histories[name]

    def _parts(self, variable: Variable, weights: Floats | None) -> tuple[Floats, Floats]:
        """Return what each unit adds to the sum of its group, and with which weight; NaN: nothing."""
        numbers = variable.values + (variable.origin if variable.kind == "date" else 0)
        if variable.is_category:
            codes = [
                float(int.from_bytes(self._digest(f"{variable.name}\0{level}")[:5]))
                for level in variable.levels
            ]
            levels = variable.level_numbers
            numbers = np.where(levels < 0, np.nan, np.append(codes, np.nan)[levels])
        there = np.flatnonzero(~np.isnan(numbers))
        mass = np.ones(len(there)) if weights is None else weights[there]
        # In ascending order, so that the sum does not depend on the order of the file.
        order = np.lexsort((mass, numbers[there], self._place[there]))
        at = self._place[there][order]
        sums, masses = np.full(len(self._units), np.nan), np.full(len(self._units), np.nan)
        if len(at):
            first = np.flatnonzero(np.append(True, np.diff(at) != 0))
            sums[at[first]] = np.add.reduceat((mass * numbers[there])[order], first)
            masses[at[first]] = np.add.reduceat(mass[order], first)
        return sums, masses

    def _numbers_of(self, variable: Variable, history: ColumnHistory, values: Floats) -> Floats:
        """Return released values as the ledger holds them."""
        if not variable.is_category:
            return values
        names = names_of_levels(variable)
        used = {int(value) for value in np.unique(values[~np.isnan(values)])}
        number = {level: history.number_of_text(str(names[level])) for level in sorted(used)}
        return np.array([np.nan if np.isnan(v) else number[int(v)] for v in values], np.float64)

    def _values_of(
        self, variable: Variable, history: ColumnHistory, numbers: Floats, origin: Labels
    ) -> Floats:
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

    # Hashes.

    def _digest(self, text: str) -> bytes:
        return hmac.digest(self._key, text.encode("utf-8", "surrogatepass"), "sha256")

    def _hashed_keys(self, written: Frame, is_csv: bool) -> Any:
        values = values_as_written(written, self._column, is_csv)
        texts = values.to_pylist()
        if None in texts:
            raise InputError(
                f"With a ledger every record tells whose it is; {shown(self._column)} is missing in row "
                f"{texts.index(None) + 1} (the first record is row 1). Fill it, or drop those records."
            )
        found = np.array([self._digest(f"unit\0{text}")[:16] for text in texts], "S16")
        if self._plan.unit_of(self._plan.blocks[0]).column is None and len(np.unique(found)) < len(
            found
        ):
            raise InputError(
                f"--key names a column with one record for each value; {shown(self._column)} has some twice. "
                "If a unit has several records, name it by --unit."
            )
        return found

    def _hashed(self, written: Frame, names: Sequence[Any], is_csv: bool) -> Labels:
        """Return a number for the values of each record in some columns."""
        codes = np.zeros(len(written), np.int64)
        texts: list[str] = [""]
        for name in names:
            column = values_as_written(written, name, is_csv).to_pylist()
            distinct: dict[Any, int] = {}
            own = np.array([distinct.setdefault(str(value), len(distinct)) for value in column])
            both = codes * len(distinct) + own
            pairs, first, codes = np.unique(both, return_index=True, return_inverse=True)
            codes = codes.reshape(-1)
            before, spelled = pairs // len(distinct), list(distinct)
            texts = [
                f"{texts[b]}\0{name}\0{spelled[o]}"
                for b, o in zip(before.tolist(), own[first].tolist(), strict=True)
            ]
        numbers = [int.from_bytes(self._digest(f"known{text}")[:7]) + 1 for text in texts]
        return np.array(numbers, np.int64)[codes]

    # The ledger after the release.

    @property
    def smallest(self) -> int:
        """Units in the rarest combination over all files."""
        return smallest_combination(self._groups, self._seen)

    def ledger(self, facts: Mapping[str, Any]) -> Ledger:
        """Return the ledger with this release."""
        before, plan = self._before, self._plan
        block = plan.blocks[0]
        about = {
            "key": str(self._column),
            "k": self._k,
            "weight": None if plan.weight is None else str(plan.weight.column),
            "strata": [str(name) for name in self._roles.strata],
            "release": {
                **before.about.get("release", {}),
                **dict.fromkeys(self._histories, block.release),
            },
        }
        arrays = dict(before.arrays)
        arrays |= {
            "units": self._units,
            "groups": self._groups,
            "strata": self._strata,
            "seen": self._seen,
        }
        if self._weights is not None:
            arrays["weights"] = self._weights
        for name, history in self._histories.items():
            arrays |= {f"{name}/{part}": array for part, array in history.arrays().items()}
        new = Ledger(about, list(before.releases), list(before.chain), arrays)
        new.add(
            {
                "number": len(before.releases) + 1,
                "k": plan.k,
                "kind": block.release,
                "columns": [str(name) for name in self._roles.protected],
                "plan": hashlib.sha256(plan.to_toml().encode()).hexdigest(),
                "counts": self.counts,
                **facts,
            }
        )
        return new


def _large_cells(cells: Labels, strata: Labels, k: int) -> Labels:
    """Put cells of fewer than k records together with the largest of their stratum."""
    found = np.unique(cells, return_inverse=True)[1].reshape(-1)
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        sizes = np.bincount(found[inside], minlength=int(found.max()) + 1)
        small = inside[sizes[found[inside]] < k]
        found[small] = int(np.argmax(sizes))
        if 0 < (found[inside] == np.argmax(sizes)).sum() < k:
            found[inside] = found[inside[0]]
    return canonical_labels(found)
