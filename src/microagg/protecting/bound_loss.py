"""The lower bound on the loss of a release that is proved when asked for, where that takes seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microagg.base.progress import Listener
from microagg.delivering.write_and_count import ReleasedTable
from microagg.evidence.measured import Part
from microagg.grouping.group_table import bound_over_cells, seconds_of_bound
from microagg.plan.registry import find


def seconds_of_proof(parts: Sequence[Part], table: ReleasedTable) -> float | None:
    """Estimate how long the proof takes; None where there is none to be had, or it takes too long."""
    part = parts[0]
    found = part.partition
    if len(parts) > 1 or not table.plan.is_easily_bound(len(part.rows)):
        return None
    if found.lower_bound is not None or found.stopped:
        return None
    exact = find(found.method).guarantee_for(part.coordinates, found.weighted) == "exact"
    if exact and table.intake.units is None:
        return None
    return seconds_of_bound(table.inputs[0].cells, found.k)


def prove_bound(
    parts: Sequence[Part], table: ReleasedTable, progress: Listener | None = None
) -> Sequence[Part]:
    """Return the parts with a proved bound, where there is one to be had within seconds."""
    if seconds_of_proof(parts, table) is None:
        return parts
    (part,), (given,) = parts, table.inputs
    found = part.partition
    least = bound_over_cells(given.space, given.cells, found.k, progress)
    return [part._replace(partition=replace(found, lower_bound=min(least, found.sse)))]
