"""Rates of attacks, their intervals, and the residual risk: what being in the file adds.

An attack that succeeds on a share a of the people in the file and on a share c of controls, people of the
same population who are not in it, has a residual risk of (a − c)/(1 − c): of those whom the attack would
fail if they were strangers, the share that it hits because they are in the file. Rates have Wilson's 95 %
intervals; the interval of the residual risk adds the distances to both rates' limits in squares, after the
linear terms of the formula (the method of variance estimates recovery, Zou & Donner 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_NORMAL_975 = 1.959963984540054


class Rate(NamedTuple):
    """A share of attacks that succeeded, with its 95 % interval."""

    share: float
    low: float
    high: float
    attacks: int
    weight: float
    """Number of independent attacks that vary as much."""
    pooled: float | None = None
    """The same for the mean over all columns of these people; None: as many as there are people."""

    @classmethod
    def of(
        cls, share: float, attacks: int, weight: float | None = None, pooled: float | None = None
    ) -> Rate:
        """Make a rate; ``weight`` is by default the number of attacks.

        >>> rate = Rate.of(0.5, 100)
        >>> round(rate.low, 3), round(rate.high, 3)
        (0.404, 0.596)
        """
        n = float(attacks if weight is None else weight)
        z = _NORMAL_975**2 / n
        middle = (share + z / 2) / (1 + z)
        half = float(np.sqrt(z * (share * (1 - share) + z / 4)) / (1 + z))
        # Rounding must not put the share outside its interval.
        low, high = max(min(middle - half, share), 0.0), min(max(middle + half, share), 1.0)
        return cls(float(share), float(low), float(high), attacks, n, pooled)

    def as_dict(self) -> dict[str, float]:
        """Plain data for JSON."""
        return {"share": self.share, "low": self.low, "high": self.high, "attacks": self.attacks}


def pooled_weight(hits: NDArray[np.bool_]) -> float:
    """Return the number of independent attacks whose rate varies as much as the mean over people and columns.

    ``hits`` (people, columns) tells which attacks succeeded. The people are independent, their columns not.

    >>> pooled_weight(np.array([[True, True], [False, False], [True, True], [False, False]]))
    4.0
    """
    people, columns = hits.shape
    share, variance = float(hits.mean()), float(hits.mean(axis=1).var())
    most = float(people * columns)
    return min(people * share * (1 - share) / variance, most) if variance > 0 else most


class Residual(NamedTuple):
    """The residual risk with its 95 % interval; below 0 where controls are hit more often."""

    share: float
    low: float
    high: float


@dataclass(frozen=True)
class AttackFigure:
    """One attack: on people in the file, on controls, and the naive guess."""

    attack: Rate
    baseline: Rate
    control: Rate | None = None

    @property
    def residual(self) -> Residual | None:
        """(attack − control)/(1 − control); None without controls, or if every control is hit."""
        if self.control is None or self.control.share >= 1:
            return None
        a, c = self.attack, self.control
        missed = 1 - c.share
        share = (a.share - c.share) / missed
        slope = (1 - a.share) / missed**2
        down = np.hypot((a.share - a.low) / missed, (c.high - c.share) * slope)
        up = np.hypot((a.high - a.share) / missed, (c.share - c.low) * slope)
        return Residual(share, float(share - down), float(min(share + up, 1.0)))

    @property
    def is_weak(self) -> bool:
        """Whether the attack is not surely better than the naive guess, so that it proves nothing."""
        return self.attack.low <= self.baseline.share

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "attack": self.attack.as_dict(),
            "control": None if self.control is None else self.control.as_dict(),
            "baseline": self.baseline.as_dict(),
            "residual": None if self.residual is None else self.residual._asdict(),
            "weak": self.is_weak,
        }


def mean_figure(figures: list[AttackFigure], *, same_people: bool) -> AttackFigure:
    """Average attacks: on several columns of the same people, or on people of several trials.

    Several columns of a person are no independent tries: how much the means of people vary decides the
    interval, and if that is not known, the interval is that of one column.
    """

    def mean(rates: list[Rate]) -> Rate:
        weights = [rate.weight for rate in rates]
        pooled = [rate.pooled for rate in rates if rate.pooled is not None]
        of_people = min(pooled) if len(pooled) == len(rates) else min(weights)
        return Rate.of(
            float(np.mean([rate.share for rate in rates])),
            sum(rate.attacks for rate in rates),
            of_people if same_people else sum(weights),
            None if same_people or len(pooled) < len(rates) else sum(pooled),
        )

    controls = [figure.control for figure in figures if figure.control is not None]
    return AttackFigure(
        mean([figure.attack for figure in figures]),
        mean([figure.baseline for figure in figures]),
        mean(controls) if controls else None,
    )
