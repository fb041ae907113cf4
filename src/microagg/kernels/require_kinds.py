"""The kinds of requirements, and the arrays that kernels read them from; without loading any kernel."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = [
    "DISTINCT",
    "ENTROPY",
    "EQUAL",
    "LARGEST",
    "ORDERED",
    "POPULATION",
    "P_PERCENT",
    "RECURSIVE",
    "RISK",
    "TOLERANCE",
    "Demands",
]

# Kinds of requirements.
DISTINCT, ENTROPY, RECURSIVE, ORDERED, EQUAL, P_PERCENT, LARGEST, POPULATION, RISK = range(9)

# Shortages below this are rounding: a group right at a threshold satisfies it.
TOLERANCE = 1e-12


class Demands(NamedTuple):
    """All requirements of a table, one a row."""

    kind: Any  # (requirements,)
    level: Any  # (requirements,) what is asked
    extra: Any  # (requirements,) a second number: l of (c, l), n of (n, k)
    codes: Any  # (requirements, n) from 0 up; for ordered closeness the rank of the value
    amounts: Any  # (requirements, n) what a record adds to the tally of its code
    first: Any  # (requirements + 1,) where in the two tables the entries of a requirement begin
    share: Any  # (entries,) of each code in the whole table; for ordered closeness of all up to it
    before: Any  # (entries,) sum of the shares of the codes before
