"""Reports of tables with categories, dates, missing values and weights: all there, nothing of a record."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import microagg
from microagg.measure.before_and_after import bars
from microagg.plan.column import Column
from microagg.plan.plan import Plan
from microagg.report.html import render, report_texts
from microagg.report.public import public_model
from microagg.tables.frame import Frame

K = 4
KINDS = {
    "school": Column("ordinal", levels=("low", "middle", "high")),
    "benefit": Column("spiked"),
}
NAMES = ["income", "benefit", "job", "school", "born", "seen"]


def survey(n=160, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.lognormal(8, 1, n).round(2),
            "benefit": np.where(rng.random(n) < 0.7, 0.0, rng.lognormal(5, 1, n).round(1)),
            "job": rng.choice(
                ["cook", "clerk", "<b>nurse</b>", "rare one"], n, p=[0.5, 0.3, 0.19, 0.01]
            ),
            "school": rng.choice(["low", "middle", "high"], n),
            "born": pd.to_datetime("1940-01-01") + pd.to_timedelta(rng.integers(0, 20000, n), "D"),
            "seen": [f"2024-{1 + int(m):02d}-15" for m in rng.integers(0, 12, n)],
            "w": rng.uniform(10, 90, n).round(1),
        }
    )
    frame.loc[rng.random(n) < 0.1, "income"] = np.nan
    frame.loc[rng.random(n) < 0.1, "job"] = None
    return frame


@pytest.fixture(scope="module")
def release():
    return microagg.protect(
        survey(),
        k=K,
        columns=NAMES,
        kinds=KINDS,
        weight="w",
        method="mdav",
        analyses=["income by job", "income ~ benefit"],
    )


def test_the_board_sees_every_kind(release):
    page, twin_text = report_texts(release.report_model())
    twin = json.loads(twin_text)
    text = " ".join(re.sub(r"<[^>]*>|&nbsp;", " ", page).split())
    for words in (
        "Categories",
        "Cramér's V",
        "loss of the groups",
        "blanked, filled",
        "individual risk with sampling weights",
        "&lt;b&gt;nurse&lt;/b&gt;",
        "middle",
        "others",
        "days →",
    ):
        assert words in text, words
    assert "<b>nurse" not in page
    assert page.count("<svg") == 6
    rows = {row["column"]: row for row in twin["summaries"]}
    assert re.fullmatch(r"19\d\d-\d\d-\d\d", rows["born"]["mean"][0])
    assert rows["seen"]["mean"][0].startswith("2024-")
    assert rows["income"]["missing"][0] > 0
    assert rows["school"]["levels"] == [3, 3]
    assert set(twin["utility"]["changed"]) == {"job", "school"}


def test_no_level_of_few_records_is_shown(release):
    """Not in the board's report, and not in the public one."""
    frame = survey()
    assert 0 < (frame["job"] == "rare one").sum() < K
    board = release.report_model()
    for model in (board, release.report_model(public=True)):
        assert "rare one" not in render(model)
        assert "rare one" not in json.dumps(model)
    found = board["pictures"]["distributions"]["job"]
    assert found["levels"][-1] == "others"
    assert min(found["before"]) >= K
    assert sum(found["before"]) == int(frame["job"].notna().sum())


def test_public_report_of_every_kind(release):
    model = release.report_model(public=True)
    assert "ticks" in model["pictures"]["distributions"]["born"]
    assert model["pictures"]["distributions"]["school"]["levels"] == ["low", "middle", "high"]
    assert all("before" not in d for d in model["pictures"]["distributions"].values())
    assert model["classes"]["alone"]["smallest_class"] == release.risk.smallest_class


def test_codes_of_missing_values_are_no_numbers_of_the_public_report():
    frame = pd.DataFrame({"x": [1.0] * 5 + [2.0] * 5 + [-8.0] * 5})
    plan = Plan.of(k=5, columns=["x"], missing={"codes": {"x": [-8]}})
    model = public_model(Frame(frame), plan, plan.roles(["x"]), {}, None)
    assert model["pictures"]["distributions"]["x"]["ends"] == [1.0, 2.0]
    assert model["classes"]["alone"]["classes"] == 3


def test_bars_tell_of_no_few():
    rng = np.random.default_rng(0)
    for _ in range(200):
        m, k = int(rng.integers(1, 20)), int(rng.integers(2, 6))
        before, after = (rng.integers(0, m, int(rng.integers(1, 80))) for _ in range(2))
        found = bars([before, after], [f"level {i}" for i in range(m)], k)
        assert len(found["levels"]) <= 12
        for key, codes in (("before", before), ("after", after)):
            told = found[key]
            assert all(count == 0 or count >= k for count in told)
            assert not told or sum(told) == len(codes)
            for level, count in zip(found["levels"], told, strict=True):
                if level != "others":
                    assert count == int(np.sum(codes == int(level.split()[1])))
