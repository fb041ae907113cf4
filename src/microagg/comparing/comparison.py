"""compare(): a plan with each method, k and kind of release, in threads and in a time; nothing is written.

The choices named come first and in their order, then those k that the search for a target asks for.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from microagg.base.formatting import FIRST_RUN, TRADE_OFF, plural
from microagg.base.progress import Listener
from microagg.comparing.choices import (
    FAST,
    Choice,
    Suggestion,
    about_methods,
    mark_frontier,
    next_k_for,
    suggestion,
)
from microagg.comparing.trials import TimedTries, check_budget, for_a_sample
from microagg.engines.memory.table import Table
from microagg.errors import InputError, StopSearch, shown
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.registry import methods as registered
from microagg.plan.sections import Accept
from microagg.plan.settings import check_k
from microagg.report.html import write_report
from microagg.report.model import FROM_FILE, file_facts, now, repetition
from microagg.tables.frame import Frame
from microagg.tables.matrix import as_matrix, is_frame

Key = tuple[str, int, str]  # a method, a k and a kind of release

BUDGET = 60.0  # seconds
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
    compiling: bool = False
    choices: Sequence[Choice] = ()

    def __new__(cls, done: int, **state: Any) -> Tried:
        """Make the number and attach the state."""
        self = super().__new__(cls, done)
        vars(self).update(state)
        return self

    @property
    def words(self) -> str:
        """Text for a progress bar."""
        if self.compiling:
            return f"compiling {FIRST_RUN}"
        left = f", at most {self.seconds_left:.0f} s left" if self.seconds_left < math.inf else ""
        return f"{self.tried} of {self.cells} tried{left}"


OnProgress = Callable[[Tried, int], object]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A plan with several methods and k on one table."""

    records: int
    """Number of records."""
    plan: Plan
    """As it was given; every block has the method and the k of a choice in place of its own."""
    columns: list[Any]
    """The protected columns."""
    settings: Mapping[str, Any]
    """All settings of :func:`compare` other than the plan."""
    about_methods: str | None = None
    """Why the method matters little, where it does: the plan requires more than k of every group."""
    cells: Sequence[Choice] = ()
    """By method and k; with a target, also those k that the search for it came to."""
    stopped: bool = False
    """Whether ``progress`` asked to stop before all was tried."""
    table: Table | None = field(default=None, repr=False)
    """The originals until all is tried; what is returned goes its way without them."""

    @property
    def announcement(self) -> str:
        """Number of methods and k, and the time that they take at most."""
        asked, releases = self.settings, len(self.settings["release"])
        words = f"{plural(len(asked['methods']), 'method')} × {len(asked['k'])} k"
        words += f" × {releases} kinds of release" if releases > 1 else ""
        words += "" if asked["budget"] is None else f", at most {asked['budget']:g} s"
        words += "; each is attacked, for which a part is protected anew" if asked["attack"] else ""
        return words + "; then other k in search of the target" * bool(self.plan.accept.targets)

    def plan_of(self, choice: Key) -> Plan:
        """Return the plan with a method and a k in every block; nothing is proved about its groups."""
        method, k, release = choice
        return self.plan.override(method=method, k=k, release=release, bound=False)

    @property
    def blind_guess(self) -> float:
        """Share of records that an attacker links by guessing: 1/n."""
        return 1 / self.records

    @property
    def rows(self) -> list[dict[str, object]]:
        """The table, one dict a choice; ``pandas.DataFrame(comparison.rows)`` makes it a frame."""
        return [choice.as_dict() for choice in self.cells]

    @property
    def frontier(self) -> list[Choice]:
        """The choices that are worth choosing, by rising loss and falling linkage."""
        on = [choice for choice in self.cells if choice.on_frontier]
        return sorted(on, key=lambda choice: choice.information_loss or 0.0)

    @property
    def partial(self) -> str | None:
        """What was not tried or cut short because of the time, in words; None if nothing was."""
        untried = sum(not choice.tried for choice in self.cells)
        short = sum(choice.cut_short for choice in self.cells)
        words = []
        if untried:
            were = "was" if untried == 1 else "were"
            words.append(f"{untried} of {plural(len(self.cells), 'choice')} {were} not tried")
        if short:
            searches = plural(short, "search was", "searches were")
            words.append(f"{searches} cut short and may lose less with more time")
        if not words:
            return None
        why = "it was stopped" if self.stopped else "time was over"
        return f"Partial results, since {why}: {'; '.join(words)}. Allow more time with budget."

    def suggest(
        self, max_loss: float | None = None, max_linkage: float | None = None
    ) -> Suggestion:
        """Say which of the choices tried is the best that meets targets.

        Parameters
        ----------
        max_loss : at most this information loss, in percent
        max_linkage : at most this share of records linked, 0 to 1; an estimated share is taken at the upper
            end of its interval. Without either, the targets are those given to :func:`compare`.
        """
        return suggestion(self.cells, self._targets(max_loss, max_linkage))

    def _targets(self, max_loss: float | None, max_linkage: float | None) -> Accept:
        asked = Accept(max_loss, max_linkage)
        return asked if asked.targets else self.plan.accept

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "records": self.records,
            "columns": [str(name) for name in self.columns],
            "scale": self.plan.blocks[0].scale,
            "plan": self.plan.as_dict(),
            **{name: self.settings[name] for name in ("k", "methods", "release")},
            "about_methods": self.about_methods,
            **{name: self.settings[name] for name in ("budget", "attack")},
            "blind_guess": self.blind_guess,
            "stopped": self.stopped,
            "partial": self.partial,
            "cells": self.rows,
        }

    def report(
        self,
        path: str | Path,
        *,
        max_loss: float | None = None,
        max_linkage: float | None = None,
        source: str | Path | None = None,
        command: list[str] | None = None,
    ) -> None:
        """Write the table, the risk–utility map and the suggestion as one HTML file, and a JSON twin.

        The report is for the board: losses of several choices would tell the public about single records.

        Parameters
        ----------
        path : file to write, such as map.html; its twin is map.json
        max_loss, max_linkage : as for :meth:`suggest`
        source : the file that the table came from; the report has its hash
        command : the words to repeat it with; by default the call of :func:`compare`
        """
        accept = self._targets(max_loss, max_linkage)
        asked = {name: value for name, value in self.settings.items() if name != "workers"}
        settings = "".join(f", {name}={value!r}" for name, value in asked.items())
        model = {
            "kind": "comparison",
            "public": False,
            "created": now(),
            "records": self.records,
            "columns": {"protected": [str(name) for name in self.columns]},
            "comparison": self.as_dict(),
            "plan_text": self.plan.to_toml(),
            "methods": {
                name: {
                    what: getattr(find(name), what) for what in ("paper", "guarantee", "summary")
                }
                for name in self.settings["methods"]
            },
            "suggestion": suggestion(self.cells, accept).as_dict()
            | {"max_loss": accept.loss, "max_linkage": accept.linkage},
            "trade_off": TRADE_OFF,
            "files": {"input": file_facts(source), "output": None},
            "repeat": repetition(command, f"microagg.compare(frame, plan={FROM_FILE}{settings})"),
        }
        write_report(model, Path(path))


def compare(
    frame: Any,
    k: int | Iterable[int] = (3, 5, 10),
    methods: str | Iterable[str] | None = None,
    *,
    release: str | Iterable[str] | None = None,
    plan: Plan | None = None,
    budget: float | None = BUDGET,
    workers: int | None = None,
    attack: bool = False,
    progress: OnProgress | None = None,
    **settings: Any,
) -> Comparison:
    """Carry out a plan with several methods and k, several at a time; nothing is released.

    Parameters
    ----------
    frame : data frame, or array-like of numbers
    k : one or several least group sizes; each takes the place of the k of every block
    methods : names from :func:`microagg.methods`; by default the plan's, auto and the fast classics,
        with ``"all"`` all that fit the number of columns
    release : kinds of release to try, such as ``["mean", "swap"]``; by default the plan's. With several, the
        fidelity of each choice is measured: ``tables`` is the share of the records in another cell of tables
        of three columns, ``tables_multiple`` the same in multiples of what another sample gives
    plan : any plan, see :func:`microagg.protect`; by default the draft of the table
    budget : seconds to spend at most, not counting the time to load and compile the methods; None: as
        long as it takes. A choice may take half of the remaining time while others wait. Choices that did
        not fit are reported as not tried.
    workers : choices computed at a time; by default as many as there are processors
    attack : attack each choice with people put aside as controls, see :func:`microagg.attack`. Then
        ``inference`` is the share of values that are guessed beyond those of the controls, and takes the
        place of linkage in the risk–utility map
    progress : called about ten times a second with records grouped and records to group, over
        all choices; the first is a :class:`Tried`. It may raise
        :class:`microagg.StopSearch` to end the trials with the choices that are done.
    **settings
        Keywords of :func:`microagg.protect`, such as ``columns``, ``unit`` or ``strata``, which override the
        plan. ``max_loss`` and ``max_linkage`` are targets: with one, other k are tried too, in search of the
        best k of each method that meets it.

    Returns
    -------
    Comparison
        ``rows`` is the table, ``frontier`` what is worth choosing, ``suggest(max_loss=...,
        max_linkage=...)`` an answer in words.

    >>> c = compare([1, 2, 3, 4, 9, 10, 12, 15], k=[2, 4], methods=["simple"])
    >>> [(choice.method, choice.k, round(choice.information_loss, 2)) for choice in c.cells]
    [('simple', 2, 3.19), ('simple', 4, 13.83)]
    >>> c.suggest(max_loss=5).cell.k
    2
    """
    plan = plan or Plan()
    if is_frame(frame):
        records = Table(Frame(frame))
    else:
        import pyarrow as pa

        matrix = as_matrix(frame)
        names = [str(number) for number in range(matrix.shape[1])]
        records = Table(Frame(pa.table(dict(zip(names, matrix.T, strict=True)))))
        if plan.blocks[0].columns is None:  # all are protected as numbers
            kinds = {**dict.fromkeys(names, "number"), **plan.columns}
            plan = plan.override(columns=names, kinds=kinds)
    plan = plan.override(**settings)
    prepared = prepare(records, plan, k, methods, release, attack, budget, workers)
    return try_prepared(prepared, progress)


def prepare(
    records: Table,
    plan: Plan,
    k: Any,
    methods: Any = None,
    release: str | Iterable[str] | None = None,
    attack: bool = False,
    budget: float | None = BUDGET,
    workers: int | None = None,
) -> Comparison:
    """Check what :func:`compare` is asked before any work; nothing is tried yet.

    ``records`` are the table that was read, and ``plan`` has all settings that override it; ``k``,
    ``methods``, ``release``, ``attack``, ``budget`` and ``workers`` are as for :func:`compare`.
    """
    if workers is not None and (not hasattr(workers, "__index__") or workers < 1):
        raise InputError(
            f"workers, the number of choices at a time, is a whole number from 1 up; got {shown(workers)}. "
            "Leave it out for as many as there are processors."
        )
    seconds = check_budget(budget)
    none = "No k was named. Name at least one, such as k=[3, 5, 10]."
    sizes = list(dict.fromkeys(check_k(size, len(records)) for size in _listed(k, none)))
    plan = replace(plan, blocks=tuple(replace(block, k=sizes[0]) for block in plan.blocks))
    full = records.completed(plan).plan
    about = about_methods(full)
    none = 'No kind of release was named. Name at least one, such as ["mean", "swap"].'
    kinds = _listed(plan.blocks[0].release if release is None else release, none)
    for kind in kinds:
        plan.override(release=kind)  # refuses a word that is none
    kinds = list(dict.fromkeys(kinds))
    if methods is None and len(kinds) > 1:
        methods = [block.method for block in plan.blocks]
    settings = {
        "k": sizes,
        "methods": _methods(methods, full, about is not None),
        "release": kinds,
        "budget": None if seconds == math.inf else seconds,
        "attack": attack,
        "workers": workers,
    }
    columns = list(full.roles(records.frame.names).protected)
    return Comparison(len(records), plan, columns, settings, about, table=records)


def try_prepared(comparison: Comparison, progress: OnProgress | None = None) -> Comparison:
    """Try all choices that :func:`prepare` checked, then search k for the targets.

    ``progress`` is as for :func:`compare`; if it raises :class:`microagg.StopSearch` before any choice has a
    result, so does this. The result has cells, and no table.
    """
    records, n, asked = comparison.table, comparison.records, comparison.settings
    assert records is not None  # nothing was tried yet
    methods, releases = asked["methods"], asked["release"]
    began = time.monotonic()
    few = records.taken(np.arange(min(n, max(_FEW, 2 * min(asked["k"])))))

    def work(choice: Key, watch: Listener) -> Choice:
        release = records.protected(comparison.plan_of(choice), watch)
        tried = Choice.of(release, tables=len(releases) > 1)
        if not asked["attack"]:
            return tried
        attacks, refused = release.attacked()
        if attacks is None:
            raise InputError(f"This choice cannot be attacked. {refused}")
        figure = attacks.questions.get("inference, nearest records")
        return replace(tried, inference=None if figure is None else figure.residual)

    def failed(choice: Key, problem: str, tried: bool) -> Choice:
        method, k, release = choice
        return Choice(method, k, release=release, tried=tried, problem=problem)

    tries = TimedTries(work, failed, workers=asked["workers"], fair=True)
    # Loading and compiling are no part of the time.
    loading = TimedTries[Key, object](
        lambda key, watch: few.protected(for_a_sample(comparison.plan_of(key)), watch),
        lambda *_: None,
        workers=1,
    )
    wanted = [(name, k, release) for name in methods for release in releases for k in asked["k"]]

    def report(compiling: bool = False) -> None:
        seconds, results, done = time.monotonic(), tries.results, tries.records_done
        cells = len(done) or len(wanted)
        state = Tried(
            sum(n if key in results else done[key] for key in done),
            tried=len(results),
            cells=cells,
            seconds_left=max(0.0, tries.ends - seconds),
            compiling=compiling and seconds - began > _SECONDS_TO_LOAD,
            choices=list(results.values()),
        )
        if progress is not None:
            progress(state, n * cells)

    loading.run([(name, min(asked["k"]), releases[0]) for name in methods], lambda: report(True))
    tries.stop = loading.stop
    if asked["budget"] is not None:
        tries.ends = time.monotonic() + asked["budget"]
    while wanted:
        tries.run(wanted, report)
        wanted = []
        if not comparison.plan.accept.targets or tries.stop.is_set():
            break
        for name, release in itertools.product(methods, releases):  # in search of the targets
            choices = [c for key, c in tries.results.items() if (key[0], key[2]) == (name, release)]
            k = next_k_for(choices, comparison.plan.accept, n)
            wanted += [] if k is None else [(name, k, release)]
    order = sorted(
        tries.results, key=lambda key: (methods.index(key[0]), releases.index(key[2]), key[1])
    )
    cells = [tries.results[key] for key in order]
    stopped = tries.stop.is_set()
    if stopped and all(cell.problem is not None for cell in cells):
        raise StopSearch
    return replace(comparison, cells=mark_frontier(cells), stopped=stopped, table=None)


def _listed(named: Any, what: str) -> list[Any]:
    """List one or several things that were named; ``what`` is said if none was."""
    several = isinstance(named, Iterable) and not isinstance(named, str | bytes)
    several = several and getattr(named, "ndim", 1) > 0  # an array may hold one number
    if not (chosen := list(named) if several else [named]):
        raise InputError(what)
    return chosen


def _methods(methods: Any, plan: Plan, moot: bool) -> list[str]:
    """List the methods to try, those that matter most first."""
    several_columns = max(1 if b.per_column else len(b.columns or ()) for b in plan.blocks) > 1
    if methods is None:
        of_plan = [block.method for block in plan.blocks]
        close = all(len(block.require.closeness) == 1 for block in plan.blocks)
        published = [m.name for m in registered() if m.closeness and close]
        return list(dict.fromkeys([*of_plan, *(published if moot else FAST)]))
    if isinstance(methods, str) and methods == "all":
        fit = [m for m in registered() if m.for_numbers and not (several_columns and m.one_column)]
        # What proves optimality takes all the time that it gets.
        others = sorted((m for m in fit if m.name not in FAST), key=lambda m: m.proves)
        return [*FAST, *(m.name for m in others)]
    none = (
        "No method was named. Name at least one, leave methods out for auto and the fast classics, or ask "
        "for 'all'."
    )
    chosen = [find(name) for name in _listed(methods, none)]
    for method in chosen:
        if method.one_column and several_columns:
            raise InputError(
                f"method {shown(method.name)} is for one column; the plan protects several together. Leave "
                "it out."
            )
    return list(dict.fromkeys(method.name for method in chosen))
