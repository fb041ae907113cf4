"""Carry out several plans on one table, or on a sample of it, in threads and within a time limit.

A try goes the way of every release, :func:`microagg.protecting.protect.protect_table`; of the release only
a few figures are kept. The table of prices and the search for a plan are made of tries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from microagg.base.formatting import names as listed_names
from microagg.base.progress import Listener
from microagg.base.typing import Labels
from microagg.comparing.in_threads import Failed, TimedTries
from microagg.drafting.draft import Completed, complete, guess
from microagg.drafting.guess import Guess
from microagg.errors import InputError, MicroaggError, StopSearch
from microagg.measure.analyses import Analysis, check_analyses
from microagg.plan.plan import Plan, Suppress
from microagg.protecting.protect import protect_table
from microagg.protecting.release import Release
from microagg.tables.as_written import codes_as_written
from microagg.tables.file_metadata import Coded
from microagg.tables.frame import MISSING_WORDS, Frame
from microagg.tables.release_frame import reordered

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

    @property
    def missing_words(self) -> Sequence[str]:
        """Texts that mean missing."""
        return ("",) if self.text is None else MISSING_WORDS

    def completed(self, plan: Plan) -> Completed:
        """Give every column that the plan leaves open a role."""
        return complete(self.frame, plan, self.missing_words, self.coded)

    def checked(self, plan: Plan) -> Plan:
        """Return the plan with a role for every column.

        Refused are columns that the table does not have, and analyses that cannot be done with it.
        """
        whole = self.completed(plan).plan
        whole.roles(self.frame.names)
        gone = {*whole.drop, *whole.renumber}
        check_analyses(whole.analyses, self.frame, gone, whole=True, categories=whole.categories)
        return whole

    def guessed(self, plan: Plan, names: Collection[Any] | None = None) -> Mapping[Any, Guess]:
        """Return what columns look like, by default all."""
        return guess(
            self.frame,
            k=plan.k,
            missing_words=self.missing_words,
            names=None if names is None else set(names),
        )

    def protected(
        self, plan: Plan, watch: Listener | None = None, *, is_complete: bool = False
    ) -> Release:
        """Carry out a plan."""
        settled = Completed(plan, None) if is_complete else plan
        return protect_table(self.frame, settled, watch, self.text, self.coded)

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
    even_loss: float = math.nan
    """The same if every column counted alike, whatever its importance."""
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
    stakes: Mapping[Any, float] = field(default_factory=dict)
    """The same if one confidential column alone were known."""
    analyses: tuple[Analysis, ...] = ()
    """The analyses of the plan, those that can be done with these records."""
    problem: str | None = None
    """Why there are no figures."""

    @property
    def moved(self) -> float:
        """Share of its interval by which the analysis that moved most has moved; 0: there is none."""
        return max((one.moved for one in self.analyses), default=0.0)


def try_plan(records: Records, plan: Plan, watch: Listener | None = None) -> Figures:
    """Carry out a plan whose columns all have a role; a plan that cannot be carried out has a problem.

    An analysis that a sample is too small for is left out.
    """
    try:
        return _figures(records, plan, watch)
    except MicroaggError as error:
        return Figures(problem=str(error))


def _figures(records: Records, plan: Plan, watch: Listener | None) -> Figures:
    if gone := [name for name in plan.analysed if name in plan.drop or name in plan.renumber]:
        raise InputError(f"an analysis needs {listed_names(gone)}")
    found = records.protected(replace(plan, analyses=()), watch, is_complete=True)
    analyses = list[Analysis]()
    for wanted in plan.analyses:
        with suppress(InputError):
            analyses += found.measure(analyses=[wanted])[0].analyses
    known = found.with_known
    staked = found.if_confidential_known.below_k if plan.confidential else None
    return Figures(
        found.utility.information_loss,
        found.utility.even_loss,
        found.utility.group_loss,
        found.utility.by_column,
        known.linkage.share,
        known.below_k,
        staked,
        {stake.name: stake.below_k for stake in found.stakes} if plan.confidential else {},
        tuple(analyses),
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
    tries = TimedTries[Key, Figures](
        lambda key, watch: _figures(records, plans[key], watch), ends=ends
    )

    def report() -> None:
        if on_progress is not None:
            on_progress(len(tries.found), len(plans))

    tries.run(list(plans), report)
    if tries.stop.is_set():
        raise StopSearch
    return {key: _with_problem(tries.found[key]) for key in plans}


def _with_problem(found: Figures | Failed) -> Figures:
    if isinstance(found, Figures):
        return found
    return Figures(problem=found.problem if found.tried else "not tried in time")


def for_a_sample(plan: Plan) -> Plan:
    """Return a plan that a sample can carry out too: small strata are merged, rare patterns blanked.

    No record is left out of it.

    What is rare in a sample need not be rare in the table.
    """
    one_group = len(plan.blocks) == 1 and not plan.blocks[0].per_column
    strata = plan.strata
    if strata.columns and one_group:
        strata = replace(strata, small="merge")
    missing = replace(plan.missing, most=1.0)
    return replace(plan, strata=strata, missing=missing, suppress=Suppress())
