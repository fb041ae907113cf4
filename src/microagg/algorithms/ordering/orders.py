"""order(): the orders of the ordering methods by themselves, for :func:`microagg.cut`."""

from __future__ import annotations

from typing import Any

from microagg.algorithms.ordering.cut import Order
from microagg.base.progress import Listener, State, run_watched
from microagg.encode.prepare import prepare
from microagg.errors import InputError, listed, shown
from microagg.plan.registry import METHODS, find
from microagg.plan.settings import settings_of


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
        return rows

    return run_watched(work, progress)
