"""The command as its users call it: a process, its two streams and its exit code."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import microagg
from command import here, said

COMMAND = [sys.executable, "-m", "microagg"]


def run(*arguments, **settings):
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], capture_output=True, text=True, check=False, **settings
    )


def test_protect_says_what_it_did_on_stderr(survey, tmp_path):
    out = tmp_path / "safe.csv"
    done = run("protect", survey, out, "--k", 5)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    for words in (
        "60 records, 4 columns",
        "drafted no columns were named; microagg plan IN shows why each has its role",
        "protected income, age, region",
        "dropped id",
        "records by auto, k = 5",
        "% of the information",
        "read back: 60 records with ",
        "the rarest is shared by 5 records",
        "green k = 5 holds in the written file",
    ):
        assert words in said(done), words
    assert "income: A quantity" not in said(done)  # reasons are in the plan, and with --verbose
    assert done.stderr.splitlines()[-1].startswith("green")
    assert "\x1b" not in done.stderr
    assert survey.read_text().splitlines()[1].startswith('"00000"')


def test_verbose_says_why_each_column_has_its_role_and_every_note(survey, tmp_path):
    done = here("protect", survey, tmp_path / "safe.csv", "--k", 5, "--verbose")
    for words in (
        "income: A quantity: numbers with decimals, 60 distinct in 60 records.",
        "hidden each record shares its protected values with at least 4 others; before,",
        "drop id: All or nearly all texts differ, 60 distinct in 60 records.",
    ):
        assert words in said(done), words
    assert done.stderr.splitlines()[-1].startswith("green")
    words = ["--k", 5, "-c", "income,age", "--known", "id", "--verbose"]
    named = here("protect", survey, tmp_path / "safe.csv", *words)
    assert "note No column is named as confidential." in said(named)
    assert named.stderr.splitlines()[-1].startswith("amber")


def test_protect_gives_everything_as_json(survey, tmp_path):
    out = tmp_path / "safe.parquet"
    done = here(
        "protect", survey, out, "-k", 5, "-c", "income,age", "--known", "id", "--json", "--quiet"
    )
    assert done.returncode == 0
    result = json.loads(done.stdout)
    none = {key: [] for key in ("dropped", "renumbered", "confidential", "strata")}
    named = {"protected": ["income", "age"], "known": ["id", "region"]}
    assert result["columns"] == {**named, **none}
    assert (result["records"], result["k"], result["verdict"]) == (60, 5, "amber")
    (part,) = result["parts"]
    assert part["columns"] == ["income", "age"]
    assert part["smallest"] == 5
    assert result["information_loss"] == pytest.approx(part["information_loss"], rel=1e-2)
    assert result["plan"] == {
        "microagg": 1,
        "known": ["id", "region"],
        "block": [{"columns": ["income", "age"], "k": 5}],
    }
    risk = result["risk"]
    for known in ("alone", "with_known"):
        assert {"smallest_class", "unique", "record_linkage"} <= set(risk[known])
    assert (risk["alone"]["smallest_class"], risk["with_known"]["smallest_class"]) == (5, 1)
    assert 0 < risk["alone"]["record_linkage"] < 0.5 < risk["with_known"]["record_linkage"]
    assert [harm["name"] for harm in risk["known_columns"]] == ["id", "region"]
    assert result["verified"]["holds"] is True
    assert all(set(c) == {"severity", "columns", "words"} for c in result["cautions"])
    assert ["id"] in [c["columns"] for c in result["cautions"] if c["severity"] == "amber"]
    assert set(result["seconds"]) >= {"read", "check", "partition", "aggregate", "measure", "write"}
    written = pq.read_table(out)
    assert written.column_names == ["id", "income", "age", "region"]


def test_quiet_hides_words_but_no_warning(survey, tmp_path):
    asked = ["protect", survey, tmp_path / "safe.csv", "-k", 5, "-c", "income,age"]
    loud, quiet = here(*asked, "--known", "id"), here(*asked, "--known", "id", "--quiet")
    lines = quiet.stderr.splitlines()
    assert lines == [line for line in loud.stderr.splitlines() if line.startswith("warning")]
    assert len(lines) == 2
    safe = here(*asked, "--quiet", "--drop", "id,region")
    assert (safe.returncode, safe.stderr, safe.stdout) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "five"], "valid integer"),
        (
            [],
            "k, the least number of records that share their values, is not given. Say k=5, --k 5",
        ),
        (["--k", 5, "--seed", "new"], "--seed takes a whole number, or fresh; got 'new'"),
        (["--k", 5, "--columns", 'a,"b'], "Names of columns are separated by commas"),
    ],
)
def test_wrong_use_exits_with_2_and_writes_nothing(survey, tmp_path, arguments, message):
    out = tmp_path / "safe.csv"
    done = here("protect", survey, out, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["survey.csv"]


def test_an_error_as_json(survey, tmp_path):
    done = here("protect", survey, tmp_path / "safe.csv", "--k", 99, "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert error["type"] == "InputError"
    assert error["message"].startswith("k=99 needs")


def test_methods_lists_the_registry():
    narrow = run("methods", env={**os.environ, "COLUMNS": "40"}).stdout.splitlines()
    assert [line for line in narrow if line[0] != " "] == [m.name for m in microagg.methods()]
    rows = json.loads(here("methods", "--json", "--quiet").stdout)["methods"]
    assert {"name", "family", "paper", "exact", "time", "options"} <= set(rows[0])
    assert "mdav" in [row["name"] for row in rows]


def test_demo_without_its_extra_takes_a_simpler_table_and_says_so(tmp_path, monkeypatch):
    from microagg.cli import example

    monkeypatch.setattr(example, "find_spec", lambda name: None)
    done = here("demo", "--folder", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    assert "pip install 'microagg[demo]'" in said(done)
    assert "400 records" in said(done)
    assert (tmp_path / "new" / "patients-protected.csv").exists()


@pytest.mark.parametrize("arguments", [["--help"], ["protect", "--help"], ["verify", "-h"], []])
def test_help_teaches(arguments):
    done = (run if arguments == ["--help"] else here)(*arguments)
    assert "Usage: microagg" in done.stdout + done.stderr
    assert done.returncode == (0 if arguments else 2)


def test_version():
    import microagg

    assert run("--version").stdout.strip() == f"microagg {microagg.__version__}"


@pytest.fixture
def searched(tmp_path):
    """A file, and the command to search for its best groups until told to stop."""
    source, out = tmp_path / "in.csv", tmp_path / "safe.csv"
    values = np.random.default_rng(0).normal(size=(600, 3))
    source.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in values) + "\n")
    command = [*COMMAND, "protect", str(source), str(out), "--k", "3"]
    return out, [*command, "--effort", "best", "--time-limit", "600"]


def watch_search(command):
    """Run a command on a terminal of its own until it reports what it has found so far."""
    leader, follower = os.openpty()
    process = subprocess.Popen(
        command, stderr=follower, env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    )
    os.close(follower)
    read_until(leader, b"IL")
    return process, leader


def read_until(leader, words):
    seen = b""
    while words not in seen:
        seen += os.read(leader, 1024)


def read_on(leader):
    """Read what is said until the end."""
    seen = b""
    with contextlib.suppress(OSError):  # what a terminal answers whose other end is gone
        while more := os.read(leader, 1024):
            seen += more
    os.close(leader)
    return seen.decode()


@pytest.mark.posix
def test_ctrl_c_ends_a_search_with_a_verified_release(searched):
    out, command = searched
    process, leader = watch_search(command)
    process.send_signal(signal.SIGINT)
    words = read_on(leader)
    assert process.wait(timeout=600) == 0
    assert "stopped early as asked" in " ".join(words.split())
    assert "k = 3 holds" in words
    assert here("verify", out, "--k", 3).returncode == 0
    assert len(out.read_text().splitlines()) == 601


# The command, which waits for a second Ctrl-C as soon as it has heard the first.
WAITS = """
import signal, sys, time
from microagg.cli.main import main
set_handler = signal.signal
def waiting(number, handler):
    before = set_handler(number, handler)
    if getattr(before, "__name__", "") == "ask":
        print("the first was heard", file=sys.stderr, flush=True)
        while True:
            time.sleep(0.1)
    return before
signal.signal = waiting
main()
"""


@pytest.mark.posix
def test_a_second_ctrl_c_ends_the_command(searched):
    out, command = searched
    out.write_text("a\n1\n")
    process, leader = watch_search([sys.executable, "-c", WAITS, *command[len(COMMAND) :]])
    process.send_signal(signal.SIGINT)
    read_until(leader, b"the first was heard")
    process.send_signal(signal.SIGINT)
    words = read_on(leader)
    assert process.wait(timeout=600) == 130
    assert "Interrupted: nothing was written." in words
    assert out.read_text() == "a\n1\n"
    assert sorted(path.name for path in out.parent.iterdir()) == ["in.csv", "safe.csv"]


def test_a_terminal_that_cannot_show_a_name(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("größe\n" + "\n".join(f"{i * i}.5" for i in range(9)) + "\n")
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = run("protect", source, tmp_path / "out.csv", "-k", 3, "--json", env=plain)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["columns"]["protected"] == ["größe"]
    assert run("methods", env=plain).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.posix
def test_output_that_cannot_be_written_is_no_verdict():
    with Path("/dev/full").open("w") as full:
        streams = {"stdout": full, "stderr": subprocess.PIPE}
        asked = [*COMMAND, "methods", "--json"]
        done = subprocess.run(asked, **streams, text=True, check=False)
    assert done.returncode == 2
    assert "No space left" in done.stderr


@pytest.mark.posix
@pytest.mark.parametrize("log", ["a closed pipe", "a full disk"])
def test_words_that_nobody_reads_change_nothing(survey, tmp_path, log):
    if log == "a full disk" and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    reading, writing = os.pipe()
    os.close(reading)
    if log == "a full disk":
        os.close(writing)
        writing = os.open("/dev/full", os.O_WRONLY)
    words = ["protect", survey, tmp_path / "out.csv", "-k", 3, "--json"]
    done = subprocess.run(
        [*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=writing, check=False
    )
    os.close(writing)
    assert done.returncode == 0
    assert json.loads(done.stdout)["verdict"] == "green"
    assert (tmp_path / "out.csv").exists()
