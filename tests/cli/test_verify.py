"""verify --promise: what a plan with units or several blocks promises, counted in the file."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest

from command import here, said

PLAN = """\
microagg = 1
unit = { column = "person" }
HIDE = ["person"]

[[block]]
columns = ["a", "b"]
k = 4
method = "mdav"

[[block]]
columns = ["c", "d"]
k = 3
method = "mdav"
per_column = true
"""


@pytest.fixture
def survey(tmp_path):
    values = np.random.default_rng(0).normal(size=(36, 4))
    table = pa.table({**dict(zip("abcd", values.T, strict=True)), "person": np.arange(36) // 2})
    pacsv.write_csv(table, tmp_path / "in.csv")
    return tmp_path


@pytest.mark.parametrize("hide", ["drop", "renumber"])
def test_several_blocks_from_plan_to_file_to_report_to_verify(survey, hide):
    (survey / "plan.toml").write_text(PLAN.replace("HIDE", hide))
    out, report = survey / "out.csv", survey / "r.html"
    made = here(
        "protect", survey / "in.csv", out, "--plan", survey / "plan.toml", "--report", report
    )
    assert made.returncode == 0, made.stderr
    assert "for each block by itself" in said(made)
    assert "for each block by itself, but" in said(made)
    for promise in (survey / "plan.toml", survey / "r.json"):
        done = here("verify", out, "--promise", promise, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert [(part["columns"], part["k"]) for part in found["parts"]] == [
            (["a", "b"], 4),
            (["c"], 3),
            (["d"], 3),
        ]
        told = "about units (person), which the plan drops" in said(done)
        assert told == (hide == "drop")
        assert {part["unit"] for part in found["parts"]} == {None if told else "person"}
