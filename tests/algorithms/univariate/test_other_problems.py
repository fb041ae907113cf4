"""Variants of the univariate problem against a rational dynamic program over all groups."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import microagg
from microagg import DisclosureRiskWarning, InputError
from microagg.algorithms.univariate import other_problems as variants

SSE, SAE, MAX, ROUND_UP, ROUND_DOWN = COSTS = range(5)
NAMES = ("sse", "sae", "max", "round-up", "round-down")


def exact_cost(values, cost):
    group = [Fraction(float(v)) for v in values]
    if cost == SSE:
        mean = sum(group) / len(group)
        return sum((v - mean) ** 2 for v in group)
    if cost == SAE:
        return sum(abs(v - group[len(group) // 2]) for v in group)
    if cost == MAX:
        return (group[-1] - group[0]) / 2
    if cost == ROUND_UP:
        return sum(group[-1] - v for v in group)
    return sum(v - group[0] for v in group)


def least_cost(n, cost_of, most=None):
    """Cheapest partition of n values, of at most ``most`` groups; cost_of may refuse by None."""
    best, layer = None, [Fraction(0)] + [None] * n
    for _ in range(n if most is None else most):
        following = [None] * (n + 1)
        for j in range(1, n + 1):
            values = [
                layer[i] + cost_of(i, j)
                for i in range(j)
                if layer[i] is not None and cost_of(i, j) is not None
            ]
            following[j] = min(values, default=None)
        layer = following
        if layer[n] is not None and (best is None or layer[n] < best):
            best = layer[n]
    return best


def total(ends, cost_of):
    starts = [0, *ends[:-1]]
    return sum(cost_of(i, j) for i, j in zip(starts, ends, strict=True))


def cases():
    rng = np.random.default_rng(0)
    draws = [
        lambda n: rng.random(n),
        lambda n: rng.integers(0, 9, n).astype(float),
        lambda n: rng.lognormal(0, 2, n),
        lambda n: rng.integers(0, 50, n) + 1e9,
    ]
    for t in range(40):
        n = int(rng.integers(1, 20))
        yield np.sort(draws[t % 4](n)), int(rng.integers(1, min(n, 6) + 1)), COSTS[t % 5]


def test_at_most_so_many_groups():
    for x, k, cost in cases():

        def cost_of(i, j, x=x, k=k, cost=cost):
            return exact_cost(x[i:j], cost) if j - i >= k else None

        for most in (1, 2, len(x) // k, len(x)):
            ends = variants.cut_into_at_most(x, k, cost, most).tolist()
            assert len(ends) <= most
            assert total(ends, cost_of) == least_cost(len(x), cost_of, most)


def all_cuts(n, k, most):
    """Ends of all partitions of n sorted values into at most ``most`` groups of at least k."""
    if n == 0:
        yield []
    elif most > 0:
        for start in range(n - k + 1):
            yield from ([*ends, n] for ends in all_cuts(start, k, most - 1))


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("kind", ["ties", "scales", "nearly even", "even"])
def test_at_most_so_many_groups_is_exact(cost, kind):
    # Values of very different size leave sums in doubled precision no digits of the small ones;
    # nearly even ones have partitions whose costs differ by the last bit of a single value.
    rng = np.random.default_rng(cost)
    for n in (5, 8, 10, 12):
        x = {
            "ties": rng.integers(0, 4, n).astype(float),
            "scales": 10.0 ** rng.integers(-60, 60, n),
            "nearly even": np.arange(n) + rng.integers(0, 2, n) * 2.0**-49,
            "even": np.arange(n) + 1e9,
        }[kind]
        x.sort()
        pairs = itertools.combinations(range(n + 1), 2)
        price = {pair: exact_cost(x[slice(*pair)], cost) for pair in pairs}
        for k in (1, 2, 3):
            ways = {}
            for ends in all_cuts(n, k, n):
                ways[tuple(ends)] = sum(price[pair] for pair in itertools.pairwise([0, *ends]))
            for most in range(1, n // k + 2):
                least = min(way for ends, way in ways.items() if len(ends) <= most)
                found = tuple(variants.cut_into_at_most(x, k, cost, most).tolist())
                best = [ends for ends, way in ways.items() if way == least]
                assert found in best
                assert len(found) == min(map(len, best)) <= most, "no more groups than needed"


def test_costs_too_close_for_doubled_precision_are_compared_rationally(monkeypatch):
    asked = []
    rational = variants.rational_cost
    monkeypatch.setattr(variants, "rational_cost", lambda *a: asked.append(a) or rational(*a))
    x = np.sort(np.concatenate([np.arange(6) + 1.0, [2.0**200, 2.0**200 * (1 + 2.0**-52)]]))
    x[1] += 2.0**-52
    ends = variants.cut_into_at_most(x, 2, SSE, 3).tolist()
    assert total(ends, lambda i, j: exact_cost(x[i:j], SSE)) == least_cost(
        8, lambda i, j: exact_cost(x[i:j], SSE) if j - i >= 2 else None, 3
    )
    assert asked


@pytest.mark.parametrize("beneficial", [True, False])
def test_own_cost(beneficial):
    for x, k, _ in cases():

        def cost_of(i, j, x=x, k=k):
            return exact_cost(x[i:j], MAX) if j - i >= k else None

        ends = variants.cut_with_own_cost(x, k, lambda v: (v[-1] - v[0]) / 2, beneficial).tolist()
        assert float(total(ends, cost_of)) == pytest.approx(float(least_cost(len(x), cost_of)))


def test_own_cost_that_is_no_number():
    with pytest.raises(InputError, match="returned NaN for the sorted values 1 to 2"):
        variants.cut_with_own_cost(np.arange(4.0), 2, lambda _: float("nan"), True)


def test_too_many_layers_are_refused():
    x = np.arange(100_000.0)
    with pytest.raises(InputError, match=r"needs .* back pointers"):
        variants.cut_into_at_most(x, 2, SSE, 50_000)


X = [1.0, 2.0, 2.0, 7.0, 8.0, 9.0, 20.0, 21.0]


def test_variants_through_the_public_function():
    assert microagg.cut_sorted(X, 2, group_cost=0.0).tolist() == microagg.cut_sorted(X, 2).tolist()
    assert microagg.cut_sorted(X, 2, group_cost=1e9).tolist() == [8]
    assert len(microagg.cut_sorted(X, 2, max_groups=2)) == 2
    own = microagg.cut_sorted(X, 2, cost=lambda v: float(np.ptp(v)), splitting_is_beneficial=True)
    assert own.tolist() == microagg.cut_sorted(X, 2, cost="max").tolist()
    with pytest.warns(DisclosureRiskWarning, match="fewer than k"):
        assert microagg.cut_sorted(X, 3, size_penalty=0.0).tolist() == [1, 3, 4, 5, 6, 7, 8]


def test_variants_of_huge_values():
    huge = np.array(X) * 1e306
    assert microagg.cut_sorted(huge, 2, group_cost=0.0).tolist() == [3, 6, 8]
    assert microagg.cut_sorted(huge, 2, max_groups=2).tolist() == [6, 8]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group_cost": -1}, "group_cost must be a finite number of at least 0; got -1"),
        ({"size_penalty": float("nan")}, "size_penalty must be a finite number"),
        ({"max_groups": 0}, "max_groups must be a whole number of at least 1"),
        ({"group_cost": 1, "max_groups": 2}, "use one of them alone"),
        ({"group_cost": 1, "method": "simple"}, "'simple' tries only groups of k to 2k−1"),
        ({"size_penalty": 1, "method": "halving"}, "size_penalty needs method 'wilber'"),
        ({"group_cost": "1"}, "group_cost must be a finite number"),
        ({"max_groups": 2, "method": "wilber"}, "leave the method out"),
        ({"group_cost": 1, "cost": "huber"}, "cost='huber' is not known"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        microagg.cut_sorted(X, 2, **settings)
