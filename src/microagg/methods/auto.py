"""auto: the method for whoever does not want to choose one.

One column goes to the exact univariate methods (see the registry). Several get a start and are
refined (methods/refine): MDAV is the better start but takes more than linear time, so that
large tables are cut into groups of k along their widest columns instead.
"""

from __future__ import annotations

import time

import numpy as np

from microagg.errors import InputError, check_effort, check_time_limit, shown
from microagg.groups import Floats, Labels
from microagg.kernels.halve import halve
from microagg.kernels.jit import kernel
from microagg.methods.fixed_size.mdav import mdav
from microagg.methods.refine.refine import refine
from microagg.progress import State

_LARGE = 60_000  # records from which on MDAV would take longer than refining


@kernel
def _halves(X, k, labels):  # type: ignore[no-untyped-def]
    """Halve the table along its widest column, by multiples of k, until no half has 2k records."""
    n, d = X.shape
    rows, keys, low, high = np.arange(n), np.empty(n), np.empty(d), np.empty(d)
    ends = np.empty(64, np.intp)  # of what is still to be halved, the nearest on top
    ends[0], top, start, group = n, 1, 0, 0
    while top > 0:
        stop = ends[top - 1]
        if stop - start >= 2 * k:
            middle = start + k * ((stop - start) // (2 * k))
            halve(X, rows, start, stop, middle, low, high, keys)
            ends[top] = middle
            top += 1
        else:
            for a in range(start, stop):
                labels[rows[a]] = group
            group, start, top = group + 1, stop, top - 1


def auto(
    X: Floats,
    k: int,
    *,
    cost: str = "sse",
    effort: str = "balanced",
    time_limit: float | None = None,
    random_state: int | None = 0,
    progress: State | None = None,
) -> Labels:
    """Partition several columns: a start that suits their number, then refined.

    Costs other than sse are refused. The other options are those of
    :func:`microagg.methods.refine.refine.refine`.
    """
    if cost != "sse":
        raise InputError(
            f"cost={shown(cost)} is for one column; with {X.shape[1]} columns it is sse. Protect each "
            "column by itself (per_column=True), or leave the cost out."
        )
    check_effort(effort)
    check_time_limit(time_limit)
    started = time.monotonic()
    if len(X) < _LARGE:
        labels = mdav(X, k)
    else:
        labels = np.empty(len(X), dtype=np.int64)
        _halves(X, k, labels)
    if time_limit is not None:
        time_limit = max(0.0, time_limit - (time.monotonic() - started))
    return refine(
        X,
        labels,
        k,
        effort=effort,
        time_limit=time_limit,
        random_state=random_state,
        progress=progress,
    )
