"""Individual risk: how likely a record of a sample is the right one for a person of the population.

A combination of key values that f records of the sample share is shared by about F = Σw persons of the
population, by their sampling weights. Given f, the number of these is taken to be negative binomial with
success probability p = f/F (Benedetti & Franconi 1998), and a record's risk is the expectation of 1 over
that number:

- f = 1: p/(1−p)·ln(1/p);
- f = 2: p/(1−p)²·(p·ln p + 1 − p);
- f ≥ 3: p/(f − (1 − p)), an approximation; exact is p^f/f·₂F₁(f, f; f+1; 1−p).

Whoever finds one member of a household finds all: its risk is 1 − Π(1 − r) over its members. The sum of all
risks is the number of records that are expected to be re-identified.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.errors import InputError
from microagg.measure.classes import combine

__all__ = ["Frequencies", "IndividualRisk", "frequencies", "individual_risk", "risk_of_frequencies"]

# As p nears 1 the formulas are 0/0; their limit is 1/f, and from here on a series is more exact.
_NEAR_ONE = 1e-4


@dataclass(frozen=True)
class Frequencies:
    """How many records share each record's key values, and how many persons of the population."""

    sample: Labels
    """f of each record."""
    population: Floats
    """F of each record: the sum of the weights."""


@dataclass(frozen=True)
class IndividualRisk:
    """Risks of records as a sample of a population; from 0 to 1, lower is safer."""

    largest: float
    mean: float
    expected: float
    """Records that are expected to be re-identified: the sum of the risks."""
    household: IndividualRisk | None = None
    """The same where finding one member of a household finds all; None without households."""
    by_record: Floats = field(repr=False, compare=False, default_factory=lambda: np.zeros(0))

    def without_records(self) -> IndividualRisk:
        """Return the figures without the risks of single records."""
        household = None if self.household is None else self.household.without_records()
        return replace(self, household=household, by_record=np.zeros(0))

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; without the risks of single records."""
        found: dict[str, Any] = {
            "max": self.largest,
            "mean": self.mean,
            "expected": self.expected,
        }
        if self.household is not None:
            found["household"] = self.household.as_dict()
        return found


def frequencies(keys: Labels, weights: Floats) -> Frequencies:
    """Count the records and the persons of each record's combination of key values.

    Parameters
    ----------
    keys : (n,) class of each record, or (n, q) level numbers of q key columns; −1 and up
    weights : (n,) persons of the population that each record stands for

    >>> found = frequencies(np.array([0, 0, 1]), np.array([10.0, 20.0, 5.0]))
    >>> found.sample.tolist(), found.population.tolist()
    ([2, 2, 1], [30.0, 30.0, 5.0])
    """
    if len(keys) != len(weights):
        raise InputError(
            f"Each record has one weight; there are {len(keys)} records and {len(weights)} weights."
        )
    if not (weights > 0).all():
        row = int(np.argmax(~(weights > 0))) + 1
        raise InputError(
            f"Sampling weights are numbers above 0; that of row {row} (the first record is row 1) is not. "
            "Drop such records."
        )
    labels = combine([keys] if keys.ndim == 1 else list(keys.T))
    population = np.bincount(labels, weights=weights).astype(np.float64)
    return Frequencies(np.bincount(labels)[labels], population[labels])


def risk_of_frequencies(sample: Labels, population: Floats, exact: bool = False) -> Floats:
    """Risk of each record by its frequencies, see the head of this file.

    With ``exact``, those of f ≥ 3 by the hypergeometric function.

    >>> risk_of_frequencies(np.array([1, 2, 3]), np.array([17.0, 100.0, 108.0])).round(6).tolist()
    [0.177076, 0.018779, 0.013699]
    """
    f = np.asarray(sample, dtype=np.float64)
    # A weight below 1 stands for a whole person all the same.
    with np.errstate(over="ignore"):
        p = np.minimum(f / np.asarray(population, dtype=np.float64), 1.0)
    q = 1 - p
    close = q < _NEAR_ONE
    safe_q = np.where(close, 0.5, q)
    log_p = np.log(p)
    one = np.where(close, 1 - q / 2, -p / safe_q * log_p)
    two = np.where(close, 0.5 - q / 3, p / safe_q**2 * (p * log_p + q))
    if exact:
        from scipy.special import hyp2f1

        # By Euler's transformation, whose series converges for every p.
        more = p / f * hyp2f1(1.0, 1.0, f + 1, q)
    else:
        more = p / (f - q)
    return np.where(f == 1, one, np.where(f == 2, two, more))


def individual_risk(
    keys: Labels, weights: Floats, units: Labels | None = None, *, exact: bool = False
) -> IndividualRisk:
    """Measure the risks of all records.

    Parameters
    ----------
    keys : (n,) class of each record, or (n, q) level numbers of q key columns; −1 and up
    weights : (n,) persons of the population that each record stands for
    units : (n,) household of each record, by number; −1: in none
    exact : by the hypergeometric function where three records or more agree

    >>> found = individual_risk(np.array([0, 0, 1]), np.array([50.0, 50.0, 17.0]), np.array([0, 1, 1]))
    >>> round(found.largest, 4), round(found.expected, 4), round(found.household.largest, 4)
    (0.1771, 0.2146, 0.1925)
    """
    found = frequencies(keys, weights)
    risks = risk_of_frequencies(found.sample, found.population, exact)
    household = None if units is None else _summary(household_risk(risks, units))
    return _summary(risks, household)


def household_risk(risks: Floats, units: Labels) -> Floats:
    """Risk of each record that any member of its household is found: 1 − Π(1 − r).

    >>> household_risk(np.array([0.02, 0.03, 0.03]), np.array([4, 4, 4])).round(3).tolist()
    [0.078, 0.078, 0.078]
    """
    alone = units < 0
    # A record without a household is one by itself.
    own = combine([np.where(alone, -1, units), np.where(alone, np.arange(len(units)), -1)])
    with np.errstate(divide="ignore"):
        logs = np.log1p(-np.minimum(risks, 1.0))
    return np.asarray(-np.expm1(np.bincount(own, weights=logs)[own]))


def _summary(risks: Floats, household: IndividualRisk | None = None) -> IndividualRisk:
    return IndividualRisk(
        largest=float(risks.max()),
        mean=float(risks.mean()),
        expected=float(risks.sum()),
        household=household,
        by_record=risks,
    )
