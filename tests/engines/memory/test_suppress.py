"""Records left out where that lowers the loss: how many, which, and that all the rest still holds."""

import importlib
import json

import numpy as np
import pandas as pd
import pytest

import microagg
from command import here, said
from microagg.errors import InputError

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")

N = 200


def table(seed=0, outliers=4):
    """Three columns that go together, and a few records far from all others."""
    rng = np.random.default_rng(seed)
    size = rng.normal(size=N)
    X = size[:, None] + rng.normal(0, 0.3, (N, 3))
    rows = rng.choice(N, outliers, replace=False)
    X[rows] += rng.choice([-1, 1], (outliers, 3)) * rng.uniform(6, 12, (outliers, 3))
    return pd.DataFrame(X.round(3), columns=list("abc")), rows


def naive_loss(before, after):
    """SSE over SST of columns in units of their standard deviations."""
    z = before.std(ddof=1)
    return 100 * (((before - after) / z) ** 2).sum().sum() / (len(before) - 1) / before.shape[1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("settings", [{"effort": "fast"}, {"method": "mdav"}])
def test_the_loss_falls_and_k_holds(seed, settings):
    frame, _ = table(seed)
    frame.index = [f"row {i}" for i in range(N)]
    whole = microagg.protect(frame, k=4, columns=list("abc"), **settings)
    fewer = microagg.protect(frame, k=4, columns=list("abc"), suppress=0.03, **settings)
    left_out = [i for i in range(N) if f"row {i}" not in fewer.data.index]
    assert 0 < len(left_out) <= 0.03 * N
    # Order and index are those of the rows that stay.
    kept = frame.drop(index=[f"row {i}" for i in left_out])
    assert list(fewer.data.index) == list(kept.index)
    assert fewer.data.groupby(list("abc")).size().min() >= 4
    assert fewer.utility.information_loss < whole.utility.information_loss
    assert fewer.utility.information_loss == pytest.approx(naive_loss(kept, fewer.data), rel=1e-4)
    told = fewer.evidence.suppressed
    assert told.records == len(left_out)
    assert told.share == len(left_out) / N
    assert told.loss_without == pytest.approx(whole.utility.information_loss)
    assert f"{len(left_out)} records were left out (" in fewer.evidence.suppressed_words
    data = fewer.evidence.as_dict()
    assert data["suppressed"]["records"] == len(left_out)
    assert data["records"] == N - len(left_out)
    assert fewer.plan.suppress.most == 0.03


def test_the_record_far_from_all_others_is_left_out():
    frame, _ = table(outliers=0)
    frame.loc[77] = [9.0, -9.0, 9.0]
    found = microagg.protect(frame, k=4, columns=list("abc"), suppress=1 / N, effort="fast")
    assert list(found._measuring.intake.rows) == [i for i in range(N) if i != 77]


def test_none_is_left_out_unless_that_helps():
    """Of k times the same values nothing is lost, and nothing is won."""
    frame = pd.DataFrame({"a": np.repeat(np.arange(10.0), 5)})
    found = microagg.protect(frame, k=5, columns=["a"], suppress=0.1)
    assert len(found.data) == 50
    assert found.evidence.suppressed.records == 0
    assert "no record was left out" in found.evidence.suppressed_words
    few = microagg.protect(frame, k=5, columns=["a"], suppress=0.001)
    assert len(few.data) == 50
    assert microagg.protect(frame, k=5, columns=["a"]).evidence.suppressed_words == ""


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_units_are_left_out_as_a_whole(seed):
    frame, _ = table(seed)
    rng = np.random.default_rng(seed)
    frame["who"] = np.sort(rng.integers(0, 90, N))
    found = microagg.protect(
        frame, k=3, columns=list("abc"), unit="who", renumber=["who"], suppress=0.05, effort="fast"
    )
    rows = found._measuring.intake.rows
    stayed = set(frame["who"].iloc[rows])
    gone = set(frame["who"]) - stayed
    assert gone
    assert not frame["who"].iloc[rows].isin(gone).any()
    assert (frame["who"].isin(stayed)).sum() == len(rows)
    assert len(rows) >= 0.95 * N
    groups = found.data.assign(who=frame["who"].iloc[rows].to_numpy()).groupby(list("abc"))
    assert groups["who"].nunique().min() >= 3


def test_strata_gaps_and_recodings_go_along(tmp_path):
    frame, _ = table(3)
    frame["region"] = np.repeat(["north", "south"], N // 2)
    frame.loc[::11, "a"] = np.nan
    frame["id"] = [f"0{i}" for i in range(N)]
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    frame.to_csv(source, index=False)
    for policy in ("pattern", "drop"):
        words = ["protect", source, target, "--k", 3, "--columns", "a,b,c", "--strata", "region"]
        words += ["--drop", "id", "--missing", policy, "--suppress", 0.04]
        words += ["--coarsen", "b=round:0.1"]
        done = here(*words, "--effort", "fast", "--json")
        assert done.returncode == 0, said(done)
        data = json.loads(done.stdout)
        written = pd.read_csv(target)
        gone = data["suppressed"]["records"]
        assert 0 < gone <= 0.04 * N
        missing = frame["a"].isna().sum() if policy == "drop" else 0
        assert data["missing"]["dropped_records"] == missing
        assert len(written) == N - missing - gone
        assert written.groupby(["a", "b", "c", "region"], dropna=False).size().min() >= 3
        assert data["verdict"] == "green"
    assert "left out" in said(here(*words, "--effort", "fast"))


def test_a_weight_and_engines_that_work_in_parts_refuse(tmp_path):
    frame, _ = table(1)
    frame["w"] = np.random.default_rng(0).uniform(1, 2, N)
    with pytest.raises(InputError, match="Weighted totals stay what they are"):
        microagg.protect(frame, k=3, columns=list("abc"), weight="w", suppress=0.02)
    asked = {"most": 0.02, "weighted": True}
    found = microagg.protect(
        frame, k=3, columns=list("abc"), weight="w", suppress=asked, effort="fast"
    )
    assert len(found.data) < N
    assert found.evidence.verdict == "green"
    source = tmp_path / "in.parquet"
    frame.to_parquet(source)
    words = ["protect", source, tmp_path / "out.parquet", "--k", 3, "--columns", "a,b,c"]
    done = here(*words, "--drop", "w", "--suppress", 0.02, "--engine", "disk")
    assert done.returncode == 2
    assert "suppress leaves some out" in said(done)


def test_a_weight_that_the_draft_finds_refuses_before_any_work(monkeypatch):
    monkeypatch.setattr(importlib.import_module("microagg.engines.memory.protect"), "group", None)
    frame, _ = table(1)
    rng = np.random.default_rng(0)
    frame["survey_weight"] = rng.choice(rng.uniform(50, 200, 12), N)
    assert microagg.draft(frame, k=3).weight is not None
    with pytest.raises(InputError, match="the weight is 'survey_weight'"):
        microagg.protect(frame, k=3, suppress=0.02)
