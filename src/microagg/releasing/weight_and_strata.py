"""What groups release in columns that are not protected: the mean weight, and strata that were merged."""

from __future__ import annotations

from typing import Any

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.encode.nominal import modes
from microagg.encode.space import released_values, with_admissible
from microagg.grouping.read_table import Intake, PartInput
from microagg.kernels.labels import group_means
from microagg.plan.block import Block
from microagg.tables.variable import Variable


def mean_weights(weights: Floats, labels: Labels) -> Floats:
    """Return the mean weight of each record's group: Σw stays exact for every union of groups.

    >>> mean_weights(np.array([1.0, 3.0, 5.0]), np.array([0, 0, 1])).tolist()
    [2.0, 2.0, 5.0]
    """
    return group_means(weights, labels)[labels]


def release_weight_and_strata(
    intake: Intake, block: Block, given: PartInput, labels: Labels, households: Labels | None
) -> tuple[dict[Any, Any], int]:
    """Return the weight and the strata that change, by name, and how many records change their stratum.

    The weight becomes the group's mean. Where small strata were merged, a group releases the stratum that
    most of its records have; where whole households move together, the one of the group of households.
    """
    frame, plan = intake.frame, intake.plan
    found: dict[Any, Any] = {}
    if plan.weight is not None and plan.weight.release == "mean" and intake.weights is not None:
        name = plan.weight.column
        # Rounded to the type of the column, as decimals are, they would not keep the totals.
        found[name] = frame.doubles_like(name, mean_weights(intake.weights, labels))
    recoded = 0
    wanted = intake.strata_of(block)
    if given.strata_merged and wanted is not None:
        strata, own = wanted[0], labels if households is None else households
        released = _merged_strata(strata, own, block.k or 1, intake.units_of(block))
        recoded = int(np.count_nonzero(released != strata))
        first = np.unique(strata, return_index=True)[1]
        for name in plan.strata_of(block).columns:
            found[name] = frame.taken(name, first[released])
    return found, recoded


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
    found = released_values(able, labels, g)
    assert able.admissible is not None
    if not able.admissible.any():
        found = modes(strata, labels, g)
    often = np.where(able.admissible, np.bincount(strata), -1)
    return np.where(np.isnan(found), np.argmax(often), found).astype(np.int64)[labels]
