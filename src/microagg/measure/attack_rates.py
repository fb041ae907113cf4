"""Rates of attacks, their intervals, and the residual risk: what being in the file adds.

An attack that succeeds on a share a of the people in the file and on a share c of controls, people of the
same population who are not in it, has a residual risk of (a − c)/(1 − c): of those whom the attack would
fail if they were strangers, the share that it hits because they are in the file. Rates have Wilson's 95 %
intervals; the interval of the residual risk adds the distances to both rates' limits in squares, after the
linear terms of the formula (the method of variance estimates recovery, Zou & Donner 2008).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_NORMAL_975 = 1.959963984540054


def wilson(share: float, n: float) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a mean of n independent values from 0 to 1.

    It is made for values of 0 and 1; values between vary less, so that it is wide enough for them.

    >>> wilson(0.0, 10)[0], round(wilson(0.0, 10)[1], 3)
    (0.0, 0.278)
    """
    z = _NORMAL_975**2 / n
    middle = (share + z / 2) / (1 + z)
    half = float(np.sqrt(z * (share * (1 - share) + z / 4)) / (1 + z))
    # Rounding must not put the share outside its interval.
    return float(max(min(middle - half, share), 0.0)), float(min(max(middle + half, share), 1.0))


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
        return cls(float(share), *wilson(share, n), attacks, n, pooled)

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
            "control": self.control and self.control.as_dict(),
            "baseline": self.baseline.as_dict(),
            "residual": self.residual and self.residual._asdict(),
            "weak": self.is_weak,
        }


def mean_over_columns(figures: Sequence[AttackFigure]) -> AttackFigure:
    """Average attacks on several columns of the same people.

    Several columns of a person are no independent tries: how much the means of people vary decides the
    interval, and if that is not known, the interval is that of one column.
    """

    def weights(rates: Sequence[Rate]) -> tuple[float, None]:
        return min(rate.weight if rate.pooled is None else rate.pooled for rate in rates), None

    return _mean_figure(figures, weights, weights)


def mean_over_trials(
    figures: Sequence[AttackFigure], people: int, tried: tuple[int, int]
) -> AttackFigure:
    """Average attacks on random parts of the same people.

    Who was attacked in an earlier trial is no further person: the interval is that of as many people as
    are expected to have been attacked at least once.

    ``figures`` are one of each trial, ``people`` the originals and controls together, ``tried`` those
    originals, and those controls, that were attacked in each trial.

    >>> figure = AttackFigure(Rate.of(0.3, 90), Rate.of(0.1, 90), Rate.of(0.1, 10))
    >>> mean = mean_over_trials([figure] * 3, 100, (90, 10))
    >>> round(mean.attack.weight), round(mean.control.weight), mean.attack.attacks
    (100, 27, 270)
    """

    def weights(tried: int, rates: Sequence[Rate]) -> tuple[float, float | None]:
        reached = people * (1 - (1 - tried / people) ** len(rates))
        new = reached / (tried * len(rates))  # share of the attacks that are on further people
        pooled = [rate.pooled for rate in rates if rate.pooled is not None]
        of_columns = new * sum(pooled) if len(pooled) == len(rates) else None
        return new * sum(rate.weight for rate in rates), of_columns

    return _mean_figure(figures, *(partial(weights, count) for count in tried))


_Weights = Callable[[Sequence[Rate]], tuple[float, float | None]]


def _mean_figure(
    figures: Sequence[AttackFigure], of_originals: _Weights, of_controls: _Weights
) -> AttackFigure:
    """Average figures; functions of rates give what their mean weighs, and what if pooled over columns."""

    def mean(rates: Sequence[Rate], weights: _Weights) -> Rate:
        attacks = sum(rate.attacks for rate in rates)
        return Rate.of(float(np.mean([rate.share for rate in rates])), attacks, *weights(rates))

    controls = [figure.control for figure in figures if figure.control is not None]
    return AttackFigure(
        mean([figure.attack for figure in figures], of_originals),
        mean([figure.baseline for figure in figures], of_originals),
        mean(controls, of_controls) if controls else None,
    )
