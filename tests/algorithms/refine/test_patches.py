"""Splitting groups into patches of neighbours."""

import itertools

import numpy as np
import pytest

from microagg.algorithms.refine import patches
from microagg.compile import threads


def split(centroid, most, seed=7):
    return patches.split_groups(centroid, most, np.array([seed], np.uint64))


@pytest.mark.parametrize("most", [2, 16, 128, 20_000])
@pytest.mark.parametrize("kind", ["normal", "ties"])
def test_patches_do_not_depend_on_the_number_of_threads(most, kind, monkeypatch):
    rng = np.random.default_rng(0)
    centroid = (
        rng.normal(size=(9_000, 3)) if kind == "normal" else rng.integers(0, 3, (9_000, 3)) + 0.0
    )
    monkeypatch.setattr(threads, "thread_count", lambda: 1)
    groups, first = split(centroid, most)
    assert sorted(groups) == list(range(9_000))
    assert np.diff(first).max() <= most
    assert first[0] == 0
    assert first[-1] == 9_000
    for count in (2, 3, 16):
        monkeypatch.setattr(threads, "thread_count", lambda count=count: count)
        again, places = split(centroid, most)
        assert (again == groups).all()
        assert (places == first).all()


def test_patches_are_of_neighbours():
    centroid = np.random.default_rng(1).normal(size=(4_096, 2))
    groups, first = split(centroid, 64)
    within = [centroid[groups[a:b]].std(axis=0).mean() for a, b in itertools.pairwise(first)]
    assert np.mean(within) < 0.5 * centroid.std()
