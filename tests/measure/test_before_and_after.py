"""Totals, means, medians and deviations before and after, against sums over a list."""

import math
from dataclasses import replace

import numpy as np
import pytest

from measure_mixed import plain_pair
from microagg.measure.before_and_after import summaries
from microagg.measure.both_tables import Pair
from microagg.tables.variable import Variable


def four(values, weights, among, persons):
    """Total, mean, median and standard deviation by their definitions."""
    rows = [(v, w) for v, w in zip(values, weights, strict=True) if not math.isnan(v)]
    rows.sort()  # equal values by their weights
    n, mass = len(rows), sum(w for _, w in rows)
    mean = sum(v * w for v, w in rows) / mass
    square = sum(w * (v - mean) ** 2 for v, w in rows) / mass * n / (n - 1)
    count = min(n, among + (n - among) % 2)
    upto, at = 0.0, 0
    while upto + rows[at][1] < mass / 2 - 1e-9:
        upto += rows[at][1]
        at += 1
    start = min(max(at - (count - 1) // 2, 0), n - count)
    middle = rows[start : start + count]
    median = sum(v * w for v, w in middle) / sum(w for _, w in middle)
    return mean * mass * persons, mean, median, math.sqrt(square)


@pytest.mark.parametrize("n", [9, 10, 30])
@pytest.mark.parametrize("weighted", [False, True])
def test_numbers_equal_their_definitions(n, weighted):
    rng = np.random.default_rng(n)
    x = 1_000 + rng.lognormal(3, 1, n).round(1)
    y = x.round(-1)
    x[2] = y[5] = np.nan
    weights = rng.uniform(0.5, 3, n) if weighted else None
    both = Pair([Variable("x", "number", x)], y[:, None], weights=weights)
    row = summaries(replace(both, mean_weight=40.0), 3)[0]
    for place, table in enumerate((x, y)):
        wanted = four(table, weights if weighted else np.ones(n), 3, 40.0 if weighted else 1.0)
        found = [getattr(row, name)[place] for name in ("total", "mean", "median", "sd")]
        assert found == pytest.approx(wanted)
    assert row.missing == (1, 1)


def test_a_median_of_few_values_is_the_mean_of_all():
    both = plain_pair(["x"], np.array([[1.0], [5.0]]), np.array([[3.0], [3.0]]))
    row = summaries(both, 5)[0]
    assert row.total == pytest.approx((6.0, 6.0))
    assert row.median == pytest.approx((3.0, 3.0))
    assert row.sd == pytest.approx((math.sqrt(8), 0.0))


def test_a_column_without_any_value_has_zeros():
    none = np.full((3, 1), np.nan)
    both = plain_pair(["x"], none, none)
    row = summaries(both, 3)[0]
    assert (row.total, row.sd, row.missing) == ((0.0, 0.0), (0.0, 0.0), (3, 3))


def test_totals_of_huge_numbers_do_not_overflow():
    huge = np.full((4, 1), 1e308)
    row = summaries(plain_pair(["x"], huge, huge), 3)[0]
    assert row.mean == (1e308, 1e308)
    assert row.total[0] == pytest.approx(1.797e308, rel=1e-3)  # the largest double
    assert row.sd == (0.0, 0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_categories_by_hand(weighted):
    """Six records of a, b and c: one misses its value before, one after, and two change their category."""
    x = np.array([0.0, 0.0, 0.0, 1.0, 2.0, np.nan])
    y = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    y[1] = np.nan
    w = np.array([1.0, 2.0, 3.0, 1.0, 1.0, 4.0]) if weighted else None
    job = Variable("job", "nominal", x, levels=["a", "b", "c"])
    both = Pair([job], y[:, None], weights=w)
    row = summaries(both, 1)[0]
    assert (row.levels, row.missing, row.moved) == ((3, 2), (1, 1), "b")
    if weighted:
        assert row.moved_share == pytest.approx((1 / 8, 9 / 10))
        # The third and the fifth record, of those with both.
        assert row.changed == pytest.approx(4 / 6)
    else:
        assert row.moved_share == pytest.approx((1 / 5, 4 / 5))
        assert row.changed == pytest.approx(2 / 4)
    assert summaries(both, 3)[0].moved is None  # fewer have any of them in one of the tables


def test_of_two_categories_the_order_of_records_does_not_tell_which_moved_most():
    rng = np.random.default_rng(0)
    before, after = rng.integers(0, 2, (2, 240)).astype(float)
    weights = rng.uniform(0.5, 9, 240)
    named = set()
    for _ in range(30):
        rows = rng.permutation(240)
        sex = Variable("sex", "nominal", before[rows], levels=("f", "m"))
        both = Pair([sex], after[rows, None], weights=weights[rows] / weights.mean())
        (row,) = summaries(both, 3)
        named.add(row.moved)
    assert len(named) == 1


def test_the_category_whose_share_moved_most():
    x = np.repeat([0.0, 1.0, 2.0], [10, 10, 10])
    y = np.repeat([0.0, 1.0, 2.0], [11, 14, 5])
    job = Variable("job", "nominal", x, levels=["a", "b", "c"])
    both = Pair([job], y[:, None])
    row = summaries(both, 3)[0]
    assert (row.moved, row.moved_share) == ("c", pytest.approx((1 / 3, 1 / 6)))
    row = summaries(Pair([job], x[:, None]), 3)[0]
    assert (row.moved, row.moved_share, row.changed) == (None, None, 0.0)
