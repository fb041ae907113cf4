"""Sums of doubles without any rounding: the same whatever the order in which values come.

A double is a whole number of 53 bits times a power of two. Sums are kept by that power, as whole numbers
in two halves, so that nothing is ever rounded, up to 2^36 values. Squares are kept as two doubles each.
"""

from __future__ import annotations

import math

from microagg.compile.no_refcount import lean_kernel, lean_subkernel
from microagg.kernels.doubled_sums import two_product

OFFSET = 1_080  # of the least power of two
BINS = 2_112
LOW_BITS = 27


@lean_subkernel
def _add(x, high, low):
    """Add one double to a sum."""
    if x == 0.0:
        return
    m, e = math.frexp(x)
    whole = int(m * 9_007_199_254_740_992.0)
    high[e + OFFSET] += whole >> LOW_BITS
    low[e + OFFSET] += whole & ((1 << LOW_BITS) - 1)


@lean_kernel
def add_moments(values, weights, sums):
    """Add Σw, Σwx and Σwx² to ``sums`` of shape (3, 2, BINS), without rounding but for wx² of odd weights."""
    for i in range(values.size):
        x, w = values[i], weights[i]
        square, square_rest = two_product(x, x)
        _add(w, sums[0, 0], sums[0, 1])
        if w == 1.0:
            _add(x, sums[1, 0], sums[1, 1])
            _add(square, sums[2, 0], sums[2, 1])
            _add(square_rest, sums[2, 0], sums[2, 1])
            continue
        for part in two_product(w, x):
            _add(part, sums[1, 0], sums[1, 1])
        for part in two_product(w, square):
            _add(part, sums[2, 0], sums[2, 1])
        _add(w * square_rest, sums[2, 0], sums[2, 1])
