"""Observers of a job, to which it reports stages, progress and cautions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from microagg.evidence.sentences import Caution
from microagg.formats.addresses import Place
from microagg.plan.plan import Plan


class Observer:
    """Receives the reports of a job; this one does nothing with them."""

    def stage(self, name: str, words: str = "") -> None:
        """Note that a stage begins: reading, pricing, grouping, bounding, writing, measuring or reporting.

        ``words`` describe what was done before it, or why it will take long, if there is anything to say.
        """

    def planned(self, plan: Plan, records: int) -> None:
        """Note that the plan is complete; called before the grouping."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Note how much of a long stage is done. May raise :class:`microagg.StopSearch` to end a search."""

    def caution(self, caution: Caution) -> None:
        """Note a caution that was found."""

    def left_out(self, words: str) -> None:
        """Note what the source has and the target cannot hold; called after reading, and after writing."""

    def exposed(self, words: str) -> None:
        """Note that others can read the table on the machines at work; called before the grouping."""

    def reported(self, model: dict[str, Any]) -> None:
        """Note the contents of the board's report, as plain data."""

    def written(self, files: Sequence[Place]) -> None:
        """Note that the files have taken their names: whatever happens now, they exist."""
