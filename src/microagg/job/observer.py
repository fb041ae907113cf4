"""Observers of a job, to which it reports stages, progress and cautions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from microagg.evidence.sentences import Caution
from microagg.formats.addresses import Place
from microagg.plan.plan import Plan


class Observer:
    """Receives the reports of a job; this one does nothing with them."""

    def stage(self, name: str, words: str = "") -> None:
        """Note that a stage begins.

        Stages are reading, steering, grouping, bounding, writing, measuring, attacking, pricing and
        reporting, in this order; a job has some of them.
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


_LOG = logging.getLogger("microagg")


class LoggingObserver(Observer):
    """Writes what a job does to the logger "microagg": stages and files as info, progress for debugging."""

    def stage(self, name: str, words: str = "") -> None:
        """Log that a stage begins."""
        _LOG.info("%s%s", name, f": {words}" if words else "")

    def progress(self, stage: str, done: int, total: int) -> None:
        """Log how much of a stage is done."""
        _LOG.debug("%s: %d of %d", stage, done, total)

    def left_out(self, words: str) -> None:
        """Log what the target cannot hold."""
        _LOG.info("left out: %s", words)

    def exposed(self, words: str) -> None:
        """Warn that others can read the table."""
        _LOG.warning("%s", words)

    def written(self, files: Sequence[Place]) -> None:
        """Log the names of the files."""
        _LOG.info("written: %s", ", ".join(map(str, files)))
