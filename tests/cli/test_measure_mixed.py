"""The command measure on columns of any kind, with weights."""

import json

import numpy as np
import pandas as pd
import pytest

from command import here

N = 60
RNG = np.random.default_rng(3)


@pytest.fixture
def files(tmp_path):
    before = pd.DataFrame(
        {"age": RNG.integers(20, 80, N), "job": RNG.integers(1, 4, N), "w": RNG.uniform(1, 9, N)}
    )
    after = before.assign(
        age=before.groupby(np.arange(N) // 5).age.transform("mean"),
        job=before.groupby(np.arange(N) // 5).job.transform(lambda x: x.mode()[0]),
    )
    before.to_csv(tmp_path / "before.csv", index=False)
    after.to_csv(tmp_path / "after.csv", index=False)
    return before, after, tmp_path


def test_codes_are_compared_as_categories_and_records_count_by_weight(files):
    before, after, folder = files
    names = [folder / "before.csv", folder / "after.csv"]
    done = here(
        "measure", *names, "--columns", "age,job", "--kind", "job=nominal", "--weight", "w", "--json"
    )  # fmt: skip
    assert done.returncode == 0
    found = json.loads(done.stdout)
    moved = before.job != after.job
    assert found["utility"]["changed"]["job"] == pytest.approx(np.average(moved, weights=before.w))
    away = before.age - np.average(before.age, weights=before.w)
    lost = np.average((before.age - after.age) ** 2, weights=before.w)
    expected = 100 * lost / np.average(away**2, weights=before.w)
    assert found["utility"]["by_column"]["age"] == pytest.approx(expected, rel=1e-3)
    # Two files do not say which records were grouped.
    assert found["utility"]["group_loss"] < found["information_loss"]
    assert "the groups alone" not in done.stderr


def test_rows_of_other_people_are_noticed(tmp_path):
    frame = pd.DataFrame({"age": range(20, 60), "pay": [x * x % 97 for x in range(40)]})
    frame.to_csv(tmp_path / "in.csv", index=False)
    for name, rows in (("same", frame), ("mixed", frame.sample(frac=1, random_state=0))):
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
        done = here("measure", tmp_path / "in.csv", tmp_path / f"{name}.csv")
        said = " ".join(done.stderr.split())
        assert "`microagg attack ORIGINAL PROTECTED` needs no order" in said
        assert ("hardly belong to the same people" in said) == (name == "mixed")
