"""Variants of the univariate problem against a rational dynamic program over all groups."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from microagg import InputError
from microagg.methods.univariate import variants

SSE, SAE, MAX, ROUND_UP, ROUND_DOWN = COSTS = range(5)


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


@pytest.mark.parametrize("group_cost", [0.0, 0.25, 5.0, 1e6])
def test_cost_per_group(group_cost):
    for x, k, cost in cases():

        def cost_of(i, j, x=x, k=k, cost=cost):
            return exact_cost(x[i:j], cost) + Fraction(group_cost) if j - i >= k else None

        ends = variants.cut_with_group_cost(x, k, cost, group_cost).tolist()
        assert total(ends, cost_of) == least_cost(len(x), cost_of)


def test_at_most_so_many_groups():
    for x, k, cost in cases():

        def cost_of(i, j, x=x, k=k, cost=cost):
            return exact_cost(x[i:j], cost) if j - i >= k else None

        for most in (1, 2, len(x) // k, len(x)):
            ends = variants.cut_into_at_most(x, k, cost, most).tolist()
            assert len(ends) <= most
            assert total(ends, cost_of) == least_cost(len(x), cost_of, most)


@pytest.mark.parametrize("penalty", [0.0, 0.5, 100.0])
def test_soft_minimum(penalty):
    for x, k, cost in cases():

        def cost_of(i, j, x=x, k=k, cost=cost):
            return exact_cost(x[i:j], cost) + Fraction(penalty) * max(0, k - (j - i))

        ends = variants.cut_with_soft_minimum(x, k, cost, penalty).tolist()
        assert total(ends, cost_of) == least_cost(len(x), cost_of)


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
