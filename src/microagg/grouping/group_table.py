"""Groups of a block: one partition over all cells, which are strata and patterns of missing values.

Records of different cells never share a group. So each cell is solved by itself, several at the same time;
their SSE, and the bounds on it, add up. A table of one cell is given to the method as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.progress import Listener, Progress
from microagg.base.typing import Floats, Labels
from microagg.compile.threads import at_work, thread_count
from microagg.encode.missing import rows_of_each
from microagg.encode.scale import total_squares
from microagg.encode.space import Space
from microagg.errors import InputError, StopSearch, shown
from microagg.grouping.one_cell import Problem, is_searched, solve, with_least_effort
from microagg.grouping.partition import lower_bound
from microagg.grouping.require.from_plan import within
from microagg.grouping.require.requirement import Requirement
from microagg.kernels.labels import canonical_labels, combine, sum_of_squares
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.plan.registry import find
from microagg.plan.settings import settings_of

_SECONDS_BETWEEN_CALLS = 0.1
_NEIGHBOURS = 100  # groups with which one is tried to be merged


class _Aborted(BaseException):
    """Ends the searches of all cells, since the caller's thread was interrupted."""


def group(problem: Problem, cells: Labels, progress: Listener | None = None) -> Partition:
    """Partition the records of a block.

    Parameters
    ----------
    problem : the n records, the block, and what its groups must satisfy
    cells : (n,) cell of each record, 0, 1, …; each cell satisfies the requirements as one group
    progress : as for :func:`microagg.partition`

    >>> X = np.array([[0.0], [10.0], [1.0], [11.0]])
    >>> group(Problem(Space(X, "none"), Block(k=2)), np.array([0, 0, 1, 1])).labels.tolist()
    [0, 0, 1, 1]
    """
    space, block, required = problem.space, problem.block, bool(problem.requirements)
    method, columns = find(block.method), len(block.require.closeness)
    if required and (method.proves or method.categories):
        raise InputError(
            f"method {shown(method.name)} proves its groups for k alone; with a unit or other requirements "
            "use 'auto'."
        )
    if method.closeness and columns != 1:
        raise InputError(
            f"method {shown(block.method)} makes groups that are close to the table in one column; the plan "
            f'requires closeness of {columns}. Name one column under closeness, or say method "auto".'
        )
    if method.closeness and problem.weights is not None:
        raise InputError(
            f"method {shown(block.method)} cannot weigh records; use auto, or group without weights."
        )
    if not is_searched(space, block, required):
        space = replace(space, releases=None, factors=None)
    if cells.any() and not space.encoded and space.matrix.shape[1] > 1:
        # Scaled once for all cells: the s.d. of a cell would be another measure than that of the loss.
        space = Space(np.ascontiguousarray(space.scaled), "none")
    problem = replace(problem, space=space)
    if cells.any():
        return _over_cells(problem, cells, progress)
    return replace(solve(problem, block.options, progress), scale=block.scale)


def merge_groups(
    partition: Partition,
    space: Space,
    cells: Labels,
    requirements: Sequence[Requirement],
    weights: Floats | None = None,
) -> Partition:
    """Merge whole groups of each cell until all satisfy the requirements.

    Unlike a search for such groups, this looks at no single record: members of a group that are given each
    other's values get the same groups.

    Parameters
    ----------
    partition : groups that do not cross cells
    space : in which they were found
    cells : (n,) cell of each record; each satisfies the requirements as one group
    requirements : what every group must satisfy
    weights : (n,) relative ones; None: all records count alike
    """
    from microagg.grouping.require.requirement_search import repair  # loads the compiler

    labels, groups = np.empty(len(cells), dtype=np.int64), 0
    for rows in rows_of_each(cells):
        merged = repair(
            space.scaled[rows],
            partition.k,
            within(requirements, rows),
            canonical_labels(partition.labels[rows]),
            weights=None if weights is None else weights[rows],
        )
        labels[rows] = groups + merged
        groups += int(merged.max()) + 1
    labels = canonical_labels(labels)
    return replace(partition, labels=labels, sse=sum_of_squares(space.scaled, labels, weights))


def merge_agreeing(labels: Labels, X: Floats, cells: Labels, codes: Labels, most: float) -> Labels:
    """Merge groups that agree in nearly all columns, since rows dealt in them equal records by chance.

    Of m rows, if the columns are dealt one by one, m²·Πⱼ Σᵥ pⱼᵥ² are expected to equal one of m records whose
    values were put together that way, too; pⱼᵥ is the share of value v in column j. Rows that equal several
    records, which name nobody, are counted as well. Like the dealing, the rule follows from the lists of
    values and says nothing about whose value is whose. The group for which it is largest is merged with the
    nearest one that leaves less than a third of it, again and again, in O(groups) a time. No merge raises
    what is expected of both: groups of equal records stay apart, and the next ones are merged. If no merge is
    left that lowers what is expected, an InputError says so.

    Parameters
    ----------
    labels : (n,) groups 0, 1, …, which do not cross cells
    X : (n, c) coordinates in which they were found
    cells : (n,) cell of each record
    codes : (n, columns) of what is dealt, see :func:`codes_as_dealt`
    most : largest share of all rows that are expected to equal a record
    """
    members = rows_of_each(labels)
    expected = np.array([_expected_standing(codes[rows]) for rows in members])
    sizes = np.array([len(rows) for rows in members], dtype=np.float64)
    centres = np.array([X[rows].mean(axis=0) for rows in members])
    cell = np.array([cells[rows[0]] for rows in members])
    may_merge = np.ones(len(members), dtype=bool)
    while expected.sum() > most * len(codes):
        worst = int(np.argmax(np.where(may_merge, expected, -1.0)))
        if not may_merge[worst]:
            raise InputError(
                f"standing = {most:g} is not reached by merging groups of a stratum: too many records are "
                "equal. Allow a larger share, or leave standing out."
            )
        others = np.flatnonzero((sizes > 0) & (cell == cell[worst]))
        others = others[others != worst]
        apart = np.square(centres[others] - centres[worst]).sum(axis=1)
        near = np.argsort(apart * sizes[others] / (sizes[others] + sizes[worst]), kind="stable")
        best, least = -1, np.inf
        for other in others[near[:_NEIGHBOURS]]:
            value = _expected_standing(codes[np.concatenate([members[worst], members[other]])])
            if value < least:
                best, least = int(other), value
            if value < expected[worst] / 3:
                break
        if least >= expected[worst] + expected[best]:  # also where there is no other
            may_merge[worst] = False
            continue
        both = sizes[[worst, best]]
        centres[worst] = (both[:, None] * centres[[worst, best]]).sum(axis=0) / both.sum()
        members[worst] = np.concatenate([members[worst], members[best]])
        sizes[worst], sizes[best] = both.sum(), 0
        expected[worst], expected[best] = least, 0
        may_merge[best] = False
    merged = np.empty_like(labels)
    for group in np.flatnonzero(sizes):
        merged[members[group]] = group
    return canonical_labels(merged)


def codes_as_dealt(
    plan: Plan, block: Block, names: Iterable[Any], values: Floats, states: Labels
) -> Labels:
    """Return a number for what each row of a swapped block is dealt: equal for equal values and states.

    Parameters
    ----------
    plan, block : which columns are dealt together: they are one column of the result
    names : of the block's columns
    values, states : (n, columns) of the records
    """
    bundle_of = {name: bundle[0] for bundle in plan.bundles_of(block) for name in bundle}
    columns: dict[Any, list[Labels]] = {}
    for name, column, state in zip(names, values.T, states.T, strict=True):
        codes = np.unique(column, return_inverse=True, equal_nan=True)[1].reshape(-1)
        columns.setdefault(bundle_of.get(name, name), []).extend([codes, state])
    return np.column_stack([combine(codes) for codes in columns.values()])


def _expected_standing(codes: Labels) -> float:
    """Return how many rows of a group are expected to equal a record; see :func:`merge_agreeing`."""
    shares = [np.bincount(column) / len(codes) for column in codes.T]
    return float(len(codes) ** 2 * np.prod([np.square(share).sum() for share in shares]))


def _over_cells(problem: Problem, cells: Labels, progress: Listener | None) -> Partition:
    """Solve the cells in threads, and put their partitions together."""
    from concurrent.futures import ThreadPoolExecutor, wait  # here, for the sake of a fast import

    started = time.perf_counter()
    block, n = problem.block, len(cells)
    parts = rows_of_each(cells)
    done = np.zeros(len(parts), dtype=np.int64)
    stop, abort = Event(), Event()
    workers = min(thread_count(), len(parts))

    @at_work()
    def work(number: int) -> Partition | None:
        rows = parts[number]
        if len(rows) < 2 * problem.k:  # one group, whatever the method and the requirements
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
        cell, quick = problem.cell(rows), with_least_effort(block, options)
        try:
            partition = solve(cell, quick if stop.is_set() else options, watch)
        except StopSearch:  # a stopped search still returns groups for every record
            partition = replace(solve(cell, quick), stopped=True)
        done[number] = len(rows)
        return partition

    with ThreadPoolExecutor(workers, thread_name_prefix="microagg-cell") as pool:
        try:
            # The largest first, so that none of them is left to the end.
            largest = sorted(range(len(parts)), key=lambda at: (-len(parts[at]), at))
            futures = {at: pool.submit(work, at) for at in largest}
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
    return _combined(problem, parts, results, started)


def _combined(
    problem: Problem,
    parts: Sequence[Labels],
    results: Sequence[Partition | None],
    started: float,
) -> Partition:
    """Put the partitions of the cells together."""
    space, block, weights = problem.space, problem.block, problem.weights
    labels = np.empty(len(space.matrix), dtype=np.int64)
    groups, bound, stopped = 0, 0.0, False
    for rows, partition in zip(parts, results, strict=True):
        cell_weights = None if weights is None else weights[rows]
        if partition is None:
            labels[rows] = groups
            groups += 1
            one_group = np.zeros(len(rows), dtype=np.int64)
            bound += sum_of_squares(space.scaled[rows], one_group, cell_weights)
            continue
        labels[rows] = groups + partition.labels
        groups += partition.n_groups
        stopped = stopped or partition.stopped
        # The bound of a cell is in units of its own mean weight.
        mean = 1.0 if cell_weights is None else float(cell_weights.mean())
        bound += np.nan if partition.lower_bound is None else mean * partition.lower_bound
    labels = canonical_labels(labels)
    sse = sum_of_squares(space.scaled, labels, weights)
    solved = next((partition for partition in results if partition is not None), None)
    proved = bool(np.isfinite(bound)) and solved is not None and solved.lower_bound is not None
    method = find(block.method)
    options = settings_of(method, dict(block.options), problem.seed)
    if space.encoded:
        sst = sum_of_squares(space.scaled, np.zeros(len(labels), dtype=np.int64), weights)
    else:
        sst = total_squares(space.matrix, space.scale)
    return Partition(
        labels=labels,
        k=problem.k,
        method=method.name,
        scale=block.scale,
        options=options if solved is None else solved.options,
        sse=sse,
        sst=sst,
        seconds=time.perf_counter() - started,
        # Plain numbers of one column are cut in their own unit, in which bounds do not add up.
        lower_bound=min(float(bound), sse) if proved and space.encoded else None,
        stopped=stopped,
        weighted=weights is not None,
    )


def seconds_of_bound(cells: Labels, k: int) -> float:
    """Estimate the seconds of :func:`bound_over_cells` for the ``cells`` of records, (n,), and ``k``."""
    from microagg.bounds.by_effort import expected_seconds  # here, for the sake of a fast import

    return sum(expected_seconds(size, k) for size in np.bincount(cells).tolist())


def bound_over_cells(
    space: Space, cells: Labels, k: int, progress: Listener | None = None
) -> float:
    """Prove a lower bound on the SSE of all groups that do not cross cells: the sum of the cells' bounds.

    ``space`` is of the records, ``cells`` has the cell of each; ``k`` and ``progress`` are as for
    :func:`microagg.partition`.
    """
    if not cells.any():
        return lower_bound(space.matrix, k, scale=space.scale, effort="balanced", progress=progress)
    total, before = 0.0, 0
    for rows in rows_of_each(cells):

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
