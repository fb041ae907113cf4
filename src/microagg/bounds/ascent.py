"""Subgradient ascent: better prices from good ones, without a linear program.

Bound     As in column_generation.py: any prices prove a bound, once the floors of all seeds are known.
Idea      Charge records that the cheapest groups do not hold more, those that several hold less;
          the step is Polyak's towards a partition's SSE, and is halved when the bound does not rise
          (Held & Karp 1971). Pricing looks at few candidates, so that a round takes about n² steps.
Cost      The given number of rounds of quick pricing.
"""

from __future__ import annotations

import numpy as np

from microagg.base.progress import STOP
from microagg.bounds.column_generation import proved
from microagg.bounds.cuts import NO_CUTS, DualPrices
from microagg.bounds.repeated_pricing import Pricer

_PATIENCE = 4  # rounds without a better bound, after which steps are halved
_MEMORY = 0.6  # how much of the direction before is kept


def ascend(
    pricer: Pricer,
    start: DualPrices,
    upper: float,
    *,
    rounds: int,
    width: int = 32,
    nodes: int = 300,
) -> DualPrices:
    """Raise the bound that prices prove, from some prices on; ``upper`` is the SSE of a partition."""
    n, k = len(pricer.X), pricer.k
    best, duals, direction = start, start.duals, np.zeros(n)
    unit = np.maximum(duals, 0.1 * duals.mean())  # outliers have high prices, and need large steps
    step, idle = 1.0, 0
    for _ in range(rounds + 1):
        groups, floors = pricer.price(duals, width=width, nodes=nodes, each=1)
        if pricer.state[STOP]:
            break
        bound = proved(pricer, duals, NO_CUTS, floors)
        if bound > best.bound:
            best, idle = DualPrices(duals, NO_CUTS, bound), 0
        else:
            idle += 1
            if idle == _PATIENCE:
                step, idle, duals, direction = step / 2, 0, best.duals, np.zeros(n)
                continue
        cheapest = np.argsort(groups.reduced, kind="stable")[: n // k]
        rows = groups.members[cheapest]
        cover = np.bincount(rows[rows >= 0], minlength=n)
        direction = _MEMORY * direction + (1.0 - cover)
        length = float(direction @ (unit * direction))
        if length == 0:
            break
        duals = duals + step * (upper - bound) / length * unit * direction
    return best
