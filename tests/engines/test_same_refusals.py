"""What cannot be done is refused on memory, disk and Spark by the same error in the same words."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microagg.errors import MicroaggError
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.plan import Plan

N = 240
ROW = re.compile(r"row [\d,]+ \(the first record is row 1\)")

# A wrong plan each, by what is wrong; settings that are None are taken away.
WRONG = {
    "no such column": {"columns": ["age", "nix"]},
    "no such stratum": {"strata": ["nix"]},
    "no column to require": {"require": {"distinct": {"nix": 2}}},
    "a k that is too large": {"k": 300},
    "a small stratum": {"strata": ["region"]},
    "a missing stratum": {"strata": ["some"]},
    "missing values": {"missing": "error"},
    "too many values to blank": {"missing": {"policy": "pattern", "most": 0.0}, "k": 30},
    "a weight below 0": {"weight": "bad_weight"},
    "a weight that is text": {"weight": "edu", "columns": ["age", "pay"]},
    "an order that nobody gave": {"kinds": {"edu": "ordinal"}},
    "levels that are not all": {"kinds": {"edu": ["low", "mid"]}},
    "text as number": {"kinds": {"edu": "number"}},
    "text as date": {"kinds": {"edu": "date"}},
    "numbers as boolean": {"kinds": {"age": "boolean"}},
    "infinite values": {"columns": ["age", "infinite"]},
    "too few units": {"unit": "region"},
    "too few values": {"require": {"distinct": {"ill": 3}}},
    "too small a population": {"require": {"population": 1e9}, "weight": "weight"},
    "amounts below 0": {"require": {"p_percent": {"net": 10}}},
    "a relation that does not hold": {
        "columns": ["age", "net", "gross"],
        "relations": ["gross = net + age"],
    },
    "an analysis of no column": {"analyses": ["pay ~ nix"]},
    "names as categories": {"columns": ["age", "name"], "kinds": {"name": "nominal"}},
    "bands of text": {"coarsen": {"edu": {"bands": 5}}},
}
ON_SPARK = ["a small stratum", "a missing stratum", "too few values", "amounts below 0"]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "age": rng.integers(18, 90, N),
            "pay": np.where(rng.random(N) < 0.1, np.nan, rng.lognormal(3, 1, N).round(2)),
            "edu": rng.choice(["low", "mid", "high"], N),
            "region": ["north"] * (N - 2) + ["south"] * 2,
            "weight": rng.uniform(1, 2, N),
            "bad_weight": np.append(rng.uniform(1, 2, N - 1), -1.0),
            "ill": rng.choice(["flu", "cold"], N),
            "some": [*["x"] * (N - 1), None],
            "net": rng.normal(size=N),
            "gross": rng.normal(size=N),
            "name": [f"person {i}" for i in range(N)],
            "infinite": np.append(rng.normal(size=N - 1), np.inf),
        }
    )
    path = tmp_path_factory.mktemp("refusals") / "in.parquet"
    pq.write_table(table, path, row_group_size=60)
    return path


def plan_for(wrong: str) -> Plan:
    settings = {"k": 5, "columns": ["age", "pay", "edu"], "effort": "fast", **WRONG[wrong]}
    used = [settings.get(one) for one in ("weight", "unit")]
    used += [*settings["columns"], *settings.get("strata", ())]
    drop = [name for name in ("bad_weight", "infinite", "some", "name") if name not in used]
    return Plan.of(drop=drop, **settings)


def refusal(source, wrong: str, engine: str) -> tuple[str, str]:
    target = source.with_name("out" if engine == "spark" else "out.parquet")
    with pytest.raises(MicroaggError) as raised:
        run(Job(source, target, plan_for(wrong), engine=engine))
    assert sorted(path.name for path in source.parent.iterdir()) == ["in.parquet"]
    return type(raised.value).__name__, str(raised.value)


@pytest.mark.parametrize("wrong", WRONG)
def test_disk_refuses_as_memory_does(source, wrong):
    assert refusal(source, wrong, "disk") == refusal(source, wrong, "memory")


@pytest.mark.parametrize("wrong", ON_SPARK)
def test_spark_refuses_as_memory_does(spark, source, wrong):
    """Rows of Spark have no numbers."""
    kind, words = refusal(source, wrong, "memory")
    assert refusal(source, wrong, "spark") == (kind, ROW.sub("some row", words))


@pytest.mark.long
@pytest.mark.parametrize("wrong", [one for one in WRONG if one not in ON_SPARK])
def test_spark_refuses_every_wrong_plan_as_memory_does(spark, source, wrong):
    kind, words = refusal(source, wrong, "memory")
    assert refusal(source, wrong, "spark") == (kind, ROW.sub("some row", words))


def test_in_a_later_batch_the_row_is_that_of_the_table(source, monkeypatch):
    from microagg.engines import disk

    monkeypatch.setattr(disk, "AT_ONCE", 100)
    _, words = refusal(source, "a missing stratum", "disk")
    assert "is missing in row 40 (row 1 is here row 201 of the table" in words
