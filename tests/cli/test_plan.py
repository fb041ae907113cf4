"""microagg plan, and protect by a plan: what is written down is what is done; flags override it."""

import json
import tomllib

import pyarrow.csv as pacsv
import pytest

from command import here, said
from microagg import Plan


def test_a_plan_goes_to_stdout_with_a_reason_for_each_column(survey):
    done = here("plan", survey, "--k", 7)
    assert done.returncode == 0, done.stderr
    plan = Plan.from_toml_text(done.stdout)
    assert plan == Plan.of(
        k=7, columns=["income", "age", "region"], drop=["id"], kinds={"region": "nominal"}
    )
    lines = done.stdout.splitlines()
    (income,) = (line for line in lines if '"income"' in line)
    assert "# A quantity: numbers with decimals, 60 distinct in 60 records." in income
    (dropped,) = (line for line in lines if '"id"' in line)
    assert "Dropped: it identifies single records" in dropped
    assert not any("Left as they are" in line for line in lines)
    values = survey.read_text().splitlines()[1].replace('"', "").split(",")
    assert not any(value in done.stdout for value in values[:2])  # a plan holds no data


def test_a_plan_says_k_though_none_was_given(survey):
    assert Plan.from_toml_text(here("plan", survey).stdout).k == 5


def test_flags_settle_what_is_known(survey):
    done = here(
        *("plan", survey, "--k", 3, "--drop", "id", "--confidential", "age"),
        *("--method", "mdav", "--max-loss", 20, "--seed", 4),
    )
    plan = Plan.from_toml_text(done.stdout)
    assert plan.blocks[0].columns == ("income", "region")  # age has another role now
    assert (plan.drop, plan.confidential) == (("id",), ("age",))
    assert (plan.blocks[0].method, plan.accept.loss, plan.seed) == ("mdav", 20, 4)


def test_named_columns_are_kept(survey):
    plan = Plan.from_toml_text(here("plan", survey, "-c", "age", "-k", 4, "--known", "id").stdout)
    assert plan == Plan.of(k=4, columns=["age"], known=["id", "income", "region"])


def test_a_relation_that_the_drafted_plan_breaks_is_refused(survey):
    done = here("plan", survey, "--relation", "age <= income", "--round")
    assert done.returncode == 0, done.stderr
    done = here("plan", survey, "--relation", "age <= 2 * income", "--round")
    assert (done.returncode, done.stdout) == (2, "")
    assert "The release must keep the relation 'age <= 2 * income'" in said(done)


def test_a_plan_as_json(survey):
    done = here("plan", survey, "--k", 3, "--json")
    given = json.loads(done.stdout)
    assert Plan.from_dict(given["plan"]) == Plan.of(
        k=3, columns=["income", "age", "region"], drop=["id"], kinds={"region": "nominal"}
    )
    assert set(given["notes"]) == {"id", "income", "age", "region"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--drop", "idd"], "Did you mean 'id'?"),
        (["--plan", "absent.toml"], "Cannot read the plan"),
    ],
)
def test_a_plan_that_cannot_be(survey, arguments, message):
    done = here("plan", survey, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in said(done)


def rows_of(path):
    """The header of a file, and its rows in an order that does not depend on theirs."""
    header, *rows = path.read_text().splitlines()
    return [header, *sorted(rows)]


def test_protect_does_what_the_plan_says(survey, tmp_path):
    plan, out = tmp_path / "plan.toml", tmp_path / "safe.csv"
    plan.write_text(here("plan", survey, "--k", 4, "--drop", "id", "-m", "mdav").stdout)
    done = here("protect", survey, out, "--plan", plan, "--json", "--quiet")
    assert done.returncode == 0, done.stderr
    given = json.loads(done.stdout)
    assert Plan.from_dict(given["plan"]) == Plan.from_toml(plan)
    assert given["columns"]["dropped"] == ["id"]
    assert given["drafted"] is None  # nobody had to guess
    by_flags = tmp_path / "flags.csv"
    here("protect", survey, by_flags, "-k", 4, "--drop", "id", "-m", "mdav")
    assert rows_of(out) == rows_of(by_flags)


def test_flags_override_the_plan(survey, tmp_path):
    plan, out = tmp_path / "plan.toml", tmp_path / "safe.csv"
    plan.write_text(Plan.of(k=4, columns=["income", "age"], method="mdav", drop=["id"]).to_toml())
    done = here(
        *("protect", survey, out, "--plan", plan, "-k", 6, "--drop", "region", "--json", "-q"),
        *("--known", "id"),
    )
    given = json.loads(done.stdout)
    changed = Plan.from_toml(plan).override(k=6, drop=["region"], known=["id"])
    assert Plan.from_dict(given["plan"]) == changed
    assert given["verified"]["smallest"] >= 6
    assert pacsv.read_csv(out).column_names == ["id", "income", "age"]


def test_the_report_holds_the_plan_and_the_command(survey, tmp_path, monkeypatch):
    out, report = tmp_path / "safe.csv", tmp_path / "report.html"
    here("protect", survey, out, "-k", 5, "-c", "age", "--drop", "id", "--report", report, "-q")
    twin = json.loads((tmp_path / "report.json").read_text())
    known = ["income", "region"]
    assert Plan.from_dict(twin["plan"]) == Plan.of(k=5, columns=["age"], drop=["id"], known=known)
    assert tomllib.loads(twin["plan_text"]) == twin["plan"]
    first = rows_of(out)
    words = twin["repeat"]["words"]
    assert words[:4] == ["microagg", "protect", str(survey), str(out)]
    (tmp_path / "plan.toml").write_text(twin["plan_text"])
    monkeypatch.chdir(tmp_path)
    out.unlink()
    assert here(*words[1:]).returncode == 0
    assert rows_of(out) == first
