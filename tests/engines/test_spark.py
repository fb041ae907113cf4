"""The Spark engine: what comes from disk, however rows are spread and whatever dies on the way."""

import datetime as dt
import decimal
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from website.execute import Runner, blocks_of

import microagg
from engine_tables import LEAF, in_order, mixed_plan, mixed_table, released_from_disk
from microagg.drafting.draft import complete
from microagg.engines import disk
from microagg.engines import parts as completing
from microagg.engines.memory.protect import protect_table
from microagg.engines.spark import on_spark as engine
from microagg.engines.spark import spark_frames
from microagg.engines.spark.on_spark import group_in_spark
from microagg.engines.spark.spark_frames import by_way, in_bundles, matrix_of, on_spark
from microagg.engines.spark.spark_release import SparkRelease
from microagg.errors import DisclosureRiskWarning, InputError
from microagg.tables.frame import Frame

pytest.importorskip("pyspark")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def mixed():
    return mixed_table()


def same_as_from_disk(release, table, plan, folder) -> None:
    expected, _ = released_from_disk(table, plan, folder)
    assert in_order(release.data.toArrow()).equals(in_order(expected))


@pytest.mark.parametrize(
    ("share", "plan"),
    [
        (0.6, mixed_plan(unit="person")),
        pytest.param(
            0.02,
            microagg.Plan().override(k=4, columns=["wealth", "weight"], method="pca"),
            marks=pytest.mark.long,
        ),
    ],
    ids=["judged by all records", "counted in all records"],
)
def test_a_sample_that_is_not_the_whole_table_plans_the_same_chunks(
    spark, mixed, share, plan, tmp_path, monkeypatch
):
    for module in (engine, disk):
        monkeypatch.setattr(module, "sample_share", lambda _: share)
    frame = spark.createDataFrame(mixed).coalesce(2)
    release = SparkRelease.of(group_in_spark(frame, plan, LEAF))
    same_as_from_disk(release, mixed, plan, tmp_path)
    release.unpersist()


def test_each_chunk_has_a_task_of_its_own(spark):
    chunks = pa.table({"way": np.repeat(np.arange(7), 5)})

    def arrived(number, rows):
        return pa.table({"chunk": [number], "rows": [rows.num_rows]})

    done = by_way(spark.createDataFrame(chunks), 7, arrived, "chunk long, rows long")
    rows = done.selectExpr("chunk", "rows", "spark_partition_id() AS task").collect()
    assert sorted(tuple(row) for row in rows) == [(chunk, 5, chunk) for chunk in range(7)]


@pytest.mark.parametrize("n", [0, 1, 5000])
def test_bundles_give_back_what_was_put_in(n):
    chance = np.random.default_rng(n)
    packed = chance.integers(0, 2**64, (n, 5), dtype=np.uint64)
    ways = chance.integers(0, 3, n)
    table = in_bundles(ways, packed=packed, group=packed[:, :1])
    assert table.num_rows <= n / 100 + 3  # few rows for many records
    for way in range(3):
        own = table.filter(pc.equal(table["way"], way))
        assert (matrix_of(own["packed"], 5) == packed[ways == way]).all()
    halves = pa.concat_tables([table.slice(0, 1), table.slice(1)])  # as Spark hands them on
    assert (matrix_of(halves["group"], 1) == matrix_of(table["packed"], 5)[:, :1]).all()


@pytest.mark.posix
def test_rows_in_another_order_and_workers_that_die_change_nothing(
    spark, mixed, tmp_path, tmp_path_factory, monkeypatch
):
    """Every kind of task over blocks is killed once, after its work and before anybody has it."""

    def deadly(work):
        kind, plain = getattr(work, "func", work).__name__, usual(work)
        kinds.add(kind)

        def apply(one, other):
            found = plain(one, other)
            if not (tmp_path / kind).exists():
                (tmp_path / kind).touch()
                os.kill(os.getpid(), 9)
            return found

        return apply

    usual, kinds = spark_frames._of_two, set()
    monkeypatch.setattr(spark_frames, "_of_two", deadly)
    rows = np.random.default_rng(1).permutation(mixed.num_rows)
    frame = spark.createDataFrame(mixed.take(pa.array(rows))).repartition(5)
    release = SparkRelease.of(group_in_spark(frame, mixed_plan(), LEAF))
    assert release.grouped.rounds == 2
    same_as_from_disk(release, mixed, mixed_plan(), tmp_path_factory.mktemp("disk"))
    assert {path.name for path in tmp_path.iterdir()} == kinds  # each was killed, and done again
    assert {"worked", "finished", "_put_back"} <= kinds
    assert release.data.columns == [name for name in mixed.column_names if name != "note"]
    assert all(one.holds for one in release.verify())
    release.unpersist()


def by_id(frame_or_table, name: str = "id") -> pa.Table:
    table = frame_or_table if isinstance(frame_or_table, pa.Table) else frame_or_table.toArrow()
    return table.sort_by(name).combine_chunks()


@pytest.fixture(scope="module")
def persons():
    """Records of persons, with an amount by which rows can be found again."""
    chance = np.random.default_rng(8)
    n = 1500
    return pa.table(
        {
            "amount": np.arange(n) ** 1.1,
            "height": chance.normal(170, 10, n).round(1),
            "weight": pa.array(chance.normal(70, 12, n).round(1), mask=chance.random(n) < 0.05),
            "sex": chance.choice(["f", "m"], n),
            "person": chance.integers(0, 600, n),
        }
    )


def test_no_record_comes_to_the_driver(spark, tmp_path, monkeypatch):
    """All that is collected has a few hundred rows: summaries, blocks, counts, a bounded sample."""
    from pyspark.sql.classic.dataframe import DataFrame

    n, most = 6000, 2000
    chance = np.random.default_rng(1)
    table = pa.table({"x": chance.normal(size=n), "y": chance.normal(size=n), "z": np.arange(n)})
    frame = spark.createDataFrame(table)
    rows = []
    for name in ("collect", "toPandas", "toArrow", "toLocalIterator", "take", "head"):
        real = getattr(DataFrame, name)

        def counted(self, *given, real=real, **named):
            found = real(self, *given, **named)
            rows.append(len(found) if hasattr(found, "__len__") else n)
            return found

        monkeypatch.setattr(DataFrame, name, counted)
    with pytest.warns(DisclosureRiskWarning):
        release = microagg.spark.protect(
            frame, k=5, columns=["x", "y"], known=["z"], method="pca", block_records=1500
        )
    assert release.verify()[0].holds
    assert 0 < release.evidence.alone.linkage.records <= most
    release.data.write.parquet(str(tmp_path / "out"))
    assert 0 < max(rows) <= most
    release.unpersist()


def written_in_shuffles(spark) -> int:
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))


def test_what_moves_is_the_records_once_a_turn(spark, record_property):
    n, d = 40_000, 8
    X = np.random.default_rng(2).normal(size=(n, d))
    frame = spark.createDataFrame(pa.table({f"x{j}": X[:, j] for j in range(d)})).cache()
    frame.count()
    plan = microagg.Plan().override(k=5, columns=[f"x{j}" for j in range(d)], method="pca")
    before = written_in_shuffles(spark)
    found = group_in_spark(frame, plan, leaf=10_000)
    moved, turns = written_in_shuffles(spark) - before, found.rounds + 1
    record_property("bytes shuffled a turn over those of the data", moved / turns / X.nbytes)
    # The sample is all of so small a table, and moves too. Two words of key, group and block go with
    # the eight values, and what Spark needs for a row.
    assert turns == 3
    assert moved <= (turns + 1) * X.nbytes * (d + 6) / d
    found.released.unpersist()
    frame.unpersist()


def test_types_and_names_stay(spark):
    """Columns of any type and name that are left as they are."""
    n = 40
    fields = {
        "a.b": pa.array(np.arange(n, dtype=np.int32)),
        "back`tick": pa.array([decimal.Decimal(i) / 4 for i in range(n)], pa.decimal128(12, 2)),
        "day": pa.array([dt.date(2024, 1, 1 + i % 28) for i in range(n)]),
        "at": pa.array([dt.datetime(2024, 1, 1, i % 24) for i in range(n)], pa.timestamp("us")),
        "zoned": pa.array([dt.datetime(2024, 1, 1, i % 24) for i in range(n)], pa.timestamp("us", "UTC")),
        "bytes": pa.array([bytes([i]) for i in range(n)]),
        "list": pa.array([[i, None] for i in range(n)]),
        "map": pa.array([[("k", i)] for i in range(n)], pa.map_(pa.string(), pa.int64())),
        "pair": pa.array([{"u": i, "v": str(i)} for i in range(n)]),
        "flag": pa.array([i % 2 == 0 for i in range(n)]),
        "id": pa.array(np.arange(n)),
    }  # fmt: skip
    table = pa.table(fields)
    frame = spark.createDataFrame(table)
    with pytest.warns(DisclosureRiskWarning):
        release = microagg.spark.protect(
            frame,
            k=4,
            columns=["a.b", "day", "at", "back`tick"],
            known=["id", "bytes", "map"],
            round=True,
        )
    assert [(f.name, f.dataType) for f in release.data.schema.fields if f.name != "a.b"] == [
        (f.name, f.dataType) for f in frame.schema.fields if f.name != "a.b"
    ]
    data = by_id(release.data)
    before = by_id(frame)
    for name in ("zoned", "bytes", "list", "map", "pair", "flag"):
        assert data[name].equals(before[name]), name
    assert microagg.spark.verify(release.data, 4, ["a.b", "day", "at", "back`tick"]).holds
    assert microagg.spark.verify(release.data, 2, ["list", "map"]).smallest == 1
    release.unpersist()


def test_the_page_of_the_docs(spark, tmp_path):
    """Its code runs, and nothing that it shows of a small survey contradicts its words."""
    chance = np.random.default_rng(4)
    n = 600
    survey = {
        "age": chance.integers(18, 90, n),
        "income": np.exp(chance.normal(8, 1, n)).round(),
        "region": chance.choice(["north", "south"], n),
        "household": np.arange(n) // 2,
    }
    pq.write_table(pa.table(survey), tmp_path / "survey.parquet")
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    where = page.replace('parquet("', f'parquet("{tmp_path}/')
    runner = Runner(tmp_path, "spark.md", microagg=microagg, spark=spark)
    shown = [runner.run(b).text for b in blocks_of(where) if b.language in ("python", "sh")]
    assert "'green', " in "".join(shown)
    assert "True, " in "".join(shown)


def completed_on_spark(frame, plan):
    with on_spark():
        return completing.completed(engine.SparkParts(*spark_frames.positional(frame)), plan)


def test_a_plan_is_completed_as_in_memory(spark, monkeypatch):
    """Roles, unit, weight, kinds of codes, codes of missing values: drafted, or for named columns."""
    chance = np.random.default_rng(6)
    n = 400
    household = np.repeat(np.arange(n), 3)[:n] + 1000
    table = pa.table(
        {
            "person_id": np.arange(n),
            "household": household,
            "name": [f"person {i}" for i in chance.permutation(n)],
            "sex": chance.integers(1, 3, n),
            "income": np.where(chance.random(n) < 0.1, -9, chance.lognormal(8, 1, n).round(2)),
            "weight": chance.choice([1.2345678, 2.3456789, 3.4567891], n),
            "wave": np.full(n, 3),
        }
    )
    frame = spark.createDataFrame(table)
    for plan in (
        microagg.Plan.of(k=3),
        microagg.Plan.of(k=3, columns=["sex", "income"], drop=["person_id", "name"]),
    ):
        found = completed_on_spark(frame, plan)
        assert found.plan == complete(Frame(table), plan).plan
        assert found.plan.columns["sex"].kind == "nominal"
        assert (found.guesses is None) == (plan.blocks[0].columns is not None)
    drafted = completed_on_spark(frame, microagg.Plan.of(k=3)).plan
    assert (drafted.unit, drafted.known) == ("household", ("wave",))
    monkeypatch.setattr(completing, "DRAFTED", 300)
    completed_on_spark(frame, microagg.Plan.of(k=3))
    late = table.set_column(6, "wave", pa.array([3] * 399 + [4]))
    with pytest.raises(InputError, match="wave has one value there and others later"):
        completed_on_spark(spark.createDataFrame(late), microagg.Plan.of(k=3))


def test_what_is_refused(spark, persons):
    frame = spark.createDataFrame(persons)
    numbered = spark.createDataFrame(persons.append_column("nr", pa.array(range(1500))))
    with pytest.raises(InputError, match="must have a role; nr has none"):
        microagg.spark.protect(numbered, k=3, columns=["height"])
    with pytest.raises(InputError, match="at least one record; this one has none"):
        microagg.spark.protect(frame.limit(0), k=3)
    with pytest.raises(InputError, match="'heihgt'"):
        microagg.spark.protect(frame, k=3, columns=["heihgt"])
    with pytest.raises(InputError, match="stands for several"):
        microagg.spark.protect(frame.select("*", "sex"), k=3, columns=["height"])
    with pytest.raises(InputError, match="keep_order is true"):
        microagg.spark.protect(frame, k=3, columns=["height"], keep_order=True)

    # Values that are others whenever they are read.
    def draw(batches):
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"x": np.random.default_rng().normal(size=len(batch))})

    moving = spark.range(50).mapInArrow(draw, "x double")
    with pytest.raises(Exception, match="must be the same each time"):
        microagg.spark.protect(moving, k=3, columns=["x"], method="pca").data.toArrow()


def test_one_column_is_cut_as_in_memory(spark):
    """Within strata, in chunks that would be far smaller than the column for other plans."""
    chance = np.random.default_rng(8)
    n = 5000
    x = chance.normal(size=n).round(2)
    table = pa.table(
        {
            "x": x,
            "region": chance.choice(["a", "b"], n, p=[0.9, 0.1]),
            "id": np.arange(n),
        }
    )
    plan = microagg.Plan().override(k=3, columns=["x"], strata=["region"], known=["id"])
    grouped = group_in_spark(spark.createDataFrame(table), plan, leaf=300)
    found = SparkRelease.of(grouped).data.toArrow()
    expected = protect_table(Frame(table), plan).data
    for region in ("a", "b"):
        ours, theirs = (
            np.sort(t.filter(pc.equal(t["region"], region))["x"].to_numpy())
            for t in (found, expected)
        )
        assert np.array_equal(ours, theirs)
