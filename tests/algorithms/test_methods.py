"""The promises that every method makes, for each method of the registry.

A new entry in microagg.plan.registry is tested here without a line of its own.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given

import microagg
import oracles
from microagg.base.progress import DONE, STOP, new_state
from strategies import EDGE_SIZES, tables, whole_numbers

# Those of numbers and k; methods of categories and of closeness have tests of their own.
METHODS = [method.name for method in microagg.methods() if method.for_numbers]
ONE_COLUMN = {method.name for method in microagg.methods() if method.one_column}
ORDERS = {method.name for method in microagg.methods() if method.order}
DRAWS = {m.name for m in microagg.methods() if "random_state" in (o.name for o in m.options)}
# For tests in which the number of attempts does not matter, only their time.
FEW = {"starts": 2, "n_projections": 2, "nodes": 0, "generations": 20}
# Methods for small tables.
SMALL = {"optimal", *(m.name for m in microagg.methods() if m.most_records is not None)}
pytestmark = pytest.mark.parametrize("method", METHODS)


def fitting(X, method):
    """The data, or their first column for a method that takes one only."""
    return np.ascontiguousarray(X[:, :1]) if method in ONE_COLUMN else X


def records(method, usual):
    """How many records to try: few where a method takes seconds for more."""
    return min(usual, 18) if method in SMALL else usual


def few_attempts(method):
    """Options that ask for few attempts, for a method that makes many."""
    options = next(m.options for m in microagg.methods() if m.name == method)
    return {option.name: FEW[option.name] for option in options if option.name in FEW}


@given(table=tables())
def test_partition_is_valid_and_its_loss_is_true(method, table):
    X, k = fitting(table[0], method), table[1]
    p = microagg.partition(X, k, method=method)
    oracles.check_partition(p, X, k)
    oracles.check_loss(p, X)
    assert p.method == method


@given(table=tables())
def test_means_are_kept_and_input_is_unchanged(method, table):
    X, k = fitting(table[0], method), table[1]
    before = X.copy()
    protected = microagg.Microaggregator(k=k, method=method).fit_transform(X)
    assert np.array_equal(X, before)
    spread = np.ptp(X, axis=0)
    assert np.all(np.abs(protected.mean(axis=0) - X.mean(axis=0)) <= 1e-9 * spread + 1e-9)


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_sizes_at_which_the_last_groups_change(method, k):
    for n in sorted({size(k) for size in EDGE_SIZES}):
        for d in (1,) if method in ONE_COLUMN else (1, 3):
            X = np.random.default_rng(n + 100 * k + d).normal(size=(n, d))
            oracles.check_partition(microagg.partition(X, k, method=method), X, k)


def test_k_of_one_loses_nothing(method):
    X = fitting(np.random.default_rng(1).normal(size=(20, 2)), method)
    p = microagg.partition(X, 1, method=method)
    oracles.check_partition(p, X, 1)
    assert p.sse == 0


def test_all_records_equal(method):
    X = fitting(np.full((17, 3), 2.5), method)
    p = microagg.partition(X, 4, method=method)
    oracles.check_partition(p, X, 4)
    assert p.sse == 0
    assert p.information_loss == 0


@pytest.mark.parametrize("scale", ["zscore", "range", "robust", "none"])
def test_an_offset_changes_nothing(method, scale):
    # Whole numbers with many ties: adding the offset is exact, so not even a tie may turn.
    X = whole_numbers(np.random.default_rng(3), records(method, 60), 3, high=8)
    X = fitting(X, method)
    plain = microagg.partition(X, 3, method=method, scale=scale)
    for offset in (1e9, -1e12):
        moved = microagg.partition(X + offset, 3, method=method, scale=scale)
        assert moved.labels.tolist() == plain.labels.tolist(), offset
        assert moved.sse == plain.sse, offset


def test_a_power_of_two_as_unit_changes_nothing(method):
    X = fitting(np.random.default_rng(4).normal(size=(records(method, 60), 3)), method)
    plain = microagg.partition(X, 3, method=method)
    units = np.array([4, 0.125, 2.0**600])[: X.shape[1]]
    other = microagg.partition(X * units, 3, method=method)
    assert other.labels.tolist() == plain.labels.tolist()


@pytest.mark.parametrize("factor", [1e308, 1e-308])
def test_huge_and_tiny_values(method, factor):
    X = fitting(np.random.default_rng(5).uniform(-1.7, 1.7, size=(40, 2)) * factor, method)
    p = microagg.partition(X, 3, method=method)
    oracles.check_partition(p, X, 3)
    assert 0 < p.information_loss < 100


def test_row_order_does_not_matter_without_ties(method):
    if method in DRAWS:
        pytest.skip("draws rows or directions at random: which ones depends on the order of rows")
    rng = np.random.default_rng(6)
    X = fitting(rng.normal(size=(80, 3)), method)
    order = rng.permutation(80)
    plain = microagg.partition(X, 3, method=method)
    shuffled = microagg.partition(X[order], 3, method=method)
    assert oracles.same_groups(plain.labels[order].tolist(), shuffled.labels.tolist())


def test_same_answer_every_time_and_from_many_threads(method):
    X = fitting(np.random.default_rng(7).normal(size=(records(method, 200), 4)), method)
    expected = microagg.partition(X, 3, method=method).labels.tolist()
    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(
            lambda _: microagg.partition(X, 3, method=method).labels.tolist(), range(4)
        )
    assert all(answer == expected for answer in answers)


def test_memory_layout_and_type_do_not_matter(method):
    X = fitting(whole_numbers(np.random.default_rng(8), records(method, 50), 3), method)
    layouts = {
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "read only": _read_only(X),
        "float32": X.astype(np.float32),
        "integer": X.astype(np.int16),
        "list": X.tolist(),
    }
    expected = microagg.partition(X, 4, method=method).labels.tolist()
    for layout, laid_out in layouts.items():
        again = microagg.partition(laid_out, 4, method=method)
        assert again.labels.tolist() == expected, layout


def _read_only(X):
    copy = X.copy()
    copy.setflags(write=False)
    return copy


def test_progress_rises_to_all_records(method):
    n = records(method, 200)
    X = fitting(np.random.default_rng(9).normal(size=(n, 2)), method)
    reports = []
    microagg.partition(X, 3, method=method, progress=reports.append)
    assert reports == sorted(reports)
    assert reports[-1] == n


def test_who_is_asked_to_stop_does_nothing_more(method):
    row = next(m for m in microagg.methods() if m.name == method)
    n = records(method, 200)
    X = fitting(np.random.default_rng(0).normal(size=(n, 2)), method)
    state = new_state()
    state[STOP] = 1
    row.function(X.shape[1])(X, 3, state=state, **few_attempts(method))
    # optimal gives valid groups all the same, see optimal/test_optimal.py.
    assert state[DONE] < n or method == "optimal"


def test_registry_row_is_complete(method):
    row = next(m for m in microagg.methods() if m.name == method)
    assert row.family
    assert row.time.startswith("O(")
    assert row.summary
    assert row.paper or row.family == "our own"
    assert row.guarantee in ("exact", "approximation", "heuristic")
    assert row.exact == (row.guarantee == "exact")
    function = row.function(1 if row.one_column else 2)
    assert function.__doc__
    json.dumps(row.as_dict())
