"""Trying cells, methods × k, in threads and within a time budget.

The cells named come first and in their order, then those that the search for a target asks for. A
cell that still runs when its time is over gives the groups that it holds by then, if it is a search
that holds any; else it counts as not tried, like all that have not begun.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from microagg.choices import Cell, Targets, next_k_for
from microagg.errors import MicroaggError, StopSearch
from microagg.groups import Floats, group_means
from microagg.kernels.threads import at_work
from microagg.partition import partition
from microagg.words import FIRST_RUN

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["Report", "Tried", "run_trials"]

_SECONDS_BETWEEN_REPORTS = 0.1
_SECONDS_TO_LOAD = 2.0  # what takes longer to get ready is being compiled


class Tried(int):
    """Number of records grouped over all cells, and how far the trials are.

    >>> Tried(450, tried=3, cells=15, seconds_left=41.0).words
    '3 of 15 tried, at most 41 s left'
    """

    tried: int
    cells: int
    seconds_left: float
    compiling: bool

    def __new__(
        cls,
        done: int,
        *,
        tried: int = 0,
        cells: int = 0,
        seconds_left: float = math.inf,
        compiling: bool = False,
    ) -> Tried:
        """Make the number with what is known beside it."""
        self = super().__new__(cls, done)
        self.tried, self.cells = tried, cells
        self.seconds_left, self.compiling = seconds_left, compiling
        return self

    @property
    def words(self) -> str:
        """What to show beside a bar."""
        if self.compiling:
            return f"compiling {FIRST_RUN}"
        left = f", at most {self.seconds_left:.0f} s left" if self.seconds_left < math.inf else ""
        return f"{self.tried} of {self.cells} tried{left}"


Report = Callable[[Tried, int], object]


@dataclass(frozen=True)
class Trials:
    """What to try, checked."""

    matrix: Floats
    names: list[Any]
    methods: list[str]
    sizes: list[int]
    scale: str
    random_state: int | None
    options: Mapping[str, Mapping[str, Any]]
    targets: Targets
    budget: float | None
    """Seconds, not counting the time to load and compile; None: no limit."""
    workers: int | None

    @property
    def announcement(self) -> str:
        """What is about to happen, and how long it takes at most."""
        methods, sizes = len(self.methods), len(self.sizes)
        limit = "" if self.budget is None else f", at most {self.budget:g} s"
        search = "; then other k in search of the target" if self.targets.given else ""
        return f"{methods} method{'s' if methods > 1 else ''} × {sizes} k{limit}{search}"


def run_trials(trials: Trials, progress: Report | None) -> tuple[list[Cell], bool]:
    """Try all cells, then search k for the targets; tell whether ``progress`` asked to stop.

    Raises
    ------
    StopSearch
        If ``progress`` raised it before any cell had a result.
    """
    from concurrent.futures import ThreadPoolExecutor  # here, for the sake of a fast import

    workers = trials.workers or os.cpu_count() or 1
    with ThreadPoolExecutor(workers, thread_name_prefix="microagg-compare") as pool:
        run = _Run(trials, pool, progress)
        try:
            run.prepare()
            run.try_all([(name, k) for name in trials.methods for k in trials.sizes])
            while trials.targets.given and (wanted := run.to_search()):
                run.try_all(wanted)
        except BaseException:
            run.stop.set()  # leaving the block waits for the threads
            pool.shutdown(cancel_futures=True)
            raise
    cells = [run.cells[name, k] for name in trials.methods for k in run.sizes_of(name)]
    if run.stop.is_set() and all(cell.problem is not None for cell in cells):
        raise StopSearch
    return cells, run.stop.is_set()


class _Run:
    """The state that the threads of one comparison share."""

    def __init__(self, trials: Trials, pool: ThreadPoolExecutor, progress: Report | None) -> None:
        self.trials, self.pool, self.progress = trials, pool, progress
        self.cells: dict[tuple[str, int], Cell] = {}
        self.stop = threading.Event()
        self._waiting: set[tuple[str, int]] = set()
        self._done: dict[tuple[str, int], int] = {}
        self._began = time.monotonic()
        self._ends = math.inf

    def prepare(self) -> None:
        """Load and compile each method on a few records, which is no part of its time."""
        self._watch([self.pool.submit(self._warm_up)], compiling=True)
        if self.trials.budget is not None:
            self._ends = time.monotonic() + self.trials.budget

    def _warm_up(self) -> None:
        trials, k = self.trials, min(self.trials.sizes)
        few = trials.matrix[: 2 * k]
        for name in trials.methods:
            if self.stop.is_set():
                return
            with suppress(MicroaggError):  # shows again, with its reason, on the whole table
                partition(few, k, method=name, scale=trials.scale, random_state=trials.random_state)

    def sizes_of(self, method: str) -> list[int]:
        """List the k tried with a method, ascending."""
        return sorted(k for name, k in self.cells if name == method)

    def to_search(self) -> list[tuple[str, int]]:
        """List the cells that the search for the targets asks for next, one a method."""
        if self.stop.is_set():
            return []
        found = []
        for name in self.trials.methods:
            cells = [self.cells[name, k] for k in self.sizes_of(name)]
            k = next_k_for(cells, self.trials.targets, len(self.trials.matrix))
            if k is not None:
                found.append((name, k))
        return found

    def try_all(self, wanted: list[tuple[str, int]]) -> None:
        """Try cells, as many at a time as there are workers."""
        self._waiting = set(wanted)
        self._done |= dict.fromkeys(wanted, 0)
        self._watch([self.pool.submit(self._try, name, k) for name, k in wanted])

    def _watch(self, futures: Iterable[Future[None]], compiling: bool = False) -> None:
        """Wait for the futures, telling how far they are; stop them when asked to."""
        from concurrent.futures import wait

        begun = set(futures)
        while begun:
            over, begun = wait(begun, timeout=_SECONDS_BETWEEN_REPORTS)
            for future in over:
                future.result()
            if self.progress is None or self.stop.is_set():
                continue
            try:
                self.progress(self._tried(compiling), len(self.trials.matrix) * self._n_cells())
            except StopSearch:
                self.stop.set()

    def _n_cells(self) -> int:
        return len(self._done) or len(self.trials.methods) * len(self.trials.sizes)

    def _tried(self, compiling: bool) -> Tried:
        now = time.monotonic()
        return Tried(
            sum(self._done.values()),
            tried=len(self.cells),
            cells=self._n_cells(),
            seconds_left=max(0.0, self._ends - now),
            compiling=compiling and now - self._began > _SECONDS_TO_LOAD,
        )

    def _try(self, name: str, k: int) -> None:
        self._waiting.discard((name, k))
        with at_work():
            self.cells[name, k] = self._cell(name, k)
        self._done[name, k] = len(self.trials.matrix)

    def _cell(self, name: str, k: int) -> Cell:
        trials, now = self.trials, time.monotonic()
        if self.stop.is_set() or now >= self._ends:
            return Cell(name, k, tried=False, problem=f"not tried: {self._why()}")
        # One slow method must not use up the time of all that wait.
        ends = now + (self._ends - now) / 2 if self._waiting else self._ends

        def watch(done: int) -> None:
            self._done[name, k] = max(self._done[name, k], int(done))
            if self.stop.is_set() or time.monotonic() >= ends:
                raise StopSearch

        try:
            found = partition(
                trials.matrix,
                k,
                method=name,
                scale=trials.scale,
                random_state=trials.random_state,
                progress=watch,
                **trials.options.get(name, {}),
            )
        except StopSearch:
            return Cell(name, k, tried=False, problem=f"not finished: {self._why()}")
        except MicroaggError as error:  # a table that this method cannot do, say, too large
            return Cell(name, k, problem=str(error))
        from microagg.measure.linkage import link, sample_for  # here, for the sake of a fast import
        from microagg.measure.pairs import Pair
        from microagg.measure.utility import utility_of

        X, labels = trials.matrix, found.labels
        # Exact means are released here, so that the released values lose what the groups do.
        safe = np.column_stack([group_means(column, labels)[labels] for column in X.T])
        both = Pair(trials.names, X, safe)
        loss = utility_of(both).information_loss
        return Cell(
            method=name,
            k=k,
            groups=found.n_groups,
            smallest=int(found.sizes.min()),
            largest=int(found.sizes.max()),
            information_loss=loss,
            group_loss=loss,
            linkage=link(both, sample=sample_for(len(X))),
            seconds=found.seconds,
            cut_short=found.stopped,
        )

    def _why(self) -> str:
        return "stopped" if self.stop.is_set() else "out of time"
