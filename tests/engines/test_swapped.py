"""Values are swapped on disk and Spark as in memory; what is counted in files here shares no code with it."""

import os
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import microagg.spark
from microagg.engines import disk, disk_release
from microagg.engines.aggregates import GROUP
from microagg.errors import VerificationError
from microagg.evidence import Evidence
from microagg.job.job import Job
from microagg.job.run import run
from microagg.measure.classes import ClassSizes
from microagg.measure.pairing import chance_at_most, chance_of
from microagg.plan.plan import Plan
from microagg.releasing import swap

PROTECTED = ["age", "income", "rent", "job", "moved"]
K = 4


def survey(n: int = 400) -> pd.DataFrame:
    """Numbers, dates and categories, some rare or missing; strata, weights, households of several people."""
    chance = np.random.default_rng(6)
    income = np.where(chance.random(n) < 0.3, 0.0, np.exp(chance.normal(8, 1, n)).round(2))
    rent = np.where(chance.random(n) < 0.1, np.nan, chance.normal(500, 80, n))
    moved = pd.Timestamp("2020-01-01") + pd.to_timedelta(chance.integers(0, 900, n), "D")
    return pd.DataFrame(
        {
            "household": chance.integers(0, n // 2, n),
            "region": chance.choice(["north", "south"], n, p=[0.8, 0.2]),
            "age": chance.integers(18, 80, n),
            "income": income,
            "rent": rent,
            "job": chance.choice(["clerk", "farmer", "mayor", None], n, p=[0.5, 0.4, 0.02, 0.08]),
            "moved": moved.astype("datetime64[us]"),
            "weight": chance.uniform(1, 3, n).round(3),
        }
    )


def plan_of(**more) -> Plan:
    """A plan that swaps all values of the survey."""
    settings = {
        "k": K,
        "columns": PROTECTED,
        "strata": ["region"],
        "weight": "weight",
        "drop": ["household"],
        "missing": "majority",
        "release": "swap",
        "effort": "fast",
    }
    return Plan.of(**{**settings, **more})


def swapped(
    folder: Path, engine: str, plan: Plan, table: pd.DataFrame | None = None, name: str = "out"
) -> tuple[Evidence, pd.DataFrame]:
    """Do a job; what it says, and the written table."""
    source, target = folder / "in.parquet", folder / f"{engine} {name}.parquet"
    given = survey() if table is None else table
    pq.write_table(pa.Table.from_pandas(given, preserve_index=False), source)
    said = run(Job(source, target, plan, engine=engine)).evidence
    return said, pd.read_parquet(target)


def test_a_household_with_many_records_does_not_stand_for_k(engine, tmp_path):
    """Six records with one income are one household: their income is no value that k households share."""
    table = survey()
    table.loc[:5, ["household", "income", "region"]] = [-1, 123_456.0, "north"]
    _, after = swapped(tmp_path, engine, plan_of(unit="household"), table)
    assert 123_456.0 not in after["income"].to_list()


def test_a_small_table_has_the_groups_and_the_values_of_memory(engine, tmp_path):
    table = survey(24)
    plan = plan_of(strata=[], k=3, drop=["household", "region"], effort="best")
    said, after = swapped(tmp_path, engine, plan, table)
    expected, by_memory = swapped(tmp_path, "memory", plan, table, "expected")
    assert said.utility.group_loss == pytest.approx(expected.utility.group_loss, rel=1e-9)
    assert said.utility.information_loss == said.utility.group_loss
    assert said.signs.missing_counts == expected.signs.missing_counts
    for name in after:
        assert Counter(map(str, after[name])) == Counter(map(str, by_memory[name])), name


def answers(n: int) -> pd.DataFrame:
    """Answers of which most are no, so that many rows of a group equal some record."""
    chance = np.random.default_rng(5)
    table = pd.DataFrame({f"q{j}": chance.choice(["no", "yes"], n, p=[0.8, 0.2]) for j in range(9)})
    return table.assign(age=chance.normal(40, 9, n))


def expected_standing(table: pd.DataFrame) -> float:
    """Pairs of a row and a record of one group that are expected to be equal if columns are dealt."""
    shares = [np.square(table[name].value_counts(normalize=True)).sum() for name in table]
    return len(table) ** 2 * float(np.prod(shares))


def test_groups_that_agree_are_merged_as_in_memory(engine, tmp_path):
    table = answers(36)
    plan = Plan.of(k=3, columns=list(table), release="swap", effort="best")
    before, _ = swapped(tmp_path, engine, plan, table)
    merging = plan.override(standing=0.3)
    said, _ = swapped(tmp_path, engine, merging, table)
    expected, _ = swapped(tmp_path, "memory", merging, table, "expected")
    n_groups = [each.parts[0].partition.n_groups for each in (before, said, expected)]
    assert n_groups[0] > n_groups[1] == n_groups[2]
    assert said.utility.group_loss == pytest.approx(expected.utility.group_loss, rel=1e-9)


@pytest.mark.usefixtures("_small_parts")
def test_every_chunk_merges_groups_that_agree(tmp_path, monkeypatch):
    count, groups = disk_release.count_release, []

    def counted(rows, *more):
        groups.append(rows.units[GROUP].to_numpy())
        return count(rows, *more)

    monkeypatch.setattr(disk_release, "count_release", counted)
    table, most = answers(400), 0.3
    settings = {"k": 3, "columns": list(table), "release": "swap", "effort": "fast"}
    swapped(tmp_path, "disk", Plan.of(**settings, standing=most, keep_order=True), table)
    assert len({*(groups[0] >> 32)}) > 1  # chunks
    expected = [expected_standing(each) for _, each in table.groupby(groups[0])]
    assert sum(expected) <= most * len(table)


def test_relations_and_columns_named_together_hold_in_every_row(engine, tmp_path):
    chance = np.random.default_rng(4)
    age = chance.integers(20, 70, 160)
    net, tax = chance.normal(2_000, 500, 160).round(2), chance.normal(500, 90, 160).round(2)
    table = pd.DataFrame(
        {"age": age, "born": 2020 - age, "net": net, "tax": tax, "gross": net + tax}
    )
    plan = Plan.of(
        k=K,
        columns=list(table),
        release="swap",
        together=[["age", "born"]],
        relations=["gross = net + tax"],
        effort="fast",
    )
    _, after = swapped(tmp_path, engine, plan, table)
    assert (after["age"] + after["born"] == 2020).all()
    assert np.allclose(after["gross"], after["net"] + after["tax"])
    for names in (["age", "born"], ["net", "tax", "gross"]):
        assert after.groupby(names).size().min() >= K


def test_the_seed_tells_nothing(engine, tmp_path):
    plan = plan_of(random_state=7)
    files = []
    for name in ("first", "second"):
        _, after = swapped(tmp_path, engine, plan, name=name)
        files.append(Counter(map(tuple, after.astype(str).to_numpy().tolist())))
    assert files[0] != files[1]


@pytest.mark.usefixtures("_small_parts")
def test_a_task_of_spark_that_is_run_again_deals_in_the_same_way(spark):
    table = survey().drop(columns=["region", "weight", "household"])
    release = microagg.spark.protect(
        spark.createDataFrame(table), k=K, release="swap", columns=PROTECTED, effort="fast"
    )
    first = Counter(map(str, release.data.collect()))
    release.unpersist()
    assert Counter(map(str, release.data.collect())) == first


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_each_group_releases_the_list_of_its_values(engine, tmp_path):
    """Values that k records of every part have stay what they are; rows are in their order here."""
    chance = np.random.default_rng(8)
    table = pd.DataFrame({name: chance.integers(0, 3, 500) for name in "abc"})
    plan = Plan.of(k=5, columns=list(table), release="swap", keep_order=True, effort="fast")
    said, after = swapped(
        tmp_path, engine, plan.override(kinds=dict.fromkeys("abc", "number")), table
    )
    labels = said.parts[0].partition.labels
    assert np.bincount(labels).min() >= 5
    for name in table:
        lists = defaultdict(Counter)
        for label, before, value in zip(labels, table[name], after[name], strict=True):
            lists[label].update({("before", before): 1, ("after", value): 1})
        for own in lists.values():
            assert all(own["before", value] == own["after", value] for value in range(3))
    assert said.swap.chance == (1, 1)  # in kept order


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize(
    ("order", "words"),
    [(None, "kept their own 'age'"), ("", "'age' and 'income' stayed together")],
)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_dealing_that_is_not_random_is_rejected(engine, order, words, tmp_path, monkeypatch):
    at_random = swap.dealt_rows

    def dealt(labels, secret, what):
        return np.arange(len(labels)) if order is None else at_random(labels, secret, order)

    monkeypatch.setattr(swap, "dealt_rows", dealt)
    with pytest.raises(VerificationError, match=words):
        swapped(tmp_path, engine, plan_of())
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


@pytest.mark.usefixtures("_small_parts")
def test_tasks_of_spark_that_do_not_deal_at_random_are_rejected(spark, tmp_path, monkeypatch):
    """Tasks run in processes of their own, which read another ``dealt_rows`` when they start."""
    folder = tmp_path / "started"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import numpy as np\n"
        "from microagg.releasing import swap\n"
        "swap.dealt_rows = lambda labels, secret, what: np.arange(len(labels))\n"
    )
    source = str(Path(swap.__file__).parents[2])
    started = os.pathsep.join([str(folder), source])
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", started)
    with pytest.raises(VerificationError, match="kept their own 'age'"):
        swapped(tmp_path, "spark", plan_of())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "started"]


def test_a_spark_file_whose_groups_have_other_lists_does_not_hold(spark):
    """Two rows of different groups change their incomes: each value still stands for k records."""
    table = survey()[PROTECTED]
    given = spark.createDataFrame(table)
    release = microagg.spark.protect(given, k=K, columns=PROTECTED, release="swap", effort="fast")
    rows, schema = [row.asDict() for row in release.data.collect()], release.data.schema
    assert all(found.holds for found in release.verify(spark.createDataFrame(rows, schema)))
    other = next(row for row in rows if row["income"] != rows[0]["income"])
    rows[0]["income"], other["income"] = other["income"], rows[0]["income"]
    assert not any(found.holds for found in release.verify(spark.createDataFrame(rows, schema)))


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_whose_groups_have_other_lists_is_rejected(ending, tmp_path, monkeypatch):
    """Two rows of different groups change their incomes when they are written: k still holds."""
    write = disk_release.write_batches

    def exchanged(tables, *layout, **settings):
        first, *others = tables
        at, income = first.column_names.index("income"), first["income"].to_pylist()
        row = next(row for row, value in enumerate(income) if value != income[0])
        income[0], income[row] = income[row], income[0]
        column = pa.array(income, first.schema.field(at).type)
        first = first.set_column(at, first.schema.field(at), column)
        write([first, *others], *layout, **settings)

    source, target = tmp_path / "in.parquet", tmp_path / f"out.{ending}"
    pq.write_table(pa.Table.from_pandas(survey(), preserve_index=False), source)
    run(Job(source, target, plan_of(strata=[], drop=["region", "household"]), engine="disk"))
    target.unlink()
    monkeypatch.setattr(disk_release, "write_batches", exchanged)
    with pytest.raises(VerificationError, match="do not have the values that were dealt"):
        run(Job(source, target, plan_of(strata=[], drop=["region", "household"]), engine="disk"))
    assert not target.exists()


@pytest.mark.usefixtures("_small_parts")
def test_requirements_on_untouched_columns_are_amber_in_parts(tmp_path):
    plan = plan_of(strata=[], confidential=["region"], require={"distinct": {"region": 2}})
    said, _ = swapped(tmp_path, "disk", plan)
    assert any("Groups were chosen by region" in caution.words for caution in said.cautions)
    assert said.verdict == "amber"


@pytest.mark.usefixtures("_small_parts")
def test_the_secret_is_not_on_the_disk(tmp_path, monkeypatch):
    secrets, count = [], disk_release.count_release

    def drawn(size):
        secrets.append(np.random.default_rng(len(secrets)).bytes(size))
        return secrets[-1]

    def looked(rows, *more):
        kept = b"".join(path.read_bytes() for path in rows.scratch.rglob("*") if path.is_file())
        assert len(kept) > 10_000
        assert not any(secret in kept for secret in secrets)
        return count(rows, *more)

    monkeypatch.setattr(disk.secrets, "token_bytes", drawn)
    monkeypatch.setattr(disk_release, "count_release", looked)
    swapped(tmp_path, "disk", plan_of())
    assert len(secrets) > 3


def test_the_chance_from_sizes_of_classes_is_never_too_small():
    chance = np.random.default_rng(0)
    for _ in range(50):
        labels, units = chance.integers(0, 9, 80), chance.integers(0, 30, 80)
        labels = np.unique(labels, return_inverse=True)[1]
        exact = chance_of(labels, units)
        bound = chance_at_most(ClassSizes.of_labels(labels, units))
        assert bound.largest >= exact.largest
        assert bound.mean >= exact.mean
        assert chance_at_most(ClassSizes.of_labels(labels)) == pytest.approx(
            chance_of(labels, None)
        )
