"""Whose row is whose: the pairing attack, and what a file with swapped values gives away, counted.

The attack matches people and rows within a class through columns that were left as they are. Of swapped
values stand beside it:

Chance    Someone who knows all protected values, the groups and the known columns finds a person among the
          rows of the same group with the same known values: the joint class. Given the groups, the dealing
          makes all ways to match people and rows of a class equally likely, so the chance is the person's
          share of the rows of the class: 1 over its size, or more for a unit with several rows.
Standing  If nothing is untouched, no row belongs to one person. A row can still equal somebody's true
          values: the share of this is counted among the people who are alone with theirs.

The attack:

Problem   In a class (records of one group that agree in strata and known columns) an attacker knows which
          people and which rows belong together as sets, but not which row is whose: by chance 1 pick in
          the class's size is right. Untouched columns, such as a confidential wage, are unknown to the
          attacker, but they go with the protected ones, and the attacker knows each person's true values
          of these.
Idea      The file itself shows how untouched columns go with protected ones: groups differ in both. A
          ridge regression of the group means of untouched coordinates on the group means of the released
          protected ones, its penalty by generalised cross-validation, needs nothing but the file. Applied
          to a person's true values it predicts that person's untouched coordinates. Within each class
          people and rows are then paired so that the sum of squared distances between predicted and
          released coordinates, in units of the residual spread, is least. For one coordinate this pairs by
          rank. It works against means and against swapping alike: neither changes untouched columns.
Ties      Rows with equal untouched values, and people with equal predictions, cannot be told apart. Each
          counts with the chance that a random choice among them is right, so that row order plays no part.
Error     If untouched columns say nothing, the assignment in a class is as good as a random one, and the
          number of right pairs has mean 1 and a variance that is known exactly (Hoeffding 1951, A
          combinatorial central limit theorem, theorem 2). The standard error is that of the difference
          between rate and base if chance alone were at work.
Cost      O(n c² + c³) for the regression, the cube of its size for each class; beyond 20,000 people a seeded
          sample of whole classes. A class of more than 400 people is paired by rank along the one
          direction that the regression predicts best.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.kernels.labels import combine, group_means
from microagg.measure.both_tables import Pair
from microagg.measure.classes import ClassSizes, classes

MOST_PEOPLE = 20_000
_MOST_LEVELS = 30  # of a category: rarer ones hardly tell more
_LARGE_CLASS = 400  # beyond it, pairing by rank replaces the assignment, whose cost is cubic
_SAME = 1e-9  # predictions that differ by less, in units of residual spread, are the same person's
_PENALTIES = np.logspace(-8, 4, 49)  # of the ridge, relative to the mean eigenvalue


class Pairing(NamedTuple):
    """How often the pairing attack finds a person's own row, and how often chance would."""

    rate: float
    """Share of people paired with their own row."""
    base: float
    """The same by chance: the mean over people of 1 over the size of their class."""
    error: float
    """Standard error of ``rate − base`` if untouched columns said nothing."""
    people: int
    """People tried: all, or those of the sampled classes."""

    def is_above(self, promised: float) -> bool:
        """Return whether the rate is over three standard errors above what was promised, such as 1/k."""
        return self.rate > max(self.base, promised) + 3 * self.error + _SAME


def untouched_coordinates(codes: Labels, values: Floats | None) -> Floats:
    """Return the coordinates, (n, u), of a column that was left as it is, for :func:`pairing_attack`.

    Parameters
    ----------
    codes : (n,) a number for each different value, −1: missing; each of the most frequent is a coordinate
    values : (n,) numbers, NaN: missing, which become the value over its spread and whether it is missing;
        None: the column is one of categories

    >>> untouched_coordinates(np.array([0, 1, 1]), None).tolist()
    [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    """
    if values is None:
        levels, often = np.unique(codes, return_counts=True)
        frequent = levels[np.argsort(-often, kind="stable")][:_MOST_LEVELS]
        return np.asarray(codes[:, None] == frequent[None, :], dtype=np.float64)
    missing = np.isnan(values)
    there = values[~missing]
    if not len(there):
        return np.zeros((len(values), 1))
    middle = float(np.median(there))
    spread = float((there - middle).std()) or 1.0
    scaled = np.where(missing, 0.0, (values - middle) / spread)
    return np.column_stack([scaled, missing.astype(np.float64)])


def pairing_attack(
    classes: Labels,
    groups: Labels,
    original: Floats,
    released: Floats,
    untouched: Floats,
    *,
    most: int = MOST_PEOPLE,
) -> Pairing:
    """Pair people and rows within each class, and count the pairs that are right.

    Row i of every array belongs to person i; the attack uses this for counting only. If no untouched column
    varies, no attack is possible, and the rate is the base.

    Parameters
    ----------
    classes : (n,) whole numbers; records that an attacker cannot tell apart by group, strata and known
        columns have the same one
    groups : (n,) whole numbers, the group of each released row
    original : (n, c) true protected values of people, as coordinates (scaled numbers, one-hot categories)
    released : (n, c) released protected values of rows, in the same coordinates
    untouched : (n, u) values of rows in columns left as they are that the attacker does not know about
        people, see :func:`untouched_coordinates`
    most : about the number of people beyond which classes are sampled

    >>> classes = np.array([0, 0, 0, 1, 1, 1])
    >>> age = np.array([[20.0], [30.0], [40.0], [50.0], [60.0], [70.0]])
    >>> means = np.array([[30.0], [30.0], [30.0], [60.0], [60.0], [60.0]])
    >>> pairing = pairing_attack(classes, classes, age, means, 2 * age)
    >>> pairing.rate, round(pairing.base, 3)
    (1.0, 0.333)
    """
    n = len(classes)
    order = np.argsort(classes, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(classes[order])) + 1) if n else []
    if n > most:
        order = np.random.default_rng(0).permutation(len(members))
        upto = np.cumsum([len(members[at]) for at in order])
        chosen = order[: max(1, int(np.searchsorted(upto, most, "right")))]
        members = [members[at] for at in chosen]
    people = sum(map(len, members))
    if not people:
        return Pairing(0.0, 0.0, 0.0, 0)
    base = len(members) / people
    varying = np.ptp(untouched, axis=0) > 0
    if not varying.any():
        return Pairing(base, base, 0.0, people)
    tried, untouched = np.concatenate(members), untouched[:, varying]
    predicted, actual = _in_residual_units(groups, released, untouched, original[tried], tried)
    right, variance, start = 0.0, 0.0, 0
    for rows in members:
        here = slice(start, start + len(rows))
        pairs, spread = _pair_class(predicted[here], actual[here])
        right, variance, start = right + pairs, variance + spread, here.stop
    return Pairing(right / people, base, float(np.sqrt(variance)) / people, people)


def _in_residual_units(
    groups: Labels, released: Floats, untouched: Floats, people: Floats, rows: Labels
) -> tuple[Floats, Floats]:
    """Return predicted untouched coordinates of people and actual ones of rows, residuals being spherical.

    The regression sees the released file only: group means of ``released`` and of ``untouched``. The first
    coordinate is the one that is predicted best.
    """
    centre, level = released.mean(axis=0), untouched.mean(axis=0)
    U = untouched - level
    numbers = np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(numbers).astype(np.float64)
    X, Y = (
        np.column_stack([group_means(column, numbers) for column in values.T])
        for values in (released - centre, U)
    )
    slope = _ridge(X, Y, sizes)
    residual = U - (X @ slope)[numbers]
    values, vectors = np.linalg.eigh(residual.T @ residual / max(len(U), 1))
    # Directions without residual are linear combinations of others, or predicted to the last digit: these
    # get the smallest unit that rounding leaves.
    unit = np.sqrt(np.maximum(values, 1e-12 * np.square(U).mean() + 1e-300))
    whiten = vectors / unit
    fitted = X @ slope @ whiten
    _, turn = np.linalg.eigh((fitted * sizes[:, None]).T @ fitted)
    whiten = whiten @ turn[:, ::-1]
    return (people - centre) @ slope @ whiten, U[rows] @ whiten


def _ridge(X: Floats, Y: Floats, weights: Floats) -> Floats:
    """Return the (c, u) slope of Y on X; both have a weighted mean of 0.

    One penalty for all columns of Y, by generalised cross-validation with groups as the observations.
    """
    root = np.sqrt(weights)[:, None]
    values, vectors = np.linalg.eigh((X * weights[:, None]).T @ X)
    values = np.maximum(values, 0.0)
    if not len(values) or values[-1] <= 0 or not Y.shape[1]:
        return np.zeros((X.shape[1], Y.shape[1]))
    there = values > 1e-12 * values[-1]
    values, vectors = values[there], vectors[:, there]
    scale = np.square(Y * root).sum(axis=0)
    share = np.square(vectors.T @ (X * weights[:, None]).T @ Y) / np.where(scale > 0, scale, 1.0)
    explained = share.sum(axis=1) / values  # of all columns, each in units of its own spread
    total, g = float(np.count_nonzero(scale)), len(X)
    penalties = _PENALTIES * values.mean()
    kept = values / (values + penalties[:, None])
    residual = total - explained.sum() + (explained * (1 - kept) ** 2).sum(axis=1)
    freedom = np.maximum(1 - (1 + kept.sum(axis=1)) / g, 1e-300)
    penalty = penalties[np.argmin(residual / np.square(freedom))]
    weight = (vectors / (values + penalty)) @ vectors.T
    slope: Floats = weight @ ((X * weights[:, None]).T @ Y)
    return slope


def _pair_class(predicted: Floats, actual: Floats) -> tuple[float, float]:
    """Return the expected number of right pairs in one class, and its variance under chance alone."""
    from scipy.optimize import linear_sum_assignment

    n = len(predicted)
    if n == 1:
        return 1.0, 0.0
    if n > _LARGE_CLASS:
        predicted, actual = predicted[:, :1], actual[:, :1]
    person, alike = _numbered(predicted)
    row, equal = _numbered(actual)
    if predicted.shape[1] == 1:
        chosen = np.empty(n, np.int64)
        chosen[np.argsort(predicted[:, 0], kind="stable")] = np.argsort(actual[:, 0], kind="stable")
    else:
        # The squares of predicted and of actual coordinates are the same for every assignment.
        chosen = linear_sum_assignment(-(predicted @ actual.T))[1]
    cells, number = np.unique(person * n + row[chosen], return_inverse=True)
    often = np.bincount(number)
    # Of each pair in such a cell to be chosen.
    chance = often / (alike[cells // n] * equal[cells % n])
    at = np.searchsorted(cells, person * n + row)
    at[at == len(cells)] = 0
    right = float(chance[at][cells[at] == person * n + row].sum())
    # Hoeffding's variance of Σ c(i, π(i)) for random π; all row and column sums of c are 1.
    variance = float((chance**2 * alike[cells // n] * equal[cells % n]).sum() - 1) / (n - 1)
    return right, max(variance, 0.0)


def _numbered(points: Floats) -> tuple[Labels, Labels]:
    """Return a number for each point, the same for equal ones up to rounding, and how often each occurs."""
    columns = []
    for column in points.T:
        order = np.argsort(column, kind="stable")
        columns.append(np.empty(len(points), np.int64))
        columns[-1][order] = np.cumsum(np.diff(column[order], prepend=column[order[0]]) > _SAME)
    numbers = combine(columns)
    return numbers, np.bincount(numbers)


class Chance(NamedTuple):
    """Chance to pick the row of a person, over all records."""

    largest: float
    mean: float


class SwapFigures(NamedTuple):
    """Figures of a release with swapped values."""

    chance: Chance | None
    """None: no column is untouched, so that no row is anybody's."""
    standing: float
    """Share of the people who are alone with their true protected values for whom these stand in the file."""
    alone: int
    """Number of people who are alone with their true protected values."""


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
    """Return bounds of the chance from the ``sizes`` of all joint classes, if their rows are not at hand.

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
    """Return for each record the largest share of one unit in the rows of its class.

    ``labels`` (n,) number the classes 0, 1, …; ``units`` (n,) the units.
    """
    pairs, place = np.unique(np.column_stack([labels, units]), axis=0, return_inverse=True)
    rows = np.bincount(place.reshape(-1))
    most = np.zeros(int(labels.max()) + 1)
    np.maximum.at(most, pairs[:, 0], rows)
    return np.asarray((most / np.bincount(labels))[labels])


def standing(both: Pair) -> tuple[float, int]:
    """Return the share of people alone with their true values to whom some row is equal, and their number.

    ``both`` are the original and the released table.
    """
    before = both.classes_before
    alone = np.flatnonzero(np.bincount(before)[before] == 1)
    if not len(alone):
        return 0.0, 0
    labels = classes(np.vstack([both.original[alone], both.protected]))
    if both.states is not None:
        states = np.column_stack([variable.states[alone] for variable in both.variables])
        labels = combine([labels, *np.vstack([states, both.states]).T])
    people, rows = np.split(labels, [len(alone)])
    return float(np.isin(people, rows).mean()), len(alone)
