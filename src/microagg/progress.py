"""Watching a long computation: how far it is, and asking it to stop.

Kernels run outside the interpreter lock in a worker thread and share a small array
with the caller's thread, which can so report progress and react to Ctrl-C at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
State = NDArray[np.int64]
Report = Callable[[int], None]

# Places in the shared array: records done so far; not 0 when the kernel shall return; of the
# records done, those by a second thread (which only the first adds to DONE, so that it never falls).
DONE, STOP, BESIDE = range(3)

_SECONDS_BETWEEN_REPORTS = 0.1


def new_state() -> State:
    """Make the array that a kernel and its watcher share."""
    return np.zeros(3, dtype=np.int64)


def run_watched(work: Callable[[State], T], report: Report | None = None) -> T:
    """Run ``work(state)`` in a thread; call ``report(records done)`` ten times a second.

    An exception in the caller's thread, such as KeyboardInterrupt, makes the kernel
    stop before it is raised.
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # here, for the sake of a fast import

    state = new_state()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="microagg") as pool:
        try:
            future = pool.submit(work, state)
            while not future.done():
                wait([future], timeout=_SECONDS_BETWEEN_REPORTS)
                if report is not None and not future.done():
                    report(int(state[DONE]))
            result = future.result()
            if report is not None:
                report(int(state[DONE]))
            return result
        except BaseException:
            state[STOP] = 1  # leaving the block waits for the thread
            raise
