"""Scales: values, edge cases, offsets."""

import numpy as np
import pytest

import naive_weighted
from microagg.encode.scale import fit_scale
from microagg.plan.settings import SCALES

X = np.random.default_rng(0).lognormal(size=(50, 3))


def scaled(X, how="zscore", weights=None):
    return fit_scale(X, how, weights).apply(X)


def test_zscore_has_mean_0_and_sd_1_with_n_minus_1():
    Z = scaled(X)
    assert Z.mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert Z.std(axis=0, ddof=1) == pytest.approx(1)
    assert pytest.approx(np.array(naive_weighted.zscored(X, np.ones(50)))) == Z


def test_range_has_width_1():
    assert np.ptp(scaled(X, "range"), axis=0) == pytest.approx(1)


def test_robust_is_the_interquartile_range():
    first, third = np.quantile(X, [0.25, 0.75], axis=0)
    expected = (X - X[0]) / ((third - first) / 1.3489795)
    Z = scaled(X, "robust")
    assert pytest.approx(expected, rel=1e-6) == Z - Z[0]


def test_robust_falls_back_to_the_deviation_where_quartiles_coincide():
    column = np.zeros((20, 1))
    column[0] = 10.0
    assert scaled(column, "robust").std(axis=0, ddof=1) == pytest.approx(1)


def test_none_keeps_differences():
    Z = scaled(X, "none")
    assert pytest.approx(X - X[0]) == Z - Z[0]
    assert Z.mean(axis=0) == pytest.approx(0, abs=1e-12)


WEIGHTS = np.arange(1.0, 51) / 25.5  # of a mean of 1


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("how", SCALES)
def test_constant_columns_become_0(how, weights):
    data = np.column_stack([X[:, 0], np.full(50, 0.1)])
    assert np.all(scaled(data, how, weights)[:, 1] == 0)


@pytest.mark.parametrize("how", SCALES)
def test_one_record(how):
    assert scaled(np.array([[5.0, 6.0]]), how).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("how", SCALES)
def test_an_offset_leaves_the_very_same_doubles(how, weights):
    whole = np.random.default_rng(1).integers(-50, 50, size=(50, 2)).astype(float)
    assert np.array_equal(scaled(whole, how, weights), scaled(whole + 2.0**40, how, weights))


@pytest.mark.parametrize("factor", [1e308, 1e300, 1e-300, 5e-324])
def test_extreme_values_scale_like_ordinary_ones(factor):
    steps = np.array([[-1.0], [0.0], [1.0]])
    assert scaled(steps * factor).ravel().tolist() == pytest.approx([-1, 0, 1])


def test_input_is_not_changed():
    before = X.copy()
    scaled(X)
    assert np.array_equal(X, before)
