"""Linkage of a sample to batches of a release: as in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg import InputError
from microagg.measure.both_tables import Pair
from microagg.measure.link_batches import link_sample
from microagg.measure.linkage import link


def released(X, k, rng):
    """Means of groups of k records that lie near each other along a random direction."""
    order = np.argsort(X @ rng.normal(size=X.shape[1]))
    twins = np.empty_like(X)
    for start in range(0, len(X), k):
        rows = order[start : start + k]
        twins[rows] = X[rows].mean(axis=0)
    return twins


def both_of(X, k, seed=0):
    return Pair(list(range(X.shape[1])), X, released(X, k, np.random.default_rng(seed)))


def in_batches(points, at_once, distinct):
    for start in range(0, len(points), at_once):
        some = points[start : start + at_once]
        yield np.unique(some, axis=0, return_counts=True) if distinct else (some, None)


@given(
    n=st.integers(2, 60),
    d=st.integers(1, 4),
    k=st.integers(1, 5),
    whole_numbers=st.booleans(),
    at_once=st.integers(1, 70),
    distinct=st.booleans(),
    seed=st.integers(0, 99),
)
def test_all_records_are_linked_as_in_memory(n, d, k, whole_numbers, at_once, distinct, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, d)).astype(float) if whole_numbers else rng.normal(size=(n, d))
    both = both_of(X, k, seed)
    Z, twins = both.encoded
    found = link_sample(Z, twins, in_batches(twins, at_once, distinct), n)
    assert found == link(both)


@pytest.mark.parametrize("d", [2, 7])
def test_a_larger_table_and_a_sample_of_it(d):
    X = np.random.default_rng(1).normal(size=(4000, d))
    both = both_of(X, 3)
    Z, twins = both.encoded
    assert link_sample(Z, twins, in_batches(twins, 900, True), 4000) == link(both)
    rows = np.sort(np.random.default_rng(5).choice(4000, 500, replace=False))
    found = link_sample(Z[rows], twins[rows], in_batches(twins, 900, True), 4000)
    assert found == link(both, sample=500, random_state=5)
    assert found.sampled
    assert 0 <= found.low < found.share < found.high <= 1


def test_wrong_use():
    with pytest.raises(InputError, match="at least one"):
        link_sample(np.empty((0, 2)), np.empty((0, 2)), [], 5)
    with pytest.raises(InputError, match="shapes"):
        link_sample(np.zeros((3, 2)), np.zeros((2, 2)), [], 5)
