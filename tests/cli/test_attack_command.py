"""The command attack: lines, JSON, card, and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest

from command import here, said
from microagg.measure import attack as attack_module


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Return an original, a released and a control file of 60 people each."""
    monkeypatch.setattr(attack_module, "find_spec", lambda name: None)
    rng = np.random.default_rng(0)
    found = {}
    for name in ("original", "control"):
        skill = rng.normal(size=60)
        frame = pd.DataFrame(
            {
                "age": rng.integers(20, 70, 60),
                "wage": (20 + 5 * skill).round(2),
                "job": np.where(skill > 0, "nurse", "cook"),
            }
        )
        frame.loc[:3, "job"] = "NA"
        found[name] = tmp_path / f"{name}.csv"
        frame.to_csv(found[name], index=False)
    found["released"] = tmp_path / "released.parquet"
    pd.read_csv(found["original"], keep_default_na=False).to_parquet(found["released"])
    return found


def run(*words):
    return here("attack", *words)


def test_a_released_file_is_attacked(files, tmp_path):
    card = tmp_path / "card.html"
    words = files["original"], files["released"], "--control", files["control"]
    done = run(*words, "--report", card, "--json", "--attacks", "50")
    assert done.returncode == 0
    figures = json.loads(done.stdout)
    assert figures["linkability"]["residual"]["share"] > 0.9
    assert figures["linkability"]["attack"]["attacks"] == 50
    assert set(figures["inference"]["columns"]) == {"age", "wage", "job"}
    for word in ("singling out", "linkability", "inference", "Ctrl-C keeps", "most at risk"):
        assert word in done.stderr
    shown = card.read_text(encoding="utf-8")
    assert "residual risk" in shown
    assert "Not tried" in shown
    for word in ("compliant", "anonymous", "nurse"):
        assert word not in shown
    assert json.loads(card.with_suffix(".json").read_text())["figures"] == figures


def test_without_controls_no_residual_risk_is_claimed(files):
    done = run(files["original"], files["released"], "--known", "age", "--secret", "wage")
    assert done.returncode == 0
    assert "no controls" in done.stderr
    assert "residual risk is told apart" in done.stderr
    assert "; residual risk" not in done.stderr


def test_a_plan_is_attacked_before_anything_is_released(files, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text('microagg = 1\n[[block]]\ncolumns = ["age", "wage", "job"]\nk = 3\n')
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run(files["original"], "--plan", plan, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["trials"] == 3
    assert "3 trials with 10.0 % of the people as controls" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_wrong_use_is_refused(files, tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text("microagg = 1\n")
    for words, message in (
        ((files["original"],), "neither was given"),
        ((files["original"], files["released"], "--plan", plan), "both were given"),
        ((files["original"], "--plan", plan, "--control", files["control"]), "leave --control out"),
        ((files["original"], files["released"], "--secret", "size"), "'size' is not"),
    ):
        done = run(*words)
        assert done.returncode == 2
        assert message in said(done)
