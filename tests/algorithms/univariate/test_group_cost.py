"""A cost beside that of the values: per group."""

from fractions import Fraction

import numpy as np
import pytest

import microagg
from algorithms.univariate.test_exact import DATA
from microagg import InputError
from microagg.algorithms.univariate import windows
from microagg.algorithms.univariate.windows import SortedLine
from rational import COSTS, Groups, best_ends

METHODS = ("wilber", "galil-park")
REFUSING = ("simple", "simple-plus", "staggered", "hansen-mukherjee")


def prices(x, cost):
    """Costs per group that make groups a little, much and very much larger; some that tie."""
    group = Groups(x, len(x), cost)
    whole = float(min(Fraction(group(0, len(x)), group.unit), Fraction(1e308)))
    return [whole * part for part in (1e-6, 1e-3, 0.05, 0.5)] + [1.0, 5e-324]


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("data", DATA)
def test_the_optimum_with_the_larger_last_groups(data, cost):
    rng = np.random.default_rng(len(data) * 5 + len(cost))
    for k, n in [(1, 9), (2, 5), (3, 9), (3, 40), (17, 50)]:
        x = np.sort(DATA[data](rng, n))
        for price in prices(x, cost):
            best = best_ends(x, k, cost, price)
            for method in METHODS:
                ends = microagg.cut_sorted(x, k, method, cost, group_cost=price)
                assert ends.tolist() == best, (method, k, n, price)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("data", ["ties", "lognormal", "even spacing", "integers + 1e15"])
def test_many_windows_and_groups_that_grow(data, cost):
    rng = np.random.default_rng(5)
    x = np.sort(DATA[data](rng, 350))
    for k, part in [(1, 1e-7), (2, 1e-4), (30, 1e-2)]:
        price = prices(x, cost)[3] * part
        best = best_ends(x, k, cost, price)
        for method in METHODS:
            ends = microagg.cut_sorted(x, k, method, cost, group_cost=price)
            assert ends.tolist() == best, (method, k)


@pytest.mark.parametrize("method", METHODS)
def test_guesses_that_change_after_a_question(method):
    # Python is asked about starts that Wilber guesses; its answer, and costs it counted, end with the guess.
    parts = [
        (4, -1e308),
        (7, 0.0),
        *((1, t * 5e-324) for t in (1, 2, 4, 4, 6, 7, 8, 8)),
        (5, 1e308),
    ]
    x = np.concatenate([np.full(times, value) for times, value in parts])
    ends = microagg.cut_sorted(x, 1, method, "round-up", group_cost=5e-324)
    assert ends.tolist() == best_ends(x, 1, "round-up", 5e-324)
    for seed, cost in [(329, "round-up"), (399, "sae"), (420, "sae"), (438, "sae"), (492, "sae")]:
        rng = np.random.default_rng(seed)
        k, n = int(rng.integers(1, 4)), int(rng.integers(20, 120))
        is_tiny, tiny = rng.random(n) < 0.5, rng.integers(0, 9, n) * 5e-324
        x = np.sort(np.where(is_tiny, tiny, 1e308 * rng.integers(-1, 2, n)))
        ends = microagg.cut_sorted(x, k, method, cost, group_cost=7 * 5e-324)
        assert ends.tolist() == best_ends(x, k, cost, 7 * 5e-324), (seed, cost)


def test_windows_become_longer_and_costs_are_carried(monkeypatch):
    seen = []
    grow, carry = SortedLine.widen, windows._carry
    monkeypatch.setattr(SortedLine, "widen", lambda line: seen.append("wider") or grow(line))
    monkeypatch.setattr(windows, "_carry", lambda *a: seen.append("carry") or carry(*a))
    x = np.concatenate([np.arange(300.0), 300 + np.arange(900) / 64])
    for price in (3.0, 40.0):
        best = best_ends(x, 2, "sse", price)
        for method in METHODS:
            assert microagg.cut_sorted(x, 2, method, group_cost=price).tolist() == best
    assert set(seen) == {"wider", "carry"}


@pytest.mark.parametrize("method", METHODS)
def test_a_long_table(method):
    # A cost of 0 leaves the problem as it is; the other algorithms say what is right then.
    x = np.sort(np.random.default_rng(6).random(300_000)) + 1e6
    tiny = microagg.cut_sorted(x, 3, method, group_cost=1e-40)
    assert np.array_equal(tiny, microagg.cut_sorted(x, 3, "simple-plus"))
    large = microagg.cut_sorted(x, 3, method, group_cost=1e-4)
    # Groups of m values at a price p: the cost per value is least at about m³ = 6·p·n².
    assert np.diff(large, prepend=0).mean() == pytest.approx(
        (6e-4 * 300_000**2) ** (1 / 3), rel=0.05
    )
    assert np.array_equal(large, microagg.cut_sorted(x, 3, "auto", group_cost=1e-4))


@pytest.mark.parametrize("method", METHODS)
def test_through_partition(method):
    x = np.array([21, 1, 2, 2, 7, 8, 9, 20.0])
    p = microagg.partition(x, 2, method=method, group_cost=100, bound=True)
    assert p.labels.tolist() == [0, 1, 1, 1, 1, 1, 1, 0]
    assert p.options == {"cost": "sse", "group_cost": 100}
    assert p.lower_bound < p.sse
    plain = microagg.partition(x, 2, method=method)
    assert plain.labels.tolist() == [0, 1, 1, 1, 2, 2, 2, 0]
    with pytest.raises(InputError, match="group_cost must be a finite number of at least 0"):
        microagg.partition(x, 2, method=method, group_cost=-1)


def test_in_sorted_values():
    x = [1.0, 2.0, 2.0, 7.0, 8.0, 9.0, 20.0, 21.0]
    for scale in (1.0, 1e306):  # the second would overflow when squared
        values = np.array(x) * scale
        assert microagg.cut_sorted(values, 2, group_cost=0.0).tolist() == [3, 6, 8]
    assert microagg.cut_sorted(x, 2, group_cost=1e9).tolist() == [8]
    for wrong in (-1, "1", float("nan")):
        with pytest.raises(InputError, match="group_cost must be a finite number of at least 0"):
            microagg.cut_sorted(x, 2, group_cost=wrong)


@pytest.mark.parametrize("method", REFUSING)
def test_the_others_refuse_and_say_why(method):
    with pytest.raises(InputError, match=f"{method}' has no option 'group_cost': it tries only"):
        microagg.partition([1, 2, 3, 4], 2, method=method, group_cost=1.0)
    with pytest.raises(InputError, match=f"'{method}' tries only groups of k to 2k−1"):
        microagg.cut_sorted([1, 2, 3, 4], 2, method, group_cost=1.0)
