"""One column in stretches: the optimum of the whole column."""

from weakref import WeakSet

import numpy as np
import pytest

from microagg.algorithms.univariate import chain
from microagg.algorithms.univariate.sorted_cut import cut_sorted, cut_stretches

KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(0, 50, n).astype(float),
    "even": lambda rng, n: np.arange(n) * 1.0,  # partitions of which never meet
    "skewed": lambda rng, n: rng.exponential(size=n) ** 3,
    "equal": lambda rng, n: np.zeros(n),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cost", ["sse", "sae", "max", "round-up"])
def test_stretches_give_the_groups_of_the_whole(kind, cost):
    rng = np.random.default_rng(sum(map(ord, kind + cost)))
    for _ in range(8):
        n, k = int(rng.integers(6, 2500)), int(rng.integers(1, 6))
        x = np.sort(KINDS[kind](rng, n))
        parts = np.split(x, np.sort(rng.integers(0, n, int(rng.integers(0, 7)))))
        found = cut_stretches([len(part) for part in parts], parts.__getitem__, k, cost)
        assert np.array_equal(np.concatenate(found), cut_sorted(x, k, cost=cost))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("overlap", [0, 1, 7])
def test_any_overlap_comes_to_an_end(kind, overlap, monkeypatch):
    monkeypatch.setattr(chain, "overlap_for", lambda k: overlap)
    rng = np.random.default_rng(overlap)
    x = np.sort(KINDS[kind](rng, 1500))
    parts = np.split(x, [3, 400, 401, 900])
    for k in (1, 2, 5):
        found = cut_stretches([len(part) for part in parts], parts.__getitem__, k)
        assert np.array_equal(np.concatenate(found), cut_sorted(x, k))


@pytest.mark.parametrize("exponent", [0, 600])
def test_stretches_that_never_meet_are_not_all_in_memory(exponent, monkeypatch):
    read, alive, most = [], WeakSet(), []

    class Line(chain.SortedLine):
        def __init__(self, *values):
            super().__init__(*values)
            alive.add(self)
            most.append(len(alive))

    def values_of(at):
        read.append(at)
        return parts[at]

    monkeypatch.setattr(chain, "SortedLine", Line)
    monkeypatch.setattr("microagg.compile.threads.thread_count", lambda: 8)
    x = np.ldexp(np.arange(1.0, 30_001.0), exponent)
    parts = np.split(x, 30)
    found = cut_stretches([1000] * 30, values_of, 3, most=2)
    assert np.array_equal(np.concatenate(found), cut_sorted(x, 3))
    assert max(most) <= 4  # two at a time, one that those before are put to, one that waits
    assert len(read) <= 30 * 4  # a few times each, however many have been put together
