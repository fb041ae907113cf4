"""Groups of a block: one partition over all cells, which are strata and patterns of missing values.

Records of different cells never share a group, so that the cells are solved by themselves and at the same
time; their SSE, and the bounds on it, add up. A table of one cell is given to the method as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np

from microagg.algorithms.nominal_column import nominal_exact
from microagg.algorithms.result import Partition
from microagg.base.progress import STOP, Listener, Progress, State, new_state, run_watched
from microagg.base.typing import Floats, Labels
from microagg.compile.threads import at_work, thread_count
from microagg.encode.scale import total_squares
from microagg.encode.space import Space
from microagg.errors import InputError, StopSearch, shown
from microagg.grouping.by_released_loss import LAST, is_plain, is_searched, searched_by_release
from microagg.grouping.improve import lower_bound
from microagg.grouping.partition import partition
from microagg.grouping.require.from_plan import whole_of, within
from microagg.grouping.require.requirement import Requirement, demands_of
from microagg.grouping.require.requirement_search import repair, satisfy
from microagg.grouping.require.value_rules import Closeness
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.plan import Block
from microagg.plan.registry import find
from microagg.plan.settings import settings_of

__all__ = ["bound_over_cells", "group", "seconds_of_bound", "squares"]

_SECONDS_BETWEEN_CALLS = 0.1
_SHARE = (
    4 / 3
)  # the table's steps are divided by this where a last search follows: both take as long as one
_EXACT_FOR_CATEGORIES = (
    "auto",
    "optimal",
)  # which of themselves take the exact way where there is one


class _Aborted(BaseException):
    """Ends the searches of all cells, since the caller's thread was interrupted."""


def group(
    space: Space,
    block: Block,
    cells: Labels,
    *,
    weights: Floats | None = None,
    requirements: Sequence[Requirement] = (),
    seed: int | None = 0,
    whole: int | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    progress: Listener | None = None,
) -> Partition:
    """Partition the records of a block.

    Parameters
    ----------
    space : their coordinates
    block : k, method and all settings of it
    cells : (n,) cell of each record, 0, 1, …; each satisfies the requirements as one group
    weights : of the records in the objective; None: all count alike
    requirements : what every group must satisfy beside k
    seed : of the methods that draw random numbers
    whole : records of the table that these are a part of; None: all of it
    span : from where to where in its search a method goes, where others go on
    progress : as for :func:`microagg.partition`

    >>> X = np.array([[0.0], [10.0], [1.0], [11.0]])
    >>> group(Space(X, "none"), Block(k=2), np.array([0, 0, 1, 1])).labels.tolist()
    [0, 0, 1, 1]
    """
    close = find(block.method).closeness
    if requirements:
        _check_method(block)
    if close:
        _check_closeness(block, requirements, weights)
    by_release = is_searched(space, block, bool(requirements))
    if not by_release:
        space = replace(space, releases=None, factors=None)
    last = by_release and span[1] == 1.0  # otherwise others go on with these groups
    if cells.any() and not space.encoded and space.matrix.shape[1] > 1:
        # Scaled once for all cells: the s.d. of a cell would be another measure than that of the loss.
        space = Space(np.ascontiguousarray(space.scaled), "none")

    def solve(rows: Labels | None, options: dict[str, Any], watch: Listener | None) -> Partition:
        if not requirements:
            exact = _of_categories(space, block, rows, seed, weights is not None)
            if exact is not None:
                return exact
        elif close:
            return _published(space, block, rows, within(requirements, rows))
        limit = options.get("time_limit")
        if last and limit is not None:
            options = {**options, "time_limit": (1 - LAST) * limit}
        found = divide(rows, _quick(block, options) if requirements else options, watch)
        if requirements:
            found = _required(
                found,
                space,
                rows,
                within(requirements, rows),
                weights,
                options,
                seed,
                part_of(rows),
                watch,
            )
        if not last:
            return found
        return searched_by_release(
            found,
            space,
            rows,
            block,
            requirements,
            weights=weights,
            seed=seed,
            whole=part_of(rows),
            time_limit=limit,
            watch=watch,
        )

    def part_of(rows: Labels | None) -> int | None:
        return whole if whole is not None or rows is None else len(cells)

    def divide(rows: Labels | None, options: dict[str, Any], watch: Listener | None) -> Partition:
        X = space.searched if rows is None else np.ascontiguousarray(space.searched[rows])
        shares = by_release and options.get("effort", "balanced") == "balanced"
        heavy = {}
        if weights is not None:
            heavy = {"weights": weights if rows is None else weights[rows]}
        return partition(
            X,
            block.k or 1,
            method=block.method,
            scale=space.scale,
            random_state=seed,
            refine=block.refine,
            bound=not by_release and (block.bound or False),
            whole=int(_SHARE * (part_of(rows) or len(X))) if shares else part_of(rows),
            span=span,
            progress=watch,
            **heavy,
            **options,
        )

    if not cells.any():
        found = solve(None, dict(block.options), progress)
    else:
        found = _over_cells(space, block, cells, solve, progress, weights, seed)
    return replace(found, scale=block.scale)


def _of_categories(
    space: Space, block: Block, rows: Labels | None, seed: int | None, weighted: bool
) -> Partition | None:
    """Best groups of one nominal column, proved; None if it is something else, or would take too long."""
    method = find(block.method)
    plain = dict(block.options).get("cost", "sse") == "sse"
    if not (method.categories or (method.name in _EXACT_FOR_CATEGORIES and plain)):
        return None
    started = time.perf_counter()
    levels = None if weighted else space.levels
    levels = levels if rows is None or levels is None else levels[rows]
    k = block.k or 1
    # Where values are missing beside others, as in a joined pattern, these are no corners.
    corners = levels is not None and (levels.min() >= 0 or levels.max() < 0)
    labels = None
    if levels is not None and corners and len(levels) >= k:
        labels = nominal_exact(np.maximum(levels, 0), k)
    if labels is None:
        if method.categories:
            raise _not_by_categories(method.name, levels, corners)
        return None
    X = space.matrix if rows is None else space.matrix[rows]
    labels = canonical_labels(labels)
    sse = sum_of_squares(X, labels)
    return Partition(
        labels=labels,
        k=k,
        method=method.name,
        scale=block.scale,
        options=settings_of(method, dict(block.options), seed),
        sse=sse,
        sst=sum_of_squares(X, np.zeros(len(X), dtype=np.int64)),
        seconds=time.perf_counter() - started,
        lower_bound=sse,
    )


def _not_by_categories(method: str, levels: Labels | None, corners: bool) -> InputError:
    if levels is None:
        fact = "here are other columns, several of them, more levels, weights or missing values as a state"
    elif not corners:
        fact = "here records without a value share groups with others"
    else:
        fact = "here too many levels are rare for a search to end soon, or there are fewer than k records"
    return InputError(
        f"method {shown(method)} is for one nominal column or one of truth values, of up to 65 levels and "
        f'without weights; {fact}. Say method = "auto".'
    )


def _over_cells(
    space: Space,
    block: Block,
    cells: Labels,
    solve: Callable[[Labels | None, dict[str, Any], Listener | None], Partition],
    progress: Listener | None,
    weights: Floats | None,
    seed: int | None,
) -> Partition:
    from concurrent.futures import ThreadPoolExecutor, wait  # here, for the sake of a fast import

    started = time.perf_counter()
    k, n = block.k or 1, len(cells)
    order = np.argsort(cells, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(cells[order])) + 1)
    done = np.zeros(len(parts), dtype=np.int64)
    stop, abort = Event(), Event()
    workers = min(thread_count(), len(parts))

    def work(number: int) -> Partition | None:
        rows = parts[number]
        if len(rows) < 2 * k:  # one group, whatever the method and the requirements
            done[number] = len(rows)
            return None

        def watch(so_far: Progress) -> None:
            done[number] = min(int(so_far), len(rows))
            if abort.is_set():
                raise _Aborted
            if stop.is_set():
                raise StopSearch

        options = dict(block.options)
        if options.get("time_limit") is not None:  # the limit is that of the whole table
            options["time_limit"] = float(options["time_limit"]) * workers * len(rows) / n
        try:
            found = solve(rows, _quick(block, options) if stop.is_set() else options, watch)
        except StopSearch:  # whoever stops a search still wants groups for every record
            found = replace(solve(rows, _quick(block, options), None), stopped=True)
        done[number] = len(rows)
        return found

    def counted(number: int) -> Partition | None:
        with at_work():
            return work(number)

    with ThreadPoolExecutor(workers, thread_name_prefix="microagg-cell") as pool:
        try:
            # The largest first, so that none of them is left to the end.
            largest = sorted(range(len(parts)), key=lambda at: (-len(parts[at]), at))
            futures = {at: pool.submit(counted, at) for at in largest}
            waiting = set(futures.values())
            while waiting:
                waiting = wait(waiting, timeout=_SECONDS_BETWEEN_CALLS).not_done
                if progress is not None and not stop.is_set():
                    try:
                        progress(Progress(int(done.sum())))
                    except StopSearch:
                        stop.set()
            results = [futures[at].result() for at in range(len(parts))]
        except BaseException:
            abort.set()
            pool.shutdown(cancel_futures=True)
            raise
    return _combined(space, block, parts, results, weights, seed, started)


def _quick(block: Block, options: dict[str, Any]) -> dict[str, Any]:
    """Options with the least effort that a method has."""
    has = {option.name for option in find(block.method).options}
    return {**options, "effort": "fast"} if "effort" in has else options


def _combined(
    space: Space,
    block: Block,
    parts: Sequence[Labels],
    results: Sequence[Partition | None],
    weights: Floats | None,
    seed: int | None,
    started: float,
) -> Partition:
    """Put the partitions of the cells together."""
    labels = np.empty(len(space.matrix), dtype=np.int64)
    groups, bound, stopped = 0, 0.0, False
    for rows, found in zip(parts, results, strict=True):
        if found is None:
            labels[rows] = groups
            groups += 1
            bound += squares(space.scaled[rows], np.zeros(len(rows), dtype=np.int64), weights, rows)
            continue
        labels[rows] = groups + found.labels
        groups += found.n_groups
        stopped = stopped or found.stopped
        mean = (
            1.0 if weights is None else float(weights[rows].mean())
        )  # by which a cell is weighed anew
        bound += np.nan if found.lower_bound is None else mean * found.lower_bound
    labels = canonical_labels(labels)
    sse = squares(space.scaled, labels, weights)
    solved = next((found for found in results if found is not None), None)
    proved = bool(np.isfinite(bound)) and solved is not None and solved.lower_bound is not None
    method = find(block.method)
    options = settings_of(method, dict(block.options), seed) if solved is None else solved.options
    return Partition(
        labels=labels,
        k=block.k or 1,
        method=method.name,
        scale=block.scale,
        options=options,
        sse=sse,
        sst=_total(space, weights),
        seconds=time.perf_counter() - started,
        # Plain numbers of one column are cut in their own unit, in which bounds do not add up.
        lower_bound=min(float(bound), sse) if proved and space.encoded else None,
        stopped=stopped,
        weighted=weights is not None,
    )


def squares(X: Floats, labels: Labels, weights: Floats | None, rows: Labels | None = None) -> float:
    """Sum of squares within groups, weighted where there are weights, which may be of more records."""
    if weights is None:
        return sum_of_squares(X, labels)
    return sum_of_squares(X, labels, weights if rows is None else weights[rows])


def _total(space: Space, weights: Floats | None) -> float:
    if not space.encoded:
        return total_squares(space.matrix, space.scale)
    return squares(space.scaled, np.zeros(len(space.scaled), dtype=np.int64), weights)


def _check_method(block: Block) -> None:
    """Refuse methods whose proofs and costs are not about groups that satisfy requirements."""
    method = find(block.method)
    if method.proves or method.categories:
        raise InputError(
            f"method {shown(method.name)} proves its groups for k alone; with a unit or other requirements "
            "use 'auto'."
        )


def _check_closeness(
    block: Block, requirements: Sequence[Requirement], weights: Floats | None
) -> None:
    """Refuse a published algorithm for closeness where it does not have what it needs."""
    columns = len(block.require.closeness)
    if columns != 1:
        raise InputError(
            f"method {shown(block.method)} makes groups that are close to the table in one column; the plan "
            f'requires closeness of {columns}. Name one column under closeness, or say method "auto".'
        )
    if weights is not None:
        raise InputError(
            f"method {shown(block.method)} cannot weigh records; use auto, or group without weights."
        )


def _published(
    space: Space, block: Block, rows: Labels | None, requirements: Sequence[Requirement]
) -> Partition:
    """Groups of an algorithm for closeness as published, merged where other requirements ask for it."""
    started = time.perf_counter()
    X = np.ascontiguousarray(space.scaled if rows is None else space.scaled[rows])
    method, k = find(block.method), block.k or 1
    (close,) = [one for one in requirements if whole_of(one, Closeness)]
    labels = method.function(X.shape[1] + 1)(X, k, demands_of([close]))
    if len(requirements) > 1:
        labels = repair(X, k, requirements, labels)
    labels = canonical_labels(labels)
    return Partition(
        labels=labels,
        k=k,
        method=method.name,
        scale=block.scale,
        options={},
        sse=sum_of_squares(X, labels),
        sst=sum_of_squares(X, np.zeros(len(X), dtype=np.int64)),
        seconds=time.perf_counter() - started,
    )


def _required(
    found: Partition,
    space: Space,
    rows: Labels | None,
    requirements: Sequence[Requirement],
    weights: Floats | None,
    options: dict[str, Any],
    seed: int | None,
    whole: int | None,
    watch: Listener | None,
) -> Partition:
    """Change groups until they satisfy all requirements, at the least loss that a search finds."""
    started = time.perf_counter()
    X = space.scaled if space.releases is None else space.searched
    X = X if rows is None else np.ascontiguousarray(X[rows])
    own = weights if weights is None or rows is None else weights[rows]
    plain, effort = is_plain(options), options.get("effort", "balanced")
    state = new_state()

    def work(state: State) -> Labels:
        if (
            found.stopped or not plain
        ):  # the search minimises the SSE: other costs are repaired only
            return repair(X, found.k, requirements, found.labels, weights=own)
        return satisfy(
            X,
            found.k,
            requirements,
            found.labels,
            weights=own,
            effort=effort,
            time_limit=options.get("time_limit"),
            random_state=seed,
            whole=whole,
            mixed=space.releases is not None,
            state=state,
        )

    labels = canonical_labels(run_watched(work, watch, state=state, sst=found.sst))
    return replace(
        found,
        labels=labels,
        sse=squares(X, labels, own),
        options={**found.options, **({"effort": effort} if "effort" in found.options else {})},
        seconds=found.seconds + time.perf_counter() - started,
        stopped=found.stopped or bool(state[STOP]),
    )


def seconds_of_bound(cells: Labels, k: int) -> float:
    """How long :func:`bound_over_cells` takes, about."""
    from microagg.bounds.by_effort import expected_seconds  # here, for the sake of a fast import

    sizes, counts = np.unique(np.bincount(cells), return_counts=True)
    return sum(
        int(count) * expected_seconds(int(size), k)
        for size, count in zip(sizes, counts, strict=True)
    )


def bound_over_cells(
    space: Space, cells: Labels, k: int, progress: Listener | None = None
) -> float:
    """Prove a lower bound on the SSE of all groups that do not cross cells: the sum of the cells' bounds."""
    if not cells.any():
        return lower_bound(space.matrix, k, scale=space.scale, effort="balanced", progress=progress)
    order = np.argsort(cells, kind="stable")
    total, before = 0.0, 0
    for rows in np.split(order, np.flatnonzero(np.diff(cells[order])) + 1):

        def watch(done: Progress, before: int = before) -> None:
            if progress is not None:
                progress(Progress(before + int(done)))

        X = np.ascontiguousarray(space.scaled[rows])
        if len(rows) < 2 * k:
            total += sum_of_squares(X, np.zeros(len(rows), dtype=np.int64))
        else:
            total += lower_bound(X, k, scale="none", effort="balanced", progress=watch)
        before += len(rows)
    return total
