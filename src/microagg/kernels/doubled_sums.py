"""Sums in twice the precision of a double, for running totals that shrink, and sums without rounding.

A centroid that is kept up to date by subtracting what leaves would drown in the
rounding of large values that left long ago. A total held as high + low part does not.
"""

from __future__ import annotations

import math

from microagg.compile.jit import lean_kernel, lean_subkernel

_SPLIT = 134_217_729.0  # 2^27 + 1: cuts a double into two of 26 bits


@lean_subkernel
def two_sum(a, b):
    """Return (s, e) with s = fl(a + b) and s + e = a + b exactly (Knuth's branch-free form)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@lean_subkernel
def two_product(a, b):
    """Return (p, e) with p = fl(a·b) and p + e = a·b exactly (Dekker's splitting)."""
    p = a * b
    t = _SPLIT * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = _SPLIT * b
    b_high = t - (t - b)
    b_low = b - b_high
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@lean_subkernel
def add_row(high, low, row, sign):
    """Add sign·row to a total, coordinate by coordinate.

    Parameters
    ----------
    high, low : (d,) doubles whose sum is the total; written to
    row : (d,) doubles
    sign : 1, −1, or a weight
    """
    for j in range(high.size):
        s, e = two_sum(high[j], sign * row[j])
        high[j], low[j] = two_sum(s, e + low[j])


# Sums of doubles without any rounding: the same whatever the order in which values come.
#
# A double is a whole number of 53 bits times a power of two. Sums are kept by that power, as whole numbers
# in two halves, so that nothing is ever rounded, up to 2^36 values. Squares are kept as two doubles each.

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
    """Add Σw, Σwx and Σwx² to sums, without rounding but for wx² of odd weights.

    Parameters
    ----------
    values, weights : (n,) finite doubles x and w
    sums : (3, 2, BINS) int64, for each sum its whole numbers by power of two, high and low halves; written to
    """
    for i in range(values.size):
        x, w = values[i], weights[i]
        square, square_rest = two_product(x, x)
        _add(w, sums[0, 0], sums[0, 1])
        if w == 1.0:
            _add(x, sums[1, 0], sums[1, 1])
            _add(square, sums[2, 0], sums[2, 1])
            _add(square_rest, sums[2, 0], sums[2, 1])
            continue
        for half in two_product(w, x):
            _add(half, sums[1, 0], sums[1, 1])
        for half in two_product(w, square):
            _add(half, sums[2, 0], sums[2, 1])
        _add(w * square_rest, sums[2, 0], sums[2, 1])
