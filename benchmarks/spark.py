"""Spark on two cores of this machine against the same table in memory: loss, seconds, what was shuffled.

``python -m benchmarks spark`` takes 100,000 records of ten columns, with --large a million.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import microagg
from benchmarks.harness import show

_COLUMNS = [f"x{j}" for j in range(10)]
_K = 5


def main() -> None:
    from pyspark.sql import SparkSession

    n = 1_000_000 if "--large" in sys.argv else 100_000
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    started = time.perf_counter()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    start = time.perf_counter() - started
    X = np.random.default_rng(0).normal(size=(n, 10))
    rows: list[list[object]] = [["start of Spark", start, "", "", ""]]
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "in.parquet")
        pq.write_table(
            pa.table({name: X[:, j] for j, name in enumerate(_COLUMNS)}), path, row_group_size=65536
        )
        microagg.spark.warm_up(spark, k=_K, columns=_COLUMNS)
        started = time.perf_counter()
        memory = microagg.partition(X, k=_K)
        seconds = time.perf_counter() - started
        rows.append(["in memory: groups", seconds, memory.information_loss, "", ""])
        for block_records in (None, max(n // 4, 10_000)):
            rows += _on_spark(spark, path, folder, X.nbytes, block_records)
    spark.stop()
    show(
        f"{n:,} x 10, k = {_K}, two cores",
        ["what", "seconds", "loss in %", "shuffled, MB", "of the data"],
        rows,
    )


def _on_spark(spark, path, folder, size, block_records) -> list[list[object]]:
    before, started = _shuffled(spark), time.perf_counter()
    release = microagg.spark.protect(
        spark.read.parquet(path), k=_K, columns=_COLUMNS, block_records=block_records
    )
    grouped = time.perf_counter()
    moved = _shuffled(spark) - before
    release.data.write.mode("overwrite").parquet(str(Path(folder) / "out"))
    written = time.perf_counter()
    joined = _shuffled(spark) - before - moved
    assert release.verify()[0].holds
    done = time.perf_counter()
    release.unpersist()
    blocks = "blocks as they come" if block_records is None else f"blocks of {block_records:,}"
    return [
        [
            f"Spark, {blocks}: groups",
            grouped - started,
            release.information_loss,
            *_mb(moved, size),
        ],
        ["  released rows written", written - grouped, "", *_mb(joined, size)],
        ["  counted, classes, linkage", done - written, "", "", ""],
    ]


def _mb(moved: int, size: int) -> tuple[float, float]:
    return moved / 1e6, moved / size


def _shuffled(spark) -> int:
    executors = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.size()))
