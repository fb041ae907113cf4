"""Search: the plan that is found ends green and within the target, counted by carrying it out."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here, said
from microagg.comparing.search import search
from microagg.comparing.search_result import FoundPlan
from microagg.errors import InputError
from microagg.plan.plan import Plan

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


def incomes(n=300, seed=3):
    """Incomes beside columns that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    noise = {f"noise{i}": rng.normal(size=n).round(4) for i in range(4)}
    return pd.DataFrame({"income": rng.lognormal(10, 0.7, n).round(), **noise})


def test_columns_of_analyses_count_more_and_stay():
    frame = incomes()
    start = Plan.of(k=5, effort="fast", analyses=["poverty(income)", "gini(income)"])
    before = microagg.protect(frame, plan=start).utility
    assert max(one.moved for one in before.analyses) > 0.5
    found = search(frame, start, max_loss=12, budget=300)
    assert found.meets
    assert "income" not in found.drop
    step = found.steps[0]
    assert step.decision.startswith("importance ")
    assert "income counts " in step.words
    assert "gini(income) 0." in step.words
    after = microagg.protect(frame, plan=found).utility
    assert max(one.moved for one in after.analyses) <= 0.5
    # The loss is within the target by all columns alike, not only by what the search lets count more.
    assert after.even_loss == pytest.approx(found.figures.even_loss)
    assert max(after.information_loss, after.even_loss) <= 12
    assert after.even_loss == pytest.approx(np.mean(list(after.by_column.values())))
    assert "gini(income)" in found.words


def test_an_importance_of_the_user_stays():
    start = Plan.of(
        k=5, effort="fast", analyses=["poverty(income)"], kinds={"income": {"importance": 1.5}}
    )
    found = search(incomes(), start, max_loss=12, max_moved=0.01, budget=300)
    assert found.column("income").importance == 1.5
    assert not found.meets
    assert "The analyses need income." in found.words


def test_another_k_is_chosen_only_if_asked_for():
    frame = survey()
    start = START.override(k=5, columns=list(frame.columns[1:]))
    whole = microagg.protect(frame, plan=start.override(k=4)).utility.information_loss
    assert search(frame, start, max_loss=1.02 * whole, budget=300).k == 5
    found = search(frame, start, max_loss=1.02 * whole, k=[2, 3, 4], budget=300)
    assert found.meets
    assert found.k == 4
    assert "k = 4: " in found.steps[-1].words
    linked = microagg.protect(frame, plan=start).with_known.linkage.share
    found = search(frame, start, max_linkage=0.9 * linked, k=[6, 8, 10], budget=300)
    assert found.k > 5
    with pytest.raises(InputError, match="k, the least number of records"):
        search(frame, start, max_loss=5, k=[0])


def test_an_analysis_that_cannot_be_done_is_refused_before_any_try(monkeypatch):
    monkeypatch.setattr("microagg.comparing.search_steps.try_plan", None)
    for wanted, words in (("gini(sex)", "holds text"), ("gini(person)", "is dropped")):
        with pytest.raises(InputError, match=f"The analysis '{wanted[:4]}.*{words}"):
            search(survey(), START.override(analyses=[wanted]), max_loss=5)
        with pytest.raises(InputError, match=f"The analysis '{wanted[:4]}.*{words}"):
            microagg.prices(survey(), START.override(analyses=[wanted]))
