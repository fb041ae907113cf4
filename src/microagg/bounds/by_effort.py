"""The bounds from prices, by effort: the semidefinite bound, then ascent and column generation."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from microagg.base.progress import DONE, STOP, VALID, State, part, rest_of, seconds_left, stop_after
from microagg.base.typing import Floats, Labels
from microagg.bounds.column_generation import ROUNDS_OF_CUTS, Generation, ascend
from microagg.bounds.cuts import NO_CUTS, DualPrices
from microagg.bounds.neighbour_bound import neighbour_bound
from microagg.bounds.program import solver_unit
from microagg.bounds.repeated_pricing import Pricer
from microagg.bounds.semidefinite import Size, proved_by, semidefinite_prices
from microagg.compile.threads import thread_count
from microagg.kernels.labels import canonical_labels, sum_of_squares
from microagg.plan.settings import EXACT_K

# Finds a good partition in some seconds (None: in any time), heeding stops: labels of the records.
Start = Callable[[float | None, State], Labels]

# Up to so many groups are priced: a round takes the square of their number.
_PRICED_RECORDS = 10_000
_SMALLEST = 2.0**-1074  # what is smaller than all doubles is off by this at most
_FIRST = Size(block=60, rounds=40, worth=2e-3)  # where pricing follows
_WORTH = {"balanced": 2e-3, "best": 3e-4}
_IN_BLOCKS = {"balanced": (100, 240), "best": (250, 300)}  # records of a block, rounds
_WHOLE = {"balanced": (1_200, 80), "best": (1_500, 300)}  # records of a table in one block, rounds
_LARGEST_BLOCK = 1_500


def price_bound(
    X: Floats, k: int, effort: str, time_limit: float | None, start: Start, state: State
) -> float:
    """Bound the SSE of any partition from below: the best of all bounds that the effort covers.

    Parameters
    ----------
    X : (n, d) scaled records; never written to
    k : least size of a group
    effort : "balanced" or "best"
    time_limit : seconds after which the best bound so far is returned; None: none
    start : finds a partition, whose SSE is an upper bound and whose groups are the first that are priced
    state : progress, and the wish to stop, upon which the best bound so far is returned

    Returns
    -------
    a bound in the unit of the SSE, rounding accounted for

    >>> from microagg.base.progress import new_state
    >>> X, start = np.array([[0.0], [1.0], [5.0], [7.0]]), lambda *_: np.array([0, 0, 1, 1])
    >>> round(price_bound(X, 2, "best", None, start, new_state()), 6)
    2.5
    """
    n = len(X)
    if n < 2 * k:  # one group: its SSE, but for the rounding of n·d terms
        state[DONE] = n
        whole = sum_of_squares(X, np.zeros(n, np.int64)) * (1 - 4 * (X.size + 9) * 2.0**-53)
        return max(0.0, whole - X.size * _SMALLEST)
    started = time.monotonic()
    with part(state, 1 / 8):
        bound = neighbour_bound(X, k, state=state)
    state[VALID] = 1
    if _priceable(n, k):
        with stop_after(state, rest_of(time_limit, started)), part(state, 1 / 4):
            prices = _semidefinite(X, k, [_FIRST], state)
        bound = max(bound, prices.bound)
        if not state[STOP]:
            rest = rest_of(time_limit, started)
            bound = max(bound, _priced(X, k, effort, prices, rest, start, state))
    else:
        with stop_after(state, rest_of(time_limit, started)), part(state, 7 / 8):
            bound = max(bound, _semidefinite(X, k, _sizes(n, k, effort), state).bound)
    state[DONE] = n
    return bound


def _priceable(n: int, k: int) -> bool:
    """Return whether groups can be priced, after the semidefinite bound, in time that is worth it."""
    return k <= EXACT_K and n <= _PRICED_RECORDS


def expected_seconds(n: int, k: int) -> float:
    """Estimate the seconds of the balanced bound for n records and k, measured with 11 to 13 columns.

    Parameters
    ----------
    n : number of records
    k : least number of records in a group

    >>> expected_seconds(1000, 3) < expected_seconds(1000, 10)
    True
    """
    sizes, threads = _sizes(n, k, "balanced"), thread_count()
    if _priceable(n, k):
        return (1.5e-3 * n + 1.3e-6 * n**2) / threads
    if not sizes or n < 2 * k:
        return 0.0
    if sizes[0].block == n:  # half of it is done by one thread
        return 3e-8 * n**3 * (1 + 1 / threads) / 2
    return 1.1e-6 * n * sizes[0].block ** 2 / threads


def _sizes(n: int, k: int, effort: str) -> list[Size]:
    """Return how much work the semidefinite bound may be: one after the other, each better than the last."""
    sizes = []
    for name in ("balanced", "best") if effort == "best" else ("balanced",):
        largest, rounds = _WHOLE[name]
        block = n
        if n > largest:
            least, rounds = _IN_BLOCKS[name]
            block = max(least, 4 * k)
        # Blocks that hold groups with their neighbours may be too large.
        if block <= _LARGEST_BLOCK:
            sizes.append(Size(block, rounds, _WORTH[name], stars=True, islands=True))
    # A single block for longer proves what it does in fewer rounds, and more.
    return sizes[-1:] if sizes and sizes[0].block == n else sizes


def first_prices(X: Floats, k: int, state: State, share: float) -> DualPrices:
    """Find the prices of records that the semidefinite bound proves.

    For small k they are a start, from which pricing gets further; for larger k, where
    pricing may not end, they are the best there are.

    Parameters
    ----------
    X : (n, d) scaled records; never written to
    k : least size of a group
    state : progress, and the wish to stop
    share : of the time that is left until it stops, which this may take
    """
    sizes = [_FIRST] if k <= EXACT_K else _sizes(len(X), k, "best")
    # Without islands, since each group must pay its records' prices.
    sizes = [size._replace(islands=False) for size in sizes]
    return _semidefinite(X, k, sizes, state, share)


def _semidefinite(
    X: Floats, k: int, sizes: list[Size], state: State, share: float = 1.0
) -> DualPrices:
    """Find the best prices of semidefinite programs of some sizes."""
    candidates = [np.zeros(len(X))]
    for size in sizes:
        seconds = share * seconds_left(state) / (1 if size == sizes[-1] else 4)
        with part(state, 1 / len(sizes)):
            candidates.append(semidefinite_prices(X, k, size, seconds, state))
    prices = max(candidates, key=lambda each: float(each.sum()))
    return DualPrices(prices, NO_CUTS, proved_by(prices))


def _priced(
    X: Floats,
    k: int,
    effort: str,
    prices: DualPrices,
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
    best = DualPrices(prices.duals * unit**2, NO_CUTS, prices.bound * unit**2)
    with stop_after(state, rest_of(time_limit, started)):
        pricer = Pricer(X * unit, k, state)
        width = 32 if k <= 3 else 64
        best = ascend(pricer, best, upper * unit**2, width=width)
        if effort == "best" and not state[STOP]:
            generation = Generation(pricer, [labels], best)
            generation.run(close=generation.close_to(upper * unit**2))
            for _ in range(ROUNDS_OF_CUTS):
                if not generation.cut(upper * unit**2):
                    break
            best = generation.best
    return max(0.0, best.bound / unit**2 - X.size * _SMALLEST)
