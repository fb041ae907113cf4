"""The bounds from prices, by effort: the semidefinite bound, then ascent and column generation."""

from __future__ import annotations

import time

import numpy as np

from microagg.bounds.ascent import ascend
from microagg.bounds.columns import Generation
from microagg.bounds.master import solver_unit
from microagg.bounds.neighbours import neighbour_bound
from microagg.bounds.pricer import Pricer
from microagg.bounds.semidefinite import Size, proved_by, semidefinite_prices
from microagg.groups import Floats, canonical_labels, sum_of_squares
from microagg.progress import DONE, STOP, State, stop_after

_SMALL = 5  # up to this k pricing is exact, or nearly so
_ROUNDS = 60  # of ascent
_FEW = 10_000  # records up to which groups are priced: a round takes the square of their number
_FIRST = Size(block=60, rounds=40, worth=2e-3)
_SIZES = {"balanced": Size(block=100, rounds=60, worth=2e-3), "best": Size(250, 300, 5e-4)}
_WHOLE = 1_500  # records up to which "best" has them all in one block


def price_bound(X: Floats, k: int, effort: str, time_limit: float | None, state: State) -> float:
    """Bound the SSE of any partition from below: the best of all bounds that the effort covers.

    For small k the prices of the semidefinite bound are a start from which pricing gets further; for
    larger k, where pricing takes too long, they are the end.

    >>> from microagg.progress import new_state
    >>> round(price_bound(np.array([[0.0], [1.0], [5.0], [7.0]]), 2, "best", None, new_state()), 6)
    2.5
    """
    deadline = np.inf if time_limit is None else time.monotonic() + time_limit
    n = len(X)
    if n < 2 * k:  # one group: its SSE, but for the rounding of n·d terms
        state[DONE] = n
        return sum_of_squares(X, np.zeros(n, np.int64)) * (1 - 4 * (X.size + 9) * 2.0**-53)
    fast = neighbour_bound(X, k)
    priced = priceable(n, k)
    with stop_after(state, time_limit):
        size = size_of(n, k, effort)
        prices = semidefinite_prices(X, k, size, deadline, state, n // 2 if priced else n)
        bound = max(fast, proved_by(prices))
        if priced and not state[STOP]:
            bound = max(bound, _priced(X, k, effort, prices, deadline, state))
    state[DONE] = n
    return bound


def priceable(n: int, k: int) -> bool:
    """Whether groups are priced, after the semidefinite bound."""
    return k <= _SMALL and n <= _FEW


def size_of(n: int, k: int, effort: str) -> Size:
    """How much work the semidefinite bound may be."""
    if priceable(n, k):
        return _FIRST
    # The best has all records in one block if it can.
    return _SIZES[effort]._replace(block=n) if effort == "best" and n <= _WHOLE else _SIZES[effort]


def _priced(X: Floats, k: int, effort: str, prices: Floats, deadline: float, state: State) -> float:
    """Go on from some prices by ascent, and by column generation for the best effort."""
    from microagg.methods.auto import auto  # bounds are below methods, which use them

    left = None if np.isinf(deadline) else max(0.0, deadline - time.monotonic())
    labels = canonical_labels(auto(X, k, effort="fast", time_limit=left))
    upper = sum_of_squares(X, labels)
    if upper == 0:
        return 0.0
    unit = solver_unit(upper / (int(labels.max()) + 1))
    pricer = Pricer(X * unit, k, state)
    best = ascend(
        pricer,
        prices * unit**2,
        upper * unit**2,
        rounds=_ROUNDS,
        deadline=deadline,
        width=32 if k <= 3 else 64,
    )
    bound = best.bound
    if effort == "best" and not state[STOP]:
        generation = Generation(pricer, [labels], best)
        generation.run(deadline)
        bound = max(bound, generation.best.bound)
    return bound / unit**2
