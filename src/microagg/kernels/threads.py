"""Threads over kernels that run outside the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from microagg.progress import DONE, STOP, State, new_state

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

    threads = min(thread_count(), -(-items // at_once))
    if threads <= 1:
        loop(0)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="microagg") as pool:
        for _ in pool.map(loop, range(threads)):
            pass


def each(work: Callable[[int], object], items: int) -> None:
    """Call ``work(item)`` for each of range(items), in threads if there is more than one.

    For what is done at once: nobody can watch it or stop it.
    """
    if items == 1 or thread_count() == 1:
        for item in range(items):
            work(item)
        return
    share_out(lambda begin, end, thread: work(begin), items, new_state(), at_once=1)
