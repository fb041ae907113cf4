"""Search: the plan that is found ends green and within the target, counted by carrying it out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here, said
from microagg.comparing.searching import FoundPlan, search
from microagg.errors import InputError
from microagg.plan import Plan

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def survey(n=240, seed=0):
    """Columns that go together, beside two that are noise."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=n)
    return pd.DataFrame(
        {
            "person": np.arange(n) + 1000,
            "turnover": (100 + 20 * size + rng.normal(size=n)).round(2),
            "wages": (50 + 9 * size + rng.normal(size=n)).round(2),
            "noise": rng.normal(size=n).round(4),
            "shoe": rng.normal(40, 3, n).round(1),
            "sex": rng.choice(["f", "m"], n),
        }
    )


START = Plan.of(k=3, drop=["person"], effort="fast")


def test_the_plan_found_keeps_the_target_and_most_columns():
    frame = survey()
    before = microagg.protect(frame, plan=START)
    found = search(frame, START, max_loss=5, budget=300)
    assert before.utility.information_loss > 5
    after = microagg.protect(frame, plan=found)
    assert after.evidence.verdict == "green"
    assert after.utility.information_loss == pytest.approx(found.figures.loss)
    assert found.meets
    assert found.figures.loss <= 5
    assert not found.confidential
    # The two columns that go together cost little, and stay.
    assert {"turnover", "wages"} <= set(found.blocks[0].columns)
    assert all(step.decision == "drop" or "coarsen" in step.decision for step in found.steps)
    for step in found.steps:
        assert step.words in found.notes[step.column]
    assert Plan.from_toml_text(found.to_toml()) == Plan.from_dict(found.as_dict())


def test_a_plan_that_meets_the_target_is_left_alone():
    found = search(survey(), START, max_loss=60, budget=300)
    assert found.meets
    assert found.steps == ()
    assert set(found.blocks[0].columns) == {"turnover", "wages", "noise", "shoe", "sex"}


def test_what_is_decided_stays_so():
    frame = survey()
    found = search(frame, START, max_loss=5, may_drop=["noise"], budget=300)
    assert set(found.drop) <= {"person", "noise"}
    named = START.override(
        columns=["turnover", "noise", "shoe"], known=[], drop=["person", "wages", "sex"]
    )
    found = search(frame, named, max_loss=1, budget=300)
    assert not found.meets
    assert found.blocks == named.blocks
    assert "must stay" in found.words
    assert "noise" in found.words


def test_columns_to_be_kept_become_strata_where_the_loss_allows():
    found = search(survey(), START, max_loss=60, keep=["sex"], budget=300)
    assert found.strata.columns == ("sex",)
    assert found.figures.loss <= 60
    assert "sex as a stratum" in found.steps[-1].words
    tight = search(survey(), START, max_loss=5, keep=["noise"], budget=300)
    assert "noise" not in tight.drop


def test_a_runner_up_meets_the_target_too():
    frame = survey()
    most = 0.9 * microagg.protect(frame, plan=START).utility.information_loss
    found = search(frame, START, max_loss=most, budget=300)
    assert isinstance(found, FoundPlan)
    assert found.runner_up is not None
    assert found.runner_up != found
    other = microagg.protect(frame, plan=found.runner_up)
    assert other.utility.information_loss < 1.2 * most


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "needs a target"),
        ({"max_loss": -1}, "max_loss"),
        ({"max_loss": 5, "keep": ["nobody"]}, "nobody"),
        ({"max_loss": 5, "keep": ["sex"], "may_drop": ["sex"]}, "not both"),
    ],
)
def test_wrong_settings_are_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        search(survey(), START, **wrong)


def test_the_command_searches_and_says_each_step(tmp_path):
    path = tmp_path / "survey.csv"
    survey().to_csv(path, index=False)
    words = ["plan", str(path), "--k", "3", "--drop", "person", "--effort", "fast"]
    done = here(*words, "--max-loss", "5")
    assert done.returncode == 0
    plan = Plan.from_toml_text(done.stdout)
    assert plan.accept.loss == 5
    assert "dropped:" in said(done)
    assert "Counted on all records" in said(done)
    data = json.loads(here(*words, "--max-loss", "5", "--json").stdout)
    assert data["search"]["meets"]
    assert Plan.from_dict(data["plan"]) == plan
    done = here(*words, "--max-loss", "0.0001", "--may-drop", "sex")
    assert done.returncode == 1
    assert "No plan with a loss of at most 0.0001 %" in said(done)
    done = here(*words, "--keep", "sex")
    assert done.returncode == 2
    assert "--max-loss" in said(done)
