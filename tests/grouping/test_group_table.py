"""Groups over cells: never across them, k in each, bounds that add up, stopped in order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microagg
import oracles
from microagg import InputError, StopSearch
from microagg.encode.space import Space
from microagg.grouping.group_table import bound_over_cells, group, merge_agreeing
from microagg.grouping.one_cell import Problem
from microagg.grouping.require.value_rules import Units
from microagg.plan.block import Block


@st.composite
def split_tables(draw):
    k = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(k, 4 * k + 1), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    cells = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return rng.normal(size=(len(cells), 2)), cells, k, rng


@given(split_tables(), st.sampled_from([None, "weights", "units"]))
@settings(max_examples=60)
def test_groups_never_cross_cells_and_have_k_units(table, more):
    X, cells, k, rng = table
    weights = rng.uniform(1, 3, len(X)) if more == "weights" else None
    if weights is not None:
        weights /= weights.mean()
    units = rng.integers(0, 9, len(X))
    for cell in set(cells.tolist()):
        units[np.flatnonzero(cells == cell)[:k]] = np.arange(k)
    wanted = [Units(units, k)] if more == "units" else []
    block = Block(k=k, method="mdav")
    found = group(Problem(Space(X, "none"), block, wanted, weights), cells)
    oracles.check_partition(found, X, k)
    for g in range(found.n_groups):
        assert len(set(cells[found.labels == g].tolist())) == 1
        assert more != "units" or len(set(units[found.labels == g].tolist())) >= k
    if weights is None:
        assert found.sse == pytest.approx(oracles.squares_within(X, found.labels))


@pytest.mark.parametrize(("given", "told"), [({}, "balanced"), ({"effort": "fast"}, "fast")])
def test_the_effort_that_is_told_is_that_of_the_search_under_requirements(given, told):
    X, cells = np.random.default_rng(0).normal(size=(40, 2)), np.zeros(40, dtype=np.int64)
    block = Block(k=3, method="auto", options=given)
    found = group(Problem(Space(X, "none"), block, [Units(np.arange(40) // 2, 3)]), cells)
    assert found.options["effort"] == told


def test_the_number_of_cells_and_threads_does_not_change_the_groups(monkeypatch):
    rng = np.random.default_rng(0)
    X, cells = rng.normal(size=(200, 3)), rng.integers(0, 5, 200)
    answers = set()
    for count in (1, 2, 7):
        monkeypatch.setattr("microagg.grouping.group_table.thread_count", lambda count=count: count)
        found = group(Problem(Space(X, "none"), Block(k=3)), cells)
        answers.add((tuple(found.labels.tolist()), found.sse))
    assert len(answers) == 1


def test_bounds_add_up_and_hold():
    rng = np.random.default_rng(1)
    X, cells = rng.normal(size=(36, 2)), np.repeat([0, 1, 2], 12)
    found = group(Problem(Space(X, "none"), Block(k=3, method="optimal")), cells)
    assert found.gap == 0
    alone = sum(
        microagg.partition(X[cells == cell], 3, method="optimal", scale="none").sse
        for cell in range(3)
    )
    assert found.sse == pytest.approx(alone)
    bound = bound_over_cells(Space(X, "none"), cells, 3)
    assert 0.8 * found.sse < bound <= found.sse * (1 + 1e-12)


def test_bounds_of_cells_with_unlike_weights_hold():
    # A light cell's bound is about its own mean weight: taken as it is, the sum would be above the SSE.
    rng = np.random.default_rng(1)
    X, cells = rng.normal(size=(36, 2)), np.repeat([0, 1], [30, 6])
    weights = np.where(cells == 0, 0.1, 5.5) * rng.uniform(0.9, 1.1, 36)
    block = Block(k=3, method="mdav", bound="fast")
    found = group(Problem(Space(X, "none"), block, (), weights / weights.mean()), cells)
    assert 0 < found.lower_bound < 0.9 * found.sse


def test_who_stops_still_gets_groups_of_every_record():
    rng = np.random.default_rng(2)
    X, cells = rng.normal(size=(4000, 4)), np.repeat([0, 1], 2000)

    def stop(done):
        raise StopSearch

    found = group(Problem(Space(X, "none"), Block(k=5, options={"effort": "best"})), cells, stop)
    assert found.stopped
    assert min(found.sizes) >= 5
    assert len(found.labels) == 4000


def test_an_error_of_the_listener_comes_out():
    X, cells = np.random.default_rng(3).normal(size=(4000, 4)), np.repeat([0, 1], 2000)

    def fail(done):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        group(Problem(Space(X, "none"), Block(k=5, options={"effort": "best"})), cells, fail)


def test_progress_rises_to_all_records():
    X, cells = np.random.default_rng(4).normal(size=(300, 2)), np.repeat([0, 1, 2], 100)
    heard = []
    problem = Problem(Space(X, "none"), Block(k=5, method="mdav"))
    group(problem, cells, lambda d: heard.append(int(d)))
    assert heard == sorted(heard)
    assert heard[-1] == 300


def agreeing(seed):
    """Return groups of five, in two cells, of which half agree in nearly all of ten columns."""
    rng = np.random.default_rng(seed)
    codes = np.where(rng.random((200, 10)) < 0.06, 1, 0) + np.repeat(np.arange(20), 10)[:, None] % 3
    codes[100:] = rng.integers(0, 9, (100, 10))
    X = codes.astype(float)
    cells = np.arange(200) // 5 % 2
    return np.arange(200) // 5, X, cells, codes


def expected_standing(codes, labels):
    """Of each pair of a row and a record of a group, the chance that they are equal in all columns."""
    total = 0.0
    for group_of in np.unique(labels):
        rows = codes[labels == group_of]
        chances = [np.mean(column[:, None] == column[None, :]) for column in rows.T]
        total += len(rows) ** 2 * np.prod(chances)
    return total


def test_groups_that_agree_are_merged_until_few_rows_are_records_by_chance():
    before, X, cells, codes = agreeing(0)
    assert expected_standing(codes, before) > 0.2 * 200
    merged = merge_agreeing(before, X, cells, codes, 0.05)
    assert expected_standing(codes, merged) <= 0.05 * 200
    assert 2 < len({*merged}) < len({*before})
    for rows in (merged[before == label] for label in {*before}):
        assert len({*rows}) == 1  # whole groups
    assert all(len({*cells[merged == label]}) == 1 for label in {*merged})
    assert (merge_agreeing(before, X, cells, codes, 5.0) == before).all()


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_members_that_exchange_their_values_get_the_same_merged_groups(seed):
    """Then the merge says no more than the lists, and the theorem on dealing holds."""
    before, X, cells, codes = agreeing(1)
    rng = np.random.default_rng(seed)
    exchanged = codes.copy()
    for label in {*before}:
        rows = np.flatnonzero(before == label)
        for column in exchanged.T:
            column[rows] = column[rng.permutation(rows)]
    merged = merge_agreeing(before, X, cells, codes, 0.05)
    same = merge_agreeing(before, exchanged.astype(float), cells, exchanged, 0.05)
    assert (same == merged).all()


def test_groups_of_equal_records_stay_apart_where_others_can_be_merged():
    """Together they would give more equal rows; and a cell of one group keeps no other cell from merging."""
    before, X, _, codes = agreeing(0)
    codes[:20] = 0
    codes[20:, 0] = np.arange(20, 200)  # all different
    cells = (np.arange(200) >= 10).astype(int)
    alone = expected_standing(codes, before)
    merged = merge_agreeing(before, X, cells, codes, 0.4)
    assert expected_standing(codes, merged) <= 0.4 * 200 < alone
    assert merged[:10].tolist() == [0] * 5 + [1] * 5


def test_a_share_that_no_merge_reaches_is_refused():
    before, X, cells, codes = agreeing(0)
    with pytest.raises(InputError, match=r"standing = 0\.05 is not reached"):
        merge_agreeing(before, X, cells, np.zeros_like(codes), 0.05)
