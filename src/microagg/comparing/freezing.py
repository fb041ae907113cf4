"""What a ledger costs: groups that are made wave by wave, beside groups of all records at once.

Base groups never change, so that people who enter in several waves are grouped wave by wave. A sample is
released that way, in as many waves, by the ledger's own steps; nothing is written.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from microagg.base.formatting import UnitWords, percent, share
from microagg.comparing.prices import SAMPLE
from microagg.comparing.trials import TriedSample
from microagg.engines.memory.protect import protect_table
from microagg.engines.memory.release import Release
from microagg.engines.memory.table import Table
from microagg.errors import InputError
from microagg.evidence.measured import History
from microagg.evidence.over_time import history_words
from microagg.ledger.carry import Carrying
from microagg.ledger.checks import check_supported
from microagg.ledger.ledger_file import Ledger
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

WAVES = (2, 4, 12)
ATTRITION = 0.05  # share of the units that leave before a wave
LEAVING_WAVES = (1, 4, 12)


class FreezingPrices(NamedTuple):
    """What a ledger costs, in percent of the information of the protected columns."""

    at_once: float
    """Lost if all records are protected at once; an estimate for the whole table."""
    in_waves: Mapping[int, float | None]
    """Lost if they enter in so many waves; None: fewer than k would enter in a wave."""
    with_groups: float | None
    """Lost by this file with the groups of the ledger; None: the ledger has none yet."""
    history: History | None
    """What would become of whom in this file."""
    touched: Mapping[int, float]
    """Share of the groups of k that somebody left after so many waves."""
    k: int
    who: UnitWords

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        counts = None if self.history is None else dict(self.history.counts)
        return {
            "at_once": self.at_once,
            "in_waves": {str(waves): loss for waves, loss in self.in_waves.items()},
            "with_groups": self.with_groups,
            "counts": counts,
            "attrition": ATTRITION,
            "touched": {str(waves): part for waves, part in self.touched.items()},
        }

    def lines(self) -> list[tuple[str, str]]:
        """Return the prices as labels and words."""
        lines = []
        if self.with_groups is not None:
            words = f"{percent(self.with_groups)} lost by this file with the groups of the ledger"
            anew = f"about {percent(self.at_once)} if all were grouped anew"
            lines.append(("ledger", f"{words}, {anew}; {history_words(self.history, self.who)}"))
        lines.append(("at once", f"{percent(self.at_once)} lost if all {self.who} are in one file"))
        for waves, loss in self.in_waves.items():
            words = f"{percent(loss)} lost if they enter in {waves} waves"
            if loss is None:
                words = f"too few {self.who} for {waves} waves: fewer than k would enter in each"
            lines.append((f"  {waves} waves", words))
        shares = ", ".join(share(part) for part in self.touched.values())
        after = ", ".join(map(str, self.touched))
        lines.append(
            (
                "  leavers",
                f"if {share(ATTRITION)} of the {self.who} leave before each wave, {shares} of the groups of "
                f"{self.k} have lost somebody after {after} waves; they are withheld or become one",
            )
        )
        return lines


def freezing_prices(
    records: Table, plan: Plan, ledger: Ledger, key: bytes, column: Any = None
) -> FreezingPrices:
    """Price a ledger for a table.

    Parameters
    ----------
    records : the table
    plan : with a role for every column
    ledger, key : with the groups of earlier releases; empty: there are none yet
    column : that tells units apart, if the plan has no unit

    Raises
    ------
    InputError
        If the plan asks for what a ledger does not cover.
    """
    check_supported(plan, plan.roles(records.frame.names), column, {}, "withhold")
    quick = plan.with_little_effort()
    history, with_groups = None, None
    if ledger.releases:
        carrying = Carrying(ledger, key, column)
        released, after = _release(records, quick, carrying)
        with_groups, chain = released.utility.information_loss, after.chain
        sums = not plan.is_swapped
        losses = [*(facts["loss"] for facts in ledger.releases), with_groups]
        history = History(
            len(chain),
            after.about["k"],
            carrying.smallest,
            sums,
            carrying.counts,
            "",
            "",
            losses,
            carrying.joining,
        )
    tried = TriedSample.followed(records, quick, SAMPLE)
    sample = tried.records
    quick = replace(quick, missing=replace(quick.missing, most=1.0))
    in_waves: dict[int, float | None] = {}
    for waves in WAVES:
        try:
            in_waves[waves] = tried.factor * _loss_in_waves(sample, quick, waves, column)
        except InputError:
            in_waves[waves] = None
    return FreezingPrices(
        tried.now.loss * tried.factor,
        in_waves,
        with_groups,
        history,
        {waves: 1 - (1 - ATTRITION) ** (plan.k * waves) for waves in LEAVING_WAVES},
        plan.k,
        plan.words_of_unit(next(iter(plan.units), None)),
    )


def _loss_in_waves(records: Table, plan: Plan, waves: int, column: Any) -> float:
    """Return what all records lose if some enter in each wave."""
    ledger, key = Ledger(), secrets.token_bytes(32)
    rows = records.shared_out(plan, waves, 1)
    for wave in range(1, waves + 1):
        entered = records.taken(np.sort(np.concatenate(rows[:wave])))
        released, ledger = _release(entered, plan, Carrying(ledger, key, column))
    return released.utility.information_loss


def _release(records: Table, plan: Plan, carrying: Carrying) -> tuple[Release, Ledger]:
    released = protect_table(
        records.frame, plan, None, records.text, records.coded, carrying=carrying
    )
    file = Frame(released.data)
    carrying.note_file(file, False, np.arange(len(file)))
    return released, carrying.ledger({})
