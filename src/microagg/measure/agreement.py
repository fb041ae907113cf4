"""Records whose group discloses their value of a confidential column.

Records of a group look alike. Someone who knows that a person is among them still learns a confidential value
if all records of the group have it, or, for numbers, if all have nearly the same. A value that at least half
of all records have is no news, nor is a number that more than a tenth have (an income of 0), so that only
records with a rarer value are counted. The rule is :func:`microagg.grouping.require.value_rules.nearness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.grouping.require.value_rules import nearness
from microagg.measure.classes import ClassSizes

Column = TypeVar("Column")


def telling_apart(known: Sequence[Column], below_k: float) -> Sequence[Column]:
    """Return the known columns by which an attacker tells the records of a group apart.

    ``below_k`` is the number, or share, of records below k with these columns. Where there are some, records
    are found by the columns, whatever their group discloses.
    """
    return () if below_k else known


@dataclass(frozen=True)
class Agreement:
    """Records whose group discloses their value of one confidential column."""

    exact: int
    """Records in groups that agree in a value that is not common."""
    close: int
    """Further records whose group tells the number to within 5 %, which it does of fewer than half of all."""
    harmless: int
    """Records in groups that agree in a common value, which is no news."""
    of: int
    """All records."""
    disclosed: NDArray[np.bool_] | None = field(default=None, repr=False, compare=False)
    """Which records are disclosed, exactly or closely; None where they were counted in parts."""

    @classmethod
    def of_classes(cls, classes: ClassSizes) -> Agreement:
        """Return what was counted in classes, whose distinct values stand for units."""
        agrees, common = classes.units == 1, classes.common != 0
        exact, harmless = agrees & ~common, agrees & common
        records = classes.records * classes.classes
        return cls(int(records[exact].sum()), 0, int(records[harmless].sum()), classes.n_records)

    @property
    def records(self) -> int:
        """Records that are disclosed."""
        return self.exact + self.close


def agreement(codes: Labels, own: Labels, numbers: Floats | None = None) -> Agreement:
    """Count the records whose group discloses their value of a column.

    ``codes`` numbers the distinct values, missing being one of them; ``own`` is the group of each record, 0,
    1, …; ``numbers`` are the values, NaN where missing, if near values tell nearly as much as equal ones.

    >>> found = agreement(np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 2, 2]))
    >>> found.exact, found.harmless
    (0, 4)
    """
    n, groups = len(codes), int(own.max()) + 1
    low, high = np.full(groups, n), np.full(groups, -1)
    np.minimum.at(low, own, codes)
    np.maximum.at(high, own, codes)
    agrees = (low == high)[own]
    values, near = nearness(codes, numbers)
    reach, value = near[codes], values[codes]
    exact, harmless = agrees & (reach >= 0), agrees & (reach < 0)
    below, above = value - values[low[own]], values[high[own]] - value
    close = ~agrees & (below <= reach) & (above <= reach)
    return Agreement(
        exact=int(exact.sum()),
        close=int(close.sum()),
        harmless=int(harmless.sum()),
        of=n,
        disclosed=exact | close,
    )


def disclosed_share(found: Iterable[Agreement]) -> float:
    """Return the share of records for which a group discloses some confidential column.

    Where it is not known which records these are, the share is at most the result.
    """
    every = list(found)
    if not every:
        return 0.0
    masks = [agreement.disclosed for agreement in every if agreement.disclosed is not None]
    if len(masks) == len(every):
        return float(np.logical_or.reduce(masks).mean())
    return min(1.0, sum(agreement.records for agreement in every) / every[0].of)
