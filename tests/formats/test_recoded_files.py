"""Recoded columns in files: CSV read back and measured, SPSS and Stata with their labels and codes."""

import json

import numpy as np
import pandas as pd
import pyreadstat
import pytest

from command import here, said

N = 120
RNG = np.random.default_rng(3)


def survey():
    return pd.DataFrame(
        {
            "age": RNG.integers(0, 95, N),
            "income": np.round(RNG.lognormal(8, 1, N), 2),
            "job": np.array([1, 2, 3, 4])[np.minimum(RNG.geometric(0.6, N) - 1, 3)],
            "born": pd.Series(pd.date_range("1950-01-03", periods=N, freq="137D")).dt.strftime(
                "%d.%m.%Y"
            ),
        }
    )


def protect(source, target, *flags):
    done = here("protect", source, target, "--k", 3, "--effort", "fast", "--keep-order", *flags)
    assert done.returncode == 0, done.stderr
    return done


def test_what_is_written_can_be_measured_against_the_original(tmp_path):
    frame, source, target = survey(), tmp_path / "in.csv", tmp_path / "out.csv"
    frame.to_csv(source, index=False)
    done = protect(
        source, target, "--columns", "age,income", "--known", "job,born", "--json",
        "--coarsen", "age=bands:10,top:80", "--coarsen", "born=to:year", "--coarsen", "job=rare:30",
    )  # fmt: skip
    found = json.loads(done.stdout)
    written = pd.read_csv(target)
    assert written.born.str[:6].eq("01.01.").all()
    assert (written.born.str[6:] == frame.born.str[6:]).all()
    assert "other" in set(written.job)
    assert written.groupby(["age", "income"]).size().min() >= 3
    assert found["recoded"]["age"] == "bands of 10, 80 or more in one"
    assert set(found["utility"]["by_column"]) == {"age", "income", "born", "job"}
    again = here("measure", source, target, "--columns", "age,income", "--json")
    assert again.returncode == 0, again.stderr
    measured = json.loads(again.stdout)["utility"]["by_column"]
    for name in ("age", "income"):
        assert measured[name] == pytest.approx(found["utility"]["by_column"][name], rel=5e-3)
    assert "recoded" in said(protect(source, target, "--columns", "income", "--known", "job,born,age",
                                     "--coarsen", "age=round:10", "--overwrite"))  # fmt: skip


@pytest.mark.parametrize("ending", ["sav", "dta"])
def test_labels_of_statistical_files_follow(tmp_path, ending):
    frame = survey().drop(columns="born").astype(float)
    frame.loc[:5, "income"] = -8
    labels = {"job": {1: "clerk", 2: "cook", 3: "mayor", 4: "smith"}}
    source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    if ending == "sav":
        pyreadstat.write_sav(
            frame, str(source), variable_value_labels=labels, missing_ranges={"income": [-8]}
        )
    else:
        frame = frame.astype({"job": "int32"})
        pyreadstat.write_dta(frame, str(source), variable_value_labels=labels)
    cut = "income=top:5000" + ",bottom:0" * (ending == "sav")
    protect(
        source, target, "--columns", "age,job,income", "--kind", "job=nominal", "--kind", "income=number",
        "--coarsen", "age=bands:20", "--coarsen", "job=rare:40", "--coarsen", cut,
    )  # fmt: skip
    read = pyreadstat.read_sav if ending == "sav" else pyreadstat.read_dta
    found, facts = read(str(target), user_missing=True)
    assert set(found.age) <= {"0–19", "20–39", "40–59", "60–79", "80–99"}
    own = facts.variable_value_labels["job"]
    assert set(found.job) == set(own)
    assert own[5] == "other"
    assert "mayor" not in own.values()
    assert found.income.max() <= 5000
    if ending == "sav":
        assert set(np.flatnonzero(found.income == -8)) == set(range(6))
    assert found.groupby(["age", "job", "income"], dropna=False).size().min() >= 3
