"""Carry out several plans on one table, or on a sample of it, in threads and within a time limit.

A trial is a release by a plan, of which a few figures are kept. The comparison of methods, the prices of
decisions and the search for a plan are made of trials.

Records of a sample are farther apart than those of the table, so a sample loses more. The losses of its
quarters and of the whole sample show how the loss falls with the number of records, n^(−a);
:class:`TriedSample` follows that to the whole table. The quarters also show how far off a sample may be.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from microagg.base.formatting import names as listed_names
from microagg.base.progress import Listener
from microagg.compile.threads import at_work, thread_count
from microagg.drafting.draft import Completed
from microagg.engines.memory.table import Table
from microagg.errors import InputError, MicroaggError, StopSearch
from microagg.measure.estimates import Analysis
from microagg.plan.checks import number
from microagg.plan.plan import Plan
from microagg.plan.sections import Suppress

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")

LATE = "not tried in time"
_SECONDS_BETWEEN_REPORTS = 0.1
_LEAST_SAMPLE = 1_000
_PARTS = 4  # of the sample, to see how the loss falls with the number of records
_MARGIN = 3.18 / 2  # half of Student's 95 % quantile for three degrees of freedom: four parts
_LARGEST_FALL = 0.5  # of the exponent a: outliers keep losing however many records there are


@dataclass(frozen=True)
class Figures:
    """Figures of a plan on a table; shares of records are from 0 to 1."""

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
    tables: float = math.nan
    """Share of the records in another cell of tables of three columns (or as many as there are)."""
    tables_multiple: float = math.nan
    """The same as a multiple of what another sample of these records gives."""
    problem: str | None = None
    """Why there are no figures."""

    @property
    def moved(self) -> float:
        """Share of its interval by which the analysis that moved most has moved; 0: there is none."""
        return max((analysis.moved for analysis in self.analyses), default=0.0)

    @property
    def moved_words(self) -> str:
        """How far each analysis moves, to be added to other words."""
        return "".join(f"; {analysis.short}" for analysis in self.analyses)


class TimedTries(Generic[Key, Result]):
    """Trials in threads, and their results.

    A search that has groups when its time is over returns them; other trials have failed then.

    ``work`` gets the key of a trial and a listener for the records done; ``failed`` the key, the reason, and
    whether the trial came to its end. ``ends`` is a moment by ``time.monotonic``. With ``fair`` a trial takes
    at most half of the remaining time while others wait, so that a slow one does not use up the time of all.
    """

    def __init__(
        self,
        work: Callable[[Key, Listener], Result],
        failed: Callable[[Key, str, bool], Result],
        *,
        ends: float = math.inf,
        workers: int | None = None,
        fair: bool = False,
    ) -> None:
        self._work, self._failed, self._workers, self._fair = work, failed, workers, fair
        self.ends = ends
        self.results: dict[Key, Result] = {}
        self.records_done: dict[Key, int] = {}
        self.stop = threading.Event()
        self._waiting: set[Key] = set()

    def run(self, keys: Sequence[Key], on_progress: Callable[[], object]) -> None:
        """Do trials, the first ones first.

        ``on_progress`` is called whenever a trial is done, and ten times a second; if it raises
        :class:`microagg.StopSearch`, the trials end, and the results so far are kept.
        """
        self._waiting = set(keys)
        self.records_done |= dict.fromkeys(keys, 0)
        workers = self._workers or thread_count()
        with ThreadPoolExecutor(workers, thread_name_prefix="microagg-tries") as pool:
            try:
                trials = {pool.submit(self._try, key) for key in keys}
                while trials:
                    done, trials = wait(trials, _SECONDS_BETWEEN_REPORTS, FIRST_COMPLETED)
                    for trial in done:
                        trial.result()
                    try:
                        if not self.stop.is_set():
                            on_progress()
                    except StopSearch:
                        self.stop.set()
            except BaseException:
                self.stop.set()  # leaving the block waits for the threads
                pool.shutdown(cancel_futures=True)
                raise

    def _try(self, key: Key) -> None:
        """Do one trial; a failed one has a result too."""
        self._waiting.discard(key)
        now = time.monotonic()
        ends = now + (self.ends - now) / 2 if self._fair and self._waiting else self.ends

        def check(done: int) -> None:
            self.records_done[key] = max(self.records_done[key], int(done))
            if self.stop.is_set() or time.monotonic() >= ends:
                raise StopSearch

        what = "not tried"
        try:
            check(0)
            what = "not finished"
            with at_work():
                self.results[key] = self._work(key, check)
        except StopSearch:
            why = "stopped" if self.stop.is_set() else "out of time"
            self.results[key] = self._failed(key, f"{what}: {why}", False)
        except MicroaggError as error:
            self.results[key] = self._failed(key, str(error), True)


def check_budget(budget: Any) -> float:
    """Return the seconds that trials may take; infinite: no limit, also if None is given."""
    if budget is None or budget == math.inf:
        return math.inf
    return number("a number of seconds above 0", lambda seconds: seconds > 0)("budget", budget)


def try_plan(records: Table, plan: Plan, watch: Listener | None = None) -> Figures:
    """Carry out a plan whose columns all have a role; a plan that cannot be carried out has a problem.

    An analysis that a sample is too small for is left out.
    """
    if gone := [name for name in plan.analysed if name in plan.drop or name in plan.renumber]:
        return Figures(problem=f"an analysis needs {listed_names(gone)}")
    try:
        release = records.protected(Completed(replace(plan, analyses=()), None), watch)
        analyses = list[Analysis]()
        for wanted in plan.analyses:
            with suppress(InputError):
                analyses += release.measure(analyses=[wanted])[0].analyses
        utility, known, fidelity = release.utility, release.with_known, release.fidelity
        return Figures(
            utility.information_loss,
            utility.even_loss,
            utility.group_loss,
            utility.by_column,
            known.linkage.share,
            known.below_k,
            release.if_confidential_known.below_k if plan.confidential else None,
            release.stakes,
            tuple(analyses),
            fidelity.tables[fidelity.order - 1] or 0.0,
            fidelity.multiple(fidelity.order),
        )
    except MicroaggError as error:
        return Figures(problem=str(error))


def try_plans(
    records: Table,
    plans: Mapping[Key, Plan],
    *,
    ends: float = math.inf,
    on_progress: Callable[[int, int], object] | None = None,
) -> dict[Key, Figures]:
    """Try plans for the whole table on a sample with little effort, the first ones first.

    What is not tried at ``ends``, a moment by ``time.monotonic``, has the problem :data:`LATE`.
    ``on_progress`` is called with the number of plans tried and of all; it may raise
    :class:`microagg.StopSearch`.
    """
    tries = TimedTries[Key, Figures](
        lambda key, watch: try_plan(records, quickly(plans[key]), watch),
        lambda _, problem, tried: Figures(problem=problem if tried else LATE),
        ends=ends,
    )
    tries.run(list(plans), lambda: on_progress and on_progress(len(tries.results), len(plans)))
    if tries.stop.is_set():
        raise StopSearch
    return {key: tries.results[key] for key in plans}


def for_a_sample(plan: Plan) -> Plan:
    """Return a plan that a sample can carry out too: what is rare there need not be rare in the table.

    Small strata are merged, values of rare patterns blanked, and no record is left out.
    """
    strata = plan.strata
    if strata.columns and len(plan.blocks) == 1 and not plan.blocks[0].per_column:
        strata = replace(strata, small="merge")
    missing = replace(plan.missing, most=1.0)
    return replace(plan, strata=strata, missing=missing, suppress=Suppress())


def quickly(plan: Plan) -> Plan:
    """Return the plan that a trial on a sample carries out, with little effort."""
    return for_a_sample(plan.with_little_effort())


@dataclass(frozen=True, eq=False)
class TriedSample:
    """A sample, the figures of the plan on it, and how the loss falls with the number of records."""

    records: Table
    now: Figures
    factor: float = 1.0  # loss of the whole table over that of the sample
    margin: float | None = None  # points by which the loss may be off (95 %); None: it was counted

    @classmethod
    def drawn(
        cls, records: Table, plan: Plan, size: int, tries: int = 1, seconds: float = math.inf
    ) -> TriedSample:
        """Draw at most ``size`` records in whole units, few enough for some ``tries`` to fit into a time."""
        while True:
            sample, quick = records, plan.with_little_effort()
            if size < len(records):
                sample, quick = records.taken(records.some(plan, size)), quickly(plan)
            began = time.monotonic()
            now = try_plan(sample, quick)
            if now.problem is not None:
                raise InputError(
                    f"The plan cannot be carried out on a sample of the table: {now.problem}"
                )
            spent = (time.monotonic() - began) * tries
            if spent <= seconds or len(sample) <= _LEAST_SAMPLE:
                return cls(sample, now)
            size, seconds = max(_LEAST_SAMPLE, int(len(sample) * seconds / spent)), math.inf

    @classmethod
    def followed(
        cls,
        records: Table,
        plan: Plan,
        size: int,
        tries: int = 1,
        seconds: float = math.inf,
        counted_loss: float | None = None,
    ) -> TriedSample:
        """Draw a sample, compare it with its quarters, and follow the fall of the loss to all records.

        Parameters
        ----------
        records : the whole table
        plan : carried out on the sample with little effort
        size : most records
        tries, seconds : number of trials that the sample is for, and the time for all of them
        counted_loss : the percent that the plan loses on the whole table, if it was counted; it is followed
        """
        tried = cls.drawn(records, plan, size, tries, seconds)
        sample, now = tried.records, tried.now
        if counted_loss is not None and now.loss > 0:
            return replace(tried, factor=counted_loss / now.loss)
        if len(sample) == len(records) or not now.loss > 0:
            return tried
        plan = quickly(plan)
        quarters = [
            try_plan(sample.taken(rows), plan) for rows in sample.shared_out(plan, _PARTS, 1)
        ]
        losses = np.array([quarter.loss for quarter in quarters if quarter.problem is None])
        if len(losses) < _PARTS:
            return replace(tried, margin=now.loss)
        fall = math.log(max(losses.mean() / now.loss, 1.0)) / math.log(_PARTS)
        factor = (len(records) / len(sample)) ** -min(fall, _LARGEST_FALL)
        drawn = _MARGIN * float(losses.std(ddof=1)) / float(losses.mean()) * now.loss * factor
        followed = now.loss * (1 - factor) / 2  # the fall that was followed may be half as large
        return cls(sample, now, factor, math.hypot(drawn, followed))
