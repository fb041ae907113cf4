"""Sums in twice the precision of a double, for running totals that shrink.

A centroid that is kept up to date by subtracting what leaves would drown in the
rounding of large values that left long ago. A total held as high + low part does not.
"""

from __future__ import annotations

from microagg.compile.no_refcount import lean_subkernel

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
    """Add sign·row to the totals held as high + low, coordinate by coordinate."""
    for j in range(high.size):
        s, e = two_sum(high[j], sign * row[j])
        high[j], low[j] = two_sum(s, e + low[j])
