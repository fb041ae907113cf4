"""Attacks by the digits of weighted means: somebody with half of a register looks for members of groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg.errors import DisclosureRiskWarning

CENT, TEN_THOUSANDTH = 0.01, 0.0001
N = 60


def people() -> pd.DataFrame:
    """Incomes in cents, and weights of four decimals."""
    rng = np.random.default_rng(3)
    income = rng.lognormal(10, 0.6, N).round(2)
    return pd.DataFrame({"income": income, "w": rng.uniform(50, 500, N).round(4)})


def is_multiple(values: np.ndarray, unit: float, error: float) -> np.ndarray:
    return np.abs(values / unit - np.rint(values / unit)) * unit <= error


def recovered(before: pd.DataFrame, after: pd.DataFrame, known: np.ndarray, digits: bool) -> int:
    """People outside the register whose income and weight are computed to the last digit.

    For each group and all but one of its members, taken from the register in every way, the last one is
    computed; only what is a whole number of cents, and of ten-thousandths, can be right. ``digits`` says
    that means have all digits; otherwise they may be off by half of their last one.
    """
    x, w = before["income"].to_numpy(), before["w"].to_numpy()
    hidden = {(round(x[i], 2), round(w[i], 4)) for i in range(N) if not known[i]}
    error_x, error_w = (1e-6, 1e-8) if digits else (0.005, 0.00005)
    found = 0
    for (mean, weight), rows in after.groupby(["income", "w"]).groups.items():
        size = len(rows)
        if size > 4:
            continue
        ways = np.array(list(combinations(np.flatnonzero(known), size - 1)))
        last_w = size * weight - w[ways].sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            last = (mean * size * weight - (w[ways] * x[ways]).sum(axis=1)) / last_w
            off = error_x * size * weight / np.abs(last_w) + size * error_w * abs(mean) / np.abs(
                last_w
            )
        able = (last_w > 49) & (last_w < 501) & (last > 0) & (last < 2 * x.max())
        able &= is_multiple(last_w, TEN_THOUSANDTH, size * error_w)
        able &= is_multiple(last, CENT, np.minimum(off, CENT) if not digits else 1e-5)
        answers = {
            (round(a, 2), round(b, 4)) for a, b in zip(last[able], last_w[able], strict=True)
        }
        found += len(answers) == 1 and bool(answers & hidden)
    return found


@pytest.mark.filterwarnings("ignore::microagg.DisclosureRiskWarning")
def test_half_a_register_does_not_find_the_members_of_groups():
    before = people()
    known = np.random.default_rng(0).random(N) < 0.6
    asked = {"k": 3, "columns": ["income"], "weight": "w", "method": "mdav"}
    exact = microagg.protect(before, digits="exact", **asked)
    assert recovered(before, exact.data, known, digits=True) >= 4  # the attack works
    assert exact.evidence.verdict == "amber"
    rounded = microagg.protect(before, **asked)
    assert recovered(before, rounded.data, known, digits=True) == 0
    assert recovered(before, rounded.data, known, digits=False) == 0
    assert rounded.evidence.verdict == "green"


def test_digits_finer_than_a_millionth_of_the_deviation_are_amber():
    before = people().drop(columns="w")
    for digits, verdict in ((None, "green"), (2, "green"), (6, "amber"), ("exact", "amber")):
        asked = {"k": 3, "columns": ["income"], "digits": digits}
        if verdict == "green":
            found = microagg.protect(before, **asked)
        else:
            with pytest.warns(DisclosureRiskWarning, match="digits finer than a millionth"):
                found = microagg.protect(before, **asked)
        assert found.evidence.verdict == verdict


def test_weighted_totals_move_by_less_than_a_millionth_of_the_deviation_a_record():
    before = people()
    after = microagg.protect(before, k=3, columns=["income"], weight="w").data
    moved = abs((after["w"] * after["income"]).sum() - (before["w"] * before["income"]).sum())
    allowed = 1e-6 * (
        before["w"].sum() * before["income"].std() + before["income"].sum() * before["w"].std()
    )
    assert 0 < moved < allowed
    assert abs(after["w"].sum() - before["w"].sum()) < 1e-6 * N * before["w"].std()


RELATIONS = ["gross = net + tax", "half = 0.5 * net", "low <= net", "low + tax <= gross"]


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("weight", [None, "w"])
def test_relations_hold_among_rounded_means(tmp_path, engine, weight):
    rng = np.random.default_rng(1)
    n = 300
    net, tax = rng.lognormal(5, 1, n), rng.lognormal(2, 1, n)
    low = net * rng.choice([1, 0.5], n, p=[0.7, 0.3])  # equal in many groups
    columns = {"net": net, "tax": tax, "gross": net + tax, "half": 0.5 * net, "low": low}
    table = pd.DataFrame({**columns, "w": rng.uniform(1, 9, n)})
    table.to_csv(tmp_path / "in.csv", index=False)
    microagg.protect_file(
        tmp_path / "in.csv", tmp_path / "out.csv", k=3, columns=list(columns), weight=weight,
        drop=[] if weight else ["w"], relations=RELATIONS, engine=engine,
    )  # fmt: skip
    text = pd.read_csv(tmp_path / "out.csv", dtype=str)
    decimals = {name: text[name].str.partition(".")[2].str.len().max() for name in columns}
    assert max(decimals.values()) <= 6, decimals
    after = text.astype(float)
    assert np.allclose(after["gross"], after["net"] + after["tax"], rtol=0, atol=1e-9)
    assert np.allclose(after["half"], 0.5 * after["net"], rtol=0, atol=1e-9)
    assert (after["low"] <= after["net"]).all()
    assert (after["low"] + after["tax"] <= after["gross"] + 1e-9).all()
