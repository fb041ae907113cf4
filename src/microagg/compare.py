"""compare(): what each method loses and hides for each k, and which choice meets a target."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microagg.choices import (
    FAST,
    Cell,
    Suggestion,
    Targets,
    is_real,
    mark_frontier,
    suggestion,
)
from microagg.draft import guess
from microagg.errors import InputError, listed, shown
from microagg.groups import Floats
from microagg.registry import find
from microagg.registry import methods as registered
from microagg.report.bands import band
from microagg.report.html import write_report
from microagg.report.provenance import (
    about_method,
    call,
    file_facts,
    now,
    repetition,
    versions,
)
from microagg.settings import check_k, check_options, check_random_state, check_scale
from microagg.tables.frames import Frame, is_frame
from microagg.tables.matrix import as_matrix, columns_matrix
from microagg.tables.roles import choose_columns
from microagg.trials import Report, Trials, run_trials
from microagg.words import TRADE_OFF

__all__ = ["BUDGET", "Comparison", "compare", "prepare", "suggest", "try_prepared"]

BUDGET = 60.0  # seconds

_MOST_PUBLIC = 15  # choices in a public report: five methods with three k


@dataclass(frozen=True)
class Comparison:
    """Methods × k on one table."""

    records: int
    columns: list[Any]
    cells: list[Cell]
    """By method and k; with a target, also those k that the search for it came to."""
    settings: Mapping[str, Any]
    """What :func:`compare` was called with, complete."""
    stopped: bool = False
    """Whether ``progress`` asked to stop before all was tried."""

    @property
    def blind_guess(self) -> float:
        """Share of records that an attacker links who guesses without looking: 1/n."""
        return 1 / self.records

    @property
    def rows(self) -> list[dict[str, object]]:
        """The table, one dict a cell; ``pandas.DataFrame(comparison.rows)`` makes it a frame."""
        return [cell.as_dict() for cell in self.cells]

    @property
    def frontier(self) -> list[Cell]:
        """The cells that are worth choosing, by rising loss and falling linkage."""
        on = [cell for cell in self.cells if cell.on_frontier]
        return sorted(on, key=lambda cell: cell.information_loss or 0.0)

    @property
    def partial(self) -> str | None:
        """What was left out or cut short for want of time, in words; None if nothing was."""
        untried = sum(not cell.tried for cell in self.cells)
        short = sum(cell.cut_short for cell in self.cells)
        if not untried and not short:
            return None
        why = "it was stopped" if self.stopped else "time was over"
        words = []
        if untried:
            words.append(f"{untried} of {len(self.cells)} choices were not tried")
        if short:
            words.append(f"{short} searches were cut short and may lose less with more time")
        return f"Partial results, since {why}: {'; '.join(words)}. Allow more time with budget."

    def suggest(
        self, max_loss: float | None = None, max_linkage: float | None = None
    ) -> Suggestion:
        """Say which of the cells tried is the best that meets targets.

        Parameters
        ----------
        max_loss : at most this information loss, in percent
        max_linkage : at most this share of records linked, 0 to 1; an estimated share is
            taken at the upper end of its interval

        Without either, the targets are those given to :func:`compare`.
        """
        return suggestion(self.cells, self._targets(max_loss, max_linkage))

    def _targets(self, max_loss: float | None, max_linkage: float | None) -> Targets:
        if max_loss is None and max_linkage is None:
            return Targets(self.settings["max_loss"], self.settings["max_linkage"])
        return Targets(max_loss, max_linkage)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "records": self.records,
            "columns": [str(name) for name in self.columns],
            "scale": self.settings["scale"],
            "k": self.settings["k"],
            "methods": self.settings["methods"],
            "budget": self.settings["budget"],
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
        public: bool = False,
        source: str | Path | None = None,
        command: list[str] | None = None,
    ) -> None:
        """Write the table, the risk–utility map and the suggestion as one HTML file, and a JSON twin.

        Parameters
        ----------
        path : file to write, such as map.html; its twin is map.json
        max_loss, max_linkage : as for :meth:`suggest`
        public : say only which methods and k were tried and in which band the loss and the linkage of
            each lie; whoever knows all records but one learns no more about that one
        source : the file that the table came from, of which the board's report gives the hash
        command : the words to repeat it with; by default the call of :func:`compare`
        """
        targets = self._targets(max_loss, max_linkage)
        if public:
            check_public(len(self.cells))
        model = _public_model(self) if public else _model(self, targets, source, command)
        write_report(model, Path(path))


def check_public(choices: int) -> None:
    """Refuse a public report of many choices: each band cuts down what an unknown record may be."""
    if choices > _MOST_PUBLIC:
        raise InputError(
            f"A public comparison tells of at most {_MOST_PUBLIC} choices, since each tells a little about "
            f"the records; here are {choices}. Name fewer methods and k, and no target, which tries more."
        )


def compare(
    frame: Any,
    k: int | Iterable[int] = (3, 5, 10),
    methods: str | Iterable[str] | None = None,
    *,
    columns: Iterable[Any] | None = None,
    max_loss: float | None = None,
    max_linkage: float | None = None,
    budget: float | None = BUDGET,
    scale: str = "zscore",
    random_state: int | None = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    workers: int | None = None,
    progress: Report | None = None,
) -> Comparison:
    """Try methods × k on a table, several at a time.

    Parameters
    ----------
    frame : data frame, or array-like of numbers
    k : one or several least group sizes
    methods : names from :func:`microagg.methods`; by default ``auto`` and the fast classics,
        with ``"all"`` all that fit the number of columns
    columns : names of the columns to protect; by default those that look like quantities
    max_loss, max_linkage : targets, as for :meth:`Comparison.suggest`. Given one, other k are
        tried too, in search of the best k of each method that meets it.
    budget : seconds to spend at most, not counting the time to load and compile the methods; None: as
        long as it takes. A cell may take half of the time left while others wait. What did not
        fit is told as not tried.
    scale, random_state : as for :func:`microagg.partition`
    options : settings of methods by their names, such as ``{"v-mdav": {"gamma": 0.2}}``
    workers : cells computed at a time; by default as many as there are processors
    progress : called about ten times a second with records grouped and records to group, over
        all cells; the first is a :class:`microagg.trials.Tried`. It may raise
        :class:`microagg.StopSearch` to end the trials with the cells that are done.

    Returns
    -------
    Comparison
        ``rows`` is the table, ``frontier`` what is worth choosing, ``suggest(max_loss=...,
        max_linkage=...)`` an answer in words.

    >>> c = compare([1, 2, 3, 4, 9, 10, 12, 15], k=[2, 4], methods=["simple"])
    >>> [(cell.method, cell.k, round(cell.information_loss, 2)) for cell in c.cells]
    [('simple', 2, 3.19), ('simple', 4, 13.83)]
    >>> c.suggest(max_loss=5).cell.k
    2
    """
    prepared = prepare(
        frame,
        k,
        methods,
        columns=columns,
        max_loss=max_loss,
        max_linkage=max_linkage,
        budget=budget,
        scale=scale,
        random_state=random_state,
        options=options,
        workers=workers,
    )
    return try_prepared(prepared, progress)


def suggest(
    frame: Any,
    *,
    max_loss: float | None = None,
    max_linkage: float | None = None,
    **settings: Any,
) -> Suggestion:
    """Compare and say which method and k meets targets.

    ``settings`` are those of :func:`compare`, the targets those of :meth:`Comparison.suggest`.

    >>> suggest([1, 2, 3, 4, 9, 10, 12, 15], max_loss=5, k=[2, 4], methods="simple").words
    'simple with k = 2 meets the target: it loses 3.19 % (at most 5 % asked for) and ...'
    """
    return compare(frame, max_loss=max_loss, max_linkage=max_linkage, **settings).suggest()


def prepare(
    frame: Any,
    k: Any,
    methods: Any,
    *,
    columns: Iterable[Any] | None,
    max_loss: float | None,
    max_linkage: float | None,
    budget: float | None,
    scale: str,
    random_state: int | None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    workers: int | None = None,
) -> Trials:
    """Check the settings of :func:`compare`, before any work; see there."""
    targets = Targets(max_loss, max_linkage)
    check_scale(scale)
    check_random_state(random_state)
    if workers is not None and (not hasattr(workers, "__index__") or workers < 1):
        raise InputError(
            f"workers, the number of cells at a time, is a whole number from 1 up; got {shown(workers)}. "
            "Leave it out for as many as there are processors."
        )
    limit = _checked_budget(budget)
    matrix, names = _matrix(frame, columns)
    chosen = _methods(methods, matrix.shape[1])
    return Trials(
        matrix=matrix,
        names=names,
        methods=chosen,
        sizes=_sizes(k, len(matrix)),
        scale=scale,
        random_state=random_state,
        options=_options(options, chosen),
        targets=targets,
        budget=limit,
        workers=workers,
    )


def try_prepared(trials: Trials, progress: Report | None) -> Comparison:
    """Run what :func:`prepare` checked."""
    cells, stopped = run_trials(trials, progress)
    settings = {
        "k": trials.sizes,
        "methods": trials.methods,
        "columns": trials.names,
        "max_loss": trials.targets.max_loss,
        "max_linkage": trials.targets.max_linkage,
        "budget": trials.budget,
        "scale": trials.scale,
        "random_state": trials.random_state,
        "options": {name: dict(own) for name, own in trials.options.items()},
    }
    return Comparison(len(trials.matrix), trials.names, mark_frontier(cells), settings, stopped)


def _matrix(frame: Any, columns: Iterable[Any] | None) -> tuple[Floats, list[Any]]:
    if is_frame(frame):
        table = Frame(frame)
        names = choose_columns(table, columns) if columns is not None else _quantities(table)
        return columns_matrix(table, names), names
    if columns is not None:
        raise InputError("Columns have names in frames only; pick columns of arrays before.")
    matrix = as_matrix(frame)
    return matrix, list(range(matrix.shape[1]))


def _quantities(table: Frame) -> list[Any]:
    """The columns that look like quantities, which alone every method can compare."""
    found = [n for n, one in guess(table).items() if one.looks_like == "quantity" and not one.codes]
    if not found:
        raise InputError(
            "Without named columns the quantities of a table are compared; none of its columns looks like "
            "one. Name columns of numbers: columns=[...] or --columns."
        )
    return found


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


def _methods(methods: Any, n_columns: int) -> list[str]:
    """List the methods to try, those that matter most first."""
    if methods is None:
        return list(FAST)
    if isinstance(methods, str) and methods == "all":
        fit = [m for m in registered() if n_columns == 1 or not m.one_column]
        fit = [m for m in fit if m.for_numbers]
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
        if method.one_column and n_columns > 1:
            raise InputError(
                f"method {shown(method.name)} is for one column; the data have {n_columns}. Leave it out."
            )
    return list(dict.fromkeys(method.name for method in chosen))


def _options(
    options: Mapping[str, Mapping[str, Any]] | None, chosen: list[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Refuse settings of methods that are not tried, and such as a method does not have."""
    by_method = isinstance(options, Mapping) and all(
        isinstance(own, Mapping) for own in options.values()
    )
    if options is not None and not by_method:
        raise InputError(
            "options= names methods, and the settings of each, such as {'v-mdav': {'gamma': 0.2}}; got "
            f"{shown(options)}."
        )
    for method, settings in (options or {}).items():
        if method not in chosen:
            raise InputError(
                f"options= is for methods that are tried; {shown(method)} is none of {listed(chosen)}."
            )
        if "random_state" in settings:
            raise InputError(
                f"random_state holds for all methods alike; options= has one for {shown(method)}. Give "
                "it to compare itself."
            )
        # Every method can be refined; that is a setting of partition() rather than of the method.
        own = {name: value for name, value in settings.items() if name != "refine"}
        check_options(find(method), own)
    return options or {}


def _checked_budget(budget: Any) -> float | None:
    """Return the seconds to spend at most; None for no limit."""
    if budget is None:
        return None
    if not (is_real(budget) and budget > 0):
        raise InputError(
            f"budget is the time to spend at most, a number of seconds above 0; got {shown(budget)}. "
            f"Leave it out for {BUDGET:g} s."
        )
    return None if math.isinf(budget) else float(budget)


def _model(
    found: Comparison, targets: Targets, source: str | Path | None, command: list[str] | None
) -> dict[str, Any]:
    """Gather what a comparison found, for the disclosure board."""
    return {
        "kind": "comparison",
        "public": False,
        "created": now(),
        "records": found.records,
        "columns": {"protected": [str(name) for name in found.columns]},
        "comparison": found.as_dict(),
        "methods": {name: about_method(name) for name in found.settings["methods"]},
        "suggestion": {
            **suggestion(found.cells, targets).as_dict(),
            "max_loss": targets.max_loss,
            "max_linkage": targets.max_linkage,
        },
        "trade_off": TRADE_OFF,
        "files": {"input": file_facts(source), "output": None},
        "repeat": repetition(command, call("compare", dict(found.settings))),
    }


def _public_model(found: Comparison) -> dict[str, Any]:
    """Gather what everybody may know: a list of what is in it, not of what is left out.

    The k that a search came to are not: where it ended tells digits of the loss or linkage.
    """
    cells = [
        {
            "method": cell.method,
            "k": cell.k,
            "loss": None if cell.information_loss is None else band(cell.information_loss),
            "linkage": None if cell.linkage is None else band(100 * cell.linkage.share),
        }
        for cell in found.cells
        if cell.k in found.settings["k"]
    ]
    return {
        "kind": "public_comparison",
        "public": True,
        "cells": cells,
        "methods": {name: about_method(name) for name in found.settings["methods"]},
        "trade_off": TRADE_OFF,
        "versions": versions(),
    }
