"""The steps of a search: which decisions are tried, which one is taken, and when the targets are met."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from microagg.base.formatting import names as listed_names
from microagg.base.formatting import percent, share
from microagg.comparing.column_decisions import (
    IMPORTANCES,
    check_stratum,
    may_be_stratum,
    more_important,
    recodings,
)
from microagg.comparing.search_result import FoundPlan, Step
from microagg.comparing.trials import (
    Figures,
    for_a_sample,
    sampled,
    try_plan,
    try_plans,
)
from microagg.engines.memory.table import Table
from microagg.errors import MicroaggError
from microagg.evidence.sentences import worst_first
from microagg.plan.change_role import decided, role_of
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept

_AT_ONCE = 4  # decisions that are tried together, those that looked best first
_MOST_STEPS = 40
_MOST_COUNTS = 10  # of plans on the whole table, with little effort
_MOST_CHECKS = 4  # of plans on the whole table, as they are
_OF_A_DECISION = 0.1  # columns' worth of information that any decision must be worth
# Share of a target by which a plan may miss it with little effort, and meet it with its own effort.
_NEAR = 0.1

Key = tuple[Any, str]  # a column, or None for the whole plan, and a decision


@dataclass(frozen=True)
class Open:
    """What the user left open."""

    columns: Sequence[Any]
    """Protected by the draft, not by the user."""
    keep: Sequence[Any]
    may_drop: Sequence[Any] | None
    """None: all open ones."""
    k: Sequence[int]
    importance: Sequence[Any]
    """Columns whose importance the user leaves open."""


@dataclass(eq=False)
class SearchState:
    """The state of one search: the decisions taken, and what they give."""

    records: Table
    start: Plan
    """The plan at the beginning, with a role for every column."""
    open: Open
    accept: Accept
    sample: int
    budget: float
    progress: Callable[[int, int], object] | None
    ends: float = math.inf
    tried: int = 0
    keys: list[Key] = field(default_factory=list)
    """Decisions taken."""
    steps: dict[Key, Step] = field(default_factory=dict)
    of_whole: float = 1.0
    """Loss of the whole table over that of the sample."""
    of_effort: float = 1.0
    """Loss with the plan's effort over that with little effort."""
    promise: dict[Key, float] = field(default_factory=dict)
    """What a decision won for what it gave up, when it was last tried."""
    won: dict[Key, float] = field(default_factory=dict)
    """How much nearer to the targets it brought the plan."""
    last: Key | None = None
    """The decision taken last."""
    rivals: list[tuple[Key, Step]] = field(default_factory=list)
    """Other decisions that would have met the targets then."""

    def __post_init__(self) -> None:
        self._most_moved = self.accept.moved or 0.0
        self.plan, self.guesses = self.start, self.records.guessed(self.start)
        self.part, self.now = sampled(self.records, self.plan.with_little_effort(), self.sample)[:2]

    def run(self) -> FoundPlan:
        """Search until the whole table meets the targets, or nothing helps any more."""
        counted = self._count(self.plan)
        self.ends = time.monotonic() + self.budget
        nearest = self._excess(counted), list(self.keys)
        checks = 0
        for _ in range(_MOST_COUNTS):
            counted = self._survived(counted)
            if self._excess(counted) <= _NEAR and checks < _MOST_CHECKS:
                checks += 1
                checked = self._check(self.plan, counted)
                if self._meets(checked):
                    return self._found(self._finished(checked))
                counted = checked
            nearest = min(nearest, (self._excess(counted), list(self.keys)), key=lambda one: one[0])
            if not self._advance():
                break
            counted = self._count(self.plan)
        nearest = min(nearest, (self._excess(counted), list(self.keys)), key=lambda one: one[0])
        self._take(nearest[1])
        return self._found(try_plan(self.records, self.plan))

    def _count(self, plan: Plan) -> Figures:
        """Carry a plan out on the whole table with little effort; estimates follow what it gives there."""
        found = try_plan(self.records, plan.with_little_effort())
        if found.problem is None and self.now.loss > 0:
            self.of_whole = found.loss / self.now.loss
        return self._with_effort(found)

    def _with_effort(self, found: Figures) -> Figures:
        """Return figures of little effort as those of the plan's effort."""
        loss, even = found.loss * self.of_effort, found.even_loss * self.of_effort
        return replace(found, loss=loss, even_loss=even)

    def _check(self, plan: Plan, counted: Figures) -> Figures:
        """Carry a plan out on the whole table as it is."""
        if plan == plan.with_little_effort():
            return counted
        found = try_plan(self.records, plan)
        if found.problem is None and counted.loss > 0:
            self.of_effort *= found.loss / counted.loss
        return found

    def _loss(self, found: Figures, sample: bool = False) -> float:
        """Return the loss to keep down; if columns were made to count more, also with all counted alike."""
        weighed = any(decision.startswith("importance") for _, decision in self.keys)
        loss = max(found.loss, found.even_loss) if weighed else found.loss
        return loss * (self.of_whole * self.of_effort if sample else 1.0)

    def _excess(self, found: Figures, sample: bool = False) -> float:
        """Return how far figures are above the targets, in shares of each; 0: they meet them.

        Figures of a sample are taken as estimates for the whole table, except how far analyses move.
        """
        if found.problem is not None or (
            not sample and len(found.analyses) < len(self.plan.analyses)
        ):
            return math.inf
        over, most_loss, most_linkage = 0.0, self.accept.loss, self.accept.linkage
        if most_loss is not None:
            over += max(0.0, self._loss(found, sample) - most_loss) / max(most_loss, 1.0)
        if most_linkage is not None:
            over += max(0.0, found.linkage - most_linkage) / max(most_linkage, 0.01)
        if not sample:
            over += max(0.0, found.moved - self._most_moved) / max(self._most_moved, 0.1)
        return over + found.below_k

    def _meets(self, found: Figures, sample: bool = False) -> bool:
        return self._excess(found, sample) == 0.0

    def _remaining(self, found: Figures) -> float:
        """Columns' worth of information that remains, of the columns that the search decides about."""
        return sum(1 - found.by_column.get(name, 100.0) / 100 for name in self.open.columns)

    def _survived(self, counted: Figures) -> Figures:
        """Let columns of analyses count more until these move little enough, or no column can.

        How far an analysis moves is counted on the whole table: a sample moves it farther.
        """
        while counted.moved > self._most_moved and time.monotonic() < self.ends:
            larger = {name: more_important(self.plan, name) for name in self.open.importance}
            keys = [
                (name, f"importance {one:g}") for name, one in larger.items() if one is not None
            ]
            if not keys:
                break
            key = keys[0]
            if len(keys) > 1:
                tried = self._try(keys)
                key = min(keys, key=lambda one: (tried[one].problem is not None, tried[one].moved))
            self._take([*(one for one in self.keys if not _same(one, key)), key])
            self.now = self._of_sample(self.plan)
            found = self._count(self.plan)
            moved = "; ".join(one.short for one in found.analyses)
            before = next(
                (s.before for k, s in self.steps.items() if _same(k, key)), counted.even_loss
            )
            self.steps[key] = Step(*key, before, found.even_loss, moved)
            counted = found
        return counted

    def _advance(self) -> bool:
        """Take decisions until the sample meets the targets; False if nothing helps any more."""
        stepped = self._step()
        went_on = stepped
        while went_on and not self._meets(self.now, sample=True):
            went_on = self._step()
        return stepped

    def _step(self) -> bool:
        """Take the decision that wins most for what it gives up; False if none wins anything."""
        if len(self.keys) >= _MOST_STEPS or time.monotonic() >= self.ends:
            return False
        order, tried, best = self._decisions(), dict[Key, Figures](), 0.0
        while order:
            # What won little before wins little now: what may still be the best is tried again.
            order.sort(key=lambda key: -self._hope(key))
            if best > 0 and self._hope(order[0]) <= best:
                break
            count = max(sum(self._hope(key) == math.inf for key in order), _AT_ONCE)
            batch, order = order[:count], order[count:]
            tried |= self._try(batch)
            for key in batch:
                self.promise[key] = self._worth(key, tried[key])
            best = max(self.promise[key] for key in tried)
        if best <= 0:
            return False
        ranked = sorted(tried, key=lambda key: -self.promise[key])
        self.last, *_ = ranked
        self.rivals = [
            (key, self._step_of(key, tried[key]))
            for key in ranked[1:]
            if self._meets(tried[key], sample=True)
        ]
        key = self.last
        self.steps[key] = self._step_of(key, tried[key])
        self.keys.append(key)
        self.plan, self.now = self._with(self.plan, key), tried[key]
        return True

    def _try(self, keys: Sequence[Key]) -> dict[Key, Figures]:
        """Try each of some decisions on the sample."""
        plans = {key: for_a_sample(self._with(self.plan, key).with_little_effort()) for key in keys}
        before = self.tried
        self.tried += len(plans)

        def on_progress(done: int, of: int) -> None:
            if self.progress is not None:
                self.progress(before + done, self.tried + 2 * _AT_ONCE)

        return try_plans(self.part, plans, ends=self.ends, on_progress=on_progress)

    def _hope(self, key: Key) -> float:
        """Return the greatest possible worth of a decision, by its worth when last tried.

        A column that is made coarser wins at most what it wins if it is dropped.
        """
        dropped = (key[0], "drop")
        if key in self.promise or not key[1].startswith("coarsen") or dropped not in self.won:
            return self.promise.get(key, math.inf)
        return self.won[dropped] / _OF_A_DECISION

    def _worth(self, key: Key, found: Figures) -> float:
        """Return how much nearer to the targets a decision brings the plan, per column of information."""
        if found.problem is not None:
            return -math.inf
        won = self._excess(self.now, sample=True) - self._excess(found, sample=True)
        self.won[key] = won
        given_up = self._remaining(self.now) - self._remaining(found)
        if key[0] is None:
            given_up += max(0.0, 1 - int(key[1].removeprefix("k ")) / self.plan.k)
        return won / max(given_up + _OF_A_DECISION, 0.01) if won > 0 else -math.inf

    def _step_of(self, key: Key, found: Figures) -> Step:
        before, after = (one.loss * self.of_whole * self.of_effort for one in (self.now, found))
        return Step(*key, before, after)

    def _decisions(self) -> list[Key]:
        """List the decisions that can come next."""
        found = list[Key]()
        protected = [name for block in self.plan.blocks for name in block.columns or ()]
        needed = self.plan.analysed
        for name in self.open.columns:
            if name not in protected or name in self.open.keep or name in needed:
                continue
            may_drop = self.open.may_drop is None or name in self.open.may_drop
            if len(protected) > 1 and may_drop:
                found.append((name, "drop"))
            found += [
                (name, one) for one in recodings(self.records, self.plan, name, self.guesses[name])
            ]
        lower = [one for one in self.open.k if one < self.plan.k][-1:]
        higher = [one for one in self.open.k if one > self.plan.k][:1]
        return [*found, *((None, f"k {one}") for one in [*lower, *higher])]

    def _with(self, plan: Plan, key: Key) -> Plan:
        """Return a plan with one more decision."""
        name, decision = key
        if name is None:
            return plan.override(k=int(decision.removeprefix("k ")))
        return decided(plan, name, decision)

    def _take(self, keys: Sequence[Key]) -> None:
        """Take these decisions, and no others."""
        self.keys, self.plan = list(keys), self._with_all(keys)

    def _with_all(self, keys: Sequence[Key]) -> Plan:
        plan = self.start
        for key in keys:
            plan = self._with(plan, key)
        return plan

    def _finished(self, checked: Figures) -> Figures:
        """Take needless decisions back and make columns strata, if the plan then still meets the targets."""
        before, lost = list(self.keys), checked.loss
        found: Figures | None
        for key in before[:-1]:
            if key[1] == "drop":
                found = self._take_if_it_meets([one for one in self.keys if one != key])
                lost = lost if found is None else found.loss
        for key in before:
            lower = _lower(key)
            if lower is not None:
                found = self._take_if_it_meets([lower if one == key else one for one in self.keys])
                if found is not None:
                    self.steps[lower] = replace(
                        self.steps[key],
                        decision=lower[1],
                        after=found.even_loss,
                        analyses="; ".join(one.short for one in found.analyses),
                    )
                    lost = found.loss
        for name in self.open.keep:
            if role_of(self.plan, name).startswith("block-") and may_be_stratum(self.records, name):
                found = self._take_if_it_meets([*self.keys, (name, "stratum")])
                if found is not None:
                    self.steps[name, "stratum"] = Step(name, "stratum", lost, found.loss)
                    lost = found.loss
        if self.keys == before:
            return checked
        again = try_plan(self.records, self.plan)
        if self._meets(again):
            return again
        self._take(before)
        return checked

    def _take_if_it_meets(self, keys: Sequence[Key]) -> Figures | None:
        """Take other decisions if they meet the targets, in the sample and in the whole table."""
        try:
            plan = self._with_all(keys)
            if plan.strata.columns:
                check_stratum(self.records, plan)
        except MicroaggError:
            return None
        if not self._meets(self._of_sample(plan), sample=True):
            return None
        found = self._with_effort(try_plan(self.records, plan.with_little_effort()))
        if not self._meets(found):
            return None
        self._take(keys)
        return found

    def _of_sample(self, plan: Plan) -> Figures:
        return try_plan(self.part, for_a_sample(plan.with_little_effort()))

    def _runner_up(self) -> tuple[Plan | None, Step | None]:
        """Return the best plan with another decision in place of the last, if one meets the targets too."""
        for rival, step in self.rivals[:_AT_ONCE]:
            plan = self._with_all([rival if key == self.last else key for key in self.keys])
            if self._meets(self._of_sample(plan), sample=True):
                return plan, step
        return None, None

    def _found(self, counted: Figures) -> FoundPlan:
        steps = [self.steps[key] for key in self.keys]
        notes = dict(self.plan.notes)
        for step in steps:
            if step.column is not None:
                notes[step.column] = f"By the search: {step.words}."
        own = {one.name: getattr(self.plan, one.name) for one in fields(Plan)}
        plan, instead = self._runner_up() if self._meets(counted) else (None, None)
        return FoundPlan(
            **{**own, "notes": notes},
            steps=tuple(steps),
            figures=counted,
            meets=self._meets(counted),
            runner_up=plan,
            runner_up_step=instead,
            words=self._words(counted),
        )

    def _words(self, counted: Figures) -> str:
        """Say what was reached and, if it misses the targets, what stands in the way."""
        given = self.accept.targets
        if self.plan.analyses:
            given.append(f"analyses moved by at most {self._most_moved:g} of their 95 % intervals")
        asked = " and ".join([", ".join(given[:-1]), given[-1]] if given[1:] else given)
        if counted.problem is not None:
            return f"No plan with {asked} was found, and the nearest cannot be carried out: {counted.problem}"
        alike = ""
        if abs(counted.loss - counted.even_loss) >= 0.005:
            alike = f" ({percent(counted.even_loss)} with all columns counted alike)"
        gives = f"{percent(counted.loss)} lost{alike} and {share(counted.linkage)} of the records linked"
        gives += "".join(f"; {one.short}" for one in counted.analyses)
        if self._meets(counted):
            return f"Counted on all records: {gives}; {asked} was asked for."
        worst = worst_first(counted.by_column)[:3]
        most = ", ".join(f"{listed_names([n])} ({percent(counted.by_column[n])})" for n in worst)
        fixed = [
            name
            for name in counted.by_column
            if name not in self.open.columns or name in self.open.keep
        ]
        held = f" {listed_names(fixed)} must stay, by what you decided." if fixed else ""
        if needed := [name for name in self.plan.analysed if name in counted.by_column]:
            held += f" The analyses need {listed_names(needed)}."
        if time.monotonic() >= self.ends:
            held += " The time was over; allow more (budget)."
        return f"No plan with {asked} was found. The nearest: {gives}; most in {most}.{held}"


def _same(one: Key, other: Key) -> bool:
    """Return whether two decisions are about how much the same column counts."""
    return (
        one[0] == other[0] and one[1].startswith("importance") and other[1].startswith("importance")
    )


def _lower(key: Key) -> Key | None:
    """Return the decision that a column counts less, but still more than others; None for others."""
    kind, _, value = key[1].partition(" ")
    if kind != "importance":
        return None
    lower = [one for one in IMPORTANCES if one < float(value)]
    return (key[0], f"importance {lower[-1]:g}") if lower else None
