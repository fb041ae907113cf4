"""The examples of the README and of the page about the demo, run as they stand."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command import here

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
    lines = [line for line in done.stderr.splitlines() if not line.startswith("compiling ")]
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


def test_every_command_line_in_the_readme_is_one_that_exists():
    for command in re.findall(r"^microagg (\w+)", README.read_text(), re.M):
        assert here(command, "--help").returncode == 0, command
