"""Triangles of the semidefinite bound: true for all partitions, found when broken, and proved safely."""

from __future__ import annotations

import itertools

import numpy as np

import microagg
from bounds.test_semidefinite import prices_of, solver_of, tables, worst_group
from microagg.bounds import triangles
from microagg.bounds.semidefinite import Size, proved_by

EAGER = Size(block=6, rounds=60, worth=-1.0, triangles=True)


def broken(share, i, j, h):
    return share[i, j] + share[i, h] - share[j, h] - share[i, i]


def test_no_partition_breaks_one():
    rng = np.random.default_rng(0)
    for _ in range(30):
        labels = rng.integers(0, 3, size=8)
        same = labels[:, None] == labels
        share = same / same.sum(axis=1)
        for i, j, h in itertools.permutations(range(8), 3):
            assert broken(share, i, j, h) <= 0


def test_those_that_are_broken_most_are_found():
    rng = np.random.default_rng(1)
    m, each = 9, 3
    share = rng.uniform(size=(m, m))
    share = (share + share.T).astype(np.float32)
    members = np.arange(m, dtype=np.int32)
    home = np.where(members < 6, 0, 1)
    found = np.empty((m * each, 4), np.int32)
    count = triangles._broken(share, members, np.ones(m), home, 0, 0.01, each, found)
    expected = []
    for i in range(6):
        others = [a for a in range(m) if a != i]
        by_excess = sorted(
            ((-broken(share, i, j, h), j, h) for j, h in itertools.combinations(others, 2))
        )
        expected += [(0, i, j, h) for less, j, h in by_excess[:each] if -less > 0.01]
    assert sorted(map(tuple, found[:count].tolist())) == sorted(expected)
    assert count > 10


def test_no_group_costs_less_than_its_records_pay():
    for X, k in tables(40, seed=11):
        assert worst_group(X, k, prices_of(X, k, EAGER)) >= 0


def test_they_raise_the_bound():
    X = np.random.default_rng(3).normal(size=(80, 4))
    plain = proved_by(prices_of(X, 5, Size(80, 100, -1.0)))
    raised = proved_by(prices_of(X, 5, Size(80, 100, -1.0, triangles=True)))
    assert 1.01 * plain < raised < microagg.partition(X, 5, scale="none").sse


def test_any_multipliers_prove_something():
    rng = np.random.default_rng(2)
    for X, k in tables(30, seed=12):
        solver = solver_of(X, k)
        blocks, m = solver.blocks, solver.blocks.members.shape[1]
        solver.triangles.triangles = np.array(
            [[rng.integers(len(blocks.members)), *rng.permutation(m)[:3]] for _ in range(20)],
            np.int32,
        )
        solver.triangles.multipliers = rng.choice([0.0, 0.1, 1.0], size=20) * solver.mean
        solver.best = np.full(len(X), -np.inf)
        solver._prove()
        assert np.isfinite(solver.best).all()
        assert worst_group(X, k, solver.best) >= 0


def test_a_negative_multiplier_would_be_found_out(monkeypatch):
    # The wrong way round, prices are too high: what the tests above would see.
    monkeypatch.setattr(triangles, "_charge", _charged_wrongly)
    found = 0
    for X, k in tables(30, seed=13):
        solver = solver_of(X, k)
        m = solver.blocks.members.shape[1]
        every = [[0, *t] for t in itertools.permutations(range(m), 3)]
        solver.triangles.triangles = np.array(every, np.int32)
        solver.triangles.multipliers = np.full(len(every), 0.1 * solver.mean)
        solver.best = np.full(len(X), -np.inf)
        solver._prove()
        found += worst_group(X, k, solver.best) < 0
    assert found > 15


def _charged_wrongly(some, multipliers, place, charge):
    for (b, p, q, r), y in zip(some.tolist(), multipliers.tolist(), strict=True):
        charge.added[[place[b, p, q], place[b, p, r]]] -= y
        charge.added[place[b, p, p]] += y
        charge.added[[place[b, q, r], place[b, r, q]]] += y / 2
