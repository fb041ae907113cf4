"""Groups form by the same rules on every engine: shown by small tables, which have one chunk.

Large tables are cut into chunks, so that their groups may differ; the rules by which groups form do not.
"""

import numpy as np
import pandas as pd
import pytest

from attacks.mixed_cases import draw_wide
from microagg.encode.space import space_of
from microagg.engines.disk import DiskParts
from microagg.engines.fit import fit
from microagg.engines.memory.table import Table
from microagg.errors import InputError
from microagg.formats.batches import open_batches
from microagg.formats.files import read_file
from microagg.grouping.read_table import take_in
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan

N = 14


def light_where_missing(rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """Records with a missing value weigh little: by weights few values are missing, by records many."""
    gone = rng.random(N) < 0.25
    weight = np.where(gone, 0.05, 1.0) * rng.uniform(1, 1.1, N)
    table = {"a": np.where(gone, np.nan, rng.normal(size=N)), "b": rng.normal(size=N), "w": weight}
    return pd.DataFrame(table), {"columns": ["a", "b"], "weight": "w"}


def codes(rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """Codes of a hierarchy, some of which one record has."""
    names = rng.choice(
        ["A11", "A12", "A13", "A21", "B11", "B12"], N, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1]
    )
    table = {"code": names, "a": rng.normal(size=N), "w": rng.uniform(1, 9, N)}
    return pd.DataFrame(table), {"columns": ["code", "a"], "weight": "w"}


def by_prefixes(release: str | None) -> dict:
    return {"kinds": {"code": {"kind": "hierarchy", "prefixes": [1, 2], "release": release}}}


PARENTS = {
    "A11": "A1",
    "A12": "A1",
    "A13": "A1",
    "A21": "A2",
    "B11": "B",
    "B12": "B",
    "A1": "A",
    "A2": "A",
}


def whole_numbers_off_the_spike(rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """Spiked whole numbers none of which is the spike, and categories, whose loss is that of the release."""
    n = 24
    table = {
        "hours": rng.integers(1, 3, n),
        "job": rng.choice([*"xyz"], n),
        "b": rng.normal(size=n),
    }
    return pd.DataFrame(table), {"columns": ["hours", "job", "b"], "kinds": {"hours": "spiked"}}


def heavy_tails(rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """Large values weigh much, so that quartiles by weights are far from those by records."""
    pay = rng.lognormal(0, 1, N)
    table = {"pay": pay, "b": rng.normal(size=N), "w": 1 + 9.0 * (pay > 1)}
    return pd.DataFrame(table), {"columns": ["pay", "b"]}


def days(rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """Days as times to the microsecond, whose weighted means are hardly ever whole days."""
    n = 60
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    table = {"day": day.astype("datetime64[us]"), "b": rng.normal(size=n)}
    return pd.DataFrame(table | {"w": rng.uniform(0.5, 9, n)}), {"columns": ["day", "b"]}


def twenty_codes(rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """Numbers with twenty codes for missing ones, each of as many records as a group."""
    table = {"a": [*rng.integers(0, 90, N), *np.repeat(np.arange(-20, 0), 3)]}
    table["b"] = rng.normal(size=len(table["a"]))
    codes_of_a = {"codes": {"a": [*range(-20, 0)]}}
    return pd.DataFrame(table), {"columns": ["a", "b"], "missing": codes_of_a}


SIZES = ["tiny", "small", "mid", "large"]


def ordered_categories(rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """Categories whose type says their order, which is not that of the alphabet."""
    n = 24
    sizes = pd.Categorical(rng.choice(SIZES[1:], n), SIZES, ordered=True)
    return pd.DataFrame({"size": sizes, "b": rng.normal(size=n)}), {"columns": ["size", "b"]}


def old_and_rare_left_out(rng: np.random.Generator) -> tuple[pd.DataFrame, dict]:
    """Records that are left out have bands, jobs and grades to themselves, which are not counted."""
    n = 60
    table = {
        "age": [*rng.integers(20, 60, n), 95, 96, 97],
        "job": [*rng.choice([*"aaaabbbbc"], n), "b", "c", "judge"],
        "grade": [*rng.choice([1, 2, 3, 4], n), 4, 5, 5],
        "b": [*rng.normal(size=n), None, None, None],
    }
    columns = {"age": {"bands": 10}, "job": {"rare": 12}, "grade": {"rare": 12}}
    kinds = {"grade": {"kind": "ordinal"}}
    return pd.DataFrame(table), {"columns": [*table], "coarsen": columns, "kinds": kinds}


CASES = {
    "codes by prefixes": (codes, by_prefixes(None)),
    "nodes above codes": (codes, by_prefixes("node")),
    "rare codes of a hierarchy": (codes, {**by_prefixes(None), "coarsen": {"code": {"rare": 3}}}),
    "codes by parents": (codes, {"kinds": {"code": {"kind": "hierarchy", "parents": PARENTS}}}),
    "weights of missing values, majority": (light_where_missing, {"missing": "majority"}),
    "weights of missing values, fill": (light_where_missing, {"missing": "fill"}),
    "quartiles of weighted numbers": (heavy_tails, {"scale": "robust", "weight": "w"}),
    "many codes for missing values": (twenty_codes, {}),
    "means of times": (days, {"weight": "w"}),
    "ordered categories": (ordered_categories, {}),
    "recodings of complete records": (old_and_rare_left_out, {"missing": "drop"}),
    "spiked numbers that are rounded": (whole_numbers_off_the_spike, {"round": "nearest"}),
}


def released(folder, engine: str, table: pd.DataFrame, plan: Plan) -> pd.DataFrame:
    source, target = folder / "in.parquet", folder / f"{engine}.parquet"
    table.to_parquet(source, index=False)
    run(Job(source, target, plan, engine=engine))
    return pd.read_parquet(target).sort_values("row", ignore_index=True)


# One by weights, one by codes, one by the release: a job on Spark takes seconds.
ON_SPARK = ["nodes above codes", "quartiles of weighted numbers", "spiked numbers that are rounded"]
ON_ENGINES = [
    *(("disk", case) for case in CASES),
    *(("spark", case) for case in ON_SPARK),
    *(pytest.param("spark", c, marks=pytest.mark.long) for c in CASES if c not in ON_SPARK),
]


@pytest.mark.parametrize(("engine", "case"), ON_ENGINES, indirect=["engine"])
def test_a_small_table_has_the_groups_of_memory(engine, case, tmp_path):
    made, settings = CASES[case]
    for seed in [1] if engine == "spark" else range(1, 4):
        table, own = made(np.random.default_rng(seed))
        table["row"] = np.arange(len(table))
        plan = Plan.of(k=3, known=["row"], effort="best", **own, **settings)
        found, expected = (released(tmp_path, one, table, plan) for one in (engine, "memory"))
        for one in (found, expected):  # Spark has no type for categories
            one[one.columns[one.dtypes == "category"]] = one.select_dtypes("category").astype(str)
        pd.testing.assert_frame_equal(found, expected, rtol=1e-9)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_type_of_released_categories_keeps_their_order(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("microagg.engines.disk.AT_ONCE", 8)
    table, settings = ordered_categories(np.random.default_rng(1))
    table["row"] = np.arange(len(table))
    plan = Plan.of(k=3, known=["row"], missing={"codes": {"size": ["tiny"]}}, **settings)
    table.loc[:5, "size"] = "tiny"
    after = released(tmp_path, engine, table, plan)["size"].cat
    assert after.ordered
    assert [size for size in after.categories if size != "tiny"] == SIZES[1:]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_type_lists_no_category_that_the_file_does_not_have(engine, tmp_path, monkeypatch):
    """Ten records are of the middle size, but it is nearest to the mean of no group."""
    monkeypatch.setattr("microagg.engines.disk.AT_ONCE", 8)
    sizes = [*["small", "small", "mid"] * 5, *["large", "large", "mid"] * 5]
    table = pd.DataFrame({"size": pd.Categorical(sizes, ["small", "mid", "large"], ordered=True)})
    table["x"] = np.repeat(np.arange(10.0), 3)
    table["row"] = np.arange(len(table))
    kinds = {"x": {"kind": "number", "importance": 100.0}}
    plan = Plan.of(k=3, columns=["size", "x"], known=["row"], kinds=kinds)
    after = released(tmp_path, engine, table, plan)["size"]
    assert set(after) == {"small", "large"}
    assert list(after.cat.categories) == ["small", "large"]


@pytest.mark.parametrize("seed", range(60))
def test_the_coordinates_of_random_plans_are_those_of_memory(seed, tmp_path):
    try:
        case = draw_wide(seed)
        case.write(source := tmp_path / f"drawn{case.ending}")
        read = Table.of(read_file(source))
        found = take_in(read.frame, case.plan, read.text, read.coded)
        encoding, _ = fit(DiskParts(open_batches(source)), case.plan)
    except InputError:  # which tests of refusals compare
        return
    (block,) = found.plan.blocks
    policy, weights = found.plan.missing.policy, found.relative_weights
    variables = [found.variables[name] for name in block.columns]
    states = policy in ("majority", "fill")
    expected = space_of(variables, block.scale, weights, states).scaled
    packed = [
        encoding.packed(batch.table, batch.as_written if case.ending == ".csv" else None)
        for batch in open_batches(source).batches()
    ]
    coordinates = encoding.coordinates(encoding.records_of(np.concatenate(packed)))
    apart = coordinates - expected
    assert np.abs(apart - apart.mean(axis=0)).max() <= 1e-7 * max(np.abs(expected).max(), 1)
