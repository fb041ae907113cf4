"""Counts in a column before it is recoded; those of batches merge."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from microagg.base.typing import Labels


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
        part = other.weight / weight if weight else 0.0
        held = sorted(self.holders | other.holders)
        return Share(
            self.count + other.count,
            weight,
            self.mean + step * part,
            self.squares + other.squares + step * step * self.weight * part,
            frozenset(held[:most] if most else held),
        )


def least_units(numbers: Labels, units: Labels, m: int, most: int) -> list[frozenset[int]]:
    """Return the least units of the records that have each number, at most some of each.

    Parameters
    ----------
    numbers : (n,) of a band, level or stratum, 0 to m − 1
    units : (n,) whose record it is, the same number in all batches
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

    parts: dict[Any, Share] = field(default_factory=dict)
    """By band (its ends) or by level."""
    whole: bool = True
    """Of numbers: whether all are whole."""
    by_units: bool = False
    most: int = 0
    every: Share = field(default_factory=Share)
    """All values of numbers and dates."""
    lost: float = 0.0
    """Squared distances of numbers and dates to what they become, bands aside."""

    def merge(self, other: Tally) -> Tally:
        """Return the counts of both together."""
        parts = dict(self.parts)
        for key, share in other.parts.items():
            parts[key] = parts.get(key, Share()).merge(share, self.most)
        return Tally(
            parts,
            self.whole and other.whole,
            self.by_units,
            self.most,
            self.every.merge(other.every),
            self.lost + other.lost,
        )
