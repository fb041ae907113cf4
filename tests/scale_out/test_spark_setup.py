"""What the engine relies on in Spark itself, seen on the installed version."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa


def test_a_killed_worker_is_replaced_and_its_task_done_again(spark, tmp_path):
    def die_once(batches):
        try:
            os.close(os.open(tmp_path / "died", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            yield from batches
        else:
            os.kill(os.getpid(), 9)

    frame = spark.range(1000, numPartitions=4)
    assert frame.mapInArrow(die_once, frame.schema).count() == 1000
    assert Path(tmp_path / "died").exists()


def test_a_group_arrives_whole_and_doubles_to_the_last_bit(spark):
    values = np.random.default_rng(1).normal(size=5000) * 1e-300
    table = pa.table({"key": np.arange(5000) % 7, "value": values})
    frame = spark.createDataFrame(table).repartition(5)

    def tell(group):
        total = int(np.bitwise_xor.reduce(group["value"].to_numpy().view(np.int64)))
        return pa.table({"key": group["key"][:1], "rows": [len(group)], "bits": [total]})

    told = frame.groupBy("key").applyInArrow(tell, "key long, rows long, bits long").collect()
    for row in told:
        mine = values[row.key :: 7]
        assert (row.rows, row.bits) == (len(mine), np.bitwise_xor.reduce(mine.view(np.int64)))
    assert sorted(row.key for row in told) == list(range(7))
