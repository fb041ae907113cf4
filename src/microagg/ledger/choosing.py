"""Who is in a release that has others before it.

Newcomers of a stratum with fewer than k of them wait. Base groups that some members left become one for ever
where then k or more left and k or more stayed; otherwise they are withheld, as are groups that lie in two
strata, and those of which what is known, over all files, would tell fewer than k members apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.base.formatting import plural
from microagg.base.typing import Labels
from microagg.errors import InputError, shown
from microagg.kernels.labels import canonical_labels
from microagg.ledger.base_groups import BaseGroups, Flags
from microagg.ledger.checks import check_supported
from microagg.ledger.hashing import hashed_rows, hashed_texts
from microagg.ledger.joining import joined_groups
from microagg.ledger.recount import ABSENT, rarest_of_groups, smallest_combination
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame, values_as_written


class FileUnits:
    """The units of a table, and which of them are released; groups that some left may become one."""

    def __init__(
        self,
        table: Frame,
        text: pa.Table | None,
        plan: Plan,
        base: BaseGroups,
        about: Mapping[str, Any],
        named: Any,
        leavers: str,
    ) -> None:
        """Choose from ``table`` as it came, whose ``text`` is that of a CSV file, by a plan with all roles.

        ``about`` is that of the ledger, empty for its first release; ``named`` the column that ``--key``
        names, or None; ``leavers`` what becomes of groups that some members left. Refused are a plan that
        asks for what a ledger does not cover, another table, and a release of nobody.
        """
        self.plan, self.roles, self.base = plan, plan.roles(table.names), base
        self._leavers, roles = leavers, self.roles
        self.counts: dict[str, int] = {}  # what becomes of whom; for the board
        self.column = check_supported(plan, roles, named, about, leavers)
        self.k = min(plan.k, about.get("k", plan.k))  # the least of all files
        written, is_csv = (table, False) if text is None else (Frame(text), True)
        hashed = self._hashed_units(written, is_csv)
        keys, first, of_row = np.unique(hashed, return_index=True, return_inverse=True)
        of_row = of_row.reshape(-1)
        self.counts["units"] = len(keys)
        self.keys: Labels = keys  # (units,) keyed hash of each
        self.rows_of_units = np.bincount(of_row, minlength=len(keys))
        if plan.is_swapped and self.rows_of_units.max() > 1:
            raise InputError(
                "Swapping with a ledger deals one row for each unit; here "
                f"{plural(int((self.rows_of_units > 1).sum()), 'unit')} have several. Release means."
            )
        self.at = base.find(keys)  # (units,) place of each in the ledger; −1: it is new
        if len(base.units) and not (self.at >= 0).any():
            raise InputError(
                f"A ledger is about one table; none of the {plural(len(keys), 'unit')} in "
                f"{shown(self.column)} is in it. Name the ledger of this table, or a new one."
            )
        stratum = canonical_labels(hashed_rows(base.key, "stratum", written, roles.strata, is_csv))
        if (stratum != stratum[first][of_row]).any():
            raise InputError(
                "With a ledger all records of a unit are in one stratum; some units have records in two. "
                "Correct them, or leave the strata out."
            )
        self.stratum: Labels = stratum[first]  # (units,) of each
        self.known = self._known_of_units(written, is_csv, of_row)
        """(units,) a number for what is known of each."""
        now = map(str, roles.protected) if plan.is_swapped else ()
        before = (name for name, release in base.release_of.items() if release == "swap")
        self.swapped = frozenset([*now, *before])
        """Columns whose values are swapped, in this file or before."""
        self.released = self._choose()
        """(units,) whether each is in the file."""
        if not self.released.any():
            words = [f"{name.replace('_', ' ')} {count:,}" for name, count in self.counts.items()]
            raise InputError(
                f"A release holds at least {plural(plan.k, 'unit')} (k); all of them wait or are withheld "
                f"({', '.join(words)}). Wait for more of them, or accept leavers: --leavers accept."
            )
        self.rows: Labels = np.flatnonzero(self.released[of_row])
        """(n,) records that are released, ascending."""
        self.of_row: Labels = of_row[self.rows]  # (n,) unit of each of them
        self.have_several_rows = bool(len(self.rows) > self.released.sum())

    def _hashed_units(self, written: Frame, is_csv: bool) -> Labels:
        texts = values_as_written(written, self.column, is_csv).to_pylist()
        if None in texts:
            raise InputError(
                f"With a ledger every record tells whose it is; {shown(self.column)} is missing in row "
                f"{texts.index(None) + 1} (the first record is row 1). Fill it, or drop those records."
            )
        keys = hashed_texts(self.base.key, "unit", map(str, texts))
        has_unit = self.plan.unit_of(self.plan.blocks[0]).column is not None
        if not has_unit and len(np.unique(keys)) < len(keys):
            raise InputError(
                f"--key names a column with one record for each value; {shown(self.column)} has some twice. "
                "If a unit has several records, name it by --unit."
            )
        return keys

    def _known_of_units(self, written: Frame, is_csv: bool, of_row: Labels) -> Labels:
        """Return a number for what is known of all rows of a unit, in whatever order they stand.

        How many rows a unit has shows only where its number does.
        """
        known = hashed_rows(self.base.key, "known", written, self.roles.known, is_csv)
        order = np.lexsort((known, of_row))
        known, of_row = known[order], of_row[order]
        if self.column not in self.roles.renumbered:
            other = np.append(True, (np.diff(known) != 0) | (np.diff(of_row) != 0))
            known, of_row = known[other], of_row[other]
        sums = np.zeros(len(self.keys), np.int64)
        np.add.at(sums, of_row, known)
        sums[sums == ABSENT] = 1
        return sums

    def _choose(self) -> Flags:
        """Return the units that are released: newcomers that do not wait, and known units whose group is."""
        new = self.at < 0
        enters = new & (self._per_stratum(new) >= self.k)
        # Means of a column that is swapped are means of frozen lists, which newcomers do not have.
        if not self.plan.is_swapped and self.swapped & {*map(str, self.roles.protected)}:
            enters[:] = False
        self.counts |= {"new": 0, "waiting": 0}
        chosen = enters | self._staying()
        # Strata must hold the k of this plan, which may be larger than the least of all files.
        released = chosen & (self._per_stratum(chosen) >= self.plan.k)
        self.counts |= {
            "new": int((new & released).sum()),
            "waiting": int((new & ~released).sum()),
            "withheld_for_k": int((chosen & ~released & ~new).sum()),
        }
        return np.asarray(released)

    def _per_stratum(self, units: Flags) -> Labels:
        """Count some units in the stratum of each unit."""
        return np.bincount(self.stratum, units).astype(np.int64)[self.stratum]

    def _staying(self) -> Flags:
        """Return the known units whose group is released."""
        plan, base, k = self.plan, self.base, self.k
        here, count = self.at >= 0, len(base)
        at = self.at[here]
        now, strata = np.zeros((2, len(base.units)), np.int64)
        now[at], strata[at] = self.known[here], self.stratum[here]
        # What is known of each unit of the ledger in each file, as if all here were released.
        seen = np.column_stack([base.seen, now])
        is_untouched = any(name not in self.roles.strata for name in self.roles.released)
        leavers_show = is_untouched or plan.is_swapped
        stratum = np.zeros(count, np.int64)
        stratum[base.of_units[at]] = strata[at]
        for may_join in (not leavers_show and self._leavers != "accept", False):
            groups = base.of_units
            present = np.bincount(groups[at], minlength=count)
            absent = np.bincount(groups, minlength=count) - present
            moved = np.bincount(groups[at], strata[at] != stratum[groups[at]], count) > 0
            joint = rarest_of_groups(groups, seen, count)
            there = (present > 0) & ~moved
            left = there & (absent > 0) & (leavers_show | (joint < k))
            if not (may_join and left.any()):
                break
            touched = np.flatnonzero(left)
            parts, wholes = joined_groups(
                base,
                touched,
                stratum[touched],
                lambda units: smallest_combination(units * 0, seen[units]) >= k,
            )
            base.join(parts, wholes, plan.blocks[0].draws)
        accepted = left & (present >= k) & (not plan.is_swapped) & (self._leavers == "accept")
        alone = rarest_of_groups(groups, seen[:, -1:], count)
        told_apart = there & ~left & (joint < k) & (alone >= k)
        for name, which in (
            ("withheld_for_leavers", left & ~accepted),
            ("withheld_for_moves", moved),
            ("withheld_for_known", told_apart),
            ("accepted_with_leavers", accepted),
        ):
            self.counts[name] = int(present[which].sum())
        self.counts["left"] = int(absent[present > 0].sum())
        released = there & ~(left & ~accepted) & ~told_apart
        chosen = np.zeros(len(here), bool)
        chosen[here] = released[groups[at]]
        return chosen
