"""The walk that docs/architecture.md draws is the one that a job takes."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import microagg
from command import here

ROOT = Path(microagg.__file__).parent
GUIDE = Path(__file__).parents[2] / "docs" / "architecture.md"

# The function that makes each step.
STEPS = {
    "cli/flags.py": "plan_of",
    "plan/plan.py": "Plan.from_toml",
    "job/run.py": "run",
    "formats/files.py": "read_file",
    "drafting/draft.py": "complete",
    "grouping/read_table.py": "take_in",
    "encode/space.py": "space_of",
    "grouping/group_table.py": "group",
    "grouping/one_cell.py": "solve",
    "grouping/partition.py": "partition",
    "releasing/release_values.py": "release_block",
    "tables/release_frame.py": "released_frame",
    "engines/write_and_count.py": "ReleasedTable.write",
    "evidence/measuring.py": "Measuring.measured",
    "evidence/evidence.py": "Evidence.of",
    "report/html.py": "render",
}


def test_the_drawn_walk_is_the_one_that_is_taken(tmp_path):
    drawn = re.findall(r"\b\w+/\w+\.py", GUIDE.read_text(encoding="utf-8").split("```")[1])
    assert len(drawn) <= 25
    assert [file for file in drawn if file in STEPS] == list(STEPS)
    steps = {(str(ROOT / file), function): file for file, function in STEPS.items()}
    called = []

    def note(frame, event, _):
        step = steps.get((frame.f_code.co_filename, frame.f_code.co_qualname))
        if event == "call" and step not in (None, *called):
            called.append(step)

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 80, 60), "sex": rng.choice(["f", "m"], 60)})
    table.to_csv(tmp_path / "in.csv", index=False)
    (tmp_path / "p.toml").write_text('microagg = 1\n[[block]]\ncolumns = ["age", "sex"]\nk = 5\n')
    words = [f"{tmp_path}/{name}" for name in ("in.csv", "out.csv", "p.toml", "r.html")]
    sys.setprofile(note)
    try:
        done = here("protect", *words[:2], "--plan", words[2], "--report", words[3])
    finally:
        sys.setprofile(None)
    assert done.returncode == 0
    assert called == list(STEPS)
