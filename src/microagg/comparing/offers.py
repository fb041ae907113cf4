"""What a draft can be offered: claims of confidentiality, swapping, the largest k of swapping, a ledger.

A claim that nobody outside knows some columns wins information and stakes people; both are estimated on a
sample. How far tables move is told as a multiple of what another sample of the same size gives. That falls
with the number of records, so a k is judged on the whole table; only the comparison of means with swapping
beside a draft is of a sample.

A ledger keeps base groups as they are, so that people who enter in several waves are grouped wave by wave
and not all at once. A sample is released that way, in as many waves, by the ledger's own steps; nothing is
written.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from microagg.base.formatting import UnitWords, percent, plural, share
from microagg.comparing.prices import BUDGET, SAMPLE, Price, price_of
from microagg.comparing.trials import Figures, TriedSample, quickly, try_plan, try_plans
from microagg.engines.memory.protect import protect_table
from microagg.engines.memory.table import Table
from microagg.errors import InputError
from microagg.evidence.measured import History
from microagg.evidence.over_time import history_words
from microagg.ledger.carry import Carrying
from microagg.ledger.checks import check_supported
from microagg.ledger.ledger_file import Ledger
from microagg.plan.change_role import decided
from microagg.plan.checks import no_column
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

_SAMPLE = 2_500
_LEAST_K = 10  # of the swapping that a draft is compared with
_TIMES = 2  # from one k to the next, until tables move too far
_BETWEEN = 4  # k that are tried between the last two
WAVES = (2, 4, 12)
ATTRITION = 0.05  # share of the units that leave before a wave
LEAVING_WAVES = (1, 4, 12)


def swapping_words(records: Table, plan: Plan) -> str | None:
    """Say what swapping would give instead of a ``plan`` with all roles; None if it cannot be carried out.

    At most 2,500 of the ``records`` are grouped.
    """
    k, n = max(_LEAST_K, 2 * plan.k), len(records)
    sample = records if n <= _SAMPLE else records.taken(records.some(plan, _SAMPLE))
    if plan.is_swapped or 2 * k > len(sample):
        return None
    quick = quickly(plan)
    try:
        plans = (quick.override(release="swap", k=k), quick)
    except InputError:
        return None
    swapped, means = (try_plan(sample, each) for each in plans)
    if means.problem is not None or swapped.problem is not None:
        return None
    of = plural(n, "record") if sample is records else f"{len(sample):,} of {plural(n, 'record')}"
    return (
        f"with --release swap --k {k}, tables of three columns move {swapped.tables_multiple:.1f} times as "
        f"far as in another sample; with this plan {means.tables_multiple:.1f} times (tried on {of})"
    )


def price_answers(
    records: Table,
    plan: Plan,
    answers: Sequence[Any],
    *,
    sample: int = SAMPLE,
    progress: Callable[[int, int], object] | None = None,
) -> list[tuple[Sequence[Any], Price]]:
    """Price the claim that nobody outside knows some columns: what it wins, and what it stakes.

    Parameters
    ----------
    records, plan : the whole table, and a plan in which the columns are not confidential yet
    answers : columns that may be claimed confidential, each by itself and all together
    sample, progress : see :func:`prices`

    Returns columns, and the price of calling them confidential; its plan does so.
    """
    full = records.checked(plan)
    for name in answers:
        if name not in records.frame.names:
            raise no_column(name, records.frame.names)
    ends = time.monotonic() + BUDGET
    claims = [(name,) for name in answers] + ([tuple(answers)] if answers[1:] else [])
    plans = {}
    for claim in claims:
        plans[claim] = full
        for name in claim:
            plans[claim] = decided(plans[claim], name, "confidential")
    tried = TriedSample.followed(records, full, sample, len(claims), BUDGET)
    figures = try_plans(tried.records, plans, ends=ends, on_progress=progress)
    return [
        (claim, price_of("confidential", figures[claim], tried, plans[claim])) for claim in claims
    ]


class LargestK(NamedTuple):
    """The largest k of a plan whose tables move no more than asked for."""

    plan: Plan
    figures: Figures
    meets: bool
    tried: dict[int, float]
    """How far tables of three columns move with each k tried, in multiples of another sample."""

    def lines(self) -> list[tuple[str, str]]:
        """Return what was tried, and the result, as labels and words."""
        tried = ", ".join(f"{k}: {times:.2f}" for k, times in sorted(self.tried.items()))
        k, times = self.plan.k, f"{self.figures.tables_multiple:.2f}"
        result = ("not found", f"even with k = {k} tables move {times} times as far")
        if self.meets:
            words = f"tables of three columns move {times} times as far as in another sample"
            result = ("found", f"k = {k}, values swapped: {words}")
        words = f"k and how far tables move, in multiples of another sample: {tried}"
        return [("tried", words), result]


def largest_k(
    records: Table,
    plan: Plan,
    most: float,
    progress: Callable[[int, int], object] | None = None,
) -> LargestK:
    """Find the largest k whose tables move at most ``most`` times as far as those of another sample.

    Parameters
    ----------
    records, plan : the whole table, which is grouped about ten times, and a plan whose values are swapped
    most : multiple of what another sample of the same size gives, such as 1.0
    progress : called with the number of k tried and the most that will be tried

    It is the smallest k tried if none keeps to it. Swapping draws random numbers, so that a k at the limit
    may come out on either side of it.
    """
    full = records.checked(plan).override(release="swap")
    figures: dict[int, Figures] = {}
    total = 12

    def moved(k: int) -> float:
        if k not in figures:
            figures[k] = try_plan(records, full.override(k=k).with_little_effort())
            if progress is not None:
                progress(min(len(figures), total), total)
        problem = figures[k].problem
        if problem is not None and len(figures) == 1:
            raise InputError(problem)
        return math.inf if problem is not None else figures[k].tables_multiple

    low, high = full.k, len(records)
    while moved(low) > most and low > 2:
        high, low = low, max(2, low // _TIMES)
    while high == len(records) and len(figures) < total - _BETWEEN:
        following = _TIMES * low
        if following > len(records) // 2:
            break
        low, high = (low, following) if moved(following) > most else (following, high)
    for _ in range(_BETWEEN if high < len(records) else 0):
        if high - low < 2 or moved(low) > most:
            break
        middle = round((low * high) ** 0.5)
        low, high = (low, middle) if moved(middle) > most else (middle, high)
    tried = {k: each.tables_multiple for k, each in figures.items() if each.problem is None}
    return LargestK(full.override(k=low), figures[low], moved(low) <= most, tried)


class FreezingPrices(NamedTuple):
    """What a ledger costs, in percent of the information of the protected columns."""

    at_once: float  # lost if all records are protected at once; an estimate for the whole table
    # Lost if they enter in so many waves; None: fewer than k would enter in a wave.
    in_waves: Mapping[int, float | None]
    # What would become of whom in this file with the groups of the ledger; None: it has none yet.
    history: History | None
    touched: Mapping[int, float]  # share of the groups of k that somebody left after so many waves
    k: int
    who: UnitWords

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        history = self.history
        return {
            "at_once": self.at_once,
            "in_waves": {str(waves): loss for waves, loss in self.in_waves.items()},
            "with_groups": history and history.losses[-1],
            "counts": history and dict(history.counts),
            "attrition": ATTRITION,
            "touched": {str(waves): part for waves, part in self.touched.items()},
        }

    def lines(self) -> list[tuple[str, str]]:
        """Return the prices as labels and words."""
        lines = []
        if self.history is not None:
            words = f"{percent(self.history.losses[-1])} lost by this file with the groups of the ledger"
            anew = f"about {percent(self.at_once)} if all were grouped anew"
            lines.append(("ledger", f"{words}, {anew}; {history_words(self.history, self.who)}"))
        lines.append(("at once", f"{percent(self.at_once)} lost if all {self.who} are in one file"))
        for waves, loss in self.in_waves.items():
            words = f"{percent(loss)} lost if they enter in {waves} waves"
            if loss is None:
                words = f"too few {self.who} for {waves} waves: fewer than k would enter in each"
            lines.append((f"  {waves} waves", words))
        shares = ", ".join(share(part) for part in self.touched.values())
        words = (
            f"if {share(ATTRITION)} of the {self.who} leave before each wave, {shares} of the groups of "
            f"{self.k} have lost somebody after {', '.join(map(str, self.touched))} waves; they are withheld "
            "or become one"
        )
        return [*lines, ("  leavers", words)]


def freezing_prices(
    records: Table, plan: Plan, ledger: Ledger, key: bytes, column: Any = None
) -> FreezingPrices:
    """Price a ledger for a table; refused if the plan asks for what a ledger does not cover.

    Parameters
    ----------
    records, plan : the table, and a plan with a role for every column
    ledger, key : with the groups of earlier releases; empty: there are none yet
    column : that tells units apart, if the plan has no unit
    """
    check_supported(plan, plan.roles(records.frame.names), column, {}, "withhold")
    quick = plan.with_little_effort()
    history = None
    if ledger.releases:
        carrying = Carrying(ledger, key, column)
        history = History.of(_released(records, quick, carrying), carrying, plan.is_swapped)
    tried = TriedSample.followed(records, quick, SAMPLE)
    sample = tried.records
    quick = replace(quick, missing=replace(quick.missing, most=1.0))
    in_waves: dict[int, float | None] = dict.fromkeys(WAVES)
    for waves in WAVES:
        rows, new, new_key = sample.shared_out(plan, waves, 1), Ledger(), secrets.token_bytes(32)
        with suppress(InputError):
            for wave in range(1, waves + 1):
                entered = sample.taken(np.sort(np.concatenate(rows[:wave])))
                new = _released(entered, quick, Carrying(new, new_key, column))
            in_waves[waves] = tried.factor * new.releases[-1]["loss"]
    return FreezingPrices(
        tried.now.loss * tried.factor,
        in_waves,
        history,
        {waves: 1 - (1 - ATTRITION) ** (plan.k * waves) for waves in LEAVING_WAVES},
        plan.k,
        plan.words_of_unit(next(iter(plan.units), None)),
    )


def _released(records: Table, plan: Plan, carrying: Carrying) -> Ledger:
    """Return the ledger with one more release, which is not written."""
    released = protect_table(
        records.frame, plan, None, records.text, records.coded, carrying=carrying
    )
    file = Frame(released.data)
    loss = released.utility.information_loss
    return carrying.ledger(file, False, np.arange(len(file)), {"loss": loss})
