"""The engine on Spark: from Parquet to Parquet, and records never come to this process."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from microagg.drafting.draft import Completed
from microagg.engines.spark.on_spark import SparkParts, group_in_spark
from microagg.engines.spark.spark_frames import (
    TIMES_IN_FILES,
    in_microseconds,
    microsecond_words,
    on_spark,
    positional,
    with_nanoseconds,
)
from microagg.engines.spark.spark_release import SparkRelease
from microagg.engines.spark.spark_session import exposure_words, session_on
from microagg.engines.spark.spark_warm import is_warm, warm_executors
from microagg.evidence.measured import CountedFile, Measured
from microagg.formats.batches import open_batches
from microagg.job.delivery import Delivery
from microagg.job.engine_in_parts import EngineInParts
from microagg.plan.plan import Plan
from microagg.tables.release_frame import left_out_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EVERY = 0.5  # seconds between two looks at how far Spark is


class SparkEngine(EngineInParts):
    """Has a session of Spark as long as the job lasts.

    Each method raises the right error when Java stops answering; outside of them that would look like a disk
    that cannot be written to.
    """

    release: SparkRelease
    is_far = True
    _session: SparkSession
    _frame: DataFrame
    _left_out: list[str]

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
        nanoseconds = with_nanoseconds(self.source.schema)
        if nanoseconds:
            left_out = [*left_out, microsecond_words(nanoseconds)]
        for name, value in TIMES_IN_FILES.items():
            before: Any = session.conf.get(name)
            self.closing.callback(self._set_back, name, before)
            session.conf.set(name, value)
        frame = session.read.parquet(str(self.job.reads.absolute()))
        self._frame = in_microseconds(frame, self.source.schema, nanoseconds)
        self.job.check_names(self._frame.columns)
        return left_out

    def _set_back(self, name: str, value: str) -> None:
        with suppress(Exception):  # of a Spark that is gone
            self._session.conf.set(name, value)

    def parts(self) -> SparkParts:
        """Return the rows, with value labels and the like, which Spark does not hand on."""
        fields = {field.name: field.metadata for field in self.source.schema if field.metadata}
        return SparkParts(*positional(self._frame), fields)

    @on_spark()
    def complete(self) -> Completed:
        """Let a worker look at the first records."""
        return super().complete()

    @on_spark()
    def group(self, on_plan: Callable[[Plan], None]) -> None:
        """Compile where the workers are, and group the records there."""
        plan = self.drafted.plan
        on_plan(plan)
        with self.clock.time("partition"):
            if not is_warm(self._session, plan):
                warm_executors(self._session, plan)
            with _progress_of(self._session, partial(self.observer.progress, "grouping")):
                self.release = SparkRelease.of(group_in_spark(self._frame, plan))
        self.closing.callback(self._unpersist)

    def _unpersist(self) -> None:
        with suppress(Exception):  # of a Spark that is gone
            self.release.unpersist()

    @on_spark()
    def write(self, delivery: Delivery) -> CountedFile:
        """Let the workers write a folder of Parquet files, and count in it."""
        part = delivery.table
        with self.unchanged():
            self.release.data.write.mode("append").parquet(str(part.absolute()))
            verified = self.release.verify(self._session.read.parquet(str(part.absolute())))
            for path in [*part.rglob("_SUCCESS"), *part.rglob("*.crc")]:  # files that Spark adds
                path.unlink()
            self._left_out = left_out_words(self.source.schema, open_batches(part).schema)
            return self.release.counted(part, self.job.writes, verified)

    def metadata_left_out(self) -> list[str]:
        """Compare the schemas."""
        return self._left_out

    @on_spark()
    def measure(self) -> Measured:
        """Measure a sample in one task, and take what was counted in all records."""
        return super().measure()


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
                stages = {
                    number: tracker.getStageInfo(number) for number in tracker.getActiveStageIds()
                }
                active = {number: stage for number, stage in stages.items() if stage is not None}
                tasks_of.update((number, stage.numTasks) for number, stage in active.items())
                if active:
                    report({number: stage.numCompletedTasks for number, stage in active.items()})
            if tasks_of:
                report({})

    thread = threading.Thread(target=look, daemon=True, name="microagg-progress")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
