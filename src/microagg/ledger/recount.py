"""What the files of a ledger say together, counted anew from the ledger."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from microagg.ledger.columns import equations_of
from microagg.ledger.combinations import ABSENT, smallest_combination
from microagg.ledger.equations import gives_few_away
from microagg.ledger.ledger_file import Ledger


class Recount(NamedTuple):
    """What was counted over all files of a ledger."""

    units: int
    groups: int
    smallest: int
    """Units in the rarest combination of groups, strata, known columns and presence."""
    solved: int
    """Groups of which a sum over fewer than k units follows from the numbers released."""
    sums: bool
    """Whether means were released, so that there is something to solve."""
    k: int

    @property
    def holds(self) -> bool:
        """Whether nothing is below k."""
        return self.smallest >= self.k and not self.solved


def recount(ledger: Ledger) -> Recount:
    """Count combinations over all files, and solve the equations of every base group.

    Parameters
    ----------
    ledger : with at least one release
    """
    arrays, k = ledger.arrays, int(ledger.about["k"])
    entry, merged = arrays["entry"], arrays["merged"]
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
    seen = arrays["seen"]
    return Recount(
        units=int((seen != ABSENT).any(axis=1).sum()),
        groups=len(members),
        smallest=smallest_combination(groups, seen),
        solved=len(solved),
        sums=bool(means),
        k=k,
    )
