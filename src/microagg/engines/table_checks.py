"""What is refused of a table that is read in parts as soon as its summary is known, before it is grouped."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.base.typing import Labels
from microagg.encode.strata import stratum_too_small
from microagg.engines.table_summary import TableSummary
from microagg.grouping.require.from_plan import make_requirements
from microagg.grouping.require.requirement import check_feasible
from microagg.plan.block import Require
from microagg.plan.plan import Plan


def check_whole_table(plan: Plan, summary: TableSummary) -> None:
    """Refuse strata that are too small for a group, and requirements that not even all records satisfy."""
    _check_strata(plan, summary)
    _check_feasible(plan, summary)


def _check_strata(plan: Plan, summary: TableSummary) -> None:
    """Refuse strata that fewer than k units have, or records where none are counted."""
    block = plan.blocks[0]
    columns, unit, k = plan.strata_of(block).columns, plan.unit_of(block).column, block.k or 1
    found: Counter[tuple[Any, ...]] = Counter()
    for (stratum, _), records in summary.cells.items():
        found[stratum] += records
    if unit is not None:
        found = Counter({stratum: len(keys) for stratum, keys in summary.units.items()})
    if columns and min(found.values()) < k:
        raise stratum_too_small(columns, found, k, plan.words_of_unit(unit))


def _check_feasible(plan: Plan, summary: TableSummary) -> None:
    """Refuse a table that has fewer units, different values or weights than one group needs."""
    block = plan.blocks[0]
    unit = plan.unit_of(block).column

    def seen(name: Any) -> Labels:
        return np.arange(len(summary.different[name]))

    asked = replace(
        block, require=Require(distinct=block.require.distinct, population=block.require.population)
    )
    weights = None if plan.weight is None else np.array([summary.weights.total])
    units = None if unit is None else seen(unit)
    check_feasible(
        make_requirements(asked, units, unit, weights, lambda _, name: (seen(name), False))
    )
