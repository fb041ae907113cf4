"""Utility and risk against hand-computed values, naive twins and what must not change."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import microagg
from microagg import InputError
from microagg.measure.classes import classes
from strategies import tables


@given(table=tables())
def test_loss_agrees_with_the_partition(table):
    X, k = table
    estimator = fitted(X, k)
    loss = microagg.utility(X, estimator.transform(X)).information_loss
    assert loss == pytest.approx(estimator.partition_.information_loss, rel=1e-6, abs=1e-6)


def fitted(X, k):
    return microagg.Microaggregator(k=k).fit(X)


def test_hand_computed_risk():
    before = np.array([[1.0], [2.0], [3.0], [3.0], [9.0]])
    after = np.array([[2.0], [2.0], [2.0], [6.0], [6.0]])
    r = microagg.risk(before, after)
    assert r.smallest_class == 2
    assert (r.unique_before, r.unique_after) == (0.6, 0.0)
    # The first three and the last are nearest to their own class; the fourth is not.
    assert r.record_linkage == pytest.approx((1 / 3 + 1 / 3 + 1 / 3 + 1 / 2) / 5)
    assert r.blind_guess == 0.2


@pytest.mark.parametrize("factor", [1e307, 1e-300])
def test_extreme_values(factor):
    X = np.array([[-1.0], [-2.0], [5.0], [6.0]]) * factor
    Y = np.array([[-1.5], [-1.5], [5.5], [5.5]]) * factor
    assert microagg.utility(X, Y).information_loss == pytest.approx(100 * 1 / 50)
    assert microagg.risk(X, Y).record_linkage == 0.5


def test_negative_zero_is_in_the_class_of_zero():
    assert classes(np.array([[0.0], [-0.0], [1.0]])).tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("original", "protected", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0], r"same records.*\(2, 1\) and \(3, 1\)"),
        (pd.DataFrame({"a": [1.0]}), [1.0], "two frames or two arrays"),
        ([1.0], pd.DataFrame({"a": [1.0]}), "two frames or two arrays"),
        (pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]}), "share no numeric column"),
    ],
)
def test_what_cannot_be_compared(original, protected, message):
    for measure in (microagg.utility, microagg.risk):
        with pytest.raises(InputError, match=message):
            measure(original, protected)


def test_unknown_column():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    with pytest.raises(InputError, match="no column 'z'"):
        microagg.utility(frame, frame, ["z"])


def test_arrays_have_no_column_names():
    with pytest.raises(InputError, match="names in frames only"):
        microagg.utility(np.eye(3), np.eye(3), columns=[0])


def test_a_protected_value_absurdly_far_away():
    assert microagg.risk([1.0, 2.0, 3.0], [1e300, 2.0, 3.0]).record_linkage == pytest.approx(2 / 3)


def test_measures_do_not_carry_originals_along():
    with pytest.raises(TypeError, match="hold the original values"):
        pickle.dumps(microagg.risk([1.0, 2.0], [1.5, 1.5]))
    secret = np.array([1234.5678, 2.0])
    measured = pickle.dumps(microagg.utility(secret, np.array([618.0, 618.0])))
    assert secret[:1].tobytes() not in measured
    assert b"group_loss" in measured
    survey = pd.DataFrame({"income": np.arange(40.0), "region": np.arange(40) % 2})
    (analysis,) = microagg.utility(survey, survey, analyses=["income by region"]).analyses
    assert analysis._groups is None


def test_tables_without_records_are_refused():
    nothing = pd.DataFrame({"a": [], "b": []})
    for measure in (microagg.utility, microagg.risk):
        with pytest.raises(InputError, match="must have records"):
            measure(nothing, nothing)
