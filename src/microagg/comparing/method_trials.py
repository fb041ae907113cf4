"""Carry out a plan with several methods and k, in threads and within a time budget; nothing is written.

The choices named come first and in their order, then those that the search for a target asks for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from microagg.base.formatting import FIRST_RUN, plural
from microagg.base.progress import Listener
from microagg.comparing.in_threads import Failed, TimedTries
from microagg.comparing.plan_trials import Records, for_a_sample
from microagg.errors import StopSearch
from microagg.plan.plan import Plan
from microagg.protecting.choices import Cell, Targets, next_k_for

__all__ = ["Report", "Trials", "Tried", "run_trials"]

Choice = tuple[str, int]  # a method and a k

_SECONDS_TO_LOAD = 2.0  # what takes longer to get ready is being compiled
_FEW = 50  # records on which methods are loaded and compiled


class Tried(int):
    """Number of records grouped over all choices, and how far the trials are.

    >>> Tried(450, tried=3, cells=15, seconds_left=41.0).words
    '3 of 15 tried, at most 41 s left'
    """

    tried: int
    cells: int
    seconds_left: float
    compiling: bool
    found: Sequence[Cell]

    def __new__(
        cls,
        done: int,
        *,
        tried: int = 0,
        cells: int = 0,
        seconds_left: float = math.inf,
        compiling: bool = False,
        found: Sequence[Cell] = (),
    ) -> Tried:
        """Make the number with what else is known."""
        self = super().__new__(cls, done)
        self.tried, self.cells, self.found = tried, cells, found
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

    records: Records
    plan: Plan
    """As it was given: every block gets the method and the k of a choice, and then the plan is completed."""
    columns: Sequence[object]
    """The protected columns."""
    methods: list[str]
    sizes: list[int]
    options: Mapping[str, Mapping[str, object]]
    """Settings by method."""
    about_methods: str | None
    """Why the method matters little, where it does."""
    budget: float | None
    """Seconds, not counting the time to load and compile; None: no limit."""
    workers: int | None

    @property
    def targets(self) -> Targets:
        """What a choice must keep to: what the plan accepts."""
        return Targets(self.plan.accept.loss, self.plan.accept.linkage)

    @property
    def announcement(self) -> str:
        """What is about to happen, and how long it takes at most."""
        limit = "" if self.budget is None else f", at most {self.budget:g} s"
        search = "; then other k in search of the target" if self.targets.given else ""
        return f"{plural(len(self.methods), 'method')} × {len(self.sizes)} k{limit}{search}"

    def plan_of(self, choice: Choice) -> Plan:
        """Return the plan with a method and a k in every block; nothing is proved about its groups."""
        method, k = choice
        return self.plan.override(method=method, k=k, bound=False, **self.options.get(method, {}))


def run_trials(trials: Trials, progress: Report | None) -> tuple[list[Cell], bool]:
    """Try all choices, then search k for the targets; also return whether ``progress`` asked to stop.

    Raises
    ------
    StopSearch
        If ``progress`` raised it before any choice had a result.
    """
    n, began = len(trials.records), time.monotonic()
    few = trials.records.taken(np.arange(min(n, max(_FEW, 2 * min(trials.sizes)))))

    def work(choice: Choice, watch: Listener) -> Cell:
        return trials.records.protected(trials.plan_of(choice), watch).as_cell()

    def load(choice: Choice, watch: Listener) -> None:
        few.protected(for_a_sample(trials.plan_of(choice)), watch)

    tries = TimedTries(work, workers=trials.workers, fair=True)
    loading = TimedTries(load, workers=1)  # loading and compiling are no part of the time

    def report(compiling: bool = False) -> None:
        if progress is None:
            return
        now = time.monotonic()
        count = len(tries.records_done) or len(trials.methods) * len(trials.sizes)
        finished = [
            n if key in tries.found else tries.records_done[key] for key in tries.records_done
        ]
        progress(
            Tried(
                sum(finished),
                tried=len(tries.found),
                cells=count,
                seconds_left=max(0.0, tries.ends - now),
                compiling=compiling and now - began > _SECONDS_TO_LOAD,
                found=[_cell(key, one) for key, one in list(tries.found.items())],
            ),
            n * count,
        )

    loading.run([(name, min(trials.sizes)) for name in trials.methods], lambda: report(True))
    tries.stop = loading.stop
    if trials.budget is not None:
        tries.ends = time.monotonic() + trials.budget
    wanted = [(name, k) for name in trials.methods for k in trials.sizes]
    while wanted:
        tries.run(wanted, report)
        cells = {key: _cell(key, one) for key, one in tries.found.items()}
        searching = trials.targets.given and not tries.stop.is_set()
        wanted = _to_search(trials, cells) if searching else []
    if tries.stop.is_set() and all(cell.problem is not None for cell in cells.values()):
        raise StopSearch
    order = {name: number for number, name in enumerate(trials.methods)}
    ordered = sorted(cells, key=lambda choice: (order[choice[0]], choice[1]))
    return [cells[choice] for choice in ordered], tries.stop.is_set()


def _cell(choice: Choice, found: Cell | Failed) -> Cell:
    if isinstance(found, Cell):
        return found
    return Cell(*choice, tried=found.tried, problem=found.problem)


def _to_search(trials: Trials, cells: Mapping[Choice, Cell]) -> list[Choice]:
    """List the choices that the search for the targets asks for next, one a method."""
    found = []
    for name in trials.methods:
        own = [cells[choice] for choice in sorted(cells) if choice[0] == name]
        k = next_k_for(own, trials.targets, len(trials.records))
        if k is not None:
            found.append((name, k))
    return found
