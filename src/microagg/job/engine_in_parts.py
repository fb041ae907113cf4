"""Engines that read a table in parts, never as a whole: what disk and Spark share, and disk itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from microagg.drafting.draft import Completed
from microagg.engines.capabilities import check_engine, check_target_kind
from microagg.engines.complete_plan import completed, with_order_of_types
from microagg.engines.disk import DiskParts
from microagg.engines.disk_release import DiskRelease
from microagg.engines.memory_needed import least_in_parts, memory_for
from microagg.engines.scratch import Scratch, opened_scratch, owner_of
from microagg.engines.verbs import Parts
from microagg.errors import MicroaggError, TableError, shown
from microagg.evidence.evidence import Evidence
from microagg.evidence.measured import CountedFile, Measured
from microagg.formats.atomic import sha256
from microagg.formats.batches import BatchSource, open_batches
from microagg.job.delivery import Delivery
from microagg.job.engine import Engine
from microagg.plan.plan import Plan
from microagg.report.model import release_model

if TYPE_CHECKING:
    from microagg.engines.spark.spark_release import SparkRelease


class EngineInParts(Engine):
    """An engine that reads a table in parts."""

    in_parts = True
    source: BatchSource
    release: DiskRelease | SparkRelease
    is_far = False
    """Whether other machines measure, which do not ask whether to go on."""

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

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse a source that has changed since it was hashed, also if something fails for that reason."""
        try:
            yield
        except MicroaggError:
            raise
        except Exception:
            self._check_hash()
            raise
        self._check_hash()

    def _check_hash(self) -> None:
        if sha256(self.job.reads) != self.digest:
            raise TableError(
                "A table that is read in parts is read several times, and must be the same each time; "
                f"{shown(str(self.job.reads), 300)} changed meanwhile. Nothing was released. Run it again, "
                "once nobody writes to it."
            )

    def measure(self) -> Measured:
        """Measure a sample, and take what was counted in all records."""
        attacks = dict[str, Any]()
        if self.attacks_itself:
            progress, should_stop = self.begin_attacks()
            attacks = {"attack": True}
            if not self.is_far:
                attacks |= {"progress": progress, "should_stop": should_stop}
        return self.release.measured(pictures=self.job.report is not None, **attacks)

    def report_model(self, evidence: Evidence, public: bool) -> dict[str, Any]:
        """Gather what the board's report shows."""
        return release_model(evidence)


class DiskEngine(EngineInParts):
    """Keeps records in a scratch folder next to the target; the next run continues there after a kill."""

    release: DiskRelease
    _scratch: Scratch

    def read(self) -> list[str]:
        """Open the file, and refuse settings and targets that only other engines have."""
        check_engine("disk", self.job.given_settings)  # which may not have been asked for
        left_out = super().read()
        check_target_kind("disk", self.job.kind_of_target, self.job.target)
        return left_out

    def parts(self) -> DiskParts:
        """Return the batches of the file."""
        return DiskParts(self.source)

    def prepare(self) -> str:
        """Open the scratch folder; say what a run that was killed left there, and if memory is too short."""
        super().prepare()
        owner = owner_of(self.source, self.drafted.plan, self.job.numbers, self.digest)
        self._scratch = self.closing.enter_context(opened_scratch(self.job.writes, owner))
        short = least_in_parts(self.records, self.columns, self.job.memory)
        return "; ".join(filter(None, [self._scratch.found, short]))

    def group(self, on_plan: Callable[[Plan], None]) -> None:
        """Group the records, chunk by chunk."""
        plan, memory = self.drafted.plan, memory_for(self.job.memory)
        on_plan(plan)
        with self.clock.time("partition"), self.unchanged():
            self.release = DiskRelease(
                self.source, plan, self._scratch, memory, self.observer.progress
            )

    def write(self, delivery: Delivery) -> CountedFile:
        """Write the table batch by batch, and count in it."""
        job, source = self.job, self.source
        same = job.reads.suffix.lower() == job.writes.suffix.lower()
        same = same and job.kind_of_target == source.kind
        form = source if same or job.to_folder else source.format.for_another(job.csv)
        with self.unchanged():
            return self.release.write(
                delivery.table, job.writes, form, self.observer.progress, job.escape_formulas
            )

    def metadata_left_out(self) -> list[str]:
        """Compare the schemas."""
        return self.release.left_out
