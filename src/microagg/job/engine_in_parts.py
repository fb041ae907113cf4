"""The steps that disk and Spark have in common: the table is never in memory as a whole."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

from microagg.drafting.draft import Completed
from microagg.engines.complete_plan import completed, with_order_of_types
from microagg.engines.passes import source_changed
from microagg.engines.verbs import Parts
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import Measured
from microagg.formats.atomic import sha256
from microagg.formats.batches import BatchSource, open_batches
from microagg.job.engine import Engine
from microagg.report.model import release_model


class ReleaseInParts(Protocol):
    """A release of a table that is read in parts."""

    def measured(self, **measures: Any) -> Measured:
        """Measure what was written, see :func:`microagg.engines.evidence_at_scale.measured_at_scale`."""


class EngineInParts(Engine):
    """An engine that reads a table in parts."""

    in_parts = True
    source: BatchSource
    release: ReleaseInParts

    def read(self) -> list[str]:
        """Open the source."""
        self.source = self.job.looked or open_batches(self.job.reads)  # which refuses other kinds
        self.job.check_names(self.source.names)
        self.records, self.columns = self.source.rows, len(self.source.names)
        return []

    @abstractmethod
    def parts(self) -> Parts:
        """Return the table as the steps of all engines see it."""

    def complete(self) -> Completed:
        """Fill in the plan by what the first records look like."""
        drafted = completed(self.parts(), self.job.plan)
        drafted = with_order_of_types(drafted, self.source.head, self.source.is_text)
        self.job.check_analyses(self.source.schema, drafted.plan)
        return drafted

    def prepare(self) -> str:
        """Hash the source."""
        self.digest = sha256(self.job.reads)
        return ""

    def check_unchanged(self) -> None:
        """Refuse a source that has changed since it was hashed: the report gives that hash."""
        if sha256(self.job.reads) != self.digest:
            raise source_changed(self.job.reads)

    def measure(self) -> Measured:
        """Measure a sample, and take what was counted in all records."""
        job = self.job
        return self.release.measured(
            pictures=job.report is not None,
            attack=self.attacks_itself,
            dominance=job.dominance,
            dominance_percent=job.dominance_percent,
        )

    def report_model(self, evidence: Evidence, public: bool) -> dict[str, Any]:
        """Gather what the board's report shows."""
        return release_model(evidence)
