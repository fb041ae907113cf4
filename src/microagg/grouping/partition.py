"""partition(): check, scale, look the method up, run it, wrap the result.

And refine(), which improves a partition; lower_bound(), which proves how much better any could be; and the
number of partitions that there are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import comb
from typing import Any

import numpy as np

from microagg.algorithms.result import Outcome, Partition
from microagg.base.formatting import plural
from microagg.base.progress import DONE, STOP, Listener, State, new_state, run_watched
from microagg.base.typing import Floats, Labels
from microagg.encode.prepare import Prepared, prepare
from microagg.errors import InputError, StopSearch, listed, shown
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.registry import METHODS, Method, find
from microagg.plan.settings import (
    check_count,
    check_effort,
    check_k,
    check_random_state,
    check_time_limit,
    settings_of,
)

_QUICK = 20_000  # values of one column that the slowest algorithm cuts in a fraction of a second
_EASILY_BOUND = 50_000  # records times k (at least 10) up to which a good bound takes half a minute


def partition(
    X: Any,
    k: int,
    weights: Any = None,
    *,
    method: str = "auto",
    scale: str = "zscore",
    random_state: int | None = 0,
    refine: bool | str = False,
    bound: bool | str = False,
    n_total: int | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    progress: Listener | None = None,
    **options: Any,
) -> Partition:
    """Partition records into groups of at least k similar ones.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), or a data frame of numbers
        The records, one per row. Never changed.
    k : int
        Least number of records in a group, 1 ≤ k ≤ n.
    weights : array-like of shape (n,), optional
        What each record counts in the SSE, around weighted means: finite numbers above 0, in any unit;
        equal ones are the same as none. Scales are weighted too. k counts records, whatever
        their weight. For methods whose row in :func:`microagg.methods` says ``weighted``.
    method : str
        A name from :func:`microagg.methods`.
    scale : {"zscore", "range", "robust", "none"}
        How columns are made comparable, see :func:`microagg.encode.scale.fit_scale`.
    random_state : int or None
        Seed of the methods that draw random numbers; None draws a fresh one.
    refine : bool or {"fast", "balanced", "best"}
        Improve what the method found by local search, see :func:`microagg.refine`; True is
        "balanced".
    bound : bool or {"fast", "balanced", "best"}
        Also prove a lower bound on the SSE, see :func:`microagg.lower_bound`; True is "balanced" up to
        5,000 records (less for k above 10), which takes up to half a minute, and "fast" for more and
        for records with weights.
    n_total : int, optional
        Records of the table that these are a part of: a search that shares its steps out over a table
        then takes those of the part alone.
    span : pair of float
        From where to where in its search ``auto`` goes, of the whole from 0 to 1, where others go on.
    progress : callable, optional
        Called about ten times a second with the number of records done. From a search this number
        also has ``information_loss``, of the best partition so far, and ``gap``, see
        :class:`microagg.base.progress.Progress`. It may raise :class:`microagg.StopSearch` to end
        the search with that partition.
    **options
        Settings of the method, as listed by :func:`microagg.methods`.

    Returns
    -------
    Partition
        With ``labels``, ``sizes``, ``sse``, ``information_loss`` and more.

    Raises
    ------
    InputError
        For data that are not a table of finite numbers with at least k rows, and for names and
        settings that do not exist.

    >>> p = partition([1, 2, 3, 50, 51, 52], k=3, method="mdav")
    >>> p.labels.tolist(), p.sizes.tolist(), round(p.information_loss, 3)
    ([0, 0, 0, 1, 1, 1], [3, 3], 0.111)

    A heavy record keeps its place; a light one may fill up a group that is far from it.

    >>> partition([8, 10, 13, 34], k=2, weights=[3, 3, 10, 10]).labels.tolist()
    [0, 1, 0, 1]
    """
    chosen = find(method)
    if chosen.categories:
        raise InputError(
            f"method {shown(chosen.name)} is for one column of categories; partition takes numbers. Use it "
            "in protect(), with a nominal column."
        )
    if chosen.closeness:
        raise InputError(
            f"method {shown(chosen.name)} is for t-closeness of a column; partition knows k alone. Use it in "
            'protect(), with require={"closeness": {...}}.'
        )
    settings = settings_of(chosen, options, random_state)
    effort = _effort("refine", refine, "balanced")
    records = prepare(X, k, scale, weights)
    n, n_columns = records.values.shape
    k = records.k
    weighted = records.weights is not None
    proof = _effort_of_proof(bound, n, k, weighted)
    if chosen.one_column and n_columns > 1:
        raise InputError(
            f"method {shown(method)} is for one column; the data have {n_columns}. Use a method "
            "for several columns, or protect(..., per_column=True) for each column by itself."
        )

    if weighted and not chosen.weighted:
        able = listed((name for name, other in METHODS.items() if other.weighted), limit=99)
        raise InputError(
            f"method {shown(chosen.name)} cannot weigh records; those that can are {able}. Use one of "
            "them, or group without weights (they then count in the released means only)."
        )
    _check_weighted_effort(proof, "bound", records)
    extra: dict[str, Any] = {}
    raw = chosen.takes_raw(n_columns, weighted)
    if n_total is not None and "effort" in settings and not raw:
        extra = {"n_total": n_total, **({"span": span} if chosen.name == "auto" else {})}
    result = _run(chosen, records, settings, extra, progress)
    if effort and not raw and not result.stopped:  # what the exact methods found cannot be improved
        search = {"effort": effort, "random_state": random_state, "n_total": n_total}
        result = _refined(result, records, search, progress)
        result = replace(result, options={**settings, "refine": effort})
    if proof or chosen.proves:
        # Without other costs no partition is better than the exact one.
        best = raw and settings.get("cost", "sse") == "sse" and not settings.get("group_cost")
        result = with_bound(result, records, proof or "fast", progress, best)
    return result


def _run(
    chosen: Method,
    records: Prepared,
    settings: dict[str, Any],
    extra: dict[str, Any],
    progress: Listener | None,
) -> Partition:
    """Run a method on records and wrap its result; ``extra`` are arguments that no setting gives."""
    started = time.perf_counter()
    (n, n_columns), weighted = records.values.shape, records.weights is not None
    raw = chosen.takes_raw(n_columns, weighted)
    data = records.values if raw else records.scaled
    if weighted:
        extra = {"weights": records.weights, **extra}

    def work(state: State) -> Outcome:
        function = chosen.function(n_columns, weighted)
        outcome: Outcome = function(data, records.k, state=state, **extra, **settings)
        state[DONE] = n
        return outcome

    # To start a thread of its own takes longer than to cut a short column.
    quick = raw and progress is None and n <= _QUICK
    state = new_state()
    outcome = work(state) if quick else run_watched(work, progress, state=state, sst=records.sst)
    labels = outcome.labels if raw else canonical_labels(outcome.labels)
    lost = outcome.lost
    return Partition(
        labels=labels,
        k=records.k,
        method=chosen.name,
        scale=records.scale,
        options=settings,
        sse=sum_of_squares(data, labels, records.weights) if lost is None else lost * records.sst,
        sst=records.sst,
        seconds=time.perf_counter() - started,
        lower_bound=outcome.lower_bound,
        stopped=bool(state[STOP]),
        weighted=weighted,
    )


def _effort_of_proof(bound: bool | str, n: int, k: int, weighted: bool) -> str:
    """Return the effort of the bound that is asked for; empty: none."""
    easy = n * max(k, 10) <= _EASILY_BOUND and not weighted
    return _effort("bound", bound, "balanced" if easy else "fast")


def seconds_of_proof(bound: bool | str, n: int, k: int, weighted: bool) -> float:
    """Estimate the seconds of the proof that ``bound`` asks for; 0 if it is quick or cannot be estimated.

    It is of groups of at least ``k`` of ``n`` records, which are ``weighted`` or not.

    >>> seconds_of_proof(False, 1_000, 8, False), seconds_of_proof(True, 1_000, 8, False) > 1
    (0.0, True)
    """
    if _effort_of_proof(bound, n, k, weighted) != "balanced":
        return 0.0
    from microagg.bounds.by_effort import expected_seconds  # here, for the sake of a fast import

    return expected_seconds(n, k)


def with_bound(
    result: Partition,
    records: Prepared,
    bound: bool | str,
    progress: Listener | None,
    best: bool = False,
) -> Partition:
    """Add the bound that is asked for to a partition, unless the method gave one or it is the ``best``."""
    effort = _effort_of_proof(bound, len(records), records.k, records.weights is not None)
    _check_weighted_effort(effort, "bound", records)
    least = result.sse if best else result.lower_bound
    if least is None:
        # Who stops the search will not wait for the bound, and who stops the bound has the groups.
        try:
            least = _bounded(records, "fast" if result.stopped else effort, progress=progress)
        except StopSearch:
            return replace(result, stopped=True)
    return replace(result, lower_bound=min(least, result.sse))


def _effort(name: str, wanted: object, usual: str) -> str:
    """Return True, False or an effort as an effort; empty for none."""
    if isinstance(wanted, bool):
        return usual if wanted else ""
    return check_effort(wanted, name)


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
    given = np.asarray(labels)
    if given.shape != (len(records),) or given.dtype.kind not in "iu":
        raise InputError(
            f"labels must be {len(records)} whole numbers, one for each record; got an array of shape "
            f"{given.shape} and type {given.dtype}. Number the groups, and give each record the number "
            "of its group, in the order of the rows."
        )
    numbered = canonical_labels(given.astype(np.int64))
    smallest = int(np.bincount(numbered).min())
    if smallest < records.k:
        raise InputError(
            f"k={records.k} needs groups of at least {plural(records.k, 'record')}; the smallest group given "
            f"has {smallest}. Refinement does not repair groups that are too small: use microagg.partition, "
            "or lower k."
        )
    settings = {"effort": effort, "time_limit": time_limit, "random_state": random_state}
    before = Partition(
        labels=numbered,
        k=records.k,
        method="refine",
        scale=scale,
        options=settings,
        sse=sum_of_squares(records.scaled, numbered, records.weights),
        sst=records.sst,
        seconds=0.0,
        weighted=records.weights is not None,
    )
    return _refined(before, records, settings, progress)


def _refined(
    before: Partition,
    records: Prepared,
    settings: Mapping[str, Any],
    progress: Listener | None = None,
) -> Partition:
    """Refine a partition of scaled records."""
    from microagg.algorithms.refine.refine import refine as search

    X, weights = records.scaled, records.weights

    def work(state: State) -> Labels:
        return search(X, before.labels, before.k, weights=weights, state=state, **settings)

    return continued(before, work, X, weights, progress)


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
    _check_weighted_effort(effort, "effort", records)
    return _bounded(records, effort, time_limit, progress)


def _check_weighted_effort(effort: str, name: str, records: Prepared) -> None:
    """Refuse bounds that are for records of equal weight; ``name`` is the setting that asks for one."""
    if effort not in ("", "fast") and records.weights is not None:
        raise InputError(
            f"{name}={shown(effort)} is for records of equal weight; these have weights that differ. Use "
            f"{name}='fast', the bound by neighbours, or leave the weights out."
        )


def _bounded(
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


def count_partitions(n: int, k: int) -> int:
    """Count the partitions of n records into groups of k to 2k−1, exactly.

    The first record's group has some size s, for which there are (n−1 choose s−1) ways, and
    the others are partitioned in turn: a simpler recurrence for the numbers of Laszlo &
    Mukherjee 2005, Appendix A and Table 11. O(nk) additions of large integers.

    >>> count_partitions(10, 3)
    2226
    """
    n = check_count("n, the number of records,", n)
    k = check_k(k, n)
    ways = [1] + [0] * n
    for m in range(k, n + 1):
        sizes = range(k, min(2 * k - 1, m) + 1)
        ways[m] = sum(comb(m - 1, s - 1) * ways[m - s] for s in sizes)
    return ways[n]
