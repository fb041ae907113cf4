"""search(): the green plan that keeps most of a table, by steps of the best price.

The plan starts as the draft: every column protected. While it misses a target, the decision with the best
price is taken, one after the other. First come decisions that keep every column: columns of analyses that
moved too far count more, other kinds, coarser values, strata; then values that are swapped instead of
averaged, and a larger k; a column is dropped last. A dropped column counts as lost whole, so dropping one
helps only if it costs the others more than it holds itself, and no drop raises a loss above its limit. Prices
are of a sample; each step is then counted on the whole table, and a step that does not bring the plan nearer
to its targets there is not taken. Nothing is ever called confidential.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from microagg.base.formatting import names as listed_names
from microagg.base.formatting import percent, share
from microagg.comparing.column_decisions import Decision, decisions, more_important, releases
from microagg.comparing.trials import Figures, TriedSample, check_budget, try_plan, try_plans
from microagg.engines.memory.table import Table
from microagg.errors import InputError, shown
from microagg.evidence.sentences import worst_first
from microagg.plan.analysis_formulas import read_formula
from microagg.plan.change_role import decided as with_decision
from microagg.plan.change_role import decision_words
from microagg.plan.checks import no_column
from microagg.plan.plan import Plan
from microagg.plan.sections import Accept
from microagg.plan.settings import check_k
from microagg.tables.frame import Frame

SAMPLE = 2_500
BUDGET = 45.0
MOST_MOVED = 0.5
"""Share of its 95 % interval by which an analysis may move if the plan says nothing: half of it, so that the
estimate stays within."""
_SECONDS_A_ROUND = 8.0  # for the first prices, which are those of all decisions
_AGAIN = 6  # decisions that are priced again in later rounds: those that looked best before
_LEAST_WON = 0.1  # points of loss, or as much of another target, that a step must win
_FAILURES = 3  # steps in a row that the whole table does not confirm
# Share of a target by which a plan may miss it with little effort, and meet it with its own effort.
_NEAR = 0.1
_CHECKS = 3  # of plans with their own effort
_LARGER = (2, 4, 8)  # times k


@dataclass(frozen=True)
class Step:
    """One decision of the search, counted on the whole table."""

    column: Any
    """None: it is about the whole plan."""
    decision: str
    before: float
    """Percent of the information lost before, dropped columns counted whole."""
    after: float
    more: str = ""
    """What else it changes: analyses, linkage or tables."""

    @property
    def words(self) -> str:
        """The decision and what it changes.

        >>> Step("region", "stratum", 8.0, 9.1).words
        'make region a stratum: 8.00 → 9.10 % lost; its values stay exact'
        >>> Step(None, "k 10", 8.0, 9.1).words
        'k = 10: 8.00 → 9.10 % lost'
        """
        lost = f"{percent(self.before).removesuffix(' %')} → {percent(self.after)} lost"
        what = self.decision.partition(" ")[0]
        why = {
            "stratum": "; its values stay exact",
            "drop": ", the dropped column counted whole",
            "importance": ", all columns counted alike",
            "release": "; that is what the groups lose, so not like for like",
        }
        return f"{decision_words(self.decision, self.column)}: {lost}{why.get(what, '')}{self.more}"


@dataclass(frozen=True)
class FoundPlan(Plan):
    """A plan that a search found, with the steps that led to it."""

    steps: tuple[Step, ...] = field(default=(), compare=False)
    figures: Figures = field(default_factory=Figures, compare=False)
    """What it gives on the whole table, counted."""
    loss: float = field(default=math.nan, compare=False)
    """Percent of the information lost, dropped columns counted whole."""
    meets: bool = field(default=False, compare=False)
    """Whether the targets are met by these figures."""
    words: str = field(default="", compare=False)
    """The result in words, and what stands in the way if no plan meets the targets."""

    def lines(self) -> list[tuple[str, str]]:
        """Return the steps and the result as labels and words."""
        result = ("found" if self.meets else "not found", self.words)
        return [*(("step", step.words) for step in self.steps), result]

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "meets": self.meets,
            "words": self.words,
            "steps": [step.words for step in self.steps],
            "loss": self.loss,
            "loss_of_released": self.figures.loss,
            "record_linkage": self.figures.linkage,
            "tables_multiple": self.figures.tables_multiple,
            "analyses": [{"formula": a.formula, "moved": a.moved} for a in self.figures.analyses],
        }


def search(
    frame: Any,
    plan: Plan | None = None,
    *,
    max_loss: float | None = None,
    max_linkage: float | None = None,
    max_moved: float | None = None,
    keep: Iterable[Any] = (),
    may_drop: Iterable[Any] | None = None,
    k: Iterable[int] = (),
    decided: Collection[Any] | None = None,
    sample: int = SAMPLE,
    budget: float = BUDGET,
    progress: Callable[[int, int], object] | None = None,
) -> FoundPlan:
    """Search the green plan that keeps most of a table, by steps of the best price.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow, or a :class:`Table` that was read
    plan : what is decided already; columns that it names keep their roles. By default nothing is.
    max_loss, max_linkage : most information lost, in percent, with dropped columns counted whole, and largest
        share of records linked; by default those that the plan accepts
    max_moved : largest share of its 95 % interval by which an analysis of the plan may move; by default what
        the plan accepts, or one half. Columns of analyses are never dropped or made coarser, and count more
        until the analyses move no further or the loss meets its limit.
    keep : columns that are not dropped or made coarser; they become strata, and so stay exact, if the loss
        allows
    may_drop : columns that the file can do without: only these are dropped, and what is dropped of them does
        not count as lost. By default every open column may be dropped, and counts as lost whole.
    k : other k that the search may choose; larger ones than the plan's may be chosen anyway
    decided : protected columns that stay as they are; by default those that the plan names
    sample : most records to group for a price
    budget : seconds for all prices; steps are also counted on the whole table
    progress : called with thousandths done and 1000; it may raise :class:`microagg.StopSearch`

    Returns
    -------
    FoundPlan
        A :class:`microagg.Plan` with ``steps``, ``figures`` of the whole table, ``loss``, ``meets`` and
        ``words``. If no plan meets the targets, it is the nearest one.

    >>> import pyarrow as pa
    >>> t = pa.table({"a": [1, 2, 3, 7, 8, 9], "b": [1, 5, 9, 9, 5, 1]})
    >>> start = Plan.of(k=3, kinds={"a": "integer", "b": "integer"})
    >>> found = search(t, start, max_loss=20, may_drop=["b"])
    >>> found.meets, found.drop, round(found.loss, 1)
    (True, ('b',), 6.9)
    """
    records = frame if isinstance(frame, Table) else Table(Frame(frame))
    plan = plan or Plan()
    limits = {"loss": max_loss, "linkage": max_linkage, "moved": max_moved}
    accept = replace(plan.accept, **{name: x for name, x in limits.items() if x is not None})
    if not accept.targets and not plan.analyses:
        raise InputError(
            "A search needs a target: a largest loss (max_loss=10, --max-loss 10), a largest share of linked "
            "records (max_linkage=0.1, --max-linkage 0.1), or an analysis."
        )
    kept, droppable = list(keep), None if may_drop is None else list(may_drop)
    for name in [*kept, *(droppable or [])]:
        if name not in records.frame.names:
            raise no_column(name, records.frame.names)
    if both := [name for name in kept if name in (droppable or ())]:
        raise InputError(
            f"A column is kept or may be dropped, not both; {shown(both[0])} is in keep and may_drop."
        )
    full = records.checked(plan)
    if decided is None:
        decided = {name for block in plan.blocks for name in block.columns or ()}
    accept = replace(accept, moved=MOST_MOVED if accept.moved is None else accept.moved)
    return _Search(
        records,
        full,
        accept,
        open=[name for name in _protected(full) if name not in decided],
        keep=kept,
        may_drop=droppable,
        sizes=sorted({check_k(size, len(records)) for size in k}),
        sample=min(sample, len(records)),
        budget=check_budget(budget),
        progress=progress,
    ).run()


def steer(records: Table, plan: Plan) -> Plan:
    """Let columns of analyses count more, until these move no further than the plan accepts.

    ``records`` are the whole table, which is grouped with little effort for each step; ``plan`` has a role
    for every column, and ``accept.moved``. The plan returned has a note for each column that counts more.
    """
    state = _Search(records, plan, plan.accept)
    state.now = state.counted(plan)
    state.steer()
    return replace(state.plan, notes=state.notes)


def _protected(plan: Plan) -> list[Any]:
    return [name for block in plan.blocks for name in block.columns or ()]


@dataclass(eq=False)
class _Search:
    """The state of one search: the steps taken, and what the plan gives on the whole table."""

    records: Table
    start: Plan  # with a role for every column
    accept: Accept
    open: Sequence[Any] = ()  # protected columns that the draft decided about, not the user
    keep: Sequence[Any] = ()
    may_drop: Sequence[Any] | None = None
    sizes: Sequence[int] = ()  # other k that may be chosen
    sample: int = SAMPLE
    budget: float = math.inf
    progress: Callable[[int, int], object] | None = None

    def __post_init__(self) -> None:
        self.plan, self.steps = self.start, list[Step]()
        self.weights = {name: self.start.column(name).importance for name in _protected(self.start)}
        self.needed = {*self.keep, *self.start.analysed}
        self.effort = 1.0  # loss with the plan's effort over that with little effort
        self.checks, self.ends, self.done = 0, math.inf, 0.0
        self.guesses = self.records.guessed(self.start, [*self.open, *self.keep])

    def run(self) -> FoundPlan:
        """Take steps until the whole table meets the targets, or nothing helps any more."""
        self.now = self.counted(self.plan)
        self.ends = time.monotonic() + self.budget
        self._report(0.1)
        if not self._met():
            self.steer()
            self._take_steps(self._gentle, 0.6)
            self._take_steps(self._releases, 0.8)
            self._take_steps(self._drops, 0.95)
        if self._excess(self.now) == 0:
            self._keep_exact()
        counted = try_plan(self.records, self.plan)
        self._report(1.0)
        settings = {row.name: getattr(self.plan, row.name) for row in fields(Plan)}
        return FoundPlan(
            **{**settings, "notes": self.notes},
            steps=tuple(self.steps),
            figures=counted,
            loss=self._loss(counted, self.plan),
            meets=self._excess(counted) == 0,
            words=self._words(counted),
        )

    def counted(self, plan: Plan) -> Figures:
        """Carry a plan out on the whole table with little effort; the loss is as with the plan's effort."""
        figures = try_plan(self.records, plan.with_little_effort())
        by_column = {name: self.effort * loss for name, loss in figures.by_column.items()}
        return replace(figures, by_column=by_column)

    def _loss(self, figures: Figures, plan: Plan) -> float:
        """Return the percent lost of the columns that were protected at first; dropped ones count whole."""
        lost = total = 0.0
        for name, weight in self.weights.items():
            if name in plan.drop and name in (self.may_drop or ()):
                continue
            share_lost = 100.0 if name in plan.drop else figures.by_column.get(name, 0.0)
            lost, total = lost + weight * share_lost, total + weight
        return lost / total if total else 0.0

    def _excess(self, figures: Figures, plan: Plan | None = None, sample: bool = False) -> float:
        """Return how far figures are above the targets, in shares of each; 0: they meet them.

        How far an analysis moves is counted on the whole table only: a sample moves it farther.
        """
        if figures.problem is not None:
            return math.inf
        if not sample and len(figures.analyses) < len(self.start.analyses):
            return math.inf
        over, most = figures.below_k, self.accept
        for figure, limit, least in (
            (self._loss(figures, plan or self.plan), most.loss, 1.0),
            (figures.linkage, most.linkage, 0.01),
            (figures.moved, None if sample else most.moved, 0.1),
        ):
            if limit is not None:
                over += max(0.0, figure - limit) / max(limit, least)
        return over

    def _met(self) -> bool:
        """Return whether the plan meets the targets; if it is near, with its own effort."""
        excess = self._excess(self.now)
        if excess == 0 or excess > _NEAR or self.checks >= _CHECKS:
            return excess == 0
        self.checks += 1
        figures = try_plan(self.records, self.plan)
        before = self._loss(self.now, self.plan)
        if figures.problem is None and before > 0:
            self.effort *= self._loss(figures, self.plan) / before
            self.now = figures
        return self._excess(self.now) == 0

    def steer(self) -> None:
        """Let the columns of the analysis that moved most count more, until it survives.

        An importance that the user set stays. It ends, too, where the loss with all columns counted alike
        would pass its limit.
        """
        most = math.inf if self.accept.loss is None else self.accept.loss
        limit = max(most, self._loss(self.now, self.plan))
        while self.now.moved > (self.accept.moved or 0.0) and time.monotonic() < self.ends:
            worst = max(self.now.analyses, key=lambda analysis: analysis.moved)
            plan, raised = self.plan, list[Decision]()
            for name in read_formula(worst.formula).columns:
                larger = more_important(self.plan, name)
                if self.weights.get(name) == 1 and larger is not None:
                    raised.append((name, f"importance {larger:g}"))
                    plan = with_decision(plan, *raised[-1])
            figures = self.counted(plan)
            if not raised or figures.problem is not None or self._loss(figures, plan) > limit:
                return
            former = [step for step in self.steps if step.column in dict(raised)]
            before = former[0].before if former else self._loss(self.now, self.plan)
            self.steps = [step for step in self.steps if step not in former]
            self._take(raised, plan, figures, before)

    def _take_steps(self, choices: Callable[[], Mapping[Decision, Plan]], until: float) -> None:
        """Take the steps of one phase, always that of the best price that the whole table confirms."""
        worth: dict[Decision, float] = {}
        refuted: set[Decision] = set()
        sample, start = None, self.done
        least = _LEAST_WON / max(self.accept.loss or 100.0, 1.0)
        for turn in range(len(self.weights) * 2):
            if self._met() or time.monotonic() >= self.ends:
                break
            plans = {key: plan for key, plan in choices().items() if key not in refuted}
            if turn:
                best = sorted((key for key in plans if key in worth), key=lambda key: -worth[key])
                plans = {key: plans[key] for key in best[:_AGAIN]}
            if not plans:
                break
            if sample is None:  # small enough for the trials to fit into the time of a round
                sample = TriedSample.drawn(
                    self.records, self.plan, self.sample, len(plans), _SECONDS_A_ROUND
                ).records

            def on_progress(done: int, total: int, turn: int = turn) -> None:
                left = 0.5 ** (turn + done / total)
                self._report(start + (until - start) * (1 - left))

            tried = {**plans, (None, ""): self.plan}
            figures = try_plans(sample, tried, ends=self.ends, on_progress=on_progress)
            now = self._excess(figures.pop((None, "")), sample=True)
            for key, priced in figures.items():
                worth[key] = now - self._excess(priced, plans[key], sample=True)
            ranked = sorted(figures, key=lambda key: -worth[key])
            ranked = [key for key in ranked if worth[key] > least or key[0] is None]
            for key in ranked[:_FAILURES]:
                counted = self.counted(plans[key])
                if self._is_nearer(key, plans[key], counted, least):
                    self._take([key], plans[key], counted)
                    break
                refuted.add(key)
            else:
                break
        self._report(until)

    def _is_nearer(self, key: Decision, plan: Plan, figures: Figures, least: float) -> bool:
        """Return whether a decision brings the whole table nearer to the targets.

        No drop or coarsening raises the loss above its limit, whatever else it brings nearer.
        """
        limit = math.inf
        if key[1].startswith(("drop", "coarsen")) and self.accept.loss is not None:
            limit = max(self.accept.loss, self._loss(self.now, self.plan))
        nearer = self._excess(figures, plan) < self._excess(self.now) - least
        return nearer and self._loss(figures, plan) <= limit

    def _take(
        self, keys: Sequence[Decision], plan: Plan, figures: Figures, before: float | None = None
    ) -> None:
        """Take a step; say how far analyses move, and how many records are linked where that is limited."""
        if before is None:
            before = self._loss(self.now, self.plan)
        more = figures.moved_words
        if self.accept.linkage is not None:
            more += f"; {share(figures.linkage)} of the records linked"
        if (None, "release swap") in keys:
            times = f"{figures.tables_multiple:.1f} times as far as in another sample"
            more += f"; tables of three columns move {times}"
        after = self._loss(figures, plan)
        self.steps += [Step(*key, before, after, more) for key in keys]
        self.plan, self.now = plan, figures

    def _gentle(self) -> dict[Decision, Plan]:
        """List the decisions that keep a column: kinds, coarser values, strata.

        A spiked column stays so: its loss counts who has none and who has some, that of a number does not, so
        that another kind would lower the figure and not the loss.
        """
        protected = _protected(self.plan)
        guesses = {name: self.guesses[name] for name in self.open if name in protected}
        return {
            (name, decision): plan
            for (name, decision), plan in decisions(self.records, self.plan, guesses).items()
            if isinstance(plan, Plan)
            and decision.partition(" ")[0] in ("kind", "coarsen", "stratum")
            and decision != "kind number"
            and not (name in self.needed and decision.startswith("coarsen"))
        }

    def _releases(self) -> dict[Decision, Plan]:
        """List other kinds of release, and other k."""
        k, sizes = self.plan.k, set(self.sizes)
        if self.accept.linkage is not None:
            sizes |= {k * times for times in _LARGER if k * times <= len(self.records) // 2}
        plans = {(None, f"k {size}"): self.plan.override(k=size) for size in sorted(sizes - {k})}
        return releases(self.plan) | plans

    def _drops(self) -> dict[Decision, Plan]:
        """List the columns that may be dropped; one at least stays protected."""
        protected = _protected(self.plan)
        may_go = self.open if self.may_drop is None else self.may_drop
        return {
            (name, "drop"): with_decision(self.plan, name, "drop")
            for name in self.open
            if len(protected) > 1
            and name in protected
            and name in may_go
            and name not in self.needed
        }

    def _keep_exact(self) -> None:
        """Make columns to be kept strata, whose values stay exact, if the plan then meets the targets."""
        for name in [name for name in self.keep if name in _protected(self.plan)]:
            plan = decisions(self.records, self.plan, {name: self.guesses[name]}).get(
                (name, "stratum")
            )
            if isinstance(plan, Plan):
                figures = self.counted(plan)
                if self._excess(figures, plan) == 0:
                    self._take([(name, "stratum")], plan, figures)

    def _report(self, part: float) -> None:
        """Report how far the search is; it never goes back."""
        self.done = max(self.done, part)
        if self.progress is not None:
            self.progress(int(1000 * self.done), 1000)

    @property
    def notes(self) -> dict[Any, str]:
        """The notes of the plan, with the steps about columns."""
        by_step = {step.column: f"By the search: {step.words}." for step in self.steps}
        by_step.pop(None, None)
        return {**self.plan.notes, **by_step}

    def _words(self, counted: Figures) -> str:
        """Say what was reached and, if it misses the targets, what stands in the way."""
        targets = self.accept.targets
        if self.plan.analyses:
            most = f"{self.accept.moved:g}"
            targets.append(f"analyses moved by at most {most} of their 95 % intervals")
        asked = " and ".join([", ".join(targets[:-1]), targets[-1]] if targets[1:] else targets)
        if counted.problem is not None:
            return f"No plan with {asked} was found, and the nearest cannot be carried out: {counted.problem}"
        drops_count = self.may_drop is None
        is_dropped = any(name in self.plan.drop for name in self.weights)
        gives = f"{percent(self._loss(counted, self.plan))} lost"
        gives += ", dropped columns counted whole," if is_dropped and drops_count else ""
        gives += f" and {share(counted.linkage)} of the records linked{counted.moved_words}"
        if self._excess(counted) == 0:
            return f"Counted on all records: {gives}; {asked} was asked for."
        lost = counted.by_column
        worst = worst_first(lost)[:3]
        where = ", ".join(f"{listed_names([name])} ({percent(lost[name])})" for name in worst)
        words = f"No plan with {asked} was found. The nearest: {gives}; most in {where}."
        if drops_count and any(name in self.open and name not in self.needed for name in worst):
            without = "Name columns that the file can do without by --may-drop"
            words += f" {without}: what is dropped of these does not count as lost."
        if fixed := [name for name in lost if name not in self.open or name in self.keep]:
            words += f" {listed_names(fixed)} must stay, by what you decided."
        if needed := [name for name in self.plan.analysed if name in lost]:
            words += f" The analyses need {listed_names(needed)}."
        if time.monotonic() >= self.ends:
            words += " The time was over; allow more (budget)."
        return words
