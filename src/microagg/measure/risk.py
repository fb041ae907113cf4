"""Risk: what someone who knows the true values of a record can still find out.

Groups disclose confidential values although their records look alike: someone who knows that a person is
among the records of a group still learns a confidential value if all of them have it, or, for numbers, if all
have nearly the same. A value that at least half of all records have is no news, nor is a number that more
than a tenth have (an income of 0), so that only records with a rarer value are counted. The rule is
:func:`microagg.grouping.require.value_rules.nearness`. Beside it stand, of the worst class:

- distinct l-diversity: the number of different values (Machanavajjhala et al. 2007);
- entropy l-diversity: exp(−Σ p·ln p), the number of values if they were equally frequent;
- t-closeness: the earth mover's distance of the class to the whole table (Li, Li & Venkatasubramanian
  2007). For numbers, values are ranked 1..m and the distance of two neighbours is 1/(m−1):
  EMD = Σᵢ|Σ_{j≤i}(p_j−q_j)|/(m−1). For other values all are equally far: EMD = ½·Σ|p−q|.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microagg.base.formatting import names, plural
from microagg.base.typing import Floats, Labels
from microagg.errors import DisclosureRiskWarning, InputError, shown
from microagg.grouping.require.amount_rules import individual_risk
from microagg.grouping.require.from_plan import values_and_numbers
from microagg.grouping.require.value_rules import nearness
from microagg.kernels.labels import canonical_labels, group_sizes
from microagg.measure.both_tables import Pair, pair
from microagg.measure.classes import ClassSizes, missing_alone
from microagg.measure.linkage import Linkage, check_sample, link
from microagg.plan.settings import check_k
from microagg.tables.frame import Frame, choose_columns

_NAMED = 6  # columns that a sentence names


@dataclass(frozen=True)
class IndividualRisk:
    """How likely records of a sample are the right ones for a person of the population; lower is safer.

    A combination of key values that f records of the sample share is shared by about F = Σw persons of the
    population, by their sampling weights; :func:`microagg.grouping.require.amount_rules.individual_risk` has
    the formula. Someone who finds one member of a household finds all: the risk of a household is
    1 − Π(1 − r) over its members.
    """

    largest: float
    mean: float
    expected: float
    """Records that are expected to be re-identified: the sum of the risks."""
    household: IndividualRisk | None = None
    """The same where finding one member of a household finds all; None without households."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        household = {} if self.household is None else {"household": self.household.as_dict()}
        return {"max": self.largest, "mean": self.mean, "expected": self.expected, **household}


@dataclass(frozen=True)
class Risk:
    """Measures of disclosure risk; shares of records are from 0 to 1, lower is safer.

    A class is a set of records with equal protected values; missing is a value. Linkage is
    computed when first asked for.
    """

    smallest_class: int
    """Records in the smallest class of equal protected values: the k that really holds."""
    below_k: float | None
    """Share of records in classes of fewer than k; None if no k was given. Must be 0."""
    unique_before: float
    """Share of records whose original values no other record has."""
    unique_after: float
    """The same in the protected table."""
    blind_guess: float
    """Share of records that an attacker links who guesses without looking: 1/n."""
    diversity: dict[Any, Diversity]
    """Each confidential column: l-diversity and t-closeness of the classes."""
    individual: IndividualRisk | None
    """Risk of the records as a sample from a population; None without weights."""
    _link: Linkage | Callable[..., Linkage] = field(repr=False, compare=False)
    """The linkage, or what computes it."""

    @classmethod
    def of(cls, classes: ClassSizes, unique_before: int, k: int | None, **others: Any) -> Risk:
        """Return the risk by the sizes of all classes; ``others`` are the fields that these do not tell."""
        n = classes.n_records
        return cls(
            smallest_class=classes.smallest,
            below_k=None if k is None else classes.records_below(k) / n,
            unique_before=unique_before / n,
            unique_after=classes.unique / n,
            blind_guess=1 / n,
            **others,
        )

    @cached_property
    def linkage(self) -> Linkage:
        """Distance-based record linkage; with its interval, if it was sampled."""
        return self._link if isinstance(self._link, Linkage) else self._link()

    def linked(self, progress: Callable[[int], None] | None = None) -> Risk:
        """Return the risk with its linkage computed now, telling ``progress`` the number of records done."""
        if isinstance(self._link, Linkage):
            return self
        return replace(self, _link=self._link(progress=progress))

    @property
    def record_linkage(self) -> float:
        """Share of records that an attacker with the true values links to their protected twin."""
        return self.linkage.share

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        figures = ("smallest_class", "below_k", "unique_before", "unique_after", "blind_guess")
        return {
            **{name: getattr(self, name) for name in figures},
            "record_linkage": self.record_linkage,
            "linkage": asdict(self.linkage),
            "diversity": {
                str(name): {
                    "distinct_l": column.distinct_l,
                    "entropy_l": column.entropy_l,
                    "t": column.t,
                    "records_with_rare_value": column.agreement.exact,
                    "records_within_5_percent": column.agreement.close,
                }
                for name, column in self.diversity.items()
            },
            **({} if self.individual is None else {"individual": self.individual.as_dict()}),
        }


def risk(
    original: Any,
    protected: Any,
    columns: Iterable[Any] | None = None,
    *,
    k: int | None = None,
    confidential: Iterable[Any] = (),
    sample: int | None = None,
    random_state: int | None = 0,
    kinds: Mapping[Any, Any] | None = None,
    weights: Any = None,
    unit: Any = None,
) -> Risk:
    """Measure what an attacker gains from the protected table.

    Parameters
    ----------
    original, protected : frames or array-likes with the same rows in the same order
    columns : names to compare, of any kind; by default the numeric columns that both have, confidential
        ones aside
    k : promised class size, for ``below_k``
    confidential : columns whose values must not come out although records look alike: l-diversity
        and t-closeness of each class, as released
    sample : link this number of records only, chosen at random; ``linkage`` then has an interval
    random_state : seed of that choice
    kinds : of some columns, where their type does not say it, as for :func:`microagg.utility`
    weights : name of the original's column of sampling weights, for ``individual``
    unit : name of the original's column of households, for the household risk

    Returns
    -------
    Risk
        ``record_linkage`` is distance-based: each original record is compared with all
        protected ones (z-scores of the original, categories as the grouping has them) and guessed
        to be one of the nearest; if its own is among m equally near ones, that counts 1/m.

    Warns
    -----
    DisclosureRiskWarning
        If a class discloses a confidential value that fewer than half of all records have.

    >>> r = risk([1.0, 2.0, 8.0, 9.0], [1.5, 1.5, 8.5, 8.5])
    >>> r.smallest_class, r.unique_before, r.unique_after, r.record_linkage
    (2, 1.0, 0.0, 0.5)
    """
    confidential = (confidential,) if isinstance(confidential, str) else tuple(confidential)
    aside = [*confidential, *([] if unit is None else [unit])]
    both = pair(original, protected, columns, leave_out=aside, kinds=kinds, weights=weights)
    units = None
    if unit is not None:
        before, _ = both.frames("A unit")
        choose_columns(before, [unit])
        units = before.levels(unit)[0]
    figures = risk_of(both, k, confidential, sample=sample, random_state=random_state, units=units)
    if warning := agreement_words(
        {name: column.agreement for name, column in figures.diversity.items()}
    ):
        warnings.warn(warning, DisclosureRiskWarning, stacklevel=2)
    return figures


def risk_of(
    both: Pair,
    k: int | None = None,
    confidential: Sequence[Any] = (),
    *,
    sample: int | None = None,
    random_state: int | None = 0,
    units: Labels | None = None,
) -> Risk:
    """Measure the risk of ``both`` tables.

    ``k``, ``confidential``, ``sample`` and ``random_state`` are as for :func:`risk`; ``units`` (n,) has the
    household of each record, for the risk of households where records have weights.
    """
    check_sample(sample)
    before, after = map(ClassSizes.of_labels, (both.classes_before, both.classes))
    if k is not None:
        check_k(k, max(len(both), k))
    by_column = {}
    for name in confidential:
        _, table = both.frames("A confidential column")
        choose_columns(table, [name])
        if name in both.names:
            raise InputError(
                f"Column {shown(name)} is protected, so that all records of a group agree in it; a "
                "confidential column is one left as it was. Name another, or leave it out."
            )
        by_column[name] = diversity(table, name, both.released_classes)
    return Risk.of(
        after,
        before.unique,
        k,
        diversity=by_column,
        individual=individual_of(both, units),
        _link=partial(link, both, sample=sample, random_state=random_state),
    )


def individual_of(both: Pair, units: Labels | None) -> IndividualRisk | None:
    """Measure the risks of the records; None without weights. ``units`` are as for :func:`risk_of`."""
    if both.weights is None:
        return None
    return sample_risk(both.classes, both.weights * both.mean_weight, units)


def sample_risk(classes: Labels, weights: Floats, units: Labels | None = None) -> IndividualRisk:
    """Measure the risks of all records.

    Parameters
    ----------
    classes : (n,) class of each record by its key values
    weights : (n,) persons of the population that each record stands for
    units : (n,) household of each record by number, −1 for a record in none; None: without households

    >>> found = sample_risk(np.array([0, 0, 1]), np.array([50.0, 50.0, 17.0]), np.array([0, 1, 1]))
    >>> round(found.largest, 4), round(found.expected, 4), round(found.household.largest, 4)
    (0.1771, 0.2146, 0.1925)
    """
    populations = np.bincount(classes, weights=weights)
    risks = individual_risk(np.bincount(classes), populations)[classes]

    def summary(risks: Floats, household: IndividualRisk | None = None) -> IndividualRisk:
        return IndividualRisk(
            float(risks.max()), float(risks.mean()), float(risks.sum()), household
        )

    return summary(risks, None if units is None else summary(household_risk(risks, units)))


def household_risk(risks: Floats, units: Labels) -> Floats:
    """Risk of each record that any member of its household is found: 1 − Π(1 − r).

    A record without a household, below 0, is one by itself.

    >>> household_risk(np.array([0.02, 0.03, 0.03]), np.array([4, 4, 4])).round(3).tolist()
    [0.078, 0.078, 0.078]
    """
    households = canonical_labels(missing_alone(units))
    with np.errstate(divide="ignore"):
        logs = np.log1p(-np.minimum(risks, 1.0))
    return np.asarray(-np.expm1(np.bincount(households, weights=logs)[households]))


def agreement_words(agreements: Mapping[Any, Agreement]) -> str:
    """Say for how many records a group discloses a confidential value; empty if for none.

    ``agreements`` are of each column. No value is named.
    """
    exact = _counted((name, agreement.exact) for name, agreement in agreements.items())
    close = _counted((name, agreement.close) for name, agreement in agreements.items())
    sentences = []
    if exact:
        sentences.append(
            f"Groups disclose confidential values: {exact}. All records of such a group have the "
            "same value, and fewer than half of all records have it."
        )
    if close:
        sentences.append(f"Groups disclose confidential numbers to within 5 %: {close}.")
    return " ".join(sentences)


def _counted(records: Iterable[tuple[Any, int]]) -> str:
    """Columns with their numbers of records, the largest first; empty if all have none."""
    ranked = sorted((item for item in records if item[1]), key=lambda item: -item[1])
    first = ", ".join(f"{names([name])} ({plural(n, 'record')})" for name, n in ranked[:_NAMED])
    return first + (f" and {len(ranked) - _NAMED} more columns" if len(ranked) > _NAMED else "")


@dataclass(frozen=True)
class Agreement:
    """Records whose group discloses their value of one confidential column."""

    exact: int
    """Records in groups that agree in a value that is not common."""
    close: int
    """Further records whose group tells the number to within 5 %, which it does of fewer than half of all."""
    harmless: int
    """Records in groups that agree in a common value, which is no news."""
    of: int
    """All records."""
    disclosed: NDArray[np.bool_] | None = field(default=None, repr=False, compare=False)
    """Which records are disclosed, exactly or closely; None where they were counted in parts."""

    @classmethod
    def of_classes(cls, classes: ClassSizes) -> Agreement:
        """Return what was counted in classes, whose distinct values stand for units."""
        agrees, common = classes.units == 1, classes.common != 0
        exact, harmless = agrees & ~common, agrees & common
        records = classes.records * classes.classes
        return cls(int(records[exact].sum()), 0, int(records[harmless].sum()), classes.n_records)

    def with_close_of(self, sample: Agreement) -> Agreement:
        """Return this, counted in all records, with the number of close ones as estimated in a sample."""
        return replace(self, close=math.ceil(sample.close * self.of / sample.of))

    @property
    def records(self) -> int:
        """Records that are disclosed."""
        return self.exact + self.close


def agreement(codes: Labels, labels: Labels, numbers: Floats | None = None) -> Agreement:
    """Count the records whose group discloses their value of a column.

    ``codes`` numbers the distinct values, missing being one of them; ``labels`` (n,) are the groups of the
    records, 0, 1, …; ``numbers`` are the values, NaN where missing, if near values tell nearly as much as
    equal ones.

    >>> found = agreement(np.array([0, 0, 1, 1, 0, 1]), np.array([0, 0, 1, 1, 2, 2]))
    >>> found.exact, found.harmless
    (0, 4)
    """
    n, groups = len(codes), int(labels.max()) + 1
    low, high = np.full(groups, n), np.full(groups, -1)
    np.minimum.at(low, labels, codes)
    np.maximum.at(high, labels, codes)
    agrees = (low == high)[labels]
    values, near = nearness(codes, numbers)
    reach, value = near[codes], values[codes]
    exact, harmless = agrees & (reach >= 0), agrees & (reach < 0)
    below, above = value - values[low[labels]], values[high[labels]] - value
    close = ~agrees & (below <= reach) & (above <= reach)
    return Agreement(
        int(exact.sum()), int(close.sum()), int(harmless.sum()), n, disclosed=exact | close
    )


@dataclass(frozen=True)
class Diversity:
    """A confidential column in the classes of equal protected rows."""

    distinct_l: int
    """Fewest distinct values in a class; 1 gives the value away."""
    entropy_l: float
    """Least exp(entropy) of a class."""
    t: float
    """Largest earth mover's distance of a class to the whole table; 0 to 1, lower is safer."""
    agreement: Agreement
    """Records whose value a class discloses although it is not common."""


def diversity(frame: Frame, name: Any, labels: Labels) -> Diversity:
    """Measure a confidential column in classes.

    Parameters
    ----------
    frame : the table as released
    name : its confidential column
    labels : (n,) class of each record, any numbers
    """
    codes, levels = frame.levels(name)
    labels = canonical_labels(labels)
    sizes = group_sizes(labels)
    m, g = len(levels), len(sizes)
    # Each combination of class and value, in that order, and how often it occurs.
    key, count = np.unique(labels * np.int64(m) + codes, return_counts=True)
    owner, value = key // m, key % m
    share = count / sizes[owner]
    distinct = np.bincount(owner, minlength=g)
    entropy = np.bincount(owner, weights=-share * np.log(share), minlength=g)
    overall = np.bincount(codes, minlength=m) / len(codes)
    if frame.is_numeric(name):
        t = _ordered_distance(owner, value, share, overall, g)
    else:  # the sum of what a class has more of than the table
        t = np.bincount(owner, np.maximum(share - overall[value], 0.0), g).astype(np.float64)
    return Diversity(
        distinct_l=int(distinct.min()),
        entropy_l=float(np.exp(max(entropy.min(), 0.0))),
        t=float(t.max()),
        agreement=agreement_of(frame, name, labels),
    )


def agreement_of(frame: Frame, name: Any, labels: Labels) -> Agreement:
    """Count the records of ``frame`` whose class, of ``labels`` (n,), discloses their value of ``name``."""
    codes, numbers = values_and_numbers(frame, name)
    return agreement(codes, labels, numbers)


def _ordered_distance(
    owner: Labels, value: Labels, share: Floats, overall: Floats, g: int
) -> Floats:
    """Earth mover's distance of each class to the table, for ranked values.

    A class's distribution function P is constant between its values and the table's function Q
    rises, so that a piece of Σ|P−Q| is two prefix sums of Q, split where Q passes P: O(n log m)
    for all classes together rather than O(gm).
    """
    m = len(overall)
    if m == 1:
        return np.zeros(g)
    Q = np.cumsum(overall)
    Q[-1] = 1.0
    prefix = np.concatenate([[0.0], np.cumsum(Q)])
    starts_class = np.flatnonzero(np.diff(owner, prepend=-1))
    running = np.cumsum(share)
    P = running - np.repeat(
        running[starts_class] - share[starts_class], np.diff(starts_class, append=len(owner))
    )
    last = np.append(owner[1:] != owner[:-1], True)
    P[last] = 1.0
    end = np.where(last, m, np.append(value[1:], m))
    # Σ|P−Q_i| from each value to the next one.
    crossing = np.clip(np.searchsorted(Q, P), value, end)
    below = P * (crossing - value) - (prefix[crossing] - prefix[value])
    above = (prefix[end] - prefix[crossing]) - P * (end - crossing)
    total = np.bincount(owner, weights=below + above, minlength=g)
    head = value[starts_class]  # before its first value a class has P = 0
    total += prefix[head]
    return np.asarray(total / (m - 1))


def disclosed_share(agreements: Iterable[Agreement]) -> float:
    """Return the share of records for which a group discloses some column, of ``agreements`` of each.

    Where it is not known which records these are, the share is at most the result.
    """
    every = list(agreements)
    if not every:
        return 0.0
    masks = [agreement.disclosed for agreement in every if agreement.disclosed is not None]
    if len(masks) == len(every):
        return float(np.logical_or.reduce(masks).mean())
    return min(1.0, sum(agreement.records for agreement in every) / every[0].of)
