"""Bounds from prices: never above the optimum, whatever the prices; the published figures reached."""

from fractions import Fraction

import numpy as np
import pytest

import microagg
import naive
from bounds.test_semidefinite import tables
from microagg.bounds.column_generation import proved
from microagg.bounds.cuts import NO_CUTS, Cuts, Sets
from microagg.bounds.program import GroupProgram
from microagg.bounds.repeated_pricing import Pricer


def bound_of(X, k, duals, cuts=NO_CUTS):
    pricer = Pricer(X, k)
    return proved(pricer, duals, cuts, pricer.price(duals, cuts)[1])


def test_any_prices_prove_a_bound_below_the_optimum():
    rng = np.random.default_rng(0)
    for X, k in tables(60):
        optimum = naive.least_sse(X.tolist(), k)
        duals = rng.normal(optimum / len(X), optimum / len(X), size=len(X))
        triples = np.array([rng.choice(len(X), 3, replace=False) for _ in range(3)], dtype=np.int32)
        sets = np.array([rng.choice(len(X), len(X) - 1, replace=False)], dtype=np.int32)
        some = Sets(triples, np.full(3, 2)).extended(Sets(sets, np.array([k])))
        for cuts in (NO_CUTS, Cuts(some, rng.uniform(0, 0.2, size=4))):
            assert bound_of(X, k, duals, cuts) <= optimum + 1e-12 * (1 + optimum)


def exact_bound(X, k, duals):
    """The same bound in rational numbers, from all groups."""
    rows = [[Fraction(float(v)) for v in row] for row in X]
    order = sorted(range(len(X)), key=lambda i: -duals[i])
    floors = [Fraction(0)] * len(X)
    for group in naive.groups_below(X.tolist(), k, duals.tolist(), [], np.inf):
        members = [rows[i] for i in group]
        means = [sum(column) / len(group) for column in zip(*members, strict=True)]
        cost = sum((v - m) ** 2 for row in members for v, m in zip(row, means, strict=True))
        seed = min(group, key=order.index)
        floors[seed] = min(floors[seed], cost - sum(Fraction(float(duals[i])) for i in group))
    return sum(Fraction(float(v)) for v in duals) + sum(sorted(floors)[: len(X) // k])


def test_is_safe_in_exact_arithmetic():
    rng = np.random.default_rng(1)
    for X, k in tables(30, seed=1):
        duals = rng.uniform(0.0, 0.6, size=len(X))
        bound, exact = bound_of(X, k, duals), exact_bound(X, k, duals)
        assert Fraction(bound) <= exact
        assert bound == pytest.approx(float(exact), rel=1e-9, abs=1e-12)


def test_a_wrong_price_does_not_prove_too_much(monkeypatch):
    # One price far too high: pricing must see the groups that are then too cheap. With a pricing that
    # overlooks them the bound would exceed the optimum, so this test can fail.
    X = np.random.default_rng(3).normal(size=(9, 2))
    optimum = naive.least_sse(X.tolist(), 3)
    duals = np.full(9, optimum / 9)
    duals[4] += optimum
    assert bound_of(X, 3, duals) <= optimum
    blind = Pricer(X, 3)
    monkeypatch.setattr(blind, "price", lambda duals, cuts: (None, np.zeros(len(duals))))
    assert proved(blind, duals, NO_CUTS, blind.price(duals, NO_CUTS)[1]) > optimum


def test_a_wrong_solver_does_not_prove_too_much(monkeypatch):
    # A linear program whose prices are all a tenth too high: bounds stay below the optimum.
    relax = GroupProgram.relax

    def wrong(self):
        solved = relax(self)
        return None if solved is None else solved._replace(duals=1.1 * solved.duals)

    for X, k in tables(10, seed=5):
        optimum = naive.least_sse(X.tolist(), k)
        with monkeypatch.context() as patch:
            patch.setattr(GroupProgram, "relax", wrong)
            bound = microagg.lower_bound(X, k, scale="none", effort="best", time_limit=1)
        assert bound <= optimum + 1e-12 * (1 + optimum)


@pytest.mark.parametrize("effort", ["balanced", "best"])
def test_efforts_order_and_stay_below_the_optimum(effort):
    for X, k in tables(40, seed=2):
        optimum = naive.least_sse(X.tolist(), k)
        fast = microagg.lower_bound(X, k, scale="none")
        bound = microagg.lower_bound(X, k, scale="none", effort=effort)
        assert fast <= bound <= optimum * (1 + 1e-12)


@pytest.mark.parametrize("effort", ["balanced", "best"])
@pytest.mark.parametrize(("n", "k"), [(5, 3), (3, 3), (7, 1), (30, 12), (12, 2)])
def test_edges_and_constant_data(effort, n, k):
    X = np.random.default_rng(4).normal(size=(n, 2))
    p = microagg.partition(X, k)
    assert microagg.lower_bound(X, k, effort=effort) <= p.sse * (1 + 1e-12)
    assert microagg.lower_bound(np.ones((n, 2)), k, effort=effort) == 0


def test_an_offset_changes_nothing():
    X = np.random.default_rng(6).integers(0, 50, size=(40, 3)).astype(float)
    for effort in ("balanced", "best"):
        plain = microagg.lower_bound(X, 3, effort=effort)
        assert microagg.lower_bound(X + 1e9, 3, effort=effort) == plain


@pytest.mark.parametrize(
    ("data", "balanced", "best"),
    [
        ("tarragona", 13.7, 13.8574),
        pytest.param("census", 4.55, 4.6460, marks=pytest.mark.long),
    ],
)
def test_published_bounds(data, balanced, best, reference):
    X = reference(data)
    sst = microagg.partition(X, 3, method="mdav").sst
    assert 100 * microagg.lower_bound(X, 3, effort="balanced") / sst > balanced
    assert 100 * microagg.lower_bound(X, 3, effort="best") / sst > best


def test_a_time_limit_still_gives_a_bound():
    X = np.random.default_rng(7).normal(size=(300, 4))
    fast = microagg.lower_bound(X, 5)
    assert microagg.lower_bound(X, 5, effort="best", time_limit=0) >= fast


def test_time_limit_is_checked():
    with pytest.raises(microagg.InputError, match="time_limit"):
        microagg.lower_bound([[1.0], [2.0]], 1, effort="best", time_limit=-1)
