"""The result of a search: the plan, the steps that led to it, and its figures on the whole table."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from microagg.base.formatting import percent
from microagg.comparing.trials import Figures
from microagg.plan.change_role import decision_words
from microagg.plan.plan import Plan


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
        steps = [("step", step.words) for step in self.steps]
        return [*steps, ("found" if self.meets else "not found", self.words)]

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
