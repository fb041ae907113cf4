"""Threads over kernels that run outside the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

from microagg.progress import DONE, STOP, State

# More threads would only add to the memory that each of them needs.
_MOST = 16
_limit = _MOST


def limit_threads(most: int) -> None:
    """Use no more threads in this process, one of several that share the processors."""
    global _limit
    _limit = max(1, min(most, _MOST))


def thread_count() -> int:
    """How many threads to use: the processors that this process may run on."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        cores = os.cpu_count() or 1
    return min(cores, _limit)


class _Books:
    """How many threads of this process are at work: those with work of their own, and their helpers."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.own = self.helping = 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count a thread with work of its own."""
        with self.lock:
            self.own += 1
        try:
            yield
        finally:
            with self.lock:
                self.own -= 1

    def free(self) -> int:
        """How many may help one of those with work of their own, each of which gets the same share."""
        own = max(1, self.own)
        share = (thread_count() - own) // own
        return max(0, min(share, thread_count() - own - self.helping))

    @contextmanager
    def taken(self, most: int) -> Iterator[int]:
        """Take helpers away from others for a while; tells how many."""
        with self.lock:
            count = min(most, self.free())
            self.helping += count
        try:
            yield count
        finally:
            with self.lock:
                self.helping -= count


_books = _Books()


def share_out(
    work: Callable[[int, int, int], object],
    items: int,
    state: State,
    done: int = 0,
    *,
    at_once: int = 32,
) -> None:
    """Call ``work(begin, end, thread)`` for pieces of range(items), in threads if there are many.

    A thread takes the next piece when it is through with one, so ``work`` must give the same
    result whichever thread does it, in whichever order. Returns early when asked to stop.
    The records done rise by ``done`` on the way.
    """
    lock = Lock()
    start = int(state[DONE])
    taken = finished = 0

    def loop(thread: int) -> None:
        nonlocal taken, finished
        while not state[STOP]:
            with lock:
                begin, taken = taken, taken + at_once
            if begin >= items:
                return
            end = min(begin + at_once, items)
            work(begin, end, thread)
            with lock:
                finished += end - begin
                state[DONE] = max(state[DONE], start + done * finished // items)

    def counted(thread: int) -> None:
        with _books.at_work():
            loop(thread)

    threads = min(thread_count(), -(-items // at_once))
    if threads <= 1:
        loop(0)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="microagg") as pool:
        for _ in pool.map(counted, range(threads)):
            pass


class Helpers:
    """Threads that help another one, now and then, with something too short to start threads for.

    Only as many help as there are processors for which the process has nothing else to do: threads that
    :func:`share_out` keeps busy need no helpers, until some of them are through with their work.
    """

    def __init__(self) -> None:
        self.most = thread_count() - 1
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Helpers:
        """Begin; no thread is started before it is needed."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def free(self) -> int:
        """How many would help now."""
        return min(self.most, _books.free())

    def share(self, work: Callable[[int, int, int], object], items: int, at_once: int) -> None:
        """Call ``work(begin, end, thread)`` for pieces of range(items), as :func:`share_out` does.

        Threads are numbered from 0, which is the caller's.
        """
        pieces = iter(
            range(0, items, at_once)
        )  # to take the next one is one step of the interpreter

        def loop(thread: int) -> None:
            for begin in pieces:
                work(begin, min(begin + at_once, items), thread)

        with _books.taken(min(self.most, -(-items // at_once) - 1)) as count:
            if count and self._pool is None:
                self._pool = ThreadPoolExecutor(self.most, thread_name_prefix="microagg-helper")
            others = [self._pool.submit(loop, 1 + a) for a in range(count)] if self._pool else []
            loop(0)
            for other in others:
                other.result()
