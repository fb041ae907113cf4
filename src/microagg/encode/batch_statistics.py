"""Statistics of a table that is read in batches; those of the batches merge in any order.

Sums are exact (kernels/doubled_sums.py), so that a table has the same summary, to the last digit, however it
is cut into batches and in whatever order these come. Quantiles come from a sketch that counts values; where
very many differ, by their leading bits, and it is off by at most one part in 256 of a value.

Everything merges by addition, so that batches may be summarised in other processes or machines. So do the
counts in a column before it is recoded (:class:`Tally`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microagg.base.formatting import plural
from microagg.base.typing import Floats, Labels
from microagg.encode.inertia import LevelCounts
from microagg.encode.number import NumberFigures, Spread, Transform
from microagg.encode.scale import ROUNDING, scaling_of
from microagg.encode.steps import Steps
from microagg.errors import InputError, shown
from microagg.kernels.doubled_sums import BINS, LOW_BITS, OFFSET, add_moments

_LARGEST = 1e150  # whose square is a double
_MANTISSA = 53
_UNITS = 1 << (OFFSET + _MANTISSA)  # of exact sums, in a whole
_DROPPED = 45  # bits of a double that the sketch does not look at: 7 of its 52 digits are left
_FEW_VALUES = 1 << 16  # different ones, up to which the sketch counts each
levels_at_most = 1 << 20  # of a category


@dataclass(eq=False)
class Moments:
    """Count, mean and sum of squares about the mean; exact, with weights too."""

    sums: NDArray[np.int64] = field(default_factory=lambda: np.zeros((3, 2, BINS), dtype=np.int64))
    count: int = 0
    low: float = np.inf
    high: float = -np.inf
    steps: Steps = field(default_factory=Steps)  # In which the values move

    def add(self, values: Floats, weights: Floats | None = None) -> Moments:
        """Count values, none of them missing; the same object comes back.

        >>> moments = Moments().add(np.array([1e9, 1e9 + 1])).merge(Moments().add(np.array([1e9 + 2])))
        >>> moments.mean, moments.squares
        (1000000001.0, 2.0)
        """
        if not len(values):
            return self
        w = np.ones(len(values)) if weights is None else weights
        low, high = float(values.min()), float(values.max())
        if max(-low, high) > _LARGEST:
            raise InputError(
                f"Tables that are read in parts hold numbers up to {_LARGEST:g} in columns to protect; "
                "the table has larger ones. Divide the column, or protect the table in memory."
            )
        add_moments(np.ascontiguousarray(values), np.ascontiguousarray(w), self.sums)
        self.count += len(values)
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.steps = self.steps.merge(Steps.of(values))
        return self

    def merge(self, other: Moments) -> Moments:
        """Return the moments of both together."""
        return Moments(
            self.sums + other.sums,
            self.count + other.count,
            min(self.low, other.low),
            max(self.high, other.high),
            self.steps.merge(other.steps),
        )

    def _sum(self, which: int) -> Fraction:
        """Return Σw, Σwx or Σwx², exactly."""
        total = 0
        for power in np.flatnonzero(self.sums[which].any(axis=0)).tolist():
            high, low = (int(half) for half in self.sums[which, :, power])
            total += ((high << LOW_BITS) + low) << power
        return Fraction(total, _UNITS)

    @property
    def weight(self) -> float:
        """Sum of the weights, rounded once."""
        return float(self._sum(0))

    @property
    def mean(self) -> float:
        """Weighted mean, rounded once; NaN where there is no value."""
        return float(self._sum(1) / self._sum(0)) if self.count else np.nan

    @property
    def total(self) -> Fraction:
        """Weighted sum, exactly."""
        return self._sum(1)

    @property
    def squares(self) -> float:
        """Weighted sum of squares about the mean, rounded once."""
        if not self.count:
            return 0.0
        return max(float(self._sum(2) - self._sum(1) ** 2 / self._sum(0)), 0.0)

    @property
    def deviation(self) -> float:
        """Standard deviation; with weights such that weighted squares of z-scores add up to count − 1."""
        return self._deviation(float(self._sum(0) / self.count) if self.count else 1.0)

    def _deviation(self, mean_weight: float) -> float:
        if self.count < 2:
            return 0.0
        return float(np.sqrt(self.squares / mean_weight / (self.count - 1)))

    def spread(self, scale: str, mean_weight: float, sketch: Sketch) -> Spread | None:
        """Return what the scale of the column follows from; None where there is no value.

        ``mean_weight`` is that of all records of the table; ``sketch`` is of the same values.
        """
        if not self.count:
            return None
        deviation = self._deviation(mean_weight)
        if not deviation and self.low < self.high:
            raise InputError(
                f"Tables that are read in parts hold numbers that differ by {1 / _LARGEST:g} or more in "
                "columns to protect; those of the table differ by less. Multiply the column, or protect the "
                "table in memory."
            )
        quartiles = None
        if scale == "robust":
            quartiles = sketch.quantile(0.25), sketch.quantile(0.75)
        scaling = scaling_of(scale, self.low, self.high, self.mean, deviation, quartiles)
        return Spread(self.count, self.weight / mean_weight, self.low, self.high, scaling)


@dataclass(frozen=True, eq=False)
class Sketch:
    """How often values occur, or with which weight: each, or those that agree in their leading bits.

    They are counted by sign, power of two and first seven bits once there are too many different ones.
    """

    keys: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Bits of the values that occur, which ascend as these do."""
    mass: Floats = field(default_factory=lambda: np.zeros(0))
    """How often each occurs, or with which weight."""
    dropped: int = 0
    """Bits of a double that are not looked at."""
    weighted: bool = False

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None) -> Sketch:
        """Count values, none of them missing."""
        bits = (np.asarray(values, dtype=np.float64) + 0.0).view(np.int64)
        # Negative doubles descend as their bits ascend.
        keys = np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)
        mass = np.ones(len(keys)) if weights is None else weights
        return cls(keys, mass, weighted=weights is not None)._summed()

    def merge(self, other: Sketch) -> Sketch:
        """Return the sketch of both together."""
        dropped = max(self.dropped, other.dropped)
        keys = [sketch.keys >> (dropped - sketch.dropped) for sketch in (self, other)]
        mass = np.concatenate([self.mass, other.mass])
        weighted = self.weighted or other.weighted
        return Sketch(np.concatenate(keys), mass, dropped, weighted)._summed()

    def _summed(self) -> Sketch:
        """Count equal keys together, by their leading bits if there are too many."""
        keys, which = np.unique(self.keys, return_inverse=True)
        mass: Floats = np.bincount(which.reshape(-1), self.mass).astype(np.float64)
        counted = replace(self, keys=keys, mass=mass)
        return counted if self.dropped or len(keys) <= _FEW_VALUES else counted.coarse()

    def coarse(self) -> Sketch:
        """Return the sketch by leading bits."""
        return replace(self, keys=self.keys >> _DROPPED, dropped=_DROPPED)._summed()

    def quantile(self, share: float) -> float:
        """Return the value below which a share of all values lies, as a table in memory has it.

        Of very many different values it is off by one part in 256 at most.

        >>> Sketch.of(np.array([1.0, 2.0, 100.0, 300.0])).quantile(0.5)
        51.0
        >>> Sketch.of(np.array([1.0, 2.0]), np.array([3.0, 1.0])).quantile(0.5)
        1.0
        """
        upto = np.cumsum(self.mass)
        if self.weighted:  # a share that is reached but for rounding is reached
            return self._value(np.searchsorted(upto, share * upto[-1] * (1 - ROUNDING)))
        rank = share * (upto[-1] - 1)
        low, high = (
            self._value(np.searchsorted(upto, at, side="right"))
            for at in (np.floor(rank), np.ceil(rank))
        )
        return float(low + (rank - np.floor(rank)) * (high - low))

    def _value(self, at: Any) -> float:
        """Return the value of a key by its position, or one in the middle of those that have it."""
        key = self.keys[at]
        if not key:
            return 0.0
        middle = (key << self.dropped) + (1 << self.dropped >> 1)
        bits = np.iinfo(np.int64).min - middle if middle < 0 else middle
        return float(np.array([bits], dtype=np.int64).view(np.float64)[0])


@dataclass(eq=False)
class ColumnStatistics:
    """Statistics of one column of a table."""

    kind: str | None = None  # of the column, by the types of its batches
    moments: Moments = field(default_factory=Moments)  # of quantities and dates that are there
    outside: Moments = field(default_factory=Moments)  # of spiked numbers: those off the spike
    transform: Transform | None = None  # for the distance, once it is known
    transformed: Moments = field(default_factory=Moments)  # of transformed numbers, off the spike
    sizes: Sketch = field(default_factory=Sketch)  # absolute values above 0, by which it is fitted
    sketch: Sketch = field(default_factory=Sketch)
    levels: Counter[Any] = field(default_factory=Counter)  # records with each category or text
    mass: dict[Any, Fraction] = field(default_factory=dict)  # the same in weights, exactly
    holders: dict[Any, frozenset[int]] = field(default_factory=dict)
    """If k counts units: the least keys of the units that have each value, at most ``most_holders``."""
    most_holders: int = 0
    missing_mass: dict[int, Fraction] = field(default_factory=dict)
    """With weights: the sum of those of the records in each state of missing (1: missing, 2, …: a code)."""
    alike: ColumnStatistics | None = None  # of numbers with weights: as if records counted alike

    def merge(self, other: ColumnStatistics) -> ColumnStatistics:
        """Return the summary of both together."""
        most, fields = max(self.most_holders, other.most_holders), dict[str, Any]()
        for name in ("moments", "outside", "transformed", "sketch", "sizes"):
            fields[name] = getattr(self, name).merge(getattr(other, name))
        for name in ("mass", "missing_mass"):
            first, second = getattr(self, name), getattr(other, name)
            fields[name] = {
                key: first.get(key, 0) + second.get(key, 0) for key in {**first, **second}
            }
        if self.alike is not None and other.alike is not None:
            fields["alike"] = self.alike.merge(other.alike)
        return replace(
            self,
            kind=self.kind if self.kind == other.kind else "number",
            levels=self.levels + other.levels,
            holders=least_keys(self.holders, other.holders, most),
            most_holders=most,
            **fields,
        )

    def counted(
        self, levels: Sequence[Any], mean_weight: float | None = None, scale: str = "zscore"
    ) -> LevelCounts | NumberFigures:
        """Return what the encoder of the column is fitted to, as :func:`microagg.encode.space.counted` does.

        Parameters
        ----------
        levels : of a category, in the order of their numbers
        mean_weight : of all records of the table; None: they count alike, whatever their weights
        scale : of numbers
        """
        if self.levels:
            often = self.levels if mean_weight is None else self.mass
            of_levels = np.array([float(often.get(level, 0)) for level in levels])
            return LevelCounts(of_levels / (mean_weight or 1.0), sum(self.levels.values()))
        if mean_weight is None and self.alike is not None:
            return self.alike.counted(levels, None, scale)
        every, off, transformed = (
            moments.spread(scale, mean_weight or 1.0, self.sketch)
            for moments in (self.moments, self.outside, self.transformed)
        )
        return NumberFigures(every, off, self.transform, transformed)

    def held(self, levels: Sequence[Any]) -> int:
        """Count the units that hold one of some levels, k or more if there are k; or the records."""
        if self.most_holders:
            none: frozenset[int] = frozenset()
            return len(none.union(*(self.holders.get(level, none) for level in levels)))
        return sum(self.levels.get(level, 0) for level in levels)

    def check_levels(self, name: Any) -> None:
        """Refuse more levels than a category can have."""
        if len(self.levels) > levels_at_most:
            raise InputError(
                f"A category has at most {plural(levels_at_most, 'level')}; column {shown(name)} has "
                "more. Drop the column, leave it as it is, or group its values first."
            )


def least_keys(
    first: Mapping[Any, frozenset[int]], second: Mapping[Any, frozenset[int]], most: int
) -> dict[Any, frozenset[int]]:
    """Return the least keys of each value in ``first`` and ``second`` together, at most ``most`` of them."""
    none: frozenset[int] = frozenset()
    both = {
        value: first.get(value, none) | second.get(value, none) for value in {**first, **second}
    }
    return {value: frozenset(sorted(keys)[:most]) for value, keys in both.items()}


def mass_by_number(numbers: NDArray[np.int64], weights: Floats) -> dict[int, Fraction]:
    """Add up the ``weights`` of records by their ``numbers``, both (n,), exactly.

    >>> mass_by_number(np.array([0, 2, 0]), np.array([0.5, 3.0, 0.25]))
    {0: Fraction(3, 4), 2: Fraction(3, 1)}
    """
    # Whole numbers of 53 bits times a power of two, in halves whose sums are doubles up to 2^26 records.
    mantissas, powers = np.frexp(weights)
    whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
    keys, which = np.unique(numbers * BINS + (powers + OFFSET), return_inverse=True)
    high = np.bincount(which.reshape(-1), whole >> LOW_BITS)
    low = np.bincount(which.reshape(-1), whole & ((1 << LOW_BITS) - 1))
    masses: dict[int, Fraction] = {}
    for key, *halves in zip(keys.tolist(), high.tolist(), low.tolist(), strict=True):
        number, power = divmod(key, BINS)
        total = ((int(halves[0]) << LOW_BITS) + int(halves[1])) << power
        masses[number] = masses.get(number, Fraction(0)) + Fraction(total, _UNITS)
    return masses


@dataclass(eq=False)
class Share:
    """The records of a band or level: number, weight, and the mean and squares of their values."""

    count: int = 0
    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    holders: frozenset[int] = frozenset()
    """Units that have it, up to the number that decides whether it is rare."""

    @property
    def total(self) -> float:
        """Weighted sum."""
        return self.mean * self.weight

    @property
    def deviation(self) -> float:
        """Standard deviation, defined as in :class:`microagg.encode.batch_statistics.Moments`."""
        if self.count < 2:
            return 0.0
        return float(np.sqrt(self.squares * self.count / self.weight / (self.count - 1)))

    def merge(self, other: Share, most: int = 0) -> Share:
        """Return both together."""
        weight = self.weight + other.weight
        step = other.mean - self.mean
        share = other.weight / weight if weight else 0.0
        held = sorted(self.holders | other.holders)[: most or None]
        return Share(
            self.count + other.count,
            weight,
            self.mean + step * share,
            self.squares + other.squares + step * step * self.weight * share,
            frozenset(held),
        )


def least_units(numbers: Labels, units: Labels, m: int, most: int) -> list[frozenset[int]]:
    """Return the least units of the records that have each number, at most some of each.

    Parameters
    ----------
    numbers : (n,) of a band, level or stratum
    units : (n,) whose record it is, the same number in all batches
    m : how many numbers there are, from 0
    most : units that are listed at most

    >>> least_units(np.array([0, 0, 1, 0]), np.array([7, 5, 5, 7]), 3, 2)
    [frozenset({5, 7}), frozenset({5}), frozenset()]
    """
    order = np.lexsort((units, numbers))
    numbers, units = numbers[order], units[order]
    new = np.append(True, (numbers[1:] != numbers[:-1]) | (units[1:] != units[:-1]))[: len(numbers)]
    numbers, units = numbers[new], units[new]
    starts = np.searchsorted(numbers, np.arange(m + 1)).tolist()
    return [frozenset(units[a : min(a + most, b)].tolist()) for a, b in pairwise(starts)]


@dataclass(eq=False)
class Tally:
    """Counts of a column, or of a batch of it, by which it is recoded."""

    parts: dict[Any, Share] = field(default_factory=dict)  # By band (its ends) or by level
    whole: bool = True  # Of numbers: whether all are whole
    by_units: bool = False
    most: int = 0
    every: Share = field(default_factory=Share)  # All values of numbers and dates
    lost: float = 0.0  # Squared distances of numbers and dates to what they become, bands aside

    def number(self, share: Share) -> int:
        """Return how many units, or records, have a share."""
        return len(share.holders) if self.by_units else share.count

    def is_rare(self, share: Share) -> bool:
        """Return whether fewer units, or records, have a share than it takes."""
        return self.number(share) < self.most

    def merge(self, other: Tally) -> Tally:
        """Return the counts of both together."""
        parts = dict(self.parts)
        for key, share in other.parts.items():
            parts[key] = parts.get(key, Share()).merge(share, self.most)
        whole, every = self.whole and other.whole, self.every.merge(other.every)
        return replace(self, parts=parts, whole=whole, every=every, lost=self.lost + other.lost)
