"""The kinds of requirements, and the arrays that kernels read them from; without loading any kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# Kinds of requirements.
DISTINCT, ENTROPY, ORDERED, EQUAL, P_PERCENT, LARGEST, POPULATION, RISK, HIDDEN = range(9)

# Shortages below this are rounding: a group right at a threshold satisfies it.
TOLERANCE = 1e-12


# What stands in a row of the rules.
KIND, LEVEL, EXTRA, FIRST, CODES = range(5)


class Demands(NamedTuple):
    """All requirements of a table, one a row.

    Few arrays, since kernels hand them on in their innermost loops.
    """

    rule: Any  # (requirements, 5) kind; what is asked; n of (n, k); where in the table its
    # codes begin; how many there are, 0 for requirements that do not look at the whole table
    table: Any  # (entries, 2) share of each code in the whole table, for ordered closeness of all
    # up to it; and the sum of the shares of the codes before. For hidden values the number of each code,
    # then how near others must be to give it away
    codes: Any  # (requirements, n) from 0 up; for ordered closeness the rank of the value
    amounts: Any  # (requirements, n) what a record adds to the tally of its code


def no_demands(n: int) -> Demands:
    """Return demands on n records that ask for nothing; the caller's."""
    return Demands(np.zeros((0, 5)), np.zeros((0, 2)), np.zeros((0, n), np.intp), np.zeros((0, n)))
