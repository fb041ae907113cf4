"""Carry out a plan with several methods and k, in threads and within a time budget; nothing is written.

The choices named come first and in their order, then those that the search for a target asks for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from microagg.base.formatting import FIRST_RUN, plural
from microagg.base.progress import Listener
from microagg.comparing.trials import TimedTries, for_a_sample
from microagg.engines.memory.choices import Choice, next_k_for
from microagg.engines.memory.release import Release
from microagg.engines.memory.table import Table
from microagg.errors import InputError, StopSearch
from microagg.measure.attack_rates import Residual
from microagg.plan.plan import Plan

Key = tuple[str, int, str]  # a method, a k and a kind of release

_SECONDS_TO_LOAD = 2.0  # what takes longer to get ready is being compiled
_FEW = 50  # records on which methods are loaded and compiled


class Tried(int):
    """Number of records grouped over all choices, with the state of the trials.

    >>> Tried(450, tried=3, cells=15, seconds_left=41.0).words
    '3 of 15 tried, at most 41 s left'
    """

    tried: int
    cells: int
    seconds_left: float
    compiling: bool
    found: Sequence[Choice]

    def __new__(
        cls,
        done: int,
        *,
        tried: int = 0,
        cells: int = 0,
        seconds_left: float = math.inf,
        compiling: bool = False,
        found: Sequence[Choice] = (),
    ) -> Tried:
        """Make the number and attach the rest."""
        self = super().__new__(cls, done)
        self.tried, self.cells, self.found = tried, cells, found
        self.seconds_left, self.compiling = seconds_left, compiling
        return self

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        if self.compiling:
            return f"compiling {FIRST_RUN}"
        left = f", at most {self.seconds_left:.0f} s left" if self.seconds_left < math.inf else ""
        return f"{self.tried} of {self.cells} tried{left}"


OnProgress = Callable[[Tried, int], object]


@dataclass(frozen=True)
class Trials:
    """Methods and k to try with a plan, all checked."""

    records: Table
    plan: Plan
    """As it was given: every block gets the method and the k of a choice, and then the plan is completed."""
    columns: Sequence[object]
    """The protected columns."""
    methods: list[str]
    sizes: list[int]
    releases: list[str]
    """Kinds of release; with several, fidelity is measured."""
    about_methods: str | None
    """Why the method matters little, where it does."""
    budget: float | None
    """Seconds, not counting the time to load and compile; None: no limit."""
    workers: int | None
    attack: bool = False
    """Whether each choice is attacked with people put aside as controls."""

    @property
    def announcement(self) -> str:
        """Number of methods and k, and the time that they take at most."""
        limit = "" if self.budget is None else f", at most {self.budget:g} s"
        search = "; then other k in search of the target" if self.plan.accept.targets else ""
        kinds = f" × {len(self.releases)} kinds of release" if len(self.releases) > 1 else ""
        attacks = "; each is attacked, for which a part is protected anew" if self.attack else ""
        methods = plural(len(self.methods), "method")
        return f"{methods} × {len(self.sizes)} k{kinds}{limit}{attacks}{search}"

    def plan_of(self, choice: Key) -> Plan:
        """Return the plan with a method and a k in every block; nothing is proved about its groups."""
        method, k, release = choice
        return self.plan.override(method=method, k=k, release=release, bound=False)


def run_trials(trials: Trials, progress: OnProgress | None) -> tuple[list[Choice], bool]:
    """Try all choices, then search k for the targets; also return whether ``progress`` asked to stop.

    Raises
    ------
    StopSearch
        If ``progress`` raised it before any choice had a result.
    """
    n, began = len(trials.records), time.monotonic()
    few = trials.records.taken(np.arange(min(n, max(_FEW, 2 * min(trials.sizes)))))

    def work(choice: Key, watch: Listener) -> Choice:
        release = trials.records.protected(trials.plan_of(choice), watch)
        tried = release.as_choice(tables=len(trials.releases) > 1)
        return replace(tried, inference=_inference(release)) if trials.attack else tried

    def load(choice: Key, watch: Listener) -> None:
        few.protected(for_a_sample(trials.plan_of(choice)), watch)

    def failed(choice: Key, problem: str, tried: bool) -> Choice:
        method, k, release = choice
        return Choice(method, k, release=release, tried=tried, problem=problem)

    tries = TimedTries(work, failed, workers=trials.workers, fair=True)
    # Loading and compiling are no part of the time.
    loading = TimedTries[Key, None](load, lambda *_: None, workers=1)

    def report(compiling: bool = False) -> None:
        if progress is None:
            return
        now = time.monotonic()
        count = len(tries.records_done) or len(wanted)
        finished = [
            n if key in tries.results else tries.records_done[key] for key in tries.records_done
        ]
        progress(
            Tried(
                sum(finished),
                tried=len(tries.results),
                cells=count,
                seconds_left=max(0.0, tries.ends - now),
                compiling=compiling and now - began > _SECONDS_TO_LOAD,
                found=list(tries.results.values()),
            ),
            n * count,
        )

    wanted = [
        (name, k, release)
        for name in trials.methods
        for release in trials.releases
        for k in trials.sizes
    ]
    first = [(name, min(trials.sizes), trials.releases[0]) for name in trials.methods]
    loading.run(first, lambda: report(True))
    tries.stop = loading.stop
    if trials.budget is not None:
        tries.ends = time.monotonic() + trials.budget
    while wanted:
        tries.run(wanted, report)
        searching = trials.plan.accept.targets and not tries.stop.is_set()
        wanted = _to_search(trials, tries.results) if searching else []
    cells = sorted(
        tries.results.values(),
        key=lambda one: (
            trials.methods.index(one.method),
            trials.releases.index(one.release),
            one.k,
        ),
    )
    if tries.stop.is_set() and all(cell.problem is not None for cell in cells):
        raise StopSearch
    return cells, tries.stop.is_set()


def _inference(release: Release) -> Residual | None:
    """Return what attacks guess of a release beyond what they guess about people put aside."""
    attacks, refused = release.attacked()
    if attacks is None:
        raise InputError(f"This choice cannot be attacked. {refused}")
    figure = attacks.questions.get("inference, nearest records")
    return None if figure is None else figure.residual


def _to_search(trials: Trials, cells: Mapping[Key, Choice]) -> list[Key]:
    """List the next choice of each method and kind of release in the search for the targets."""
    following: list[Key] = []
    for name in trials.methods:
        for release in trials.releases:
            tried = [cells[key] for key in sorted(cells) if (key[0], key[2]) == (name, release)]
            k = next_k_for(tried, trials.plan.accept, len(trials.records))
            following += [] if k is None else [(name, k, release)]
    return following
