"""Samples of a table: carry out a plan on some records, and follow its loss to the whole table.

Records of a sample are farther apart than those of the table, so a sample loses more: by the losses of its
quarters and of the whole sample we see how the loss falls with the number of records, n^(−a), and follow that
to the whole table. The quarters also tell how far off a sample may be.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from microagg.comparing.plan_trials import Figures, Records, for_a_sample, try_plan
from microagg.plan.plan import Plan

__all__ = ["Standing", "Trend", "sampled"]

_PARTS = 4  # of the sample, to see how the loss falls with the number of records
_MARGIN = 3.18 / 2  # half of Student's 95 % quantile for three degrees of freedom: four parts
_LARGEST_FALL = 0.5  # of the exponent a: outliers keep losing however many records there are


def sampled(records: Records, plan: Plan, size: int) -> tuple[Records, Figures, float]:
    """Draw whole units until there are enough records, and carry out the plan on them."""
    part = records
    if size < len(records):
        part, plan = records.taken(records.some(plan, size)), for_a_sample(plan)
    before = time.monotonic()
    found = try_plan(part, plan)
    return part, found, time.monotonic() - before


@dataclass(frozen=True)
class Trend:
    """How the loss falls with the number of records."""

    factor: float
    """Loss of the whole table over that of the sample."""
    margin: float | None = None
    """Points by which the loss of the table may be off; None: it was counted."""

    @classmethod
    def of(cls, part: Records, now: Figures, plan: Plan, n: int) -> Trend:
        """Compare the sample with its quarters."""
        if len(part) == n or not now.loss > 0:
            return cls(1.0)
        plan = for_a_sample(plan)
        quarters = [try_plan(part.taken(rows), plan) for rows in part.shared_out(plan, _PARTS, 1)]
        losses = np.array([one.loss for one in quarters if one.problem is None])
        if len(losses) < _PARTS:
            return cls(1.0, now.loss)
        fall = math.log(max(losses.mean() / now.loss, 1.0)) / math.log(_PARTS)
        factor = (n / len(part)) ** -min(fall, _LARGEST_FALL)
        drawn = _MARGIN * float(losses.std(ddof=1)) / float(losses.mean()) * now.loss * factor
        followed = now.loss * (1 - factor) / 2  # the fall that was followed may be half as large
        return cls(factor, math.hypot(drawn, followed))


@dataclass(frozen=True, eq=False)
class Standing:
    """What a plan gives on a sample, as it stands."""

    part: Records
    now: Figures
    trend: Trend
