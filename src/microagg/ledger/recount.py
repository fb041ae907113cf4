"""What the files of a ledger say together, counted anew from the ledger and from the values in the files.

A file is read and compared with what the ledger says of it: its classes are unions of the base groups of the
time, and its numbers are the means that the equations state. Then base groups tell units apart at least as
finely as the files do, and whatever follows from the numbers of the files follows from the equations. These
are counted and solved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.ledger.base_groups import NO_EQUATION, equations_of
from microagg.ledger.equations import gives_few_away
from microagg.ledger.hashing import hashed_rows
from microagg.ledger.ledger_file import Ledger
from microagg.tables.frame import Frame

ABSENT = 0  # in place of what is known of a unit that is not in a file


class Recount(NamedTuple):
    """What was counted over all files of a ledger."""

    units: int
    groups: int
    smallest: int  # units in the rarest combination of groups, strata, known columns and presence
    solved: int  # groups of which a sum over fewer than k units follows from the numbers released
    sums: bool  # whether means were released, so that there is something to solve
    k: int

    @property
    def holds(self) -> bool:
        """Whether nothing is below k."""
        return self.smallest >= self.k and not self.solved


def recount(ledger: Ledger) -> Recount:
    """Count combinations over all files of a ledger with a release, and solve all groups' equations."""
    arrays, k = ledger.arrays, int(ledger.about["k"])
    entry, merged, seen = arrays["entry"], arrays["merged"], arrays["seen"]
    groups = merged[entry, -1]
    order = np.argsort(groups, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    solved: set[int] = set()
    means = [name for name, release in ledger.about["release"].items() if release != "swap"]
    for name in means:
        equations, numbers = arrays[f"{name}/equations"], arrays[f"{name}/numbers"]
        for number, units in enumerate(members):
            there = equations_of(equations[units], merged[entry[units]][:, numbers - 1])
            if there.shape[1] and gives_few_away(there, k):
                solved.add(number)
    units, smallest = (seen != ABSENT).any(axis=1).sum(), smallest_combination(groups, seen)
    return Recount(int(units), len(members), smallest, len(solved), bool(means), k)


def smallest_combination(groups: Labels, seen: Labels) -> int:
    """Count the units in the rarest combination of base group, known columns and presence over all files.

    ``seen`` (units, files) has what is known of each unit in each file; 0: it is not in it.
    """
    there = np.isin(groups, groups[(seen != ABSENT).any(axis=1)])
    codes = _combinations(groups[there], seen[there])
    return int(np.bincount(codes).min(initial=len(groups)))


def rarest_of_groups(groups: Labels, seen: Labels, count: int) -> Labels:
    """Return the units in each group's rarest combination; groups without units have many."""
    codes = _combinations(groups, seen)
    rarest = np.full(count, len(codes) + 1)
    np.minimum.at(rarest, groups, np.bincount(codes)[codes])
    return rarest


def _combinations(groups: Labels, seen: Labels) -> Labels:
    codes = np.unique(groups, return_inverse=True)[1].reshape(-1)
    for column in seen.T:
        values, which = np.unique(column, return_inverse=True)
        codes = np.unique(codes * len(values) + which.reshape(-1), return_inverse=True)[1]
        codes = codes.reshape(-1)
    return codes


def faults_of_file(
    ledger: Ledger, key: bytes, number: int, as_written: Frame, values: Frame, is_csv: bool
) -> list[str]:
    """Compare the values in a file with what the ledger says of it.

    Parameters
    ----------
    ledger, key : with the release
    number : of the release
    as_written : the file, with its values as they are written
    values : the same with numbers
    is_csv : whether values as written are text of a CSV file

    Returns
    -------
    list of str
        What is wrong; none: every class of the file is a union of base groups, holds at least k units, and
        has the numbers that the ledger's equations state.
    """
    facts = ledger.releases[number - 1]
    classes = hashed_rows(key, "class", as_written, facts["classes_by"], is_csv)
    in_file, rows = np.unique(classes, return_counts=True)
    shown = ledger.arrays["shown"][:, number - 1]
    groups = ledger.arrays["merged"][ledger.arrays["entry"], number - 1]
    present = np.flatnonzero(shown != ABSENT)
    in_ledger, of_unit, units = np.unique(shown[present], return_inverse=True, return_counts=True)
    if not np.array_equal(in_file, in_ledger) or (rows < units).any():
        return ["its classes are not those that the ledger has"]
    faults = []
    few = int((units < facts["k"]).sum())
    if few:
        classes_below = plural(few, "class", "classes")
        faults.append(f"{classes_below} hold less than {plural(facts['k'], 'unit')}")
    class_of = np.full(len(ledger.arrays["merged"]), -1)
    class_of[groups[present]] = of_unit.reshape(-1)
    if facts["kind"] != "swap" and (class_of[groups[present]] != of_unit.reshape(-1)).any():
        faults.append("a base group lies in several classes")
    row_of_class = np.full(len(in_file), -1)
    row_of_class[np.searchsorted(in_file, classes)] = np.arange(len(classes))
    for name in facts["rounding"]:
        column = values.arrow_column(name)
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            continue
        released = np.asarray(column.cast(pa.float64()).take(row_of_class).to_numpy())
        stated = _stated_means(ledger, name, number, class_of[groups])
        rounding = max(before["rounding"].get(name, 0.0) for before in ledger.releases[:number])
        off = ~np.isclose(released, stated, rtol=1e-9, atol=2.01 * rounding, equal_nan=True)
        if off.any():
            words = plural(int(off.sum()), "number")
            faults.append(f"{words} of {name} are not the means that the ledger states")
    return faults


def _stated_means(ledger: Ledger, name: str, number: int, class_of: Labels) -> Floats:
    """Return the mean of each class by the last equations of its groups, up to some release.

    ``class_of`` (units,) counts a unit also if it has left; −1: none of its group is in the file.
    """
    equations = ledger.arrays[f"{name}/equations"]
    last = np.full(len(equations), NO_EQUATION, np.int64)
    for column, stated_in in zip(equations.T, ledger.arrays[f"{name}/numbers"], strict=True):
        if stated_in <= number:
            last = np.where(column == NO_EQUATION, last, column)
    at = np.flatnonzero((class_of >= 0) & (last >= 0))
    sums, masses = (
        np.bincount(class_of[at], ledger.arrays[f"{name}/{part}"][at, last[at]], class_of.max() + 1)
        for part in ("sums", "masses")
    )
    means = np.full(len(sums), np.nan)
    np.divide(sums, masses, out=means, where=masses > 0)
    return means
