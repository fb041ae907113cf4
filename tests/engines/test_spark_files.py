"""From file to file in one process, on two executors that are processes of their own, and by spark-submit."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import microagg
from engine_tables import LEAF, in_order, mixed_plan, mixed_table, released_from_disk
from microagg.errors import TableError
from microagg.job.job import Job
from microagg.job.observer import Observer
from microagg.job.run import run

pytest.importorskip("pyspark")
ROOT = Path(__file__).parents[2]


class Heard(Observer):
    def __init__(self) -> None:
        self.told: list[str] = []

    def stage(self, name: str, words: str = "") -> None:
        self.told.append(name)

    def caution(self, caution: object) -> None:
        self.told.append("caution")

    def planned(self, plan: object, records: int) -> None:
        self.told.append(f"planned for {records} records")

    def reported(self, model: object) -> None:
        self.told.append("reported")

    def written(self, files: object) -> None:
        self.told.append("written")


@pytest.mark.parametrize("where", ["spark", pytest.param("cluster", marks=pytest.mark.long)])
def test_executors_give_what_comes_from_disk(
    request, where, tmp_path, tmp_path_factory, monkeypatch
):
    request.getfixturevalue(where)
    monkeypatch.setattr("microagg.engines.spark.on_spark.LEAF", LEAF)
    table, plan = mixed_table(), mixed_plan()
    (tmp_path / "in").mkdir()
    for part in range(3):
        pq.write_table(table.slice(part * 450, 450), tmp_path / "in" / f"{part}.parquet")
    heard = Heard()
    job = Job(tmp_path / "in", tmp_path / "out", plan, engine="spark")
    found = run(job, heard).evidence
    expected, groups = released_from_disk(table, plan, tmp_path_factory.mktemp("disk"))
    written = pq.read_table(tmp_path / "out")
    assert in_order(written).equals(in_order(expected))
    assert found.parts[0].partition.n_groups == groups
    assert found.counted.parts[0] == microagg.verify(
        written, 4, ["age", "in.come", "town", "wealth", "region", "weight"]
    )
    assert found.verdict == "amber"  # the person is left as it is
    planned = f"planned for {len(table)} records"
    kinds = ["reading", "grouping", planned, "writing", "measuring", "written"]
    assert [one for one in heard.told if one != "caution"] == kinds
    assert "caution" in heard.told
    assert all(path.suffix == ".parquet" for path in (tmp_path / "out").iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    with pytest.raises(TableError, match="--no-overwrite: nothing is replaced"):
        run(replace(job, overwrite=False))
    with pytest.raises(TableError, match="On Spark tables are Parquet files"):
        run(replace(job, source=ROOT / "README.md", target=tmp_path / "other"))


def test_a_rejected_release_is_kept_apart_and_reported(
    spark, tmp_path, tmp_path_factory, monkeypatch
):
    monkeypatch.setattr("microagg.engines.spark.on_spark.LEAF", LEAF)
    table, plan, heard = mixed_table(), mixed_plan(), Heard()
    pq.write_table(table, tmp_path / "in.parquet")
    report, rejected = tmp_path / "board.html", tmp_path / "rejected"
    job = Job(
        tmp_path / "in.parquet",
        tmp_path / "out",
        plan,
        engine="spark",
        report=report,
        strict=True,
        keep_rejected=rejected,
    )
    found = run(job, heard).evidence
    assert heard.told[-3:] == ["reporting", "reported", "written"]
    assert "the verdict must be green and is amber" in found.rejected
    assert "Rejected." in report.read_text(encoding="utf-8")
    assert not (tmp_path / "out").exists()
    expected, _ = released_from_disk(table, plan, tmp_path_factory.mktemp("disk"))
    assert in_order(pq.read_table(rejected)).equals(in_order(expected))


@pytest.mark.long
def test_the_script_for_spark_submit(tmp_path):
    import pyspark

    chance = np.random.default_rng(3)
    table = pa.table({"x": chance.normal(size=200), "y": chance.normal(size=200)})
    pq.write_table(table, tmp_path / "in.parquet")
    (tmp_path / "plan.toml").write_text(
        'microagg = 1\n[[block]]\ncolumns = ["x", "y"]\nk = 3\nmethod = "pca"\n', encoding="utf-8"
    )
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [
            submit,
            *("--master", "local[2]", "--conf", "spark.ui.enabled=false"),
            *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.memory=1g"),
            str(ROOT / "examples" / "spark_submit.py"),
            *("in.parquet", "out", "plan.toml", "told.json"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    told = json.loads((tmp_path / "told.json").read_text(encoding="utf-8"))
    assert told["verdict"] == "green"
    written = pq.read_table(tmp_path / "out")
    counted = microagg.verify(written, 3, ["x", "y"]).as_dict()
    assert told["verified"] == {**counted, "sha256": told["verified"]["sha256"]}
