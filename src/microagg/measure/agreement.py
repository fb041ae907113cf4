"""What groups disclose about confidential columns although their records look alike.

Someone who knows that a person is among the records of a group still learns a confidential value if all of
them have it, or, for numbers, if all have nearly the same. A value that at least half of all records have is
no news, nor is a number that more than a tenth have (an income of 0), so that only records with a rarer value
are counted. The rule is :func:`microagg.grouping.require.value_rules.nearness`. Beside it stand, of the worst
class:

- distinct l-diversity: the number of different values (Machanavajjhala et al. 2007);
- entropy l-diversity: exp(−Σ p·ln p), the number of values if they were equally frequent;
- t-closeness: the earth mover's distance of the class to the whole table (Li, Li & Venkatasubramanian
  2007). For numbers, values are ranked 1..m and the distance of two neighbours is 1/(m−1):
  EMD = Σᵢ|Σ_{j≤i}(p_j−q_j)|/(m−1). For other values all are equally far: EMD = ½·Σ|p−q|.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.grouping.require.from_plan import values_and_numbers
from microagg.grouping.require.value_rules import nearness
from microagg.kernels.labels import canonical_labels, group_sizes
from microagg.measure.classes import ClassSizes
from microagg.tables.frame import Frame


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

    def with_close_of(self, sample: Agreement) -> Agreement:
        """Return this, counted in all records, with the number of close ones as estimated in a sample."""
        return replace(self, close=math.ceil(sample.close * self.of / sample.of))

    @property
    def records(self) -> int:
        """Records that are disclosed."""
        return self.exact + self.close


def agreement(codes: Labels, labels: Labels, numbers: Floats | None = None) -> Agreement:
    """Count the records whose group discloses their value of a column.

    ``codes`` numbers the distinct values, missing being one of them; ``labels`` (n,) are the groups of the
    records, 0, 1, …; ``numbers`` are the values, NaN where missing, if near values tell nearly as much as
    equal ones.

    >>> found = agreement(np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 2, 2]))
    >>> found.exact, found.harmless
    (0, 4)
    """
    n, groups = len(codes), int(labels.max()) + 1
    low, high = np.full(groups, n), np.full(groups, -1)
    np.minimum.at(low, labels, codes)
    np.maximum.at(high, labels, codes)
    agrees = (low == high)[labels]
    values, near = nearness(codes, numbers)
    reach, value = near[codes], values[codes]
    exact, harmless = agrees & (reach >= 0), agrees & (reach < 0)
    below, above = value - values[low[labels]], values[high[labels]] - value
    close = ~agrees & (below <= reach) & (above <= reach)
    return Agreement(
        int(exact.sum()), int(close.sum()), int(harmless.sum()), n, disclosed=exact | close
    )


@dataclass(frozen=True)
class Diversity:
    """A confidential column in the classes of equal protected rows."""

    distinct_l: int
    """Fewest distinct values in a class; 1 gives the value away."""
    entropy_l: float
    """Least exp(entropy) of a class."""
    t: float
    """Largest earth mover's distance of a class to the whole table; 0 to 1, lower is safer."""
    agreement: Agreement
    """Records whose value a class discloses although it is not common."""


def diversity(frame: Frame, name: Any, labels: Labels) -> Diversity:
    """Measure a confidential column in classes.

    Parameters
    ----------
    frame : the table as released
    name : its confidential column
    labels : (n,) class of each record, any numbers
    """
    codes, levels = frame.levels(name)
    labels = canonical_labels(labels)
    sizes = group_sizes(labels)
    m, g = len(levels), len(sizes)
    # Each combination of class and value, in that order, and how often it occurs.
    key, count = np.unique(labels * np.int64(m) + codes, return_counts=True)
    owner, value = key // m, key % m
    share = count / sizes[owner]
    distinct = np.bincount(owner, minlength=g)
    entropy = np.bincount(owner, weights=-share * np.log(share), minlength=g)
    overall = np.bincount(codes, minlength=m) / len(codes)
    if frame.is_numeric(name):
        t = _ordered_distance(owner, value, share, overall, g)
    else:  # the sum of what a class has more of than the table
        t = np.bincount(owner, np.maximum(share - overall[value], 0.0), g).astype(np.float64)
    return Diversity(
        distinct_l=int(distinct.min()),
        entropy_l=float(np.exp(max(entropy.min(), 0.0))),
        t=float(t.max()),
        agreement=agreement_of(frame, name, labels),
    )


def agreement_of(frame: Frame, name: Any, labels: Labels) -> Agreement:
    """Count the records of ``frame`` whose class, of ``labels`` (n,), discloses their value of ``name``."""
    codes, numbers = values_and_numbers(frame, name)
    return agreement(codes, labels, numbers)


def _ordered_distance(
    owner: Labels, value: Labels, share: Floats, overall: Floats, g: int
) -> Floats:
    """Earth mover's distance of each class to the table, for ranked values.

    A class's distribution function P is constant between its values and the table's function Q
    rises, so that a piece of Σ|P−Q| is two prefix sums of Q, split where Q passes P: O(n log m)
    for all classes together rather than O(gm).
    """
    m = len(overall)
    if m == 1:
        return np.zeros(g)
    Q = np.cumsum(overall)
    Q[-1] = 1.0
    prefix = np.concatenate([[0.0], np.cumsum(Q)])
    starts_class = np.flatnonzero(np.diff(owner, prepend=-1))
    running = np.cumsum(share)
    P = running - np.repeat(
        running[starts_class] - share[starts_class], np.diff(starts_class, append=len(owner))
    )
    last = np.append(owner[1:] != owner[:-1], True)
    P[last] = 1.0
    end = np.where(last, m, np.append(value[1:], m))
    # Σ|P−Q_i| from each value to the next one.
    crossing = np.clip(np.searchsorted(Q, P), value, end)
    below = P * (crossing - value) - (prefix[crossing] - prefix[value])
    above = (prefix[end] - prefix[crossing]) - P * (end - crossing)
    total = np.bincount(owner, weights=below + above, minlength=g)
    head = value[starts_class]  # before its first value a class has P = 0
    total += prefix[head]
    return np.asarray(total / (m - 1))


def disclosed_share(agreements: Iterable[Agreement]) -> float:
    """Return the share of records for which a group discloses some column, of ``agreements`` of each.

    Where it is not known which records these are, the share is at most the result.
    """
    every = list(agreements)
    if not every:
        return 0.0
    masks = [agreement.disclosed for agreement in every if agreement.disclosed is not None]
    if len(masks) == len(every):
        return float(np.logical_or.reduce(masks).mean())
    return min(1.0, sum(agreement.records for agreement in every) / every[0].of)
