"""Risk: what someone who knows the true values of a record can still find out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from microagg.base.formatting import names, plural
from microagg.base.typing import Floats, Labels
from microagg.errors import DisclosureRiskWarning, InputError, shown
from microagg.grouping.require.amount_rules import individual_risk
from microagg.kernels.labels import canonical_labels
from microagg.measure.agreement import Agreement, Diversity, diversity
from microagg.measure.both_tables import Pair, pair
from microagg.measure.classes import ClassSizes, missing_alone
from microagg.measure.linkage import Linkage, check_sample, link
from microagg.plan.settings import check_k
from microagg.tables.frame import choose_columns

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
