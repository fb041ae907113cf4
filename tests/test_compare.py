"""The choice: each cell is what partition and the measures give, the frontier, the words."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import InputError
from microagg.measure import compare as module
from microagg.measure.compare import Cell, Comparison
from microagg.measure.linkage import Linkage


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(150, 3))
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(name="x")


def test_cells_are_what_partition_and_the_measures_give(frame):
    found = microagg.compare(frame, k=[3, 7], methods=["mdav", "auto"])
    assert [(c.method, c.k) for c in found.cells] == [
        ("mdav", 3),
        ("mdav", 7),
        ("auto", 3),
        ("auto", 7),
    ]
    for cell in found.cells:
        release = microagg.protect(frame, k=cell.k, method=cell.method)
        assert cell.information_loss == pytest.approx(release.utility.information_loss)
        assert cell.linkage.share == pytest.approx(release.risk.record_linkage)
        assert cell.groups == release.partition.n_groups
        assert cell.smallest >= cell.k
        assert cell.seconds > 0
    assert found.blind_guess == 1 / 150
    assert pd.DataFrame(found.rows)["information_loss"].notna().all()


def test_the_number_of_workers_changes_nothing_but_times(frame):
    one, four = (
        [{**row, "seconds": 0} for row in microagg.compare(frame, methods=["mdav"], workers=w).rows]
        for w in (1, 4)
    )
    assert one == four


def test_all_methods_that_fit_are_tried_unless_named(frame, monkeypatch):
    def refuse(X, k, **settings):
        raise InputError("not now")

    monkeypatch.setattr(module, "partition", refuse)
    tried = {cell.method for cell in microagg.compare(frame, k=30).cells}
    assert tried == {m.name for m in microagg.methods() if not m.one_column}
    tried = {cell.method for cell in microagg.compare(frame["a"].to_numpy(), k=30).cells}
    assert tried == {m.name for m in microagg.methods()}
    assert "No method could group" in microagg.suggest(frame, max_loss=1).words


def test_times_are_without_loading_and_compiling(frame, monkeypatch):
    called = []
    real = module.partition

    def watched(X, k, *, method, **settings):
        called.append((len(X), k, method))
        return real(X, k, method=method, **settings)

    monkeypatch.setattr(module, "partition", watched)
    microagg.compare(frame, k=[7, 3], methods=["mdav"], workers=1)
    assert called == [(6, 3, "mdav"), (150, 7, "mdav"), (150, 3, "mdav")]


def test_progress_reaches_the_end(frame):
    seen = []
    microagg.compare(frame, k=[3, 5], methods="mdav", progress=lambda *now: seen.append(now))
    assert seen[-1] == (300, 300)


def test_an_interruption_stops_the_work(frame):
    threads = threading.active_count()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        microagg.compare(np.random.default_rng(0).normal(size=(60_000, 8)), k=[2, 3], progress=stop)
    assert threading.active_count() <= threads


def test_a_method_that_refuses_leaves_a_reason(frame, monkeypatch):
    real = module.partition

    def refuse(X, k, *, method, **settings):
        if method == "auto":
            raise InputError("too large for this method")
        return real(X, k, method=method, **settings)

    monkeypatch.setattr(module, "partition", refuse)
    found = microagg.compare(frame, k=3, methods=["auto", "mdav"])
    assert found.cells[0].problem == "too large for this method"
    assert not found.cells[0].on_frontier
    assert found.cells[1].on_frontier
    assert found.suggest(max_loss=100).cell.method == "mdav"


def cell(method, k, loss, share, high=None):
    linkage = Linkage(share, share, share if high is None else high, 9, sampled=high is not None)
    return Cell(method, k, 5, k, k, loss, linkage, 0.1)


def comparison(*cells):
    return Comparison(100, ["a"], module._mark_frontier(list(cells)), "zscore", 0.01)


def test_frontier_by_hand():
    found = comparison(
        cell("m", 3, 5.0, 0.30),
        cell("m", 5, 9.0, 0.18),
        cell("n", 3, 6.0, 0.30),  # m with k = 3 loses less and links as many
        cell("n", 5, 8.0, 0.20),
        cell("n", 9, 9.0, 0.18),  # the same as m with k = 5
    )
    assert [(c.method, c.k) for c in found.frontier] == [("m", 3), ("n", 5), ("m", 5), ("n", 9)]


@pytest.mark.parametrize(
    ("targets", "choice", "words"),
    [
        ({"max_loss": 8}, ("n", 5), "loses 8.00 % (at most 8 % asked for) and 20.0 %"),
        ({"max_linkage": 0.25}, ("n", 5), "Of 3 choices 2 do; this one loses least"),
        ({"max_loss": 9.5, "max_linkage": 0.19}, ("m", 5), "meets the targets"),
        ({"max_loss": 4}, None, "None of the 3 choices has a loss of at most 4 %. Nearest comes m"),
        (
            {"max_loss": 5, "max_linkage": 0.2},
            None,
            "Within the loss, the least linkage has m with k = 3, which loses 5.00 % and links 30.0 %. "
            "Within the linkage, the least loss has n with k = 5",
        ),
        ({}, None, "Worth choosing are 3 of 3: from m with k = 3"),
    ],
)
def test_suggestions(targets, choice, words):
    found = comparison(cell("m", 3, 5.0, 0.30), cell("m", 5, 9.0, 0.18), cell("n", 5, 8.0, 0.20))
    answer = found.suggest(**targets)
    assert words in answer.words
    assert (answer.cell and (answer.cell.method, answer.cell.k)) == choice


def test_an_estimated_linkage_counts_at_its_upper_end():
    found = comparison(cell("m", 3, 5.0, 0.19, high=0.21), cell("m", 5, 9.0, 0.15, high=0.17))
    assert found.suggest(max_linkage=0.2).cell.k == 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": [3, 999]}, "k=999 needs at least 999 records"),
        ({"k": []}, "No k was named"),
        ({"methods": ["magic"]}, "method='magic' is not known"),
        ({"methods": ["simple"]}, "is for one column"),
        ({"methods": []}, "No method was named"),
        ({"columns": ["z"]}, "no column 'z'"),
        ({"scale": "x"}, "scale='x'"),
    ],
)
def test_wrong_settings_are_refused_before_any_work(frame, settings, message):
    with pytest.raises(InputError, match=message):
        microagg.compare(frame, **settings)


def test_wrong_targets(frame):
    with pytest.raises(
        InputError, match=r"share of the records from 0 to 1; got 20\. .*write 0\.2"
    ):
        microagg.suggest(frame, max_linkage=20)
    with pytest.raises(InputError, match="percentage from 0 up"):
        microagg.suggest(frame, max_loss=-1)


def test_large_tables_are_linked_by_a_sample():
    X = np.random.default_rng(0).normal(size=(21_000, 1))
    (found,) = microagg.compare(X, k=[500], methods=["auto"]).cells
    assert found.linkage.sampled
    assert found.linkage.low < found.linkage.share < found.linkage.high


def test_settings_of_methods(frame):
    found = microagg.compare(frame, 5, ["v-mdav", "mdav"], options={"v-mdav": {"gamma": 0}})
    alone = microagg.protect(frame, 5, method="v-mdav", gamma=0).utility
    assert found.cells[0].information_loss == pytest.approx(alone.information_loss)
    with pytest.raises(InputError, match="'mdav' has no option 'gamma'"):
        microagg.compare(frame, 5, "mdav", options={"mdav": {"gamma": 0}})
    with pytest.raises(InputError, match="for methods that are tried; 'mst' is none of 'mdav'"):
        microagg.compare(frame, 5, "mdav", options={"mst": {}})


def test_one_choice_is_named_once(frame):
    words = microagg.compare(frame, 5, "mdav").suggest().words
    assert words.count("mdav with k = 5") == 1
