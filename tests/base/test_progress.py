"""Watching and stopping a computation."""

import time
from contextlib import suppress
from threading import Condition
from types import SimpleNamespace

import numpy as np
import pytest

from microagg.base import progress
from microagg.base.progress import (
    DONE,
    STOP,
    Progress,
    new_state,
    part,
    rest_of,
    run_watched,
    seconds_left,
    stop_after,
    tell_best,
)
from microagg.errors import StopSearch


class Reports(list):
    """What a listener hears; the work can wait until it hears of something."""

    def __init__(self):
        self._came = Condition()

    def __call__(self, reported):
        with self._came:
            self.append(reported)
            self._came.notify_all()

    def wait_for(self, holds):
        with self._came:
            assert self._came.wait_for(lambda: any(map(holds, self)), 600)


def test_reports_while_running_and_at_the_end():
    reports = Reports()

    def work(state):
        state[DONE] = 3
        reports.wait_for(lambda done: done == 3)
        state[DONE] = 9
        return "result"

    assert run_watched(work, reports) == "result"
    assert reports[0] in (0, 3)  # the first may come before the work begins
    assert reports[-1] == 9


def test_an_interrupt_stops_the_work_first():
    stopped = []

    def work(state):
        while not state[STOP]:
            time.sleep(0.01)
        stopped.append(True)

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_watched(work, interrupt)
    assert stopped


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("late")])
def test_errors_of_the_work_reach_the_caller(error):
    def work(_):
        raise error

    with pytest.raises(type(error), match=str(error)):
        run_watched(work)


def test_a_report_can_end_a_search_with_the_best_so_far():
    reports = Reports()

    def search(state):
        """Hold a valid partition after a while, and give it when asked to stop."""
        reports.wait_for(lambda reported: reported.information_loss is None)
        tell_best(state, 5.0, 4.0)
        while not state[STOP]:
            time.sleep(0.01)
        return "the best so far"

    def report(reported):
        reports(reported)
        if reported.information_loss is not None:
            raise StopSearch

    state = new_state()
    assert run_watched(search, report, state=state, sst=50.0) == "the best so far"
    assert state[STOP]
    assert reports[-1].information_loss == pytest.approx(10)
    assert reports[-1].gap == pytest.approx(0.2)


def test_a_search_without_a_partition_yet_is_left_by_the_exception():
    def work(state):
        while not state[STOP]:
            time.sleep(0.01)
        return "nothing"

    def report(_):
        raise StopSearch

    with pytest.raises(StopSearch):
        run_watched(work, report)


def test_a_wish_to_stop_after_the_end_changes_nothing():
    def report(_):
        raise StopSearch

    state = new_state()
    assert run_watched(lambda _: "done", report, state=state) == "done"
    assert not state[STOP]


def test_a_wish_to_stop_is_not_lost_to_a_clock():
    def work(state):
        tell_best(state, 1.0)
        for _ in range(2):  # the first time, a clock that is over takes its stop back
            while not state[STOP]:
                time.sleep(0.01)
            state[STOP] = 0
        return "stopped"

    def report(_):
        raise StopSearch

    assert run_watched(work, report) == "stopped"


def test_an_interrupt_while_stopping_is_raised():
    def report(_):
        raise StopSearch

    def slow(state):
        tell_best(state, 1.0)
        while state[STOP] != 1:
            time.sleep(0.01)
        raise KeyboardInterrupt  # as if pressed a second time

    with pytest.raises(KeyboardInterrupt):
        run_watched(slow, report)


def test_time_that_is_over_stops_the_block_alone():
    state = new_state()
    with stop_after(state, 0.05, 1_000):
        while not state[STOP]:
            time.sleep(0.005)
    assert not state[STOP]
    with stop_after(state, 0):
        assert state[STOP]
    assert not state[STOP]
    with stop_after(state, None):
        assert not state[STOP]
        assert seconds_left(state) == np.inf
    with stop_after(state, 1e12, 1_000):
        assert 0.9e12 < seconds_left(state) <= 1e12
        state[STOP] = 1  # somebody else
    assert state[STOP] == 1
    assert seconds_left(state) == np.inf


def test_records_done_rise_with_the_time(monkeypatch):
    """By a clock on which a tenth of the time goes by whenever somebody looks at it."""
    seen, state = [], new_state()

    def monotonic():
        seen.append(int(state[DONE]))
        return 0.1 * len(seen)

    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=monotonic))
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_CALLS", 0.0)
    with stop_after(state, 1.0, 1_000):
        while not state[STOP]:
            time.sleep(0.01)
    assert seen == sorted(seen)
    assert seen[-3:] == pytest.approx([700, 800, 900], abs=1)


def test_a_part_counts_from_0_and_the_whole_rises_on():
    reports = Reports()

    def work(state):
        state[DONE] = 100
        with part(state, 0.5):
            assert state[DONE] == 0
            for done in range(0, 1001, 10):
                state[DONE] = done
                if done % 250 == 0:
                    reports.wait_for(lambda heard, done=done: heard == 100 + done // 2)
            with part(state, 0.1):
                assert state[DONE] == 0
                state[DONE] = 1000
                reports.wait_for(lambda heard: heard == 650)
            assert state[DONE] == 1100
        assert state[DONE] == 650
        with part(state, 0.0):
            state[DONE] = 1000
            before = len(reports)
            reports.wait_for(lambda heard: len(reports) > before)
        assert state[DONE] == 650
        state[DONE] = 1000

    run_watched(work, reports)
    assert reports == sorted(reports)
    assert {100, 225, 350, 475, 600, 650} <= set(reports)
    assert set(reports) <= {0, *range(100, 651), 1000}


def test_a_part_that_fails_counts_what_it_did():
    state = new_state()
    with suppress(ValueError), part(state, 0.5):
        state[DONE] = 10
        raise ValueError
    assert state[DONE] == 5


def test_the_best_partition_stays_the_best():
    reports = Reports()

    def work(state):
        for sse in (9.0, 5.0, 7.0):
            tell_best(state, sse)
            before = len(reports)
            reports.wait_for(lambda _, before=before: len(reports) > before)

    run_watched(work, reports, sst=100.0)
    losses = [reported.information_loss or 100 for reported in reports]
    assert losses[-1] == pytest.approx(5)
    assert losses == sorted(losses, reverse=True)


def test_the_rest_of_a_time_limit():
    assert rest_of(None, 0.0) is None
    assert rest_of(5.0, time.monotonic() - 10) == 0
    assert 0.9e9 < rest_of(1e9, time.monotonic()) <= 1e9


def test_progress_is_a_number():
    assert Progress(7) + 1 == 8
    assert Progress(7).information_loss is None
