"""Loss and linkage mean the same on every engine: counted from the written file by code of its own."""

import json

import numpy as np
import pandas as pd
import pytest

from command import here, said
from microagg.engines import disk
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.column import Column
from microagg.plan.plan import Plan

ENGINES = ["memory", "disk", "spark"]
# On Spark, where a job takes seconds, `make test` takes samples of what engines share.
AT_LENGTH = ["memory", "disk", pytest.param("spark", marks=pytest.mark.long)]


@pytest.fixture
def protect(request, tmp_path):
    """Protect a table on an engine: the evidence, and the released table in the order of the input.

    Spark gives rows in any order, so that the table has a column ``row`` to be left as it is.
    """

    def work(engine, table, **settings):
        settings = {"effort": "fast", "known": ["row"], **settings}
        plan = Plan().override(**settings)
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        source, target = folder / "in.parquet", folder / "out.parquet"
        table.to_parquet(source, index=False)
        if engine == "spark":
            pytest.importorskip("pyspark")
            request.getfixturevalue("spark")
        rejected = folder / "rejected.parquet"  # by a limit that the plan sets
        found = run(Job(source, target, plan, engine=engine, keep_rejected=rejected)).evidence
        assert target.exists() is (found.verdict != "red")
        written = target if target.exists() else rejected
        after = pd.read_parquet(written).sort_values("row", ignore_index=True)
        return found, found.utility.information_loss, found.utility.group_loss, after

    return work


def lost(before, after, importance=None, weight=None):
    """100·Σ(x−x')²/Σ(x−x̄)², columns with equal parts; of categories by their one-hot columns."""
    w = np.ones(len(before)) if weight is None else before[weight].to_numpy()
    shares, parts = [], []
    for name in before.columns.drop(["row", *([] if weight is None else [weight])]):
        there = before[name].notna().to_numpy()
        x, y, own = before[name][there], after[name][there], w[there]
        if pd.api.types.is_numeric_dtype(x):
            x, y = (v.to_numpy(float)[:, None] for v in (x, y))
        else:
            levels = sorted(set(x))
            gone = y.isna().to_numpy()
            x, y = (np.array([[v == level for level in levels] for v in z], float) for z in (x, y))
            y[gone] = np.nan
        middle = own @ x / own.sum()
        y = np.where(np.isnan(y), middle, y)
        shares.append((own @ (x - y) ** 2).sum() / (own @ (x - middle) ** 2).sum())
        parts.append((importance or {}).get(name, 1) * (there.sum() - 1))
    return 100 * np.average(shares, weights=parts)


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("engine", AT_LENGTH)
def test_totals_stay_where_whole_numbers_are_rounded(protect, engine):
    rng = np.random.default_rng(7)
    n, chunk = 400, 90
    table = pd.DataFrame({"jobs": rng.poisson(30, n), "age": rng.integers(18, 80, n)})
    table["row"] = np.arange(n)
    *_, after = protect(engine, table, k=3, columns=["jobs", "age"], round="totals")
    for name in ("jobs", "age"):
        assert pd.api.types.is_integer_dtype(after[name])
        assert (after[name] != table[name]).any()
        # Half a step for each chunk, which has at least half as many records as it may have.
        assert abs(after[name].sum() - table[name].sum()) <= n / chunk


@pytest.mark.parametrize("engine", ENGINES)
def test_a_group_can_release_medians_and_the_category_of_a_random_member(protect, engine):
    rng = np.random.default_rng(11)
    n = 1200
    table = pd.DataFrame(
        {
            "income": rng.lognormal(3, 1, n).round(2),
            "job": rng.choice(["cook", "clerk", "judge"], n, p=[0.6, 0.3, 0.1]),
            "row": np.arange(n),
        }
    )
    columns = ["income", "job"]
    settings = {"k": 5, "columns": columns, "aggregate": "median", "kinds": {"income": "number"}}
    _, loss, of_groups, after = protect(engine, table, **settings)
    assert after.groupby(columns)["row"].count().min() >= 5
    assert loss == pytest.approx(lost(table, after), rel=1e-6)
    incomes = table.groupby(after.groupby(columns).ngroup())["income"]
    assert (after["income"] == incomes.transform("median")).all()
    assert of_groups < loss
    _, loss, _, after = protect(engine, table, k=5, columns=columns, categories="draw")
    assert after.groupby(columns)["row"].count().min() >= 5
    assert loss == pytest.approx(lost(table, after), rel=1e-6)
    # That none of about 230 groups draws a judge has a chance below 0.9 to the power of 230, 3e-11.
    assert set(after["job"]) == {"cook", "clerk", "judge"}


@pytest.mark.parametrize("engine", AT_LENGTH)
def test_one_column_with_missing_values(protect, engine):
    rng = np.random.default_rng(6)
    x = np.where(rng.random(400) < 0.1, np.nan, rng.normal(10, 3, 400).round(2))
    table = pd.DataFrame({"x": x, "row": np.arange(400)})
    for policy in ("majority", "fill"):
        _, loss, _, after = protect(engine, table, k=3, columns=["x"], missing=policy)
        assert after["x"].value_counts(dropna=False).min() >= 3
        assert loss == pytest.approx(lost(table, after), rel=1e-6)
    # Two values among missing ones: rare, so that they are blanked and no record keeps their pattern.
    table["x"] = [1.0, 2.0] + [np.nan] * 398
    _, _, _, after = protect(engine, table, k=3, columns=["x"])
    assert after["x"].isna().all()


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_pattern_all_of_whose_records_are_joined_with_others_is_no_short_one(protect, engine):
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"a": np.nan, "b": rng.normal(size=300), "row": np.arange(300)})
    table.loc[:1, "a"] = [1.0, 2.0]
    found, _, _, after = protect(engine, table, k=5, columns=["a", "b"])
    assert after["a"].isna().all()
    assert found.signs.missing_counts["a"].blanked == 2


@pytest.mark.parametrize("engine", AT_LENGTH)
@pytest.mark.parametrize("how", [{"round": 1000}, {"top": 5000}, {"bands": 2000}])
def test_groups_do_not_lose_what_a_recoding_loses_where_they_share_nothing(protect, engine, how):
    rng = np.random.default_rng(9)
    n = 300
    table = pd.DataFrame({"a": rng.normal(size=n), "pay": rng.lognormal(8, 1, n)})
    table["weight"], table["row"] = rng.integers(1, 9, n).astype(float), np.arange(n)
    known, coarsen = ["row", "pay"], {"pay": how}
    found, loss, of_groups, _ = protect(
        engine, table, k=4, columns=["a"], weight="weight", known=known, coarsen=coarsen
    )
    assert of_groups == pytest.approx(loss, rel=1e-9)
    assert found.utility.group_loss_by_column["pay"] == pytest.approx(
        found.utility.by_column["pay"], rel=1e-9
    )


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_levels_that_only_dropped_records_have_are_none_of_the_release(
    protect, engine, monkeypatch
):
    monkeypatch.setattr(disk, "AT_ONCE", 128)
    rng = np.random.default_rng(10)
    n = 512
    table = pd.DataFrame({"a": rng.normal(size=n), "job": rng.choice(["x", "y"], n)})
    table["row"] = np.arange(n)
    table.loc[:127, "a"] = np.nan  # no record of the first batch is kept
    table.loc[300, ["a", "job"]] = [np.nan, "z"]
    found, _, _, after = protect(engine, table, k=4, columns=["a", "job"], missing="drop")
    assert found.dropped == 129
    assert after["row"].tolist() == table["row"][table["a"].notna()].tolist()
    assert set(after["job"]) <= {"x", "y"}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_small_patterns_that_break_a_requirement_join_others(protect, engine):
    rng = np.random.default_rng(9)
    n = 900
    table = pd.DataFrame(rng.normal(10, 3, (n, 3)), columns=[*"abc"])
    table["turnover"], table["row"] = rng.lognormal(3, 0.5, n).round(2), np.arange(n)
    table.loc[:10, "a"], table.loc[0, "turnover"] = np.nan, 8e3  # one firm has nearly all of eleven
    table.loc[20:400, ["a", "b"]] = np.nan
    table.loc[20:30, "turnover"] = 5e3
    found, _, _, after = protect(
        engine, table, k=3, columns=[*"abc"], drop=["turnover"], effort="fast",
        require={"n_k": {"turnover": {"n": 1, "k": 95}}},
    )  # fmt: skip
    after["turnover"] = table["turnover"]
    of_groups = after.groupby([*"abc"], dropna=False)["turnover"]
    assert (of_groups.max() <= 0.95 * of_groups.sum()).all()
    assert of_groups.size().min() >= 3
    assert found.signs.missing_counts["b"].blanked == 11


def test_the_command_says_both_losses_and_fails_by_the_released_one(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(50, 10, (300, 2)), columns=["a", "b"])
    table.to_csv(tmp_path / "in.csv", index=False)
    for engine in ("memory", "disk"):
        done = here(
            "protect", tmp_path / "in.csv", tmp_path / f"{engine}.csv", "--k", "3", "--columns", "a,b",
            "--digits=-1", "--max-loss", "5", "--engine", engine, "--json", "--keep-order",
            "--keep-rejected", tmp_path / f"rejected {engine}.csv",
        )  # fmt: skip
        assert done.returncode == 1
        assert not (tmp_path / f"{engine}.csv").exists()
        found = json.loads(done.stdout)
        after = pd.read_csv(tmp_path / f"rejected {engine}.csv")
        counted = lost(table.assign(row=0), after)
        assert found["information_loss"] == pytest.approx(counted, rel=6e-3)
        assert found["utility"]["group_loss"] == found["group_loss"] < 3
        assert found["verdict"] == "red"
        assert "the groups alone, with exact means, lose" in said(done)
        assert found["parts"][0]["information_loss"] == pytest.approx(found["group_loss"], rel=1e-2)


@pytest.mark.parametrize("engine", ENGINES)
def test_recoded_columns_lose_against_the_original(protect, engine):
    rng = np.random.default_rng(5)
    n = 600
    table = pd.DataFrame(
        {
            "age": rng.integers(0, 95, n),
            "pay": np.where(rng.random(n) < 0.05, np.nan, rng.lognormal(8, 1, n).round(2)),
            "job": np.array(list("abcdefgh"))[np.minimum(rng.geometric(0.4, n) - 1, 7)],
            "zone": np.array(["north", "south", "east", "west"])[rng.integers(0, 20, n) // 6],
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "row": np.arange(n),
        }
    )
    found, loss, of_groups, after = protect(
        engine,
        table,
        k=5,
        columns=["age", "pay", "job"],
        strata=["zone"],
        kinds={"job": "nominal"},
        known=["row", "seen"],
        coarsen={
            "age": {"bands": 10, "top": 80},
            "pay": {"top": 9000},
            "job": {"rare": 60},
            "zone": {"rare": 100},
            "seen": {"to": "quarter"},
        },
    )
    low = np.minimum(table["age"] // 10 * 10, 80)
    names = low.map(lambda x: "80 or more" if x == 80 else f"{x}–{x + 9}")
    assert set(after["age"]) <= set(names)
    means = after["age"].astype(str).map(table["age"].groupby(names).mean())
    assert after["pay"].max() <= 9000
    assert (after["seen"].dt.date == table["seen"].dt.to_period("Q").dt.start_time.dt.date).all()
    assert set(after["zone"]) == {"north", "south", "east", "other"}
    quarter = table["seen"].dt.to_period("Q").dt.start_time
    counted = {
        "age": _share(table["age"], means),
        "pay": _share(table["pay"].dropna(), after["pay"][table["pay"].notna()]),
        "job": _merged_share(table["job"], after["job"], least=60),
        "zone": _merged_share(table["zone"], after["zone"], least=100),
        "seen": _share(table["seen"].astype("int64"), quarter.astype("int64")),
    }
    assert found.utility.by_column == pytest.approx(counted, rel=1e-6)
    there = {"pay": table["pay"].notna().sum()}
    parts = [there.get(name, n) - 1 for name in counted]
    assert loss == pytest.approx(np.average(list(counted.values()), weights=parts), rel=1e-6)
    assert of_groups <= loss
    assert (
        after.groupby(["age", "pay", "job", "zone"], dropna=False, observed=True).size().min() >= 5
    )
    assert found.as_dict()["recoded"]["age"] == "bands of 10, 80 or more in one"


@pytest.mark.parametrize("engine", ENGINES)
def test_merged_levels_of_an_order_lose_the_places_that_they_move(protect, engine):
    rng = np.random.default_rng(7)
    order = ["none", "low", "middle", "high", "top"]
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 20, 240),
            "grade": rng.choice(order, 240, p=[0.02, 0.3, 0.4, 0.25, 0.03]),
            "stage": rng.choice([1, 2, 4, 5], 240, p=[0.5, 0.3, 0.15, 0.05]),
            "row": np.arange(240),
        }
    )
    found, _, _, after = protect(
        engine,
        table,
        k=5,
        columns=["age", "grade"],
        strata=["stage"],
        kinds={"grade": order, "stage": "ordinal"},
        coarsen={"grade": {"rare": 30}, "stage": {"rare": 30}},
        known=["row"],
    )
    assert set(after["grade"]) <= {"low", "middle", "high"}
    assert set(after["stage"]) == {1, 2, 4}
    places = dict(zip(order, range(5), strict=True))
    stages = {1: 0, 2: 1, 4: 2, 5: 3}
    counted = {
        "grade": _share(table["grade"].map(places), after["grade"].map(places)),
        "stage": _share(table["stage"].map(stages), after["stage"].map(stages)),
    }
    for name, share in counted.items():
        assert found.utility.by_column[name] == pytest.approx(share, rel=1e-6)
    assert counted["grade"] > 0


def _share(x, y):
    """100·Σ(x−x')²/Σ(x−x̄)²; what was blanked is at the mean."""
    y = y.astype(float).fillna(x.mean())
    return 100 * ((x - y) ** 2).sum() / ((x - x.mean()) ** 2).sum()


def _merged_share(x, y, least):
    """The same of categories, where "other" is the mean of the rare ones."""
    hot = pd.get_dummies(x).astype(float)
    rare = x.map(x.value_counts()) < least
    places = {level: (hot.columns == level).astype(float) for level in hot.columns}
    places["other"] = hot[rare].mean().to_numpy()
    released = np.array([places[level] for level in y])
    total = np.square(hot - hot.mean()).to_numpy().sum()
    return 100 * np.square(hot.to_numpy() - released).sum() / total


@pytest.mark.parametrize(
    ("zone", "engine"),
    [
        *(("Europe/Berlin", one) for one in ENGINES),
        *((None, one) for one in ENGINES[:2]),
        pytest.param(None, "spark", marks=pytest.mark.long),
    ],
)
def test_times_in_nanoseconds(protect, engine, zone):
    """Spark has microseconds: what is finer is cut off there, before 1970 too."""
    chance = np.random.default_rng(0)
    times = pd.Series(chance.integers(-(10**18), 10**18, 60).astype("datetime64[ns]"))
    seen = times.sample(frac=1, random_state=0, ignore_index=True)
    table = pd.DataFrame({"row": range(60), "born": times, "seen": seen})
    table = table.assign(**{n: table[n].dt.tz_localize(zone) for n in ("born", "seen")})
    found, loss, *_, after = protect(engine, table, k=5, columns=["born"], known=["row", "seen"])
    assert (after["seen"].dt.tz is None) is (zone is None)
    expected = table["seen"].dt.floor("us" if engine == "spark" else "ns")
    assert (after["seen"] == expected).all()
    means = table["born"].groupby(after["born"]).transform("mean")
    assert (abs(means - after["born"]) <= pd.Timedelta("2us")).all()
    assert after["born"].value_counts().min() >= 5
    assert 0 < loss < 1
    assert found.counted.holds


@pytest.mark.parametrize("engine", ENGINES)
def test_nodes_of_a_hierarchy_by_parents(protect, engine):
    parents = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "b3": "b", "a": "all", "b": "all"}
    chance = np.random.default_rng(0)
    table = pd.DataFrame({"row": range(60), "x": chance.normal(size=60)})
    table["code"] = chance.choice(["a1", "a2", "b1", "b2", "b3"], 60)
    kinds = {"code": Column("hierarchy", parents=parents, release="node")}
    *_, after = protect(engine, table, k=5, columns=["x", "code"], kinds=kinds)
    chains = {code: {code, parents[code], "all"} for code in parents if len(code) == 2}
    assert all(new in chains[old] for old, new in zip(table["code"], after["code"], strict=True))
    assert set(after["code"]) & {"a", "b", "all"}
    assert after.groupby(["x", "code"]).size().min() >= 5
