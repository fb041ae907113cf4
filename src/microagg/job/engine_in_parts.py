"""Engines that read a table in parts, never as a whole: what they share, disk, and Spark.

Spark goes from Parquet to Parquet, and records never come to this process.
"""

from __future__ import annotations

import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microagg.engines.aggregates import counted_in_parts
from microagg.engines.capabilities import check_engine
from microagg.engines.disk import DiskParts
from microagg.engines.disk_release import DiskRelease
from microagg.engines.memory_needed import least_in_parts, memory_for
from microagg.engines.parts import Parts, completed, with_order_of_types
from microagg.engines.scratch import scratch_folder
from microagg.engines.spark.on_spark import SparkParts, group_in_spark, is_warm, warm_executors
from microagg.engines.spark.spark_frames import (
    TIMES_IN_FILES,
    in_microseconds,
    on_spark,
    positional,
)
from microagg.engines.spark.spark_release import SparkRelease
from microagg.engines.spark.spark_session import exposure_words, session_on
from microagg.errors import InputError, MicroaggError, TableError, listed, shown
from microagg.evidence.measured import CountedFile, Measured
from microagg.formats.atomic import sha256
from microagg.formats.batches import BatchSource, open_batches
from microagg.formats.files import FORMATS
from microagg.job.delivery import Delivery
from microagg.job.engine import Engine
from microagg.tables.release_frame import left_out_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EVERY = 0.5  # seconds between two looks at how far Spark is


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
        self.job.plan.roles(self.source.names)  # which refuses columns that the table does not have
        self.records, self.columns = self.source.rows, len(self.source.names)
        return []

    @abstractmethod
    def parts(self) -> Parts:
        """Return the table as the steps of all engines see it."""

    def prepare(self) -> str:
        """Fill in the plan by what the first records look like, and hash the source."""
        drafted = completed(self.parts(), self.job.plan)
        self.drafted = with_order_of_types(drafted, self.source.head, self.source.is_text)
        self.job.check_analyses(self.source.schema, self.drafted.plan)
        self.digest = sha256(self.job.reads)
        return ""

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse a source that has changed since it was hashed, also if something fails for that reason."""
        failed = None
        try:
            yield
        except MicroaggError:
            raise
        except Exception as error:
            failed = error
        if sha256(self.job.reads) != self.digest:
            raise TableError(
                "A table that is read in parts is read several times, and must be the same each time; "
                f"{shown(str(self.job.reads), 300)} changed meanwhile. Nothing was released. Run it again, "
                "once nobody writes to it."
            ) from failed
        if failed is not None:
            raise failed

    def measure(self) -> Measured:
        """Measure a sample, and take what was counted in all records."""
        attacks = dict[str, Any]()
        if (watched := self.begin_attacks()) and not self.is_far:
            attacks = {"progress": watched[0], "should_stop": watched[1]}
        return self.release.measured(pictures=self.job.report is not None, **attacks)


class DiskEngine(EngineInParts):
    """Keeps records in a scratch folder next to the target."""

    release: DiskRelease
    _folder: Path

    def read(self) -> list[str]:
        """Open the file, and refuse settings and targets that only other engines have."""
        check_engine("disk", self.job.given_settings)  # which may not have been asked for
        left_out = super().read()
        if not FORMATS[self.job.kind_of_target].in_batches:
            raise InputError(
                "A table that is read in parts is written as Parquet or CSV; "
                f"{shown(str(self.job.target), 300)} is neither. Choose another ending, or say "
                "engine = memory."
            )
        return left_out

    def parts(self) -> DiskParts:
        """Return the batches of the file."""
        return DiskParts(self.source)

    def prepare(self) -> str:
        """Also make the scratch folder; say if memory is too short."""
        super().prepare()
        self._folder = self.closing.enter_context(scratch_folder(self.job.writes))
        return least_in_parts(self.records, self.columns, self.job.memory)

    def group(self) -> None:
        """Group the records, chunk by chunk."""
        plan, memory = self.drafted.plan, memory_for(self.job.memory)
        self.observer.planned(plan, self.records)
        with self.clock.time("partition"), self.unchanged():
            self.release = DiskRelease(
                self.source, plan, self._folder, memory, self.observer.progress
            )

    def write(self, delivery: Delivery) -> CountedFile:
        """Write the table batch by batch, and count in it."""
        form, report = self.format_to_write(self.source), self.observer.progress
        with self.unchanged():
            counted = self.release.write(
                delivery.table, self.job.writes, form, report, self.job.escape_formulas
            )
        self.left_out = self.release.left_out
        return counted


class SparkEngine(EngineInParts):
    """Has a session of Spark as long as the job lasts.

    Each method raises the right error when Java stops answering; outside of them that would look like a disk
    that cannot be written to.
    """

    release: SparkRelease
    is_far = True
    _session: SparkSession
    _frame: DataFrame

    @on_spark()
    def read(self) -> list[str]:
        """Open the files, and start a session or take the one there is."""
        left_out = super().read()
        self.closing.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", FutureWarning)  # of Spark about versions of pandas
        opened = session_on(self.job.master, self.records)
        self._session = session = self.closing.enter_context(opened)
        if words := exposure_words(session):
            self.observer.exposed(words)
        for name, value in TIMES_IN_FILES.items():
            self.closing.callback(_if_alive, session.conf.set, name, session.conf.get(name))
            session.conf.set(name, value)
        frame = session.read.parquet(str(self.job.reads.absolute()))
        self._frame, nanoseconds = in_microseconds(frame, self.source.schema)
        if nanoseconds:
            left_out.append(
                "Spark has times in microseconds: nanoseconds are cut off in "
                f"{listed(nanoseconds, limit=5)}."
            )
        self.job.plan.roles(self._frame.columns)
        return left_out

    def parts(self) -> SparkParts:
        """Return the rows, with value labels and the like, which Spark does not hand on."""
        fields = {field.name: field.metadata for field in self.source.schema if field.metadata}
        return SparkParts(*positional(self._frame), fields)

    @on_spark()
    def prepare(self) -> str:
        """Let a worker look at the first records."""
        return super().prepare()

    @on_spark()
    def group(self) -> None:
        """Compile where the workers are, and group the records there."""
        plan = self.drafted.plan
        self.observer.planned(plan, self.records)
        with self.clock.time("partition"):
            if not is_warm(self._session, plan):
                warm_executors(self._session, plan)
            with _progress_of(self._session, partial(self.observer.progress, "grouping")):
                self.release = SparkRelease.of(group_in_spark(self._frame, plan))
        self.closing.callback(_if_alive, self.release.unpersist)

    @on_spark()
    def write(self, delivery: Delivery) -> CountedFile:
        """Let the workers write a folder of Parquet files, and count in it."""
        part = delivery.table
        with self.unchanged():
            self.release.data.write.mode("append").parquet(str(part.absolute()))
            verified = self.release.verify(self._session.read.parquet(str(part.absolute())))
            for path in [*part.rglob("_SUCCESS"), *part.rglob("*.crc")]:  # files that Spark adds
                path.unlink()
            self.left_out = left_out_words(self.source.schema, open_batches(part).schema)
            encoding, sums = self.release.grouped.encoding, self.release.grouped.sums
            return counted_in_parts(encoding, sums, part, self.job.writes, verified)

    @on_spark()
    def measure(self) -> Measured:
        """Measure a sample in one task, and take what was counted in all records."""
        return super().measure()


def _if_alive(undo: Callable[..., object], *arguments: object) -> None:
    with suppress(Exception):  # of a Spark that is gone
        undo(*arguments)


class _TasksDone(int):
    """Tasks that are done; ``doing`` names the running stage, since nobody knows how many will follow."""

    doing: str


@contextmanager
def _progress_of(session: SparkSession, on_progress: Callable[[int, int], None]) -> Iterator[None]:
    """Report the tasks done and all tasks of the stages begun so far, now and then, from a thread.

    A stage that is no longer active counts as done: a short one ends between two looks.
    """
    tracker, ended = session.sparkContext.statusTracker(), threading.Event()
    tasks_of: dict[int, int] = {}  # of each stage that was seen

    def report(completed: dict[int, int]) -> None:
        done = _TasksDone(sum(completed.get(number, n) for number, n in tasks_of.items()))
        done.doing = f"grouping, stage {max(tasks_of)} on Spark"
        on_progress(done, sum(tasks_of.values()))

    def look() -> None:
        with suppress(Exception):  # of an observer that stops, or of a Spark that is gone
            while not ended.wait(_EVERY):
                stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
                active = [stage for stage in stages if stage is not None]
                tasks_of.update((stage.stageId, stage.numTasks) for stage in active)
                if active:
                    report({stage.stageId: stage.numCompletedTasks for stage in active})
            if tasks_of:
                report({})

    thread = threading.Thread(target=look, daemon=True, name="microagg-progress")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
