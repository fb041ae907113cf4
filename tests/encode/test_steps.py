"""Steps of a column: found exactly, however the values are cut into batches, and means on them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import microagg
from attacks.counted import steps_of
from microagg.encode.steps import Steps

COLUMNS = st.builds(
    lambda first, step, decimals, numbers: np.array(
        [float(f"{first + step * n}e-{decimals}") for n in numbers]
    ),
    st.integers(-50, 50),
    st.integers(1, 40),
    st.integers(0, 4),
    st.lists(st.integers(0, 1_000), min_size=1, max_size=30),
)


@given(COLUMNS, st.integers(0, 30))
def test_the_steps_are_those_of_the_numbers_as_written_in_whatever_batches(values, cut):
    found = Steps.of(values[:cut]).merge(Steps.of(values[cut:]))
    first, step = steps_of(values)
    assert found.size == pytest.approx(float(step), rel=1e-12)
    assert np.array_equal(found.nearest(values), values)
    moved = values + 0.499 * float(step)
    assert found.nearest(moved) == pytest.approx(values, rel=1e-12, abs=1e-12)
    assert found.are_whole == (first.denominator == 1 and (first + step).denominator == 1)


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([0.1, 0.2, 1 / 3], 0.0),
        ([1e300, 2e300], 1.0),
        ([0.5, 1e300], 0.0),
        ([7.0, 7.0], 0.0),
        ([-0.0, 0.0], 0.0),
        ([86_400e6, 3 * 86_400e6], 172_800e6),
    ],
)
def test_extremes_have_steps_or_none(values, size):
    found = Steps.of(np.array(values))
    assert found.size == size
    assert np.array_equal(found.nearest(np.array(values)), values)


def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 400
    return pd.DataFrame(
        {
            "children": rng.poisson(0.7, n),
            "age": 5 * rng.integers(4, 16, n),
            "half": rng.integers(0, 40, n) / 2,
            "pay": rng.lognormal(8, 1, n).round(2),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
            "region": rng.choice(["north", "south", "west"], n),
            "w": rng.uniform(1, 9, n).round(3),
        }
    )


COLUMNS_OF_TABLE = ["children", "age", "half", "pay", "day"]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_weighted_means_lie_on_the_steps_and_keep_the_totals_of_strata(tmp_path, engine):
    before = table()
    before.to_parquet(tmp_path / "in.parquet", index=False)
    microagg.protect_file(
        tmp_path / "in.parquet", tmp_path / "out.parquet", k=4, columns=COLUMNS_OF_TABLE,
        weight="w", strata=["region"], engine=engine,
    )  # fmt: skip
    after = pd.read_parquet(tmp_path / "out.parquet")
    for name, step in (("children", 1), ("age", 5), ("half", 0.5), ("pay", 0.01)):
        steps = after[name] / step
        assert np.allclose(steps, steps.round(), rtol=0, atol=1e-6), name
        sums = [(t["w"] * t[name]).groupby(t["region"]).sum() for t in (before, after)]
        assert abs(sums[0] - sums[1]).max() < 1.5 * step * before["w"].mean(), name
    assert after["children"].min() >= 0
    assert (after["day"] == after["day"].dt.normalize()).all()


@pytest.mark.parametrize(("digits", "verdict"), [(0, "green"), (2, "amber"), ("exact", "amber")])
@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
def test_finer_digits_than_the_steps_are_amber_under_weights_alone(digits, verdict):
    before = table()[["children", "w"]]
    for weight, expected in (("w", verdict), (None, "amber" if digits == "exact" else "green")):
        given = before if weight else before[["children"]]
        found = microagg.protect(given, k=4, columns=["children"], weight=weight, digits=digits)
        assert found.evidence.verdict == expected


def test_means_without_weights_are_not_rounded_to_steps():
    found = microagg.protect(table()[["children", "age"]], k=3, columns=["children", "age"]).data
    assert (found["age"] % 5 != 0).any()
