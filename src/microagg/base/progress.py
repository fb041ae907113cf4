"""Watching a long computation: how far it is, what it has found, and asking it to stop.

Kernels run outside the interpreter lock in a worker thread and share a small array
with the caller's thread, which can thus report progress and react to Ctrl-C at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from microagg.errors import StopSearch

T = TypeVar("T")
State = NDArray[np.int64]

# Places in the shared array: records done so far; not 0 when the kernel shall return;
# not 0 as soon as what is returned when stopped is a valid result; and as the bits of doubles: the SSE of
# the best partition, a proved bound, when time is over on the monotonic clock, the records done
# before the part that is at work, and what one of its records counts.
DONE, STOP, VALID, SSE, BOUND, ENDS, BEFORE, SHARE = range(8)
_ASKED, _LATE = 1, 2  # why to stop

_SECONDS_BETWEEN_CALLS = 0.1


class Progress(int):
    """Number of records done and, from a search, what its best partition loses.

    ``information_loss`` is 100·SSE/SST, ``gap`` the share of the SSE that the best partition so far
    could still improve by at most; each is None where it is not known.

    >>> Progress(7), Progress(7, 4.5).information_loss
    (7, 4.5)
    """

    information_loss: float | None
    gap: float | None

    def __new__(
        cls, done: int, information_loss: float | None = None, gap: float | None = None
    ) -> Progress:
        """Make the number with what else is known."""
        self = super().__new__(cls, done)
        self.information_loss, self.gap = information_loss, gap
        return self


Listener = Callable[[Progress], object]  # what callers pass as ``progress=``

# The stages of a job in their order, and what each takes of a bar.
_STAGES = {
    "reading": 0.1,
    "encoding": 0.1,
    "grouping": 0.4,
    "bounding": 0.1,
    "writing": 0.05,
    "measuring": 0.05,
    "attacking": 0.1,
    "pricing": 0.08,
    "reporting": 0.02,
}


class RisingShare:
    """How much of a bar is full: it never runs backwards, whatever stages and parts report.

    The bar is of a whole job, or of one stage alone, which fills it by itself.

    >>> share = RisingShare()
    >>> [round(share.at("grouping", done, 10), 2) for done in (0, 5, 3, 10)]
    [0.2, 0.4, 0.4, 0.6]
    >>> round(share.at("reading", 1, 9), 2), round(share.at("attacking", 1, 1), 2)
    (0.6, 0.9)
    >>> RisingShare(of_job=False).at("attacking", 1, 2)
    0.5
    """

    def __init__(self, of_job: bool = True) -> None:
        self._stages = _STAGES if of_job else {}
        self._highest = 0.0

    def at(self, stage: str, done: int, total: int) -> float:
        """Return the share, 0 to 1, after a report; a stage that no job has fills the bar."""
        names = list(self._stages)
        before = (
            sum(_STAGES[name] for name in names[: names.index(stage)]) if stage in names else 0.0
        )
        within = min(int(done) / total, 1.0) if total > 0 else 0.0
        self._highest = max(self._highest, before + within * self._stages.get(stage, 1.0))
        return self._highest


def new_state() -> State:
    """Make the array that a kernel and its watcher share."""
    state = np.zeros(8, dtype=np.int64)
    state.view(np.float64)[[SSE, SHARE]] = np.inf, 1.0
    return state


def tell_best(state: State, sse: float, bound: float | None = None) -> None:
    """Note that the search holds a valid partition of this SSE, and a bound on any if known.

    The least SSE stays: a search may begin again, and what it had is not lost.

    Parameters
    ----------
    state : the search's; written to
    sse : of the partition
    bound : proved for every partition; None: none is known
    """
    values = state.view(np.float64)
    values[SSE] = min(sse, values[SSE])
    if bound is not None:
        values[BOUND] = bound
    state[VALID] = 1


def seconds_left(state: State) -> float:
    """Return the time until :func:`stop_after` sets the stop of ``state``, for solvers that have clocks."""
    ends = float(state.view(np.float64)[ENDS])
    return max(0.0, ends - time.monotonic()) if ends else float("inf")


def rest_of(time_limit: float | None, started: float) -> float | None:
    """Return what is left of ``time_limit`` since the monotonic time ``started``; None: no limit."""
    return None if time_limit is None else max(0.0, started + time_limit - time.monotonic())


@contextmanager
def part(state: State, share: float) -> Iterator[None]:
    """Let the work in the block count its own records from 0, each as a share of one.

    So a method can run another one in the same state: a stop request also reaches the inner method,
    and progress keeps increasing. The writes are ordered so that a watcher never sees too many records.

    Parameters
    ----------
    state : the counters of a running method
    share : of one record's work that a record of this part takes
    """
    values = state.view(np.float64)
    done, before, weight = int(state[DONE]), values[BEFORE], values[SHARE]
    state[DONE] = 0
    values[BEFORE], values[SHARE] = before + weight * done, weight * share
    try:
        yield
    finally:
        done += int(share * state[DONE])
        state[DONE] = 0
        values[SHARE], values[BEFORE] = weight, before
        state[DONE] = done


@contextmanager
def stop_after(state: State, seconds: float | None, records: int = 0) -> Iterator[None]:
    """Ask the search in the block to stop when the seconds are over.

    Parameters
    ----------
    state : the array that the search looks at
    seconds : until the search is asked to stop; None: never
    records : what the records done rise to meanwhile; 0: only the search counts them

    On the way the records done rise with the time. What follows the block goes on, unless
    somebody else asked to stop too.
    """
    if seconds is None:
        yield
        return
    from threading import Event, Thread  # here, for the sake of a fast import

    begins, over = time.monotonic(), Event()
    state.view(np.float64)[ENDS] = begins + seconds

    def watch() -> None:
        while (gone := time.monotonic() - begins) < seconds:
            if (rise := int(records * gone / seconds)) > state[DONE]:
                state[DONE] = rise
            if over.wait(min(_SECONDS_BETWEEN_CALLS, seconds - gone)):
                return
        if not state[STOP]:
            state[STOP] = _LATE

    if seconds == 0:
        watch()
    watcher = Thread(target=watch, daemon=True, name="microagg-clock")
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        state[ENDS] = 0
        if state[STOP] == _LATE:
            state[STOP] = 0


def records_done(state: State) -> int:
    """Return how many records are done, whatever part is at work."""
    before, share = state.view(np.float64)[[BEFORE, SHARE]].tolist()
    return int(before + share * int(state[DONE]))


def _progress(state: State, sst: float | None, last: Progress) -> Progress:
    """Return the state as a caller sees it; never fewer records than the last time."""
    done = max(last, records_done(state))
    if not (state[VALID] and sst):
        return Progress(done)
    sse, bound = state.view(np.float64)[[SSE, BOUND]].tolist()
    gap = 1 - bound / sse if bound > 0 and sse > 0 else None
    return Progress(done, 100 * sse / sst, gap)


def run_watched(
    work: Callable[[State], T],
    listener: Listener | None = None,
    *,
    state: State | None = None,
    sst: float | None = None,
) -> T:
    """Run ``work(state)`` in a thread; call ``listener(progress)`` ten times a second.

    Parameters
    ----------
    work : gets the shared array and looks at ``state[STOP]``; its result is returned
    listener : called in the caller's thread; may raise :class:`StopSearch`
    state : of :func:`new_state`, if the caller reads it afterwards; None: a new one
    sst : sum of squares of the whole table, for the loss in percent; None: no loss is reported

    An exception in the caller's thread, such as KeyboardInterrupt, makes the kernel
    stop before it is raised. When ``listener`` raises :class:`StopSearch` and the work holds a valid
    result, that is returned, and ``state[STOP]`` stays set; else the exception is raised like any other.
    """
    from concurrent.futures import ThreadPoolExecutor, wait  # here, for the sake of a fast import

    state = new_state() if state is None else state
    last = Progress(0)
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="microagg") as pool:
        try:
            future = pool.submit(work, state)
            while not future.done():
                wait([future], timeout=_SECONDS_BETWEEN_CALLS)
                if listener is not None and not future.done():
                    last = _progress(state, sst, last)
                    try:
                        listener(last)
                    except StopSearch:
                        if not state[VALID]:
                            raise
                        state[STOP] = _ASKED
                        while wait([future], timeout=_SECONDS_BETWEEN_CALLS).not_done:
                            state[STOP] = _ASKED  # again: a clock may just have taken back its own
                        return future.result()
            result = future.result()
            if listener is not None:
                with suppress(StopSearch):  # too late to stop anything
                    listener(_progress(state, sst, last))
            return result
        except BaseException:
            state[STOP] = _ASKED  # leaving the block waits for the thread
            raise


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def time(self, stage: str) -> Iterator[None]:
        """Add the time of a block to a stage."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
