"""The best of several attempts, each in a thread of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

from microagg.progress import DONE, STOP, State, new_state

T = TypeVar("T")
R = TypeVar("R")

_SECONDS_BETWEEN_LOOKS = 0.05


def best_of(
    tasks: Sequence[T], attempt: Callable[[T, State], tuple[float, R]], n: int, state: State
) -> R:
    """Return the result with the least value, the first of equals, whatever the threads.

    ``attempt(task, own_state) -> (value, result)`` should spend its time outside the
    interpreter lock. ``state`` is told n records in proportion to the attempts that are done;
    when it says stop, the attempts are told, too.
    """
    if len(tasks) == 1:
        return attempt(tasks[0], state)[1]
    own = new_state()
    own[STOP] = state[STOP]
    best: tuple[float, int, R] | None = None
    with ThreadPoolExecutor(max_workers=_processors(), thread_name_prefix="microagg") as pool:
        waiting = {pool.submit(attempt, task, own): t for t, task in enumerate(tasks)}
        while waiting:
            if state[STOP]:
                own[STOP] = 1
            for future in wait(waiting, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED).done:
                t = waiting.pop(future)
                value, result = future.result()
                if best is None or (value, t) < best[:2]:
                    best = value, t, result
                if not state[STOP]:
                    state[DONE] = n * (len(tasks) - len(waiting)) // len(tasks)
    assert best is not None
    return best[2]


def in_threads(work: Callable[[T], None], tasks: Sequence[T]) -> None:
    """Do all tasks, each in a thread."""
    if len(tasks) == 1:
        work(tasks[0])
        return
    with ThreadPoolExecutor(max_workers=_processors(), thread_name_prefix="microagg") as pool:
        list(pool.map(work, tasks))


def _processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
