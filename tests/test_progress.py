"""Watching and stopping a computation."""

from __future__ import annotations

import time

import pytest

from microagg.progress import DONE, STOP, run_watched


def test_reports_while_running_and_at_the_end():
    def work(state):
        state[DONE] = 3
        time.sleep(0.35)
        state[DONE] = 9
        return "result"

    reports = []
    assert run_watched(work, reports.append) == "result"
    assert reports[0] == 3
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
