"""prices(): what each decision about a column would cost, estimated by grouping a sample again.

For each column every other decision that fits it is tried, one at a time: another kind, coarser values,
protect it, make it a stratum, drop it, call it confidential; for the whole plan, other kinds of release. A
trial groups a sample of at most 5,000 records, in whole units, with little effort;
:mod:`microagg.comparing.trials` estimates the loss of the whole table from that.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from microagg.base.formatting import fewer_than, percent, plural, share, with_noun
from microagg.base.formatting import names as listed_names
from microagg.comparing.column_decisions import Decision, decisions, releases
from microagg.comparing.trials import (
    LATE,
    Figures,
    TriedSample,
    check_budget,
    quickly,
    try_plan,
    try_plans,
)
from microagg.engines.memory.table import Table
from microagg.errors import InputError, shown
from microagg.plan.change_role import ROLE_WORDS, role_of
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

SAMPLE = 5_000
BUDGET = 20.0
_NOW = "as it stands"
# What a decision must save to be shown: points of loss, or a share of the records below k.
_LEAST_WON, _LEAST_FEWER = 0.1, 0.005
_SHOWN = ("decision", "loss", "change", "group_loss", "linkage", "below_k", "at_stake", "tables",
          "tables_multiple", "problem")  # fmt: skip


@dataclass(frozen=True)
class Price(Figures):
    """Figures of the table after one decision about one column.

    Losses are estimates for the whole table, the other figures are those of the sample. ``at_stake`` is given
    for claims of confidentiality and for the plan as it stands.
    """

    decision: str = ""
    """protect, stratum, drop, confidential, "kind spiked", a recoding such as "coarsen bands:5", for a column
    of an analysis "importance 2" (its loss is that of all columns counted alike), or, for the whole plan,
    "release swap" or "categories draw"."""
    change: float = math.nan
    """Points by which the loss differs from that of the plan as it stands."""
    plan: Plan | None = field(default=None, repr=False, compare=False)
    """The plan with this decision."""

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; no figure is None where there is a problem."""
        plain = {name: getattr(self, name) for name in _SHOWN}
        plain = {name: None if value != value else value for name, value in plain.items()}
        moved = [{"formula": each.formula, "moved": each.moved} for each in self.analyses]
        return {**plain, "analyses": moved}

    @property
    def words(self) -> str:
        """The figures in words."""
        if self.problem is not None:
            return self.problem
        is_now = self.decision == _NOW
        said = f"{percent(self.loss)} lost"
        if not is_now:
            points = f"{abs(self.change):.{1 if abs(self.change) >= 1 else 2}f}"
            change = ("+" if self.change > 0 else "−") + with_noun(points, "point")
            said += f" ({change if abs(self.change) >= 0.01 else 'no change'})"
        if self.at_stake is not None and not is_now:
            said += f"; if an attacker knows it after all, {_records(self.at_stake)} below k"
        else:
            said += f", {share(self.linkage)} linked"
            if self.below_k or is_now:
                said += f", {_records(self.below_k)} below k"
            if self.decision.startswith((_NOW, "release", "categories")):
                said += (
                    f"; tables of three columns: {share(self.tables)} of the records in another cell, "
                    f"{self.tables_multiple:.1f} times as many as in another sample"
                )
        return said + self.moved_words


@dataclass(frozen=True)
class ColumnPrices:
    """The decisions about one column."""

    column: Any
    role: str
    """As it stands: protect, stratum, known, confidential, drop, renumber or weight."""
    loss: float | None
    """Percent of its information that is lost, if it is protected."""
    decisions: Sequence[Price]

    @property
    def most_won(self) -> float:
        """Points of loss that the best safe decision saves; 0: none does."""
        tried = [price for price in self.decisions if price.problem is None]
        return max((-p.change for p in tried if not p.at_stake and not p.below_k), default=0.0)


@dataclass(frozen=True)
class Prices:
    """What each decision about each column costs; the columns at which most is won come first."""

    plan: Plan
    """As it stands, with a role for every column."""
    now: Price
    """What the plan gives as it stands; ``by_column`` has what each protected column loses, ``stakes`` the
    share of the records below k if one confidential column alone is known after all."""
    columns: Sequence[ColumnPrices]
    releases: Sequence[Price]
    """Other kinds of release for the whole plan."""
    records: int
    seconds: float
    budget: float
    tried: TriedSample = field(repr=False, compare=False)
    """The sample and what the plan gives on it."""

    @property
    def sampled(self) -> int:
        """Number of records that were grouped; all, or a sample."""
        return len(self.tried.records)

    @property
    def margin(self) -> float | None:
        """Points by which the loss may be off since it is of a sample (95 %); None: it was counted."""
        return self.tried.margin

    @property
    def about(self) -> str:
        """Explain the figures: the rule and the basis."""
        return f"{self.rule} {self.basis}"

    @property
    def rule(self) -> str:
        """Say how losses are counted, and what was not tried in time."""
        rule = (
            "The loss is that of the columns that stay protected; where decisions are ranked, a dropped "
            "column counts as lost whole."
        )
        untried = sum(p.problem == LATE for c in self.columns for p in c.decisions)
        if not untried:
            return rule
        return f"{rule} {plural(untried, 'decision')} did not fit into {self.budget:g} s."

    @property
    def basis(self) -> str:
        """Say which records were tried, and how exact the figures are."""
        if self.sampled == self.records:
            return f"Tried on all {plural(self.records, 'record')}, with effort fast."
        losses = "that follow what the plan as it stands loses on all records."
        if self.margin is not None:
            points = with_noun(f"{self.margin:.2g}", "point")
            right = f"right to about {points}; their differences are more exact."
            losses = f"for the whole table, {right}"
        return (
            f"Tried on {self.sampled:,} of {plural(self.records, 'record')}, with effort fast. Losses are "
            f"estimates {losses} Linkage, records below k{', analyses' * bool(self.now.analyses)} and tables "
            "are of the sample."
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "about": self.about,
            "records": self.records,
            "sampled": self.sampled,
            "margin": self.margin,
            "seconds": self.seconds,
            "now": self.now.as_dict(),
            "losses": {str(name): loss for name, loss in self.now.by_column.items()},
            "stakes": {str(name): stake for name, stake in self.now.stakes.items()},
            "columns": [
                {
                    "column": str(column.column),
                    "role": column.role,
                    "loss": column.loss,
                    "decisions": [price.as_dict() for price in column.decisions],
                }
                for column in self.columns
            ],
            "releases": [price.as_dict() for price in self.releases],
        }

    def for_report(self) -> dict[str, Any]:
        """Plain data for a report, without error messages, since these may name a value."""
        model = self.as_dict()
        for price in (price for column in model["columns"] for price in column["decisions"]):
            if price["problem"] not in (None, LATE):
                price["problem"] = "cannot be carried out"
        return model

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        """Figures of the plan as it stands: a label, the figure, and how exact an estimate is."""
        now, plan = self.now, self.plan
        estimate, of = "", ""
        if self.margin is not None:
            points = with_noun(f"{self.margin:.2g}", "point")
            estimate, of = f"estimate, ± {points}", "of the sample"
        fewer = fewer_than(plan.k, plan.words_of_unit(next(iter(plan.units), None)))
        facts = [
            ("information lost", percent(now.loss), estimate),
            ("records linked", share(now.linkage), of),
            (f"records narrowed down to {fewer}", share(now.below_k), of),
        ]
        if now.at_stake is not None:
            facts.append(("the same if confidential columns are known", share(now.at_stake), of))
        return facts + [
            (analysis.formula, analysis.short.removeprefix(analysis.formula).strip(), of)
            for analysis in now.analyses
        ]

    def best(self, most: int = 5) -> list[tuple[Any, Price]]:
        """Return the best next decisions with their columns; none that puts anybody at risk.

        While records are below k, the decisions that leave the fewest there come first; then those that keep
        most information. A column released as it is counts as kept, a dropped one as lost whole; columns
        that analyses need are not dropped.
        """
        below, kept = self.now.below_k, self._kept(self.now)
        columns = max(self._kept(replace(self.now, loss=0.0)), 1.0)
        ranked = []
        for column in self.columns:
            for price in column.decisions:
                if price.problem is not None or price.at_stake is not None:
                    continue
                won = 100 * (self._kept(price) - kept) / columns
                helps = won >= _LEAST_WON and price.below_k == 0
                if below - price.below_k >= _LEAST_FEWER or (below == 0 and helps):
                    ranked.append((below - price.below_k, won, column.column, price))
        ranked.sort(key=lambda row: row[:2], reverse=True)
        return [(name, price) for _, _, name, price in ranked[:most]]

    def _kept(self, price: Price) -> float:
        """Return the information that is kept, in columns."""
        plan = self.plan if price.plan is None else price.plan
        roles = [role_of(plan, name) for name in self.tried.records.frame.names]
        protected = sum(role.startswith("block-") for role in roles)
        exact = sum(role in ("known", "confidential", "strata") for role in roles)
        return protected * (1 - price.loss / 100) + exact

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dict a decision; ``pandas.DataFrame(prices.rows)`` makes it a frame."""
        return [
            {"column": c.column, "role": c.role, "column_loss": c.loss, **price.as_dict()}
            for c in self.columns
            for price in c.decisions
        ]

    def __str__(self) -> str:
        return "\n".join(f"{label:<14} {words}" for label, words in self.lines())

    def lines(self) -> list[tuple[str, str]]:
        """Return the table as labels and words."""
        lines = [(_NOW, self.now.words)]
        lines += [(f"  {price.decision}", price.words) for price in self.releases]
        for column in self.columns:
            lost = "" if column.loss is None else f", {percent(column.loss)} of it lost"
            lost = lost if column.loss != 0 else ", none of it lost"
            lines.append((listed_names([column.column]), f"{column.role}{lost}"))
            lines += [(f"  {price.decision}", price.words) for price in column.decisions]
        return [*lines, ("prices", self.about)]


def _records(part: float) -> str:
    """Say how many of the records are something.

    >>> _records(1.0), _records(0.0), _records(0.25)
    ('all records are', 'no record is', '25.0 % of the records are')
    """
    if part in (0.0, 1.0):
        return "all records are" if part else "no record is"
    return f"{share(part)} of the records are"


def prices(
    frame: Any,
    plan: Plan | None = None,
    *,
    sample: int = SAMPLE,
    budget: float = BUDGET,
    progress: Callable[[int, int], object] | None = None,
) -> Prices:
    """Estimate what each decision about a column costs: loss, linkage, records below k.

    Parameters
    ----------
    frame : data frame of pandas, polars or pyarrow
    plan : by default the draft of the table
    sample : most records to group for a decision
    budget : seconds for the trials; a wide table is tried on fewer records to keep to it, and decisions that
        do not fit are reported
    progress : called with the number of decisions tried and of all; it may raise
        :class:`microagg.StopSearch`

    >>> import pyarrow as pa
    >>> t = pa.table({"age": [30, 31, 34, 61, 65, 66], "sex": ["f", "m", "f", "m", "f", "m"]})
    >>> priced = prices(t, Plan.of(k=3, columns=["age", "sex"]), budget=600)
    >>> sex = next(each for each in priced.columns if each.column == "sex")
    >>> [(price.decision, round(price.loss, 1)) for price in sex.decisions]
    [('stratum', 91.2), ('drop', 1.4), ('confidential', 1.4)]
    """
    return price_table(
        Table(Frame(frame)), plan or Plan(), sample=sample, budget=budget, progress=progress
    )


def price_table(
    records: Table,
    plan: Plan,
    *,
    sample: int = SAMPLE,
    budget: float = BUDGET,
    progress: Callable[[int, int], object] | None = None,
    columns: Collection[Any] | None = None,
    tried: TriedSample | None = None,
    counted_loss: float | None = None,
) -> Prices:
    """Estimate the prices of a table that was read.

    Parameters
    ----------
    records, plan, sample, budget, progress : as for :func:`prices`
    columns : those to decide about, by default all; without any, only the plan as it stands is tried
    tried : a sample on which the same plan was tried before, to be used again
    counted_loss : percent that the plan loses on the whole table, if it was counted: estimates follow it
    """
    if not (isinstance(sample, int) and sample >= 10):
        raise InputError(f"sample is a number of records, 10 or more; got {shown(sample)}.")
    budget = check_budget(budget)
    full = records.checked(plan)
    wanted: dict[Decision, Plan | str] = {**releases(full)} if columns is None else {}
    wanted |= decisions(records, full, records.guessed(full, columns))
    quick = {key: changed for key, changed in wanted.items() if isinstance(changed, Plan)}
    # Whether a column is dropped or confidential, the others are grouped alike: one trial serves both.
    # But an analysis needs its columns in the released table.
    twice = [
        name
        for name, decision in quick
        if decision == "drop" and (name, "confidential") in quick and name not in full.analysed
    ]
    for name in twice:
        del quick[name, "drop"]
    # Loading and compiling kernels is no part of the time.
    try_plan(records.taken(np.arange(min(len(records), 50))), quickly(full))
    started = time.monotonic()
    ends = started + budget
    if progress is not None:
        progress(0, len(quick))
    if tried is None:
        tried = TriedSample.followed(records, full, sample, len(quick), budget, counted_loss)
    figures = try_plans(tried.records, quick, ends=ends, on_progress=progress)
    figures |= {(name, "drop"): figures[name, "confidential"] for name in twice}
    by_name: dict[Any, list[Price]] = {}
    for (name, decision), changed in wanted.items():
        price = Price(decision=decision, problem=str(changed))
        if isinstance(changed, Plan):
            price = price_of(decision, figures[name, decision], tried, changed)
        by_name.setdefault(name, []).append(price)
    now = replace(price_of(_NOW, tried.now, tried, None), at_stake=tried.now.at_stake)
    of_plan = by_name.pop(None, [])
    priced = [
        ColumnPrices(
            name, ROLE_WORDS.get(role_of(full, name), "protect"), now.by_column.get(name), each
        )
        for name, each in by_name.items()
    ]
    priced.sort(key=lambda column: -column.most_won)
    seconds = time.monotonic() - started
    return Prices(full, now, priced, of_plan, len(records), seconds, budget, tried)


def price_of(decision: str, figures: Figures, tried: TriedSample, plan: Plan | None) -> Price:
    """Return the price of a decision by the figures that the plan with it gives on a sample.

    ``tried`` is the sample, and what the plan as it stands gives there.
    """
    # A column that counts more lowers the loss by its weight alone: that saves nothing.
    even, now, factor = decision.startswith("importance"), tried.now, tried.factor
    loss, before = (figures.even_loss, now.even_loss) if even else (figures.loss, now.loss)
    scaled = {
        "loss": loss * factor,
        "group_loss": figures.group_loss * factor,
        "by_column": {name: lost * factor for name, lost in figures.by_column.items()},
        "at_stake": figures.at_stake if decision == "confidential" else None,
    }
    change = (loss - before) * factor
    return Price(**{**vars(figures), **scaled}, decision=decision, change=change, plan=plan)
