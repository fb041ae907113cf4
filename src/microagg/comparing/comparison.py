"""compare(): loss and linkage of a plan with each method and k, and the choice that meets a target."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microagg.base.formatting import TRADE_OFF, plural
from microagg.comparing.method_trials import OnProgress, Trials, run_trials
from microagg.comparing.trials import check_budget
from microagg.engines.memory.choices import (
    FAST,
    Choice,
    Suggestion,
    about_methods,
    mark_frontier,
    suggestion,
)
from microagg.engines.memory.table import Table
from microagg.errors import InputError, shown
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.registry import methods as registered
from microagg.plan.sections import Accept
from microagg.plan.settings import check_k
from microagg.report.html import write_report
from microagg.report.provenance import (
    FROM_FILE,
    about_method,
    file_facts,
    now,
    repetition,
)
from microagg.tables.frame import Frame
from microagg.tables.matrix import as_matrix, is_frame

BUDGET = 60.0  # seconds


@dataclass(frozen=True)
class Comparison:
    """A plan with several methods and k on one table."""

    records: int
    plan: Plan
    """As it was given; every block has the method and the k of a choice in place of its own."""
    columns: list[Any]
    """The protected columns."""
    cells: list[Choice]
    """By method and k; with a target, also those k that the search for it came to."""
    settings: Mapping[str, Any]
    """All settings of :func:`compare` other than the plan."""
    about_methods: str | None = None
    """Why the method matters little, where it does: the plan requires more than k of every group."""
    stopped: bool = False
    """Whether ``progress`` asked to stop before all was tried."""

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
        if not untried and not short:
            return None
        why = "it was stopped" if self.stopped else "time was over"
        words = []
        if untried:
            were = "was" if untried == 1 else "were"
            words.append(f"{untried} of {plural(len(self.cells), 'choice')} {were} not tried")
        if short:
            searches = plural(short, "search was", "searches were")
            words.append(f"{searches} cut short and may lose less with more time")
        return f"Partial results, since {why}: {'; '.join(words)}. Allow more time with budget."

    def suggest(
        self, max_loss: float | None = None, max_linkage: float | None = None
    ) -> Suggestion:
        """Say which of the choices tried is the best that meets targets.

        Parameters
        ----------
        max_loss : at most this information loss, in percent
        max_linkage : at most this share of records linked, 0 to 1; an estimated share is
            taken at the upper end of its interval

        Without either, the targets are those given to :func:`compare`.
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
            "k": self.settings["k"],
            "methods": self.settings["methods"],
            "release": self.settings["release"],
            "about_methods": self.about_methods,
            "budget": self.settings["budget"],
            "attack": self.settings["attack"],
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
        write_report(_model(self, accept, source, command), Path(path))


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
        all choices; the first is a :class:`microagg.comparing.method_trials.Tried`. It may raise
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
        records, plan = _of_numbers(frame, plan)
    plan = plan.override(**settings)
    prepared = prepare(
        records,
        plan,
        k,
        methods,
        release,
        budget=budget,
        workers=workers,
        attack=attack,
    )
    return try_prepared(prepared, progress)


def _of_numbers(values: Any, plan: Plan) -> tuple[Table, Plan]:
    """Make a table of an array; all its columns are protected as numbers unless the plan says otherwise."""
    import pyarrow as pa

    matrix = as_matrix(values)
    names = [str(number) for number in range(matrix.shape[1])]
    if plan.blocks[0].columns is None:
        plan = plan.override(
            columns=names, kinds={**dict.fromkeys(names, "number"), **plan.columns}
        )
    return Table(Frame(pa.table(dict(zip(names, matrix.T, strict=True))))), plan


def prepare(
    records: Table,
    plan: Plan,
    k: Any,
    methods: Any = None,
    release: str | Iterable[str] | None = None,
    *,
    budget: float | None = BUDGET,
    workers: int | None = None,
    attack: bool = False,
) -> Trials:
    """Check the settings of :func:`compare` before any work; see there."""
    if workers is not None and (not hasattr(workers, "__index__") or workers < 1):
        raise InputError(
            f"workers, the number of choices at a time, is a whole number from 1 up; got {shown(workers)}. "
            "Leave it out for as many as there are processors."
        )
    seconds = check_budget(budget)
    sizes = _sizes(k, len(records))
    plan = replace(plan, blocks=tuple(replace(block, k=sizes[0]) for block in plan.blocks))
    full = records.completed(plan).plan
    about = about_methods(full)
    kinds = _kinds_of_release(release, plan)
    if methods is None and len(kinds) > 1:
        methods = list(dict.fromkeys(block.method for block in plan.blocks))
    chosen = _methods(methods, full, about is not None)
    return Trials(
        records=records,
        plan=plan,
        columns=full.roles(records.frame.names).protected,
        methods=chosen,
        sizes=sizes,
        releases=kinds,
        about_methods=about,
        budget=None if seconds == math.inf else seconds,
        workers=workers,
        attack=attack,
    )


def try_prepared(trials: Trials, progress: OnProgress | None = None) -> Comparison:
    """Run what :func:`prepare` checked."""
    choices, stopped = run_trials(trials, progress)
    settings = {
        "k": trials.sizes,
        "methods": trials.methods,
        "release": trials.releases,
        "budget": trials.budget,
        "attack": trials.attack,
    }
    return Comparison(
        len(trials.records),
        trials.plan,
        list(trials.columns),
        mark_frontier(choices),
        settings,
        trials.about_methods,
        stopped,
    )


def _sizes(k: Any, n: int) -> list[int]:
    """List the least group sizes, each once."""
    try:
        given: list[Any] = [operator.index(k)]
    except TypeError:
        several = isinstance(k, Iterable) and not isinstance(k, str | bytes)
        given = list(k) if several else [k]
    if isinstance(k, bool):
        given = [k]
    if not given:
        raise InputError("No k was named. Name at least one, such as k=[3, 5, 10].")
    return list(dict.fromkeys(check_k(size, n) for size in given))


def _kinds_of_release(release: str | Iterable[str] | None, plan: Plan) -> list[str]:
    """List the kinds of release to try, each once."""
    if release is None:
        return list(dict.fromkeys(block.release for block in plan.blocks))[:1]
    kinds = [release] if isinstance(release, str) else list(release)
    if not kinds:
        raise InputError(
            'No kind of release was named. Name at least one, such as ["mean", "swap"].'
        )
    for kind in kinds:
        plan.override(release=kind)  # refuses a word that is none
    return list(dict.fromkeys(kinds))


def _methods(methods: Any, plan: Plan, moot: bool) -> list[str]:
    """List the methods to try, those that matter most first."""
    several_columns = max(1 if b.per_column else len(b.columns or ()) for b in plan.blocks) > 1
    if methods is None:
        own = [block.method for block in plan.blocks]
        close = all(len(block.require.closeness) == 1 for block in plan.blocks)
        published = [m.name for m in registered() if m.closeness and close]
        return list(dict.fromkeys([*own, *(published if moot else FAST)]))
    if isinstance(methods, str) and methods == "all":
        fit = [m for m in registered() if m.for_numbers and not (several_columns and m.one_column)]
        # What proves optimality takes all the time that it gets.
        others = sorted((m for m in fit if m.name not in FAST), key=lambda m: m.proves)
        return [*FAST, *(m.name for m in others)]
    several = isinstance(methods, Iterable) and not isinstance(methods, str)
    chosen = [find(name) for name in (methods if several else [methods])]
    if not chosen:
        raise InputError(
            "No method was named. Name at least one, leave methods out for auto and the fast classics, "
            "or ask for 'all'."
        )
    for method in chosen:
        if method.one_column and several_columns:
            raise InputError(
                f"method {shown(method.name)} is for one column; the plan protects several together. Leave "
                "it out."
            )
    return list(dict.fromkeys(method.name for method in chosen))


def _model(
    found: Comparison, accept: Accept, source: str | Path | None, command: list[str] | None
) -> dict[str, Any]:
    """Return the data of the report for the disclosure board."""
    settings = "".join(f", {name}={value!r}" for name, value in found.settings.items())
    return {
        "kind": "comparison",
        "public": False,
        "created": now(),
        "records": found.records,
        "columns": {"protected": [str(name) for name in found.columns]},
        "comparison": found.as_dict(),
        "plan_text": found.plan.to_toml(),
        "methods": {name: about_method(name) for name in found.settings["methods"]},
        "suggestion": {
            **suggestion(found.cells, accept).as_dict(),
            "max_loss": accept.loss,
            "max_linkage": accept.linkage,
        },
        "trade_off": TRADE_OFF,
        "files": {"input": file_facts(source), "output": None},
        "repeat": repetition(command, f"microagg.compare(frame, plan={FROM_FILE}{settings})"),
    }
