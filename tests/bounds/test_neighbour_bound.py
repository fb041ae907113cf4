"""The neighbour bound: never above the optimum, and not trivial."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive
from microagg.bounds.neighbour_bound import neighbour_bound
from strategies import tables


def exact_bound(X, k):
    """The same bound in rational numbers, from the definition."""
    rows = [[Fraction(float(v)) for v in row] for row in X]
    total = Fraction(0)
    for i, row in enumerate(rows):
        squares = sorted(
            sum((a - b) ** 2 for a, b in zip(row, other, strict=True))
            for j, other in enumerate(rows)
            if j != i
        )
        total += sum(squares[: k - 1])
    return total / (2 * k)


@given(table=tables(max_rows=9, max_columns=3))
def test_is_at_most_the_optimum(table):
    X, k = table
    if len(X) > 9:
        return
    assert Fraction(microagg.lower_bound(X, k, scale="none")) <= Fraction(
        naive.least_sse(X.tolist(), k)
    ) + Fraction(1, 10**9)


@given(table=tables(max_rows=30))
def test_is_the_definition_and_safe_against_rounding(table):
    X, k = table
    bound, exact = neighbour_bound(X, k), exact_bound(X, k)
    assert Fraction(bound) <= exact
    assert bound == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(
    ("data", "k", "loss"),
    [("tarragona", 10, 19.2181), ("census", 10, 7.3363), ("eia", 4, 0.3344), ("eia", 10, 1.2737)],
)
def test_known_figures(data, k, loss, reference):
    X = reference(data)
    p = microagg.partition(X, k, method="mdav", bound="fast")
    assert 100 * p.lower_bound / p.sst == pytest.approx(loss, abs=6e-5)
    assert 0 < p.gap < 1


def test_exact_partitions_have_no_gap():
    p = microagg.partition(np.random.default_rng(0).normal(size=50), 3, bound=True)
    assert p.gap == 0


def test_without_asking_there_is_none():
    assert microagg.partition([[1.0, 2], [2, 3]], 1, method="mdav").lower_bound is None


def test_k_of_one_can_lose_nothing():
    assert microagg.lower_bound([[1.0, 2], [2, 3]], 1) == 0


def test_unknown_effort_is_refused():
    with pytest.raises(microagg.InputError, match="effort"):
        microagg.lower_bound([[1.0], [2.0]], 1, effort="heroic")


@given(table=tables(max_rows=30), seed=st.integers(0, 2**32 - 1))
def test_weighted_bound_equals_its_naive_twin(table, seed):
    X, k = table
    X = X - X[0]
    n = len(X)
    weights = np.random.default_rng(seed).lognormal(size=n)
    total = 0.0
    for i in range(n):
        near = sorted((naive.squared_distance(X[i], X[j]), j) for j in range(n) if j != i)[: k - 1]
        means = []
        for t in range(k):
            heavy = [weights[j] if s < t else weights.min() for s, (_, j) in enumerate(near)]
            above = sum(w * square for w, (square, _) in zip(heavy, near, strict=True))
            means.append(above / (weights[i] + sum(heavy)))
        total += weights[i] * min(means) / 2
    assert neighbour_bound(X, k, weights=weights) == pytest.approx(total, rel=1e-9, abs=1e-9)
