"""The figure of the worst group for each requirement: what a board reads beside pass or fail."""

from __future__ import annotations

import numpy as np

from microagg.base.formatting import number, percent, share
from microagg.base.typing import Floats, Labels
from microagg.grouping.require.closeness import Closeness
from microagg.grouping.require.distinct import Distinct
from microagg.grouping.require.dominance import LargestShare, PPercent
from microagg.grouping.require.entropy import Entropy
from microagg.grouping.require.individual_risk import IndividualRisk, individual_risk
from microagg.grouping.require.population import Population
from microagg.grouping.require.recursive import Recursive
from microagg.grouping.require.requirement import Requirement, by_group, demands_of
from microagg.grouping.require.units import Units

__all__ = ["figure_words", "holds", "worse", "worst", "worst_figure"]


def holds(requirement: Requirement, labels: Labels) -> bool:
    """Whether all groups 0, 1, … satisfy a requirement.

    >>> holds(Distinct(np.array([0, 1, 2, 2]), 2), np.array([0, 0, 1, 1]))
    False
    """
    from microagg.kernels.require_demands import violations

    rows, start = by_group(labels)
    return not violations(demands_of([requirement], len(labels)), rows, start, 1).any()


def worst(requirement: Requirement, labels: Labels) -> str:
    """Say the figure of the worst group, in the unit of the requirement; no group is named.

    >>> worst(Distinct(np.array([0, 1, 2, 2]), 2), np.array([0, 0, 1, 1]))
    '1'
    """
    return figure_words(requirement, worst_figure(requirement, labels))


def worse(requirement: Requirement, one: float, other: float) -> float:
    """Return the worse of two figures, of groups of different records."""
    at_most = isinstance(requirement, Recursive | Closeness | LargestShare | IndividualRisk)
    return max(one, other) if at_most else min(one, other)


def figure_words(requirement: Requirement, figure: float) -> str:
    """Say a figure in the unit of the requirement."""
    if isinstance(requirement, Units | Distinct | Population):
        return number(int(figure))
    if isinstance(requirement, PPercent | LargestShare):
        return percent(figure)
    return share(figure) if isinstance(requirement, IndividualRisk) else f"{figure:.3g}"


def worst_figure(requirement: Requirement, labels: Labels) -> float:
    """Return the figure of the worst group."""
    if isinstance(requirement, Units):
        return float(_distinct(requirement.units, labels).min())
    if isinstance(requirement, Distinct):
        return float(_distinct(requirement.codes, labels).min())
    if isinstance(requirement, Entropy):
        return float(_entropies(requirement.codes, labels).min())
    if isinstance(requirement, Recursive):
        return float(_ratios(requirement, labels).max())
    if isinstance(requirement, Closeness):
        return float(_distances(requirement, labels).max())
    if isinstance(requirement, PPercent):
        largest = _contributions(requirement.amounts, requirement.units, labels, 2)
        rest = largest[0] - largest[1].sum(axis=1)
        first = largest[1][:, 0]
        found = np.divide(100 * rest, first, out=np.full(len(rest), np.inf), where=first > 0)
        return float(found.min())
    if isinstance(requirement, LargestShare):
        totals, most = _contributions(
            requirement.amounts, requirement.units, labels, requirement.count
        )
        sums = most.sum(axis=1)
        found = np.divide(sums, totals, out=np.zeros(len(sums)), where=totals > 0)
        return 100 * float(found.max())
    if isinstance(requirement, Population):
        return float(np.bincount(labels, weights=requirement.weights).min())
    if isinstance(requirement, IndividualRisk):
        mass = _sums(requirement.weights, labels)
        return float(individual_risk(np.bincount(labels), mass).max())
    raise TypeError(f"no figure for {type(requirement).__name__}")


def _sums(values: Floats, labels: Labels) -> Floats:
    return np.asarray(np.bincount(labels, weights=values), dtype=np.float64)


def _counts(codes: Labels, labels: Labels) -> tuple[Labels, Labels]:
    """Group and number of records of each value that a group has."""
    own = np.unique(codes, return_inverse=True)[1].reshape(-1)
    m = int(own.max()) + 1
    pairs, counts = np.unique(labels * m + own, return_counts=True)
    return pairs // m, counts


def _distinct(codes: Labels, labels: Labels) -> Labels:
    group, _ = _counts(codes, labels)
    return np.bincount(group)


def _entropies(codes: Labels, labels: Labels) -> Floats:
    """Exponential of the entropy of each group: the number of equally frequent values that has it."""
    group, counts = _counts(codes, labels)
    shares = counts / np.bincount(labels)[group]
    return np.asarray(np.exp(-_sums(shares * np.log(shares), group)))


def _ratios(wanted: Recursive, labels: Labels) -> Floats:
    """Most frequent value over all from the l-th most frequent on, of each group; must be below c."""
    group, counts = _counts(wanted.codes, labels)
    order = np.lexsort((-counts, group))
    group, counts = group[order], counts[order]
    place = np.arange(len(group)) - np.searchsorted(group, group)
    tail = np.bincount(group, weights=np.where(place >= wanted.least - 1, counts, 0))
    first = np.bincount(group, weights=np.where(place == 0, counts, 0))
    found: Floats = np.divide(first, tail, out=np.full(len(first), np.inf), where=tail > 0)
    return found


def _distances(wanted: Closeness, labels: Labels) -> Floats:
    """Earth mover's distance of each group from the whole table: how far it is from a t of 0."""
    from dataclasses import replace

    from microagg.kernels.require_demands import violations

    rows, start = by_group(labels)
    alike = demands_of([replace(wanted, most=0.0)], len(labels))
    return np.asarray(violations(alike, rows, start, 1))


def _contributions(
    amounts: Floats, units: Labels | None, labels: Labels, count: int
) -> tuple[Floats, Floats]:
    """Total of each group, and its largest contributions, (g, count); those of one unit are added."""
    if units is None:
        group, added = labels, amounts
    else:
        own = np.unique(units, return_inverse=True)[1].reshape(-1)
        m = int(own.max()) + 1
        pairs, place = np.unique(labels * m + own, return_inverse=True)
        group, added = pairs // m, _sums(amounts, place.reshape(-1))
    order = np.lexsort((-added, group))
    group, added = group[order], added[order]
    place = np.arange(len(group)) - np.searchsorted(group, group)
    largest = np.zeros((int(labels.max()) + 1, count))
    among = place < count
    largest[group[among], place[among]] = added[among]
    return _sums(amounts, labels), largest
