"""The work behind the page: reading, trying, protecting, the queue, and what happens when a process dies."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here
from microagg import Plan
from microagg.page.screens import in_page_words
from visitor import Visitor, served

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def test_it_goes_on_where_the_work_stands(visitor):
    assert visitor.get("").headers["location"] == visitor.home + "table"


def test_every_screen_answers(visitor):
    for path in ("open", "table", "plan", "try", "protect", "busy", "plan.toml"):
        assert visitor.get(path).status == 200
    for path in ("see", "see/1", "take", "take/1/file", "versions", "see/1/scatter", "nothing"):
        assert visitor.get(path).status == 404
    assert visitor.get("plan.toml").text == visitor.server.session.plan.to_toml()


def test_before_anything_is_open(folder, tmp_path):
    with served(folder, temporary=tmp_path) as server:
        visitor = Visitor(server)
        assert visitor.get("").headers["location"] == visitor.home + "open"
        for path in ("table", "plan", "try", "protect"):
            assert visitor.get(path).status == 404
        for path in ("plan", "plan/undo", "try", "try/k", "protect", "task/7/stop"):
            assert visitor.post(path).status == 404


def test_a_click_before_the_scripts_are_there_shows_a_whole_page(visitor, folder):
    """A part without its frame has no script that would ask for the rest: it showed 0 s for ever."""
    path = str(folder / "survey.csv")
    for address, fields in (
        ("open/path", {"path": str(folder)}),
        ("open/path", {"path": path}),
        ("open/pending", {"answer": "open"}),
        ("plan/search", {"max_loss": "-1"}),
        ("plan/answers", {}),
        ("try", {"methods": "", "sizes": "3"}),
        ("protect", {"ending": ".none"}),
        ("plan/undo", {}),
    ):
        answer = visitor.post_early(address, **fields)
        visitor.wait()
        assert answer.status in (200, 303)
        assert answer.status == 303 or "page.js" in answer.text, address
        assert "page.js" not in visitor.post(address, **fields).text, address
        visitor.wait()


def test_what_is_known_of_the_table(visitor):
    text = visitor.get("table").text
    drafted = microagg.draft(pd.read_csv(visitor.server.session.table.opened.path))
    for name, reason in drafted.notes.items():
        assert name in text
        assert reason.split(".")[0].replace('"', "&#34;") in text
    assert text.count('class="spark"') == 7
    assert "10000" in text  # the first records


def test_undo_and_redo_and_several_tabs(server, folder):
    visitor, tab = Visitor(server), Visitor(server)
    visitor.open(folder / "survey.csv")
    session = server.session
    plans = [session.plan]
    for role in ("drop", "renumber", "confidential"):
        visitor.post("plan", what="role", column="0", role=role)
        plans.append(session.plan)
    assert len(set(map(Plan.to_toml, plans))) == 4
    tab.post("plan/undo")
    visitor.post("plan/undo")
    assert session.plan == plans[1]
    tab.post("plan/redo")
    assert session.plan == plans[2]
    assert visitor.get("plan.toml").text == plans[2].to_toml()
    visitor.post("plan", what="role", column="0", role="known")
    assert "step 4 of 4" in tab.get("plan").text
    for _ in range(9):
        visitor.post("plan/redo")
    assert "person" not in (*session.plan.drop, *session.plan.renumber, *session.plan.confidential)
    for _ in range(9):
        visitor.post("plan/undo")
    assert session.plan == plans[0]


def test_mistakes_are_told_in_place_and_change_nothing(visitor):
    before = visitor.server.session.plan
    answer = visitor.post("plan", what="block", block="0", k="many", method="mdav")
    (words,) = visitor.problems(answer)
    assert "many" in words
    assert answer.text.index(words) > answer.text.index('id="k-0"')
    visitor.post("plan", what="role", column="2", role="known")
    answer = visitor.post("plan", what="coarsen", column="2", coarsen="stripes:5")
    (words,) = visitor.problems(answer)
    assert "stripes" in words
    visitor.post("plan/undo")
    answer = visitor.post("plan", what="text", text="k = <b>")
    assert "k = &lt;b&gt;</textarea>" in answer.text
    assert visitor.server.session.plan == before


def test_trying_is_what_the_plan_would_give(visitor):
    session = visitor.server.session
    visitor.post("try", methods="mdav", sizes="3, 6")
    visitor.wait()
    assert sorted(session.cells) == [("mdav", 3), ("mdav", 6)]
    frame = pd.read_csv(session.table.opened.path)
    for (method, k), cell in session.cells.items():
        release = microagg.protect(frame, plan=session.plan, k=k, method=method)
        assert cell.information_loss == pytest.approx(release.utility.information_loss)
        assert cell.linkage.share == pytest.approx(release.risk.record_linkage)
    text = visitor.get("try").text
    assert text.count('class="choice"') == 2
    assert "changed since" not in text
    # A choice goes into the plan, where it can be taken back.
    visitor.post("try/choose", method="mdav", k="6")
    assert session.plan.k == 6
    visitor.post("plan/undo")
    assert session.plan.k == 3
    # The slider tries what was not tried.
    visitor.post("try/k", k="4")
    visitor.wait()
    assert session.plan.k == 4
    assert ("mdav", 4) in session.cells
    visitor.post("plan", what="role", column="5", role="known")
    assert "changed since" in visitor.get("try").text


def test_choices_are_attacked_if_asked_for(visitor):
    visitor.post("try", methods="mdav", sizes="3", attack="yes")
    visitor.wait()
    (cell,) = visitor.server.session.cells.values()
    assert cell.inference.low <= cell.inference.share
    text = visitor.get("try").text
    assert "values guessed beyond controls in %" in text
    assert "values guessed beyond controls</th>" in text
    assert 'id="attack" checked' in text


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"methods": "", "sizes": "3"}, "Tick at least one"),
        ({"methods": "mdav", "sizes": "three"}, "three"),
        ({"methods": "mdav", "sizes": "600"}, "600"),
        ({"methods": "mdav", "sizes": "3", "max_linkage": "7"}, "max_linkage"),
        ({"methods": "mdav", "sizes": ",".join(["3"] * 90)}, "At most 60"),
    ],
)
def test_what_cannot_be_tried(visitor, fields, words):
    before = len(visitor.server.session.entries)
    (found,) = visitor.problems(visitor.post("try", **fields))
    assert words in found
    assert len(visitor.server.session.entries) == before


@pytest.fixture(scope="module")
def released(folder, tmp_path_factory):
    """Two releases of the survey with different k, on a server of their own."""
    with served(folder / "survey.csv", temporary=tmp_path_factory.mktemp("private")) as server:
        yield with_releases(server)


def with_releases(server):
    visitor = Visitor(server)
    visitor.wait()
    visitor.post("plan", what="role", column="1", role="unit")
    visitor.post("plan", what="role", column="0", role="drop")
    for k in (3, 5):
        visitor.plan(k=k)
        assert not visitor.problems(visitor.post("protect", ending=".csv"))
    visitor.wait()
    assert [entry.words for entry in server.session.entries if entry.state != "done"] == []
    return visitor


def test_the_file_is_what_the_command_writes(released, tmp_path):
    session = released.server.session
    bodies = {k: released.get(f"take/{number}/file").body for number, k in ((1, 3), (2, 5))}
    assert bodies[3] != bodies[5]
    (tmp_path / "plan.toml").write_bytes(released.get("take/2/plan").body)
    out, report = tmp_path / "safe.csv", tmp_path / "report.html"
    done = here("protect", session.table.opened.path, out, "--plan", tmp_path / "plan.toml",
                "--report", report)  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = released.get("take/2/file")
    assert answer.body == bodies[5]
    # Each file has its own random order of rows.
    assert answer.body.splitlines()[0] == out.read_bytes().splitlines()[0]
    assert sorted(answer.body.splitlines()) == sorted(out.read_bytes().splitlines())
    assert 'filename="survey-safe.csv"' in answer.headers["content-disposition"]
    assert microagg.verify(out, 5, ["income", "rent", "age"]).holds
    ours = released.get("take/2/numbers").text
    same = re.compile(r'"information_loss": [\d.e-]+')
    assert same.search(ours)[0] == same.search(report.with_suffix(".json").read_text())[0]


def test_both_reports_can_be_taken_away(released):
    board, public = (released.get(f"take/1/{what}").text for what in ("report", "public"))
    assert "For the disclosure board" in board
    assert "For the disclosure board" not in public
    assert '"public": true' in released.get("take/1/public-numbers").text
    assert "microagg protect" in released.get("take/1").text
    assert released.get("take/1/lock").status == 404
    assert released.get("take/9").status == 404


def test_what_came_out_is_what_the_report_says(released):
    released.get("see/1")
    released.wait()
    text = released.get("see/1").text
    assert text.count("<circle") > 100  # two columns, without being asked
    assert '<details class="annex">' in text
    release = released.server.session.release(1)
    assert in_page_words(release.model["verdict_words"]) in text.replace("\u00a0", " ")
    assert "see “Ledger”" in text  # the page has no flags
    assert text.count("<svg") > 5
    assert "style=" not in text  # which the page's policy would not let through
    assert "<style" not in text


def test_two_releases_in_one_view(released):
    text = released.get("versions").text
    assert "Release 1" in text
    assert '<span class="removed">-k = 3</span>' in text
    assert '<span class="added">+k = 5</span>' in text
    protected = released.server.session.release(1).model["columns"]["protected"]
    assert text.count("<figure><svg") == 2 * len(protected)
    assert "Nothing: both" in released.get("versions?a=1&b=1").text
    assert released.get("versions?a=x&b=99").status == 200


def test_two_columns(released):
    """Others than those that the screen begins with, which another test may have drawn before."""
    answer = released.get("see/1/scatter?x=4&y=3")
    assert "Drawing" in answer.text
    released.wait()
    text = released.get("see/1/scatter?x=4&y=3").text
    assert text.count("<circle") > 100
    before = len(released.server.session.entries)
    released.get("see/1/scatter?x=4&y=3")
    assert released.get("see/1/scatter?x=0&y=99").status == 200
    assert len(released.server.session.entries) == before


@pytest.mark.posix
def test_another_table_takes_the_place_of_the_first(visitor, folder):
    session = visitor.server.session
    visitor.post("protect", ending=".parquet")
    visitor.wait()
    (release,) = session.releases
    assert (release.folder / "survey-safe.parquet").stat().st_mode & 0o777 == 0o600
    body = (folder / "survey.csv").read_bytes()
    for answer in ("stay", "open"):  # work stands against it, so the page asks
        visitor.put("second.csv", body)
        visitor.wait()
        assert (session.table.opened.path.name, len(session.releases)) == ("survey.csv", 1)
        assert visitor.get("").headers["location"] == visitor.home + "open"
        text = visitor.get("open").text
        assert re.search(r"is open, with \d changes? of the plan and 1 release", text)
        assert "Opening <strong>second.csv</strong> removes this work" in text
        uploaded = session.pending.path
        visitor.post("open/pending", answer=answer)
        assert uploaded.exists() == (answer == "open")
        assert "removes this work" not in visitor.get("open").text
    visitor.wait()
    assert session.table.opened.path.name == "second.csv"
    assert session.work == ""  # so the next table is opened at once
    assert session.releases == []
    assert not release.folder.exists()
    # A release of an upload names it as the user does.
    visitor.plan(k=3)
    visitor.post("protect", ending=".csv")
    visitor.wait()
    assert session.releases[0].model["files"]["input"]["path"] == "second.csv"
    assert "protect second.csv second-safe.csv" in visitor.get("take").text


def test_what_the_table_cannot_do_is_told_in_its_words(visitor):
    visitor.post("plan", what="k", k="500")
    visitor.post("protect", ending=".csv")
    visitor.wait()
    (words,) = visitor.problems(visitor.get("protect"))
    assert "500" in words
    assert visitor.problems(visitor.post("protect", ending=".exe"))


# The queue, on a table that takes a while.


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    root = tmp_path_factory.mktemp("slow")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(4000, 3)).round(4), columns=["x", "y", "z"])
    frame.to_csv(root / "slow.csv", index=False)
    with served(root / "slow.csv", temporary=root) as server:
        visitor = Visitor(server)
        visitor.wait()
        text = 'microagg = 1\n[[block]]\ncolumns = ["x", "y", "z"]\nk = 3\neffort = "best"\n'
        assert not visitor.problems(visitor.post("plan", what="text", text=text))
        yield visitor


def searching(entry):
    return lambda: entry.news.get("loss") is not None


def test_stop_and_keep(slow):
    session = slow.server.session
    slow.post("protect", ending=".csv")
    entry = session.latest("protect")
    slow.wait(searching(entry))
    text = slow.part("protect").text
    assert "Loss so far" in text
    slow.post(f"task/{entry.number}/stop")
    slow.wait(lambda: not entry.open)
    assert entry.state == "done", entry.words
    assert "stopped early as asked" in session.releases[-1].model["words"]["parts"][0]
    assert microagg.verify(session.releases[-1].folder / "slow-safe.csv", 3, ["x", "y", "z"]).holds


def test_stopped_trials_keep_what_was_tried(slow):
    session = slow.server.session
    # The plan's own method searches for long, with however many threads.
    slow.post("try", methods="mdav,auto", sizes=",".join(map(str, range(3, 33))))
    entry = session.latest("compare")
    slow.wait(lambda: len(entry.news.get("cells", ())) > 1)
    slow.post(f"task/{entry.number}/stop")
    slow.wait(lambda: not entry.open)
    assert entry.state == "done"
    untried = [cell for cell in session.cells.values() if not cell.tried]
    assert 0 < len(untried) < len(session.cells)


def test_one_at_a_time_cancel_and_go_on(slow):
    session = slow.server.session
    for _ in range(3):
        slow.post("protect", ending=".csv")
    first, second, third = session.entries[-3:]
    assert [e.state for e in (first, second, third)] == ["running", "waiting", "waiting"]
    assert "2 more waiting" in slow.get("table").text
    slow.post(f"task/{third.number}/cancel")
    assert third.state == "cancelled"
    slow.post(f"task/{first.number}/cancel")
    assert first.state == "cancelled"
    slow.wait(lambda: second.state == "running")
    slow.post(f"task/{second.number}/cancel")
    slow.wait()
    # What was cancelled left nothing half.
    assert [p.name for p in second.task.settings["folder"].iterdir()] in ([], [".slow-safe.csv"])
    go_on(slow)


def go_on(slow):
    """Whether the queue still does what it is asked to."""
    slow.post("try", methods="mdav", sizes="3")
    slow.wait()
    assert slow.server.session.latest("compare").state == "done"


@pytest.mark.posix
def test_a_process_that_dies_is_reported_and_the_server_lives(slow):
    session = slow.server.session
    slow.post("protect", ending=".csv")
    entry = session.latest("protect")
    slow.wait(searching(entry))
    os.kill(session.worker.process.pid, signal.SIGKILL)
    slow.wait(lambda: not entry.open)
    assert entry.state == "failed"
    (words,) = slow.problems(slow.part("protect"))
    assert "ended unexpectedly (signal 9)" in words
    go_on(slow)


@pytest.mark.posix
def test_the_worker_ends_with_the_server(folder, tmp_path):
    with served(folder, temporary=tmp_path) as server:
        Visitor(server)
        pid = server.session.worker.process.pid
        os.kill(pid, 0)
    ends = time.monotonic() + 600
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_the_server_stays_small():
    """What reads, groups and draws is loaded in the worker alone."""
    heavy = ("numba", "scipy", "sklearn", "matplotlib", "pandas", "narwhals")
    code = f"import sys, microagg.page.serve; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
