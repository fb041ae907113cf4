"""Exit codes that a pipeline can rely on: strict verdicts, targets, promises, and faults of the program."""

import importlib
import json
import threading
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import microagg
from command import here, said
from microagg import InputError, Plan, TableError
from microagg.cli.show import WATCHED, Speaker
from microagg.cli.warmup_command import Compiled

# Its package gives the name to the function.
_PROTECT = importlib.import_module("microagg.engines.memory.protect")


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


def test_strict_releases_green_only(survey, tmp_path):
    loose = protect(survey)
    assert (loose.returncode, "amber k = 4 holds" in said(loose)) == (0, True)
    target, report = tmp_path / "safe.csv", tmp_path / "report.html"
    target.unlink()
    strict = protect(survey, "--strict", "--report", report)
    assert strict.returncode == 1
    assert "rejected --strict: the verdict must be green and is amber. " in said(strict)
    assert "safe.csv' was not released; --keep-rejected PATH would keep it" in said(strict)
    assert "Rejected." in report.read_text(encoding="utf-8")
    assert json.loads(report.with_suffix(".json").read_text())["rejected"].startswith("--strict")
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".html", ".json"}
    assert not target.exists()
    green = protect(survey, "--strict", *GREEN)
    assert (green.returncode, "green k = 4 holds" in said(green), target.exists()) == (
        0,
        True,
        True,
    )


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_what_is_rejected_leaves_the_file_of_before_and_can_be_kept(survey, tmp_path, engine):
    target, kept = tmp_path / "safe.csv", tmp_path / "rejected.csv"
    target.write_text("of before")
    words = [*GREEN, "--max-loss", 0.01, "--engine", engine, "--json", "--quiet"]
    public = ["--report", tmp_path / "public.html", "--public"] if engine == "memory" else []
    done = protect(survey, *words, *public, "--keep-rejected", kept)
    assert done.returncode == 1
    assert "The information loss is above what the plan accepts. " in said(done)
    assert f"it is kept in '{kept}'" in said(done)
    given = json.loads(done.stdout)
    assert (given["output"], given["verdict"]) == (None, "red")
    assert given["rejected"] in done.stderr
    assert target.read_text() == "of before"
    assert len(pd.read_csv(kept)) == 60
    assert not (tmp_path / "public.html").exists()  # it is about a file that readers do not get


def test_python_raises_what_the_command_rejects(survey, tmp_path):
    chosen = {"k": 4, "columns": ["income", "age"], "method": "mdav", "known": ["id"]}
    with pytest.raises(microagg.RejectedError, match="must be green and is amber") as raised:
        microagg.protect_file(survey, tmp_path / "safe.csv", strict=True, **chosen)
    assert raised.value.evidence.verdict == "amber"
    assert not (tmp_path / "safe.csv").exists()
    (tmp_path / "safe.csv").write_text("of before")
    with pytest.raises(TableError, match="--no-overwrite"):
        microagg.protect_file(survey, tmp_path / "safe.csv", overwrite=False, **chosen)


def test_a_rejected_file_is_not_kept_over_a_file_of_the_job(survey):
    done = protect(survey, "--keep-rejected", survey)
    assert (done.returncode, "apart from the files of the job" in said(done)) == (2, True)


@pytest.mark.parametrize(
    ("engine", "formula", "told"),
    [
        ("memory", "income ~ age + age", "must not determine each other"),
        ("memory", "illness by age", "It computes with column 'illness', which holds text."),
        ("disk", "illness ~ income", "It computes with column 'illness', which holds text."),
        ("memory", "income by id", "Column 'id' is dropped or renumbered"),
        ("disk", "income by id", "Column 'id' is dropped or renumbered"),
        ("disk", "income by inc", "There is no column 'inc'"),
    ],
)
def test_an_analysis_that_cannot_work_is_refused_before_the_grouping(
    survey, monkeypatch, engine, formula, told
):
    monkeypatch.setattr(_PROTECT, "group", None)
    monkeypatch.setattr("microagg.engines.disk_release.group_from_disk", None)
    done = protect(survey, *GREEN, "--analysis", formula, "--engine", engine)
    assert done.returncode == 2
    assert f"The analysis '{formula}' cannot be done: " in said(done)
    assert told in said(done)


@pytest.fixture
def lines(monkeypatch):
    """What the command writes on stderr, with a way to wait until it has written something."""
    print_line, came, written = Console.print, threading.Condition(), []

    def printed(console, *words, **settings):
        with came:
            written.extend(" ".join(str(word).split()) for word in words)
            came.notify_all()
        print_line(console, *words, **settings)

    def wait_for(start):
        with came:
            assert came.wait_for(lambda: any(line.startswith(start) for line in written), 600)

    monkeypatch.setattr(Console, "print", printed)
    return SimpleNamespace(written=written, wait_for=wait_for)


def test_a_log_hears_where_a_long_job_is(survey, monkeypatch, lines):
    monkeypatch.setattr("microagg.cli.show._SECONDS_BETWEEN_LINES", 0.01)

    awaited = ["working grouping 40 %, "]  # of the whole job

    def slow(*_, progress, **__):
        progress(30)
        for line in awaited:
            lines.wait_for(line)
        raise InputError("enough")

    monkeypatch.setattr(_PROTECT, "group", slow)
    protect(survey)
    assert "Error: enough" in lines.written
    lines.written.clear()
    awaited.clear()
    protect(survey, "--quiet")
    assert not [line for line in lines.written if "working" in line]


def test_who_waits_hears_every_few_seconds_that_kernels_are_compiled(lines):
    speaker = Speaker(as_json=False, quiet=False)
    speaker.every = 0.01
    with speaker.progress("grouping", of_job=True) as note:
        note(Compiled(1), 4)
        lines.wait_for("working compiling 25 %, ")
        speaker.doing = "writing"
        note(2, 2)
        lines.wait_for("working writing 75 %, ")  # of the job
    with speaker.progress("pricing") as note:
        note(1, 2)
        lines.wait_for("working pricing 50 %, ")
    assert WATCHED <= 5


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--max-loss", 90], 0, "(at most 90 %): pass"),
        (["--max-loss", 0.01], 1, "red The information loss is above what the plan accepts."),
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


# measure


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 0, "lost"),
        (["--k", 4], 0, "target k holds"),
        (["--k", 9], 1, "target k does not hold for"),
        (["--max-loss", 90], 0, "(at most 90 %)"),
        (["--max-loss", 0.01], 1, "(at most 0.01 %)"),
        (
            ["--max-linkage", 1],
            0,
            "target record linkage with what an attacker knows 100 % (at most 100 %)",
        ),
        (
            ["--max-linkage", 0.2],
            1,
            "target record linkage with what an attacker knows 100 % (at most 20.0 %)",
        ),
        (["--max-linkage", 20], 2, "for 20 % write 0.2"),
    ],
)
def test_measure_has_gates(survey, words, code, told):
    protect(survey, "--keep-order")
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
    protect(survey, "--keep-order")
    done = here("measure", survey, survey.with_name("safe.csv"), "--k", 4, "--quiet")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()
    assert all(line.startswith("warning") for line in done.stderr.splitlines())


# verify


def test_verify_reads_the_promise_from_the_report_or_the_plan(survey, tmp_path):
    plan, safe = tmp_path / "plan.toml", tmp_path / "safe.csv"
    roles = {"unit": "household", "renumber": ["household"], "known": ["id"]}
    plan.write_text(Plan.of(k=4, columns=["income", "age"], method="mdav", **roles).to_toml())
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


def test_a_promise_about_units_that_the_plan_drops_is_counted_in_records(survey, tmp_path):
    plan, safe = tmp_path / "plan.toml", tmp_path / "safe.csv"
    chosen = {"columns": ["income", "age"], "unit": "household", "drop": ["household", "id"]}
    plan.write_text(Plan.of(k=4, method="mdav", **chosen).to_toml())
    here("protect", survey, safe, "--plan", plan, "--quiet")
    done = here("verify", safe, "--promise", plan, "--json")
    assert done.returncode == 0, done.stderr
    assert "about units (household), which the plan drops" in said(done)
    assert json.loads(done.stdout)["unit"] is None


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


@pytest.fixture
def failing(monkeypatch):
    """Let the work fail by an error."""

    def failing_by(error):
        def fail(*_, **__):
            raise error

        monkeypatch.setattr("microagg.job.memory_engine.protect_table", fail)

    return failing_by


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("error", [ValueError, KeyError, RuntimeError, RecursionError])
def test_a_fault_becomes_one_sentence_without_values(survey, failing, error, as_json):
    failing(error("12345.67 is the income of somebody"))
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


def test_who_asks_for_it_sees_the_whole_fault(survey, failing, monkeypatch):
    failing(KeyError("income"))
    monkeypatch.setenv("MICROAGG_TRACEBACK", "1")
    with pytest.raises(KeyError, match="income"):
        protect(survey)


def test_too_little_memory_is_told(survey, failing):
    failing(MemoryError())
    done = protect(survey)
    assert done.returncode == 2
    assert "Error: The table does not fit into memory." in said(done)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt, 130, "Interrupted: nothing was written."),
        (ValueError, 2, "RuntimeError"),
    ],
)
def test_an_error_that_an_interrupt_left_behind_is_an_interrupt(capsys, error, code, words):
    """Python's locks answer with a RuntimeError if Ctrl-C comes while a thread begins to wait."""

    def wait() -> None:
        lock = threading.Condition()
        with lock:
            lock.release()  # as Condition.wait does first
            raise error

    with pytest.raises(SystemExit) as end, Speaker(as_json=False, quiet=False).run():
        wait()
    assert end.value.code == code
    assert words in capsys.readouterr().err
