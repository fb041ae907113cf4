"""Sorting, labels and the checks around the optimal cut."""

import os
import time
from threading import Event, Thread

import numpy as np
import pytest

from microagg.algorithms.univariate import chain, order, sorted_cut
from microagg.algorithms.univariate.order import labels_by_row, sorted_order
from microagg.algorithms.univariate.sorted_cut import cut_sorted
from microagg.algorithms.univariate.stamm_schaub import ALGORITHMS
from microagg.algorithms.univariate.windows import SortedLine
from microagg.base.progress import DONE, STOP, new_state
from microagg.errors import InputError
from microagg.kernels.labels import canonical_labels
from rational import COSTS, Groups, best_ends

FUNCTIONS = (
    sorted_cut.hansen_mukherjee,
    sorted_cut.simple,
    sorted_cut.simple_plus,
    sorted_cut.staggered,
    sorted_cut.wilber,
    sorted_cut.galil_park,
    sorted_cut.fastest,
)


def _use(threads, monkeypatch, stretch=10_000):
    """Let the package believe that there are this many processors, in stretches of some values each."""
    monkeypatch.setattr(chain, "_STRETCH", stretch)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(threads), raising=False)


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


@pytest.mark.parametrize("n", [1, 2, 3, 1000, order._PART, order._PART + 1, 600_000])
def test_sorted_order_is_stable(n):
    for x in _hostile(n, np.random.default_rng(n)):
        before = x.copy()
        rows, values = sorted_order(x)
        assert np.array_equal(rows, np.argsort(x, kind="stable"))
        assert np.array_equal(values, x[rows])
        assert np.array_equal(x, before)


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_order_and_labels_do_not_depend_on_the_number_of_threads(threads, monkeypatch):
    monkeypatch.setattr(order, "_PART", 500)  # many parts and chunks, of which some are empty
    monkeypatch.setattr(order, "_CHUNK", 1024)
    _use(threads, monkeypatch)
    if threads == 3:  # as for more values than have ever been tried
        monkeypatch.setattr(order, "_MOST_SPLITS", 8)
        monkeypatch.setattr(order, "_MOST_CHUNKS", 5)
    for x in _hostile(30_000, np.random.default_rng(threads)):
        rows, values = sorted_order(x)
        expected = np.argsort(x, kind="stable")
        assert np.array_equal(rows, expected)
        assert np.array_equal(values, x[expected])
        cuts = np.append(np.arange(7, 29_000, 7), 30_000)
        groups = np.repeat(np.arange(len(cuts)), np.diff(cuts, prepend=0))[np.argsort(expected)]
        assert np.array_equal(labels_by_row(rows, cuts), canonical_labels(groups))


def test_few_values_are_left_to_the_slow_sort(monkeypatch):
    """Sampled splits keep values close together apart from those of the opposite sign."""
    sorted_slowly = []
    slow = np.argsort
    monkeypatch.setattr(
        order.np, "argsort", lambda x, kind: sorted_slowly.append(len(x)) or slow(x, kind=kind)
    )
    rng = np.random.default_rng(0)
    n = 8 * order._PART
    sorted_order(np.where(rng.random(n) < 0.01, -1.0, 1e9 + rng.random(n)))
    assert 0 < sum(sorted_slowly) <= n // 4  # the part that holds both
    x = np.where(rng.random(1000) < 0.01, -1.0, 1.0 + rng.integers(0, 9, 1000) * 2.0**-52)
    sorted_slowly.clear()
    sorted_order(x)  # one part, in which keys say nothing
    assert sorted_slowly == [1000]


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


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("k", [1, 3])
def test_all_numbers_of_threads_find_the_same_groups(cost, k, monkeypatch):
    rng, n = np.random.default_rng(k), 50_000
    for x in (
        rng.random(n),
        rng.integers(0, n // 4, n) * 1.0,
        np.exp(5 * rng.standard_normal(n)),
        np.arange(n) * 1.0,  # partitions that need not meet
        np.append(rng.random(n // 2) - 1, np.arange(n // 2)),  # that meet, then need not
        np.append(np.arange(n // 2), n + n * rng.random(n // 2)),  # that meet later
        np.zeros(n),
        # Of which the last stretch is brought near 1, and the others are not.
        np.append(rng.random(n - 9), 2.0 ** np.arange(300, 309)),
        np.append(np.arange(n - 9), 2.0 ** np.arange(300, 309)),
    ):
        x.sort()
        found = []
        for threads in (1, 2, 3, 16):
            _use(threads, monkeypatch, stretch=3000)
            state = new_state()
            found.append(sorted_cut.fastest(x[:, None], k, cost=cost, state=state).labels)
            assert state[DONE] == n
        assert all(np.array_equal(labels, found[0]) for labels in found)


def test_a_stretch_that_never_meets_the_one_before_is_not_believed(monkeypatch):
    # Evenly spaced values in groups of exactly k: where a stretch starts decides its cuts.
    asked = []
    same = chain._same
    monkeypatch.setattr(chain, "_same", lambda *a: asked.append(same(*a)) or asked[-1])
    _use(3, monkeypatch)
    n = 50_000
    found = {cut_sorted(np.arange(m) * 1.0, 3).tobytes() for m in range(n, n + 6)}
    assert len(found) == 6
    assert not all(asked)
    for m in range(n, n + 6):
        sizes = np.diff(cut_sorted(np.arange(m) * 1.0, 3), prepend=0)
        assert sizes.min() == 3
        assert sizes.sum() == m


def test_a_stretch_goes_on_only_to_where_the_next_one_meets_it(monkeypatch):
    # Even values around the border of two stretches, and a gap soon after, at which partitions meet.
    _use(2, monkeypatch)
    # The second begins within a group of the first.
    rng, n, filled = np.random.default_rng(0), 40_002, []
    x = np.sort(np.append(np.arange(n // 2 + 1000), n + n * rng.random(n // 2 - 1000)))

    def fill(line, state):
        ALGORITHMS["simple-plus"](line, state)
        filled.append(int(line.window["settled"]))

    found = chain.best_ends(fill, x, 3, 0, new_state())
    assert len(filled) > 2
    assert max(filled) < 0.7 * n
    _use(1, monkeypatch)
    assert np.array_equal(found, cut_sorted(x, 3))


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_loss_does_not_depend_on_the_number_of_threads(threads, monkeypatch):
    rng = np.random.default_rng(5)
    x = np.sort(1e6 + rng.standard_normal(9999))
    cuts = np.append(np.arange(3, 9990, 3), 9999)
    groups = Groups(x, len(x), "sse")
    share = float(groups.of(cuts) / groups.of([len(x)]))
    for piece in (2, 64, 300):
        monkeypatch.setattr(sorted_cut, "_GROUPS_A_PIECE", piece)
        _use(1, monkeypatch)
        alone = sorted_cut.share_lost(x, cuts)
        _use(threads, monkeypatch)
        assert sorted_cut.share_lost(x, cuts) == alone
        assert alone == pytest.approx(share)


def test_progress_counts_all_threads(monkeypatch):
    _use(4, monkeypatch)
    seen, n = [], 100_000
    state = new_state()
    first_may_end = Event()

    def fill(line, own):
        """Only when the others are through, the first is."""
        if line.arrays.raw[0] == x.view(np.int64)[0]:
            first_may_end.wait()
        ALGORITHMS["simple-plus"](line, own)

    x = np.sort(np.random.default_rng(3).random(n))
    watched = Thread(target=lambda: chain.best_ends(fill, x, 3, 0, state))
    watched.start()
    deadline = time.monotonic() + 600
    while state[DONE] < 0.7 * n and time.monotonic() < deadline:
        seen.append(int(state[DONE]))
        time.sleep(1e-4)
    assert 0.7 * n <= state[DONE] < n
    first_may_end.set()
    watched.join()
    assert state[DONE] == n
    assert seen == sorted(seen)


def test_a_line_goes_on_where_it_was_made_wider():
    x = np.sort(np.random.default_rng(4).random(3000))
    line, whole = SortedLine(x, 70, 0), SortedLine(x, 70, 0)
    line.window["until"] = 2000
    ALGORITHMS["halving"](line, new_state())
    line.widen()
    line.window["until"] = 3000
    # Partitions have nothing in common: costs are carried along.
    ALGORITHMS["halving"](line, new_state())
    ALGORITHMS["halving"](whole, new_state())
    assert np.array_equal(line.back[70:], whole.back[70:])


@pytest.mark.parametrize("kind", ["random", "even"])
def test_many_threads_stop(kind, monkeypatch):
    _use(4, monkeypatch)
    n = 100_000
    x = np.sort(np.random.default_rng(3).random(n)) if kind == "random" else np.arange(n) * 1.0
    state = new_state()
    state[STOP] = 1
    assert chain.best_ends(ALGORITHMS["simple-plus"], x, 3, 0, state).tolist() == [n]
    assert state[DONE] == 0
    # Later, while the stretches are put together.
    state, filled = new_state(), []

    def fill(line, own):
        ALGORITHMS["simple-plus"](line, own)
        filled.append(line)
        if len(filled) == 4:
            state[STOP] = 1

    assert chain.best_ends(fill, x, 3, 0, state).tolist() == [n]


def test_an_error_in_a_stretch_is_raised(monkeypatch):
    _use(4, monkeypatch)

    def fill(line, own):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        chain.best_ends(fill, np.arange(100_000) * 1.0, 3, 0, new_state())
