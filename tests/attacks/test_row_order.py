"""Row order that is kept: the file is in the order of the source, on disk as in memory, batch by batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from microagg.engines import disk
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan


def survey(n: int) -> pa.Table:
    rng = np.random.default_rng(5)
    pay = rng.lognormal(7, 0.5, n).round(2)
    gaps = rng.random(n) < 0.2
    return pa.table(
        {
            "row": np.arange(n),
            "pay": pa.array(pay, mask=gaps),
            "age": rng.integers(18, 90, n),
            "region": rng.choice(["n", "s"], n),
        }
    )


def read(path: Path) -> pa.Table:
    return pacsv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("missing", ["pattern", "drop"])
def test_released_rows_are_in_the_order_of_the_source(
    tmp_path, monkeypatch, ending, engine, missing
):
    monkeypatch.setattr(disk, "AT_ONCE", 128)
    monkeypatch.setattr(disk, "LEAF", 200)
    table = survey(1_000)
    source, target = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    if ending == ".csv":
        pacsv.write_csv(table, source)
    else:
        pq.write_table(table, source, row_group_size=300)
    plan = Plan.of(
        k=4,
        columns=["pay", "age"],
        strata=["region"],
        known=["row"],
        missing=missing,
        effort="fast",
        keep_order=True,
    )
    run(Job(source, target, plan, engine=engine))
    after = read(target)
    there = np.ones(1_000, dtype=bool)
    if missing == "drop":
        there = ~np.asarray(table["pay"].is_null())
    assert after["row"].to_pylist() == np.flatnonzero(there).tolist()
    assert after["region"].to_pylist() == table.filter(pa.array(there))["region"].to_pylist()
    # And the values are those of the record's own neighbourhood, not of a shifted row.
    before = np.asarray(table.filter(pa.array(there))["age"]).astype(float)
    assert np.corrcoef(before, np.asarray(after["age"]).astype(float))[0, 1] > 0.9
