"""The semidefinite bound: prices that no group undercuts in rational numbers, whatever the multipliers."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import microagg
from microagg.base.progress import STOP, new_state
from microagg.bounds import semidefinite
from microagg.bounds.neighbour_bound import neighbour_bound
from microagg.bounds.rows import _nearest_row
from microagg.bounds.semidefinite import Size, Solver, proved_by, semidefinite_prices
from microagg.compile import threads
from microagg.compile.jit import kernel
from microagg.encode.scale import fit_scale
from microagg.kernels.block_tree import nearest_rows

SMALL = Size(block=6, rounds=25, worth=-1.0)


def tables(count, seed=0):
    rng = np.random.default_rng(seed)
    for case in range(count):
        k = int(rng.integers(2, 4))
        n, d = int(rng.integers(2 * k, 11)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, d)) if case % 2 else rng.integers(0, 3, size=(n, d)).astype(float)
        X[rng.integers(n)] *= 10.0 ** rng.integers(0, 4)
        yield np.ascontiguousarray(X), k


def worst_group(X, k, prices):
    """What the group that is cheapest beside its price costs beyond it, in rational numbers."""
    rows = [[Fraction(float(v)) for v in row] for row in X]
    least = math.inf
    for size in range(k, 2 * k):
        for group in itertools.combinations(range(len(X)), size):
            cost = Fraction(0)
            for i, j in itertools.combinations(group, 2):
                cost += sum((a - b) ** 2 for a, b in zip(rows[i], rows[j], strict=True)) / size
            least = min(least, cost - sum(Fraction(float(prices[i])) for i in group))
    return least


def prices_of(X, k, size=SMALL, state=None):
    return semidefinite_prices(X, k, size, math.inf, new_state() if state is None else state)


def solver_of(X, k, size=SMALL):
    state = new_state()
    near, cost = nearest_rows(X, min(size.block, len(X) - 1), state)
    cost /= 2
    return Solver(X, np.arange(len(X)), near, cost, k, size, state)


def test_no_group_costs_less_than_its_records_pay():
    gains = []
    for X, k in tables(40):
        prices = prices_of(X, k)
        assert worst_group(X, k, prices) >= 0
        assert proved_by(prices) >= neighbour_bound(X, k) * (1 - 1e-9)
        gains.append(proved_by(prices) > 1.01 * neighbour_bound(X, k))
    assert sum(gains) > 10


def test_any_multipliers_prove_something():
    rng = np.random.default_rng(1)
    for X, k in tables(30, seed=1):
        solver = solver_of(X, k)
        shape = solver.blocks.dual.shape
        size = rng.choice([0.01, 0.1, 1.0]) * solver.mean
        solver.blocks.dual[:] = size * rng.normal(size=shape)
        solver.best = np.full(len(X), -np.inf)
        solver._prove()
        assert np.isfinite(solver.best).all()
        assert worst_group(X, k, solver.best) >= 0


def test_a_matrix_that_is_not_semidefinite_would_be_found_out():
    # The same as a proof does, but with W of the wrong sign: prices are then too high.
    found = 0
    for X, k in tables(30, seed=2):
        solver = solver_of(X, k)
        added = np.full(solver.blocks.dual.shape, 0.1 * solver.mean)
        prices = solver._least(added, np.zeros(solver.blocks.members.shape))
        found += worst_group(X, k, prices) < 0
    assert found > 20


def test_regions_prove_too(monkeypatch):
    monkeypatch.setattr(semidefinite, "_REGION", 0)
    for X, k in tables(20, seed=3):
        prices = prices_of(X, k, Size(3, 25, -1.0))
        assert worst_group(X, k, prices) >= 0
        assert proved_by(prices) >= neighbour_bound(X, k) * (1 - 1e-9)


def test_blocks_of_cheap_records_are_left_and_still_prove(monkeypatch):
    monkeypatch.setattr(semidefinite, "_DEAR_AFTER", 5)
    left = 0
    for X, k in tables(30, seed=8):
        solver = solver_of(X, k, Size(4, 25, -1.0, stars=True))
        prices = solver.run(math.inf)
        assert worst_group(X, k, prices) >= 0
        left += not solver.moving.all()
    assert left > 5


def test_the_number_of_threads_does_not_matter(monkeypatch):
    X = np.random.default_rng(4).normal(size=(300, 3))
    found = []
    for count in (1, 2, 3):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        found.append(prices_of(X, 4, Size(40, 45, -1.0, stars=True, islands=True)))
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()


def test_far_scales_and_copies():
    X = np.random.default_rng(5).normal(size=(60, 2))
    expected = proved_by(prices_of(X, 5, Size(30, 20, -1.0)))
    for power in (-300, 300):
        tiny = proved_by(prices_of(X * 2.0**power, 5, Size(30, 20, -1.0)))
        assert tiny == pytest.approx(expected * 2.0 ** (2 * power), rel=1e-12)
    assert proved_by(prices_of(np.zeros((30, 2)), 5)) == 0
    twice = np.repeat(X, 5, axis=0)
    assert proved_by(prices_of(twice, 5)) == 0  # each record with its copies: nothing is lost


def test_a_stopped_search_proves_what_it_has():
    X = np.random.default_rng(6).normal(size=(50, 2))
    state = new_state()
    state[STOP] = 1
    assert (prices_of(X, 3, state=state) == 0).all()
    late = semidefinite_prices(X, 3, SMALL, 0.0, new_state())
    assert proved_by(late) >= neighbour_bound(X, 3) * (1 - 1e-9)
    assert microagg.lower_bound(X, 8, effort="best", time_limit=0) >= microagg.lower_bound(X, 8) * (
        1 - 1e-9
    )


@kernel
def nearest_row(target, weight, own, k):  # type: ignore[no-untyped-def]
    n = target.size
    scratch = np.empty(n), np.empty(n)
    _nearest_row(target, weight, n, own, k, 0.0, np.empty(n, np.intp), scratch[0], scratch[1])


def test_rows_are_the_nearest_mixtures():
    rng = np.random.default_rng(7)
    for _ in range(200):
        k = int(rng.integers(2, 4))
        n = int(rng.integers(2 * k, 8))
        target = rng.normal(1 / n, rng.choice([0.05, 0.5, 5.0]), size=n)
        weight, own = rng.uniform(0.1, 10, size=n), int(rng.integers(n))
        row = target.copy()
        nearest_row(row, weight, own, k)
        assert row.sum() == pytest.approx(1, abs=2e-5)
        # Nearest in a convex set: no corner lies in the direction of the target.
        others = [i for i in range(n) if i != own]
        for size in range(k, 2 * k):
            for members in itertools.combinations(others, size - 1):
                corner = np.zeros(n)
                corner[[own, *members]] = 1 / size
                toward = (weight * (target - row)) @ (corner - row)
                assert toward <= 1e-3 * np.abs(weight * (target - row)).sum()


def test_it_closes_most_of_the_gap_for_large_k(reference):
    X = reference("tarragona")
    X = fit_scale(X).apply(X)
    # The neighbour bound proves 19.22; the best partition known loses 30.11.
    bound = proved_by(prices_of(X, 10, Size(100, 40, 0.0)))
    assert 27 < 100 * bound / (X**2).sum() < 30.11


def test_eigenvalues_that_lie_close_together():
    """A heavy tail: at first nearly all of them are 1, and the faster way to find some of them gives up."""
    X = np.exp(8 * np.random.default_rng(0).normal(size=(320, 2)))
    bound = microagg.lower_bound(X, 6, effort="balanced")
    assert 0 < bound <= microagg.partition(X, 6, effort="fast").sse


def test_eigenvalues_that_are_not_found_end_the_proof(monkeypatch):
    """What was proved before stays: here the bound by neighbours."""

    def gives_up(matrices):
        raise np.linalg.LinAlgError

    X = np.random.default_rng(0).normal(size=(60, 2))
    monkeypatch.setattr(semidefinite, "_positive_parts", gives_up)
    assert microagg.lower_bound(X, 6, effort="balanced", scale="none") >= neighbour_bound(X, 6)


def test_squares_smaller_than_all_doubles():
    X = np.array(
        [
            [-6.420632654231754e-161, -7.311651633663745e-161],
            [8.846755938695921e-161, -8.480016023498815e-161],
        ]
    )
    exact = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in X.T.tolist()) / 2
    assert Fraction(microagg.lower_bound(X, 2, effort="balanced", scale="none")) <= exact
