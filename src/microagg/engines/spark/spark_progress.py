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
    """Tasks that are done; ``doing`` names the running stage, since nobody knows how many will follow."""

    doing: str

    @classmethod
    def at_stage(cls, tasks: int, number: int) -> TasksDone:
        """Return a number of tasks that names the stage that runs."""
        done = cls(tasks)
        done.doing = f"grouping, stage {number} on Spark"
        return done


@contextmanager
def progress_of(session: SparkSession, on_progress: Callable[[int, int], None]) -> Iterator[None]:
    """Report the tasks done and all tasks of the stages begun so far, now and then, from a thread.

    A stage that is no longer active counts as done: a short one ends between two looks.
    """
    tracker, ended = session.sparkContext.statusTracker(), threading.Event()
    tasks_of: dict[int, int] = {}  # of each stage that was seen

    def report(completed: dict[int, int]) -> None:
        done = sum(completed.get(number, tasks) for number, tasks in tasks_of.items())
        on_progress(TasksDone.at_stage(done, max(tasks_of)), sum(tasks_of.values()))

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
