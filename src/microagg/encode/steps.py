"""The steps in which a column moves, and rounding to them: whole numbers, cents, fives, days.

Somebody who has the values and weights of all members of a group but one computes the last value from a
weighted mean. If the guess about the others was wrong, the result is hardly ever a whole number of cents: it
says whether the guess is right. A mean that is rounded to the column's own steps says nothing of the kind. It
leaves a range of one step at least, and the last value, which is a part of the mean, a wider one: there is
always a value of the column's steps within it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from microagg.base.typing import Floats

# Released means keep this share of a column's standard deviation, unless digits are given.
_KEPT = 1e-6
_MOST_DECIMALS = 15
_WHOLE_DOUBLES = 2.0**53  # below it every whole number is a double
_LOOKED_AT_FIRST = 1_000


@dataclass(frozen=True)
class Steps:
    """A first value, and the largest number of which all values are multiples apart from it.

    Both are whole numbers of 10 to the power of minus ``decimals``.

    >>> Steps.of(np.array([0.5, 2.0, 11.0]))
    Steps(decimals=1, first=5, step=15)
    >>> Steps.of(np.array([0.5, 2.0])).merge(Steps.of(np.array([1.25]))).size
    0.75
    """

    decimals: int = 0
    first: int | None = None
    """None: there is no value yet."""
    step: int | None = 0
    """0: all values are equal. None: values have more digits than steps could be found by."""

    @classmethod
    def of(cls, values: Floats) -> Steps:
        """Find the steps of values, none of them missing, exactly; O(n).

        Of values with many different decimals a few are enough to see it.
        """
        if not len(values):
            return cls()
        decimals = 0
        for looked_at in (values[:_LOOKED_AT_FIRST], values):
            with np.errstate(over="ignore", invalid="ignore"):
                while not (np.round(looked_at, decimals) == looked_at).all():
                    decimals += 1
                    if decimals > _MOST_DECIMALS:
                        return cls(step=None, first=0)
        if np.abs(values).max() * 10.0**decimals >= _WHOLE_DOUBLES:
            return cls(first=0, step=None if decimals else 1)
        whole = np.rint(values * 10.0**decimals).astype(np.int64)
        step = 0
        for apart in (whole[:_LOOKED_AT_FIRST] - whole[0], whole - whole[0]):
            if step != 1:
                step = int(np.gcd.reduce(apart[apart % step != 0] if step else apart, initial=step))
        return cls(decimals, int(whole[0]) % step if step else int(whole[0]), step)

    @classmethod
    def of_decimals(cls, decimals: int) -> Steps:
        """Return the steps of numbers with some decimals; −3: thousands."""
        return cls(max(decimals, 0), 0, 10 ** max(-decimals, 0))

    def merge(self, other: Steps) -> Steps:
        """Return the steps of the values of both."""
        if self.first is None or other.first is None:
            return other if self.first is None else self
        if self.step is None or other.step is None:
            return Steps(first=0, step=None)
        decimals = max(self.decimals, other.decimals)
        unit, other_unit = 10 ** (decimals - self.decimals), 10 ** (decimals - other.decimals)
        first = self.first * unit
        step = gcd(self.step * unit, other.step * other_unit, first - other.first * other_unit)
        return Steps(decimals, first % step if step else first, step)

    @property
    def are_whole(self) -> bool:
        """Whether all values are whole numbers."""
        return self.decimals == 0 and self.step is not None

    @property
    def size(self) -> float:
        """Length of a step; 0 if there is none."""
        return (self.step or 0) / 10.0**self.decimals

    def from_origin(self, origin: float) -> Steps:
        """Return the steps of the same values counted from another origin than 0."""
        if not origin or self.step is None or self.first is None:
            return self
        first = self.first - int(origin) * 10**self.decimals
        return replace(self, first=first % self.step if self.step else first)

    def no_finer(self, other: Steps | None) -> Steps:
        """Return the longer ones of two steps; these if all values are equal.

        >>> tenths = Steps.of_decimals(1)
        >>> Steps(2, 0, 1).no_finer(tenths), Steps(2, 0, 25).no_finer(tenths)
        (Steps(decimals=1, first=0, step=1), Steps(decimals=2, first=0, step=25))
        """
        one_value = self.step == 0 and self.first is not None
        return self if other is None or one_value or self.size >= other.size else other

    def nearest(self, values: Floats) -> Floats:
        """Round each value to the nearest step; NaN stays, and −0 becomes 0.

        >>> Steps(0, 2, 5).nearest(np.array([4.4, 4.6])).tolist()
        [2.0, 7.0]
        """
        return self.rounded(values, np.rint)

    def rounded(self, values: Floats, round_steps: Callable[[Floats], Floats]) -> Floats:
        """Round values by a function that rounds numbers of steps to whole ones."""
        if self.step is None or self.first is None:
            return values
        unit = 10.0**self.decimals
        if self.step == 0:
            return np.where(np.isnan(values), np.nan, self.first / unit)
        with np.errstate(over="ignore", invalid="ignore"):
            steps = round_steps((values * unit - self.first) / self.step)
            rounded = (steps * self.step + self.first) / unit
        # Values so large, or spread so narrowly, that they have no such decimals stay as they are.
        # Adding 0 turns −0 into 0: −0 would reveal that a mean is just below.
        return np.where(np.isfinite(rounded), rounded + 0.0, values)


def usual_steps(spread: float) -> Steps | None:
    """Return a power of ten of at most a millionth of ``spread``, a standard deviation; None: all digits.

    >>> usual_steps(25.0).decimals, usual_steps(3e7).decimals, usual_steps(0.0)
    (5, 0, None)
    """
    finest = _KEPT * spread
    if not 0 < finest < np.inf:
        return None
    return Steps.of_decimals(max(0, int(np.ceil(-np.log10(finest)))))
