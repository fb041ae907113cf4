"""Bands: coarse, in order, each value in one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg.report.public import EDGES, TIMES, band, band_of_times


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_values_share_a_band_unless_an_edge_lies_between(a, b):
    low, high = sorted((a, b))
    assert (band(a) == band(b)) == (not any(low < edge <= high for edge in EDGES))


@pytest.mark.parametrize("edge", EDGES)
def test_an_edge_belongs_to_the_band_above(edge):
    assert band(edge - 1e-9) == f"under {edge} %"
    assert band(edge) != f"under {edge} %"


@pytest.mark.parametrize("value", [-1e-9, float("nan")])
def test_what_is_no_percentage(value):
    with pytest.raises(ValueError, match="a percentage is 0 or more"):
        band(value)


@given(st.floats(0, 10), st.floats(0, 10))
def test_multiples_share_a_band_unless_an_edge_lies_between(a, b):
    low, high = sorted((a, b))
    alike = band_of_times(a) == band_of_times(b)
    assert alike == (not any(low < edge <= high for edge in TIMES))
