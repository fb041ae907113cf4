"""What groups release in columns that are not protected: the mean weight, and strata that were merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.categories import modes
from microagg.encode.space import released_values, with_admissible
from microagg.encode.steps import usual_steps
from microagg.grouping.read_table import Intake, PartInput
from microagg.kernels.labels import canonical_labels, group_means, standard_deviation
from microagg.plan.block import Block
from microagg.plan.plan_settings import EXACT
from microagg.releasing.dealt import dealt_rows
from microagg.releasing.swap import Holders, ReleaseTerms, Swapping, share_numbers
from microagg.tables.variable import Variable


def released_weights(
    weights: Floats, labels: Labels, spread: float, terms: ReleaseTerms
) -> tuple[Floats, tuple[Floats, Labels] | None]:
    """Return the weight that each record releases; if it was dealt, also the values and who had each.

    It is the mean of the group, so that Σw is kept for every union of groups. Where values are swapped it is
    dealt like a column, since a mean weight would name the group: values that k units of the stratum share.
    Means are rounded to a millionth of ``spread``, unless the plan says that digits are exact.

    Parameters
    ----------
    weights : (n,) of all records, or of those of a chunk
    labels : (n,) group of each record
    spread : standard deviation of the weights of the whole table
    terms : plan and block with digits and k, units and swapping

    >>> from microagg.plan.plan import Plan
    >>> weights, labels = np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1])
    >>> released_weights(weights, labels, 2.0, ReleaseTerms(Block(k=1), Plan()))[0].tolist()
    [2.0, 2.0, 5.0]
    """
    # Mean weights are not weighted themselves: a millionth of the spread will do.
    steps, swapping = None if terms.plan.digits == EXACT else usual_steps(spread), terms.swapping

    def in_digits(means: Floats) -> Floats:
        return means if steps is None else steps.nearest(means)

    if swapping is None or not terms.block.is_swapped:
        return in_digits(group_means(weights, labels))[labels], None
    holders = Holders(canonical_labels(swapping.strata), terms.units, terms.block.k or 1)
    shared = share_numbers(weights, holders, in_digits)
    donors = dealt_rows(labels, swapping.secret, f"{swapping.part}/weight")
    return shared[donors], (shared, donors)


def released_strata(
    intake: Intake, block: Block, given: PartInput, labels: Labels, households: Labels | None = None
) -> Labels:
    """Return the stratum with which each record is released, as a number.

    Where small strata were merged, all records of a group have the stratum that most of them had; where whole
    households move together, that of the group of households. The arguments are those of
    :func:`release_weight_and_strata`.
    """
    strata = intake.strata_of(block)
    if strata is None:
        return np.zeros(len(intake), dtype=np.int64)
    if not given.strata_merged:
        return strata
    groups = labels if households is None else households
    return _merged_strata(strata, groups, block.k or 1, intake.units_of(block))


def release_weight_and_strata(
    intake: Intake,
    block: Block,
    given: PartInput,
    labels: Labels,
    households: Labels | None,
    swapping: Swapping | None = None,
    of_entry: Floats | None = None,
) -> tuple[dict[Any, Any], int, tuple[Any, Floats, Labels] | None]:
    """Return the weight and the strata that change, by name, and how many records change their stratum.

    If the weight was dealt, also its name, its values before, and the record whose value each row got.

    For the weight see :func:`released_weights`, for strata :func:`released_strata`.

    Parameters
    ----------
    intake : the table, n records
    block : by whose groups weight and strata are released
    given : its columns as they were grouped
    labels : (n,) group of each record
    households : (n,) group of each record's household, if whole households move together
    swapping : with the random numbers, if values are swapped
    of_entry : (n,) mean weights that earlier releases of the same people have settled
    """
    frame, plan = intake.frame, intake.plan
    columns: dict[Any, Any] = {}
    dealt: tuple[Any, Floats, Labels] | None = None
    if plan.weight is not None and plan.weight.release == "mean" and intake.weights is not None:
        name = plan.weight.column
        spread, units = standard_deviation(intake.weights), intake.units_of(block)
        weights = intake.weights if of_entry is None else of_entry
        terms = ReleaseTerms(block, plan, units=units, swapping=swapping)
        new, of_donors = released_weights(weights, labels, spread, terms)
        dealt = None if of_donors is None else (name, *of_donors)
        # Rounded to the type of the column, as decimals are, they would not keep the totals.
        columns[name] = frame.doubles_like(name, new)
    recoded = 0
    strata = intake.strata_of(block)
    if given.strata_merged and strata is not None:
        released = released_strata(intake, block, given, labels, households)
        recoded = int(np.count_nonzero(released != strata))
        first = np.unique(strata, return_index=True)[1]
        for name in plan.strata_of(block).columns:
            columns[name] = frame.take(name, first[released])
    return columns, recoded, dealt


def _merged_strata(strata: Labels, labels: Labels, k: int, units: Labels | None) -> Labels:
    """Return the released stratum of each record: the most frequent one of its group with at least k units.

    If a group has none, it releases the largest such stratum of the table; if there is none at all, its own
    most frequent one.
    """
    column = Variable(
        "", "nominal", strata.astype(np.float64), levels=(*range(int(strata.max()) + 1),)
    )
    able = with_admissible(column, k, units)
    g = int(labels.max()) + 1
    of_group = released_values(able, labels, g)
    assert able.admissible is not None
    if not able.admissible.any():
        of_group = modes(strata, labels, g)
    often = np.where(able.admissible, np.bincount(strata), -1)
    return np.where(np.isnan(of_group), np.argmax(often), of_group).astype(np.int64)[labels]
