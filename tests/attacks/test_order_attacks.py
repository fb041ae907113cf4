"""Attacks by the order of rows: households by adjacency, and people by their rank in a sorted register."""

import importlib

import numpy as np
import pandas as pd
import pytest

from conftest import reference_file
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan
from microagg.tables.release_frame import random_order

COLUMNS = ["db030", "age", "eqIncome", "rb090", "hsize"]


@pytest.fixture
def orders(monkeypatch):
    """The orders that were drawn: what no attacker has, and a test needs to judge the attack."""
    drawn = []

    def recorded(n):
        drawn.append(random_order(n))
        return drawn[-1]

    # The package has a function of the name of this module.
    monkeypatch.setattr(
        importlib.import_module("microagg.engines.memory.protect"), "random_order", recorded
    )
    return drawn


def same_home(after: pd.DataFrame, homes: np.ndarray) -> tuple[float, float, int]:
    """Claim that adjacent rows which look alike are one household: how often that is so, and by chance.

    Chance is the share of households among all pairs of rows that look alike, adjacent or not.
    """
    alike = after.groupby(list(after), dropna=False, sort=False).ngroup().to_numpy()
    claimed = np.flatnonzero(alike[1:] == alike[:-1])
    right = (homes[claimed] == homes[claimed + 1]).mean() if len(claimed) else 0.0
    pairs = together = 0
    for rows in pd.Series(range(len(alike))).groupby(alike).indices.values():
        pairs += len(rows) * (len(rows) - 1) // 2
        sizes = np.unique(homes[rows], return_counts=True)[1]
        together += int((sizes * (sizes - 1) // 2).sum())
    return float(right), together / pairs, len(claimed)


def test_households_cannot_be_told_by_adjacent_rows(tmp_path, orders):
    table = pd.read_csv(reference_file("eusilc"), usecols=COLUMNS, nrows=3000)[COLUMNS]
    table.to_csv(tmp_path / "in.csv", index=False)
    homes = table["db030"].to_numpy()
    found = {}
    for keep_order in (True, None):
        plan = Plan.of(k=5, effort="fast", keep_order=keep_order)
        evidence = run(Job(tmp_path / "in.csv", tmp_path / "out.csv", plan)).evidence
        assert evidence.plan.unit == "db030"
        assert evidence.as_dict()["order"] == ("kept" if keep_order else "random")
        order = np.arange(len(table)) if keep_order else orders[-1]
        found[keep_order] = evidence, *same_home(pd.read_csv(tmp_path / "out.csv"), homes[order])
    evidence, right, chance, _ = found[True]
    assert right > 0.5 > 10 * chance  # the attack works
    assert evidence.verdict == "amber"
    (caution,) = [one for one in evidence.cautions if "lie together" in one.words]
    assert (caution.columns, "Leave out keep_order" in caution.advice) == (("db030",), True)
    evidence, right, chance, claimed = found[None]
    assert evidence.verdict == "green"
    assert right <= chance + 5 * np.sqrt(chance / max(claimed, 1)) + 5 / max(claimed, 1)


def test_a_register_in_the_order_of_the_file_tells_nothing(tmp_path, orders):
    table = pd.read_csv(reference_file("census")).sort_values("AGI", ignore_index=True)
    rng = np.random.default_rng(0)
    table["ill"] = rng.choice(["flu", "cold", "none", "other"], len(table))
    table.to_csv(tmp_path / "in.csv", index=False)
    asked = {"columns": list(table)[:-1], "confidential": ["ill"], "effort": "fast"}
    for keep_order in (True, None):
        plan = Plan.of(k=5, require={"distinct": {"ill": 2}}, keep_order=keep_order, **asked)
        evidence = run(Job(tmp_path / "in.csv", tmp_path / "out.csv", plan)).evidence
        told = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)["ill"].to_numpy()
        right = int((told == table["ill"].to_numpy()).sum())  # by the rank of AGI alone
        if keep_order:
            assert right == len(table)
            assert evidence.verdict == "amber"
            (caution,) = [one for one in evidence.cautions if "are sorted" in one.words]
            assert "AGI" in caution.columns
        else:
            chance = len(table) / 4
            assert abs(right - chance) < 6 * np.sqrt(chance)
            assert evidence.verdict == "green", [c.words for c in evidence.cautions]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_sorted_columns_that_are_protected_known_or_dropped_are_amber(tmp_path, engine):
    rng = np.random.default_rng(1)
    n = 400
    table = pd.DataFrame(
        {
            "pay": np.sort(rng.lognormal(3, 1, n)),
            "age": np.tile(np.sort(rng.integers(18, 90, n // 4)), 4),  # within each of four parts
            "town": rng.choice(["a", "b"], n),
            "name": [f"person {i:04}" for i in range(n)],
            "noise": rng.normal(size=n),
        }
    )
    table.to_parquet(tmp_path / "in.parquet", index=False)
    plan = Plan.of(k=4, columns=["pay", "age", "noise"], drop=["name"], keep_order=True)
    job = Job(tmp_path / "in.parquet", tmp_path / "out.parquet", plan, engine=engine)
    evidence = run(job).evidence
    (caution,) = [one for one in evidence.cautions if "are sorted" in one.words]
    assert caution.columns == ("pay", "age", "name")
    assert evidence.verdict == "amber"


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("together", [True, False])
def test_kept_order_is_amber_only_where_rows_of_a_household_follow_each_other(
    tmp_path, engine, together
):
    rng = np.random.default_rng(2)
    homes = np.arange(150)
    homes = np.repeat(homes, 2) if together else np.tile(homes, 2)
    noise = rng.normal(size=(300, 2))
    table = pd.DataFrame({"home": homes * 7 + 1001, "a": noise[:, 0], "b": noise[:, 1]})
    table.to_parquet(tmp_path / "in.parquet", index=False)
    plan = Plan.of(k=3, columns=["a", "b"], unit="home", drop=["home"], keep_order=True)
    job = Job(tmp_path / "in.parquet", tmp_path / "out.parquet", plan, engine=engine)
    words = " ".join(caution.words for caution in run(job).evidence.cautions)
    assert ("lie together" in words) == together
