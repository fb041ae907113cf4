"""Programs of choice: what trying everything finds, with cuts, forbidden groups and stops."""

from itertools import combinations

import numpy as np
import pytest

from microagg.base.progress import STOP, new_state, stop_after
from microagg.bounds.cuts import Sets
from microagg.bounds.program import GroupProgram


def drawn(seed, n=7, count=18):
    """Groups of two to four of n records, and what they cost."""
    rng = np.random.default_rng(seed)
    members = np.full((count, 4), -1, np.int32)
    for row in members:
        size = int(rng.integers(2, 5))
        row[:size] = np.sort(rng.permutation(n)[:size])
    return members, rng.uniform(1, 2, size=count)


def least(members, costs, n, allowed):
    """Cost of the best choice, by trying all of up to n // 2 groups."""
    groups = [set(row[row >= 0].tolist()) for row in members]
    found = [np.inf]
    for number in range(1, n // 2 + 1):
        for chosen in combinations(np.flatnonzero(allowed).tolist(), number):
            held = [i for c in chosen for i in groups[c]]
            if sorted(held) == list(range(n)):
                found.append(sum(costs[c] for c in chosen))
    return min(found)


@pytest.mark.parametrize("seed", range(8))
def test_chooses_as_trying_everything_does(seed):
    n, dear = 7, 100.0
    members, costs = drawn(seed)
    allowed = np.random.default_rng(seed).random(len(costs)) < 0.8
    program = GroupProgram(n, 4, new_state())
    program.add_alone(np.full(n, dear))
    program.add(members[:9], costs[:9])
    sets = Sets(np.array([[0, 1, 2, -1, -1], [1, 3, 4, 5, 6]], np.int32), np.array([2, 2]))
    held = np.array([[len(set(s) & set(g) - {-1}) >= 2 for s in sets.members] for g in members])
    assert np.array_equal(program.cut(sets).toarray(), held[:9])
    program.add(members[9:], costs[9:])  # also into the rows of the cuts
    program.allow(allowed)
    optimum = least(members, costs, n, allowed)
    relaxed = program.relax()
    assert relaxed.value <= min(optimum, n * dear) + 1e-6
    assert (relaxed.x @ held <= np.array([1, 2]) + 1e-7).all()
    assert relaxed.x[~allowed].max(initial=0.0) == 0
    paid = [relaxed.duals[row[row >= 0]].sum() for row in members]
    reduced = costs - paid + held @ relaxed.penalties
    assert reduced[allowed].min() > -1e-6
    assert relaxed.value == pytest.approx(relaxed.duals.sum() - relaxed.penalties @ [1, 2])
    chosen = program.choose()
    if optimum < np.inf:
        assert costs[chosen].sum() == pytest.approx(optimum)
        assert allowed[chosen].all()
    else:
        assert len(set(members[chosen].ravel().tolist()) - {-1}) < n


def test_stops_at_once_when_asked_or_late():
    members, costs = drawn(0)
    state = new_state()
    program = GroupProgram(7, 4, state)
    program.add(members, costs)
    with stop_after(state, 0):
        assert program.relax() is None
        assert len(program.choose()) == 0
    state[STOP] = 1
    assert program.relax() is None
    state[STOP] = 0
    assert len(program.choose(seconds=0)) == 0
