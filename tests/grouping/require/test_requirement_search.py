"""The repair and the search: every group satisfies everything, never worse than merging, near the optimum."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_requirements as naive
from algorithms.refine.test_refine import annealed
from microagg import InputError
from microagg.algorithms.refine.anneal import Heat, PoolSettings
from microagg.base.progress import STOP, new_state
from microagg.compile import threads
from microagg.encode.strata import count_units
from microagg.grouping.require.amount_rules import LargestShare, Population, PPercent, RiskLimit
from microagg.grouping.require.requirement import check_feasible, demands_of, violations_of
from microagg.grouping.require.requirement_search import repair, satisfy
from microagg.grouping.require.value_rules import (
    Closeness,
    Distinct,
    Entropy,
    Units,
)
from microagg.kernels.labels import canonical_labels, sum_of_squares
from oracles import squares_within

KINDS = {
    "units": lambda rng, n: Units(rng.integers(0, max(n // 3, 4), n), 3),
    "distinct": lambda rng, n: Distinct(rng.integers(0, 4, n), 2),
    "entropy": lambda rng, n: Entropy(rng.integers(0, 4, n), 1.8),
    "ordered": lambda rng, n: Closeness(rng.integers(0, n, n), 0.25),
    "equal": lambda rng, n: Closeness(rng.integers(0, 3, n), 0.4, ordered=False),
    "p_percent": lambda rng, n: PPercent(rng.lognormal(size=n), 20.0),
    "p_percent of firms": lambda rng, n: PPercent(
        rng.lognormal(size=n), 20.0, rng.integers(0, max(n // 2, 4), n)
    ),
    "largest": lambda rng, n: LargestShare(rng.lognormal(size=n), 2, 80.0),
    "population": lambda rng, n: Population(rng.uniform(1, 50, n), 90.0),
    "risk": lambda rng, n: RiskLimit(rng.uniform(1, 50, n), 0.02),
}


@st.composite
def problems(draw, most=40, least=6):
    """Records, some requirements that the whole table satisfies, any groups, perhaps weights."""
    n, seed = draw(st.integers(least, most)), draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, draw(st.integers(1, 3))))
    if draw(st.booleans()):
        X = np.round(X)  # records and centroids that coincide
    names = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=2, unique=True))
    wanted = [KINDS[name](rng, n) for name in names]
    assume(all(one.feasible() for one in wanted))
    k = draw(st.integers(1, 3))
    labels = canonical_labels(rng.integers(0, max(n // 3, 1), n))
    weights = rng.uniform(0.5, 4, n) if draw(st.booleans()) else None
    return X, k, wanted, labels, weights


def groups_of(labels):
    return [np.flatnonzero(labels == g).tolist() for g in range(labels.max() + 1)]


def check_groups(labels, k, wanted):
    """Every group has k records and satisfies everything; numbered by first appearance."""
    assert list(dict.fromkeys(labels.tolist())) == list(range(labels.max() + 1))
    for group in groups_of(labels):
        assert len(group) >= k
        for one in wanted:
            assert one.violation(group) == 0


@given(problems())
def test_repaired_groups_satisfy_everything_and_are_unions(problem):
    X, k, wanted, labels, weights = problem
    found = repair(X, k, wanted, labels, weights=weights)
    check_groups(found, k, wanted)
    for group in groups_of(labels):
        assert len(set(found[group].tolist())) == 1
    for merged in groups_of(found):  # nothing is merged without need
        parts = set(labels[merged].tolist())
        short = [
            g
            for g in parts
            if (labels == g).sum() < k
            or any(one.violation(np.flatnonzero(labels == g)) > 0 for one in wanted)
        ]
        assert len(parts) == 1 or short


@given(problems())
def test_searched_groups_satisfy_everything_and_lose_no_more_than_repaired_ones(problem):
    X, k, wanted, labels, weights = problem
    found = satisfy(X, k, wanted, labels, weights=weights, effort="fast")
    check_groups(found, k, wanted)
    repaired = repair(X, k, wanted, labels, weights=weights)
    loss = squares_within(X, found, weights)
    assert loss <= squares_within(X, repaired, weights) * (1 + 1e-9) + 1e-12
    assert sum_of_squares(X, found, weights) == pytest.approx(loss, rel=1e-9, abs=1e-9)


@settings(max_examples=40)
@given(problems(most=9))
def test_no_partition_of_a_small_table_is_better_than_all_of_them(problem):
    X, k, wanted, labels, weights = problem
    optimum = naive.best_partition(X, k, wanted, weights)
    found = satisfy(X, k, wanted, labels, weights=weights)
    loss = squares_within(X, found, weights)
    assert loss >= optimum * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize("name", sorted(KINDS))
def test_small_tables_are_mostly_solved_to_the_optimum(name):
    optimal = tried = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X, wanted = rng.normal(size=(8, 2)), [KINDS[name](rng, 8)]
        if not wanted[0].feasible():
            continue
        best = naive.best_partition(X, 2, wanted)
        found = satisfy(X, 2, wanted, canonical_labels(np.arange(8) // 2))
        loss = squares_within(X, found)
        tried += 1
        optimal += loss <= best * (1 + 1e-9)
        if tried == 12:
            break
    assert tried >= 8
    assert optimal >= 0.75 * tried


def test_every_step_of_the_search_keeps_its_books():
    heat = Heat(0.5, 0.5, 1.0)  # as hot at the end: few steps are the first of many
    for name in sorted(KINDS):
        rng = np.random.default_rng(5)
        n, k = 60, 2
        X, wanted, weights = rng.normal(size=(n, 2)), [KINDS[name](rng, n)], rng.uniform(1, 2, n)
        labels = repair(X, k, wanted, canonical_labels(np.arange(n) // 4), weights=weights)
        demands, search = demands_of(wanted), PoolSettings(4, 60, False, 0.3)
        for steps in (*range(1, 20), 60):
            after, sse = annealed(X, weights, demands, labels, k, search, steps, heat)
            check_groups(after, k, wanted)
            assert sse == pytest.approx(sum_of_squares(X, after, weights), rel=1e-9)


def several(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, [Units(rng.integers(0, n // 3, n), 5), Distinct(rng.integers(0, 6, n), 3)]


def test_the_result_does_not_depend_on_threads(monkeypatch):
    X, wanted = several()
    found = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "thread_count", lambda c=count: c)
        found.append(satisfy(X, 5, wanted, effort="fast"))
    assert np.array_equal(*found)
    assert violations_of(found[0], 5, wanted).sum() == 0


def test_a_seed_gives_the_same_groups_and_another_one_others():
    X, wanted = several(800)
    first, again, other = (satisfy(X, 5, wanted, effort="fast", random_state=s) for s in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_search_loses_much_less_than_merging():
    X, wanted = several()
    labels = canonical_labels(np.arange(len(X)) // 5)
    merged = sum_of_squares(X, repair(X, 5, wanted, labels))
    assert sum_of_squares(X, satisfy(X, 5, wanted, labels, effort="fast")) < 0.5 * merged


def test_equal_weights_are_no_weights():
    X, wanted = several(400)
    plain = satisfy(X, 5, wanted, effort="fast")
    assert np.array_equal(plain, satisfy(X, 5, wanted, effort="fast", weights=np.full(400, 1.0)))


def test_one_unit_with_most_records():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    units = np.where(rng.random(3000) < 0.9, 0, rng.integers(1, 50, 3000))
    found = satisfy(X, 3, [Units(units, 3)], np.arange(3000) // 3, effort="fast")
    assert count_units(found, units).min() >= 3
    assert found.max() > 40


def test_a_stopped_search_returns_valid_groups():
    X, wanted = several(600)
    state = new_state()
    state[STOP] = 1
    assert violations_of(satisfy(X, 5, wanted, state=state), 5, wanted).sum() == 0


def test_a_time_limit_ends_the_best_search():
    X, wanted = several(600)
    found = satisfy(X, 5, wanted, effort="best", time_limit=0.5)  # without one it takes turns
    assert violations_of(found, 5, wanted).sum() == 0


def test_records_that_are_all_alike():
    found = satisfy(np.zeros((40, 2)), 3, [Distinct(np.arange(40) % 4, 2)])
    check_groups(found, 3, [Distinct(np.arange(40) % 4, 2)])


def test_without_requirements_only_k_counts():
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    assert satisfy(X, 2, [], np.array([0, 1, 0, 1])).tolist() == [0, 0, 1, 1]


def test_what_no_groups_could_satisfy_is_refused():
    X = np.zeros((4, 1))
    with pytest.raises(
        InputError, match=r"3 different values of sex are asked .* whole table has 2"
    ):
        satisfy(X, 2, [Distinct(np.array([0, 1, 0, 1]), 3, "sex")])
    with pytest.raises(InputError, match="k=5 needs at least 5 records"):
        satisfy(X, 5, [])


def test_utilities_of_the_reference_table(reference_table):
    from microagg.encode.scale import fit_scale
    from microagg.kernels.outside_in import mdav_labels

    table = reference_table("eia")
    units = table["UTILITYID"].to_numpy()
    raw = np.column_stack([column.to_numpy().astype(float) for column in table.columns[5:]])
    X = fit_scale(raw).apply(raw)
    found = satisfy(X, 3, [Units(units, 3)], effort="fast")
    assert count_units(found, units).min() >= 3
    loss = 100 * sum_of_squares(X, found) / ((len(X) - 1) * X.shape[1])
    assert loss < 3.5
    merged = repair(X, 3, [Units(units, 3)], canonical_labels(mdav_labels(X, 3, new_state())))
    assert sum_of_squares(X, found) < 0.4 * sum_of_squares(X, merged)


def test_the_cheapest_partner_is_taken():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [14.0], [15.0]])
    labels = np.array([0, 0, 1, 1, 2, 2])
    units = np.array([0, 1, 2, 2, 3, 4])  # the middle group has one unit
    assert repair(X, 2, [Units(units, 2)], labels).tolist() == [0, 0, 1, 1, 1, 1]


def test_too_few_units_are_refused():
    with pytest.raises(
        InputError,
        match=r"k=3 needs at least 3 distinct values of the unit hid; .* has 2\. Lower k",
    ):
        check_feasible([Units(np.array([0, 1, 0, 1]), 3, "hid")])
    check_feasible([Units(np.array([0, 1, 2]), 3, "hid")])
