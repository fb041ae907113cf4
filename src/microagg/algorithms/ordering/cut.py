"""The optimal cut of any order, for any number of columns.

Problem   The records stand in a given order. Cut it into runs of at least k, least SSE.
Idea      Shortest path: f[j], the least SSE of the first j records, is the least f[i] + C(i, j)
          over the starts i of the last run, C being the SSE of a run. Cutting a run of 2k or
          more in two never raises its SSE, so that runs of k to 2k−1 records are enough. The
          SSE of a run is the sum of its squared distances, each pair once, over its size, and
          these sums are found one from the other, each with one record more.
Cost      O(kn·d) time, nearly all of it loops over neighbouring numbers; O(n·d) memory. Exact for
          the order given.
Paper     MHM along an order: Domingo-Ferrer et al. 2006, as in section 3 of Mortazavi 2020. The
          incremental weights are the idea of IMHM, Mortazavi, Jalili & Gohargazi 2013, given as
          Algorithm 2 in the appendix of Mortazavi 2020.
Here      Along an arbitrary order the cost of a run is not concave (Stamm & Schaub 2024,
          section 6): the best start can move back, and none of the faster algorithms
          for sorted values is right. Only trying all k starts is.
          Algorithm 2 slides sums of values along the whole table. Ours are sums of squared
          distances within the run, without a difference of large numbers, and f is taken relative
          to a recent value: neither an offset nor an outlier far away nor a long table costs
          accuracy. Of equal costs the lower start wins, that is the larger last run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from microagg.algorithms.result import Outcome, Partition
from microagg.base.progress import DONE, STOP, Listener, State, new_state, run_watched
from microagg.base.typing import Floats, Labels
from microagg.compile.jit import kernel, lean_subkernel
from microagg.encode.prepare import prepare
from microagg.errors import InputError, listed, shown
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.registry import METHODS, find
from microagg.plan.settings import settings_of

Order = NDArray[np.int64]

# Most records whose distances are found together, and most of these distances.
_RECORDS, _DISTANCES = 256, 1 << 15


@lean_subkernel
def _distances_back(Y, begin, end, back_to):
    """Squared distances of the records begin..end−1 to those before: ``back_to[o − 1]`` to the o-th.

    Two columns at a time: half as often are the sums so far read and written.
    """
    d = len(Y)
    for o in range(1, len(back_to) + 1):
        first = max(begin, o)
        out = back_to[o - 1, first - begin : end - begin]
        out[:] = 0.0
        for c in range(0, d - 1, 2):
            here, there = Y[c, first:end], Y[c, first - o : end - o]
            next_here, next_there = Y[c + 1, first:end], Y[c + 1, first - o : end - o]
            for t in range(out.size):
                one, two = here[t] - there[t], next_here[t] - next_there[t]
                out[t] += one * one + two * two
        if d % 2 == 1:
            here, there = Y[d - 1, first:end], Y[d - 1, first - o : end - o]
            for t in range(out.size):
                out[t] += (here[t] - there[t]) * (here[t] - there[t])


@kernel
def _cut(Y, k, order, labels, state):
    """Cut an order into runs, and give their records labels, from the last run to the first.

    Y holds the records in their order, one in each column.
    """
    n = Y.shape[1]
    longest = 2 * k - 1
    f = np.full(n + 1, np.inf)
    f[0] = 0.0
    back = np.zeros(n + 1, np.intp)  # where the last run of the first j records begins
    pairs = np.zeros(longest)  # by size less 1: sum over the pairs of the run that ends here
    room = np.empty((longest - 1, max(32, min(_RECORDS, _DISTANCES // longest))))
    for begin in range(0, n, room.shape[1]):
        if state[STOP]:
            return
        state[DONE] = max(state[DONE], begin)
        end = min(begin + room.shape[1], n)
        _distances_back(Y, begin, end, room)
        for j in range(begin + 1, end + 1):
            best = f[j - 1] if k == 1 else np.inf
            back[j] = j - 1
            to_last, shorter = 0.0, 0.0
            for more in range(1, min(longest, j)):
                to_last += room[more - 1, j - 1 - begin]
                before = pairs[more]
                pairs[more] = shorter + to_last
                shorter = before
                if more + 1 >= k:
                    value = f[j - 1 - more] + pairs[more] / (more + 1)
                    if value <= best:
                        best, back[j] = value, j - 1 - more
            f[j] = best
            if j % (2 * k) == 0:
                for i in range(max(j - longest, 0), j + 1):
                    f[i] -= best
    state[DONE] = n
    j, run = n, 0
    while j > 0:
        for i in range(back[j], j):
            labels[order[i]] = run
        run += 1
        j = back[j]


def labels_along(X: Floats, order: Order, k: int, state: State) -> Labels:
    """Cut the records of X, in the given order, into runs of at least k; labels by row.

    >>> X = np.array([[0.0], [5.0], [0.1], [5.1], [9.0]])
    >>> labels_along(X, np.array([0, 2, 1, 3, 4]), 2, new_state()).tolist()
    [1, 0, 1, 0, 0]
    """
    labels = np.zeros(len(X), dtype=np.int64)  # as they are when asked to stop
    _cut(np.ascontiguousarray(X[order].T), k, order, labels, state)
    return labels


def cut_along(order_of: Callable[..., Order]) -> Callable[..., Outcome]:
    """Make a method of an order: ``order_of(X, k, state=..., ...)``, then the cut."""

    @wraps(order_of)
    def method(X: Floats, k: int, *, state: State | None = None, **options: Any) -> Outcome:
        state = new_state() if state is None else state
        return Outcome(labels_along(X, order_of(X, k, state=state, **options), k, state))

    return method


def cut(
    X: Any, order: ArrayLike, k: int, *, scale: str = "zscore", progress: Listener | None = None
) -> Partition:
    """Cut records that stand in an order of your own into groups of at least k, least SSE.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), or a data frame of numbers
    order : array-like of n row numbers, each of 0..n−1 once
        The sequence: by time, along a street, by a hierarchy, or from :func:`microagg.order`.
    k : int
        Least number of records in a group.
    scale, progress : as in :func:`microagg.partition`

    Returns
    -------
    Partition
        Of all partitions into runs of the order, one with the least SSE. O(kn·d) time.

    >>> cut([1, 2, 3, 50, 51, 52], [0, 1, 3, 4, 5, 2], k=2).labels.tolist()
    [0, 0, 1, 2, 2, 1]
    """
    records = prepare(X, k, scale)
    n, rows = len(records), np.asarray(order)
    rule = f"order must hold each row number from 0 to {n - 1} once"
    if rows.shape != (n,) or rows.dtype.kind not in "iu":
        raise InputError(
            f"{rule}; it has shape {rows.shape} and type {rows.dtype}. Pass whole numbers, "
            "such as those of np.argsort."
        )
    seen = np.zeros(n, dtype=bool)
    seen[rows[(rows >= 0) & (rows < n)]] = True
    if not seen.all():
        raise InputError(
            f"{rule}; row {shown(int(np.argmin(seen)))} is missing. A sequence of labels or ranks becomes "
            "an order by np.argsort."
        )
    rows = np.ascontiguousarray(rows, dtype=np.int64)
    started = time.perf_counter()
    labels = canonical_labels(
        run_watched(lambda state: labels_along(records.scaled, rows, records.k, state), progress)
    )
    return Partition(
        labels=labels,
        k=records.k,
        method="cut",
        scale=scale,
        options={},
        sse=sum_of_squares(records.scaled, labels),
        sst=records.sst,
        seconds=time.perf_counter() - started,
    )


def order(
    X: Any,
    method: str,
    *,
    k: int | None = None,
    scale: str = "zscore",
    random_state: int | None = 0,
    progress: Listener | None = None,
    **options: Any,
) -> Order:
    """Put records in a sequence in which neighbours are similar.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), or a data frame of numbers
    method : str
        An ordering method: a name from :func:`microagg.methods` with ``orders``.
    k : int, optional
        Least group size, for the orders that depend on it.
    scale, random_state, progress, **options : as in :func:`microagg.partition`

    Returns
    -------
    int64 array of shape (n,): row numbers in their order, for :func:`microagg.cut`.

    >>> order([5, 1, 9, 2], "pca").tolist()
    [1, 3, 0, 2]
    """
    chosen = find(method)
    if not chosen.order:
        names = listed((name for name, m in METHODS.items() if m.order), limit=99)
        raise InputError(f"method {shown(method)} makes no order; choose one of {names}.")
    settings = settings_of(chosen, options, random_state)
    if k is None and chosen.order_needs_k:
        raise InputError(
            f"The order of method {shown(method)} depends on k, the least number of records in a "
            "group; none was given. Pass k=..."
        )
    records = prepare(X, 1 if k is None else k, scale)

    def work(state: State) -> Order:
        rows: Order = chosen.order_function()(records.scaled, records.k, state=state, **settings)
        state[DONE] = len(rows)
        return rows

    return run_watched(work, progress)
