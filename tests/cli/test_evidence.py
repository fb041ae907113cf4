"""measure and --report as their users call them."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here, said

LEFT = ["-c", "income,age", "--known", "person"]


def refused(*arguments):
    """Words of a run that must end with 2."""
    done = here(*arguments)
    assert done.returncode == 2, done.stderr
    return said(done)


@pytest.fixture
def files(tmp_path):
    """A survey and the file that some other program made of it: other order, other columns."""
    rng = np.random.default_rng(0)
    n = 80
    survey = pd.DataFrame(
        {
            "person": [f"p{i}" for i in range(n)],
            "income": rng.lognormal(8, 1, n).round(2),
            "age": rng.integers(18, 90, n),
            "weight": 1.5,
            "illness": rng.choice(["flu", "cold"], n),
        }
    )
    safe = survey.copy()
    safe[["income", "age"]] = microagg.Microaggregator(k=4).fit_transform(survey[["income", "age"]])
    survey.to_csv(tmp_path / "survey.csv", index=False)
    safe.to_parquet(tmp_path / "safe.parquet")
    mixed = safe[["illness", "age", "income", "person"]].sample(frac=1, random_state=1)
    mixed.to_csv(tmp_path / "mixed.csv", index=False, sep=";")
    return tmp_path, survey, safe


def test_measure_by_position_and_by_id_agree_with_the_library(files):
    folder, survey, safe = files
    columns = ["income", "age"]
    utility = microagg.utility(survey, safe, columns)
    risk = microagg.risk(survey, safe, columns)
    for other, how in (("safe.parquet", []), ("mixed.csv", ["--id", "person"])):
        done = here(
            "measure", folder / "survey.csv", folder / other, "-c", "income,age", *how, "--json"
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["information_loss"] == pytest.approx(utility.information_loss)
        assert found["record_linkage"] == pytest.approx(risk.record_linkage)
        alone, with_known = found["risk"]["alone"], found["risk"]["with_known"]
        assert alone["smallest_class"] == risk.smallest_class == 4
        assert alone["unique"] == risk.unique_after == 0
        # The id that brings records together is no column that an attacker knows.
        assert found["known"] == (["illness"] if how else ["person", "weight", "illness"])
        assert (with_known["unique"] == 1) == (not how)
        assert with_known["record_linkage"] >= alone["record_linkage"]
        assert set(found["seconds"]) == {"read", "match", "loss", "fidelity", "risk"}


def test_measure_says_what_it_found(files):
    folder, *_ = files
    done = here(
        "measure",
        folder / "survey.csv",
        folder / "safe.parquet",
        *["--k", 5, "--confidential", "illness"],
        *["--analysis", "income ~ age", "--sample", 40],
    )
    assert done.returncode == 1, done.stderr  # k is 4
    assert done.stdout == ""
    for words in (
        "compared income, age",
        "known person, weight: the same in both files, so an attacker knows them",
        "income ~ age: the 95 % intervals before and after overlap by",
        "from a sample of 40",
        "illness: ",
        "target k does not hold for",
        "warning Every record can be narrowed down to fewer than 5 by someone who knows the unprotected",
        "all measures with --json",
    ):
        assert words in said(done), words


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mixed.csv", "--id", "nobody"], "There is no column 'nobody' in the original file"),
        (["mixed.csv", "--id", "illness"], "some are missing or occur twice"),
        (["short.csv", "--id", "person"], "2 ids in column 'person' are only in the original"),
        (["short.csv"], "they have 80 and 78. Drop the records"),
        (
            ["safe.parquet", "-c", "income", "--confidential", "income"],
            "it can be only one of them",
        ),
    ],
)
def test_files_that_do_not_match(files, arguments, message):
    folder, _, safe = files
    safe.iloc[2:].to_csv(folder / "short.csv", index=False)
    words = refused("measure", folder / "survey.csv", folder / arguments[0], *arguments[1:])
    assert message in words


@pytest.mark.parametrize("kinds", [("category", "object"), ("object", "category")])
def test_columns_stored_in_another_way_are_known_too(tmp_path, kinds):
    frame = pd.DataFrame({"x": [1.0, 2.0, 8.0, 9.0], "n": [1, 2, 3, 3], "s": list("aabb")})
    safe = frame.assign(x=[1.5, 1.5, 8.5, 8.5], n=frame["n"].astype(float))
    for table, name, kind in ((frame, "a", kinds[0]), (safe, "b", kinds[1])):
        table.astype({"s": kind}).to_parquet(tmp_path / f"{name}.parquet")
    done = here("measure", tmp_path / "a.parquet", tmp_path / "b.parquet", "--json", "-q")
    found = json.loads(done.stdout)
    assert (found["columns"], found["known"]) == (["x"], ["n", "s"])
    assert found["risk"]["with_known"]["unique"] == 0.5


def test_codes_named_as_columns_are_numbers(tmp_path):
    for name, values in (("a", ["001", "002", "009", "010"]), ("b", ["1.5", "1.5", "9.5", "9.5"])):
        (tmp_path / f"{name}.csv").write_text("x\n" + "\n".join(values) + "\n")
    done = here("measure", tmp_path / "a.csv", tmp_path / "b.csv", "-c", "x", "--json", "--quiet")
    assert json.loads(done.stdout)["risk"]["alone"]["smallest_class"] == 2


def test_protect_writes_the_evidence(files):
    folder, *_ = files
    report = folder / "report.html"
    done = here(
        *["protect", folder / "survey.csv", folder / "out.csv", "-k", 5, *LEFT],
        *["--report", report, "--confidential", "illness", "--analysis", "income by illness"],
        *["--json", "--prices"],
    )
    assert done.returncode == 0, done.stderr
    assert f"report {report}, and every number in report.json" in said(done)
    assert "income by illness: the 95 % intervals before and after overlap by" in said(done)
    found, twin = json.loads(done.stdout), json.loads((folder / "report.json").read_text())
    assert found["report"] == str(report)
    # The command's JSON and the report's are the same evidence.
    for part in ("verdict", "cautions", "plan", "risk", "utility", "thresholds", "verified"):
        assert found[part] == twin[part], part
    prices = twin["prices"]
    assert prices["now"]["loss"] == pytest.approx(twin["information_loss"], rel=0.01)
    decisions = {
        (one["column"], p["decision"]) for one in prices["columns"] for p in one["decisions"]
    }
    assert {("income", "drop"), ("illness", "protect")} <= decisions
    page = report.read_text()
    assert "What other decisions would cost" in page
    assert "Tried on all" in page
    assert twin["files"]["input"]["path"] == str(folder / "survey.csv")
    assert twin["repeat"]["command"].startswith("microagg protect")
    assert twin["verified"]["holds"] is True


def test_a_run_without_a_report_loads_nothing_to_draw_with(files):
    folder, *_ = files
    code = (
        "import sys, runpy\n"
        "sys.argv = ['microagg', *sys.argv[1:]]\n"
        "try:\n    runpy.run_module('microagg', run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "heavy = {'matplotlib', 'jinja2', 'sklearn'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    arguments = ["protect", str(folder / "survey.csv"), str(folder / "o.csv"), "-k", "5"]
    arguments += ["-c", "age", "--known", "person"]
    subprocess.run([sys.executable, "-c", code, *arguments, "--quiet"], check=True)


def test_settings_of_a_method(files):
    folder, survey, _ = files
    asked = ["protect", folder / "survey.csv", folder / "o.csv", "-k", 4, *LEFT]
    done = here(*asked, "-m", "v-mdav", "--option", "gamma=1.1", "--json", "--quiet")
    part = json.loads(done.stdout)["parts"][0]
    assert part["options"] == {"gamma": 1.1}
    expected = microagg.partition(survey[["income", "age"]], 4, method="v-mdav", gamma=1.1)
    assert part["sse"] == float(f"{expected.sse:.3g}")
    assert np.unique(pd.read_csv(folder / "o.csv")["income"]).size == expected.n_groups


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--option", "k=9"], "'auto' has no option 'k'"),
        (["--option", "random_state=9"], "on the command line --seed"),
        (["--option", "effort=fast", "--effort", "fast"], "by --option and by its own flag"),
    ],
)
def test_settings_that_a_method_does_not_have(files, words, message):
    folder, *_ = files
    asked = ["protect", folder / "survey.csv", folder / "o.csv", "-k", 4, *LEFT]
    assert message in refused(*asked, *words)
    assert not (folder / "o.csv").exists()


def test_a_constant_that_was_changed_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("x,c,d\n1,5,7\n2,5,7\n3,5,7\n4,5,7\n")
    (tmp_path / "b.csv").write_text("x,c,d\n1.5,5,8\n1.5,5,8\n3.5,5,8\n3.5,5,9\n")
    done = here("measure", tmp_path / "a.csv", tmp_path / "b.csv", "--json")
    assert json.loads(done.stdout)["unmeasured"] == ["d"]
    assert "d: constant in the original, so its loss has no unit" in said(done)
    assert "a blind guess is right in 25.0 %" in said(done)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sample", 0], "at least one record"),
        (["--analysis", "income ~"], "An analysis is written"),
        (["--analysis", " by age"], "An analysis is written"),
    ],
)
def test_measure_refuses_before_it_reads(tmp_path, arguments, message):
    assert message in refused("measure", tmp_path / "no.csv", tmp_path / "no.csv", *arguments)
