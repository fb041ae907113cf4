"""Attacks with people put aside as controls, in the evidence of a release: S6 and accept.inference."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import Plan
from microagg.engines.memory import control_group
from microagg.errors import StopSearch
from microagg.job.job import Job
from microagg.job.observer import Observer
from microagg.job.run import run


def people(n=240, seed=0):
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=n)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "wage": np.round(2000 * np.exp(0.4 * skill)),
            "job": np.where(skill + rng.normal(size=n) > 0, "nurse", "cook"),
            "home": np.arange(n) // 2,
        }
    )


def protect(frame, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", microagg.DisclosureRiskWarning)
        return microagg.protect(frame, columns=["age", "wage", "job"], drop=["home"], **settings)


def plan_of(**settings):
    columns = ["age", "wage", "job"]
    return Plan.of(k=4, columns=columns, drop=["home"], release="swap", **settings)


def job_of(folder, engine, **more):
    """A job that swaps the values of some people."""
    people().to_csv(folder / "in.csv", index=False)
    return Job(folder / "in.csv", folder / "out.csv", plan_of(), engine=engine, **more)


def sentence(figures):
    """S6, word by word."""
    rates = figures["inference"]["nearest"]
    attack, control = (f"{100 * rates[side]['share']:.1f} %" for side in ("attack", "control"))
    return (
        f"Not promised: that a value cannot be guessed. Our attacks guess {attack} of the values; for "
        f"people who are not in the file {control}."
    )


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_board_reads_what_attacks_guess(tmp_path, engine):
    report = tmp_path / "report.html"
    run(job_of(tmp_path, engine, report=report))
    model = json.loads(report.with_suffix(".json").read_text())
    attacks = model["attacks"]
    assert attacks["records"] == 216
    assert attacks["controls"] == 24
    assert attacks["trials"] == 3
    assert attacks["inference"]["nearest"]["residual"]["share"] > 0
    assert set(attacks["inference"]["columns"]) == {"age", "wage", "job"}
    assert attacks["singling_out"]["several_columns"]["control"]["attacks"] > 0
    assert attacks["words"] == sentence(attacks)
    assert attacks["words"] in " ".join(report.read_text().split())


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_without_a_reader_or_a_limit_nobody_waits_for_attacks(tmp_path, engine, monkeypatch):
    monkeypatch.setattr(control_group, "attack_released", None)  # which cannot be called
    evidence = run(job_of(tmp_path, engine)).evidence
    assert evidence.as_dict()["attacks"] is None
    assert not evidence.guessed_words
    assert protect(people(), k=4, release="swap").evidence.attacks is None


@pytest.mark.parametrize("release", ["mean", "swap"])
def test_a_limit_is_checked_at_the_upper_end_of_the_interval(release):
    found = protect(people(), k=4, release=release, max_inference=1.0).evidence
    residual = found.attacks.questions["inference, nearest records"].residual
    assert 0 < residual.share < residual.high < 1
    assert [one.passed for one in found.thresholds] == [True]
    assert bool(found.guessed_words) == (release == "swap")  # which promises less
    strict = protect(people(), k=4, release=release, max_inference=0.001).evidence
    assert strict.verdict == "red"
    assert "values guessed beyond" in strict.verdict_words


def test_a_limit_that_cannot_be_checked_is_missed():
    """Without the controls some stratum has fewer than k people."""
    frame = people(24).assign(region=np.repeat(["n", "s"], 12))
    release = protect(frame, k=12, strata=["region"], release="swap", max_inference=1.0)
    found = release.evidence
    assert found.attacks is None
    assert not found.thresholds[0].passed
    assert found.thresholds[0].found.startswith("not measured: ")
    assert found.as_dict()["attacks"] == {"refused": found.not_attacked}


def test_large_tables_are_attacked_in_a_sample_of_whole_groups(monkeypatch):
    monkeypatch.setattr(control_group, "MOST_RECORDS", 100)
    frame = people()
    chosen = []
    whole = control_group.attack_rest

    def watched(table, units, protect, rows, **settings):
        chosen.append(rows)
        return whole(table, units, protect, rows, **settings)

    monkeypatch.setattr(control_group, "attack_rest", watched)
    release = protect(frame, k=4, release="swap")
    found = release.attacked().attacks
    labels = release.partition.labels
    rows = chosen[0]
    assert 90 <= len(rows) <= 100
    assert np.array_equal(np.flatnonzero(np.isin(labels, labels[rows])), rows)
    assert found.records + found.controls == len(rows)
    assert f"(in a sample of {len(rows)} records)" in release.evidence.guessed_words


class _Impatient(Observer):
    """Hears what is said ahead of attacks, and ends them at the first report of progress."""

    def __init__(self):
        self.ahead = []

    def stage(self, name, words=""):
        self.ahead += [words] if name == "attacking" else []

    def progress(self, stage, done, total):
        if stage == "attacking":
            raise StopSearch


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_seconds_are_told_ahead_and_who_does_not_wait_has_what_was_measured(
    tmp_path, engine, monkeypatch
):
    monkeypatch.setattr(control_group, "seconds_needed", lambda *_, **__: 7.4)
    observer = _Impatient()
    job = job_of(tmp_path, engine, report=tmp_path / "report.html")
    evidence = run(job, observer).evidence
    (words,) = observer.ahead
    told = re.fullmatch(
        r"attacks with people put aside as controls take about (\d+) seconds", words
    )
    assert int(told[1]) >= 22  # three trials, and the time that grouping took
    assert evidence.attacks.stopped
    assert evidence.attacks.trials == 1
