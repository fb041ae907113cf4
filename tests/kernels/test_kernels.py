"""Kernels that several methods use."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entries import entry
from microagg.kernels import doubled_sums as sums
from microagg.kernels import halve as halving

halve, add_row, two_sum = map(entry, (halving.halve, sums.add_row, sums.two_sum))
finite = st.floats(-1e150, 1e150)


@given(st.integers(0, 2**32 - 1), st.integers(1, 99), st.integers(1, 3))
def test_rows_are_halved_along_the_widest_column_ties_by_row(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(n, d)) * 0.1
    rows = rng.permutation(n)
    start, stop = sorted(rng.choice(n + 1, 2, replace=False))
    target = int(rng.integers(start, stop))
    mine, low, high, keys = rows.copy(), np.empty(d), np.empty(d), np.empty(n)
    halve(X, mine, start, stop, target, low, high, keys)
    inside = X[rows[start:stop]]
    assert (low == inside.min(axis=0)).all()
    assert (high == inside.max(axis=0)).all()
    column = (high - low).argmax()
    order = sorted(rows[start:stop], key=lambda row: (X[row, column], row))
    assert set(mine[start:target]) == set(order[: target - start])
    assert set(mine[target:stop]) == set(order[target - start :])
    assert (mine[:start] == rows[:start]).all()
    assert (mine[stop:] == rows[stop:]).all()


@pytest.mark.parametrize("values", [np.arange(999.0), np.arange(999.0)[::-1], np.zeros(999)])
def test_rows_in_order_or_equal_are_halved_too(values):
    X, rows = values[:, None].copy(), np.arange(999)
    halve(X, rows, 0, 999, 500, np.empty(1), np.empty(1), np.empty(999))
    assert X[rows[:500]].max() <= X[rows[500:]].min()


@given(finite, finite)
def test_two_sum_is_exact(a, b):
    s, e = two_sum(a, b)
    assert Fraction(s) + Fraction(e) == Fraction(a) + Fraction(b)


def test_a_total_survives_what_was_large_and_left():
    high, low = np.zeros(1), np.zeros(1)
    rows = np.array([[1e20], [1.0], [-3e19], [0.5]])
    for row in rows:
        add_row(high, low, row, 1.0)
    add_row(high, low, rows[0], -1.0)
    add_row(high, low, rows[2], -1.0)
    assert high[0] + low[0] == 1.5


@pytest.mark.parametrize("kind", ["normal", "ties"])
@pytest.mark.parametrize(("k", "most"), [(3, 5), (4, 999), (1, 40_000)])
def test_halves_do_not_depend_on_the_number_of_threads(kind, k, most, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50_021, 3)) if kind == "normal" else rng.integers(0, 9, (50_021, 3)) * 0.1
    monkeypatch.setattr("microagg.compile.threads.thread_count", lambda: 1)
    rows, first = halving.halves(X, k, most)
    assert sorted(rows) == list(range(50_021))
    assert k <= np.diff(first).min() <= np.diff(first).max() <= most
    for count in (2, 3, 16):
        monkeypatch.setattr("microagg.compile.threads.thread_count", lambda count=count: count)
        again, places = halving.halves(X, k, most)
        assert (again == rows).all()
        assert (places == first).all()
