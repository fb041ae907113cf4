"""The result of a search: the plan, the steps that led to it, and its figures on the whole table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from microagg.base.formatting import names as listed_names
from microagg.base.formatting import percent
from microagg.comparing.trials import Figures
from microagg.plan.plan import Plan


@dataclass(frozen=True)
class Step:
    """One decision of the search."""

    column: Any
    """None: it is about the whole plan."""
    decision: str
    before: float
    """Percent of the information lost before, estimated for the whole table."""
    after: float
    analyses: str = ""
    """What the analyses of the plan give after it, estimated by the sample."""

    @property
    def words(self) -> str:
        """The decision and what it changes.

        >>> Step("region", "stratum", 8.0, 9.1).words
        'region as a stratum: 8.00 → 9.10 % lost; its values stay exact'
        >>> Step(None, "k 4", 8.0, 7.1).words
        'k = 4: 8.00 → 7.10 % lost'
        """
        name = "" if self.column is None else listed_names([self.column])
        lost = f"{percent(self.before).removesuffix(' %')} → {percent(self.after)} lost"
        moved = f"; {self.analyses}" if self.analyses else ""
        kind, _, value = self.decision.partition(" ")
        if kind == "stratum":
            return f"{name} as a stratum: {lost}; its values stay exact{moved}"
        if kind == "drop":
            return f"{name} dropped: {lost} in the other columns{moved}"
        if kind == "k":
            return f"k = {value}: {lost}{moved}"
        if kind == "importance":
            return f"{name} counts {value} times as much: {lost}, all columns counted alike{moved}"
        return f"{name} made coarser ({value}): {lost}{moved}"


@dataclass(frozen=True)
class FoundPlan(Plan):
    """A plan that a search found, with the steps that led to it."""

    steps: tuple[Step, ...] = field(default=(), compare=False)
    figures: Figures = field(default_factory=Figures, compare=False)
    """What it gives on the whole table, counted."""
    meets: bool = field(default=False, compare=False)
    """Whether the targets are met by these figures."""
    runner_up: Plan | None = field(default=None, compare=False, repr=False)
    """The next best plan that met the targets on the sample."""
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

    def as_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "meets": self.meets,
            "words": self.words,
            "steps": [step.words for step in self.steps],
            "loss": self.figures.loss,
            "even_loss": self.figures.even_loss,
            "record_linkage": self.figures.linkage,
            "analyses": [{"formula": a.formula, "moved": a.moved} for a in self.figures.analyses],
            "runner_up": None if self.runner_up is None else self.runner_up.as_dict(),
        }
