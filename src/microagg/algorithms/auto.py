"""auto: the method for anyone who does not want to choose one.

One column goes to the exact univariate methods (see the registry). Several get MDAV's groups as a
start and are refined (algorithms/refine). MDAV takes more than linear time, so that it gets large
tables in blocks: the groups along their borders are worse at first, which refinement repairs. In many
columns trees find nothing sooner than a scan, so that blocks are smaller; they are cut along values that
many records share, such as those of a category, which parts no records that belong together. In small
tables refinement takes enough steps for each group that the start does not matter: there
the blocks are the groups, and a first call need not wait until MDAV is compiled. Tables with more
columns than records are turned into a space of as many dimensions as there are records first.

With weights the best groups of one column need not be runs of its sorted values, so that one column is
refined like several; its start is the best cut into runs (algorithms/univariate/weighted.py).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from microagg.algorithms.refine.refine import refine
from microagg.algorithms.result import Outcome
from microagg.base.formatting import plural
from microagg.base.progress import STOP, State, new_state, part, rest_of
from microagg.base.typing import Floats, Labels
from microagg.compile.threads import share_out
from microagg.errors import InputError, shown
from microagg.kernels.halve import halves
from microagg.kernels.outside_in import mdav_labels
from microagg.plan.settings import LARGE_K

_BLOCK = 65_536  # records at most; smaller ones take less time but give worse groups
_SMALL = 4_096  # the same when time is short: when there are more records than
_RECORDS_A_SECOND = 20_000
_ANY_START = 2_000  # records up to which the start does not matter
_MANY_COLUMNS = 16  # from which on trees find nothing sooner than a scan
_LAST = 1e-6  # by which other columns are made smaller than those along which blocks are cut


def mdav_in_blocks(
    X: Floats, k: int, state: State, most: int = _BLOCK, weights: Floats | None = None
) -> Labels:
    """Partition by MDAV in blocks of neighbouring records: O(n log n) time.

    Blocks of fewer than 2k records are groups as they are; so is all that a stop leaves undone. Where there
    are many blocks and many columns whose values are shared by k records, blocks are smaller, and cut along
    these columns first.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    k : least size of a group
    state : progress, and the wish to stop
    most : records of a block
    weights : (n,) above 0; None: all weigh the same

    Returns
    -------
    (n,) int64, the caller's
    """
    cut = X
    if len(X) > most >= _SMALL and X.shape[1] >= _MANY_COLUMNS:
        shared = np.array([k * len(np.unique(column)) <= len(X) for column in X.T])
        if shared.sum() >= _MANY_COLUMNS:
            most, cut = min(most, max(_SMALL, 4 * k)), np.where(shared, X, _LAST * X)
    rows, first = halves(cut, k, max(most, 2 * k - 1))
    labels = np.empty(len(X), dtype=np.int64)
    labels[rows] = np.repeat(first[:-1], np.diff(first))

    def work(begin: int, end: int, _: int) -> None:
        for b in range(begin, end):
            block = np.sort(rows[first[b] : first[b + 1]])
            if len(block) >= 2 * k:
                light = None if weights is None else weights[block]
                groups = mdav_labels(np.ascontiguousarray(X[block]), k, state, light)
                labels[block] = first[b] + (0 if state[STOP] else groups)

    with part(state, 0.0):  # blocks count records at the same time, each from 0
        share_out(work, len(first) - 1, state, at_once=1)
    return labels


def auto(
    X: Floats,
    k: int,
    *,
    cost: str = "sse",
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int | None = 0,
    weights: Floats | None = None,
    n_total: int | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    state: State | None = None,
) -> Outcome:
    """Partition several columns, or one with weights: a start that suits their number, then refined.

    Parameters
    ----------
    X : (n, d) scaled records, C-contiguous; never written to
    k : least size of a group
    cost : "sse"; others are refused
    effort, time_limit, random_state, weights, n_total, span, state : as for
        :func:`microagg.algorithms.refine.refine.refine`
    """
    if cost != "sse" and weights is not None:
        raise InputError(
            f"cost={shown(cost)} cannot be weighted; with weights it is sse. Leave the cost out, or group "
            "without weights."
        )
    if cost != "sse":
        raise InputError(
            f"cost={shown(cost)} is for one column; with {plural(X.shape[1], 'column')} it is sse. "
            "Protect each column by itself (per_column=True), or leave the cost out."
        )
    state = new_state() if state is None else state
    started = time.monotonic()
    if X.shape[1] > len(X):
        # n records span n dimensions at most, whatever their columns: with Xᵀ = QR, the rows of Rᵀ are as far
        # from each other as those of X. Every step of the search then takes O(n) instead of O(d).
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # the last digits must not depend on the number of threads
            R: Any = np.linalg.qr(X.T, mode="r")
        X = np.ascontiguousarray(R.T)
    if X.shape[1] == 1 and weights is not None:
        from microagg.algorithms.univariate.weighted import cut_weighted

        with part(state, 0.0):
            labels = cut_weighted(X, weights, k, state)
    else:
        short = time_limit is not None and len(X) > _RECORDS_A_SECOND * time_limit
        few = len(X) <= _ANY_START and k <= LARGE_K and effort != "fast"
        most = 0 if few else max(_SMALL if short else _BLOCK, 4 * k)
        labels = mdav_in_blocks(X, k, state, most, weights)
    if state[STOP]:
        return Outcome(labels)
    better = refine(
        X,
        labels,
        k,
        weights=weights,
        effort=effort,
        time_limit=rest_of(time_limit, started),
        random_state=random_state,
        n_total=n_total,
        span=span,
        state=state,
    )
    return Outcome(better)
