"""A job: from file to file; what it says on the way, and that nothing half is left."""

import csv
import hashlib
import json
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import microagg
from command import here
from microagg import Block, InputError, Plan, StopSearch, TableError
from microagg.formats.atomic import sha256
from microagg.formats.files import read_file
from microagg.job import memory_engine
from microagg.job.job import Job
from microagg.job.observer import Observer
from microagg.job.run import run
from microagg.report.html import render

N = 60
RNG = np.random.default_rng(2)
ROWS = [
    [
        f"{i:05d}",
        f"h{i // 3}",
        f"{RNG.lognormal(8, 1):.2f}",
        str(RNG.integers(18, 90)),
        f"{i % 4}.50",
    ]
    for i in range(N)
]
HEADER = ["id", "household", "income", "age", "paid"]
PLAN = Plan.of(k=3, columns=["income", "age"], known=["id"], method="mdav", bound=False)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADER, *ROWS])
    return path


def read(path):
    with Path(path).open(newline="") as file:
        return list(csv.reader(file))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Diary(Observer):
    """Notes all that it hears."""

    def __init__(self):
        self.stages, self.done, self.cautions, self.words = [], [], [], []

    def stage(self, name, words=""):
        self.stages.append(name)
        self.words.append(words)

    def progress(self, stage, done, total):
        self.done.append((stage, int(done), total))

    def caution(self, caution):
        self.cautions.append(caution)


def test_from_file_to_file(source, tmp_path):
    target, report = tmp_path / "safe.csv", tmp_path / "report.html"
    before = source.read_bytes()
    outcome = run(Job(source, target, PLAN, report=report))
    assert source.read_bytes() == before
    assert outcome.files == [target, report, tmp_path / "report.json"]
    assert names(tmp_path) == ["in.csv", "report.html", "report.json", "safe.csv"]
    assert microagg.verify(target, 3, ["income", "age"]).holds
    evidence = outcome.evidence
    assert evidence.counted.sha256 == sha256(target)
    assert evidence.source == {"path": str(source), "sha256": sha256(source)}
    assert evidence.verdict == "amber"
    twin = json.loads((tmp_path / "report.json").read_text())
    assert twin["verdict"] == "amber"
    assert twin["verified"]["sha256"] == sha256(target)
    assert twin["files"]["input"]["sha256"] == sha256(source)
    assert outcome.guesses is None
    assert set(outcome.seconds) >= {"read", "check", "partition", "measure", "write", "report"}


@pytest.mark.parametrize("engine", [None, "disk"])
def test_a_wrong_name_is_refused_before_groups_are_formed(source, tmp_path, engine):
    folder = tmp_path / "parts"
    folder.mkdir()
    pq.write_table(pa.table({"income": [1.0, 2.0], "age": [3.0, 4.0]}), folder / "one.parquet")
    few = PLAN.override(k=2, known=[])
    for given, plan in (
        (source, PLAN.override(drop=["wages"])),
        (source, PLAN.override(analyses=["income ~ age + wages"])),
        (folder, few.override(drop=["wages"])),  # of which no header is read ahead
        (folder, few.override(analyses=["wages by age"])),
    ):
        diary = Diary()
        job = Job(given, tmp_path / "out.parquet", plan, engine=engine)
        with pytest.raises(InputError, match="There is no column 'wages'; the table has "):
            run(job, diary)
        assert diary.stages == (["reading"] if given == folder else [])


def test_the_library_does_the_same(source, tmp_path):
    run(Job(source, tmp_path / "safe.csv", PLAN.override(keep_order=True)))
    table = pa.table({"income": [float(r[2]) for r in ROWS], "age": [int(r[3]) for r in ROWS]})
    release = microagg.protect(table, plan=PLAN.override(known=[]))
    written = read(tmp_path / "safe.csv")[1:]
    assert [float(row[2]) for row in written] == release.data["income"].to_pylist()


def test_without_named_columns_the_draft_is_told(source, tmp_path):
    outcome = run(Job(source, tmp_path / "safe.csv", PLAN.override(columns=None, known=[])))
    assert outcome.guesses["income"].role == "protect"
    assert outcome.guesses["id"].role == "drop"
    assert "income" in outcome.evidence.roles.protected
    assert "id" in outcome.evidence.roles.dropped
    assert outcome.evidence.plan.blocks[0].columns == tuple(outcome.evidence.roles.protected)


def test_an_observer_hears_stages_progress_and_cautions(source, tmp_path):
    diary = Diary()
    plan = PLAN.override(bound=True)
    job = Job(source, tmp_path / "safe.csv", plan, report=tmp_path / "r.html")
    outcome = run(job, diary)
    assert diary.stages == ["reading", "grouping", "bounding", "writing", "measuring", "reporting"]
    assert diary.words[1] == "60 records, 5 columns"
    assert diary.cautions == list(outcome.evidence.cautions)
    assert any("id" in caution.columns for caution in diary.cautions)
    assert diary.done[-1][2] == N
    assert {stage for stage, *_ in diary.done} <= {"grouping", "bounding"}
    assert all(done <= total for _, done, total in diary.done)
    diary = Diary()
    run(Job(source, tmp_path / "safe.csv", PLAN), diary)
    assert diary.stages == ["reading", "grouping", "writing", "measuring"]


def test_the_time_of_a_proof_is_told_before_it_starts(source, tmp_path, monkeypatch):
    def words_with(plan):
        diary = Diary()
        run(Job(source, tmp_path / "safe.csv", plan, report=tmp_path / "r.html"), diary)
        return diary.words[diary.stages.index("bounding")]

    plan = Plan.of(k=3, columns=["income", "age"], known=["id"], method="mdav")
    assert words_with(plan) == ""  # nobody notices
    monkeypatch.setattr("microagg.engines.memory.release.seconds_of_bound", lambda *_: 11.2)
    assert words_with(plan).endswith("takes about 12 seconds")
    assert words_with(PLAN) == ""  # there is no proof


@pytest.mark.parametrize(("bound", "told"), [(True, True), (False, False), ("fast", False)])
def test_so_is_that_of_a_proof_that_was_asked_for(source, tmp_path, monkeypatch, bound, told):
    monkeypatch.setattr("microagg.bounds.by_effort.expected_seconds", lambda n, k: 11.2)
    plan, diary = (
        Plan.of(k=3, columns=["income", "age"], known=["id"], method="mdav", bound=bound),
        Diary(),
    )
    run(Job(source, tmp_path / "safe.csv", plan), diary)
    takes = "; a proof of how near the optimum the groups are takes about 12 seconds"
    assert diary.words[1] == "60 records, 5 columns" + (takes if told else "")


def test_a_search_of_minutes_is_announced(tmp_path, monkeypatch):
    """A category counts by the levels that it has; a million texts of 5,000 levels take four minutes."""
    names = [f"{i // 4:03d}n" for i in range(400)]
    table = pd.DataFrame({"name": names, "x": np.arange(400.0)})
    table.to_csv(tmp_path / "in.csv", index=False)

    def words_with(**settings):
        diary = Diary()
        plan = Plan.of(k=3, columns=["name", "x"], kinds={"name": "nominal"}, **settings)
        run(Job(tmp_path / "in.csv", tmp_path / "out.csv", plan), diary)
        return diary.words[1]

    assert words_with() == "400 records, 2 columns"
    monkeypatch.setattr(memory_engine, "_SECONDS_A_COORDINATE", 0.01)  # times 400 records and 65
    assert words_with().endswith("; about 4 minutes of computing, shared by all cores")
    assert words_with(method="mdav") == "400 records, 2 columns"


def test_who_does_not_wait_for_the_proof_has_the_groups(source, tmp_path):
    class Impatient(Observer):
        def progress(self, stage, done, total):
            if stage == "bounding":
                raise StopSearch

    plan = PLAN.override(bound=True)
    outcome = run(Job(source, tmp_path / "safe.csv", plan, report=tmp_path / "r.html"), Impatient())
    assert outcome.evidence.counted.holds
    assert names(tmp_path) == ["in.csv", "r.html", "r.json", "safe.csv"]


def test_a_job_warns_of_nothing_by_itself(source, tmp_path, recwarn):
    outcome = run(Job(source, tmp_path / "safe.csv", PLAN))
    assert len(outcome.evidence.cautions) > 1
    assert len(recwarn) == 0


def test_two_jobs_in_two_threads_do_not_mix(tmp_path):
    """Each has cautions of its own, and hears no others."""
    diaries, failures = {}, []

    def work(number):
        try:
            path = tmp_path / f"in{number}.csv"
            rows = [[f"{i}x{number}", f"{i * (number + 3) % 97}.5"] for i in range(N)]
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([[f"id{number}", f"pay{number}"], *rows])
            plan = Plan.of(k=3, columns=[f"pay{number}"], known=[f"id{number}"], method="mdav")
            for _ in range(5):
                diary = Diary()
                outcome = run(Job(path, tmp_path / f"out{number}.csv", plan), diary)
                assert outcome.evidence.counted.holds
                assert outcome.evidence.roles.known == [f"id{number}"]
                diaries.setdefault(number, []).append(diary)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for number in range(2):
        for diary in diaries[number]:
            named = {name for caution in diary.cautions for name in caution.columns}
            assert named == {f"id{number}"}
            words = " ".join(caution.sentence for caution in diary.cautions)
            assert f"id{1 - number}" not in words


# Nothing half


@pytest.mark.parametrize("old", [None, "old"])
def test_a_report_that_cannot_be_made_leaves_no_table(source, tmp_path, monkeypatch, old):
    target = tmp_path / "safe.csv"
    if old:
        target.write_text(old)
    before = names(tmp_path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("microagg.job.run.report_texts", fail)
    with pytest.raises(TableError, match=r"No space left.*Nothing was released"):
        run(Job(source, target, PLAN, report=tmp_path / "report.html"))
    assert names(tmp_path) == before
    assert old is None or target.read_text() == old


def test_an_interrupt_while_the_report_is_made_leaves_nothing(source, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("microagg.job.run.report_texts", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(Job(source, tmp_path / "safe.csv", PLAN, report=tmp_path / "report.html"))
    assert names(tmp_path) == ["in.csv"]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"target": "safe.docx"}, "has none that is known"),
        ({"target": "safe.por"}, "are read, not written"),
        ({"target": "no/safe.csv"}, "there is no folder"),
        ({"report": "report.pdf"}, "does not end in .html"),
        ({"report": "no/report.html"}, "there is no folder"),
        ({"target": "r.csv", "public": True}, "say where to write it with --report"),
        ({"plan": Plan.of(columns=["income"])}, "k, the least number"),
    ],
)
def test_mistakes_are_found_before_anything_is_read(tmp_path, monkeypatch, job, message):
    monkeypatch.setattr("microagg.job.memory_engine.read_file", None)
    settings = {"target": "safe.csv", "plan": PLAN, "report": None, **job}
    for key in ("target", "report"):
        if settings[key] is not None:
            settings[key] = tmp_path / settings[key]
    with pytest.raises((InputError, TableError), match=message):
        run(Job(tmp_path / "absent.csv", **settings))
    assert names(tmp_path) == []


def test_a_report_may_not_replace_a_file_of_the_run(source, tmp_path):
    twin = tmp_path / "safe.json"
    twin.write_text("{}")
    link = tmp_path / "out.csv"
    link.symlink_to(twin)
    with pytest.raises(InputError, match="a file of this very run"):
        run(Job(source, link, PLAN, report=tmp_path / "safe.html"))
    assert twin.read_text() == "{}"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_output_may_be_the_input_and_its_hash_is_told(source, tmp_path, ending):
    path = source
    if ending == "parquet":
        path = tmp_path / "in.parquet"
        rows = {name: [row[j] for row in ROWS] for j, name in enumerate(HEADER)}
        rows |= {"income": [float(r[2]) for r in ROWS], "age": [int(r[3]) for r in ROWS]}
        pq.write_table(pa.table(rows), path)
    before = sha256(path)
    outcome = run(Job(path, path, PLAN, report=tmp_path / "report.html"))
    twin = json.loads((tmp_path / "report.json").read_text())
    assert sha256(path) != before
    for files in (twin["files"], outcome.evidence.as_dict()["files"]):
        assert files["input"]["sha256"] == before
        assert files["output"]["sha256"] == sha256(path)
    assert microagg.verify(path, 3, ["income", "age"]).holds


# To the letter


@pytest.mark.parametrize("keep_order", [None, True])
def test_untouched_columns_of_a_csv_file_come_out_to_the_letter(source, tmp_path, keep_order):
    plan = PLAN.override(known=[], drop=["id"], renumber=["household"], keep_order=keep_order)
    run(Job(source, tmp_path / "safe.csv", plan))
    header, *rows = read(tmp_path / "safe.csv")
    assert header == ["household", "income", "age", "paid"]
    assert {row[3] for row in rows} == {"0.50", "1.50", "2.50", "3.50"}  # not 0.5
    assert sorted(row[3] for row in rows) == sorted(row[4] for row in ROWS)
    in_order = [row[3] for row in rows] == [row[4] for row in ROWS]
    assert in_order is bool(keep_order)
    # Whoever was in one household still is, under another name, whatever the order of the rows.
    sizes = {}
    for row in rows:
        sizes[row[0]] = sizes.get(row[0], 0) + 1
    assert sorted(sizes, key=int) == [str(i) for i in range(1, N // 3 + 1)]
    assert set(sizes.values()) == {3}


def test_a_confidential_number_of_a_csv_file_is_a_number(tmp_path):
    path = tmp_path / "in.csv"
    rows = "".join(f"{i * 7 % 60}.5,{'' if i == 3 else i * 11 % 60}\n" for i in range(60))
    path.write_text("pay,cost\n" + rows)
    plan = Plan.of(k=3, columns=["pay"], confidential=["cost"], method="mdav", max_pairing=1.0)
    outcome = run(Job(path, tmp_path / "safe.csv", plan))
    typed = pa.table(
        {
            "pay": [i * 7 % 60 + 0.5 for i in range(60)],
            "cost": [None if i == 3 else i * 11 % 60 for i in range(60)],
        }
    )
    expected = microagg.protect(typed, plan=plan).risk.diversity["cost"]
    assert outcome.evidence.alone.diversity["cost"].t == expected.t < 0.9


def test_both_reports_of_one_run(source, tmp_path):
    board, public = tmp_path / "board.html", tmp_path / "public.html"
    told = []

    class Hears(Observer):
        def reported(self, model):
            told.append(model)

    job = Job(source, tmp_path / "safe.csv", PLAN, report=board, public_report=public)
    outcome = run(job, Hears())
    assert [path.name for path in outcome.files] == [
        "safe.csv", "board.html", "board.json", "public.html", "public.json",
    ]  # fmt: skip
    (model,) = told
    assert json.loads(board.with_suffix(".json").read_text()) == json.loads(json.dumps(model))
    assert render(model) == board.read_text()
    alone = Job(source, tmp_path / "again.csv", PLAN, report=tmp_path / "p.html", public=True)
    run(alone)
    ours, theirs = (
        json.loads(path.with_suffix(".json").read_text()) for path in (public, alone.report)
    )
    assert ours["public"]
    assert ours["pictures"] == theirs["pictures"]
    assert ours["columns"] == theirs["columns"]


def test_two_reports_of_one_name_are_refused(source, tmp_path):
    one = tmp_path / "report.html"
    with pytest.raises(InputError, match="a file of this very run"):
        Job(source, tmp_path / "safe.csv", PLAN, report=one, public_report=one).check()
    with pytest.raises(InputError, match="a file of this very run"):
        Job(
            source, tmp_path / "safe.csv", PLAN, report=one, public_report=tmp_path / "report.htm"
        ).check()


_OPENED: list[str] = []
sys.addaudithook(lambda event, args: _OPENED.append(str(args[0])) if event == "open" else None)


def test_the_source_is_opened_once_to_look_and_once_to_read(tmp_path, monkeypatch):
    """By the command with a plan and a report; what is hashed is what was read."""
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("a,b\n" + "".join(f"{i},{i * i % 17}\n" for i in range(60)))
    (tmp_path / "plan.toml").write_text('microagg = 1\n[[block]]\ncolumns = ["a", "b"]\nk = 5\n')
    checked = []
    check = Block.__post_init__
    monkeypatch.setattr(Block, "__post_init__", lambda self: checked.append(self) or check(self))
    del _OPENED[:]
    done = here(
        "protect", source, target, "--plan", tmp_path / "plan.toml", "--report", tmp_path / "r.html"
    )
    assert done.returncode == 0, done.stderr
    assert _OPENED.count(str(source)) == 2
    assert (
        len(checked) == 1
    )  # options of a plan are checked when it is read, and stay what they are
    twin = json.loads((tmp_path / "r.json").read_text())
    for path, which in ((source, "input"), (target, "output")):
        assert twin["files"][which]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_value_longer_than_a_block_is_read_from_the_file_that_was_hashed(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("a,text\n" + "1,x\n" * 9 + f"1,{'y' * (3 << 20)}\n")
    found = read_file(source, hashed=True)
    assert len(found.as_written["text"][9].as_py()) == 3 << 20
    assert found.sha256 == hashlib.sha256(source.read_bytes()).hexdigest()


def test_spark_replaces_a_folder_that_is_there_and_no_file(tmp_path):
    for folder in ("in", "out"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"a": np.arange(9.0)}), tmp_path / folder / "0.parquet")
    (tmp_path / "file").write_text("somebody's")
    plan = Plan.of(k=3, columns=["a"])
    Job(tmp_path / "in", tmp_path / "out", plan, engine="spark").check()
    with pytest.raises(TableError, match=r"is a folder of Parquet files; .*file' is a file"):
        Job(tmp_path / "in", tmp_path / "file", plan, engine="spark").check()


def test_a_compressed_output_may_not_be_another_file_of_the_run(source, tmp_path):
    target = tmp_path / "out.csv.gz"
    with pytest.raises(InputError, match="report"):
        run(Job(source, target, Plan.of(k=3, columns=["age"]), report=target))
    assert not target.exists()


@pytest.mark.parametrize("endings", [("csv", "csv.gz"), ("csv.gz", "csv")])
def test_only_one_of_two_files_may_be_compressed(source, tmp_path, endings):
    given, wanted = (tmp_path / f"{name}.{end}" for name, end in zip("ab", endings, strict=True))
    table = pd.read_csv(source)
    table.to_csv(given, index=False)
    run(Job(given, wanted, Plan.of(k=3, columns=["age"], drop=[*table.columns.drop("age")])))
    assert len(pd.read_csv(wanted)) == len(table)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_file_keeps_its_delimiter(tmp_path, engine):
    frame = pd.DataFrame({"x": np.arange(9.0) / 2, "y": np.arange(9)})
    frame.to_csv(tmp_path / "in.csv", sep=";", index=False)
    plan = Plan.of(k=3, columns=["x", "y"])
    run(Job(tmp_path / "in.csv", tmp_path / "out.csv", plan, engine=engine))
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "x;y"
