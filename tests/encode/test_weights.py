"""The check of weights, and scales that heed them."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_weighted
from microagg import InputError
from microagg.encode.prepare import as_weights, prepare
from microagg.encode.scale import fit_scale, total_squares
from microagg.plan.settings import SCALES

X = np.random.default_rng(0).lognormal(size=(50, 3))
WEIGHTS = np.random.default_rng(1).lognormal(size=50)
MEAN_ONE = WEIGHTS / WEIGHTS.mean()


@pytest.mark.parametrize("factor", [1.0, 1e-300, 1e300])
def test_weights_get_a_mean_of_1(factor):
    found = as_weights(WEIGHTS * factor, 50)
    assert found.mean() == pytest.approx(1)
    assert found / found[0] == pytest.approx(WEIGHTS / WEIGHTS[0])


@pytest.mark.parametrize(
    "given_as",
    [
        lambda w: w.tolist(),
        lambda w: tuple(w.tolist()),
        pd.Series,
        lambda w: pd.DataFrame({"w": w}),
        lambda w: np.repeat(w, 2)[::2],
        lambda w: [Fraction(float(v)) for v in w],
        lambda w: w.astype(object),
    ],
    ids=["list", "tuple", "series", "frame", "strided", "fractions", "objects"],
)
def test_weights_of_any_type(given_as):
    assert as_weights(given_as(WEIGHTS), 50).tolist() == as_weights(WEIGHTS, 50).tolist()
    assert as_weights(np.arange(1, 5, dtype=np.int8), 4).tolist() == [0.4, 0.8, 1.2, 1.6]


def test_equal_weights_are_dropped():
    assert as_weights(None, 3) is None
    assert as_weights([0.1, 0.1, 0.1], 3) is None
    assert as_weights([5], 1) is None


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (0.0, "the weight is not above 0"),
        (-1.0, "the weight is not above 0"),
        (-np.inf, "the weight is not above 0"),
        (np.nan, "the weight is missing"),
        (None, "the weight is missing"),
        (np.inf, "the weight is infinite"),
        ("2", "a value of type str"),
        (True, "a value of type bool"),
        (1j, "a value of type complex"),
    ],
)
def test_a_wrong_weight_is_named_by_its_row(value, fact):
    weights = [1.0, 2.0, value, 4.0, value]
    with pytest.raises(InputError, match=r"row 3 \(the first record is row 1\)") as caught:
        as_weights(np.array(weights, dtype=object), 5)
    assert fact in str(caught.value)


def test_masked_weights_are_missing():
    with pytest.raises(InputError, match=r"row 2 .* the weight is missing"):
        as_weights(np.ma.masked_equal([1.0, 7.0, 2.0], 7.0), 3)


@pytest.mark.parametrize("weights", [[1, 2], [[1], [2], [3]], 5.0, [1, 2, 3, 4]])
def test_weights_of_another_shape(weights):
    with pytest.raises(InputError, match="Weights must be 3 numbers, one for each record"):
        as_weights(weights, 3)


def test_weights_too_far_apart():
    assert as_weights([1, 1e9], 2) is not None
    with pytest.raises(InputError, match=r"1e\+09 times the least at most.*in row 2"):
        as_weights([3e9, 1, 5], 3)


def test_zscore_is_weighted():
    Z = fit_scale(X, "zscore", MEAN_ONE).apply(X)
    assert (MEAN_ONE @ Z).tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    assert (MEAN_ONE @ Z**2).tolist() == pytest.approx([49, 49, 49])
    assert pytest.approx(np.array(naive_weighted.zscored(X, WEIGHTS))) == Z


@given(seed=st.integers(0, 2**32 - 1))
def test_robust_takes_weighted_quartiles(seed):
    rng = np.random.default_rng(seed)
    values, counts = rng.permutation(30) * 1.0, rng.integers(1, 5, size=30)
    repeated = np.sort(np.repeat(values, counts))
    # The least value that a quarter of all do not exceed.
    first, third = (repeated[-(-share * len(repeated) // 4) - 1] for share in (1, 3))
    Z = fit_scale(values[:, None], "robust", counts / counts.mean()).apply(values[:, None])
    if third > first:
        assert np.ptp(Z) == pytest.approx(29 / ((third - first) / 1.3489795), rel=1e-6)


@pytest.mark.parametrize("how", SCALES)
def test_total_squares(how):
    Z = fit_scale(X, how, MEAN_ONE).apply(X)
    exact = float(naive_weighted.sse(Z, MEAN_ONE, [0] * 50))
    assert total_squares(X, how, MEAN_ONE) == pytest.approx(exact)
    assert prepare(X, 3, how, WEIGHTS).sst == pytest.approx(exact)


def test_constant_columns_have_no_squares():
    data = np.column_stack([X[:, 0], np.full(50, 0.1)])
    assert total_squares(data, "zscore", MEAN_ONE) == 49
    late = np.zeros((200_000, 2))
    late[-1, 1] = 1.0  # differs from all before it
    assert total_squares(late) == 199_999


def test_prepared_records_have_their_weights():
    records = prepare(X, 3, "zscore", WEIGHTS)
    assert records.weights == pytest.approx(MEAN_ONE)
    assert prepare(X, 3, "zscore", np.full(50, 3.5)).weights is None
