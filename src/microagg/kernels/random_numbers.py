"""Random numbers in kernels: the same on every machine, for a state of one word that the caller keeps."""

from __future__ import annotations

import numpy as np

from microagg.compile.jit import lean_subkernel


@lean_subkernel
def draw(random):
    """Draw a double from [0, 1) by ``random``, (1,) uint64, the state, which is written to (splitmix64)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@lean_subkernel
def draw_exponential(random):
    """Draw an exponential variate of mean 1 by the state ``random``, as :func:`draw` does.

    By comparisons alone (von Neumann 1951): a logarithm is rounded differently on other machines, which would
    lead to other groups.
    """
    integer = 0.0
    while True:
        first = last = draw(random)
        odd = True
        while True:
            following = draw(random)
            if following >= last:
                break
            last, odd = following, not odd
        if odd:
            return integer + first
        integer += 1.0
