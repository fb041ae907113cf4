"""Each measure of loss against a hand-computed example, its naive twin and what must not change it."""

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import InputError
from microagg.measure.fidelity import correlations


def protected(X, k):
    return microagg.Microaggregator(k=k).fit_transform(X)


def _numbers(value):
    if isinstance(value, dict):
        return [number for inner in value.values() for number in _numbers(inner)]
    return [value]


def test_nothing_changes_with_units_offsets_and_the_order_of_rows_and_columns():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 1000, size=(120, 3)).astype(float)
    Y = np.round(protected(X, 5) * 1024) / 1024  # so that adding 2^30 is exact
    base = microagg.utility(X, Y).as_dict()
    rows = rng.permutation(120)
    twin = microagg.utility((X * 4 + 2.0**30)[rows], (Y * 4 + 2.0**30)[rows]).as_dict()
    for name in base.keys() - {"analyses"}:
        assert _numbers(twin[name]) == pytest.approx(_numbers(base[name]), rel=1e-9, abs=1e-12)
    turned = microagg.utility(X[:, [2, 0, 1]], Y[:, [2, 0, 1]])
    assert turned.information_loss == pytest.approx(base["information_loss"])


@pytest.fixture
def survey():
    rng = np.random.default_rng(5)
    n = 200
    age = rng.integers(20, 80, n).astype(float)
    rent = rng.lognormal(6, 0.3, n)
    income = 1000 + 12 * age + 0.8 * rent + rng.normal(0, 100, n)
    region = rng.choice(["north", "south", "east"], n)
    return pd.DataFrame({"age": age, "rent": rent, "income": income, "region": region})


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
def test_regression_and_means_against_the_textbook(survey):
    numbers = ["age", "rent", "income"]
    safe = microagg.protect(survey, k=5, columns=numbers, confidential=["region"]).data
    u = microagg.utility(survey, safe, analyses=["income ~ age + rent", ["income", "by", "region"]])
    fit, means = u.analyses
    assert (fit.formula, means.formula) == ("income ~ age + rent", "income by region")
    X = np.column_stack([np.ones(200), survey["age"], survey["rent"]])
    y = survey["income"].to_numpy()
    inverse = np.linalg.inv(X.T @ X)
    beta = inverse @ X.T @ y
    error = np.sqrt(np.diag(inverse) * np.sum((y - X @ beta) ** 2) / 197)
    assert [e.original for e in fit.estimates] == pytest.approx(beta)
    t = 1.9720790  # 97.5 % quantile with 197 degrees of freedom
    for e, b, s in zip(fit.estimates, beta, error, strict=True):
        assert e.original_interval == pytest.approx((b - t * s, b + t * s), rel=1e-5)
    assert [e.name for e in fit.estimates] == ["(intercept)", "age", "rent"]
    north = survey.loc[survey["region"] == "north", "income"]
    e = next(e for e in means.estimates if e.name == "north")
    assert e.original == pytest.approx(north.mean())
    assert e.records == len(north)
    half = e.original_interval[1] - e.original
    assert half == pytest.approx(1.99 * north.sem(), rel=0.02)
    assert 0 < means.worst <= means.overlap <= 1


def test_an_untouched_table_has_full_overlap(survey):
    u = microagg.utility(survey, survey, analyses=["income ~ age", "age by region"])
    assert [analysis.overlap for analysis in u.analyses] == [1.0, 1.0]


def test_a_single_analysis_may_be_given_without_a_list(survey):
    assert len(microagg.utility(survey, survey, analyses="income ~ age").analyses) == 1


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("income", "An analysis is written"),
        (["income", "~"], "An analysis is written"),
        ("income ~ wealth", "'income ~ wealth' cannot be done: There is no column 'wealth'"),
        ("region ~ income", "'region ~ income' cannot be done: .* 'region', which holds text"),
        ("gini(region)", "'gini.region.' cannot be done: .* 'region', which holds text"),
        ("share(income)", "'income' has 200 different values; as categories .* at most 50"),
        ("income ~ rent + name", "'name' explains nothing: it needs two values that 10 records"),
        ("income ~ age + age", "cannot be done: .* must not determine each other"),
    ],
)
def test_analyses_that_cannot_be_done(survey, wanted, message):
    survey["name"] = np.repeat(["a", "b", "c", "d"], [185, 5, 5, 5])
    with pytest.raises(InputError, match=message):
        microagg.utility(survey, survey, analyses=[wanted])


def test_analyses_need_names():
    with pytest.raises(InputError, match="which arrays do not have"):
        microagg.utility([1.0, 2.0], [1.0, 2.0], analyses=["a ~ b"])


def test_correlations_of_more_columns_than_records():
    """One of the columns is constant."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 300))
    X[:, 7] = 1.0
    Y = X.reshape(10, 4, 300).mean(axis=1).repeat(4, axis=0)
    for values in (X, Y, X * 1e200, X + 1e6):
        with np.errstate(invalid="ignore", divide="ignore"):
            expected = np.corrcoef(values.T / np.abs(values).max())
        expected[7] = expected[:, 7] = 0.0
        found = correlations(values, np.ones(40))
        np.testing.assert_allclose(found, expected, atol=1e-9)
