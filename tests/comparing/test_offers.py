"""What swapping would give beside a draft, and the largest k whose tables move no more than asked for."""

import json

import numpy as np
import pandas as pd
import pytest

from command import here
from microagg.comparing.offers import largest_k, swapping_words
from microagg.engines.memory.table import Table
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame

pytestmark = pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")


def people(n=200, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {
            "age": age,
            "income": (age * 30 + rng.lognormal(7, 0.5, n)).round(),
            "job": rng.choice(["cook", "clerk", "nurse"], n, p=[0.7, 0.2, 0.1]),
        }
    )


START = Plan.of(k=5, effort="fast")


def test_the_largest_k_is_between_the_last_that_holds_and_the_first_that_does_not():
    records = Table(Frame(people()))
    counts = []
    every = largest_k(records, START, 1e9, lambda done, total: counts.append(done / total))
    assert every.meets
    assert every.plan.is_swapped
    assert every.plan.k == 80  # doubled from 5 as long as two groups remain
    assert counts == sorted(counts)
    assert counts[-1] <= 1
    none = largest_k(records, START, 0.0)
    assert not none.meets
    assert none.plan.k == 2
    assert none.lines()[-1][0] == "not found"
    # Just below what the largest k tried gave, that k no longer holds.
    most = every.tried[80] * 0.999
    some = largest_k(records, START, most)
    assert some.meets == (some.figures.tables_multiple <= most)
    assert all(times <= most for k, times in some.tried.items() if k == some.plan.k)


def test_a_draft_is_compared_with_swapping_where_that_is_possible():
    records = Table(Frame(people()))
    plan = records.checked(START)
    words = swapping_words(records, plan)
    assert "with --release swap --k 10, tables of three columns move " in words
    assert "tried on 200 records" in words
    assert swapping_words(records, plan.override(release="swap")) is None
    few = Table(Frame(people(15)))
    assert swapping_words(few, plan) is None


def test_the_command_offers_the_claim_and_searches_k(tmp_path):
    path = tmp_path / "people.csv"
    people().to_csv(path, index=False)
    words = ["plan", str(path), "--k", "5", "--effort", "fast"]
    data = json.loads(here(*words, "--answers", "income,job", "--json").stdout)
    assert [claim["columns"] for claim in data["answers"]] == [
        ["income"],
        ["job"],
        ["income", "job"],
    ]
    alone, _, both = data["answers"]
    assert both["change"] < alone["change"] < 0  # a claim wins information
    assert both["at_stake"] >= alone["at_stake"] > 0.9  # and stakes people
    assert data["plan"].get("confidential") is None  # nothing is claimed yet
    assert "--release swap" in data["swapping"]
    told = here(*words, "--answers", "job")
    assert "job, if confidential: " in told.stderr
    assert "if an attacker knows it after all" in told.stderr
    found = here(*words, "--tables", "1000000")
    assert found.returncode == 0
    plan = Plan.from_toml_text(found.stdout)
    assert plan.is_swapped
    assert plan.k == 80
    assert here(*words, "--tables", "0").returncode == 1
    assert here(*words, "--tables", "1", "--max-loss", "5").returncode == 2
    assert "nobody" in here(*words, "--answers", "nobody").stderr
