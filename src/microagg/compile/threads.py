"""Threads over kernels that run outside the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar

from microagg.base.progress import DONE, STOP, State, new_state

T = TypeVar("T")
R = TypeVar("R")

# More threads would only add to the memory that each of them needs.
_MOST = 16
_limit = _MOST
_SECONDS_BETWEEN_LOOKS = 0.05  # at a wish to stop
_PIECES = 4  # of what is left for each thread, when they are shrinking


def limit_threads(most: int) -> None:
    """Use at most ``most`` threads in this process, one of several that share the processors."""
    global _limit
    _limit = max(1, min(most, _MOST))


def thread_count() -> int:
    """Return how many threads to use: the processors that this process may run on."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        cores = os.cpu_count() or 1
    return min(cores, _limit)


class _Books:
    """Counts of the threads at work in this process: those with work of their own, and their helpers."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.own = self.helping = 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count this thread as one with work of its own within the block: others then get fewer helpers."""
        with self.lock:
            self.own += 1
        try:
            yield
        finally:
            with self.lock:
                self.own -= 1

    def free(self) -> int:
        """Return how many threads would help the caller now.

        Only as many help as there are processors for which the process has nothing else to do: threads that
        :func:`share_out` keeps busy get no helpers, until some of them have finished their work. All with
        work of their own get the same share.
        """
        busy = max(1, self.own)
        share = (thread_count() - busy) // busy
        return max(0, min(share, thread_count() - busy - self.helping))


_books = _Books()
at_work, helpers = _books.at_work, _books.free


def share_out(
    work: Callable[[int, int, int], object],
    items: int,
    state: State,
    done: int = 0,
    *,
    at_once: int = 32,
    shrinking: bool = False,
) -> None:
    """Call ``work(begin, end, thread)`` for pieces of range(items), in threads if there are many.

    Returns early when asked to stop.

    Parameters
    ----------
    work : gives the same whichever thread does it, in whichever order: a thread takes the next piece when
        it has finished one
    items : how many there are
    state : the wish to stop, and progress
    done : by how many records progress rises on the way
    at_once : how many items a piece has
    shrinking : whether pieces have more items while many are left: short items then cost few calls, and
        yet all threads end at about the same time
    """
    lock = Lock()
    start = int(state[DONE])
    begun = finished = 0
    threads = max(1, min(thread_count(), -(-items // at_once)))

    def loop(thread: int) -> None:
        nonlocal begun, finished
        while not state[STOP]:
            with lock:
                begin = begun
                share = (items - begin) // (_PIECES * threads) if shrinking else 0
                begun = end = min(begin + max(at_once, share), items)
            if begin >= items:
                return
            work(begin, end, thread)
            with lock:
                finished += end - begin
                state[DONE] = max(state[DONE], start + done * finished // items)

    def counted(thread: int) -> None:
        with at_work():
            loop(thread)

    if threads <= 1:
        loop(0)
    else:
        _together(counted, threads - 1)


# --- threads that wait for work: to start them anew would take longer than much of it -------------

_pool: ThreadPoolExecutor | None = None


def _forget_pool() -> None:
    """Leave the threads to the parent: they do not live on in a process that is forked off."""
    global _pool
    _pool = None
    _books.__init__()  # type: ignore[misc]  # its lock may be held by a thread that is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _together(loop: Callable[[int], None], others: int) -> None:
    """Call ``loop(0)`` here, and ``loop(1)``, … in as many others of the threads that wait.

    Where all of them are busy, what none has begun when the call here ends is left out: it must
    not wait for threads that may wait for this one.
    """
    global _pool
    with _books.lock:
        if others and _pool is None:
            _pool = ThreadPoolExecutor(2 * _MOST, thread_name_prefix="microagg")
        rest = [_pool.submit(loop, 1 + a) for a in range(others)] if _pool else []
    try:
        loop(0)
    finally:
        begun = [other for other in rest if not other.cancel()]
        wait(begun)
    for other in begun:
        other.result()


# --- helpers: threads for which there is nothing else to do ---------------------------------------


def share_with_helpers(
    work: Callable[[int, int, int], object], items: int, *, at_once: int
) -> None:
    """Call ``work(begin, end, thread)`` for pieces of range(items), here and in helpers, if any.

    Threads are numbered from 0, which is the caller's.

    Parameters
    ----------
    work : gives the same whichever thread does it, in whichever order
    items : how many there are
    at_once : how many a call gets
    """
    pieces = iter(range(0, items, at_once))  # to take the next one is one step of the interpreter

    def loop(thread: int) -> None:
        for begin in pieces:
            work(begin, min(begin + at_once, items), thread)

    with _books.lock:  # helpers are taken away from others meanwhile
        count = max(0, min(-(-items // at_once) - 1, _books.free()))
        _books.helping += count
    try:
        _together(loop, count)
    finally:
        with _books.lock:
            _books.helping -= count


def each(work: Callable[[int], object], items: int) -> None:
    """Call ``work(item)`` for each of range(items), here and in helpers, if any."""
    share_with_helpers(lambda begin, end, thread: work(begin), items, at_once=1)


def share_growing(work: Callable[[T], Sequence[T]], first: Sequence[T]) -> None:
    """Call ``work(item)`` for some items, then for those that it returns, and so on: in turns.

    Parameters
    ----------
    work : takes an item and returns more of them, which a turn then has
    first : items to begin with
    """
    items = list(first)
    while items:
        further: list[Sequence[T]] = [()] * len(items)

        def one(place: int, items: list[T] = items, further: list[Sequence[T]] = further) -> None:
            further[place] = work(items[place])

        each(one, len(items))
        items = [item for more in further for item in more]


def best_of(
    tasks: Sequence[T], attempt: Callable[[T, State], tuple[float, R]], n: int, state: State
) -> R:
    """Return the best of several attempts, each in a thread of its own: the first of those of least value.

    Parameters
    ----------
    tasks : at least one, each an attempt
    attempt : gets a task and a state of its own, returns a value and a result; should spend its time outside
        the interpreter lock
    n : number of records
    state : counts them in proportion to the attempts that are done; when it says stop, the attempts stop too
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
