"""Rules about the values of a column in each group: units, l-diversity, t-closeness, hidden values.

Each class states the rule and proves that it is closed under union. In the proofs, the shares of a union are
a mixture λp + (1−λ)q of the shares p and q of two groups.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from microagg.base.formatting import number, share
from microagg.base.typing import Floats, Labels
from microagg.encode.strata import count_units
from microagg.grouping.require.requirement import Demand, Requirement, violations_of
from microagg.kernels.require_kinds import DISTINCT, ENTROPY, EQUAL, HIDDEN, ORDERED

WITHIN = 5.0
"""A number is given away if it is known to within this percentage of itself."""
FEWEST_NUMBERS = 13
"""Numbers with fewer different values than this may be codes; a near code says nothing."""

_ROUNDING = 1e-12  # of 0.95 and 1.05 times a value
# Missing and infinite values are far from all numbers, which are scaled to 1 at most.
_MISSING, _INFINITE = 1e30, 1e15


@dataclass(frozen=True, eq=False)
class Distinct(Requirement):
    """Distinct l-diversity: at least ``least`` different values in every group.

    Protects  against the plainest disclosure that k leaves open: all records of a group agree in the
              confidential column, so that a person who is known to be in it has that value.
    Rule      |{values in the group}| ≥ l.
    Union     A union has the values of both groups, so at least as many.
    Paper     Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam 2007, section 4 (l-diversity).

    >>> wanted = Distinct(np.array([4, 4, 7, 9]), 2, "diagnosis")
    >>> wanted.violation([0, 1]), wanted.violation([1, 2]), wanted.feasible()
    (0.5, 0.0, True)
    >>> wanted.figure(np.array([0, 0, 1, 1]))
    1.0
    """

    codes: Labels = field(repr=False)
    least: int
    column: str = ""

    def demand(self) -> Demand:
        return _demand(DISTINCT, self.least, self.codes)

    def figure(self, labels: Labels) -> float:
        """Return the fewest different values that a group has."""
        return float(count_units(labels, self.codes).min())

    def say(self, figure: float) -> str:
        return number(int(figure))

    def describe(self) -> str:
        return f"at least {self.least} different values of {self.named} in each group"

    def reason(self) -> str:
        return (
            f"{self.least} different values of {self.named} are asked in each group; the "
            f"whole table has {len(np.unique(self.codes))}. Ask for fewer."
        )


class Units(Distinct):
    """At least k persons, firms or households in every group, not only k records.

    Protects  against groups of k records that belong to fewer than k units: five records of one household
              hide each other, but not the household.
    Rule      |{units in the group}| ≥ k; closed under union like :class:`Distinct`.

    The parameters are those of :class:`Distinct`: the unit of each record, k, and the column's name.

    >>> wanted = Units(np.array([5, 5, 7]), 2, "household")
    >>> wanted.violation([0, 1]), wanted.violation([1, 2])
    (0.5, 0.0)
    """

    def describe(self) -> str:
        of = f" ({self.column})" if self.column else ""
        return f"at least {self.least} distinct units{of} in each group"

    def reason(self) -> str:
        return (
            f"k={self.least} needs at least {self.least} distinct values of the unit {self.column}; the "
            f"table has {len(np.unique(self.codes))}. Lower k."
        )


@dataclass(frozen=True, eq=False)
class Entropy(Requirement):
    """Entropy l-diversity: the values of a confidential column are spread in every group.

    Protects  against groups with l values if nearly everybody has the same one.
    Rule      exp(H) ≥ l with H = −Σ p·ln p over the shares p of the values in the group: as many values
              as if they were equally frequent.
    Union     H is concave: H(λp + (1−λ)q) ≥ λH(p) + (1−λ)H(q) ≥ min(H(p), H(q)), so both ≥ ln l gives ≥ ln l.
    Note      The whole table must have entropy ln l itself: a column with one very common value allows
              no l much over 1.
    Paper     Machanavajjhala, Kifer, Gehrke & Venkitasubramaniam 2007, section 4 (l-diversity).

    >>> wanted = Entropy(np.array([0, 0, 0, 1]), 2.0)
    >>> wanted.violation([2, 3]), wanted.violation([0, 1]), wanted.figure(np.array([0, 0, 1, 1]))
    (0.0, 1.0, 1.0)
    """

    codes: Labels = field(repr=False)
    least: float
    column: str = ""

    def demand(self) -> Demand:
        return _demand(ENTROPY, self.least, self.codes)

    def figure(self, labels: Labels) -> float:
        """Return the least exp(H) of a group."""
        codes = np.unique(self.codes, return_inverse=True)[1]
        m = int(codes.max()) + 1
        pairs, counts = np.unique(labels * m + codes, return_counts=True)
        group = pairs // m
        shares = counts / np.bincount(labels)[group]
        return float(np.exp(-np.bincount(group, weights=shares * np.log(shares))).min())

    def describe(self) -> str:
        return (
            f"values of {self.named} in each group spread like {self.least:g} equally frequent ones"
        )

    def reason(self) -> str:
        most = self.figure(np.zeros(len(self.codes), np.int64))
        return (
            f"Entropy diversity {self.least:g} of {self.named} is asked in each group; the "
            f"whole table has {most:.4g}, and no partition has more in its poorest group. Ask for less."
        )


@dataclass(frozen=True, eq=False)
class Closeness(Requirement):
    """t-closeness: a confidential column is distributed in every group nearly as in the whole table.

    Protects  against learning about a person from the group: not only who has which value, but also
              that the values of a group are all high, or mostly of one kind.
    Rule      The earth mover's distance of the group's shares p to those q of the whole table is at most t.
              Numbers and levels are ranked 1..m, neighbouring ranks 1/(m−1) apart:
              Σᵢ|Σ_{j≤i}(pⱼ − qⱼ)|/(m−1). Other values are all equally far: ½·Σ|p − q|.
    Union     Both distances are convex in p, so the distance of the mixture is at most the larger one.
    Cost      For ranks O(s log m) for a group of s records with prefix sums of the table's shares, not
              O(m): between two of its values the group's distribution function is flat, the table's rises.
    Paper     Li, Li & Venkatasubramanian 2007. The whole table has distance 0: it always satisfies it.

    >>> wanted = Closeness(np.array([10, 20, 30]), 0.25)
    >>> round(wanted.violation([1]), 3), round(wanted.violation([0]), 3)
    (0.083, 0.25)
    """

    codes: Labels = field(repr=False)
    most: float  # the t of the rule, 0 to 1
    ordered: bool = True  # codes are in the order of the values, and near ones are nearly the same
    column: str = ""
    larger_is_worse: ClassVar[bool] = True

    def demand(self) -> Demand:
        count = np.unique(self.codes, return_counts=True)[1]
        # From counts, so that the last share is 1 and equal tables have equal shares.
        share = (np.cumsum(count) if self.ordered else count) / len(self.codes)
        kind = ORDERED if self.ordered else EQUAL
        return _demand(kind, self.most, self.codes)._replace(share=share)

    def figure(self, labels: Labels) -> float:
        """Return the largest distance of a group from the whole table: how far it is from a t of 0."""
        return float(violations_of(labels, 1, [replace(self, most=0.0)]).max())

    def describe(self) -> str:
        return (
            f"the distribution of {self.named} in each group within {self.most:g} of that in "
            "the whole table (earth mover's distance)"
        )

    def reason(self) -> str:
        return "The whole table is at distance 0 from itself."


def is_common(records: Any, of: int, numbers: bool = False) -> Any:
    """Tell which values are no news: at least half ``of`` all records have them, here counted in ``records``.

    Of ``numbers``, which have many values, a value is common that more than a tenth have.
    """
    return 10 * records > of if numbers else 2 * records >= of


def nearness(
    codes: Labels, numbers: Floats | None = None, percent: float = WITHIN
) -> tuple[Floats, Floats]:
    """Return a number for each value, and how near all others of a group must be to give it away.

    Both are (values,): the numbers ascend; the distance is below 0 for a common value, which is no news, and
    0 if half of all records are as near as that.

    Parameters
    ----------
    codes : (n,) the value of each record, 0, 1, …; missing is a value, and the last one
    numbers : (n,) the values, NaN where missing; None for categories, which only equal ones give away
    percent : how near, in percent of a number

    >>> nearness(np.array([0, 1, 1, 2, 2]))[1].tolist()
    [0.0, 0.0, 0.0]
    """
    often = np.bincount(codes)
    values, near = np.arange(len(often), dtype=np.float64), np.zeros(len(often))
    if numbers is not None:
        largest = np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)
        # By a power of two, so that no digit changes.
        scaled = np.clip(np.ldexp(numbers, -int(np.frexp(largest)[1])), -_INFINITE, _INFINITE)
        values[codes] = np.where(np.isnan(numbers), _MISSING, scaled)
        near = (percent / 100 + _ROUNDING) * np.abs(values)
        ordered = np.sort(scaled[~np.isnan(numbers)])
        within = np.searchsorted(ordered, values + near, "right")
        within -= np.searchsorted(ordered, values - near, "left")
        near[2 * within >= len(codes)] = 0.0
    near[is_common(often, len(codes), numbers is not None)] = -1.0
    return values, near


@dataclass(frozen=True, eq=False)
class HiddenValues(Requirement):
    """No group gives a confidential value away.

    Protects  against groups whose records agree in a confidential value or, for numbers, nearly agree.
              This is what is counted for the verdict; see :mod:`microagg.measure.risk`.
    Rule      For every record with the value x, its group has another value; of numbers with 13 different
              values or more, one that differs from x by more than p %. Common values, which are no news, are
              free: those that half of all records have, or more than a tenth where they are such numbers.
    Union     A value that hides the value of a record is in every union, too.

    >>> wanted = HiddenValues(np.array([0, 0, 1, 1, 1, 2]), 5, column="diagnosis")
    >>> wanted.violation([0, 1]), wanted.violation([2, 3]), wanted.violation([4, 5])
    (1.0, 0.0, 0.0)
    """

    codes: Labels = field(repr=False)
    percent: float
    numbers: Floats | None = field(default=None, repr=False)
    column: str = ""
    larger_is_worse: ClassVar[bool] = True

    def demand(self) -> Demand:
        values = np.concatenate(nearness(self.codes, self.numbers, self.percent))
        return Demand(HIDDEN, 0.0, self.codes, np.ones(len(self.codes)), share=values)

    def figure(self, labels: Labels) -> float:
        """Return the largest share of a group's records whose value is given away."""
        return float(violations_of(labels, 1, [self]).max())

    def say(self, figure: float) -> str:
        return f"{share(figure)} given away"

    def describe(self) -> str:
        near = f" to within {self.percent:g} %" if self.numbers is not None else ""
        return f"{self.named} not given away{near} by any group"

    def reason(self) -> str:
        return (
            f"No group may give {self.named} away; the whole table as one group does, since "
            "all its values are nearly the same. Leave the requirement out, or drop the column."
        )


def _demand(kind: int, level: float, values: Labels) -> Demand:
    codes = np.unique(values, return_inverse=True)[1]
    return Demand(kind, float(level), codes, np.ones(len(codes)))
