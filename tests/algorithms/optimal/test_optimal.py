"""The optimal partition: what trying everything finds, and no more said than proved."""

import importlib
import time
from threading import Event

import numpy as np
import pytest

import microagg
import naive
import oracles
from microagg.algorithms.auto import auto
from microagg.algorithms.optimal.optimal import IntegerProgram, optimal
from microagg.base.progress import STOP, new_state
from microagg.bounds.column_generation import Generation
from microagg.bounds.cuts import NO_CUTS, NO_SETS, DualPrices
from microagg.bounds.repeated_pricing import Pricer
from microagg.encode.scale import fit_scale
from microagg.errors import StopSearch

search = importlib.import_module("microagg.algorithms.optimal.optimal")


def test_equals_exhaustive_search():
    rng = np.random.default_rng(0)
    for case in range(120):
        k = int(rng.integers(2, 5))
        n, d = int(rng.integers(k, 13 if case % 10 == 0 else 10)), int(rng.integers(2, 4))
        X = rng.normal(size=(n, d))
        if case % 3 == 1:
            X = rng.integers(0, 3, size=(n, d)).astype(float)
        elif case % 3 == 2:
            X = X[rng.integers(0, n // 2 + 1, size=n)]
        p = microagg.partition(X, k, method="optimal", scale="none")
        oracles.check_partition(p, X, k)
        optimum = naive.least_sse(X.tolist(), k)
        assert p.sse == pytest.approx(optimum, rel=1e-9, abs=1e-12)
        assert p.lower_bound <= optimum * (1 + 1e-12)
        assert p.gap == 0


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.long) for s in (1, 2, 3))])
def test_sixty_records_are_solved(seed):
    X = np.random.default_rng(seed).normal(size=(60, 3))
    p = microagg.partition(X, 3, method="optimal")
    assert p.gap == 0
    assert p.sse <= microagg.partition(X, 3, effort="balanced").sse * (1 + 1e-12)
    assert microagg.lower_bound(X, 3, effort="best") <= p.sse


def test_one_column_is_exact_at_once():
    x = np.random.default_rng(2).normal(size=10_000)
    p = microagg.partition(x, 3, method="optimal")
    assert p.gap == 0
    assert p.sse == microagg.partition(x, 3, method="simple").sse


def test_says_beforehand_what_is_out_of_reach():
    with pytest.raises(microagg.InputError, match="lower_bound"):
        microagg.partition(np.zeros((6000, 2)), 3, method="optimal")
    with pytest.raises(microagg.InputError, match="takes up to"):
        microagg.partition(np.zeros((1000, 2)), 10, method="optimal")


@pytest.mark.parametrize("factor", [1e-6, 1e9])
def test_the_unit_of_the_values_does_not_matter(factor):
    # The solver's tolerances are absolute; what is proved must not depend on them.
    X = np.random.default_rng(0).normal(size=(40, 2)) * factor
    p = microagg.partition(X, 3, method="optimal", scale="none")
    assert p.gap == 0
    least = microagg.lower_bound(X, 3, scale="none", effort="best")
    assert 0.9 * p.sse < least <= p.sse


def test_stopped_at_once_it_still_gives_a_valid_partition():
    X = np.random.default_rng(3).normal(size=(200, 4))
    p = microagg.partition(X, 4, method="optimal", time_limit=0)
    oracles.check_partition(p, X, 4)
    assert 0 <= p.lower_bound <= p.sse
    assert p.gap > 0
    state = new_state()
    state[STOP] = 1
    found = optimal(np.ascontiguousarray(X), 4, state=state)
    assert np.bincount(found.labels).min() >= 4


@pytest.mark.parametrize("what", ["optimal", "lower bound"])
def test_a_stop_is_heard_while_it_looks_for_a_start(what, monkeypatch):
    started, calls, reports = Event(), [], []

    def slow(X, k, *, state, **settings):
        """Like auto, but it ends only when asked to."""
        calls.append(settings)
        outcome = auto(X, k, state=state, effort="fast")
        started.set()
        give_up = time.monotonic() + 600
        while not state[STOP]:
            assert time.monotonic() < give_up, "nobody asked to stop"
            time.sleep(0.01)
        return outcome

    def stop(progress):
        reports.append(progress)
        if started.is_set():
            raise StopSearch

    monkeypatch.setattr(search, "auto", slow)
    monkeypatch.setattr(importlib.import_module("microagg.algorithms.auto"), "auto", slow)
    X = np.random.default_rng(0).normal(size=(320, 3))
    fast = microagg.lower_bound(X, 3)
    if what == "optimal":
        p = microagg.partition(X, 3, method="optimal", progress=stop)
        oracles.check_partition(p, X, 3)
        assert p.stopped
        assert p.lower_bound == pytest.approx(fast)
        assert max(reports) == 80  # the start is a quarter of it
        assert reports[-1].information_loss == pytest.approx(p.information_loss)
    else:
        assert microagg.lower_bound(X, 3, effort="best", progress=stop) > fast
        assert max(reports) == 160  # after the first bounds, and the start
    assert len(calls) == 1
    assert reports == sorted(reports)


def test_stopped_before_it_began_it_gives_valid_groups():
    X = np.ascontiguousarray(np.random.default_rng(3).normal(size=(500, 3)))
    for effort in ("fast", "balanced", "best"):
        state = new_state()
        state[STOP] = 1
        labels = auto(X, 4, effort=effort, state=state).labels
        assert np.unique(labels, return_counts=True)[1].min() >= 4


def test_one_round_of_cuts_closes_most_of_the_gap(reference):
    # The linear program proves 13.8574; the best partition known loses 14.4677.
    X = reference("tarragona")
    X = fit_scale(X, "zscore").apply(X)
    labels = microagg.partition(X, 3, scale="none", effort="fast").labels
    none = DualPrices(np.zeros(len(X)), NO_CUTS, 0.0)
    generation = Generation(Pricer(X, 3), [labels], none)
    generation.run()
    assert 100 * generation.best.bound / (X**2).sum() == pytest.approx(13.8574, abs=6e-5)
    assert generation.cut(0.145 * (X**2).sum())
    assert 14.4 < 100 * generation.best.bound / (X**2).sum() < 14.4677


def all_groups(X, k):
    groups = naive.groups_below(X.tolist(), k, [0.0] * len(X), [], np.inf)
    members = np.full((len(groups), 2 * k - 1), -1, dtype=np.int32)
    for row, group in zip(members, groups, strict=True):
        row[: len(group)] = group
    return members, np.array(list(groups.values()))


def test_branch_and_bound_over_all_groups_without_cuts(monkeypatch):
    # Without cuts there is something to branch on; the bound at the root alone is too low.
    monkeypatch.setattr(search, "broken_cuts", lambda *_: NO_SETS)
    branched = 0
    for seed in range(12):
        X = np.random.default_rng(seed).normal(size=(10, 2))
        members, costs = all_groups(X, 3)
        optimum = naive.least_sse(X.tolist(), 3)
        choice = IntegerProgram(X, 3, members, costs, 2 * optimum, new_state())
        choice.solve(10**4, 0)
        assert choice.upper == pytest.approx(optimum, rel=1e-12)
        assert optimum * (1 - 1e-9) <= choice.lower <= optimum * (1 + 1e-12)
        branched += choice.nodes > 1
    assert branched > 0


def test_the_solvers_word_is_not_believed(monkeypatch):
    # Duals that are too high would close nodes too early; the bound they prove stays low.
    X = np.random.default_rng(0).normal(size=(9, 2))
    members, costs = all_groups(X, 3)
    optimum = naive.least_sse(X.tolist(), 3)
    choice = IntegerProgram(X, 3, members, costs, optimum, new_state())
    duals = np.full(9, optimum / 4)
    none = np.empty(0)
    assert duals.sum() > optimum
    paid = np.where(members >= 0, duals[members], 0.0).sum(axis=1)
    assert choice._proved(duals, none, costs - paid) <= optimum
    assert choice._proved(duals, none, np.zeros(len(costs))) > optimum, "this test can fail"
