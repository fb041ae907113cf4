"""Every univariate algorithm × every cost gives the optimum for the doubles given."""

import numpy as np
import pytest

from microagg.algorithms.univariate import exact
from microagg.algorithms.univariate.sorted_cut import cut_sorted
from microagg.algorithms.univariate.stamm_schaub import ALGORITHMS
from naive import least_of_runs
from rational import COSTS, Groups, best_ends

EACH = ("auto", *ALGORITHMS)
FAST = ("simple-plus", "halving", "staggered", "wilber", "galil-park")
FEW = ("simple-plus", "staggered")
FAR = [10**12, -(10**12)]


def _outliers(rng, n, at):
    x = rng.integers(0, 9, n).astype(float)
    x[: min(5, n)] = at + rng.integers(0, 9, min(5, n))
    return x


DATA = {
    "ties": lambda rng, n: rng.integers(0, 20, n).astype(float),
    "few values": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "integers + 1e9": lambda rng, n: rng.integers(0, 200, n) + 1e9,
    "integers + 1e12": lambda rng, n: rng.integers(0, 200, n) + 1e12,
    "integers + 1e15": lambda rng, n: rng.integers(0, 50, n) + 1e15,
    "uniform + 1e3": lambda rng, n: rng.random(n) + 1e3,
    "uniform + 1e6": lambda rng, n: rng.random(n) + 1e6,
    "uniform + 1e9": lambda rng, n: rng.random(n) + 1e9,
    "unix seconds": lambda rng, n: 1.7e9 + rng.integers(0, 86400, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 3, n),
    "-lognormal": lambda rng, n: -rng.lognormal(0, 3, n),
    "all scales": lambda rng, n: rng.choice([-1, 1], n) * rng.lognormal(0, 40, n),
    "a few at 1e12": lambda rng, n: _outliers(rng, n, 1e12),
    "a few at -1e12": lambda rng, n: _outliers(rng, n, -1e12),
    "a few at -1e15": lambda rng, n: _outliers(rng, n, -1e15),
    "two clusters": lambda rng, n: np.where(rng.random(n) < 0.5, 0, 1e12) + rng.random(n),
    "constant": lambda rng, n: np.full(n, 0.1),
    "even spacing": lambda rng, n: np.arange(n) * 1.0,
    "pairs": lambda rng, n: np.arange(n) // 2 * 0.1,
    "denormals": lambda rng, n: rng.integers(0, 30, n) * 5e-324,
    "huge": lambda rng, n: rng.uniform(-1, 1, n) * 1.7e308,
    "huge ties": lambda rng, n: rng.integers(-3, 4, n) * 4e307,
    "zeros of both signs": lambda rng, n: rng.choice([-0.0, 0.0, 1.0], n),
    "huge and denormal": lambda rng, n: np.where(
        rng.random(n) < 0.5, rng.integers(0, 9, n) * 5e-324, 1e308 * rng.integers(-1, 2, n)
    ),
}


def sizes_of(ends):
    return np.diff([0, *ends])


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("data", DATA)
def test_all_algorithms_give_the_optimum_with_the_larger_last_groups(data, cost):
    rng = np.random.default_rng(len(data) * 7 + len(cost))
    for k, n in [(1, 9), (2, 4), (2, 5), (2, 60), (3, 8), (3, 9), (3, 150), (5, 40), (17, 90)]:
        x = np.sort(DATA[data](rng, n))
        best = best_ends(x, k, cost)
        for method in EACH:
            ends = cut_sorted(x, k, method=method, cost=cost)
            assert ends.dtype == np.int64
            assert ends.tolist() == best, (method, k, n)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("data", DATA)
def test_equal_to_exhaustive_search(data, cost):
    rng = np.random.default_rng(3)
    for k, n in [(1, 6), (2, 11), (3, 14), (4, 13)]:
        x = np.sort(DATA[data](rng, n))
        group = Groups(x, n, cost)
        least, _ = least_of_runs(n, k, group)
        for method in EACH:
            ends = cut_sorted(x, k, method=method, cost=cost)
            assert group.of(ends) == least, (method, k, n)
            assert sizes_of(ends).min() >= k


@pytest.mark.parametrize("method", EACH)
def test_one_group_while_k_is_more_than_half(method):
    x = np.sort(np.random.default_rng(0).random(20))
    for k in range(11, 21):
        assert cut_sorted(x, k, method=method).tolist() == [20]


@pytest.mark.parametrize(
    "data", ["ties", "lognormal", "even spacing", "integers + 1e15", "-lognormal"]
)
@pytest.mark.parametrize("cost", COSTS)
def test_many_windows(data, cost):
    rng = np.random.default_rng(5)
    for k, n in [(1, 500), (2, 1500), (70, 3000)]:
        x = np.sort(DATA[data](rng, n))
        best = best_ends(x, k, cost)
        for method in FAST:
            assert cut_sorted(x, k, method=method, cost=cost).tolist() == best, (method, k)


LONG = {
    # Partitions of a run of equal values never meet: their costs are carried along.
    "few values": (lambda rng: rng.integers(0, 10, 15_000), (2, 3, 10), FAST),
    "carried costs": (lambda rng: np.append(rng.integers(0, 4000, 15_000), FAR), (64,), FAST),
    "larger groups": (lambda rng: np.append(rng.integers(0, 4000, 15_000), FAR), (100,), FAST),
    "far from zero": (lambda rng: rng.integers(0, 10**5, 10**5) + 1e9, (2,), FEW),
    "longer": (lambda rng: rng.integers(0, 10**6, 10**6) + 1e9, (2,), FEW),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.long] * (name in ("larger groups", "longer")))
        for name in LONG
    ],
)
def test_long_tables(name):
    made, sizes, methods = LONG[name]
    x = np.sort(made(np.random.default_rng(6)).astype(float))
    for k in sizes:
        best = best_ends(x, k, "sse")
        for method in methods:
            assert np.array_equal(cut_sorted(x, k, method=method), best), (method, k)


def _watch_questions(monkeypatch):
    asked = []
    answer = exact.RationalCosts.prefers

    def watched(*question):
        asked.append(question)
        return answer(*question)

    monkeypatch.setattr(exact.RationalCosts, "prefers", watched)
    return asked


def test_what_doubled_precision_cannot_decide_is_asked_in_rational_numbers(monkeypatch):
    asked = _watch_questions(monkeypatch)
    rng = np.random.default_rng(10)
    x = np.sort(DATA["huge and denormal"](rng, 300))
    for method in EACH:
        assert cut_sorted(x, 3, method=method).tolist() == best_ends(x, 3, "sse")
    assert asked


def test_costs_in_rational_numbers_are_kept(monkeypatch):
    # Even spacing, with noise in the last bits: partitions never meet, and their costs nearly tie.
    groups, cost = [], exact._rational_cost
    monkeypatch.setattr(exact, "_rational_cost", lambda x, *a: groups.append(x) or cost(x, *a))
    asked, x = _watch_questions(monkeypatch), np.arange(3000) * 0.1
    assert cut_sorted(x, 3).tolist() == best_ends(x, 3, "sse")
    assert len(asked) > 50
    assert len(groups) < len(x) + 100 * len(asked)
