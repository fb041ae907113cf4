"""Records whose group discloses their value of a confidential column.

Records of a group look alike. Someone who knows that a person is among them still learns a confidential value
if all records of the group have it, or, for numbers, if all have nearly the same. A value that at least half
of all records have is no news, so that only records with a rarer value are counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import group_sizes
from microagg.measure.classes import ClassSizes

WITHIN = 0.05
"""A number is disclosed if it is known to within this share of itself."""
FEWEST_NUMBERS = 13
"""Numbers with fewer different values than this may be codes; a near code says nothing."""

_ROUNDING = 1e-12  # of 0.95 and 1.05 times a value

Column = TypeVar("Column")


def is_common(records: Any, of: int) -> Any:
    """Tell which values are no news: those that at least half of all records have, here as counted."""
    return 2 * records >= of


def telling_apart(known: Sequence[Column], below_k: float) -> Sequence[Column]:
    """Return the known columns by which an attacker tells the records of a group apart.

    ``below_k`` is the number, or share, of records below k with these columns. Where there are some, records
    are found by the columns, whatever their group discloses.
    """
    return () if below_k else known


def _agreeing(values: Labels, common: NDArray[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which groups disclose their value, and which agree in one that is no news.

    ``values`` has the number of distinct values in each group, ``common`` says whether one is common.
    """
    return (values == 1) & (common == 0), (values == 1) & (common != 0)


@dataclass(frozen=True)
class Agreement:
    """Records whose group discloses their value of one confidential column."""

    exact: int
    """Records in groups that agree in a value that fewer than half of all records have."""
    close: int
    """Further records whose group tells the number to within 5 %, which it does of fewer than half of all."""
    harmless: int
    """Records in groups that agree in a value that at least half of all records have."""
    of: int
    """All records."""
    disclosed: NDArray[np.bool_] | None = field(default=None, repr=False, compare=False)
    """Which records are disclosed, exactly or closely; None where they were counted in parts."""

    @classmethod
    def of_classes(cls, classes: ClassSizes) -> Agreement:
        """Return what was counted in classes, whose distinct values stand for units."""
        exact, harmless = _agreeing(classes.units, classes.common)
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
    n = len(codes)
    often = np.bincount(codes)
    low, high = np.full(int(own.max()) + 1, len(often)), np.full(int(own.max()) + 1, -1)
    np.minimum.at(low, own, codes)
    np.maximum.at(high, own, codes)
    values = np.where(low == high, 1, 2)  # or more
    exact, harmless = (of[own] for of in _agreeing(values, is_common(often, n)[low]))
    close = np.zeros(n, dtype=bool)
    if numbers is not None:
        close = _disclosed_closely(numbers, own) & ~exact & ~harmless
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
    masks = [one.disclosed for one in every if one.disclosed is not None]
    if len(masks) == len(every):
        return float(np.logical_or.reduce(masks).mean())
    return min(1.0, sum(one.records for one in every) / every[0].of)


def _disclosed_closely(numbers: Floats, own: Labels) -> NDArray[np.bool_]:
    """Find records whose group has only values within 5 % of theirs, unless half of the table has them too.

    Only equal values are near 0, and in groups with both signs. A group with a missing value discloses none.
    """
    groups = len(group_sizes(own))
    low, high = np.full(groups, np.inf), np.full(groups, -np.inf)
    there = ~np.isnan(numbers)
    np.minimum.at(low, own, np.where(there, numbers, -np.inf))
    np.maximum.at(high, own, np.where(there, numbers, np.inf))
    span = (WITHIN + _ROUNDING) * np.abs(numbers)
    with np.errstate(invalid="ignore", over="ignore"):
        near = (high[own] - numbers <= span) & (numbers - low[own] <= span)
        ends = numbers - span, numbers + span
    ordered = np.sort(numbers[there])
    within = np.searchsorted(ordered, ends[1], "right") - np.searchsorted(ordered, ends[0], "left")
    return np.asarray(near & (2 * within < len(numbers)))
