"""Islands of the semidefinite bound: right sides by enumeration, proofs against all partitions."""

import math
from fractions import Fraction

import numpy as np
import pytest

import microagg
from bounds.test_semidefinite import prices_of, solver_of, tables
from microagg.bounds import inequalities
from microagg.bounds.inequalities import right_sides
from microagg.bounds.semidefinite import Size, proved_by
from naive_weighted import least_sse

EAGER = Size(block=8, rounds=60, worth=-1.0, stars=True, islands=True)


def divisions(m):
    """All ways to write m as a sum of positive numbers, in falling order."""

    def below(left, most):
        if left == 0:
            yield ()
        for part in range(min(left, most), 0, -1):
            yield from ((part, *rest) for rest in below(left - part, part))

    return below(m, m)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_right_sides_are_the_most_that_divisions_have(k):
    weights = np.array([0.25, 1.0, 3.0, 4.0 * k])
    sides = right_sides(k, 3 * k, weights)
    for c, row in zip(weights, sides, strict=True):
        for m in range(3 * k + 1):
            most = max(
                sum((p * p + c * p) / max(p, k) for p in parts)
                for parts in divisions(m)
                if all(p < 2 * k for p in parts)
            )
            assert most <= row[m] <= most * (1 + 1e-11) + 1e-300


def test_no_partition_costs_less_than_what_is_proved():
    used = 0
    for X, k in tables(40, seed=21):
        solver = solver_of(X, k, EAGER)
        prices = solver.run(math.inf)
        assert Fraction(proved_by(prices)) <= least_sse(X, np.ones(len(X)), k)
        used += (solver.islands.multipliers > 0).any()
    assert used > 5


def test_any_multipliers_prove_something():
    rng = np.random.default_rng(2)
    for X, k in tables(40, seed=22):
        solver = solver_of(X, k, EAGER)
        blocks, width = solver.blocks, solver.islands.rows.shape[1]
        m = blocks.members.shape[1]
        rows = np.full((12, width), -1, np.int32)
        for row in rows:
            size = int(rng.integers(1, min(m, width - 2) + 1))
            row[0], row[1] = rng.integers(len(blocks.members)), rng.integers(inequalities._WEIGHTS)
            row[2 : 2 + size] = np.sort(rng.permutation(m)[:size])
        solver.islands.rows = rows
        solver.islands.multipliers = rng.choice([0.0, 0.1, 1.0], size=12) * solver.mean
        solver.best = np.full(len(X), -np.inf)
        solver._prove()
        assert np.isfinite(solver.best).all()
        assert Fraction(proved_by(solver.best)) <= least_sse(X, np.ones(len(X)), k)


def test_a_right_side_too_small_would_be_found_out(monkeypatch):
    # Fewer records in groups than there are: the sum of prices is then too high.
    monkeypatch.setattr(inequalities, "_RAISED", 0.5)
    found = 0
    for X, k in tables(30, seed=23):
        found += Fraction(proved_by(prices_of(X, k, EAGER))) > least_sse(X, np.ones(len(X)), k)
    assert found > 5


def test_sets_that_fractions_of_groups_hold_are_found():
    # Seven records share 1/5 with themselves and all others in like parts: 1.4 groups of five.
    m, k = 9, 5
    share = np.zeros((m, m))
    share[:7, :7] = (1 - 1 / k) / 6
    np.fill_diagonal(share, 1 / k)
    weights = np.geomspace(0.25, 4 * k, inequalities._WEIGHTS)
    sides = right_sides(k, 9, weights)
    found, by = np.empty((m * 3, 11), np.int32), np.empty(m * 3)

    def sought():
        rows = np.arange(m)
        parts = inequalities._PARTS
        return inequalities.broken_islands(
            3, share, np.ones(m), rows, k, sides, weights, parts, 0.01, found, by
        )

    count = sought()
    sets = {tuple(row[2:].tolist()) for row in found[:count]}
    assert sets == {(0, 1, 2, 3, 4, 5, 6, -1, -1)}
    assert (found[:count, 0] == 3).all()
    # One group of seven breaks nothing.
    share[:7, :7] = 1 / 7
    assert sought() == 0


def test_they_raise_the_bound_of_islands():
    # Islands of seven far from each other: whole groups of five leave two, or seven are one group.
    rng = np.random.default_rng(5)
    X = np.repeat(1000 * rng.normal(size=(12, 2)), 7, axis=0) + rng.normal(size=(84, 2))
    plain = proved_by(prices_of(X, 5, Size(84, 200, -1.0, stars=True)))
    raised = proved_by(prices_of(X, 5, Size(84, 200, -1.0, stars=True, islands=True)))
    best = microagg.partition(X, 5, scale="none").sse
    assert plain < 0.9 * best
    assert 0.98 * best < raised <= best


def test_sets_of_large_groups_have_not_too_many_pairs():
    # They overlap in all ways: all of them would take far longer than all else.
    m, rng = 160, np.random.default_rng(3)
    solver = solver_of(rng.normal(size=(m, 3)), 40, Size(m, 20, -1.0, islands=True))
    solver.run(math.inf)
    held = np.count_nonzero(solver.islands.rows[:, 2:] >= 0, axis=1)
    assert 16 * m**2 < (held**2).sum() <= 32 * m**2
