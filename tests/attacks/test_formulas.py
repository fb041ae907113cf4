"""Formulas in text: said where a spreadsheet program would run them, and escaped on request."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import microagg
from command import here, said
from microagg.errors import InputError
from microagg.formats.files import write_file
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan

HOSTILE = ["=1+1", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x")']
HARMLESS = ["-5", "+49 30 1234", "-", "-1,234.50", "1-2", "a=b", "", "mail@example.org", "-1.5e-7"]
N = 30
PLAN = Plan.of(k=3, columns=["pay"], confidential=["note", "kind"], keep_order=True)


def table() -> pa.Table:
    notes = [*HOSTILE, *HARMLESS, *["text"] * (N - len(HOSTILE) - len(HARMLESS))]
    return pa.table(
        {
            "pay": [float(i) for i in range(N)],
            "note": notes,
            "kind": pa.array(["=A1", "b", "c"] * (N // 3)).dictionary_encode(),
            "number": [-i for i in range(N)],
        }
    )


def source(folder: Path, ending: str = ".parquet") -> Path:
    path = folder / f"in{ending}"
    given = (
        table()
        if ending != ".csv"
        else table().set_column(2, "kind", table()["kind"].cast(pa.string()))
    )
    write_file(given, path)
    return path


def cells(path: Path, name: str) -> list[str]:
    with path.open(newline="", encoding="utf-8") as file:
        return [row[name] for row in csv.DictReader(file)]


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_formulas_in_a_csv_file_are_said(tmp_path, engine, ending):
    given = source(tmp_path, ending)
    outcome = run(Job(given, tmp_path / "out.csv", PLAN.override(known=["number"]), engine=engine))
    (caution,) = [c for c in outcome.evidence.cautions if "formula" in c.words]
    assert caution.columns == ("note", "kind")
    assert caution.words.startswith(
        f"{len(HOSTILE) + N // 3} texts begin with =, +, - or @ (note, kind)"
    )
    assert "--escape-formulas" in caution.advice
    assert cells(tmp_path / "out.csv", "note")[:6] == HOSTILE  # as they were


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_formulas_in_texts_and_names_are_escaped_on_request(tmp_path, engine, ending):
    given = table().set_column(2, "kind", table()["kind"].cast(pa.string()))
    given = given.rename_columns(["=pay", "@note", "-kind", "+number"])
    # Which an apostrophe more would make twice.
    given = given.append_column("'@note", given["@note"])
    write_file(given, tmp_path / f"in{ending}")
    secret = ["@note", "'@note", "-kind"]
    plan = PLAN.override(columns=["=pay"], confidential=secret, known=["+number"])
    target = tmp_path / "out.csv"
    job = Job(tmp_path / f"in{ending}", target, plan, engine=engine, escape_formulas=True)
    outcome = run(job)
    assert outcome.evidence.counted.holds
    assert not [c for c in outcome.evidence.cautions if "formula" in c.words]
    names = target.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert names == ["'=pay", "''@note", "'-kind", "'+number", "'@note"]
    after = cells(target, "''@note")
    assert after[: len(HOSTILE)] == [f"'{text}" for text in HOSTILE]
    assert after[len(HOSTILE) :] == table()["note"].to_pylist()[len(HOSTILE) :]
    assert set(cells(target, "'-kind")) == {"'=A1", "b", "c"}
    assert cells(target, "'+number")[1] == "-1"


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
def test_frames_are_escaped_on_request(tmp_path):
    release = microagg.protect(table(), plan=PLAN.override(known=["number"]))
    release.write(tmp_path / "plain.csv")
    assert cells(tmp_path / "plain.csv", "note")[0] == "=1+1"
    release.write(tmp_path / "safe.csv", escape_formulas=True)
    assert cells(tmp_path / "safe.csv", "note")[0] == "'=1+1"
    with pytest.raises(InputError, match="is about CSV files"):
        release.write(tmp_path / "safe.parquet", escape_formulas=True)


def test_the_command(tmp_path):
    given = source(tmp_path)
    words = ["protect", given, tmp_path / "out.csv", "--k", 3, "--columns", "pay"]
    words += ["--confidential", "note,kind", "--known", "number"]
    done = here(*words, "--verbose")
    assert done.returncode == 0, done.stderr
    assert "takes that for a formula and may run it" in said(done)
    done = here(*words, "--verbose", "--escape-formulas")
    assert "formula" not in said(done)
    for engine in ([], ["--engine", "spark"]):
        words[2] = tmp_path / "out.parquet"
        done = here(*words, "--escape-formulas", *engine)
        assert done.returncode == 2
        assert "is about CSV files" in said(done)


def test_a_column_named_like_a_formula_is_said(tmp_path):
    pq.write_table(
        table().rename_columns(["pay", "=cmd", "kind", "number"]), tmp_path / "in.parquet"
    )
    plan = Plan.of(k=3, columns=["pay"], drop=["kind"], confidential=["=cmd"], known=["number"])
    outcome = run(Job(tmp_path / "in.parquet", tmp_path / "out.csv", plan))
    (caution,) = [c for c in outcome.evidence.cautions if "formula" in c.words]
    assert caution.columns == ("=cmd",)
