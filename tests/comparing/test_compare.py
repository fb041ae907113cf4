"""compare(): each cell is what partition and the measures give, in time, stopped, reported."""

import json
import pickle
import threading
import time
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import InputError, StopSearch
from microagg.compile.threads import helpers

module = import_module("microagg.comparing.comparison")
grouping = import_module("microagg.grouping.one_cell")


def at_work():
    """Threads that carry out choices; those that share one search out stay for the next."""
    return [one for one in threading.enumerate() if one.name.startswith("microagg-")]


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(150, 3))
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(name="x")


def test_each_cell_counts_as_a_thread_at_work(frame, monkeypatch):
    both, found, original = threading.Barrier(2, timeout=600), [], grouping.partition

    def watched(*arguments, **settings):
        if len(arguments[0]) > 50:  # not while it is compiled
            both.wait()
            found.append(helpers())
            both.wait()
        return original(*arguments, **settings)

    monkeypatch.setattr("microagg.compile.threads.thread_count", lambda: 6)
    monkeypatch.setattr(grouping, "partition", watched)
    microagg.compare(frame, k=[3, 5], methods=["mdav"], workers=2)
    assert found == [2, 2]
    assert helpers() == 5


def test_what_is_tried_does_not_carry_originals_along(frame):
    comparison = microagg.compare(frame, k=3, methods=["mdav"])
    secret = frame["a"].to_numpy()
    assert secret[:4].tobytes() not in pickle.dumps(comparison)
    assert pickle.loads(pickle.dumps(comparison)).rows == comparison.rows
    prices = microagg.prices(frame, microagg.Plan.of(k=3, columns=["a", "b"], drop=["name", "c"]))
    with pytest.raises(TypeError, match="originals, and what holds one, cannot be pickled"):
        pickle.dumps(prices)


def test_the_number_of_workers_changes_nothing_but_times(frame):
    one, four = (
        [{**row, "seconds": 0} for row in microagg.compare(frame, methods=["mdav"], workers=w).rows]
        for w in (1, 4)
    )
    assert one == four


def test_all_methods_that_fit_are_tried_if_asked_for(frame, monkeypatch):
    def refuse(X, k, **settings):
        raise InputError("not now")

    monkeypatch.setattr(grouping, "partition", refuse)
    tried = [cell.method for cell in microagg.compare(frame, k=30, methods="all").cells]
    assert set(tried) == {m.name for m in microagg.methods() if m.for_numbers and not m.one_column}
    assert tried[: len(module.FAST)] == list(module.FAST)
    assert tried[-1] == "optimal"
    one = microagg.compare(frame["a"].to_numpy(), k=30, methods="all")
    assert {cell.method for cell in one.cells} == {
        m.name for m in microagg.methods() if m.for_numbers
    }
    few = microagg.compare(frame, k=30).cells
    assert [cell.method for cell in few] == list(module.FAST)
    assert "No method could group" in microagg.compare(frame, max_loss=1).suggest().words


def test_times_are_without_loading_and_compiling(frame, monkeypatch):
    called = []
    real = grouping.partition

    def watched(X, k, *, method, **settings):
        called.append((len(X), k, method))
        return real(X, k, method=method, **settings)

    monkeypatch.setattr(grouping, "partition", watched)
    microagg.compare(frame, k=[7, 3], methods=["mdav"], workers=1)
    assert called == [(50, 3, "mdav"), (150, 7, "mdav"), (150, 3, "mdav")]


def test_an_interruption_stops_the_work(frame):
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        microagg.compare(np.random.default_rng(0).normal(size=(60_000, 8)), k=[2, 3], progress=stop)
    assert not at_work()


def test_a_method_that_refuses_leaves_a_reason(frame, monkeypatch):
    real = grouping.partition

    def refuse(X, k, *, method, **settings):
        if method == "auto":
            raise InputError("too large for this method")
        return real(X, k, method=method, **settings)

    monkeypatch.setattr(grouping, "partition", refuse)
    found = microagg.compare(frame, k=3, methods=["auto", "mdav"])
    assert found.cells[0].problem == "too large for this method"
    assert not found.cells[0].on_frontier
    assert found.cells[1].on_frontier
    assert found.suggest(max_loss=100).cell.method == "mdav"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": [3, 999]}, "k=999 needs at least 999 records"),
        ({"k": []}, "No k was named"),
        ({"k": 0}, "whole number of at least 1; got 0"),
        ({"budget": 0}, "a number of seconds above 0; got 0"),
        ({"workers": 1.5}, r"a whole number from 1 up; got 1\.5"),
        ({"methods": 5}, "method=5 is not known"),
        ({"methods": ["magic"]}, "method='magic' is not known"),
        ({"methods": ["simple"]}, "is for one column"),
        ({"methods": []}, "No method was named"),
        ({"columns": ["z"]}, "no column 'z'"),
    ],
)
def test_wrong_settings_are_refused_before_any_work(frame, settings, message):
    with pytest.raises(InputError, match=message):
        microagg.compare(frame, **settings)


def test_large_tables_are_linked_by_a_sample():
    X = np.random.default_rng(0).normal(size=(21_000, 1))
    found = microagg.compare(X, k=[500], methods=["auto"])
    (cell,) = found.cells
    assert cell.linkage.sampled
    assert cell.linkage.low < cell.linkage.share < cell.linkage.high
    assert found.blind_guess == 1 / 21_000


@pytest.mark.parametrize(
    ("k", "sizes"),
    [
        (3, [3]),
        (np.array(4), [4]),
        (range(3, 6), [3, 4, 5]),
        ((7, 3, 7), [7, 3]),
    ],
)
def test_ways_to_name_k(frame, k, sizes):
    found = microagg.compare(frame, k, "mdav")
    assert found.settings["k"] == sizes
    assert [cell.k for cell in found.cells] == sorted(sizes)
    json.dumps(found.as_dict(), allow_nan=False)


def slow(monkeypatch, seconds, methods=("mdav",), valid=False, clock=time):
    """Let some methods take longer on tables of more than a few records."""
    real = grouping.partition

    def work(X, k, *, method, progress=None, **settings):
        ends = clock.monotonic() + seconds
        stopped = False
        while method in methods and len(X) > 50 and clock.monotonic() < ends and not stopped:
            time.sleep(0.01)
            if clock is not time:
                clock.seconds += 0.1
            try:
                progress(1)
            except StopSearch:
                if not valid:
                    raise
                stopped = True
        found = real(X, k, method=method, **settings)
        return microagg.Partition(**{**vars(found), "stopped": True}) if stopped else found

    monkeypatch.setattr(grouping, "partition", work)


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes only while a slow method is at work: other methods take no time on any machine."""
    found = SimpleNamespace(seconds=0.0)
    found.monotonic = lambda: found.seconds
    for module in ("comparison", "trials"):
        monkeypatch.setattr(f"microagg.comparing.{module}.time", found)
    return found


def test_what_does_not_fit_the_budget_is_told(frame, monkeypatch, clock):
    slow(monkeypatch, 60, clock=clock)
    found = microagg.compare(frame, [3, 5], ["kmeans-merge", "mdav", "mst"], budget=3, workers=1)
    by = {(cell.method, cell.k): cell for cell in found.cells}
    assert len(by) == 6
    assert by["kmeans-merge", 3].problem is None
    assert by["mdav", 3].problem == "not finished: out of time"
    assert not by["mdav", 3].tried
    # Half of the time that is left goes to each, so that the quick ones behind get their turn.
    assert by["mst", 3].problem is None
    assert by["mst", 5].problem is None
    assert "Partial results, since time was over: 2 of 6 choices were not tried" in found.partial
    assert not found.stopped
    rows = found.as_dict()["cells"]
    assert rows[2]["problem"] == "not finished: out of time"
    assert rows[2]["tried"] is False


def test_without_time_nothing_is_tried(frame):
    found = microagg.compare(frame, methods="mdav", budget=1e-9)
    assert {cell.problem for cell in found.cells} == {"not tried: out of time"}
    assert "No choice was finished in time" in found.suggest(max_loss=5).words
    assert found.suggest(max_loss=5).meets is False
    assert found.frontier == []


def test_a_search_that_holds_groups_when_time_is_over_gives_them(frame, monkeypatch, clock):
    slow(monkeypatch, 60, valid=True, clock=clock)
    (found,) = (c := microagg.compare(frame, 3, "mdav", budget=0.2)).cells
    assert found.cut_short
    assert found.information_loss > 0
    assert "1 search was cut short" in c.partial


def test_no_limit(frame):
    for budget in (None, float("inf")):
        found = microagg.compare(frame, 3, "mdav", budget=budget)
        assert found.settings["budget"] is None
        assert found.partial is None


def test_stopping_keeps_what_is_done(frame, monkeypatch, tmp_path):
    slow(monkeypatch, 60)

    def stop(done, total):
        if done.tried >= 2:
            raise StopSearch

    found = microagg.compare(frame, [3, 5], ["mst", "mdav"], workers=1, budget=None, progress=stop)
    assert not at_work()
    assert found.stopped
    problems = [cell.problem for cell in found.cells]
    assert problems == [None, None, "not finished: stopped", "not tried: stopped"]
    assert "since it was stopped: 2 of 4 choices were not tried" in found.partial
    assert found.suggest(max_loss=100).cell.method == "mst"
    found.report(tmp_path / "c.html")
    page, twin = (tmp_path / "c.html").read_text(), json.loads((tmp_path / "c.json").read_text())
    assert found.partial in page
    assert "not tried: stopped" in page
    assert twin["comparison"]["stopped"] is True


def test_progress_tells_cells_time_and_compilation(frame, monkeypatch):
    monkeypatch.setattr(module, "_SECONDS_TO_LOAD", -1.0)
    seen = []
    microagg.compare(
        frame, [3, 5], ["mdav", "mst"], budget=30, progress=lambda *told: seen.append(told)
    )
    assert seen[-1] == (600, 600)
    seen = [done for done, _ in seen]
    assert seen[0].words == "compiling for the first job of this kind on this machine"
    assert (seen[-1].tried, seen[-1].cells) == (4, 4)
    assert 0 < seen[-1].seconds_left <= 30
    assert seen[-1].words.startswith("4 of 4 tried, at most ")
    assert seen == sorted(seen)


def test_a_target_is_searched_beyond_the_k_listed(frame):
    found = microagg.compare(frame, [3, 5], ["mdav", "mst"], max_linkage=0.06)
    answer = found.suggest()
    assert answer.meets
    assert answer.cell.k > 5
    assert answer.cell.linkage.share <= 0.06
    every = microagg.compare(frame, range(2, 76), ["mdav", "mst"], budget=None)
    best = every.suggest(max_linkage=0.06)
    assert answer.cell.information_loss == pytest.approx(best.cell.information_loss, rel=0.1)
    assert found.settings["k"] == [3, 5]


def test_a_target_of_the_loss_is_searched_too(frame):
    answer = microagg.compare(frame, 3, "mdav", max_loss=30).suggest()
    more = microagg.protect(frame, answer.cell.k + 1, method="mdav").utility.information_loss
    assert answer.cell.k > 3
    assert answer.cell.information_loss <= 30 < more
    # Released means are rounded, so that one group of all records loses a little more than 100 %.
    assert microagg.compare(frame, 3, "mdav", max_loss=100.01).suggest().cell.k == 150


def test_no_time_is_left_for_the_search(frame, monkeypatch, clock):
    slow(monkeypatch, 60, clock=clock)
    found = microagg.compare(frame, 3, ["mst", "mdav"], max_linkage=0.01, budget=0.3, workers=1)
    searched = [cell for cell in found.cells if cell.k != 3]
    assert searched
    assert all(not cell.tried for cell in searched)


def test_kinds_of_release_are_compared_by_tables(tmp_path):
    rng = np.random.default_rng(5)
    age = rng.normal(40, 12, 400)
    frame = pd.DataFrame({"age": age, "pay": age * 50 + rng.normal(0, 400, 400)})
    found = microagg.compare(frame, k=[5, 10], release=["mean", "swap"], columns=["age", "pay"])
    assert [(one.release, one.k) for one in found.cells] == [
        (release, k) for release in ("mean", "swap") for k in (5, 10)
    ]
    means, swapped = found.cells[:2], found.cells[2:]
    for mean, swap in zip(means, swapped, strict=True):
        assert swap.tables < mean.tables
        assert swap.tables_multiple < mean.tables_multiple
    assert {row["release"] for row in found.rows} == {"mean", "swap"}
    assert "(swapped) with k =" in found.suggest(max_linkage=1.0).words
    found.report(tmp_path / "map.html", max_linkage=1.0)
    page = (tmp_path / "map.html").read_text(encoding="utf-8")
    assert page.count('class="ring"') == 1
    assert page.count('<td data-label="release">swap</td>') == 2
    assert f"({swapped[0].tables_multiple:.1f} × another sample)" in page
    with pytest.raises(InputError, match="release"):
        microagg.compare(frame, k=5, release=["median"], columns=["age", "pay"])
