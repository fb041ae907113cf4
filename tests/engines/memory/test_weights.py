"""Weights: what every method of the registry that takes them promises, and that others refuse them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microagg
import naive_weighted
import oracles
from algorithms.test_methods import fitting
from microagg import InputError
from microagg.compile import threads
from strategies import tables, whole_numbers

ALL = [method for method in microagg.methods() if method.for_numbers]
WEIGHTED = [method.name for method in ALL if method.weighted]
every_weighted = pytest.mark.parametrize("method", WEIGHTED)


def some_weights(seed, n):
    """Weights of n records: continuous or whole, even or far apart."""
    rng = np.random.default_rng(seed)
    kind = seed % 4
    if kind == 0:
        return rng.uniform(0.5, 2, size=n)
    if kind == 1:
        return rng.integers(1, 5, size=n).astype(float)
    return rng.lognormal(sigma=kind, size=n) * 1e3


def test_the_methods_that_weigh():
    univariate = {method.name for method in ALL if method.family == "univariate"}
    assert set(WEIGHTED) == {"auto", "mdav"} | univariate
    for method in ALL:
        assert method.as_dict()["weighted"] is method.weighted
        assert method.guarantee_for(1, weighted=True) == "heuristic"


@every_weighted
@settings(max_examples=25)
@given(table=tables(max_rows=30), seed=st.integers(0, 2**32 - 1))
def test_partition_is_valid_and_its_loss_is_true(method, table, seed):
    X, k = fitting(table[0], method), table[1]
    weights = some_weights(seed, len(X))
    before = X.copy(), weights.copy()
    p = microagg.partition(X, k, weights, method=method)
    oracles.check_partition(p, X, k)
    assert np.array_equal(X, before[0])
    assert np.array_equal(weights, before[1])
    Z, mean_one = naive_weighted.zscored(X, weights), naive_weighted.of_mean_one(weights)
    assert p.sse == pytest.approx(
        float(naive_weighted.sse(Z, mean_one, p.labels.tolist())), rel=1e-9, abs=1e-9
    )
    assert p.sst == pytest.approx((len(X) - 1) * np.count_nonzero(np.ptp(X, axis=0)))
    assert p.weighted == (np.ptp(weights) > 0)
    assert p.as_dict()["weighted"] == p.weighted


@pytest.mark.parametrize("method", [method.name for method in ALL])
def test_equal_weights_are_none(method):
    n = 20 if method == "optimal" else 40
    X = fitting(np.random.default_rng(3).normal(size=(n, 2)), method)
    few = {"n_projections": 2} if method == "random-projection" else {}
    few = {"starts": 2} if method == "rep-ord-mic" else few
    plain = microagg.partition(X, 3, method=method, **few)
    for weight in (1.0, 0.1, 1e300):
        equal = microagg.partition(X, 3, np.full(n, weight), method=method, **few)
        assert equal.labels.tolist() == plain.labels.tolist(), weight
        assert equal.sse == plain.sse, weight
        assert not equal.weighted


@pytest.mark.parametrize("method", [method.name for method in ALL if not method.weighted])
def test_other_methods_refuse(method):
    with pytest.raises(InputError, match=f"method '{method}' cannot weigh records") as caught:
        microagg.partition(np.ones((9, 2)), 3, np.arange(1, 10), method=method)
    for name in WEIGHTED:
        assert f"'{name}'" in str(caught.value)
    assert "group without weights" in str(caught.value)


@every_weighted
def test_the_unit_of_weights_does_not_matter(method):
    rng = np.random.default_rng(5)
    tied = fitting(whole_numbers(rng, 60, 2, high=5), method)
    weights = rng.integers(1, 4, size=60).astype(float)
    plain = microagg.partition(tied, 3, weights, method=method)
    # A power of two is exact, so that not even a tie may turn.
    for unit in (0.125, 2.0**500, 2.0**-900):
        other = microagg.partition(tied, 3, weights * unit, method=method)
        assert other.labels.tolist() == plain.labels.tolist()
        assert other.sse == plain.sse
    X = fitting(rng.normal(size=(60, 2)), method)
    plain = microagg.partition(X, 3, weights, method=method)
    other = microagg.partition(X, 3, weights * 1234.5, method=method)
    assert other.labels.tolist() == plain.labels.tolist()


@every_weighted
@pytest.mark.parametrize("scale", ["zscore", "range", "robust", "none"])
def test_an_offset_changes_nothing(method, scale):
    rng = np.random.default_rng(3)
    X = fitting(whole_numbers(rng, 60, 3, high=8), method)
    weights = rng.lognormal(size=60)
    plain = microagg.partition(X, 3, weights, method=method, scale=scale)
    moved = microagg.partition(X + 1e9, 3, weights, method=method, scale=scale)
    assert moved.labels.tolist() == plain.labels.tolist()
    assert moved.sse == plain.sse


def test_a_heavy_record_is_one_record():
    # Three of weight 9 are three records, however heavy: k counts those.
    p = microagg.partition([0, 0.1, 5, 5.1, 9, 9.1], 3, [9, 9, 9, 1, 1, 1])
    assert p.sizes.tolist() == [3, 3]


def test_best_groups_need_not_be_runs():
    values, weights = [8, 10, 13, 34], [3, 3, 10, 10]
    runs = microagg.partition(values, 2, weights, method="simple")
    best = microagg.partition(values, 2, weights)
    assert runs.labels.tolist() == [0, 0, 1, 1]
    assert best.labels.tolist() == [0, 1, 0, 1]
    assert best.sse < runs.sse


@settings(max_examples=40)
@given(
    n=st.integers(4, 9),
    d=st.integers(1, 2),
    k=st.integers(2, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_auto_is_near_exhaustive_search(n, d, k, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 20, size=(n, d)).astype(float)
    weights = rng.integers(1, 9, size=n).astype(float)
    p = microagg.partition(X, k, weights, scale="none")
    least = float(naive_weighted.least_sse(X, naive_weighted.of_mean_one(weights), k))
    # So few records are searched through; the rounding of the mean weight is all that is left.
    assert p.sse == pytest.approx(least, rel=1e-9, abs=1e-9)


@settings(max_examples=20)
@given(table=tables(max_rows=40), seed=st.integers(0, 2**32 - 1))
def test_refine_is_never_worse(table, seed):
    X, k = table
    weights = some_weights(seed, len(X))
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.minimum(np.arange(len(X)) // k, len(X) // k - 1))
    given_sse = naive_weighted.sse(
        naive_weighted.zscored(X, weights), naive_weighted.of_mean_one(weights), labels.tolist()
    )
    p = microagg.refine(X, labels, k, weights, effort="fast")
    oracles.check_partition(p, X, k)
    assert p.sse <= float(given_sse) * (1 + 1e-9) + 1e-9
    assert p.weighted == (np.ptp(weights) > 0)


@pytest.mark.parametrize(
    ("n", "k", "effort"),
    [
        (400, 3, "fast"),
        (400, 3, "balanced"),
        pytest.param(90, 3, "best", marks=pytest.mark.long),
        (800, 40, "balanced"),
    ],
)
def test_the_weighted_search_is_better_than_one_without(n, k, effort):
    rng = np.random.default_rng(k)
    X, weights = rng.normal(size=(n, 2)), rng.lognormal(sigma=1.5, size=n)
    weighted = microagg.partition(X, k, weights, effort=effort)
    plain = microagg.partition(X, k, effort=effort)
    again = microagg.refine(X, plain.labels, k, weights, effort="fast", time_limit=0)
    assert again.labels.tolist() == plain.labels.tolist()
    assert weighted.sse < 0.95 * again.sse


@pytest.mark.parametrize("method", ["mdav", "simple"])
def test_what_a_method_found_can_be_refined(method):
    rng = np.random.default_rng(8)
    X, weights = rng.normal(size=(100, 1)), rng.lognormal(sigma=1, size=100)
    plain = microagg.partition(X, 3, weights, method=method)
    refined = microagg.partition(X, 3, weights, method=method, refine="fast")
    assert refined.sse < plain.sse
    assert refined.options["refine"] == "fast"


def test_more_columns_than_records():
    rng = np.random.default_rng(9)
    X, weights = rng.normal(size=(12, 30)), rng.lognormal(size=12)
    p = microagg.partition(X, 3, weights)
    Z = naive_weighted.zscored(X, weights)
    exact = naive_weighted.sse(Z, naive_weighted.of_mean_one(weights), p.labels.tolist())
    assert p.sse == pytest.approx(float(exact), rel=1e-9)


def test_weights_far_apart_come_to_an_end():
    # Sums over groups of such records lose most digits, and gains could go in circles.
    rng = np.random.default_rng(10)
    X = rng.normal(size=(200, 2))
    weights = 10.0 ** rng.choice([-4.4, 0.0, 4.4], size=200)
    p = microagg.partition(X, 3, weights)
    oracles.check_partition(p, X, 3)
    start = microagg.partition(X, 3, weights, method="mdav")
    assert p.sse < start.sse


@pytest.mark.parametrize("columns", [1, 3])
def test_result_does_not_depend_on_the_number_of_threads(columns, monkeypatch):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(6000, columns)), rng.lognormal(size=6000)
    answers = set()
    for count in (1, 5):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        p = microagg.partition(X, 4, weights, effort="fast")
        answers.add((p.labels.tobytes(), p.sse, p.sst))
    assert len(answers) == 1


def test_what_cannot_be_weighted_is_refused():
    X, weights = np.arange(9.0), np.arange(1.0, 10)
    with pytest.raises(InputError, match="bound='best' is for records of equal weight"):
        microagg.partition(X, 3, weights, bound="best")
    with pytest.raises(InputError, match="effort='balanced' is for records of equal weight"):
        microagg.lower_bound(X, 3, weights, effort="balanced")
    with pytest.raises(InputError, match="cost='sae' cannot be weighted"):
        microagg.partition(X, 3, weights, cost="sae")
    with pytest.raises(InputError, match=r"With weights the cost is sse, .*; got cost='max'"):
        microagg.partition(X, 3, weights, method="simple", cost="max")
    with pytest.raises(InputError, match="groups have no extra cost; got a group_cost"):
        microagg.partition(X, 3, weights, method="wilber", group_cost=2.0)
    with pytest.raises(InputError, match="cost='squares' is not known"):
        microagg.partition(X, 3, weights, method="wilber", cost="squares")


@settings(max_examples=40)
@given(
    n=st.integers(2, 9), d=st.integers(1, 2), k=st.integers(1, 4), seed=st.integers(0, 2**32 - 1)
)
def test_the_bound_is_below_every_partition(n, d, k, seed):
    rng = np.random.default_rng(seed)
    n = max(n, k)
    X = rng.choice(40, size=(n, d), replace=False).astype(float)  # no two records are equal
    weights = some_weights(seed, n)
    least = naive_weighted.least_sse(X, naive_weighted.of_mean_one(weights), k)
    bound = microagg.lower_bound(X, k, weights, scale="none")
    assert bound <= least * (1 + 1e-12)
    assert (bound > 0) == (k > 1)


def test_a_bound_comes_with_a_partition():
    rng = np.random.default_rng(12)
    X, weights = rng.normal(size=(200, 2)), rng.uniform(1, 2, size=200)
    p = microagg.partition(X, 3, weights, bound=True, effort="fast")
    assert p.lower_bound == microagg.lower_bound(X, 3, weights)
    assert 0 < p.lower_bound < p.sse
    # Weights that hardly differ give hardly another bound.
    near = microagg.lower_bound(X, 3, 1 + 1e-9 * weights)
    assert near == pytest.approx(microagg.lower_bound(X, 3), rel=1e-7)


def test_a_search_can_be_stopped():
    rng = np.random.default_rng(11)
    X, weights = rng.normal(size=(3000, 3)), rng.lognormal(size=3000)
    p = microagg.partition(X, 3, weights, time_limit=0.0)
    oracles.check_partition(p, X, 3)
