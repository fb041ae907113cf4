"""The bounds from prices, by effort: the semidefinite bound, then ascent and column generation."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from microagg.bounds.ascent import ascend
from microagg.bounds.columns import ROUNDS_OF_CUTS, Generation, Prices
from microagg.bounds.cuts import NO_CUTS
from microagg.bounds.neighbours import neighbour_bound
from microagg.bounds.pricer import EXACT_K, Pricer
from microagg.bounds.program import solver_unit
from microagg.bounds.semidefinite import Size, proved_by, semidefinite_prices
from microagg.groups import Floats, Labels, canonical_labels, sum_of_squares
from microagg.progress import DONE, STOP, VALID, State, part, rest_of, seconds_left, stop_after

# Finds a good partition in some seconds (None: in any time), heeding stops: labels of the records.
Start = Callable[[float | None, State], Labels]

_PRICED_RECORDS = (
    10_000  # up to this many groups are priced: a round takes the square of their number
)
_ROUNDS = 60  # of ascent
_FIRST = Size(block=60, rounds=40, worth=2e-3)  # where pricing follows
_SIZES = {"balanced": Size(block=100, rounds=60, worth=2e-3), "best": Size(250, 300, 5e-4)}
_WHOLE = 1_500  # records up to which "best" has them all in one block


def price_bound(
    X: Floats, k: int, effort: str, time_limit: float | None, start: Start, state: State
) -> float:
    """Bound the SSE of any partition from below: the best of all bounds that the effort covers.

    The partition of ``start`` is an upper bound, and its groups are the first that are priced.

    >>> from microagg.progress import new_state
    >>> X, start = np.array([[0.0], [1.0], [5.0], [7.0]]), lambda *_: np.array([0, 0, 1, 1])
    >>> round(price_bound(X, 2, "best", None, start, new_state()), 6)
    2.5
    """
    n = len(X)
    if n < 2 * k:  # one group: its SSE, but for the rounding of n·d terms
        state[DONE] = n
        return sum_of_squares(X, np.zeros(n, np.int64)) * (1 - 4 * (X.size + 9) * 2.0**-53)
    started = time.monotonic()
    with part(state, 1 / 8):
        bound = neighbour_bound(X, k, state=state)
    state[VALID] = 1
    with stop_after(state, rest_of(time_limit, started)):
        with part(state, 1 / 4 if _priceable(n, k) else 7 / 8):
            prices = first_prices(X, k, effort, state)
        bound = max(bound, prices.bound)
    if _priceable(n, k) and not state[STOP]:
        bound = max(
            bound, _priced(X, k, effort, prices, rest_of(time_limit, started), start, state)
        )
    state[DONE] = n
    return bound


def _priceable(n: int, k: int) -> bool:
    """Whether groups can be priced, after the semidefinite bound, in time that is worth it."""
    return k <= EXACT_K and n <= _PRICED_RECORDS


def _sizes(n: int, k: int, effort: str) -> list[Size]:
    """How much work the semidefinite bound may be: one after the other, each better than the last."""
    if _priceable(n, k):
        return [_FIRST]
    whole = effort == "best" and n <= _WHOLE
    if (
        4 * k > _WHOLE and not whole
    ):  # blocks that hold groups with their neighbours would be too large
        return []
    sizes = [_SIZES[name]._replace(block=max(_SIZES[name].block, 4 * k)) for name in _SIZES]
    if whole:
        sizes[-1] = sizes[-1]._replace(block=n)
    return sizes if effort == "best" else sizes[:1]


def first_prices(X: Floats, k: int, effort: str, state: State, share: float = 1.0) -> Prices:
    """Prices of the semidefinite bound, in this share of the time that is left.

    For small k they are a start, from which pricing gets further; for larger k, where
    pricing would not end, they are the best there are.
    """
    sizes, found = _sizes(len(X), k, effort), [np.zeros(len(X))]
    for size in sizes:
        seconds = share * seconds_left(state) / (1 if size == sizes[-1] else 4)
        with part(state, 1 / len(sizes)):
            found.append(semidefinite_prices(X, k, size, seconds, state))
    prices = max(found, key=lambda each: float(each.sum()))
    return Prices(prices, NO_CUTS, proved_by(prices))


def _priced(
    X: Floats,
    k: int,
    effort: str,
    prices: Prices,
    time_limit: float | None,
    start: Start,
    state: State,
) -> float:
    """Go on from some prices by ascent, and by column generation for the best effort."""
    started = time.monotonic()
    with part(state, 1 / 8):
        labels = canonical_labels(start(time_limit, state))
    upper = sum_of_squares(X, labels)
    if state[STOP] or upper == 0:
        return 0.0
    unit = solver_unit(upper / (int(labels.max()) + 1))
    first = Prices(prices.duals * unit**2, NO_CUTS, prices.bound * unit**2)
    with stop_after(state, rest_of(time_limit, started)):
        pricer = Pricer(X * unit, k, state)
        best = ascend(pricer, first, upper * unit**2, rounds=_ROUNDS, width=32 if k <= 3 else 64)
        bound = best.bound
        if effort == "best" and not state[STOP]:
            generation = Generation(pricer, [labels], best)
            generation.run()
            for _ in range(ROUNDS_OF_CUTS):
                if state[STOP] or not generation.cut(upper * unit**2):
                    break
            bound = max(bound, generation.best.bound)
    return bound / unit**2
