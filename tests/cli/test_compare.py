"""compare as its users call it."""

import json
import os
import signal
import sys
import threading
import time
from importlib import import_module

import numpy as np
import pandas as pd
import pytest

from command import here, said
from microagg.cli.flags import whole_numbers


@pytest.fixture
def survey(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"income": rng.lognormal(8, 1, 80), "age": rng.integers(18, 90, 80)})
    table.to_csv(tmp_path / "survey.csv", index=False)
    return tmp_path / "survey.csv"


def run(*arguments):
    return here("compare", *arguments)


def test_it_announces_prints_a_table_and_answers(survey, monkeypatch):
    report = survey.with_name("map.html")
    words = [str(survey), "--k", "3-5", "--methods", "mdav,mst", "-c", "income,age"]
    monkeypatch.setattr(sys, "argv", ["microagg", "compare", *words])
    done = run(*words, "--budget", 50, "--report", report)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 + 6
    assert "trying 2 methods × 3 k, at most 50 s; Ctrl-C ends it" in said(done)
    assert "choose No target was given" in said(done)
    assert "At equal k, less loss comes with more linkage" in said(done)
    page, twin = report.read_text(), json.loads(report.with_suffix(".json").read_text())
    assert "Risk–utility map" in page
    assert "At equal k, less loss comes with more linkage" in page
    assert twin["repeat"]["words"][:3] == ["microagg", "compare", str(survey)]


def test_choices_can_be_attacked_with_controls(survey, monkeypatch):
    report = survey.with_name("map.html")
    words = ["-c", "income,age", "--k", "2,20", "--release", "mean,swap", "--attack"]
    done = run(survey, *words, "--report", report)
    assert done.returncode == 0, done.stderr
    assert "guessed %" in done.stdout
    assert "each is attacked" in said(done)
    model = json.loads(report.with_suffix(".json").read_text())["comparison"]
    for kind in ("mean", "swap"):
        few, many = (one["inference"] for one in model["cells"] if one["release"] == kind)
        assert few["share"] > many["share"]
        assert few["low"] <= few["share"] <= few["high"]
    page = report.read_text()
    assert "values guessed beyond controls in % (less is better)" in page
    assert "records in another cell of tables in % (less is better)" in page
    assert "auto (swapped)" in page
    assert 'class="guess"' not in page  # a blind guess is no guess of values


def test_a_choice_that_cannot_be_attacked_says_why(survey):
    """Without the controls there are fewer than k people."""
    done = run(survey, "-c", "income,age", "-k", "80", "-m", "mdav", "--attack", "--json")
    (cell,) = json.loads(done.stdout)["cells"]
    assert "cannot be attacked" in cell["problem"]


def test_a_target_that_is_met(survey):
    done = run(survey, "-m", "mdav", "--max-loss", 50, "--json", "-q")
    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert done.stderr == ""
    assert found["meets"] is True
    assert found["suggestion"]["cell"]["information_loss"] <= 50
    assert found["suggestion"]["cell"]["k"] > 10  # searched beyond those listed
    assert found["k"] == [3, 5, 10]


def test_a_target_that_no_choice_meets(survey):
    done = run(survey, "-m", "mdav", "--max-loss", 1, "--max-linkage", 0.01, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["meets"] is False
    assert "None of the" in said(done)
    assert "The nearest is mdav with k = " in said(done)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "3,x"], "whole numbers or ranges separated by commas"),
        (["--k", "-3"], "whole numbers or ranges separated by commas"),
        (["--k", "500"], "k=500 needs at least 500 records; the table has 80"),
        (["--report", "x.pdf"], "does not end in .html"),
    ],
)
def test_wrong_use(survey, arguments, message):
    done = run(survey, *arguments)
    assert done.returncode == 2, done.stderr
    assert message in said(done)


def test_ranges_of_k():
    assert whole_numbers("3, 5,10-12") == [3, 5, 10, 11, 12]


def press_ctrl_c(monkeypatch, first=True):
    """Let somebody press Ctrl-C while mdav is at work, after another method is done."""
    grouping = import_module("microagg.grouping.one_cell")
    comparing = import_module("microagg.cli.compare_command")
    partition, try_prepared = grouping.partition, comparing.try_prepared
    finished = threading.Event()

    def work(X, k, *, method, progress=None, **settings):
        if len(X) > 50 and method == "mdav":
            assert finished.wait(600)
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(3000):
                time.sleep(0.01)
                progress(1)
        return partition(X, k, method=method, progress=progress, **settings)

    def watched(trials, hear):
        def heard(done, total):
            if done.tried:
                finished.set()
            hear(done, total)

        return try_prepared(trials, heard)

    monkeypatch.setattr(grouping, "partition", work)
    monkeypatch.setattr(comparing, "try_prepared", watched)
    if not first:
        finished.set()


@pytest.mark.posix
def test_ctrl_c_keeps_what_is_done(survey, monkeypatch):
    press_ctrl_c(monkeypatch)
    report = survey.with_name("map.html")
    done = run(survey, "-m", "mst,mdav", "-k", 3, "--report", report, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["stopped"] is True
    assert [cell["problem"] for cell in found["cells"]] == [None, "not finished: stopped"]
    assert "partial Partial results, since it was stopped: 1 of 2 choices" in said(done)
    assert "Partial results, since it was stopped" in report.read_text()


@pytest.mark.posix
def test_ctrl_c_before_anything_is_done_ends(survey, monkeypatch):
    press_ctrl_c(monkeypatch, first=False)
    done = run(survey, "-m", "mdav", "-k", 3)
    assert done.returncode == 130
    assert "Interrupted: nothing was written" in said(done)
