"""refine() and lower_bound(): improve a partition, and prove how much better any could be."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from microagg.algorithms.result import Partition
from microagg.base.formatting import plural
from microagg.base.progress import STOP, Listener, State, new_state, run_watched
from microagg.base.typing import Floats, Labels
from microagg.encode.prepare import Prepared, prepare
from microagg.errors import InputError, shown
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.settings import check_effort, check_random_state, check_time_limit


def refine(
    X: Any,
    labels: Any,
    k: int,
    weights: Any = None,
    *,
    scale: str = "zscore",
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int | None = 0,
    progress: Listener | None = None,
) -> Partition:
    """Improve any partition, made here or elsewhere; the result is never worse.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), or a data frame of numbers
        The records, one per row.
    labels : array-like of shape (n,)
        The group of each record, as any whole numbers; groups of at least k.
    k : int
        Least number of records in a group.
    weights : array-like of shape (n,), optional
        What each record counts, as in :func:`microagg.partition`.
    scale : as in :func:`microagg.partition`; the SSE is taken, and lowered, in the scaled space
    effort : {"fast", "balanced", "best"}
        How long to search.
    time_limit : float, optional
        Seconds after which the best partition so far is returned. Without it the result is the same
        on every machine.
    random_state : int or None
        Seed of the search; None draws a fresh one.
    progress : callable, optional
        As for :func:`microagg.partition`.

    Returns
    -------
    Partition

    >>> p = refine([1, 2, 3, 50, 51, 52], [0, 1, 0, 1, 0, 1], k=3)
    >>> p.labels.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    check_effort(effort)
    check_time_limit(time_limit)
    check_random_state(random_state)
    records = prepare(X, k, scale, weights)
    given = _checked_labels(labels, len(records), records.k)
    settings = {"effort": effort, "time_limit": time_limit, "random_state": random_state}
    started = time.perf_counter()
    before = Partition(
        labels=given,
        k=records.k,
        method="refine",
        scale=scale,
        options=settings,
        sse=sum_of_squares(records.scaled, given, records.weights),
        sst=records.sst,
        seconds=time.perf_counter() - started,
        weighted=records.weights is not None,
    )
    return refined(before, records.scaled, settings, progress, records.weights)


def refined(
    before: Partition,
    scaled: Floats,
    settings: Mapping[str, Any],
    progress: Listener | None = None,
    weights: Floats | None = None,
) -> Partition:
    """Refine a partition of scaled records."""
    from microagg.algorithms.refine.refine import refine as search

    def work(state: State) -> Labels:
        return search(scaled, before.labels, before.k, weights=weights, state=state, **settings)

    return continued(before, work, scaled, weights, progress)


def continued(
    before: Partition,
    work: Callable[[State], Labels],
    X: Floats,
    weights: Floats | None,
    progress: Listener | None,
    state: State | None = None,
) -> Partition:
    """Search on from a partition; its new SSE is taken in X."""
    started = time.perf_counter()
    state = new_state() if state is None else state
    labels = canonical_labels(run_watched(work, progress, state=state, sst=before.sst))
    return replace(
        before,
        labels=labels,
        sse=sum_of_squares(X, labels, weights),
        seconds=before.seconds + time.perf_counter() - started,
        stopped=before.stopped or bool(state[STOP]),
    )


def _checked_labels(labels: Any, n: int, k: int) -> Any:
    """Refuse labels that are not a partition into groups of at least k."""
    given = np.asarray(labels)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise InputError(
            f"labels must be {n} whole numbers, one for each record; got an array of shape "
            f"{given.shape} and type {given.dtype}. Number the groups, and give each record the number "
            "of its group, in the order of the rows."
        )
    found = canonical_labels(given.astype(np.int64))
    smallest = int(np.bincount(found).min())
    if smallest < k:
        raise InputError(
            f"k={k} needs groups of at least {plural(k, 'record')}; the smallest group given has {smallest}. "
            "Refinement does not repair groups that are too small: use microagg.partition, or lower k."
        )
    return found


def lower_bound(
    X: Any,
    k: int,
    weights: Any = None,
    *,
    scale: str = "zscore",
    effort: str = "fast",
    time_limit: float | None = None,
    progress: Listener | None = None,
) -> float:
    """Prove a lower bound on the SSE of every partition into groups of at least k.

    Parameters
    ----------
    X, k, weights, scale
        As for :func:`microagg.partition`. For records whose weights differ the effort is "fast".
    effort : {"fast", "balanced", "best"}
        "fast" is the neighbour bound (:mod:`microagg.bounds.neighbour_bound`), for any number of records.
        "balanced" raises it by semidefinite programs (:mod:`microagg.bounds.semidefinite`): a single
        one for up to 1,200 records, and programs over neighbours beyond, in a time that is linear in the
        number of records. For k up to 5 and up to 10,000 records it has better prices instead,
        by subgradient ascent, and "best" goes on from there by column generation with cuts (both in
        :mod:`microagg.bounds.column_generation`); for larger k or more records "best" solves larger
        semidefinite programs, for longer.
    time_limit : float, optional
        Seconds after which the best bound so far is returned.
    progress : callable, optional
        As for :func:`microagg.partition`; :class:`microagg.StopSearch` ends the search with the best
        bound so far, if there is one.

    Returns
    -------
    float
        No partition has a lower SSE in the scaled space; rounding is allowed for.

    >>> X = [[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9]]
    >>> fast, best = lower_bound(X, 3), lower_bound(X, 3, effort="best")
    >>> from microagg import partition
    >>> bool(fast <= best <= partition(X, 3).sse)
    True
    """
    check_effort(effort)
    check_time_limit(time_limit)
    records = prepare(X, k, scale, weights)
    if records.weights is not None:
        check_weighted_effort(effort, "effort")
    return bounded(records, effort, time_limit, progress)


def check_weighted_effort(effort: str, name: str) -> None:
    """Refuse bounds that are for records of equal weight; ``name`` is the setting that asks for one."""
    if effort != "fast":
        raise InputError(
            f"{name}={shown(effort)} is for records of equal weight; these have weights that differ. Use "
            f"{name}='fast', the bound by neighbours, or leave the weights out."
        )


def bounded(
    records: Prepared,
    effort: str,
    time_limit: float | None = None,
    progress: Listener | None = None,
) -> float:
    """Return a lower bound on the SSE of any partition of these records."""
    scaled, k, weights = records.scaled, records.k, records.weights

    def work(state: State) -> float:
        from microagg.bounds.neighbour_bound import neighbour_bound

        if effort == "fast" or k == 1:
            return neighbour_bound(scaled, k, weights=weights, state=state)
        from microagg.bounds.by_effort import price_bound

        return price_bound(scaled, k, effort, time_limit, start, state)

    def start(seconds: float | None, state: State) -> Labels:
        from microagg.algorithms.auto import auto

        return auto(scaled, k, effort="fast", time_limit=seconds, state=state).labels

    return run_watched(work, progress)
