"""What a file with swapped values gives away, counted: the chance to pick a row, and rows that stand.

Chance    Someone who knows all protected values, the groups and the known columns finds a person among the
          rows of the same group with the same known values: the joint class. Given the groups, the dealing
          makes all ways to match people and rows of a class equally likely, so the chance is the person's
          share of the rows of the class: 1 over its size, or more for a unit with several rows.
Standing  If nothing is untouched, no row belongs to one person. A row can still equal somebody's true
          values: the share of this is counted among the people who are alone with theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import combine
from microagg.measure.both_tables import Pair
from microagg.measure.classes import ClassSizes, classes
from microagg.measure.pairing import Pairing


class Chance(NamedTuple):
    """Chance to pick the row of a person, over all records."""

    largest: float
    mean: float


@dataclass(frozen=True)
class SwapFigures:
    """Figures of a release with swapped values."""

    chance: Chance | None
    """None: no column is untouched, so that no row is anybody's."""
    pairing: Pairing | None
    """The attack that uses how untouched columns go with protected ones; None: none is untouched."""
    standing: float
    """Share of the people who are alone with their true protected values for whom these stand in the file."""
    alone: int
    """Number of people who are alone with their true protected values."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        pairing = self.pairing
        return {
            "chance": None if self.chance is None else self.chance._asdict(),
            "pairing": None if pairing is None else {"rate": pairing.rate, "base": pairing.base},
            "standing": self.standing,
            "alone": self.alone,
        }


def chance_of(labels: Labels, units: Labels | None) -> Chance:
    """Count the largest share of one unit in the rows of each joint class.

    Parameters
    ----------
    labels : (n,) joint class of each row: groups of all blocks, strata, known columns
    units : (n,) unit of each row; None: every row is one

    >>> chance_of(np.array([0, 0, 0, 1, 1]), np.array([7, 7, 8, 1, 2])).largest
    0.6666666666666666
    """
    shares = largest_share(labels, np.arange(len(labels)) if units is None else units)
    return Chance(float(shares.max()), float(shares.mean()))


def chance_at_most(sizes: ClassSizes) -> Chance:
    """Return bounds of the chance from the sizes of all joint classes, if their rows are not at hand.

    Where records are units, they are exact. Where one unit has all rows that others do not need, its share of
    the class is the largest possible.

    >>> sizes = ClassSizes.of_labels(np.array([0, 0, 0, 1, 1]), np.array([7, 7, 8, 1, 2]))
    >>> chance_at_most(sizes).largest
    0.6666666666666666
    """
    most = sizes.records - sizes.units + 1
    mean = float(most @ sizes.classes) / sizes.n_records
    return Chance(float((most / sizes.records).max()), mean)


def largest_share(labels: Labels, units: Labels) -> Floats:
    """Return for each record the largest share of one unit in the rows of its class."""
    pairs, place = np.unique(np.column_stack([labels, units]), axis=0, return_inverse=True)
    rows = np.bincount(place.reshape(-1))
    most = np.zeros(int(labels.max()) + 1)
    np.maximum.at(most, pairs[:, 0], rows)
    return np.asarray((most / np.bincount(labels))[labels])


def standing(both: Pair) -> tuple[float, int]:
    """Return the share of the people alone with their protected values whose values are some row's.

    And the number of people who are alone with theirs.
    """
    before = both.classes_before
    alone = np.flatnonzero(np.bincount(before)[before] == 1)
    states = None
    if both.states is not None:
        states = np.column_stack([variable.states for variable in both.variables]), both.states
    people, rows = alone, np.arange(len(both))
    # Most people have some value that no row has: only the others are compared in all columns.
    for j in range(len(both.names)):
        true, released = both.original[people, j], both.protected[rows, j]
        people = people[_is_among(true, released)]
        rows = rows[_is_among(released, true)]
    if not len(people):
        return 0.0, len(alone)
    labels = classes(np.vstack([both.original[people], both.protected[rows]]))
    if states is not None:
        labels = combine([labels, *np.vstack([states[0][people], states[1][rows]]).T])
    stands = np.isin(labels[: len(people)], labels[len(people) :]).sum()
    return float(stands / len(alone)), len(alone)


def _is_among(values: Floats, others: Floats) -> NDArray[np.bool_]:
    """Return which values are among others; missing is a value."""
    found = np.isin(values, others)
    return found | (np.isnan(values) & np.isnan(others).any())
