"""Pricing finds what trying all groups finds, and its floors are never too high."""

import numpy as np
import pytest

import naive
from microagg.bounds.cuts import NO_CUTS, Cuts, Sets
from microagg.bounds.repeated_pricing import Pricer
from microagg.compile import threads


def cases(count):
    """Small tables with prices, half of them with ties, a third with cuts."""
    rng = np.random.default_rng(0)
    for case in range(count):
        n, k, d = int(rng.integers(6, 11)), int(rng.integers(2, 5)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, d)) if case % 2 else rng.integers(0, 3, size=(n, d)).astype(float)
        duals = rng.normal(0.5, 0.5, size=n).round(1 if case % 2 else 6)
        cuts = NO_CUTS
        if case % 3 == 0:
            cuts = drawn_cuts(rng, n, k, 5, 0.5)
        yield X, k, duals, cuts


def drawn_cuts(rng, n, k, count, dearest):
    """Cuts on triples and on larger sets, with penalties."""
    sets = np.full((count, n), -1, np.int32)
    need = np.empty(count, np.intp)
    for c in range(count):
        need[c], size = (2, 3) if c % 2 else (k, int(rng.integers(k, n + 1)))
        sets[c, :size] = rng.choice(n, size, replace=False)
    return Cuts(Sets(sets, need), rng.uniform(0, dearest, size=count))


def plainly(cuts):
    """The same cuts for the naive twin."""
    rows = [row[row >= 0].tolist() for row in cuts.sets.members]
    return list(zip(rows, cuts.sets.need.tolist(), cuts.penalties.tolist(), strict=True))


def by_members(columns):
    return {
        tuple(int(i) for i in row if i >= 0): reduced
        for row, reduced in zip(columns.members, columns.reduced, strict=True)
    }


@pytest.mark.parametrize("slack", [-0.4, 0.013, 0.9])
def test_lists_all_groups_below_a_limit(slack):
    for X, k, duals, cuts in cases(25):
        found = Pricer(X, k).within(duals, slack, 10**5, cuts)
        expected = naive.groups_below(X.tolist(), k, duals.tolist(), plainly(cuts), slack)
        assert len(found.reduced) == len(by_members(found)), "each group once"
        assert by_members(found) == pytest.approx(expected, abs=1e-9)


def test_floors_are_the_least_of_each_seed():
    for X, k, duals, cuts in cases(40):
        _, floors = Pricer(X, k).price(duals, cuts)
        expected = np.zeros(len(X))
        order = sorted(range(len(X)), key=lambda i: -duals[i])  # stable: ties by row
        for group, reduced in naive.groups_below(
            X.tolist(), k, duals.tolist(), plainly(cuts), 0.0
        ).items():
            seed = min(group, key=order.index)
            expected[seed] = min(expected[seed], reduced)
        assert floors == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("width", "nodes"), [(4, 10**6), (100, 2), (3, 1)])
def test_floors_stay_true_when_the_search_is_cut_short(width, nodes):
    lower = 0
    for X, k, duals, cuts in cases(40):
        pricer = Pricer(X, k)
        _, floors = pricer.price(duals, cuts)
        _, short = pricer.price(duals, cuts, width=width, nodes=nodes)
        assert (short <= floors + 1e-12).all()
        lower += int((short < floors - 1e-9).sum())
    assert lower > 0, "the search was never cut short"


def test_keeps_the_lowest_of_each_seed():
    for X, k, duals, _ in cases(10):
        pricer = Pricer(X, k)
        several, floors = pricer.price(duals, each=50)
        one, same = pricer.price(duals, each=1)
        assert np.array_equal(floors, same)
        assert sorted(one.reduced.tolist()) == pytest.approx(sorted(floors[floors < 0].tolist()))
        assert set(by_members(one)) <= set(by_members(several))


def test_says_when_there_are_too_many():
    X = np.random.default_rng(1).normal(size=(20, 2))
    pricer, duals = Pricer(X, 3), np.ones(20)
    count = len(pricer.within(duals, 1.0, 10**6).reduced)
    assert pricer.within(duals, 1.0, count) is not None
    assert pricer.within(duals, 1.0, count - 1) is None


def test_does_not_depend_on_the_number_of_threads(monkeypatch):
    X = np.random.default_rng(2).normal(size=(150, 3))
    duals = np.full(150, 0.25)
    answers = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        found, floors = Pricer(X, 3).price(duals)
        answers.append((found.members.tolist(), found.reduced.tolist(), floors.tolist()))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) > 100
