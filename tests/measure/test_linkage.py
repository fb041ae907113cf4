"""The two ways to count near records: all released rows in memory, and a release in batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microagg.encode.space import encoder_of
from microagg.measure.both_tables import AttackerSpace, Pair, state_encoders
from microagg.measure.linkage import (
    ReleasedRows,
    Sought,
    count_near,
    link,
    linkage_of,
    merged_counts,
)
from microagg.tables.variable import Variable


def released(X, k, rng):
    """Means of groups of k records that lie near each other along a random direction."""
    order = np.argsort(np.nan_to_num(X) @ rng.normal(size=X.shape[1]))
    twins = np.empty_like(X)
    for start in range(0, len(X), k):
        rows = order[start : start + k]
        twins[rows] = X[rows].mean(axis=0)
    return twins


def both_of(X, k, seed=0):
    columns = [Variable(str(j), "number", x.copy()) for j, x in enumerate(X.T)]
    twins = released(X, k, np.random.default_rng(seed))
    return Pair(columns, twins)


def in_batches(values, known, at_once, distinct):
    for start in range(0, len(values), at_once):
        some, own = values[start : start + at_once], known[start : start + at_once]
        sizes = None
        if distinct:
            both = np.column_stack([np.nan_to_num(some, nan=9e9), own])
            first, sizes = np.unique(both, axis=0, return_index=True, return_counts=True)[1:]
            some, own = some[first], own[first]
        yield ReleasedRows(some, np.isnan(some).astype(int), sizes, own)


def counted(both, rows, at_once, distinct, blocks=None):
    """Linkage of some records in batches, with blocks if there are any."""
    before, after = (np.isnan(X).astype(int) for X in (both.original, both.protected))
    space = AttackerSpace(
        [encoder_of(variable) for variable in both.variables],
        state_encoders(np.bincount(column) for column in before.T),
    )
    known = np.zeros(len(both), int) if blocks is None else blocks
    sought = Sought(
        space.place(both.original, before)[rows],
        space.place(both.protected, after)[rows],
        None if blocks is None else blocks[rows],
    )
    found = list(in_batches(both.protected, known, at_once, distinct))
    whole = count_near(space, sought, found)
    half = len(found) // 2
    parts = [count_near(space, sought, some) for some in (found[:half], found[half:])]
    np.testing.assert_array_equal(merged_counts(*parts), whole)
    return linkage_of(whole, len(both))


@given(
    n=st.integers(2, 60),
    d=st.integers(1, 4),
    k=st.integers(1, 5),
    whole_numbers=st.booleans(),
    blocks=st.integers(0, 4),
    missing=st.booleans(),
    at_once=st.integers(1, 70),
    distinct=st.booleans(),
    seed=st.integers(0, 99),
)
def test_all_records_are_linked_as_in_memory(
    n, d, k, whole_numbers, blocks, missing, at_once, distinct, seed
):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n, d)).astype(float) if whole_numbers else rng.normal(size=(n, d))
    if missing:
        X[rng.random((n, d)) < 0.1] = np.nan
    both = both_of(X, k, seed)
    own = rng.integers(0, blocks, n) if blocks else None
    dense = None if own is None else np.unique(own, return_inverse=True)[1]
    every = np.arange(n)
    assert counted(both, every, at_once, distinct, own) == link(both, blocks=dense)


@pytest.mark.parametrize("d", [2, 7])
def test_a_larger_table_and_a_sample_of_it(d):
    X = np.random.default_rng(1).normal(size=(4000, d))
    both = both_of(X, 3)
    assert counted(both, np.arange(4000), 900, True) == link(both)
    rows = np.sort(np.random.default_rng(5).choice(4000, 500, replace=False))
    found = counted(both, rows, 900, True)
    assert found == link(both, sample=500, random_state=5)
    assert found.sampled
    assert 0 <= found.low < found.share < found.high <= 1
