"""What groups release in columns that are not protected: the mean weight, and strata that were merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.nominal import modes
from microagg.encode.space import released_values, with_admissible
from microagg.grouping.read_table import Intake, PartInput
from microagg.kernels.labels import canonical_labels, group_means, standard_deviation
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.plan.plan_settings import EXACT
from microagg.releasing.dealt import dealt_rows
from microagg.releasing.rounding import decimals_of, to_digits
from microagg.releasing.swap import Holders, Swapping, share_numbers
from microagg.tables.variable import Variable


def mean_weights(weights: Floats, labels: Labels, plan: Plan, spread: float) -> Floats:
    """Return the mean weight of each record's group: Σw is kept for every union of groups.

    It is rounded to a millionth of ``spread``, the standard deviation of all weights, unless the plan says
    that digits are exact.

    >>> mean_weights(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1]), Plan(), 2.0).tolist()
    [2.0, 2.0, 5.0]
    """
    decimals = None if plan.digits == EXACT else decimals_of(spread)
    return to_digits(group_means(weights, labels), decimals)[labels]


def released_strata(
    intake: Intake, block: Block, given: PartInput, labels: Labels, households: Labels | None = None
) -> Labels:
    """Return the stratum with which each record is released, as a number.

    Where small strata were merged, all records of a group have the stratum that most of them had; where
    whole households move together, that of the group of households.
    """
    strata = intake.strata_of(block)
    if strata is None:
        return np.zeros(len(intake), dtype=np.int64)
    if not given.strata_merged:
        return strata[0]
    groups = labels if households is None else households
    return _merged_strata(strata[0], groups, block.k or 1, intake.units_of(block))


def release_weight_and_strata(
    intake: Intake,
    block: Block,
    given: PartInput,
    labels: Labels,
    households: Labels | None,
    swapping: Swapping | None = None,
) -> tuple[dict[Any, Any], int, tuple[Any, Floats, Labels] | None]:
    """Return the weight and the strata that change, by name, and how many records change their stratum.

    If the weight was dealt, also its name, its values before, and the record whose value each row got.

    The weight becomes the group's mean; with ``swapping`` it is dealt like a column, since a mean weight
    would name the group. For strata see :func:`released_strata`.
    """
    frame, plan = intake.frame, intake.plan
    columns: dict[Any, Any] = {}
    dealt = None
    if plan.weight is not None and plan.weight.release == "mean" and intake.weights is not None:
        name = plan.weight.column
        spread = standard_deviation(intake.weights)
        # Rounded to the type of the column, as decimals are, they would not keep the totals.
        if swapping is None:
            new = mean_weights(intake.weights, labels, plan, spread)
        else:
            units = intake.units_of(block)
            shared = shared_weights(intake.weights, spread, units, plan, block, swapping)
            donors = dealt_rows(labels, swapping.secret, f"{swapping.part}/weight")
            new, dealt = shared[donors], (name, shared, donors)
        columns[name] = frame.doubles_like(name, new)
    recoded = 0
    wanted = intake.strata_of(block)
    if given.strata_merged and wanted is not None:
        strata = wanted[0]
        released = released_strata(intake, block, given, labels, households)
        recoded = int(np.count_nonzero(released != strata))
        first = np.unique(strata, return_index=True)[1]
        for name in plan.strata_of(block).columns:
            columns[name] = frame.taken(name, first[released])
    return columns, recoded, dealt


def shared_weights(
    weights: Floats,
    spread: float,
    units: Labels | None,
    plan: Plan,
    block: Block,
    swapping: Swapping,
) -> Floats:
    """Return weights that at least k units of the stratum share.

    Parameters
    ----------
    weights : (n,) of all records, or of those of a chunk
    spread : the standard deviation of the weights of the whole table, which sets the digits of means
    units : (n,) unit of each record; None: every record is one
    plan, block : with digits and k
    swapping : with the strata
    """
    return share_numbers(
        weights,
        Holders(canonical_labels(swapping.strata), units, block.k or 1),
        lambda means: to_digits(means, None if plan.digits == EXACT else decimals_of(spread)),
    )


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
