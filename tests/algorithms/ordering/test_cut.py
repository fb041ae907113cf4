"""The one cut of any order against exhaustive search, and the public order() and cut()."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive
import naive_weighted
import oracles
from microagg.algorithms.ordering.cut import labels_along
from microagg.base.progress import DONE, STOP, new_state
from microagg.errors import InputError

ORDERING = [m for m in microagg.methods() if m.order]


def sse(rows):
    """SSE of a group in rational numbers."""
    return naive_weighted.sse(rows, [1.0] * len(rows), [0] * len(rows))


@st.composite
def small_tables(draw):
    n = draw(st.integers(1, 14))
    k = draw(st.integers(1, n))
    d = draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) if draw(st.booleans()) else rng.integers(0, 4, (n, d)) * 1.0
    return X, k, rng.permutation(n)


@given(small_tables())
def test_equals_exhaustive_search(table):
    X, k, order = table
    labels = labels_along(X, order, k, new_state())
    runs = labels[order]
    changes = np.flatnonzero(np.diff(runs)) + 1
    groups = np.split(X[order], changes)
    assert len(groups) == len(set(runs.tolist())), "each group is one run of the order"
    assert min(len(g) for g in groups) >= k
    got = sum(sse(g.tolist()) for g in groups)
    rows = X[order].tolist()
    least, _ = naive.least_of_runs(len(rows), k, lambda start, end: sse(rows[start:end]))
    assert got == least or float(got - least) <= 1e-13 * float(least)


@given(small_tables(), st.sampled_from([1e9, -1e12]))
def test_an_offset_does_not_move_the_cut(table, offset):
    X, k, order = table
    X = np.round(X * 8)
    plain = microagg.cut(X, order, k, scale="none")
    moved = microagg.cut(X + offset, order, k, scale="none")
    assert moved.labels.tolist() == plain.labels.tolist()
    assert moved.sse == plain.sse


def test_a_far_outlier_costs_no_accuracy_elsewhere():
    # Sums that ran over the whole table would round what is of size 1e-3 away.
    rng = np.random.default_rng(0)
    quiet = rng.normal(size=(60, 2)) * 1e-3
    X = np.concatenate([np.full((3, 2), 1e12), quiet])
    labels = labels_along(X, np.arange(63), 3, new_state())
    alone = labels_along(quiet, np.arange(60), 3, new_state())
    assert oracles.same_groups(labels[3:].tolist(), alone.tolist())


def test_a_long_table_costs_no_accuracy():
    # The second half repeats the first; after a huge cost so far it must be cut as well.
    rng = np.random.default_rng(1)
    quiet = rng.normal(size=(300, 2))
    costly = rng.normal(size=(300, 2)) * 1e9
    labels = labels_along(np.concatenate([costly, quiet]), np.arange(600), 4, new_state())
    alone = labels_along(quiet, np.arange(300), 4, new_state())
    # Past the first groups after the seam both cuts agree.
    tail = slice(60, None)
    assert oracles.same_groups(labels[300:][tail].tolist(), alone[tail].tolist())


def test_equal_costs_go_to_the_lower_start():
    assert labels_along(np.zeros((7, 1)), np.arange(7), 2, new_state()).tolist() == [
        2, 2, 1, 1, 0, 0, 0,
    ]  # fmt: skip


def test_stops_and_reports():
    X = np.random.default_rng(3).normal(size=(2000, 2))
    state = new_state()
    labels_along(X, np.arange(2000), 3, state)
    assert state[DONE] == 2000
    state = new_state()
    state[STOP] = 1
    labels_along(X, np.arange(2000), 3, state)
    assert state[DONE] == 0


@pytest.mark.parametrize("method", [m.name for m in ORDERING])
def test_a_method_is_its_order_and_the_cut(method):
    X = np.random.default_rng(4).normal(size=(150, 3))
    rows = microagg.order(X, method, k=4)
    assert rows.dtype == np.int64
    assert sorted(rows.tolist()) == list(range(150))
    p = microagg.cut(X, rows, 4)
    assert p.labels.tolist() == microagg.partition(X, 4, method=method).labels.tolist()
    oracles.check_partition(p, X, 4)
    oracles.check_loss(p, X)
    assert p.method == "cut"


def test_an_order_of_ones_own():
    p = microagg.cut([[1.0], [2.0], [9.0], [10.0]], [3, 2, 1, 0], 2)
    assert p.labels.tolist() == [0, 0, 1, 1]
    reports = []
    microagg.cut(np.zeros((9, 2)), np.arange(9), 3, progress=reports.append)
    assert reports[-1] == 9


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([0, 1], "shape"),
        ([0, 1, 1], "row 2 is missing"),
        ([0, 1, 3], "row 2 is missing"),
        ([-1, 0, 1], "row 2 is missing"),
        ([0.0, 1.0, 2.0], "whole numbers"),
        ([[0, 1, 2]], "shape"),
    ],
)
def test_what_is_no_order_is_refused(rows, why):
    with pytest.raises(InputError, match=why):
        microagg.cut([1.0, 2.0, 3.0], rows, 1)


def test_what_order_refuses():
    with pytest.raises(InputError, match="'mdav' makes no order; choose one of"):
        microagg.order([1.0, 2.0], "mdav")
    with pytest.raises(InputError, match=r"depends on k, the least number .* Pass k="):
        microagg.order([1.0, 2.0], "random-projection")
    with pytest.raises(InputError, match="has no option 'speed'"):
        microagg.order([1.0, 2.0], "pca", speed=9)
