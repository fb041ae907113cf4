"""Kernels that several methods use."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from microagg.kernels.select import kth_smallest
from microagg.kernels.sums import add_row, two_sum

finite = st.floats(-1e150, 1e150)


@given(st.lists(st.one_of(finite, st.integers(0, 3).map(float)), min_size=1), st.data())
def test_kth_smallest_is_that_of_the_sorted_values(values, data):
    k = data.draw(st.integers(1, len(values)))
    assert kth_smallest(np.array(values), k) == sorted(values)[k - 1]


def test_kth_smallest_of_sorted_reversed_and_equal_values():
    for values in (np.arange(999.0), np.arange(999.0)[::-1].copy(), np.zeros(999)):
        assert kth_smallest(values.copy(), 500) == np.sort(values)[499]


@given(finite, finite)
def test_two_sum_is_exact(a, b):
    s, e = two_sum(a, b)
    assert Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b)


def test_a_total_survives_what_was_large_and_left():
    high, low = np.zeros(1), np.zeros(1)
    rows = np.array([[1e20], [1.0], [-3e19], [0.5]])
    for row in rows:
        add_row(high, low, row, 1.0)
    add_row(high, low, rows[0], -1.0)
    add_row(high, low, rows[2], -1.0)
    assert high[0] + low[0] == 1.5
