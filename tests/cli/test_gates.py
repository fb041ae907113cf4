"""Exit codes that a pipeline can rely on: strict verdicts, targets, promises, and faults of the program."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from command import here, said
from microagg import Plan


@pytest.fixture
def survey(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(60)],
            "household": [f"h{i // 3}" for i in range(60)],
            "income": rng.lognormal(8, 1, 60).round(2),
            "age": rng.integers(18, 90, 60),
            "illness": ["flu", "cold", "none"] * 20,
        }
    )
    path = tmp_path / "survey.csv"
    frame.to_csv(path, index=False)
    return path


def protect(source, *words, out="safe.csv"):
    asked = ["protect", source, source.with_name(out), "-k", 4, "-c", "income,age", "-m", "mdav"]
    named = any("id" in str(word).split(",") for word in words)
    return here(*asked, *words, *([] if named else ["--known", "id"]))


GREEN = ["--drop", "id,household", "--confidential", "illness"]


# protect


def test_strict_ends_with_1_on_amber_only(survey):
    loose = protect(survey)
    assert (loose.returncode, "amber k = 4 holds" in said(loose)) == (0, True)
    strict = protect(survey, "--strict")
    assert strict.returncode == 1
    assert "strict --strict: the verdict is amber, so the exit code is 1" in said(strict)
    assert survey.with_name("safe.csv").exists()  # what holds by itself is there to be looked at
    green = protect(survey, "--strict", *GREEN)
    assert (green.returncode, "green k = 4 holds" in said(green)) == (0, True)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--max-loss", 90], 0, "(at most 90 %): pass"),
        (["--max-loss", 0.01], 1, "red The information loss is above what the plan accepts."),
        (["--max-linkage", 1], 0, "(at most 100 %): pass"),
        (["--max-linkage", 0.001], 1, "is above what the plan accepts."),
        (["--max-loss", 90, "--max-linkage", 0.001], 1, "(at most 0.1 %): fail"),
    ],
)
def test_what_the_plan_accepts_decides(survey, words, code, told):
    done = protect(survey, *GREEN, *words)
    assert done.returncode == code, done.stderr
    assert told in said(done)
    assert f": {'pass' if code == 0 else 'fail'}" in said(done)
    given = json.loads(protect(survey, *GREEN, *words, "--json", "--quiet").stdout)
    assert given["verdict"] == ("green" if code == 0 else "red")
    assert all(t["passed"] for t in given["thresholds"]) == (code == 0)


def test_linkage_is_accepted_with_what_an_attacker_knows(survey):
    assert protect(survey, "--max-linkage", 0.9).returncode == 1  # with id and household known
    assert protect(survey, "--max-linkage", 0.9, *GREEN).returncode == 0


# measure


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 0, "lost"),
        (["--k", 4], 0, "target k holds"),
        (["--k", 9], 1, "target k does not hold for"),
        (["--max-loss", 90], 0, "target loss at most 90 %:"),
        (["--max-loss", 0.01], 1, "target loss at most 0.01 %:"),
        (["--max-linkage", 1], 0, "target linkage with what is known at most 100 %:"),
        (["--max-linkage", 0.2], 1, "target linkage with what is known at most 20.0 %: 100 %"),
        (["--confidential", "illness", "--min-distinct", 1], 0, "different illness in a group"),
        (["--confidential", "illness", "--min-distinct", 9], 1, "at least 9 different illness"),
        (["--min-distinct", 2], 2, "about confidential columns"),
        (["--max-linkage", 20], 2, "for 20 % write 0.2"),
    ],
)
def test_measure_has_gates(survey, words, code, told):
    protect(survey)
    done = here("measure", survey, survey.with_name("safe.csv"), *words)
    assert done.returncode == code, done.stderr
    assert told in said(done)
    if code < 2:
        given = json.loads(
            here("measure", survey, survey.with_name("safe.csv"), *words, "--json").stdout
        )
        assert all(target["passed"] for target in given["targets"]) == (code == 0)


def test_linkage_of_measure_counts_only_what_stayed_the_same(survey):
    protect(survey, "--drop", "id,household,illness")
    words = ["measure", survey, survey.with_name("safe.csv"), "--max-linkage", 0.9]
    assert here(*words).returncode == 0


def test_quiet_measuring_says_nothing_but_warnings(survey):
    protect(survey)
    done = here("measure", survey, survey.with_name("safe.csv"), "--k", 4, "--quiet")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()
    assert all(line.startswith("warning") for line in done.stderr.splitlines())


# verify


def test_verify_reads_the_promise_from_the_report_or_the_plan(survey, tmp_path):
    plan, safe = tmp_path / "plan.toml", tmp_path / "safe.csv"
    chosen = Plan.of(
        k=4,
        columns=["income", "age"],
        method="mdav",
        unit="household",
        renumber=["household"],
        known=["id"],
    )
    plan.write_text(chosen.to_toml())
    report = tmp_path / "report.html"
    here("protect", survey, safe, "--plan", plan, "--report", report, "--quiet")
    for promise in (plan, tmp_path / "report.json"):
        done = here("verify", safe, "--promise", promise, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["columns"], found["k"]) == (["income", "age"], 4)
        assert (found["unit"], found["holds"]) == ("household", True)
        assert "k = 4 holds" in said(done)
        broken = here("verify", survey, "--promise", promise)
        assert broken.returncode == 1
        assert "k = 4 does not hold for 60 records" in said(broken)


def test_verify_reads_the_promise_of_a_public_report(survey, tmp_path):
    safe, report = tmp_path / "safe.csv", tmp_path / "public.html"
    protect(survey, *GREEN, "--report", report, "--public", "--quiet")
    assert here("verify", safe, "--promise", tmp_path / "public.json").returncode == 0


def test_each_part_of_a_promise_is_counted(survey, tmp_path):
    safe = tmp_path / "safe.csv"
    plan = tmp_path / "plan.toml"
    chosen = Plan.of(k=4, columns=["income", "age"], per_column=True, known=["id"])
    plan.write_text(chosen.to_toml())
    here("protect", survey, safe, "--plan", plan, "--quiet")
    done = here("verify", safe, "--promise", plan, "--json")
    assert done.returncode == 0
    parts = json.loads(done.stdout)["parts"]
    assert [part["columns"] for part in parts] == [["income"], ["age"]]
    assert here("verify", safe, "-k", 4, "-c", "income,age").returncode == 1  # nobody promised that


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        ("{}", [], "A promise is the JSON of a report of microagg, or a plan"),
        ("[1]", [], "A promise is the JSON of a report of microagg, or a plan"),
        ("{", [], "A promise is the JSON of a report of microagg, or a plan"),
        ('{"plan": {"microagg": 1, "block": [{"k": 4}]}}', [], "does not name the columns"),
        ('{"plan": {"microagg": 1, "block": [{"columns": ["age"]}]}}', [], "k, the least number"),
        ('{"plan": {"microagg": 1}}', ["--k", 3], "not both"),
    ],
)
def test_promises_that_are_none(survey, tmp_path, text, words, message):
    promise = tmp_path / "promise.json"
    promise.write_text(text)
    done = here("verify", survey, "--promise", promise, *words)
    assert done.returncode == 2
    assert message in said(done)


def test_verify_needs_to_know_k(survey, tmp_path):
    assert "Which k?" in said(here("verify", survey))
    missing = here("verify", survey, "--promise", tmp_path / "absent.json")
    assert (missing.returncode, "Cannot read" in said(missing)) == (2, True)


# Faults of the program


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("error", [ValueError, KeyError, RuntimeError, RecursionError])
def test_a_fault_becomes_one_sentence_without_values(survey, monkeypatch, error, as_json):
    def fail(*_, **__):
        raise error("12345.67 is the income of somebody")

    monkeypatch.setattr("microagg.job.protect_table", fail)
    done = protect(survey, *(["--json"] if as_json else []))
    assert done.returncode == 2
    assert "12345" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert f"did not expect this input: {error.__name__} in " in said(done)
    assert "fault of the program, please report it" in said(done)
    assert done.stderr.count("Error:") == 1
    if as_json:
        told = json.loads(done.stdout)["error"]
        assert told["type"] == "MicroaggError"
        assert "12345" not in told["message"]
    assert not survey.with_name("safe.csv").exists()


def test_who_asks_for_it_sees_the_whole_fault(survey, monkeypatch):
    def fail(*_, **__):
        raise KeyError("income")

    monkeypatch.setattr("microagg.job.protect_table", fail)
    monkeypatch.setenv("MICROAGG_TRACEBACK", "1")
    with pytest.raises(KeyError, match="income"):
        protect(survey)


def test_too_little_memory_is_told(survey, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("microagg.job.protect_table", fail)
    done = protect(survey)
    assert done.returncode == 2
    assert "Error: The table does not fit into memory." in said(done)
