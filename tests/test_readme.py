"""The examples of the README and of the page about the demo, run as they stand."""

import doctest
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from microagg.cli.main import app

# Examples are run as they stand; what they are warned of goes to stderr, as for any reader.
pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

README = Path(__file__).parents[1] / "README.md"
DEMO = README.parent / "docs" / "demo.md"


def test_python_examples():
    result = doctest.testfile(
        str(README), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.attempted > 5
    assert result.failed == 0


def test_demo_prints_what_its_page_shows_and_leaves_a_verified_file(tmp_path):
    promised = re.search(r"leaves it in `microagg-demo/`:\n\n```\n(.*?)```", DEMO.read_text(), re.S)
    assert promised
    done = subprocess.run(
        [sys.executable, "-m", "microagg", "demo", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # The first run on a machine compiles, and one that takes over half a minute says where it is.
    slow = ("compiling ", "working ")
    lines = [line for line in done.stderr.splitlines() if not line.startswith(slow)]
    printed, shown = "\n".join(lines[1:]) + "\n", promised.group(1)
    # How far the proof comes in ten seconds depends on the machine.
    proof = re.compile(r" +could do better by at most .*\n")
    assert proof.sub("", printed) == proof.sub("", shown)
    result = json.loads(done.stdout)
    assert result["verified"]["holds"] is True
    assert result["verdict"] == "green"
    assert result["verified"]["records"] == 1411
    assert sorted(path.name for path in (tmp_path / "microagg-demo").iterdir()) == [
        "plan.toml",
        "report.html",
        "report.json",
        "survey-protected.csv",
        "survey.csv",
    ]


def test_the_plan_of_the_demo_is_the_one_shown():
    shipped = README.parent / "src" / "microagg" / "cli" / "demo_plan.toml"
    assert f"```toml\n{shipped.read_text(encoding='utf-8')}```" in DEMO.read_text(encoding="utf-8")


COMMANDS = typer.main.get_command(app).commands


def mistake_in(line: str) -> str | None:
    """What is wrong with the words of a command line; None if the command takes them."""
    _, name, *words = shlex.split(line, comments=True)
    if name not in COMMANDS:
        return f"no command {name}"
    command = COMMANDS[name]
    try:
        command.make_parser(command.context_class(command)).parse_args(words)
    except Exception as error:  # of the library, which may bring its own click along
        return str(error)
    return None


def test_every_command_line_in_the_readme_is_one_that_exists():
    text = README.read_text(encoding="utf-8")
    lines = re.findall(r"^microagg .*", text.replace("\\\n", " "), re.M)
    lines = [re.sub(r"\s*[>|] .*", "", line) for line in lines]
    assert len(lines) >= 5
    assert [(line, mistake_in(line)) for line in lines if mistake_in(line)] == []


def test_every_flag_that_the_readme_names_exists():
    text = README.read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    known = {o for c in COMMANDS.values() for p in c.params for o in (*p.opts, *p.secondary_opts)}
    assert len(named) > 5
    assert named - known - {"--help", "--version"} == set()


def test_a_wrong_line_would_be_noticed():
    assert mistake_in("microagg protect a.csv b.csv --k 5 --drop name  # ids") is None
    assert "--columnz" in mistake_in("microagg protect a.csv b.csv --columnz x")
    assert "--k" in mistake_in("microagg verify a.csv --k")
    assert mistake_in("microagg guard a.csv") == "no command guard"
