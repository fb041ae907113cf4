"""The Spark engine: what one process gives, however rows are spread and whatever dies on the way."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import microagg
from microagg.errors import DisclosureRiskWarning, InputError
from microagg.scale_out import spark as engine
from microagg.scale_out.spark import group_in_spark
from microagg.scale_out.spark_release import SparkRelease

from scale_out.one_process import protect_alone
from scale_out.tables import LEAF, in_order, mixed_plan, mixed_table

pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def mixed():
    return mixed_table()


@pytest.fixture(scope="module")
def alone(mixed):
    found = protect_alone(mixed, mixed_plan(), LEAF)
    assert found.rounds >= 2
    assert found.places >= 6
    return found


def same_as(alone, release) -> None:
    assert in_order(release.data.toArrow()).equals(in_order(alone.data))
    assert release.losses.groups == alone.losses.groups
    assert release.losses.within == pytest.approx(alone.losses.within, rel=1e-12)


@pytest.mark.parametrize("parts", [2, 5])
def test_the_same_as_in_one_process(spark, mixed, alone, parts):
    rows = np.random.default_rng(parts).permutation(mixed.num_rows)
    frame = spark.createDataFrame(mixed.take(pa.array(rows))).repartition(parts)
    release = SparkRelease.of(group_in_spark(frame, mixed_plan(), LEAF))
    same_as(alone, release)
    assert release.data.columns == [name for name in mixed.column_names if name != "note"]
    assert all(one.holds for one in release.verify())
    release.unpersist()


def test_workers_that_die_change_nothing(spark, mixed, alone, tmp_path, monkeypatch):
    """Every kind of task over blocks is killed once, in the middle of its stage."""

    def deadly(work):
        kind = type(work).__name__

        def apply(one, other):
            found = work(one, other)
            try:
                os.close(os.open(tmp_path / kind, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return found
            os.kill(os.getpid(), 9)

        return apply

    monkeypatch.setattr(engine, "_of_two", deadly)
    release = SparkRelease.of(group_in_spark(spark.createDataFrame(mixed), mixed_plan(), LEAF))
    same_as(alone, release)
    assert {"Work", "Finish", "Rows"} <= {path.name for path in tmp_path.iterdir()}
    release.unpersist()
