"""Ends of the best groups: an algorithm run over the sorted values, in all threads if that pays."""

from __future__ import annotations

import numpy as np

from microagg.algorithms.univariate.chain import Fill, Starts, chain, overlap_for, trace_into
from microagg.algorithms.univariate.line import NOTHING, PLACE, SETTLED, Extra, new_line
from microagg.base.progress import DONE, State
from microagg.base.typing import Floats, Labels
from microagg.compile.threads import helpers

# A stretch for a thread of its own has at least this many values, and this many times the overlap.
_STRETCH, _OVERLAPS = 100_000, 4


def best_ends(
    fill: Fill, x: Floats, k: int, cost: int, state: State, extra: Extra = NOTHING
) -> Labels:
    """Find the ends of the groups of sorted values by the algorithm ``fill``."""
    n, overlap = len(x), overlap_for(k)
    stretches = n // max(_STRETCH, _OVERLAPS * overlap) if extra == NOTHING else 1
    if stretches > 1:
        stretches = min(stretches, 1 + helpers())
    if stretches > 1:
        # All stretches but the first begin a little before.
        inner = [overlap + (n - overlap) * at // stretches for at in range(1, stretches)]
        found = chain([0, *inner, n], lambda start, end: x[start:end], k, cost, fill, state)
    else:
        line = new_line(x, k, cost, extra)
        fill(line, state)
        found = [Starts(0, 0, line.back)] if line.q[PLACE, SETTLED] == n else []
    if not found:  # asked to stop: nobody will look at this
        return np.array([n], dtype=np.int64)
    state[DONE] = n
    ends = np.empty(n // k if extra.lack is None else n, dtype=np.int64)
    g, column = len(ends), n
    for starts in reversed(found):
        g, column = trace_into(ends, g, starts, column)
    return ends[g:].copy()
