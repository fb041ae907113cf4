"""Search: the plan that is found ends green, keeps what it must, and each step is counted."""

import json

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here, said
from microagg.comparing.search import search
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


def test_columns_the_file_can_do_without_are_dropped_and_each_step_chains():
    frame = survey()
    before = microagg.protect(frame, plan=START).utility.information_loss
    shares = []
    asked = {"max_loss": 5, "may_drop": ["noise", "shoe"], "budget": 300}
    found = search(frame, START, **asked, progress=lambda *of: shares.append(of[0] / of[1]))
    after = microagg.protect(frame, plan=found)
    assert after.evidence.verdict == "green"
    assert found.meets
    assert found.loss <= 5 < before
    assert not found.confidential
    assert set(found.drop) <= {"person", "noise", "shoe"}
    assert found.steps[0].before == pytest.approx(before)
    for step, following in zip(found.steps, found.steps[1:], strict=False):
        assert following.before == pytest.approx(step.after)
    for step in found.steps:
        assert step.column is None or step.words in found.notes[step.column]
    assert Plan.from_toml_text(found.to_toml()) == Plan.from_dict(found.as_dict())
    assert shares == sorted(shares)  # the bar never runs backwards
    assert shares[-1] == 1


def test_a_dropped_column_counts_as_lost_whole():
    """Without leave to drop, noise stays: dropping it would lower the loss of the others only."""
    frame = survey()
    found = search(frame, START, max_loss=0.5, budget=300)
    assert found.drop == ("person",)
    assert not found.meets
    by_column = found.figures.by_column
    exact = [name for name in found.strata.columns if name != "person"]
    assert found.loss == pytest.approx(sum(by_column.values()) / (len(by_column) + len(exact)))
    assert "--may-drop" in found.words


def test_spiked_columns_stay_spiked():
    """As a number, a column with many zeros seems to lose less: who has none does not count then."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
    frame["benefit"] = np.where(rng.random(300) < 0.5, 0.0, rng.lognormal(3, 1, 300))
    start = Plan.of(k=5, columns=list(frame), kinds={"benefit": "spiked"}, method="mdav")
    as_number = start.override(kinds={"benefit": "number"})
    losses = [microagg.protect(frame, plan=p).utility.even_loss for p in (start, as_number)]
    assert losses[1] < losses[0] - 0.1  # so the figure would tempt
    found = search(frame, start, max_loss=1, decided=(), budget=300)
    assert found.columns["benefit"].kind == "spiked"


def test_no_drop_raises_a_loss_that_is_above_its_limit(monkeypatch):
    """Dropping columns would lower the linkage, which is too high, too: the loss says no."""
    monkeypatch.setattr("microagg.comparing.search.releases", lambda plan: {})  # swapping is random
    monkeypatch.setattr("microagg.comparing.search._LARGER", ())
    found = search(survey(), START, max_loss=20, max_linkage=0.0, budget=300)
    assert not found.meets
    dropped = [step for step in found.steps if step.decision == "drop"]
    assert all(step.after <= max(step.before, 20) for step in dropped)
    only_linkage = search(survey(), START, max_linkage=0.0, budget=300)
    assert any(step.decision == "drop" for step in only_linkage.steps)


def test_a_plan_that_meets_the_target_is_left_alone():
    found = search(survey(), START, max_loss=60, budget=300)
    assert found.meets
    assert found.steps == ()
    assert set(found.blocks[0].columns) == {"turnover", "wages", "noise", "shoe", "sex"}


def test_what_is_decided_stays_so():
    frame = survey()
    named = START.override(
        columns=["turnover", "noise", "shoe"], known=[], drop=["person", "wages", "sex"]
    )
    found = search(frame, named, max_loss=1, budget=300)
    assert not found.meets
    assert found.blocks[0].columns == named.blocks[0].columns
    assert "must stay" in found.words
    assert "noise" in found.words


def test_columns_to_be_kept_become_strata_where_the_loss_allows():
    found = search(survey(), START, max_loss=60, keep=["sex"], budget=300)
    assert found.strata.columns == ("sex",)
    assert found.loss <= 60
    assert "make sex a stratum" in found.steps[-1].words


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "needs a target"),
        ({"max_loss": -1}, "max_loss"),
        ({"max_loss": 5, "keep": ["nobody"]}, "nobody"),
        ({"max_loss": 5, "keep": ["sex"], "may_drop": ["sex"]}, "not both"),
        ({"max_loss": 5, "k": [0]}, "k, the least number of records"),
    ],
)
def test_wrong_settings_are_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        search(survey(), START, **wrong)


def test_the_command_searches_and_says_each_step(tmp_path):
    path = tmp_path / "survey.csv"
    survey().to_csv(path, index=False)
    words = ["plan", str(path), "--k", "3", "--drop", "person", "--effort", "fast"]
    words += ["--max-loss", "5", "--may-drop", "noise,shoe"]
    done = here(*words)
    assert done.returncode == 0
    plan = Plan.from_toml_text(done.stdout)
    assert plan.accept.loss == 5
    assert "lost" in said(done)
    assert "Counted on all records" in said(done)
    assert json.loads(here(*words, "--json").stdout)["search"]["meets"]
    done = here(*words, "--max-loss", "0.0001")
    assert done.returncode == 1
    assert "No plan with a loss of at most 0.0001 %" in said(done)
    done = here(*words[:8], "--keep", "sex")
    assert done.returncode == 2
    assert "--max-loss" in said(done)


def incomes(n=300, seed=3):
    """Incomes beside columns that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    noise = {f"noise{i}": rng.normal(size=n).round(4) for i in range(4)}
    return pd.DataFrame({"income": rng.lognormal(10, 0.7, n).round(), **noise})


def test_columns_of_analyses_count_more_until_they_survive():
    frame = incomes()
    start = Plan.of(k=5, effort="fast", analyses=["poverty(income)", "gini(income)"])
    before = microagg.protect(frame, plan=start).utility
    assert max(analysis.moved for analysis in before.analyses) > 0.5
    found = search(frame, start, max_loss=40, budget=300)
    assert found.meets
    assert "income" not in found.drop
    step = found.steps[0]
    assert step.decision.startswith("importance ")
    assert "raise the importance of income" in step.words
    assert "gini(income) 0." in step.words
    after = microagg.protect(frame, plan=found).utility
    assert max(analysis.moved for analysis in after.analyses) <= 0.5
    # The loss is with all columns counted alike, not by what the search lets count more.
    assert after.even_loss == pytest.approx(found.loss)
    assert found.loss <= 40
    assert "gini(income)" in found.words


def test_protect_steers_importance_where_the_plan_says_how_far_analyses_may_move(tmp_path):
    path, out = tmp_path / "incomes.csv", tmp_path / "safe.csv"
    incomes().to_csv(path, index=False)
    words = ["protect", str(path), str(out), "--k", "5", "--effort", "fast", "--json"]
    words += ["--analysis", "gini(income)"]
    plain, steered = (
        json.loads(here(*words, *more).stdout) for more in ((), ("--max-moved", "0.5"))
    )
    assert plain["plan"].get("columns", {}).get("income", {}).get("importance") is None
    assert steered["plan"]["columns"]["income"]["importance"] > 1
    overlaps = [data["utility"]["analyses"][0]["overlap"] for data in (plain, steered)]
    assert overlaps[0] < 0.5 <= overlaps[1]


def test_an_importance_of_the_user_stays():
    start = Plan.of(
        k=5, effort="fast", analyses=["poverty(income)"], kinds={"income": {"importance": 1.5}}
    )
    found = search(incomes(), start, max_loss=12, max_moved=0.01, budget=300)
    assert found.column("income").importance == 1.5
    assert not found.meets
    assert "The analyses need income." in found.words


def test_a_smaller_k_is_chosen_only_if_asked_for_and_a_larger_one_against_linkage():
    frame = survey()
    start = START.override(k=5, columns=list(frame.columns[1:]))
    found = search(frame, start, max_loss=1, k=[2, 3], budget=300)
    assert found.k == 2
    assert any(step.decision == "k 2" for step in found.steps)
    assert search(frame, start, max_loss=1, budget=300).k == 5
    linked = microagg.protect(frame, plan=start).with_known.linkage.share
    found = search(frame, start, max_linkage=0.6 * linked, budget=300)
    assert found.meets
    assert found.figures.linkage <= 0.6 * linked


def test_an_analysis_that_cannot_be_done_is_refused_before_any_try(monkeypatch):
    monkeypatch.setattr("microagg.comparing.search.try_plan", None)
    for wanted, words in (("gini(sex)", "holds text"), ("gini(person)", "is dropped")):
        with pytest.raises(InputError, match=f"The analysis '{wanted[:4]}.*{words}"):
            search(survey(), START.override(analyses=[wanted]), max_loss=5)
        with pytest.raises(InputError, match=f"The analysis '{wanted[:4]}.*{words}"):
            microagg.prices(survey(), START.override(analyses=[wanted]))
