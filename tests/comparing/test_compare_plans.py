"""compare() with any plan: each cell is what a release by that choice would be, and nothing is written."""

import json

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here
from microagg import Plan
from microagg.comparing.comparison import prepare, try_prepared
from microagg.engines.memory.table import Table
from microagg.formats.files import read_file

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

PLAN = Plan.of(
    k=3,
    columns=["income", "code", "job"],
    kinds={"code": "number"},
    unit={"column": "house", "name": "household"},
    drop=["house"],
    method="mdav",
)


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("data") / "survey.csv"
    pd.DataFrame(
        {
            "house": np.arange(60) // 2,
            "income": rng.lognormal(8, 1, 60).round(2),
            # Numbers, since the plan says so.
            "code": [f"{i:04d}" for i in rng.integers(1, 999, 60)],
            "job": rng.choice(["a", "b", "c"], 60),
            "sex": np.arange(60) % 2,
            "w": rng.uniform(1, 3, 60).round(3),
            "age": np.where(rng.random(60) < 0.3, np.nan, rng.integers(18, 80, 60)),
            "ill": rng.choice(["flu", "none"], 60),
        }
    ).to_csv(path, index=False)
    return path


def check(frame, found):
    for cell in found.cells:
        release = microagg.protect(frame, plan=found.plan, k=cell.k, method=cell.method)
        assert cell.problem is None
        assert cell.information_loss == pytest.approx(release.utility.information_loss)
        assert cell.group_loss == pytest.approx(release.utility.group_loss)
        assert cell.linkage.share == pytest.approx(release.with_known.record_linkage)
        assert cell.below_k == pytest.approx(release.with_known.below_k)
        assert cell.groups == sum(part.partition.n_groups for part in release.parts)
        assert cell.smallest == min(part.partition.sizes.min() for part in release.parts)
        assert cell.seconds > 0


SETTINGS = {
    "units": {"plan": PLAN},
    "drafted": {},
    "strata, weights, missing values, recodings and known columns": {
        "columns": ["income", "job", "age"],
        "strata": ["sex"],
        "weight": {"column": "w", "grouping": "plain"},
        "coarsen": {"age": {"bands": 10}},
        "drop": ["house", "code"],
    },
    "a requirement": {
        "columns": ["income", "age"],
        "drop": ["house", "code", "w"],
        "confidential": ["ill"],
        "require": {"distinct": {"ill": 2}},
    },
    "households together": {
        "columns": ["income", "job"],
        "unit": {"column": "house", "mode": "together"},
        "drop": ["house", "code", "w", "age"],
    },
    "two blocks": {
        "plan": Plan.from_dict(
            {
                "microagg": 1,
                "drop": ["house", "code", "w", "age"],
                "block": [{"columns": ["income"], "k": 4}, {"columns": ["job"], "k": 6}],
            }
        )
    },
}


@pytest.mark.parametrize("what", SETTINGS)
def test_a_cell_is_what_the_release_would_be(survey, what):
    frame = pd.read_csv(survey)
    found = microagg.compare(frame, [3, 5], ["mdav", "diameter"], **SETTINGS[what])
    assert [(cell.method, cell.k) for cell in found.cells] == [
        ("mdav", 3), ("mdav", 5), ("diameter", 3), ("diameter", 5),
    ]  # fmt: skip
    check(frame, found)
    assert found.frontier


def test_known_columns_count_for_linkage_and_records_below_k(survey):
    frame = pd.read_csv(survey)
    given = {"columns": ["income"], "drop": ["house", "code", "w", "age"]}
    known, told = (
        microagg.compare(frame, 3, "mdav", **given, **more)
        for more in ({"confidential": ["job", "sex", "ill"]}, {})
    )
    assert known.cells[0].below_k == 0 < told.cells[0].below_k
    assert known.cells[0].linkage.share < told.cells[0].linkage.share
    assert "known columns narrow" in told.suggest(max_loss=100).words
    assert "known columns narrow" not in known.suggest(max_loss=100).words


def test_where_requirements_are_searched_the_method_matters_little_and_it_says_so(survey):
    frame = pd.read_csv(survey)
    found = microagg.compare(frame, 3, plan=PLAN.override(method="auto"))
    assert [cell.method for cell in found.cells] == ["auto"]
    assert found.about_methods.startswith("Since k counts households, the same search follows")
    roles = {"columns": ["income"], "drop": ["house", "code", "w", "age"], "confidential": ["ill"]}
    found = microagg.compare(frame, 3, **roles, require={"closeness": {"ill": 0.4}})
    published = [m.name for m in microagg.methods() if m.closeness]
    assert [cell.method for cell in found.cells] == ["auto", *published]
    assert all(cell.problem is None for cell in found.cells)
    assert "every method but those for closeness" in found.about_methods
    found = microagg.compare(frame, 3, methods="mdav", **roles)
    assert found.about_methods is None


def test_on_numbers_alone_an_array_gives_the_same(survey):
    frame = pd.read_csv(survey)[["income", "code"]]
    kinds = {"code": "number"}
    ours = microagg.compare(frame, [3, 7], "mdav", columns=["income", "code"], kinds=kinds).cells
    theirs = microagg.compare(frame.to_numpy(), [3, 7], "mdav").cells
    for a, b in zip(ours, theirs, strict=True):
        assert a.information_loss == pytest.approx(b.information_loss)
        assert (a.groups, a.smallest, a.largest) == (b.groups, b.smallest, b.largest)


def test_what_cannot_be_done_is_told_in_its_cell(survey):
    records = Table.of(read_file(survey))
    drop = ["house", "sex", "w", "age", "ill"]
    found = try_prepared(
        prepare(records, PLAN.override(drop=drop), [3, 40], ["mdav", "nominal-exact"])
    )
    problems = {(cell.method, cell.k): cell.problem for cell in found.cells}
    assert problems["mdav", 3] is None
    assert "30" in problems["mdav", 40]  # units
    assert "proves its groups for k alone" in problems["nominal-exact", 3]


def test_the_command_takes_a_plan(survey, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.override(method="auto").to_toml())
    words = ["compare", survey, "--plan", tmp_path / "plan.toml", "-k", "3,5", "--json"]
    words += ["--drop", "house,w,age", "--report", tmp_path / "c.html"]
    done = here(*words)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["methods"] == ["auto"]
    assert found["columns"] == ["income", "code", "job"]
    assert found["plan"]["drop"] == ["house", "w", "age"]
    assert all(0 < cell["below_k"] <= 1 for cell in found["cells"])  # sex and ill are known
    page = (tmp_path / "c.html").read_text()
    assert "Since k counts households, the same search follows every method" in page
    assert "records below k" in page
    assert "[[block]]" in page
