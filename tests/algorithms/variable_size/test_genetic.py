"""The genetic algorithm: its repair against rules, its losses against exhaustive search and mdav."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import microagg
import naive
from microagg import InputError
from microagg.algorithms.fixed_size import mdav
from microagg.algorithms.variable_size import genetic as module
from microagg.algorithms.variable_size.genetic import genetic
from microagg.kernels.labels import canonical_labels, sum_of_squares
from strategies import tables

_repair = module._repair
_GroupSums = module._GroupSums


@njit
def repaired(X, genes, k):
    n, groups = X.shape[0], X.shape[0] // k
    sums = _GroupSums(
        np.empty((groups, X.shape[1])),
        np.empty(groups, np.int64),
        np.empty(groups, np.int64),
        np.empty(n),
    )
    _repair(X, genes, sums, k)


@given(tables(max_rows=40), st.integers(0, 2**32 - 1))
def test_any_chromosome_is_repaired_and_a_sound_one_is_left_alone(table, seed):
    X, k = table
    groups = len(X) // k
    genes = np.random.default_rng(seed).integers(0, groups, len(X))
    repaired(X, genes, k)
    sizes = np.bincount(genes)
    assert sizes.min() >= k
    assert sizes.max() < 2 * k
    assert genes.tolist() == canonical_labels(genes).tolist()
    again = genes.copy()
    repaired(X, again, k)
    assert again.tolist() == genes.tolist()


def test_a_group_that_lacks_little_takes_the_nearest_that_can_be_spared():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [4.0], [9.0], [9.1]])
    genes = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2])
    repaired(X, genes, 3)
    assert genes.tolist() == [0, 0, 0, 1, 1, 2, 1, 2, 2]


def test_a_group_that_lacks_much_is_dissolved():
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [0.3]])
    genes = np.array([0, 0, 0, 1, 1, 1, 1])
    repaired(np.ascontiguousarray(X), genes, 3)
    assert genes.tolist() == [0, 0, 0, 1, 1, 1, 1], "sound, though another would lose less"
    genes = np.array([0, 0, 0, 0, 0, 0, 1])
    repaired(X, genes, 3)
    assert genes.tolist() == [0, 0, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("seed", range(6))
def test_finds_the_optimum_of_a_dozen_records(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(6, 13)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, 2))
    best = naive.least_sse(X.tolist(), k)
    assert sum_of_squares(X, genetic(X, k).labels) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(4))
def test_loses_less_than_mdav_on_small_tables(seed):
    X = np.random.default_rng(seed).normal(size=(40, 2))
    ours, theirs = (sum_of_squares(X, found.labels) for found in (genetic(X, 3), mdav(X, 3)))
    assert ours < theirs


def test_large_tables_are_refused():
    with pytest.raises(InputError, match=r"at most 1,000 records; this one has 1,001\. Use"):
        microagg.partition(np.zeros((1001, 2)), 3, method="genetic")
