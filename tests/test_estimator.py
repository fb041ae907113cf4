"""Microaggregator: scikit-learn's own checks, and the promise that a release is a whole table."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import microagg
from microagg import InputError, Microaggregator

_WHOLE = (
    "a release holds for the fitted table as a whole: other rows, or a part of them, are refused"
)


def expected_failures(estimator):
    return {
        "check_fit_idempotent": _WHOLE,
        "check_methods_subset_invariance": _WHOLE,
        "check_methods_sample_order_invariance": _WHOLE,
    }


@parametrize_with_checks([Microaggregator(k=2)], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(name="X")
def data():
    return np.random.default_rng(0).normal(size=(40, 3))


def class_sizes(protected):
    return np.unique(np.asarray(protected), axis=0, return_counts=True)[1]


def test_fit_transform_keeps_k_anonymity(X):
    protected = Microaggregator(k=4).fit_transform(X)
    assert protected.shape == X.shape
    assert class_sizes(protected).min() >= 4


def test_agrees_with_partition(X):
    estimator = Microaggregator(k=4, method="mdav").fit(X)
    p = microagg.partition(X, 4, method="mdav")
    assert np.array_equal(estimator.labels_, p.labels)
    assert estimator.partition_.sse == p.sse


def test_median(X):
    estimator = Microaggregator(k=5, aggregate="median")
    protected = estimator.fit_transform(X)
    group = estimator.labels_ == 0
    assert protected[group][0] == pytest.approx(np.median(X[group], axis=0))


def test_transform_of_the_fitted_table_is_the_release(X):
    estimator = Microaggregator(k=4)
    assert np.array_equal(estimator.fit_transform(X), estimator.transform(X.copy()))


@pytest.mark.parametrize(
    "other",
    [lambda X: X + 1, lambda X: X[:20], lambda X: X[::-1], lambda X: np.vstack([X, X])],
    ids=["new rows", "a part", "another order", "twice"],
)
def test_transform_of_other_rows_is_refused(X, other):
    estimator = Microaggregator(k=4).fit(X)
    with pytest.raises(InputError, match=r"other rows.*would break k-anonymity.*fit_transform"):
        estimator.transform(other(X))


def test_no_record_is_kept(X):
    X[0, 0] = 1234567.125
    fitted = pickle.dumps(Microaggregator(k=4).fit(X))
    assert np.float64(1234567.125).tobytes() not in fitted
    assert X.tobytes() not in fitted


def test_masked_values_are_missing_values(X):
    with pytest.raises(ValueError, match="NaN"):
        Microaggregator(k=4).fit(np.ma.array(X, mask=X > 1))


@pytest.mark.parametrize(("library", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_set_output(X, library, frame):
    data = frame({"a": X[:, 0], "b": X[:, 1]})
    estimator = Microaggregator(k=4).set_output(transform=library)
    protected = estimator.fit_transform(data)
    assert isinstance(protected, frame)
    assert list(protected.columns) == ["a", "b"]
    assert class_sizes(protected.to_numpy()).min() >= 4


def test_pandas_index_is_kept(X):
    data = pd.DataFrame(X, columns=list("abc"), index=range(100, 140))
    protected = Microaggregator(k=4).set_output(transform="pandas").fit_transform(data)
    assert protected.index.equals(data.index)


def test_in_a_pipeline(X):
    pipeline = make_pipeline(FunctionTransformer(np.exp), Microaggregator(k=4))
    assert class_sizes(pipeline.fit_transform(X)).min() >= 4


def test_parameters_survive_cloning():
    estimator = Microaggregator(k=7, method="mdav", scale="range", aggregate="median")
    assert clone(estimator).get_params() == estimator.get_params()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k, the least number"),
        ({"k": 41}, "minimum of 41 is required"),
        ({"method": "none"}, "method='none' is not known"),
        ({"aggregate": "mode"}, "aggregate='mode' is not known"),
        ({"options": {"gamma": 1}}, "has no option 'gamma'"),
        ({"options": [1]}, "options is a dict"),
        ({"options": {"method": "mdav"}}, "options is a dict"),
        ({"aggregate": ["mean"]}, "is not known"),
    ],
)
def test_bad_settings_are_refused_when_fitted(X, settings, message):
    with pytest.raises(ValueError, match=message):
        Microaggregator(**settings).fit(X)
