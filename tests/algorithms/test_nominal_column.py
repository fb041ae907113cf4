"""The best groups of one nominal column: equal to exhaustive search, and used where it should be."""

import importlib
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
import naive
from microagg import InputError
from microagg.algorithms.nominal_column import best_counts, nominal_exact
from microagg.encode.space import space_of
from microagg.grouping.group_table import group
from microagg.grouping.one_cell import Problem
from microagg.plan.block import Block
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame
from microagg.tables.variable import Variable

protect_table = importlib.import_module("microagg.engines.memory.protect").protect_table


def loss(counts):
    """Size less the sum of squares over the size, by its definition as unlike pairs."""
    unlike = sum(a * b for i, a in enumerate(counts) for j, b in enumerate(counts) if i != j)
    return Fraction(unlike, sum(counts))


def least_loss(counts, k, known=None):
    """Least loss over all groups of any counts, without a thought."""
    known = {} if known is None else known
    counts = tuple(sorted(counts))  # the order of levels does not matter
    if counts not in known:
        first = next((i for i, c in enumerate(counts) if c), None)
        if first is None:
            return Fraction(0)
        best = None
        for taken in product(*(range(c + 1) for c in counts)):
            if taken[first] and k <= sum(taken):
                rest = tuple(c - t for c, t in zip(counts, taken, strict=True))
                after = least_loss(rest, k, known)
                if after is not None and (best is None or loss(taken) + after < best):
                    best = loss(taken) + after
        known[counts] = best
    return known[counts]


def check(counts, k):
    found = best_counts(counts, k)
    assert all(sum(one) >= k for one in found)
    assert [sum(column) for column in zip(*found, strict=True)] == list(counts)
    return sum(map(loss, found))


@st.composite
def few_records(draw, most):
    k = draw(st.integers(2, 4))
    levels = draw(st.lists(st.integers(0, 5), min_size=k, max_size=most))
    return np.unique(levels, return_inverse=True)[1].reshape(-1), k


@given(few_records(most=10))
def test_no_partition_of_the_records_loses_less(given_table):
    levels, k = given_table
    one_hot = np.eye(int(levels.max()) + 1)[levels]
    labels = nominal_exact(levels, k)
    assert min(np.bincount(labels)) >= k
    ours = sum(float(loss(np.bincount(levels[labels == g]).tolist())) for g in np.unique(labels))
    assert ours == pytest.approx(naive.least_sse(one_hot.tolist(), k), abs=1e-9)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_all_counts_of_up_to_ten_records(k):
    """Every way to spread n ≤ 10 records over levels, against all groups of counts."""

    def spreads(n, most):
        if n == 0:
            yield ()
        for count in range(min(n, most), 0, -1):
            for rest in spreads(n - count, count):
                yield (count, *rest)

    known = {}
    for n in range(k, 11):
        for counts in spreads(n, n):
            assert check(counts, k) == least_loss(counts, k, known), counts


KNOWN = {}  # by k: what an example found is not searched for again in the next


@given(
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.integers(2, 6),
)
def test_more_records_and_common_levels(counts, k):
    if sum(counts) >= k:
        known = KNOWN.setdefault(k, {})
        assert check(counts, k) == least_loss(counts, k, known)


@pytest.mark.parametrize(
    ("counts", "k"),
    [
        ([6, 4, 4, 4], 5),  # one record to lend, and three groups that want it
        ([7, 7, 3, 3], 6),
        ([5, 5, 1, 1, 1], 5),  # nothing to lend: a common level is used up
        ([9, 4, 4, 1], 5),
    ],
)
def test_where_common_levels_have_too_little_to_lend(counts, k):
    assert check(counts, k) == least_loss(tuple(counts), k)


def test_pure_levels_lose_nothing_and_are_split_evenly():
    assert best_counts([7, 0, 4], 3) == [[3, 0, 0], [4, 0, 0], [0, 0, 4]]


def test_records_are_taken_in_row_order_whatever_the_levels_are_called():
    levels = np.array([0, 0, 1, 0, 2, 0, 0])
    first = nominal_exact(levels, 3)
    again = nominal_exact(np.array([2, 2, 0, 2, 1, 2, 2]), 3)
    assert [set(np.flatnonzero(first == g)) for g in (0, 1)] == [
        set(np.flatnonzero(again == g)) for g in (0, 1)
    ]


def test_a_search_that_would_not_end_says_so():
    counts = [*range(1, 40), 1000]
    assert best_counts(counts, 40, steps=1000) is None
    assert best_counts([200, *[19] * 30], 20) is None  # too many rare records


def nominal(levels):
    names = tuple(range(int(levels.max()) + 1))
    return Variable("x", "nominal", levels.astype(float), levels=names)


@given(few_records(most=12), st.sampled_from(["auto", "optimal", "nominal-exact"]))
def test_grouping_proves_what_it_found(given_table, method):
    levels, k = given_table
    space = space_of([nominal(levels)])
    found = group(Problem(space, Block(k=k, method=method)), np.zeros(len(levels), dtype=np.int64))
    assert found.lower_bound == found.sse
    assert found.gap == 0
    assert found.method == method
    p = np.bincount(levels) / len(levels)
    gini = len(levels) / (len(levels) - 1) * (1 - np.square(p).sum())
    least = float(least_loss(tuple(np.bincount(levels).tolist()), k))
    assert found.sse * gini == pytest.approx(least, abs=1e-9)
    assert found.sst == pytest.approx(len(levels) - 1 if len(p) > 1 else 0)


def test_each_stratum_is_solved_and_the_whole_is_proved():
    rng = np.random.default_rng(1)
    sector = rng.choice(list("abcdef"), 200, p=[0.5, 0.3, 0.14, 0.02, 0.02, 0.02])
    region = rng.choice(["north", "south", "east"], 200)
    table = pa.table({"sector": sector, "region": region})
    [part] = protect_table(Frame(table), Plan.of(k=4, columns=["sector"], strata=["region"])).parts
    assert part.partition.gap == 0
    least = Fraction(0)
    for one in set(region):
        own = sector[region == one]
        counts = sorted((int((own == level).sum()) for level in set(own)), reverse=True)
        least += sum(map(loss, best_counts(counts, 4)))
    share = np.array([(sector == level).mean() for level in set(sector)])
    gini = 200 / 199 * (1 - np.square(share).sum())
    assert part.partition.sse * gini == pytest.approx(float(least))


@pytest.mark.parametrize(
    ("columns", "settings", "fact"),
    [
        (["x", "y"], {}, "several of them"),
        (["y"], {}, "other columns"),
        (["x"], {"weight": "w"}, "weights"),
        (["x"], {"kinds": {"x": ["a", "b", "c"]}}, "other columns"),
    ],
)
def test_the_method_is_refused_for_anything_else(columns, settings, fact):
    table = pa.table({"x": ["a", "b", "a", "c"], "y": [1, 2, 3, 4], "w": [1, 2, 1, 2]})
    plan = Plan.of(k=2, columns=columns, method="nominal-exact", **settings)
    with pytest.raises(
        InputError, match=rf"for one nominal column .*{fact}.*Say method = \"auto\""
    ):
        protect_table(Frame(table), plan)


def test_numbers_are_no_categories():
    with pytest.raises(InputError, match="for one column of categories; partition takes numbers"):
        microagg.partition([1.0, 2.0, 3.0], 2, method="nominal-exact")


def test_missing_values_in_a_joined_pattern_go_the_usual_way():
    table = pa.table({"x": ["a"] * 6 + ["b"] * 6 + [None]})
    plan = Plan.of(k=3, columns=["x"], missing={"policy": "pattern", "most": 0.5})
    release = protect_table(Frame(table), plan)
    values = release.data["x"].to_pylist()
    assert min(values.count(value) for value in set(values)) >= 3
    assert values.count(None) == 3
