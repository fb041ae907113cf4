"""Rehearsing a plan: each cell is what a release by that choice would be, and nothing is written."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg import Plan, StopSearch
from microagg.choices import Targets
from microagg.rehearse import rehearse
from microagg.tables.files import read_file

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

PLAN = Plan.of(
    k=3,
    columns=["income", "code", "job"],
    kinds={"code": "number"},
    unit="house",
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
            "code": [
                f"{i:04d}" for i in rng.integers(1, 999, 60)
            ],  # numbers, since the plan says so
            "job": rng.choice(["a", "b", "c"], 60),
        }
    ).to_csv(path, index=False)
    return path


def test_a_cell_is_what_the_release_would_be(survey):
    plan = PLAN
    frame = pd.read_csv(survey)
    cells = rehearse(read_file(survey), plan, ["mdav", "diameter"], [3, 5])
    assert [(cell.method, cell.k) for cell in cells] == [
        ("mdav", 3), ("mdav", 5), ("diameter", 3), ("diameter", 5),
    ]  # fmt: skip
    for cell in cells:
        release = microagg.protect(frame, plan=plan, k=cell.k, method=cell.method)
        assert cell.information_loss == pytest.approx(release.utility.information_loss)
        assert cell.linkage.share == pytest.approx(release.risk.record_linkage)
        assert cell.groups == release.partition.n_groups
        assert cell.problem is None
    assert any(cell.on_frontier for cell in cells)


def test_on_numbers_alone_it_is_what_compare_tells(survey):
    frame = pd.read_csv(survey)[["income", "code"]]
    plan = Plan.of(k=3, columns=["income", "code"], kinds={"code": "number"})
    ours = rehearse(read_file(survey), plan, ["mdav"], [3, 7])
    theirs = microagg.compare(
        frame, k=[3, 7], methods=["mdav"], columns=plan.blocks[0].columns
    ).cells
    for a, b in zip(ours, theirs, strict=True):
        # A release is rounded to a millionth of a standard deviation, a comparison is not.
        assert a.information_loss == pytest.approx(b.information_loss, rel=1e-4)
        assert (a.groups, a.smallest, a.largest) == (b.groups, b.smallest, b.largest)


def test_what_cannot_be_done_is_told_in_its_cell(survey):
    cells = rehearse(read_file(survey), PLAN, ["mdav", "simple"], [3, 40])
    problems = {(cell.method, cell.k): cell.problem for cell in cells}
    assert problems["mdav", 3] is None
    assert "30" in problems["mdav", 40]  # units
    assert "one column" in problems["simple", 3]


def test_a_target_is_searched_for(survey):
    cells = rehearse(read_file(survey), PLAN, ["mdav"], [3], Targets(max_loss=40.0))
    within = [cell.k for cell in cells if cell.problem is None and cell.information_loss <= 40]
    beyond = [cell.k for cell in cells if cell.problem is None and cell.information_loss > 40]
    assert len(cells) > 2
    assert max(within) + 1 in beyond


def test_who_stops_keeps_what_is_done(survey):
    heard = []

    def hear(cells, method, k, share):
        heard.append((len(cells), method, k))
        assert 0 <= share <= 1
        if len(cells) == 2:
            raise StopSearch

    cells = rehearse(read_file(survey), PLAN, ["mdav"], [3, 4, 5, 6], hear=hear)
    assert [cell.tried for cell in cells] == [True, True, False, False]
    assert [cell.problem for cell in cells[2:]] == ["not finished: stopped", "not tried: stopped"]
    assert heard[0] == (0, "mdav", 3)
    assert heard[-1] == (2, "mdav", 5)
