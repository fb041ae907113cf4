"""Microaggregator: scikit-learn's own checks, and the promise that a release is a whole table."""

import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import microagg
from microagg import InputError, Microaggregator

_WHOLE = (
    "a release holds for the fitted table as a whole: other rows, or a part of them, are refused"
)
_NO_ZEROS = "a record of weight 0 is still a person: it is refused, not left out"


def expected_failures(estimator):
    return {
        "check_fit_idempotent": _WHOLE,
        "check_methods_subset_invariance": _WHOLE,
        "check_methods_sample_order_invariance": _WHOLE,
        "check_sample_weight_equivalence_on_dense_data": _NO_ZEROS,
    }


@parametrize_with_checks([Microaggregator(k=2)], expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(name="X")
def data():
    return np.random.default_rng(0).normal(size=(40, 3))


def class_sizes(protected):
    return np.unique(np.asarray(protected), axis=0, return_counts=True)[1]


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
    mask = X > 1
    protected = Microaggregator(k=4).fit_transform(np.ma.array(X, mask=mask))
    assert np.array_equal(
        protected, Microaggregator(k=4).fit_transform(np.where(mask, np.nan, X)), equal_nan=True
    )
    assert class_sizes(np.nan_to_num(protected, nan=99.0)).min() >= 4


def test_missing_values_can_be_refused_in_our_words(X):
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="NaN in row 3, column 1"):
        Microaggregator(k=4, missing="error").fit(X)
    frame = pd.DataFrame(X, columns=list("abc"))
    with pytest.raises(InputError, match=r"'b'.*row 4"):
        Microaggregator(k=4, missing="error").fit(frame)


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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "k, the least number"),
        ({"k": 41}, "minimum of 41 is required"),
        ({"options": [1]}, "options is a dict"),
        ({"options": {"method": "mdav"}}, "options is a dict"),
        ({"aggregate": ["mean"]}, "aggregate is one of"),
    ],
)
def test_bad_settings_are_refused_when_fitted(X, settings, message):
    with pytest.raises(ValueError, match=message):
        Microaggregator(**settings).fit(X)


def mixed(n=120, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.choice(["small", "middle", "large"], n, p=[0.5, 0.3, 0.2])
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n).astype(float)),
            "size": size,
            "income": rng.lognormal(8, 0.5, n) + 500 * (size == "large"),
        },
        index=range(7, n + 7),
    )


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_a_frame_is_protected_as_protect_does(library):
    given = mixed()
    frame = given if library is pd.DataFrame else pl.from_pandas(given)
    protected = Microaggregator(k=4, kinds={"age": "number"}).fit_transform(frame)
    expected = microagg.protect(
        frame, k=4, columns=["age", "size", "income"], missing="majority", kinds={"age": "number"}
    ).data
    assert isinstance(protected, library)
    assert protected.equals(expected)


def test_weights_give_weighted_means(X):
    weights = np.linspace(1, 3, len(X))
    estimator = Microaggregator(k=4)
    protected = estimator.fit_transform(X, sample_weight=weights)
    group = estimator.labels_ == 0
    expected = np.average(X[group], axis=0, weights=weights[group])
    assert protected[group][0] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(InputError, match=r"sample_weight.*above zero"):
        estimator.fit(X, sample_weight=np.zeros(len(X)))


def test_weights_are_routed_through_a_pipeline(X):
    weights = np.linspace(1, 3, len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        step = Microaggregator(k=4).set_fit_request(sample_weight=True)
        routed = make_pipeline(step).fit_transform(X, sample_weight=weights)
    alone = Microaggregator(k=4).fit_transform(X, sample_weight=weights)
    assert np.array_equal(routed, alone)


def test_new_rows_can_stay_as_they_are(X):
    estimator = Microaggregator(k=4, new_rows="unchanged").fit(X)
    assert np.array_equal(estimator.transform(X + 1), X + 1)
    assert class_sizes(estimator.transform(X)).min() >= 4
    frame = mixed()
    assert (
        Microaggregator(k=4, new_rows="unchanged").fit(frame).transform(frame[:9]).equals(frame[:9])
    )


def test_models_are_judged_on_rows_that_were_not_fitted():
    X, y = load_diabetes(return_X_y=True)
    step = Microaggregator(k=3, method="mdav", new_rows="unchanged")
    pipeline = make_pipeline(step, Ridge(0.1))
    scores = cross_val_score(pipeline, X, y, error_score="raise")
    assert np.isfinite(scores).all()
    assert scores.mean() > 0.3
    search = GridSearchCV(pipeline, {"microaggregator__k": [3, 30]}, error_score="raise").fit(X, y)
    assert search.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_is_a_random_state(X, make):
    settings = {"k": 4, "method": "rep-ord-mic"}
    first = Microaggregator(**settings, random_state=make(3)).fit(X).labels_
    again = Microaggregator(**settings, random_state=make(3)).fit(X).labels_
    assert np.array_equal(first, again)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"new_rows": "ignore"}, "new_rows"), ({"missing": "drop"}, "missing")],
)
def test_bad_words_are_refused(X, settings, message):
    with pytest.raises(InputError, match=message):
        Microaggregator(**settings).fit(X)


def test_without_scikit_learn_the_error_says_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "microagg.estimator")
    with pytest.raises(ImportError, match=r'pip install "microagg\[sklearn\]"'):
        _ = microagg.Microaggregator
