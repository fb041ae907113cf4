"""partition(): check, scale, look the method up, run it, wrap the result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from microagg.encode.scale import check_scale, fit_scale
from microagg.errors import InputError, check_random_state, listed, shown
from microagg.groups import canonical_labels, sum_of_squares
from microagg.progress import Report, State, run_watched
from microagg.registry import Method, find
from microagg.results import Partition
from microagg.tables.matrix import as_matrix, check_k

__all__ = ["check_options", "partition"]


def partition(
    X: Any,
    k: int,
    *,
    method: str = "auto",
    scale: str = "zscore",
    random_state: int | None = 0,
    progress: Report | None = None,
    **options: Any,
) -> Partition:
    """Partition records into groups of at least k similar ones.

    Parameters
    ----------
    X : array-like of shape (n,) or (n, d), or a data frame of numbers
        The records, one a row. Never changed.
    k : int
        Least number of records in a group, 1 ≤ k ≤ n.
    method : str
        A name from :func:`microagg.methods`.
    scale : {"zscore", "range", "robust", "none"}
        How columns are made comparable, see :func:`microagg.encode.scale.fit_scale`.
    random_state : int or None
        Seed of the methods that draw random numbers; None draws a fresh one.
    progress : callable, optional
        Called about ten times a second with the number of records done.
    **options
        Settings of the method, as listed by :func:`microagg.methods`.

    Returns
    -------
    Partition
        With ``labels``, ``sizes``, ``sse``, ``information_loss`` and more.

    Raises
    ------
    InputError
        For anything that is not a table of finite numbers with at least k rows, and
        for unknown names.

    >>> p = partition([1, 2, 3, 50, 51, 52], k=3, method="mdav")
    >>> p.labels.tolist(), p.sizes.tolist(), round(p.information_loss, 3)
    ([0, 0, 0, 1, 1, 1], [3, 3], 0.111)
    """
    chosen = find(method)
    check_scale(scale)
    settings = _settings(chosen, options, random_state)
    matrix = as_matrix(X)
    k = check_k(k, len(matrix))
    if chosen.one_column and matrix.shape[1] > 1:
        raise InputError(
            f"method {shown(method)} is for one column; the data have {matrix.shape[1]}. Use a method "
            "for several columns, or protect(..., per_column=True) for each column by itself."
        )

    started = time.perf_counter()
    scaling = fit_scale(matrix, scale)
    raw = chosen.takes_raw(matrix.shape[1])
    data = matrix if raw else scaling.apply(matrix)

    def work(state: State) -> Any:
        function = chosen.function(matrix.shape[1])
        return function(data, k, progress=state, **settings)

    found = run_watched(work, report=progress)
    labels = canonical_labels(found.labels if raw else found)
    scaled = scaling.apply(matrix) if raw else data
    sst = float(np.square(scaled - scaled.mean(axis=0)).sum())
    return Partition(
        labels=labels,
        k=k,
        method=chosen.name,
        scale=scale,
        options=settings,
        sse=found.lost * sst if raw else sum_of_squares(scaled, labels),
        sst=sst,
        seconds=time.perf_counter() - started,
    )


def check_options(method: Method, options: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse options that the method does not have; return those it has, with their defaults."""
    known = {option.name: option.default for option in method.options}
    for name in options:
        if name not in known:
            has = f"it takes {listed(known)}" if known else "it takes none"
            raise InputError(f"method {shown(method.name)} has no option {shown(name)}; {has}.")
    return known


def _settings(method: Method, options: dict[str, Any], random_state: int | None) -> dict[str, Any]:
    """Complete the options by their defaults; refuse those that the method does not have."""
    check_random_state(random_state)
    known = check_options(method, options)
    settings = {**known, **options}
    if "random_state" in known:
        settings["random_state"] = random_state
    return settings
