"""search(): the green plan that keeps most of a table within a largest loss.

The plan starts as the draft: every column protected. If it loses too much, decisions about open columns are
tried on a sample, each alone; the one that brings the loss down most for the information that it gives up is
taken, and the search goes on from there, now with the decisions that looked best. A dropped column gives up
all that was left of it, a recoded one what the recoding loses. Estimates follow what the plan loses on the
whole table; whenever they meet the targets, the plan is carried out there, and if it misses them, the search
goes on. Then decisions that are not needed any more are taken back and, as far as the loss allows, columns to
be kept become strata, whose values stay exact. Nothing is ever called confidential.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from microagg.choices import Targets
from microagg.comparing.pricing import check_stratum, may_be_stratum, recodings
from microagg.comparing.sampling import fast, sampled
from microagg.comparing.tries import Figures, Records, for_a_sample, try_plan, try_plans
from microagg.draft import complete, guess
from microagg.drafting.guesses import Guess
from microagg.errors import InputError, MicroaggError, shown
from microagg.plan import Column, Plan
from microagg.plan_checks import no_column
from microagg.plan_roles import role_of, with_role
from microagg.tables.frames import MISSING_WORDS, Frame
from microagg.words import names as listed_names
from microagg.words import percent, share

__all__ = ["FoundPlan", "Step", "search", "search_table"]

SAMPLE = 2_500
BUDGET = 60.0
_BEST = 8  # decisions that are tried again in later rounds
_MOST_ROUNDS = 40
_MOST_CHECKS = 4  # of the plan on the whole table


@dataclass(frozen=True)
class Step:
    """One decision of the search."""

    column: Any
    decision: str
    before: float
    """Percent of the information lost before, estimated for the whole table."""
    after: float

    @property
    def words(self) -> str:
        """The decision and what it changes.

        >>> Step("region", "stratum", 8.0, 9.1).words
        'region as a stratum: 8.00 → 9.10 % lost; its values stay exact'
        """
        name = listed_names([self.column])
        lost = f"{percent(self.before).removesuffix(' %')} → {percent(self.after)} lost"
        if self.decision == "stratum":
            return f"{name} as a stratum: {lost}; its values stay exact"
        if self.decision == "drop":
            return f"{name} dropped: {lost} of the others"
        return f"{name} made coarser ({self.decision.removeprefix('coarsen ')}): {lost}"


@dataclass(frozen=True)
class FoundPlan(Plan):
    """A plan that a search found, with how it came about."""

    steps: tuple[Step, ...] = field(default=(), compare=False)
    figures: Figures = field(default_factory=Figures, compare=False)
    """What it gives on the whole table, counted."""
    meets: bool = field(default=False, compare=False)
    """Whether the targets are met by these figures."""
    runner_up: Plan | None = field(default=None, compare=False, repr=False)
    """The next best plan that met the targets by the sample."""
    runner_up_step: Step | None = field(default=None, compare=False, repr=False)
    """What it has in place of the last step."""
    words: str = field(default="", compare=False)
    """The result in words, and what stands in the way if no plan meets the targets."""

    def lines(self) -> list[tuple[str, str]]:
        """Return the steps and the result as labels and words."""
        found = [("step", step.words) for step in self.steps]
        if self.runner_up_step is not None:
            found.append(("next best", f"in place of the last step, {self.runner_up_step.words}"))
        return [*found, ("found" if self.meets else "not found", self.words)]


def search(
    frame: Any,
    plan: Plan | None = None,
    *,
    max_loss: float | None = None,
    max_linkage: float | None = None,
    keep: Iterable[Any] = (),
    may_drop: Iterable[Any] | None = None,
    sample: int = SAMPLE,
    budget: float = BUDGET,
    progress: Callable[[int, int], object] | None = None,
) -> FoundPlan:
    """Search the green plan that keeps most of a table within a largest loss.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
    plan : what is decided already; columns that it names keep their roles. By default nothing is.
    max_loss, max_linkage : most information lost, in percent, and largest share of records linked; by default
        those that the plan accepts
    keep : columns that are not dropped or made coarser; they become strata, and so stay exact, if the loss
        allows
    may_drop : columns that may be dropped; by default all open ones
    sample : most records to group for an estimate
    budget : seconds for the estimates
    progress : called with the number of estimates made and to be made; it may raise
        :class:`microagg.StopSearch`

    Returns
    -------
    FoundPlan
        A :class:`microagg.Plan` with ``steps``, ``figures`` of the whole table, ``meets`` and ``words``. If
        no plan meets the targets, it is the nearest one.

    >>> import pyarrow as pa
    >>> t = pa.table({"a": [1, 2, 3, 7, 8, 9], "b": [1, 5, 9, 9, 5, 1]})
    >>> found = search(t, Plan.of(k=3, kinds={"a": "integer", "b": "integer"}), max_loss=20)
    >>> found.meets, found.drop, round(found.figures.loss, 1)
    (True, ('b',), 6.9)
    """
    records = Records(Frame(frame))
    return search_table(
        records,
        plan or Plan(),
        Targets(max_loss, max_linkage),
        keep=keep,
        may_drop=may_drop,
        sample=sample,
        budget=budget,
        progress=progress,
    )


def search_table(
    records: Records,
    plan: Plan,
    targets: Targets,
    *,
    keep: Iterable[Any] = (),
    may_drop: Iterable[Any] | None = None,
    sample: int = SAMPLE,
    budget: float = BUDGET,
    progress: Callable[[int, int], object] | None = None,
    decided: Collection[Any] | None = None,
) -> FoundPlan:
    """Search a plan for a table that was read; see :func:`search`.

    ``decided`` are protected columns to be left as they are, by default those that the plan names.
    """
    targets = Targets(
        plan.accept.loss if targets.max_loss is None else targets.max_loss,
        plan.accept.linkage if targets.max_linkage is None else targets.max_linkage,
    )
    if not targets.given:
        raise InputError(
            "A search needs a target: a largest loss (max_loss=10, --max-loss 10) or a largest share of "
            "linked records (max_linkage=0.1, --max-linkage 0.1)."
        )
    kept, droppable = list(keep), None if may_drop is None else list(may_drop)
    for name in [*kept, *(droppable or [])]:
        if name not in records.frame.names:
            raise no_column(name, records.frame.names)
    if both := [name for name in kept if name in (droppable or ())]:
        raise InputError(
            f"A column is kept or may be dropped, not both; {shown(both[0])} is in keep and may_drop."
        )
    words = ("",) if records.text is None else MISSING_WORDS
    whole = complete(records.frame, plan, words, records.coded).plan
    guesses = guess(records.frame, k=whole.k, missing_words=words)
    if decided is None:
        decided = {name for block in plan.blocks for name in block.columns or ()}
    open_columns = [
        name
        for name in (name for block in whole.blocks for name in block.columns or ())
        if name not in decided
    ]
    found = _Search(
        records, whole, guesses, targets, open_columns, kept, droppable, sample, budget, progress
    )
    return found.run()


class _Search:
    """The state of one search."""

    def __init__(
        self,
        records: Records,
        plan: Plan,
        guesses: Mapping[Any, Guess],
        targets: Targets,
        open_columns: Sequence[Any],
        keep: Sequence[Any],
        may_drop: Sequence[Any] | None,
        sample: int,
        budget: float,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        self.records, self.guesses, self.targets = records, guesses, targets
        self.open_columns, self.keep, self.may_drop = open_columns, keep, may_drop
        self.budget, self.ends = budget, math.inf
        self.progress = progress
        self.plan, self.steps = plan, list[Step]()
        self.part, self.now, _ = sampled(records, fast(plan), min(sample, len(records)))
        if self.now.problem is not None:
            raise InputError(
                f"The plan cannot be carried out on a sample of the table: {self.now.problem}"
            )
        self.factor = 1.0
        self.promising: set[tuple[Any, str]] | None = None  # None: all decisions
        self.alternatives: list[tuple[Step, Plan]] = []

    def run(self) -> FoundPlan:
        """Search until the whole table meets the targets, or nothing helps any more."""
        counted = self._count()
        self.ends = time.monotonic() + self.budget
        best = self._excess(counted), self.plan, counted, len(self.steps)
        for _ in range(_MOST_CHECKS):
            if self._meets(counted):
                break
            went_on = self._step()
            while went_on and not self._meets(self._estimate(self.now)):
                went_on = self._step()
            counted = self._count()
            if self._excess(counted) < best[0]:
                best = self._excess(counted), self.plan, counted, len(self.steps)
            if not went_on:
                break
        if self._meets(counted):
            return self._found(self._with_strata(self._without_needless(counted)))
        _, self.plan, counted, steps = best
        del self.steps[steps:]
        return self._found(counted)

    def _count(self) -> Figures:
        """Carry the plan out on the whole table; estimates follow what it loses there."""
        found = try_plan(self.records, self.plan)
        if found.problem is None and self.now.loss > 0:
            self.factor = found.loss / self.now.loss
        return found

    def _estimate(self, found: Figures) -> Figures:
        """Return the figures of a sample as those of the whole table."""
        return replace(found, loss=found.loss * self.factor)

    def _excess(self, found: Figures) -> float:
        """How far figures are above the targets, in percent of each; 0: they meet them."""
        if found.problem is not None:
            return math.inf
        most_loss, most_linkage = self.targets.max_loss, self.targets.max_linkage
        over = 0.0 if most_loss is None else max(0.0, found.loss - most_loss) / max(most_loss, 1.0)
        if most_linkage is not None:
            over += max(0.0, found.linkage - most_linkage) / max(most_linkage, 0.01)
        return over + found.below_k

    def _meets(self, found: Figures) -> bool:
        return self._excess(found) == 0.0

    def _left(self, found: Figures) -> float:
        """Columns' worth of information that is left, of those that the search decides about."""
        return sum(1 - found.by_column.get(name, 100.0) / 100 for name in self.open_columns)

    def _step(self) -> bool:
        """Take the decision that wins most for what it gives up; False if none wins anything."""
        if len(self.steps) >= _MOST_ROUNDS or time.monotonic() >= self.ends:
            return False
        wanted = self._decisions()
        plans = {key: for_a_sample(fast(plan)) for key, plan in wanted.items()}
        tried = try_plans(self.part, plans, ends=self.ends, on_progress=self.progress)
        before = self._excess(self._estimate(self.now))
        left = self._left(self.now)
        ranked = []
        for key, figures in tried.items():
            won = before - self._excess(self._estimate(figures))
            if figures.problem is None and won > 0:
                ranked.append((won / max(left - self._left(figures), 0.01), won, key))
        ranked.sort(key=lambda one: one[:2], reverse=True)
        if not ranked:
            return False
        # What wins little alone wins little later: the next rounds try what looked best in this one.
        if self.promising is None:
            self.promising = {key for _, _, key in ranked[: 2 * _BEST]}
        self.alternatives = [
            (self._step_of(key, tried[key]), wanted[key])
            for _, _, key in ranked[1:]
            if self._meets(self._estimate(tried[key]))
        ]
        key = ranked[0][2]
        self.steps.append(self._step_of(key, tried[key]))
        self.plan, self.now = wanted[key], tried[key]
        return True

    def _step_of(self, key: tuple[Any, str], figures: Figures) -> Step:
        return Step(*key, self.now.loss * self.factor, figures.loss * self.factor)

    def _decisions(self) -> dict[tuple[Any, str], Plan]:
        """List the plans that one more decision gives."""
        found = {}
        protected = [name for block in self.plan.blocks for name in block.columns or ()]
        for name in self.open_columns:
            if name not in protected or name in self.keep:
                continue
            if len(protected) > 1 and (self.may_drop is None or name in self.may_drop):
                found[name, "drop"] = with_role(self.plan, name, "drop")
            for label, setting in recodings(self.records, self.plan, name, self.guesses[name]):
                found[name, f"coarsen {label}"] = self.plan.override(coarsen={name: setting})
        if self.promising is not None:
            found = {key: plan for key, plan in found.items() if key in self.promising} or found
        return found

    def _without_needless(self, counted: Figures) -> Figures:
        """Take back single decisions, the first ones first, if the targets are met without them."""
        for step in [*self.steps[:-1]]:
            if step.decision != "drop":
                continue
            kind = (
                self.plan.columns.get(step.column, Column()).kind or self.guesses[step.column].kind
            )
            changed = with_role(self.plan, step.column, "block-0", kind)
            guessed = try_plan(self.part, for_a_sample(fast(changed)))
            if guessed.problem is not None or not self._meets(self._estimate(guessed)):
                continue
            figures = try_plan(self.records, changed)
            if self._meets(figures):
                self.steps.remove(step)
                self.plan, counted, self.alternatives = changed, figures, []
        return counted

    def _with_strata(self, counted: Figures) -> Figures:
        """Make columns to be kept strata, one after the other, as long as the targets are met."""
        for name in self.keep:
            if not role_of(self.plan, name).startswith("block-"):
                continue
            if not may_be_stratum(self.records, name):
                continue
            try:
                changed = with_role(self.plan, name, "strata")
                check_stratum(self.records, changed)
            except MicroaggError:
                continue
            guessed = try_plan(self.part, for_a_sample(fast(changed)))
            if not self._meets(self._estimate(guessed)):
                continue
            figures = try_plan(self.records, changed)
            if self._meets(figures):
                self.steps.append(Step(name, "stratum", counted.loss, figures.loss))
                self.plan, counted = changed, figures
                self.alternatives = []
        return counted

    def _found(self, counted: Figures) -> FoundPlan:
        notes = dict(self.plan.notes)
        for step in self.steps:
            notes[step.column] = f"By the search: {step.words}."
        own = {one.name: getattr(self.plan, one.name) for one in fields(Plan)}
        second = self.alternatives[0] if self.alternatives and self._meets(counted) else None
        return FoundPlan(
            **{**own, "notes": notes},
            steps=tuple(self.steps),
            figures=counted,
            meets=self._meets(counted),
            runner_up=None if second is None else second[1],
            runner_up_step=None if second is None else second[0],
            words=self._words(counted),
        )

    def _words(self, counted: Figures) -> str:
        """Say what was reached and, if that is not enough, what stands in the way."""
        asked = " and ".join(self.targets.given)
        if counted.problem is not None:
            return f"No plan with {asked} was found, and the nearest cannot be carried out: {counted.problem}"
        gives = f"{percent(counted.loss)} lost and {share(counted.linkage)} of the records linked"
        if self._meets(counted):
            return f"Counted on all records: {gives}, with {asked} asked for."
        worst = sorted(counted.by_column, key=lambda name: -counted.by_column[name])[:3]
        most = ", ".join(f"{listed_names([n])} ({percent(counted.by_column[n])})" for n in worst)
        fixed = [
            name for name in counted.by_column if name not in self.open_columns or name in self.keep
        ]
        held = f" {listed_names(fixed)} must stay, by what you decided." if fixed else ""
        if time.monotonic() >= self.ends:
            held += " Time was over; allow more (budget)."
        return f"No plan with {asked} was found. The nearest: {gives}; most in {most}.{held}"
