"""The bounds from prices, by effort: ascent, then column generation."""

from __future__ import annotations

import time

import numpy as np

from microagg.bounds.ascent import ascend
from microagg.bounds.columns import Generation, Prices, shares
from microagg.bounds.neighbours import neighbour_bound
from microagg.bounds.pricer import EXACT_K, MANY, Pricer
from microagg.bounds.program import solver_unit
from microagg.groups import Floats, canonical_labels, members_of, sum_of_squares
from microagg.progress import DONE, STOP, VALID, State, part, rest_of, stop_after

_ROUNDS = 60
_MIXES = (0.03, 0.06, 0.1, 0.15)  # of a partition's shares into the neighbour bound's, for larger k
_CANDIDATES = 200  # for larger k
_FEW = 1000  # branches of pricing in column generation, for larger k


def price_bound(X: Floats, k: int, effort: str, time_limit: float | None, state: State) -> float:
    """Bound the SSE of any partition from below: the best of all bounds that the effort covers.

    >>> from microagg.progress import new_state
    >>> round(price_bound(np.array([[0.0], [1.0], [5.0], [7.0]]), 2, "best", None, new_state()), 6)
    2.5
    """
    from microagg.methods.auto import auto  # bounds are below methods, which use them

    n = len(X)
    if n < 2 * k:  # one group: its SSE, but for the rounding of n·d terms
        state[DONE] = n
        return sum_of_squares(X, np.zeros(n, np.int64)) * (1 - 4 * (X.size + 9) * 2.0**-53)
    started = time.monotonic()
    with part(state, 1 / 8):
        fast = neighbour_bound(X, k, progress=state)
    state[VALID] = 1
    with part(state, 1 / 8):
        rest = rest_of(time_limit, started)
        labels = canonical_labels(auto(X, k, effort="fast", time_limit=rest, progress=state))
    upper = sum_of_squares(X, labels)
    if state[STOP] or upper == 0:
        state[DONE] = n
        return min(fast, upper)
    unit = solver_unit(upper / (int(labels.max()) + 1))
    X, upper = X * unit, upper * unit**2
    with stop_after(state, rest_of(time_limit, started)):
        pricer = Pricer(X, k, state)
        best = _ascent(pricer, shares(X, members_of(labels, 2 * k - 1)), upper)
        state[DONE] = n // 2
        bound = max(fast, best.bound / unit**2)
        if effort == "best" and not state[STOP]:
            generation = Generation(pricer, [labels])
            generation.centre = best.duals
            generation.run(nodes=MANY if k <= EXACT_K else _FEW)
            bound = max(bound, generation.best.bound / unit**2)
    state[DONE] = n
    return bound


def _ascent(pricer: Pricer, share: Floats, upper: float) -> Prices:
    """Prices by ascent; for large k, where pricing is cut short, the best of a few mixtures."""
    floor = pricer.near[:, pricer.k - 1] / (2 * pricer.k)
    if pricer.k <= EXACT_K:
        width = 32 if pricer.k <= 3 else 64
        start = 0.7 * floor + 0.3 * share
        return ascend(pricer, start, upper, rounds=_ROUNDS, width=width)
    tried = [
        ascend(
            pricer,
            (1 - mix) * floor + mix * share,
            upper,
            rounds=0,
            width=_CANDIDATES,
            nodes=100,
        )
        for mix in _MIXES
    ]
    return max(tried, key=lambda prices: prices.bound)
