"""Several blocks in one plan: each has its own k, unit, strata and requirements, counted in the file."""

import numpy as np
import pandas as pd
import pytest

import naive_requirements as naive
from microagg import InputError, Plan, protect
from microagg.job.job import Job
from microagg.job.run import run
from microagg.report.public import public_model
from microagg.tables.frame import Frame

# Blocks protect separately, which is warned of.
pytestmark = pytest.mark.filterwarnings("ignore::microagg.errors.DisclosureRiskWarning")

PLAN = """microagg = 1
keep_order = true
drop = ["firm"]
renumber = ["plant"]
confidential = ["risk"]

[[block]]
columns = ["turnover", "wages"]
k = 3
effort = "fast"
unit = "firm"
strata = ["region"]
[block.require]
p_percent = { turnover = 10 }

[[block]]
columns = ["energy", "water"]
k = 4
effort = "fast"
unit = "plant"
strata = ["region", "sector"]

[[block]]
columns = ["staff"]
k = 5
effort = "fast"
[block.require]
distinct = { risk = 2 }
"""


def firms(n=480, seed=0):
    """Monthly records of plants of firms."""
    rng = np.random.default_rng(seed)
    plant = np.repeat(np.arange(n // 4), 4)
    firm = plant // 2
    size = np.exp(rng.normal(size=n // 8))[firm]
    return pd.DataFrame(
        {
            "firm": firm,
            "plant": plant,
            "region": np.array(["north", "south"])[firm % 2],
            "sector": np.array(["a", "b", "c"])[plant % 3],
            "risk": rng.integers(0, 3, n),
            "turnover": size * np.exp(rng.normal(size=n) / 3) * 1e3,
            "wages": size * np.exp(rng.normal(size=n) / 3) * 1e2,
            "energy": rng.gamma(2, 50, n),
            "water": rng.gamma(2, 5, n),
            "staff": rng.integers(1, 500, n),
        }
    )


def shared(frame, columns, counted):
    """Units that share each combination, counted by pandas."""
    return counted.groupby([frame[name] for name in columns]).nunique()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_every_block_keeps_its_own_promise_in_the_file(tmp_path, ending):
    before = firms()
    source, target = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    write = {"csv": lambda f: before.to_csv(f, index=False), "parquet": before.to_parquet}
    write[ending](source)
    outcome = run(Job(source, target, Plan.from_toml_text(PLAN)))
    after = {"csv": pd.read_csv, "parquet": pd.read_parquet}[ending](target)
    assert "firm" not in after
    records = pd.Series(np.arange(len(after)))
    assert shared(after, ["turnover", "wages", "region"], before["firm"]).min() >= 3
    assert shared(after, ["energy", "water", "region", "sector"], before["plant"]).min() >= 4
    assert shared(after, ["staff"], records).min() >= 5
    # What one block promises the others need not: the test would not see a promise of the whole plan.
    assert shared(after, ["staff"], before["firm"]).min() < 5
    for rows in after.groupby(["turnover", "wages", "region"]).indices.values():
        units = before["firm"].to_numpy()
        assert naive.p_percent_margin(before["turnover"].to_numpy(), 10, units, rows) < 1e-9
    assert after.groupby("staff")["risk"].nunique().min() >= 2

    evidence = outcome.evidence
    assert evidence.counted.holds
    found = {tuple(part.columns): (part.k, part.unit) for part in evidence.counted.parts}
    assert found == {
        ("turnover", "wages", "region"): (3, "firm"),
        ("energy", "water", "region", "sector"): (4, "plant"),
        ("staff",): (5, None),
    }
    assert len(evidence.counted.required) == 4  # two units, p %, distinct
    assert evidence.promise == (
        "In the released file, these are shared: each combination of turnover, wages together with the "
        "strata region by at least 3 units (firm); each combination of energy, water together "
        "with the strata region, sector by at least 4 units (plant); each value of staff by at "
        "least 5 records."
    )


def test_the_risk_over_all_blocks_is_measured_and_told():
    release = protect(firms(), plan=Plan.from_toml_text(PLAN))
    evidence = release.evidence
    # Of plants and firms there are fewer firms: all columns together are counted in them.
    assert evidence.roles.unit == "firm"
    before, after = firms(), release.data
    protected = ["turnover", "wages", "energy", "water", "staff"]
    joint = [*protected, "region", "sector"]
    labels = after.groupby(joint).ngroup()
    few = before["firm"].groupby(labels).transform("nunique") < 3
    assert evidence.alone.below_k == pytest.approx(few.mean())
    assert few.mean() > 0.5
    assert evidence.verdict == "amber"
    assert "for each block by itself, but" in evidence.verdict_words
    assert any("3 blocks" in caution.words for caution in evidence.cautions)


def test_strata_that_only_some_blocks_have_are_known_to_an_attacker():
    release = protect(firms(), plan=Plan.from_toml_text(PLAN))
    assert {"region", "sector"} <= set(release.roles.known)
    assert release.plan.shared_strata == []


@pytest.mark.parametrize("own", ["", 'unit = "hid"'])
def test_a_block_without_a_unit_is_told_of_groups_of_one_household(own):
    rng = np.random.default_rng(3)
    hid = np.repeat(np.arange(60), 5)
    frame = pd.DataFrame({"hid": hid, "x": hid * 10 + rng.random(300), "y": rng.random(300)})
    text = f"""microagg = 1
[[block]]
columns = ["y"]
k = 3
unit = "hid"
[[block]]
columns = ["x"]
k = 3
{own}
"""
    release = protect(frame, plan=Plan.from_toml_text(text))
    told = [c for c in release.cautions if "all records have the same hid" in c.words]
    assert len(told) == (0 if own else 1)


def test_a_public_page_does_not_promise_of_all_blocks_what_it_cannot_count():
    frame = pd.DataFrame({"a": [1.0] * 6, "b": [2.0] * 6})
    text = """microagg = 1
drop = ["hid"]
[[block]]
columns = ["a"]
k = 2
unit = "hid"
[[block]]
columns = ["b"]
k = 2
"""
    plan = Plan.from_toml_text(text)
    roles = plan.roles(["a", "b", "hid"])
    model = public_model(Frame(frame), plan, roles, {}, None)
    assert model["verdict"] == "amber"


def test_a_unit_of_a_block_must_be_there_k_times():
    plan = Plan.from_toml_text(PLAN.replace("k = 4", "k = 300"))
    with pytest.raises(
        InputError, match="k=300 needs at least 300 distinct values of the unit plant"
    ):
        protect(firms(), plan=plan)


def test_a_stratum_of_a_block_must_hold_k_units():
    frame = firms()
    frame.loc[:3, "sector"] = "d"
    with pytest.raises(InputError, match=r"units \(plant\)"):
        protect(frame, plan=Plan.from_toml_text(PLAN))
    protect(frame, plan=Plan.from_toml_text(PLAN.replace('["region", "sector"]', '["region"]')))
