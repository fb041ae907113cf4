"""Threads that search ahead change no group, whatever their number and however often lists are used up."""

import numpy as np
import pytest

from awkward import data
from microagg.algorithms.auto import mdav_in_blocks
from microagg.algorithms.fixed_size import centroid, mdav
from microagg.base.progress import STOP, new_state
from microagg.compile import threads
from microagg.kernels import outside_in
from microagg.kernels import search_ahead as ahead

CASES = [
    # records, columns, kind, k
    (3_000, 3, "normal", 3),
    (3_000, 2, "ties", 4),
    (2_000, 4, "equal", 2),
    (2_000, 5, "binary", 3),
    (2_500, 8, "normal", 1),
    (2_500, 8, "normal", 12),
    (2_000, 3, "scales", 3),
    (2_000, 3, "far from 0", 3),
]


@pytest.fixture
def batches(monkeypatch):
    """Search ahead in small tables too, in batches that take from each other; counts them."""
    monkeypatch.setattr(outside_in, "FEW_RECORDS", 0)
    monkeypatch.setattr(ahead, "_FEW_COLUMNS", 0)
    monkeypatch.setattr(ahead, "_APART", 8)
    monkeypatch.setattr(ahead, "_LEAST", 2)
    made = []
    plain = ahead.rounds_ahead
    monkeypatch.setattr(ahead, "rounds_ahead", lambda *given: made.append(1) or plain(*given))
    return made


def use(monkeypatch, count):
    monkeypatch.setattr(threads, "thread_count", lambda: count)


@pytest.mark.parametrize(("n", "d", "kind", "k"), CASES)
@pytest.mark.parametrize("method", [mdav, centroid])
def test_groups_are_those_of_one_thread(method, n, d, kind, k, batches, monkeypatch):
    X = data(kind, n, d)
    use(monkeypatch, 1)
    alone = method(X, k).labels
    assert not batches
    for count in (2, 3, 16):
        batches.clear()
        use(monkeypatch, count)
        assert (method(X, k).labels == alone).all()
        assert batches


def test_weighted_groups_are_those_of_one_thread(batches, monkeypatch):
    X, weights = data("normal", 3_000, 3), np.random.default_rng(5).uniform(0.1, 9, 3_000)
    use(monkeypatch, 1)
    alone = mdav(X, 3, weights=weights).labels
    use(monkeypatch, 3)
    assert (mdav(X, 3, weights=weights).labels == alone).all()
    assert batches


def test_large_tables_of_many_columns_are_searched_ahead(monkeypatch):
    assert ahead.batch_of(50_000, 10, 3, 16) > 0
    assert ahead.batch_of(50_000, 10, 3, 2) > 0
    assert ahead.batch_of(50_000, 10, 3, 1) == 0
    assert ahead.batch_of(50_000, 3, 3, 16) == 0
    assert ahead.batch_of(2_000, 10, 3, 2) == 0


def test_threads_without_a_block_of_their_own_help_others(batches, monkeypatch):
    X = data("normal", 6_000, 4)
    use(monkeypatch, 1)
    alone = mdav_in_blocks(X, 3, new_state(), 3_000)
    use(monkeypatch, 2)  # one for each block
    assert (mdav_in_blocks(X, 3, new_state(), 3_000) == alone).all()
    few = len(batches)
    use(monkeypatch, 8)
    assert (mdav_in_blocks(X, 3, new_state(), 3_000) == alone).all()
    assert len(batches) > few


def test_stops_when_asked(batches, monkeypatch):
    use(monkeypatch, 3)
    state = new_state()
    plain = ahead.rounds_ahead

    def stop(*given):
        state[STOP] = 1
        return plain(*given)

    monkeypatch.setattr(ahead, "rounds_ahead", stop)
    labels = mdav(data("normal", 3_000, 3), 3, state=state).labels
    assert len(batches) == 1
    assert (labels == -1).all()
