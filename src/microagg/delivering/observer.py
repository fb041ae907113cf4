"""Who hears how far a job is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from microagg.evidence.sentences import Caution
from microagg.formats.addresses import Place
from microagg.plan.plan import Plan


class Observer:
    """Hears of a job; by default it listens and says nothing."""

    def stage(self, name: str, words: str = "") -> None:
        """A stage begins: reading, grouping, measuring, bounding, writing or reporting.

        ``words`` are what there is to say of what is done by then, or of what takes long, if anything.
        """

    def planned(self, plan: Plan, records: int) -> None:
        """Nothing of the plan is open any more; said before the grouping."""

    def progress(self, stage: str, done: int, total: int) -> None:
        """Part of a long stage is done. May raise :class:`microagg.StopSearch` to end a search."""

    def caution(self, caution: Caution) -> None:
        """Something to weigh was found."""

    def left_out(self, words: str) -> None:
        """The target has no place for something that the source tells; said before the grouping."""

    def exposed(self, words: str) -> None:
        """The machines that work on the table let others read it; said before the grouping."""

    def reported(self, model: dict[str, Any]) -> None:
        """What the board's report says and shows, as plain data."""

    def written(self, files: Sequence[Place]) -> None:
        """The files have taken their names; whatever happens now, they are there."""
