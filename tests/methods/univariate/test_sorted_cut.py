"""Sorting, labels and the checks around the optimal cut."""

from __future__ import annotations

import numpy as np
import pytest

from methods.univariate.rational import COSTS, Groups, best_ends
from microagg.errors import InputError
from microagg.methods.univariate import ends, line, sorted_cut
from microagg.methods.univariate.halving import halving
from microagg.methods.univariate.order import labels_by_row, sorted_order
from microagg.methods.univariate.sorted_cut import cut_sorted
from microagg.progress import DONE, STOP, new_state

FUNCTIONS = (
    sorted_cut.hansen_mukherjee,
    sorted_cut.simple,
    sorted_cut.simple_plus,
    sorted_cut.staggered,
    sorted_cut.wilber,
    sorted_cut.galil_park,
    sorted_cut.fastest,
)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_labels_in_the_order_of_the_rows(function):
    assert function(np.array([[10.0], [1.0], [11.0], [2.0]]), 2).labels.tolist() == [0, 1, 0, 1]
    assert function(np.array([[5.0], [5.0], [5.0], [5.0]]), 2).labels.tolist() == [0, 0, 1, 1]
    rng = np.random.default_rng(0)
    for cost in COSTS:
        x = rng.integers(0, 50, 300).astype(float)
        before = x.copy()
        labels, _, lost = function(x[:, None], 4, cost=cost)
        groups = [x[labels == g] for g in range(labels.max() + 1)]
        within = sum(np.square(group - group.mean()).sum() for group in groups)
        assert lost == pytest.approx(within / np.square(x - x.mean()).sum())
        assert np.array_equal(x, before)
        assert labels.dtype == np.int64
        order = sorted(range(300), key=lambda row: (x[row], row))
        expected = np.empty(300, dtype=int)
        start = 0
        for g, end in enumerate(best_ends(x[order], 4, cost)):
            expected[order[start:end]] = g
            start = end
        seen = list(dict.fromkeys(expected.tolist()))
        assert labels.tolist() == [seen.index(g) for g in expected.tolist()]


def _hostile(n, rng):
    """Columns that try the packing of values and rows into one number."""
    yield rng.random(n)
    yield rng.standard_normal(n) * 10.0 ** rng.integers(-300, 300, n)
    yield rng.integers(0, 30, n) * 0.1
    yield np.zeros(n)
    yield -np.arange(n) * 1.0
    yield rng.integers(0, 2, n) * 5e-324 * rng.choice([-1, 1], n)
    yield rng.choice([1.7e308, -1.7e308, 0.0], n)
    # Close together beside others of the opposite sign: keys say nothing about their order.
    yield np.where(rng.random(n) < 0.01, -1.0, 1e9 + rng.random(n))
    yield np.where(rng.random(n) < 0.01, -1.0, 1.0 + rng.integers(0, 9, n) * 2.0**-52)


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 199_999, 200_000, 200_001])
def test_sorted_order_is_stable(n):
    for x in _hostile(n, np.random.default_rng(n)):
        before = x.copy()
        order, values = sorted_order(x)
        assert np.array_equal(order, np.argsort(x, kind="stable"))
        assert np.array_equal(values, x[order])
        assert np.array_equal(x, before)


def test_zeros_of_both_signs_are_equal():
    x = np.where(np.arange(200_000) % 2, -0.0, 0.0)
    order, _ = sorted_order(x)
    assert np.array_equal(order, np.arange(200_000))


def test_labels_of_a_large_table():
    rng = np.random.default_rng(1)
    x = rng.permutation(200_000) * 1.0
    order, values = sorted_order(x)
    ends = cut_sorted(values, 5)
    labels = labels_by_row(order, ends)
    rank = np.searchsorted(ends, x.astype(int), side="right")
    first = np.unique(rank, return_index=True)[1]
    assert np.array_equal(labels[first[np.argsort(first)]], np.arange(len(ends)))
    assert np.array_equal(labels[first[rank]], labels)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, bool])
def test_other_numbers_are_taken_as_doubles(dtype):
    x = np.sort(np.random.default_rng(2).integers(0, 2 if dtype is bool else 90, 50)).astype(dtype)
    assert cut_sorted(x, 3).tolist() == best_ends(x.astype(float), 3, "sse")
    assert cut_sorted(x.tolist(), 3).tolist() == best_ends(x.astype(float), 3, "sse")


def test_the_peer_s_example():
    # PUBLISHED.md, section 3: the reference implementation gives 189.6 here.
    x = np.array([4, 5, 6, 7, 9, 11, 11, 11, 22, 24.0])
    group = Groups(x, len(x), "sse")
    assert group.of(cut_sorted(x, 3)) / group.scale == pytest.approx(105 + 2 / 3)


def test_what_is_refused():
    with pytest.raises(InputError, match="ascending"):
        cut_sorted([2.0, 1.0], 1)
    with pytest.raises(InputError, match="missing values"):
        cut_sorted([1.0, np.nan], 1)
    for k in (0, 3, 1.5, True):
        with pytest.raises(InputError, match=r"whole number of at least 1|k=3 needs at least 3"):
            cut_sorted([1.0, 2.0], k)
    with pytest.raises(InputError, match="one column"):
        cut_sorted([[1.0], [2.0]], 1)
    with pytest.raises(InputError, match="Records must be numbers"):
        cut_sorted(["a", "b"], 1)
    with pytest.raises(InputError, match="method='mdav' is not known here"):
        cut_sorted([1.0, 2.0], 1, method="mdav")
    with pytest.raises(InputError, match="cost='l2' is not known"):
        cut_sorted([1.0, 2.0], 1, cost="l2")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_reports_and_stops(function):
    X = np.random.default_rng(3).random((1000, 1))
    state = new_state()
    function(X, 3, state=state)
    assert state[DONE] == 1000
    state = new_state()
    state[STOP] = 1
    function(X, 3, state=state)
    assert state[DONE] == 0


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("k", [1, 3])
def test_two_threads_find_the_same_groups(cost, k, monkeypatch):
    rng = np.random.default_rng(k)
    n = ends.WORTH_TWO_THREADS
    for x in (
        rng.random(n),
        rng.integers(0, n // 4, n) * 1.0,
        np.exp(5 * rng.standard_normal(n)),
        np.arange(n) * 1.0,  # partitions that need not meet
        np.zeros(n),
    ):
        x.sort()
        state = new_state()
        both = sorted_cut.fastest(x[:, None], k, cost=cost, state=state)
        assert state[DONE] == n
        with monkeypatch.context() as patch:
            patch.setattr(ends, "WORTH_TWO_THREADS", n + 1)
            alone = sorted_cut.fastest(x[:, None], k, cost=cost)
        assert np.array_equal(both.labels, alone.labels)


def test_a_second_thread_that_never_meets_the_first_is_not_believed(monkeypatch):
    # Evenly spaced values in groups of exactly k: where the second thread starts decides its cuts.
    asked = []
    meet = ends._meet
    monkeypatch.setattr(ends, "_meet", lambda *a: asked.append(meet(*a)) or asked[-1])
    n = ends.WORTH_TWO_THREADS
    found = {cut_sorted(np.arange(m) * 1.0, 3).tobytes() for m in range(n, n + 6)}
    assert len(found) == 6
    assert not all(asked)
    for m in range(n, n + 6):
        sizes = np.diff(cut_sorted(np.arange(m) * 1.0, 3), prepend=0)
        assert sizes.min() == 3
        assert sizes.sum() == m


def test_progress_counts_both_threads(monkeypatch):
    n, seen = ends.WORTH_TWO_THREADS, []
    state = new_state()

    def second_first(first, second):
        second()
        seen.append(int(state[DONE]))
        first()
        seen.append(int(state[DONE]))

    monkeypatch.setattr(ends, "in_two_threads", second_first)
    sorted_cut.simple_plus(np.random.default_rng(3).random((n, 1)), 3, state=state)
    assert seen == [0, n]


def test_a_line_made_wider_gives_its_state_back():
    x = np.sort(np.random.default_rng(4).random(3000))
    given = line.new_line(x, 70, 0)
    given.q[line.PLACE, line.UNTIL] = 2000
    halving(given, new_state())
    wide = line.wider(given)
    given.w[:], given.q[:] = 0, 0
    line.narrower(wide, given)
    given.q[line.PLACE, line.UNTIL] = 3000
    halving(given, new_state())  # partitions have nothing in common: costs are carried along
    whole = line.new_line(x, 70, 0)
    halving(whole, new_state())
    assert np.array_equal(given.back[70:], whole.back[70:])


def test_two_threads_stop():
    X = np.random.default_rng(3).random((ends.WORTH_TWO_THREADS, 1))
    state = new_state()
    state[STOP] = 1
    sorted_cut.fastest(X, 3, state=state)
    assert state[DONE] == 0
