"""Individual risk: how likely a record of a sample is the right one for a person of the population.

A combination of key values that f records of the sample share is shared by about F = Σw persons of the
population, by their sampling weights; :func:`microagg.grouping.require.weight_rules.individual_risk` has the
formula. Someone who finds one member of a household finds all: the risk of a household is 1 − Π(1 − r) over
its members. The sum of all risks is the number of records that are expected to be re-identified.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.grouping.require.weight_rules import individual_risk
from microagg.kernels.labels import combine


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
        figures: dict[str, Any] = {
            "max": self.largest,
            "mean": self.mean,
            "expected": self.expected,
        }
        if self.household is not None:
            figures["household"] = self.household.as_dict()
        return figures


def sample_risk(classes: Labels, weights: Floats, units: Labels | None = None) -> IndividualRisk:
    """Measure the risks of all records.

    ``weights`` are the persons of the population that each record stands for; ``units`` the households by
    number, −1 for a record in none.

    >>> found = sample_risk(np.array([0, 0, 1]), np.array([50.0, 50.0, 17.0]), np.array([0, 1, 1]))
    >>> round(found.largest, 4), round(found.expected, 4), round(found.household.largest, 4)
    (0.1771, 0.2146, 0.1925)
    """
    populations = np.bincount(classes, weights=weights)
    risks = individual_risk(np.bincount(classes), populations)[classes]
    household = None if units is None else _summary(household_risk(risks, units))
    return _summary(risks, household)


def household_risk(risks: Floats, units: Labels) -> Floats:
    """Risk of each record that any member of its household is found: 1 − Π(1 − r).

    >>> household_risk(np.array([0.02, 0.03, 0.03]), np.array([4, 4, 4])).round(3).tolist()
    [0.078, 0.078, 0.078]
    """
    alone = units < 0
    # A record without a household is one by itself.
    households = combine([np.where(alone, -1, units), np.where(alone, np.arange(len(units)), -1)])
    with np.errstate(divide="ignore"):
        logs = np.log1p(-np.minimum(risks, 1.0))
    return np.asarray(-np.expm1(np.bincount(households, weights=logs)[households]))


def _summary(risks: Floats, household: IndividualRisk | None = None) -> IndividualRisk:
    return IndividualRisk(
        largest=float(risks.max()),
        mean=float(risks.mean()),
        expected=float(risks.sum()),
        household=household,
        by_record=risks,
    )
