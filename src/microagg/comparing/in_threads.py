"""Do several tries in threads, until time is over or somebody asks to stop."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from microagg.base.progress import Listener
from microagg.compile.threads import at_work, thread_count
from microagg.errors import MicroaggError, StopSearch

__all__ = ["Failed", "TimedTries"]

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")

_SECONDS_BETWEEN_REPORTS = 0.1


@dataclass(frozen=True)
class Failed:
    """A try without a result."""

    problem: str
    tried: bool = True
    """False if time was over or somebody asked to stop."""


class TimedTries(Generic[Key, Found]):
    """Tries in threads, and what came of them.

    A search that holds groups when its time is over gives these; other tries have failed then.
    """

    def __init__(
        self,
        work: Callable[[Key, Listener], Found],
        *,
        ends: float = math.inf,
        workers: int | None = None,
        fair: bool = False,
    ) -> None:
        """Take the work of a try, which gets its key and a listener for the records done.

        ``ends`` is a moment by ``time.monotonic``. With ``fair`` a try takes at most half of the time left
        while others wait, so that a slow one does not use up the time of all.
        """
        self._work, self._workers, self._fair = work, workers, fair
        self.ends = ends
        self.found: dict[Key, Found | Failed] = {}
        self.records_done: dict[Key, int] = {}
        self.stop = threading.Event()
        self._waiting: set[Key] = set()

    def run(self, keys: Sequence[Key], on_progress: Callable[[], object] | None = None) -> None:
        """Do tries, the first ones first.

        ``on_progress`` is called whenever a try is done, and ten times a second; if it raises
        :class:`microagg.StopSearch`, the tries end, and those that are done are kept.
        """
        from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

        self._waiting = set(keys)
        self.records_done |= dict.fromkeys(keys, 0)
        workers = self._workers or thread_count()
        with ThreadPoolExecutor(workers, thread_name_prefix="microagg-tries") as pool:
            try:
                open_ones = {pool.submit(self._try, key) for key in keys}
                while open_ones:
                    over, open_ones = wait(open_ones, _SECONDS_BETWEEN_REPORTS, FIRST_COMPLETED)
                    for one in over:
                        one.result()
                    if on_progress is None or self.stop.is_set():
                        continue
                    try:
                        on_progress()
                    except StopSearch:
                        self.stop.set()
            except BaseException:
                self.stop.set()  # leaving the block waits for the threads
                pool.shutdown(cancel_futures=True)
                raise

    def _try(self, key: Key) -> None:
        self._waiting.discard(key)
        with at_work():
            self.found[key] = self._result(key)

    def _result(self, key: Key) -> Found | Failed:
        now = time.monotonic()
        ends = now + (self.ends - now) / 2 if self._fair and self._waiting else self.ends

        def check(done: int) -> None:
            self.records_done[key] = max(self.records_done[key], int(done))
            if self.stop.is_set() or time.monotonic() >= ends:
                raise StopSearch

        if self.stop.is_set() or now >= self.ends:
            return Failed(f"not tried: {self._why}", tried=False)
        try:
            return self._work(key, check)
        except StopSearch:
            return Failed(f"not finished: {self._why}", tried=False)
        except MicroaggError as error:
            return Failed(str(error))

    @property
    def _why(self) -> str:
        return "stopped" if self.stop.is_set() else "out of time"
