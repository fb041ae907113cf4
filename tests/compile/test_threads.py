"""Sharing work out: each piece is done once, whoever does it."""

from threading import Barrier, Lock

import numpy as np
import pytest

from microagg.base.progress import STOP, new_state
from microagg.compile import threads


def test_nothing_to_do_is_done(monkeypatch):
    monkeypatch.setattr(threads, "thread_count", lambda: 4)
    done = []
    threads.share_out(lambda *piece: done.append(piece), 0, new_state(), shrinking=True)
    threads.each(done.append, 0)
    assert done == []
    assert threads.helpers() == 3


def use(monkeypatch, count):
    monkeypatch.setattr(threads, "thread_count", lambda: count)


@pytest.mark.parametrize("count", [1, 3, 16])
@pytest.mark.parametrize("items", [1, 5, 1_003])
@pytest.mark.parametrize("shrinking", [False, True])
def test_every_piece_is_done_once(count, items, shrinking, monkeypatch):
    use(monkeypatch, count)
    done, state = np.zeros(items, int), new_state()

    def work(begin, end, thread):
        assert 0 <= thread < count
        done[begin:end] += 1

    threads.share_out(work, items, state, 7, at_once=2, shrinking=shrinking)
    assert (done == 1).all()
    assert state[0] == 7


def test_pieces_shrink_to_the_least(monkeypatch):
    use(monkeypatch, 2)
    pieces = []
    threads.share_out(
        lambda b, e, _: pieces.append(e - b), 800, new_state(), at_once=3, shrinking=True
    )
    assert max(pieces) == 100
    assert 3 in pieces
    assert len(pieces) < 60


def test_sharing_out_stops_when_asked():
    state, done = new_state(), []

    def work(begin, end, thread):
        done.append(begin)
        state[STOP] = 1

    threads.share_out(work, 10_000, state, at_once=1)
    assert len(done) <= 16


def test_helpers_do_every_piece_once(monkeypatch):
    use(monkeypatch, 5)
    done = np.zeros(103, int)

    def work(begin, end, thread):
        assert 0 <= thread < 5
        done[begin:end] += 1

    assert threads.helpers() == 4
    for _ in range(20):
        threads.share_with_helpers(work, 103, at_once=4)
    assert (done == 20).all()


def test_work_that_grows_is_done_to_the_end(monkeypatch):
    use(monkeypatch, 4)
    done = []

    def work(item):
        done.append(item)
        return [child for child in (2 * item, 2 * item + 1) if child < 500]

    threads.share_growing(work, [1])
    assert sorted(done) == list(range(1, 500))


def test_threads_with_work_of_their_own_get_the_same_share_of_helpers(monkeypatch):
    use(monkeypatch, 8)
    found, together = [], Barrier(2)

    def work(begin, end, thread):
        together.wait()
        found.append(threads.helpers())
        together.wait()

    threads.share_out(work, 2, new_state(), at_once=1)
    assert found == [3, 3]


def test_what_a_helper_raises_is_raised(monkeypatch):
    use(monkeypatch, 3)

    def piece(begin, end, thread):
        if begin == 8:
            raise ValueError("piece 8")

    def item(number):
        piece(number, 0, 0)
        return [number + 1]

    with pytest.raises(ValueError, match="piece 8"):
        threads.share_with_helpers(piece, 40, at_once=1)
    with pytest.raises(ValueError, match="piece 8"):
        threads.share_out(piece, 40, new_state(), at_once=1)
    with pytest.raises(ValueError, match="piece 8"):
        threads.share_growing(item, [1])
    assert threads.helpers() == 2


def test_work_within_work_ends_though_all_threads_are_busy(monkeypatch):
    use(monkeypatch, 16)
    done, lock = [], Lock()

    def inner(begin, end, thread):
        with lock:
            done.append(begin)

    def middle(begin, end, thread):
        threads.share_out(inner, 40, new_state(), at_once=1)

    def outer(begin, end, thread):
        threads.share_out(middle, 40, new_state(), at_once=1)

    threads.share_out(outer, 40, new_state(), at_once=1)
    assert len(done) == 40**3
    assert threads.helpers() == 15
