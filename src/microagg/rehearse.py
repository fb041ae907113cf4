"""Rehearsing a plan: what it would lose and hide with other methods and k; nothing is written.

Where :mod:`microagg.compare` tries methods on columns of numbers, a rehearsal carries out the plan itself,
with its kinds, strata, units, weights and missing values, once for each choice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from microagg.choices import Cell, Targets, mark_frontier, next_k_for
from microagg.errors import MicroaggError, StopSearch
from microagg.job import numbers_of, protect_source
from microagg.plan import Plan
from microagg.release import Release
from microagg.tables.files import Source

__all__ = ["Hear", "rehearse"]

Hear = Callable[[Sequence[Cell], str, int, float], object]
"""Called with the cells so far, and the method, the k and the share done of the one at work."""


def rehearse(
    source: Source,
    plan: Plan,
    methods: Sequence[str],
    sizes: Sequence[int],
    targets: Targets | None = None,
    hear: Hear | None = None,
) -> list[Cell]:
    """Carry out a plan with each method and k, and measure what comes of it.

    Parameters
    ----------
    source : the file that was read
    plan : of which every block gets the method and the k of a choice
    methods, sizes : the choices, all methods with all k
    targets : given one, other k are tried too, in search of the best that meets it
    hear : called several times a second; it may raise :class:`microagg.StopSearch` to end with the cells
        that are done

    Returns
    -------
    list of Cell
        Linkage is by the protected columns alone, as in the map of a report.
    """
    named = replace(source, numbers=frozenset(numbers_of(plan)))
    n, targets = named.as_written.num_rows, targets or Targets()
    cells: list[Cell] = []
    wanted = [(method, k) for method in methods for k in dict.fromkeys(sizes)]
    stopped = False
    while wanted:
        for method, k in wanted:
            if stopped:
                cells.append(Cell(method, k, tried=False, problem="not tried: stopped"))
                continue
            cell, stopped = _cell(named, plan, method, k, n, _told(hear, cells))
            cells.append(cell)
        wanted = [] if stopped or not targets.given else _to_search(cells, methods, targets, n)
    return mark_frontier(cells)


def _to_search(
    cells: Sequence[Cell], methods: Sequence[str], targets: Targets, n: int
) -> list[tuple[str, int]]:
    """List the choices that the search for the targets asks for next, one a method."""
    found = []
    for method in methods:
        k = next_k_for([cell for cell in cells if cell.method == method], targets, n)
        if k is not None:
            found.append((method, k))
    return found


def _told(hear: Hear | None, cells: Sequence[Cell]) -> Callable[[str, int, float], object]:
    """Tell of the cells that are done beside the one at work."""
    if hear is None:
        return lambda method, k, share: None
    return lambda method, k, share: hear(mark_frontier(cells), method, k, share)


def _cell(
    source: Source,
    plan: Plan,
    method: str,
    k: int,
    n: int,
    tell: Callable[[str, int, float], object],
) -> tuple[Cell, bool]:
    """Try one choice; tell whether somebody asked to stop."""
    stopped = False

    def watch(done: int) -> None:
        nonlocal stopped
        try:
            tell(method, k, done / n)
        except StopSearch:
            stopped = True
            raise

    try:
        watch(0)
        release = protect_source(source, plan.override(method=method, k=k), watch)
        return _measured(release, method, k), stopped
    except StopSearch:
        return Cell(method, k, tried=False, problem="not finished: stopped"), True
    except MicroaggError as error:  # a plan that this method or this k cannot carry out
        return Cell(method, k, problem=str(error)), stopped


def _measured(release: Release, method: str, k: int) -> Cell:
    found = [part.partition for part in release.parts]
    return Cell(
        method=method,
        k=k,
        groups=sum(one.n_groups for one in found),
        smallest=int(min(one.sizes.min() for one in found)),
        largest=int(max(one.sizes.max() for one in found)),
        information_loss=release.utility.information_loss,
        group_loss=release.utility.group_loss,
        linkage=release.risk.linkage,
        seconds=release.seconds["partition"],
        cut_short=any(one.stopped for one in found),
    )
