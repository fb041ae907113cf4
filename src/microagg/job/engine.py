"""What a job asks of an engine: the steps from file to file, in the order in which they are called."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from microagg.base.formatting import plural
from microagg.base.progress import Clock
from microagg.drafting.draft import Completed
from microagg.engines.memory.control_group import seconds_for_evidence
from microagg.errors import StopSearch
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import CountedFile, History, Measured
from microagg.formats.batches import BatchSource
from microagg.formats.files import Source
from microagg.formats.layouts import FileFormat
from microagg.job.delivery import Delivery
from microagg.job.job import Job
from microagg.job.observer import Observer
from microagg.measure.attack import OnProgress
from microagg.report.model import release_model

NOTICED = 2.0
"""Seconds after which somebody asks what takes so long."""


class Engine(ABC):
    """A table on its way from file to file; :func:`microagg.job.run.run` calls the methods in this order.

    What ``closing`` holds is open until the files have taken their names.
    """

    digest: str
    """Hash of the file that was read."""
    records: int
    columns: int
    drafted: Completed
    """The plan that is carried out."""
    left_out: list[str]
    """Metadata of the source that the written file does not have, in words."""
    in_parts = False
    """Whether the table is never in memory as a whole."""

    def __init__(self, job: Job, observer: Observer, clock: Clock, closing: ExitStack) -> None:
        self.job, self.observer, self.clock, self.closing = job, observer, clock, closing

    @abstractmethod
    def read(self) -> list[str]:
        """Open the source, and refuse it if it cannot work; return what the target has no place for."""

    @abstractmethod
    def prepare(self) -> str:
        """Fill in what the plan leaves open; return what there is to say about the grouping, if anything."""

    @abstractmethod
    def group(self) -> None:
        """Group the records; the observer gets the plan once nothing is left to refuse without work."""

    @abstractmethod
    def write(self, delivery: Delivery) -> CountedFile:
        """Write the released table to its temporary file, read it back and count in it what was promised."""

    def history(self, counted: CountedFile, delivery: Delivery) -> History | None:
        """Return what was counted over this and earlier releases; None: there is no ledger."""
        return None

    def write_ledger(self, part: Path) -> None:  # noqa: B027 - most engines have none
        """Write the ledger with this release to its temporary file."""

    @abstractmethod
    def measure(self) -> Measured:
        """Measure loss and risk."""

    def begin_attacks(self) -> tuple[OnProgress, Callable[[], bool]] | None:
        """Say how long attacks with people put aside take, if a limit or a board's report asks for them.

        Returns what to call with the steps done and their total, and what tells whether to end early.
        """
        plan, job = self.drafted.plan, self.job
        board = job.report is not None and not job.public
        if plan.accept.inference is None and not (plan.is_swapped and board):
            return None
        stopped = False

        def progress(done: int, total: int) -> None:
            nonlocal stopped
            try:
                self.observer.progress("attacking", done, total)
            except StopSearch:
                stopped = True

        grouping = self.clock.seconds.get("partition", 0.0)
        seconds = seconds_for_evidence(self.records, self.columns, grouping)
        time = plural(math.ceil(seconds), "second")
        words = f"attacks with people put aside as controls take about {time}"
        self.observer.stage("attacking", words if seconds >= NOTICED else "")
        return progress, lambda: stopped

    def format_to_write(self, source: Source | BatchSource) -> FileFormat:
        """Return the format of the source that was read, as far as the target is of the same kind."""
        job, kind = self.job, self.job.kind_of_target
        same = job.reads.suffix.lower() == job.writes.suffix.lower()
        if not same and (kind != source.kind or kind == "csv"):
            return source.format.for_another(job.csv)
        return source.format

    def report_model(self, evidence: Evidence, public: bool) -> dict[str, Any]:
        """Gather what a report shows, as plain data; only memory has public ones."""
        return release_model(evidence)
