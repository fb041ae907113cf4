"""What a ledger costs: groups that are made wave by wave, beside groups of all records at once.

Base groups never change, so that people who enter in several waves are grouped wave by wave. A sample is
released that way, in as many waves, by the ledger's own steps; nothing is written.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from microagg.base.formatting import UnitWords, percent, share
from microagg.comparing.prices import SAMPLE
from microagg.comparing.trials import TriedSample
from microagg.engines.memory.protect import protect_table
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
