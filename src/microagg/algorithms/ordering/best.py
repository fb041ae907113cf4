"""The best of several attempts, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TypeVar

from microagg.base.progress import DONE, STOP, State, new_state
from microagg.compile.threads import at_work, thread_count

T = TypeVar("T")
R = TypeVar("R")

_SECONDS_BETWEEN_LOOKS = 0.05


def best_of(
    tasks: Sequence[T], attempt: Callable[[T, State], tuple[float, R]], n: int, state: State
) -> R:
    """Return the result with the least value, the first of equals, whatever the threads.

    ``attempt(task, own_state) -> (value, result)`` should spend its time outside the
    interpreter lock. ``state`` counts n records in proportion to the attempts that are done;
    when it says stop, the attempts stop, too.
    """
    if len(tasks) == 1:
        return attempt(tasks[0], state)[1]
    worker = new_state()
    worker[STOP] = state[STOP]
    best: tuple[float, int, R] | None = None

    def counted(task: T) -> tuple[float, R]:
        with at_work():
            return attempt(task, worker)

    with ThreadPoolExecutor(max_workers=thread_count(), thread_name_prefix="microagg") as pool:
        waiting = {pool.submit(counted, task): t for t, task in enumerate(tasks)}
        while waiting:
            if state[STOP]:
                worker[STOP] = 1
            for future in wait(waiting, _SECONDS_BETWEEN_LOOKS, FIRST_COMPLETED).done:
                t = waiting.pop(future)
                value, result = future.result()
                if best is None or (value, t) < best[:2]:
                    best = value, t, result
                if not state[STOP]:
                    state[DONE] = n * (len(tasks) - len(waiting)) // len(tasks)
    assert best is not None
    return best[2]
