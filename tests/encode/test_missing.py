"""Joins of rare patterns against exhaustive search, and what groups with missing values release."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from microagg.encode.missing import distinct_rows, group_states, join_patterns


def fewest_blanked(states, k):
    """Fewest values blanked over all partitions of the records into groups of k or more."""

    def blanked(members):
        columns = zip(*(states[i] for i in members), strict=True)
        return sum(
            sum(value != 1 for value in column) for column in columns if len(set(column)) > 1
        )

    return naive.least_cost(len(states), k, blanked)


@st.composite
def tables(draw, most_rows=8, most_state=1):
    k = draw(st.integers(2, 3))
    d = draw(st.integers(1, 3))
    row = st.tuples(*[st.sampled_from([0, 0, *range(most_state + 1)])] * d)
    states = draw(st.lists(row, min_size=k, max_size=most_rows))
    return np.array(states), k


def check(states, found, strata, k, units=None):
    """What is true of every join, by loops."""
    n = len(states)
    for i in range(n):
        for before, after in zip(states[i], found.states[i], strict=True):
            assert after in (before, 1)
    assert found.blanked == sum(
        found.states[i][j] != states[i][j] for i in range(n) for j in range(states.shape[1])
    )
    keys = [(strata[i], tuple(found.states[i].tolist())) for i in range(n)]
    of_cell = {}
    for key, cell in zip(keys, found.cells.tolist(), strict=True):
        assert of_cell.setdefault(cell, key) == key
    assert len(set(of_cell.values())) == len(of_cell)
    for cell in of_cell:
        rows = [i for i in range(n) if found.cells[i] == cell]
        assert len({i if units is None else units[i] for i in rows}) >= k


@given(tables(most_state=3))
def test_patterns_are_shared_and_values_only_blanked(table):
    states, k = table
    strata = np.zeros(len(states), dtype=np.int64)
    found = join_patterns(states, strata, k)
    check(states, found, strata, k)
    assert found.blanked >= fewest_blanked(states.tolist(), k)


@given(tables(most_rows=30, most_state=2), st.integers(0, 999))
def test_units_and_strata_are_respected(table, seed):
    states, k = table
    rng = np.random.default_rng(seed)
    states = np.vstack([states] * 2)
    n = len(states)
    strata = np.repeat([0, 1], n // 2)
    units = rng.integers(0, 6, n)
    units[:k] = units[n // 2 : n // 2 + k] = np.arange(k)  # each stratum has k units
    order = rng.permutation(n)
    states, strata, units = states[order], strata[order], units[order]
    near = rng.normal(size=(n, 2))
    check(states, join_patterns(states, strata, k, units, near), strata, k, units)


@pytest.mark.parametrize(("most_state", "least_share"), [(1, 0.98), (3, 0.95)])
def test_the_fewest_values_are_blanked_nearly_always(most_state, least_share):
    rng = np.random.default_rng(5)
    best, ours, least = 0, 0, 0
    for _ in range(200):
        n, d, k = rng.integers(4, 9), rng.integers(1, 4), rng.integers(2, 4)
        states = rng.integers(1, most_state + 1, (n, d)) * (rng.random((n, d)) < 0.25)
        blanked = join_patterns(states, np.zeros(n, dtype=np.int64), int(k)).blanked
        fewest = fewest_blanked(states.tolist(), int(k))
        best += blanked == fewest
        ours, least = ours + blanked, least + fewest
        assert blanked <= 3 * fewest
    assert best >= least_share * 200
    assert ours <= 1.02 * least


def test_a_rare_pattern_helps_another_rather_than_one_that_needs_no_help():
    states = np.array([[0, 1]] * 4 + [[1, 0]] * 2 + [[0, 0]])
    assert join_patterns(states, np.zeros(7, dtype=np.int64), 3).blanked == 1


def test_a_pattern_in_the_middle_is_shared_out():
    states = np.array([[0, 0]] * 2 + [[1, 0]] * 2 + [[0, 1]] * 2)
    assert join_patterns(states, np.zeros(6, dtype=np.int64), 3).blanked == 2


def test_the_nearest_records_are_lent():
    states = np.array([[0, 0]] * 6 + [[0, 1]])
    near = np.array([[9.0], [1.0], [8.0], [0.5], [7.0], [6.0], [0.0]])
    found = join_patterns(states, np.zeros(7, dtype=np.int64), 3, None, near)
    assert np.flatnonzero(found.states[:, 1] == 1).tolist() == [1, 3, 6]


def test_codes_are_lost_only_where_they_differ():
    states = np.array([[2, 0]] * 3 + [[3, 0]])
    found = join_patterns(states, np.zeros(4, dtype=np.int64), 2)
    assert found.blanked == 2  # one code of each sort
    assert sorted(found.states[:, 0].tolist()) == [1, 1, 2, 2]


def test_many_patterns_of_one_record_each():
    rng = np.random.default_rng(0)
    states = (rng.random((3000, 14)) < 0.5).astype(np.int64)
    strata = np.zeros(3000, dtype=np.int64)
    found = join_patterns(states, strata, 3)
    check(states, found, strata, 3)
    assert found.blanked < 0.25 * (states == 0).sum()


@given(st.lists(st.lists(st.integers(0, 9), min_size=40, max_size=40), min_size=1, max_size=9))
def test_distinct_rows_of_many_columns(rows):
    states = np.array(rows)
    found, which = distinct_rows(states)
    assert np.array_equal(found[which], states)
    assert sorted(map(tuple, found.tolist())) == sorted(set(map(tuple, states.tolist())))


def naive_state(column, policy):
    """State of a group, from those of its records."""
    present = sum(state == 0 for state in column)
    has_value = {
        "fill": present > 0,
        "majority": 2 * present > len(column),
        "pattern": present == len(column),
    }[policy]
    if has_value:
        return 0
    return column[0] if len(set(column)) == 1 and column[0] != 0 else 1


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20),
    st.sampled_from(["fill", "majority", "pattern"]),
)
def test_states_of_groups_equal_their_naive_twin(pairs, policy):
    labels = np.unique([g for g, _ in pairs], return_inverse=True)[1].reshape(-1)
    states = np.array([[s] for _, s in pairs])
    g = int(labels.max()) + 1
    expected = [[naive_state(states[labels == one, 0].tolist(), policy)] for one in range(g)]
    assert group_states(states, labels, g, policy).tolist() == expected
