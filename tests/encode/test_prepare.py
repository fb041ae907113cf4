"""The prologue of every public function that groups records, and that all of them have it."""

import numpy as np
import pytest

import microagg
from microagg import InputError
from microagg.encode.prepare import prepare
from microagg.plan.settings import SCALES

X = np.random.default_rng(0).normal(size=(30, 2))
ROWS, GROUPS = np.arange(30), np.arange(30) // 5

# Each public function of X, k and scale.
CALLS = {
    "partition": lambda X, k, scale: microagg.partition(X, k, method="mdav", scale=scale).labels,
    "refine": lambda X, k, scale: microagg.refine(X, GROUPS, k, scale=scale, effort="fast").labels,
    "lower_bound": lambda X, k, scale: microagg.lower_bound(X, k, scale=scale),
    "cut": lambda X, k, scale: microagg.cut(X, ROWS, k, scale=scale).labels,
    "order": lambda X, k, scale: microagg.order(X, "mdav-mhm", k=k, scale=scale),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_all_begin_with_the_same_checks(call):
    with pytest.raises(InputError, match=r"scale is one of .*; got 'z'"):
        call(X, 3, "z")
    with pytest.raises(InputError, match="k=31 needs at least 31 records; the table has 30"):
        call(X, 31, "zscore")
    with pytest.raises(InputError, match=r"k, the least .*, must be a whole number"):
        call(X, 3.0, "zscore")
    with pytest.raises(InputError, match="no missing values"):
        call(np.where(X[4, 1] == X, np.nan, X), 3, "zscore")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_k_of_any_integer_type(call):
    assert np.array_equal(call(X, np.int64(3), "zscore"), call(X, 3, "zscore"))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("factors", [(1e185, 1e185), (1e185, 1.0), (-1e307, 1e-300)])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_huge_values_give_the_same_result_or_are_refused(call, factors, scale):
    huge = X * factors  # warnings are errors here: no overflow goes unseen
    if scale == "none":
        with pytest.raises(InputError, match="scale='none' needs columns with a range of at most"):
            call(huge, 3, scale)
    else:
        assert call(huge, 3, scale) == pytest.approx(call(X * np.sign(factors), 3, scale))


@pytest.mark.parametrize("scale", SCALES)
def test_one_huge_value_among_ordinary_ones(scale):
    data = X.copy()
    data[7, 0] = 1e185
    for call in (
        *CALLS.values(),
        lambda X, _, scale: microagg.minimum_spanning_tree(X, scale).length,
    ):
        if scale == "none":
            with pytest.raises(InputError, match="range of at most"):
                call(data, 3, scale)
        else:
            assert np.isfinite(call(data, 3, scale)).all()


@pytest.mark.parametrize("cost", ["sse", "sae", "max", "round-up", "round-down"])
def test_one_column_of_huge_values(cost):
    small, huge = X[:, 0], X[:, 0] * 2.0**614  # about 1e185, exactly
    whole = microagg.partition(huge, 3, cost=cost)
    assert np.array_equal(whole.labels, microagg.partition(small, 3, cost=cost).labels)
    ends = microagg.cut_sorted(np.sort(huge), np.int64(3), cost=cost)
    assert np.array_equal(ends, microagg.cut_sorted(np.sort(small), 3, cost=cost))


def test_scaled_only_when_asked_for():
    records = prepare(X * 1e185, 3, "none")
    assert (len(records), records.k) == (30, 3)
    with pytest.raises(InputError, match="range of at most"):
        _ = records.scaled


def test_the_given_array_is_used_and_not_changed():
    given = np.ascontiguousarray(X)
    before = given.copy()
    records = prepare(given, 3, "zscore")
    assert records.values is given
    assert records.scaled is not given
    assert records.scaled is records.scaled
    assert records.sst == pytest.approx(np.square(records.scaled).sum())
    assert np.array_equal(given, before)
