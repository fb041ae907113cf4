"""Bounds with strata and missing values against exhaustive search, which shares no code with them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import naive
from microagg.engines.memory.protect import protect_table
from microagg.plan.plan import Plan
from microagg.tables.frame import Frame


def least_loss(frame: pd.DataFrame, columns: list[str], strata: list[str], k: int) -> float:
    """The least sum of squares of groups within one stratum and one pattern of missing values."""
    scaled = frame[columns] / frame[columns].std(ddof=1)
    pattern = frame[columns].isna().astype(int).astype(str).agg("".join, axis=1)
    cells = pattern + "|" + frame[strata].astype(str).agg("|".join, axis=1)
    within = frame.groupby(cells).groups.values()
    return sum(
        naive.least_sse(scaled.loc[rows].fillna(0.0).to_numpy().tolist(), k) for rows in within
    )


def draw(seed: int) -> tuple[pd.DataFrame, int]:
    """A table whose cells, of a stratum and a pattern, have k to eight records each."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4))
    parts = []
    for stratum in "ab"[: rng.integers(1, 3)]:
        for gap in (None, "x", "y")[: rng.integers(1, 4)]:
            size = int(rng.integers(k, 9))
            part = pd.DataFrame(
                {
                    "x": rng.normal(size=size) * rng.choice([1, 100]),
                    "y": rng.integers(0, 9, size).astype(float),
                    "z": rng.lognormal(size=size),
                    "stratum": stratum,
                }
            )
            if gap is not None:
                part[gap] = np.nan
            parts.append(part)
    frame = pd.concat(parts, ignore_index=True)
    return frame.sample(frac=1, random_state=seed).reset_index(drop=True), k


def check(seeds: range) -> tuple[int, float]:
    """Return how many bounds were checked, and the mean share of the optimum that they prove."""
    checked, shares = 0, []
    columns = ["x", "y", "z"]
    for seed in seeds:
        frame, k = draw(seed)
        if frame[columns].notna().sum().min() < 2:
            continue
        settings: dict[str, Any] = {"k": k, "columns": columns, "strata": ["stratum"]}
        settings["kinds"] = dict.fromkeys(columns, "number")
        release = protect_table(Frame(frame), Plan.of(**settings, effort="fast"))
        if any(cells.blanked for cells in release.evidence.signs.missing_counts.values()):
            continue  # patterns were joined, so that the groups are of another table
        found = release.with_bound().parts[0].partition
        optimum = least_loss(frame, columns, ["stratum"], k)
        assert found.lower_bound is not None
        assert found.lower_bound <= optimum * (1 + 1e-9) + 1e-12, seed
        assert found.sse >= optimum * (1 - 1e-9) - 1e-12, seed
        checked += 1
        shares.append(found.lower_bound / optimum if optimum else 1.0)
    return checked, float(np.mean(shares))


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(100, 500), marks=pytest.mark.long)]
)
def test_bounds_hold_within_strata_and_patterns(seeds):
    checked, share = check(seeds)
    print(f"{checked} bounds, {share:.1%} of the optimum on average")
    assert checked >= len(seeds) / 2
    assert share > 0.8  # else the bounds prove nothing
