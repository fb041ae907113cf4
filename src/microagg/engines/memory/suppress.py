"""Leave a few records out where that lowers the loss most; see :class:`microagg.plan.sections.Suppress`.

A record that no other resembles costs its group much. In each of a few rounds the records are grouped with
little effort, and the units whose records lie farthest from their groups, by the SSE that they add for each
record, are left out: who shared a group with them finds a nearer one in the next round. The best of the
rounds is carried out as the plan says. If it does not lose less than all records do, none is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter

import numpy as np

from microagg.base.typing import Floats, Labels
from microagg.engines.memory.release import Release
from microagg.errors import MicroaggError
from microagg.evidence.measured import Suppressed
from microagg.plan.plan import Plan
from microagg.plan.sections import Suppress

_ROUNDS = 3

Protect = Callable[[Plan, Labels | None], Release]


def with_fewer_records(plan: Plan, protect: Protect) -> Release:
    """Protect a table without the records whose absence lowers the loss most.

    ``protect`` protects some records of the table by a plan, None for all of them.
    """
    whole = protect(replace(plan, suppress=Suppress()), None)
    release, quick, intake = whole, whole.plan.with_little_effort(), whole._measuring.intake
    most, kept = int(plan.suppress.most * intake.given), intake.rows
    kept = np.arange(intake.given) if kept is None else kept
    rounds = []  # the loss with little effort, and the rows that stay
    best, least = whole, whole.utility.information_loss
    for turn in range(1, _ROUNDS + 1):
        allowed = most * turn // _ROUNDS - (len(intake) - len(kept))
        stays = _without_farthest(release, allowed)
        if stays.all():
            continue
        kept = kept[stays]
        try:
            release = protect(quick, kept)
        except MicroaggError:  # such as a stratum that is too small without them
            break
        rounds.append((release.utility.information_loss, kept))
    if rounds:
        with suppress(MicroaggError):  # the same with the plan's own effort
            best = protect(whole.plan, min(rounds, key=itemgetter(0))[1])
    if not best.utility.information_loss < least:
        best = whole
    left_out = best._measuring.intake.suppressed
    suppressed = Suppressed(left_out, left_out / intake.given, least)
    measuring = replace(best._measuring, plan=plan, suppressed=suppressed)
    return replace(
        best,
        plan=plan,
        _measuring=measuring,
        released_table=replace(best.released_table, plan=plan),
    )


def _without_farthest(release: Release, most: int) -> np.ndarray:
    """Return which records stay if at most this number is left out, whole units, the farthest first."""
    costs = _costs(release)
    units = release._measuring.intake.units
    units = np.arange(len(costs)) if units is None else np.unique(units, return_inverse=True)[1]
    sizes = np.bincount(units)
    by_record = np.bincount(units, weights=costs) / sizes
    out = np.zeros(len(sizes), dtype=bool)
    for unit in np.argsort(-by_record, kind="stable").tolist():
        if sizes[unit] <= most and by_record[unit] > 0:
            out[unit] = True
            most -= int(sizes[unit])
        if not most:
            break
    return ~out[units]


def _costs(release: Release) -> Floats:
    """Return by how much the SSE of its group falls without a record, over all parts of the plan."""
    costs = np.zeros(len(release._measuring.intake))
    for part, encoded in zip(release.parts, release.released_table.inputs, strict=True):
        X, labels = encoded.space.matrix, part.partition.labels
        sizes = np.bincount(labels)
        sums = np.zeros((len(sizes), X.shape[1]))
        np.add.at(sums, labels, X)
        off = X - (sums / sizes[:, None])[labels]
        n = sizes[labels]
        costs += np.einsum("ij,ij->i", off, off) * n / np.maximum(n - 1, 1)
    return costs
