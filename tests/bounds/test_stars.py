"""Stars of the semidefinite bound: true for all partitions, found when broken, and proved safely."""

import itertools

import numpy as np

import microagg
from bounds.test_semidefinite import prices_of, solver_of, tables, worst_group
from microagg.bounds import inequalities
from microagg.bounds.semidefinite import Size, proved_by

EAGER = Size(block=6, rounds=60, worth=-1.0, stars=True)


def excess(share, i, arms):
    between = sum(share[j, h] for j, h in itertools.combinations(arms, 2))
    return share[i, list(arms)].sum() - between - share[i, i]


def greedy_stars(share, i, arms, least, each):
    """The naive twin: from each other record on, whoever adds most."""
    m, found = len(share), {}
    for j in range(m):
        if j == i or share[i, j] <= inequalities._APART * share[i, i]:
            continue
        star = [j]
        while len(star) < arms:
            gains = {
                h: share[i, h] - share[star, h].sum()
                for h in range(m)
                if h not in (i, *star) and share[i, h] > inequalities._APART * share[i, i]
            }
            best = max(gains, key=lambda h: gains[h], default=None)
            if best is None or gains[best] <= 0:
                break
            star.append(best)
        found[tuple(sorted(star))] = excess(share, i, star)
    broken = sorted((-value, star) for star, value in found.items() if value > least)
    return [star for _, star in broken[:each]]


def test_those_that_are_broken_most_are_found():
    rng = np.random.default_rng(1)
    m, each, arms = 12, 3, 4
    for _ in range(20):
        share = rng.uniform(size=(m, m)) ** 3
        share = share + share.T
        at_home = np.arange(8)
        found = np.empty((m * each, 3 + arms), np.int32)
        count = inequalities.broken_stars(5, share, at_home, 0.01, arms, each, found)
        expected = []
        for i in at_home.tolist():
            broken = greedy_stars(share, i, arms, 0.01, each)
            expected += [(5, -1, i, *star, *[-1] * (arms - len(star))) for star in broken]
        assert sorted(map(tuple, found[:count].tolist())) == sorted(expected)
        assert count > 5


def test_no_group_costs_less_than_its_records_pay():
    for X, k in tables(40, seed=11):
        assert worst_group(X, k, prices_of(X, k, EAGER)) >= 0


def test_they_raise_the_bound():
    X = np.random.default_rng(3).normal(size=(80, 4))
    plain = proved_by(prices_of(X, 5, Size(80, 100, -1.0)))
    raised = proved_by(prices_of(X, 5, Size(80, 100, -1.0, stars=True)))
    assert 1.01 * plain < raised < microagg.partition(X, 5, scale="none").sse


def some_stars(rng, blocks, count):
    """Stars of any records of a block, with two to four arms."""
    rows = np.full((count, 3 + inequalities._ARMS), -1, np.int32)
    for row in rows:
        m = blocks.members.shape[1]
        size = int(rng.integers(2, min(inequalities._ARMS, m - 1) + 1))
        row[0] = rng.integers(len(blocks.members))
        row[2 : 3 + size] = rng.permutation(m)[: 1 + size]
    return rows


def test_any_multipliers_prove_something():
    rng = np.random.default_rng(2)
    for X, k in tables(30, seed=12):
        solver = solver_of(X, k, EAGER)
        solver.stars.rows = some_stars(rng, solver.blocks, 20)
        solver.stars.multipliers = rng.choice([0.0, 0.1, 1.0], size=20) * solver.mean
        solver.best = np.full(len(X), -np.inf)
        solver._prove()
        assert np.isfinite(solver.best).all()
        assert worst_group(X, k, solver.best) >= 0


def test_a_negative_multiplier_would_be_found_out(monkeypatch):
    # The wrong way round, prices are too high: what the tests above would see.
    right = inequalities._charge

    def charged_wrongly(rows, multipliers, weights, place, charge):
        right(rows, multipliers, weights, place, charge)
        charge.added[:] *= -1

    monkeypatch.setattr(inequalities, "_charge", charged_wrongly)
    rng, found = np.random.default_rng(4), 0
    for X, k in tables(30, seed=13):
        solver = solver_of(X, k, EAGER)
        solver.stars.rows = some_stars(rng, solver.blocks, 100)
        solver.stars.multipliers = np.full(100, 0.1 * solver.mean)
        solver.best = np.full(len(X), -np.inf)
        solver._prove()
        found += worst_group(X, k, solver.best) < 0
    assert found > 15
