"""The choice: what each method loses and hides for each k, and which choice meets a target."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from microagg.errors import InputError, MicroaggError, listed, shown
from microagg.groups import Floats, group_means
from microagg.measure.linkage import Linkage, link, sample_for
from microagg.measure.pairs import Pair
from microagg.measure.utility import utility_of
from microagg.partition import partition
from microagg.registry import find
from microagg.registry import methods as registered
from microagg.settings import check_k, check_options, check_scale
from microagg.tables.frames import Frame, is_frame
from microagg.tables.matrix import as_matrix, columns_matrix
from microagg.tables.roles import choose_columns

__all__ = ["Cell", "Comparison", "Suggestion", "check_targets", "compare", "suggest"]

_SECONDS_BETWEEN_REPORTS = 0.1


@dataclass(frozen=True)
class Cell:
    """One method with one k."""

    method: str
    k: int
    groups: int = 0
    smallest: int = 0
    largest: int = 0
    information_loss: float | None = None
    """100·SSE/SST; None if the method could not do it."""
    linkage: Linkage | None = None
    """Distance-based record linkage; sampled for large tables."""
    seconds: float = 0.0
    """Time for the grouping, while other cells ran beside it."""
    on_frontier: bool = False
    """Whether no other cell is at least as good in both and better in one."""
    problem: str | None = None
    """Why there is no result."""

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON: one row of the table."""
        row = asdict(self)
        linkage = row.pop("linkage")
        row["record_linkage"] = linkage and linkage["share"]
        row["record_linkage_interval"] = linkage and [linkage["low"], linkage["high"]]
        return row


@dataclass(frozen=True)
class Suggestion:
    """An answer in words, and the cell it is about."""

    words: str
    cell: Cell | None
    """What to choose; None if nothing meets the targets."""


@dataclass(frozen=True)
class Comparison:
    """Methods × k on one table."""

    records: int
    columns: list[Any]
    cells: list[Cell]
    scale: str
    blind_guess: float

    @property
    def rows(self) -> list[dict[str, object]]:
        """The table, one dict a cell; ``pandas.DataFrame(comparison.rows)`` makes it a frame."""
        return [cell.as_dict() for cell in self.cells]

    @property
    def frontier(self) -> list[Cell]:
        """The cells that are worth choosing, by rising loss and falling linkage."""
        on = [cell for cell in self.cells if cell.on_frontier]
        return sorted(on, key=lambda cell: (_loss(cell), cell.k, cell.method))

    def suggest(
        self, max_loss: float | None = None, max_linkage: float | None = None
    ) -> Suggestion:
        """Say which method and k meets targets.

        Parameters
        ----------
        max_loss : at most this information loss, in percent
        max_linkage : at most this share of records linked, 0 to 1; an estimated share is
            taken at the upper end of its interval
        """
        check_targets(max_loss, max_linkage)
        return _suggestion(self, max_loss, max_linkage)

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "records": self.records,
            "columns": [str(name) for name in self.columns],
            "scale": self.scale,
            "blind_guess": self.blind_guess,
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

        ``source`` is the file that the table came from, of which the report gives the hash;
        ``command`` the words to repeat it with.
        """
        from microagg.report.html import write_report
        from microagg.report.model import comparison_model

        model = comparison_model(
            self, max_loss, max_linkage, public=public, source=source, command=command
        )
        write_report(model, Path(path))


def compare(
    frame: Any,
    k: int | Iterable[int] = (3, 5, 10),
    methods: str | Iterable[str] | None = None,
    *,
    columns: Iterable[Any] | None = None,
    scale: str = "zscore",
    random_state: int | None = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Try methods × k on a table, several at a time.

    Parameters
    ----------
    frame : data frame, or array-like of numbers
    k : one or several least group sizes
    methods : names from :func:`microagg.methods`; by default all that fit the number of columns
    columns : names of the columns to protect; by default all numeric ones
    scale, random_state : as for :func:`microagg.partition`
    options : settings of methods by their names, such as ``{"v-mdav": {"gamma": 0.2}}``
    workers : cells computed at a time; by default as many as there are processors
    progress : called about ten times a second with records grouped and records to group, over
        all cells

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
    check_scale(scale)
    matrix, names = _matrix(frame, columns)
    sizes = [check_k(size, len(matrix)) for size in ([k] if isinstance(k, int) else list(k))]
    chosen = _methods(methods, matrix.shape[1])
    settings = _options(options or {}, chosen)
    if not sizes:
        raise InputError("No k was named. Name at least one, such as k=[3, 5, 10].")
    wanted = [(name, size) for name in chosen for size in dict.fromkeys(sizes)]
    run = _Run(matrix, names, scale, random_state, settings, len(wanted))
    cells = run.all(wanted, workers or os.cpu_count() or 1, progress)
    return Comparison(len(matrix), names, _mark_frontier(cells), scale, 1 / len(matrix))


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
    check_targets(max_loss, max_linkage)
    return compare(frame, **settings).suggest(max_loss, max_linkage)


def _matrix(frame: Any, columns: Iterable[Any] | None) -> tuple[Floats, list[Any]]:
    if is_frame(frame):
        table = Frame(frame)
        names = choose_columns(table, columns)
        return columns_matrix(table, names), names
    if columns is not None:
        raise InputError("Columns have names in frames only; pick columns of arrays before.")
    matrix = as_matrix(frame)
    return matrix, list(range(matrix.shape[1]))


def _methods(methods: str | Iterable[str] | None, n_columns: int) -> list[str]:
    if methods is None:
        return [m.name for m in registered() if n_columns == 1 or not m.one_column]
    chosen = [find(name) for name in ([methods] if isinstance(methods, str) else methods)]
    if not chosen:
        raise InputError("No method was named. Name at least one, or leave methods out for all.")
    for method in chosen:
        if method.one_column and n_columns > 1:
            raise InputError(
                f"method {shown(method.name)} is for one column; the data have {n_columns}. Leave it out."
            )
    return list(dict.fromkeys(method.name for method in chosen))


def _options(
    options: Mapping[str, Mapping[str, Any]], chosen: list[str]
) -> Mapping[str, Mapping[str, Any]]:
    """Refuse settings of methods that are not tried, and such as a method does not have."""
    for method, settings in options.items():
        if method not in chosen:
            raise InputError(
                f"options= is for methods that are tried; {shown(method)} is none of {listed(chosen)}."
            )
        # Every method can be refined; that is a setting of partition() rather than of the method.
        own = {name: value for name, value in settings.items() if name != "refine"}
        check_options(find(method), own)
    return options


class _Stopped(Exception):  # noqa: N818 - no error, a way out of a thread
    """The caller has given up."""


class _Run:
    """The cells of one comparison, computed in threads."""

    def __init__(
        self,
        matrix: Floats,
        names: list[Any],
        scale: str,
        random_state: int | None,
        options: Mapping[str, Mapping[str, Any]],
        n_cells: int,
    ) -> None:
        self._matrix, self._names = matrix, names
        self._scale, self._random_state, self._options = scale, random_state, options
        self._done = [0] * n_cells
        self._stop = threading.Event()

    def all(
        self,
        wanted: list[tuple[str, int]],
        workers: int,
        progress: Callable[[int, int], None] | None,
    ) -> list[Cell]:
        total = len(wanted) * len(self._matrix)
        with ThreadPoolExecutor(workers, thread_name_prefix="microagg-compare") as pool:
            try:
                self._warm_up(wanted)
                futures = [
                    pool.submit(self._cell, i, name, k) for i, (name, k) in enumerate(wanted)
                ]
                open_ = set(futures)
                while open_:
                    _, open_ = wait(open_, timeout=_SECONDS_BETWEEN_REPORTS)
                    if progress is not None:
                        progress(sum(self._done), total)
                return [future.result() for future in futures]
            except BaseException:
                self._stop.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _warm_up(self, wanted: list[tuple[str, int]]) -> None:
        """Load and compile each method on a few records, which is no part of its time."""
        k = min(k for _, k in wanted)
        few = self._matrix[: 2 * k]
        for name in dict.fromkeys(name for name, _ in wanted):
            with suppress(MicroaggError):  # shows again, with its reason, on the whole table
                partition(few, k, method=name, scale=self._scale, random_state=self._random_state)

    def _cell(self, i: int, name: str, k: int) -> Cell:
        def watch(done: int) -> None:
            self._done[i] = done
            if self._stop.is_set():
                raise _Stopped

        X = self._matrix
        try:
            found = partition(
                X,
                k,
                method=name,
                scale=self._scale,
                random_state=self._random_state,
                progress=watch,
                **self._options.get(name, {}),
            )
        except MicroaggError as error:  # a table that this method cannot do, say, too large
            self._done[i] = len(X)
            return Cell(name, k, problem=str(error))
        labels = found.labels
        safe = np.column_stack([group_means(column, labels)[labels] for column in X.T])
        both = Pair(self._names, X, safe)
        self._done[i] = len(X)
        return Cell(
            method=name,
            k=k,
            groups=found.n_groups,
            smallest=int(found.sizes.min()),
            largest=int(found.sizes.max()),
            information_loss=utility_of(both).information_loss,
            linkage=link(both, sample=sample_for(len(X))),
            seconds=found.seconds,
        )


def _loss(cell: Cell) -> float:
    return sys.float_info.max if cell.information_loss is None else cell.information_loss


def _linked(cell: Cell) -> float:
    return 1.0 if cell.linkage is None else cell.linkage.share


def _mark_frontier(cells: list[Cell]) -> list[Cell]:
    """Mark the cells that none is better than in one respect and as good in the other."""
    points = [(_loss(cell), _linked(cell)) for cell in cells]

    def beaten(loss: float, linked: float) -> bool:
        return any(a <= loss and b <= linked and (a < loss or b < linked) for a, b in points)

    return [
        replace(cell, on_frontier=cell.problem is None and not beaten(*point))
        for cell, point in zip(cells, points, strict=True)
    ]


def check_targets(max_loss: float | None, max_linkage: float | None) -> None:
    """Refuse targets that are no percentage and no share."""
    if max_loss is not None and not 0 <= max_loss < np.inf:
        raise InputError(f"max_loss is a percentage from 0 up; got {shown(max_loss)}.")
    if max_linkage is not None and not 0 <= max_linkage <= 1:
        raise InputError(
            f"max_linkage is a share of the records from 0 to 1; got {shown(max_linkage)}. For 20 % "
            "write 0.2."
        )


def _suggestion(found: Comparison, max_loss: float | None, max_linkage: float | None) -> Suggestion:
    done = [cell for cell in found.cells if cell.problem is None]
    if not done:
        return Suggestion("No method could group this table; see the problems in the table.", None)
    asked = [
        *([] if max_loss is None else [f"a loss of at most {max_loss:g} %"]),
        *([] if max_linkage is None else [f"a linkage of at most {100 * max_linkage:g} %"]),
    ]
    if not asked:
        ends = found.frontier
        which = (
            f"is one of {len(done)}: {_in_words(ends[0])}"
            if len(ends) == 1
            else f"are {len(ends)} of {len(done)}: from {_in_words(ends[0])}, to {_in_words(ends[-1])}"
        )
        words = (
            f"No target was given. Worth choosing {which}. Give a target, a largest loss or linkage, to "
            "get one answer."
        )
        return Suggestion(words, None)

    def meets_loss(cell: Cell) -> bool:
        return max_loss is None or _loss(cell) <= max_loss

    def meets_linkage(cell: Cell) -> bool:
        return max_linkage is None or (
            cell.linkage is not None and cell.linkage.high <= max_linkage
        )

    good = [cell for cell in done if meets_loss(cell) and meets_linkage(cell)]
    if good:
        # With a limit on the loss alone, what is left to wish for is little linkage.
        key = (_linked, _loss) if max_linkage is None else (_loss, _linked)
        best = min(good, key=lambda cell: (key[0](cell), key[1](cell), -cell.k, cell.method))
        return Suggestion(_meets(best, len(good), len(done), max_loss, max_linkage), best)
    words = f"None of the {len(done)} choices has {' and '.join(asked)}."
    near = [cell for cell in done if meets_loss(cell)]
    if max_loss is not None and near and max_linkage is not None:
        words += f" Within the loss, the least linkage has {_in_words(min(near, key=_linked))}."
    near = [cell for cell in done if meets_linkage(cell)]
    if max_linkage is not None and near and max_loss is not None:
        words += f" Within the linkage, the least loss has {_in_words(min(near, key=_loss))}."
    if len(asked) == 1:
        nearest = min(done, key=_loss if max_linkage is None else _linked)
        words += f" Nearest comes {_in_words(nearest)}."
    return Suggestion(words + " Try other k or methods, or relax a target.", None)


def _meets(
    best: Cell, good: int, done: int, max_loss: float | None, max_linkage: float | None
) -> str:
    loss = "" if max_loss is None else f" (at most {max_loss:g} % asked for)"
    linked = "" if max_linkage is None else f" (at most {100 * max_linkage:g} % asked for)"
    target = "target" if None in (max_loss, max_linkage) else "targets"
    least = "links least" if max_linkage is None else "loses least"
    return (
        f"{best.method} with k = {best.k} meets the {target}: it loses {_loss(best):.2f} %{loss} and "
        f"{100 * _linked(best):.1f} % of the records are linked{linked}. Of {done} choices {good} "
        f"{'does' if good == 1 else 'do'}; this one {least}."
    )


def _in_words(cell: Cell) -> str:
    return (
        f"{cell.method} with k = {cell.k}, which loses {_loss(cell):.2f} % and links "
        f"{100 * _linked(cell):.1f} %"
    )
