"""Summaries: exact whatever the order, and the same as the whole column."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from microagg import InputError
from microagg.encode.batch_statistics import Moments, Sketch, mass_by_number

numbers = st.floats(-1e150, 1e150, allow_nan=False) | st.sampled_from([0.0, -0.0, 5e-324, 1e9])


def naive(values, weights):
    """Mean and squares about it, by fractions."""
    x, w = [Fraction(v) for v in values], [Fraction(v) for v in weights]
    mean = sum(a * b for a, b in zip(x, w, strict=True)) / sum(w)
    return mean, sum(b * (a - mean) ** 2 for a, b in zip(x, w, strict=True))


@given(st.lists(numbers, min_size=1, max_size=30), st.integers(0, 30), st.randoms())
def test_moments_are_exact_and_do_not_know_their_order(values, cut, random):
    whole = Moments().add(np.array(values))
    shuffled = random.sample(values, len(values))
    parts = [Moments().add(np.array(part)) for part in (shuffled[:cut], shuffled[cut:])]
    merged = parts[1].merge(parts[0])
    mean, squares = naive(values, [1.0] * len(values))
    assert whole.mean == merged.mean == float(mean)
    assert whole.squares == merged.squares
    if all(abs(v) > 1e-140 or v == 0 for v in values):  # else squares themselves vanish
        assert whole.squares == float(squares)
    assert (whole.low, whole.high) == (min(values), max(values))


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.floats(0.01, 1e6)), min_size=2, max_size=30))
def test_weighted_moments(pairs):
    values, weights = map(np.array, zip(*pairs, strict=True))
    found = Moments().add(values, weights)
    mean, squares = naive(values, weights)
    assert found.mean == pytest.approx(float(mean), rel=1e-15, abs=1e-300)
    assert found.squares == pytest.approx(float(squares), rel=1e-9, abs=1e-9)


def test_an_offset_costs_no_digits():
    x = np.random.default_rng(0).normal(size=1000)
    y = np.round(x, 6)
    shifted = Moments().add(y * 2**20 + 2.0**40)
    assert shifted.deviation == pytest.approx(Moments().add(y * 2**20).deviation, rel=1e-12)


def test_numbers_whose_squares_overflow_are_refused():
    with pytest.raises(InputError, match="1e"):
        Moments().add(np.array([1e200]))


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=200), st.floats(0.01, 0.99))
@example([2.225073858507e-311], 0.5)
def test_quantiles_are_near(values, share):
    found = Sketch.of(np.array(values[::2])).merge(Sketch.of(np.array(values[1::2])))
    exact = float(np.quantile(values, share))
    near = max(map(abs, values))
    assert found.quantile(share) == pytest.approx(exact, rel=1e-9, abs=1e-9 * near)
    coarse = found.coarse().quantile(share)
    # Numbers below the least normal one have fewer leading bits.
    assert coarse == pytest.approx(exact, rel=1 / 128, abs=near / 128 + np.finfo(float).tiny)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.floats(1e-300, 1e150)), min_size=1, max_size=100),
)
def test_weights_of_levels_are_added_without_rounding(records):
    numbers, weights = (np.array(column) for column in zip(*records, strict=True))
    exact: dict[int, Fraction] = {}
    for number, weight in records:
        exact[number] = exact.get(number, Fraction(0)) + Fraction(weight)
    assert mass_by_number(numbers, weights) == exact
