"""Carry out several plans on one table, or on a sample of it, in threads and within a time limit.

A try goes the way of every release, :func:`microagg.protect.protect_table`; of the release only a few figures
are kept. The table of prices and the search for a plan are made of tries.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from microagg.errors import MicroaggError, StopSearch
from microagg.groups import Labels
from microagg.kernels.threads import at_work, thread_count
from microagg.plan import Plan
from microagg.protect import protect_table
from microagg.tables.exact import codes_as_written
from microagg.tables.frames import Frame
from microagg.tables.labelled import Coded
from microagg.tables.outgoing import reordered

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Figures", "Records", "for_a_sample", "try_plan", "try_plans"]

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, eq=False)
class Records:
    """A table, or a sample of one."""

    frame: Frame
    text: pa.Table | None = None
    """The same table as a CSV file holds it."""
    coded: Mapping[Any, Coded] = field(default_factory=dict)
    """What stands for missing values in the file that the table came from."""

    def __len__(self) -> int:
        return len(self.frame)

    def taken(self, rows: Labels) -> Records:
        """Return some of the records."""
        coded = {name: Coded(one.codes, one.tags[rows]) for name, one in self.coded.items()}
        text = None if self.text is None else self.text.take(rows)
        return Records(Frame(reordered(self.frame.native, rows)), text, coded)

    def units(self, plan: Plan) -> Labels | None:
        """Return the unit of each record; None: k counts records."""
        unit = next(iter(plan.units), None)
        if unit is None:
            return None
        written = self.frame if self.text is None else Frame(self.text)
        return codes_as_written(written, unit, self.text is not None)

    def some(self, plan: Plan, size: int, seed: int = 0) -> Labels:
        """Draw whole units at random, of about as many records as asked for; return their rows."""
        units, turn = self._turns(plan, seed)
        return np.flatnonzero(turn[units] < round(len(turn) * size / len(self)))

    def shared_out(self, plan: Plan, shares: int, seed: int = 0) -> list[Labels]:
        """Deal the rows out at random into shares of about the same number of whole units."""
        units, turn = self._turns(plan, seed)
        return [np.flatnonzero(turn[units] % shares == share) for share in range(shares)]

    def _turns(self, plan: Plan, seed: int) -> tuple[Labels, Labels]:
        """Return the unit of each record, and the place of each unit in a random order."""
        units = self.units(plan)
        units = np.arange(len(self)) if units is None else units
        return units, np.random.default_rng(seed).permutation(int(units.max()) + 1)


@dataclass(frozen=True)
class Figures:
    """What a plan gives on a table; shares of records are from 0 to 1."""

    loss: float = math.nan
    """Percent of the information that the released values lose."""
    group_loss: float = math.nan
    """The same of the groups alone, as if each released its exact centroid."""
    by_column: Mapping[Any, float] = field(default_factory=dict)
    """Percent of the information of each protected column that the released values lose."""
    linkage: float = math.nan
    """Share of the records that an attacker finds who knows the protected and the known columns."""
    below_k: float = math.nan
    """Share of the records that known columns narrow down to fewer than k."""
    at_stake: float | None = None
    """The same if the confidential columns were known after all; None: there are none."""
    problem: str | None = None
    """Why there are no figures."""


def try_plan(records: Records, plan: Plan, stop: Callable[[], bool] = lambda: False) -> Figures:
    """Carry out a plan whose columns all have a role; a plan that cannot be carried out has a problem."""

    def watch(done: int) -> None:
        if stop():
            raise StopSearch

    try:
        found = protect_table(
            records.frame, plan, watch, records.text, records.coded, is_complete=True
        )
    except StopSearch:
        return Figures(problem="not tried in time")
    except MicroaggError as error:
        return Figures(problem=str(error))
    known = found.with_known
    staked = found.if_confidential_known.below_k if plan.confidential else None
    return Figures(
        found.utility.information_loss,
        found.utility.group_loss,
        found.utility.by_column,
        known.linkage.share,
        known.below_k,
        staked,
    )


def try_plans(
    records: Records,
    plans: Mapping[Key, Plan],
    *,
    ends: float = math.inf,
    on_progress: Callable[[int, int], object] | None = None,
) -> dict[Key, Figures]:
    """Try plans, the first ones first, until a moment by ``time.monotonic``.

    ``on_progress`` is called with the number of plans tried and of all; it may raise
    :class:`microagg.StopSearch`.
    """
    from concurrent.futures import ThreadPoolExecutor, as_completed

    stopped = threading.Event()

    def work(plan: Plan) -> Figures:
        if time.monotonic() >= ends:
            return Figures(problem="not tried in time")
        with at_work():
            return try_plan(records, plan, lambda: stopped.is_set() or time.monotonic() >= ends)

    found: dict[Key, Figures] = {}
    with ThreadPoolExecutor(thread_count(), thread_name_prefix="microagg-tries") as pool:
        futures = {pool.submit(work, plan): key for key, plan in plans.items()}
        try:
            for done, future in enumerate(as_completed(futures), 1):
                found[futures[future]] = future.result()
                if on_progress is not None:
                    on_progress(done, len(futures))
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise
    return {key: found[key] for key in plans}


def for_a_sample(plan: Plan) -> Plan:
    """Return a plan that a sample can carry out too: small strata are merged, rare patterns blanked.

    What is rare in a sample need not be rare in the table.
    """
    one_group = len(plan.blocks) == 1 and not plan.blocks[0].per_column
    strata = plan.strata
    if strata.columns and one_group:
        strata = replace(strata, small="merge")
    return replace(plan, strata=strata, missing=replace(plan.missing, most=1.0))
