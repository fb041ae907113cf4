"""How far Spark is with what it was asked: the tasks that are done of the stages that run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY = 0.5  # seconds


class TasksDone(int):
    """Tasks of the stages that run now; ``doing`` names these, since nobody knows how many will follow."""

    doing: str

    @classmethod
    def of_stages(cls, tasks: int, numbers: list[int]) -> TasksDone:
        """Return a number of tasks that names their stages."""
        found = cls(tasks)
        found.doing = f"grouping, stage {max(numbers)} on Spark"
        return found


@contextmanager
def progress_of(session: SparkSession, on_progress: Callable[[int, int], None]) -> Iterator[None]:
    """Report tasks done and all tasks of the stages that run, now and then, from a thread."""
    tracker, ended = session.sparkContext.statusTracker(), threading.Event()

    def look() -> None:
        with suppress(Exception):  # of an observer that stops, or of a Spark that is gone
            while not ended.wait(_EVERY):
                numbers = list(tracker.getActiveStageIds())
                stages = [one for one in map(tracker.getStageInfo, numbers) if one is not None]
                if stages:
                    done = sum(one.numCompletedTasks for one in stages)
                    on_progress(
                        TasksDone.of_stages(done, numbers), sum(one.numTasks for one in stages)
                    )

    thread = threading.Thread(target=look, daemon=True, name="microagg-progress")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
