"""The engine for tables that are larger than memory: they are read in parts, and work is kept on disk."""

from __future__ import annotations

from collections.abc import Callable

from microagg.engines.capabilities import check_engine, check_target_kind
from microagg.engines.disk import DiskParts
from microagg.engines.disk_release import DiskRelease
from microagg.engines.memory_needed import least_in_parts, memory_for
from microagg.engines.scratch import Scratch, opened_scratch, owner_of
from microagg.evidence.measured import CountedFile
from microagg.job.delivery import Delivery
from microagg.job.engine_in_parts import EngineInParts
from microagg.plan.plan import Plan


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
        with self.clock.time("partition"):
            self.release = DiskRelease(
                self.source, plan, self._scratch, memory, self.hears.progress
            )

    def write(self, delivery: Delivery) -> CountedFile:
        """Write the table batch by batch, and count in it."""
        job, source = self.job, self.source
        same = job.reads.suffix.lower() == job.writes.suffix.lower()
        same = same and job.kind_of_target == source.kind
        form = source if same or job.to_folder else source.format.for_another(job.csv)
        counted = self.release.write(
            delivery.table, job.writes, form, self.hears.progress, job.escape_formulas
        )
        self.check_unchanged()
        return counted

    def metadata_left_out(self) -> list[str]:
        """Compare the schemas."""
        return self.release.left_out
