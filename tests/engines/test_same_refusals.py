"""What cannot be done is refused on memory, disk and Spark by the same error in the same words.

What only some engines can do is declared: the others refuse it before any work, and a test fails once they
can do it.
"""

import re
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microagg.engines.capabilities import _IN_PARTS, check_plan_in_parts
from microagg.errors import InputError, MicroaggError
from microagg.job.job import Job
from microagg.job.run import run
from microagg.plan.block import Block
from microagg.plan.plan import Plan

N = 240
ROW = re.compile(r"row [\d,]+ \(the first record is row 1\)")
STRATUM = re.compile(r"[\d,]+ records(?= that share both)")  # of which engines name any one

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
    "strata of too few units": {"strata": ["edu"], "unit": "few"},
    "strata of too few values": {
        "columns": ["age", "edu"],
        "strata": ["half"],
        "require": {"distinct": {"half": 2}},
    },
    "numbers in text": {"columns": ["age", "text"]},
    "names as categories": {"columns": ["age", "name"]},
    "bands of text": {"coarsen": {"edu": {"bands": 5}}},
}
# What a table that is read in parts lacks, by the rule that is broken.
LACKS = {
    "one block of columns": {"blocks": [["age"], ["pay"]]},
    "one partition": {"per_column": True},
    "units that are counted": {
        "columns": ["age", "edu"],
        "unit": {"column": "home", "mode": "together"},
    },
    "strata of k units": {"strata": {"columns": ["region"], "small": "merge"}},
    "identifiers that are dropped": {"renumber": ["home"]},
    "all records": {"suppress": 0.05},
    "requirements of a group by itself": {"require": {"closeness": {"ill": 0.9}}},
    "values or their logarithms": {"kinds": {"age": {"transform": "rank"}}},
}
# Of each kind one, since Spark tries what fails four times: by the plan, in a task, naming a row.
ON_SPARK = ["a small stratum", "a missing stratum", "too few values"]


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
            "ill": [
                *rng.choice(["flu", "cold"], N // 2),
                *["flu"] * 100,
                *["cold"] * (N // 2 - 100),
            ],
            "mostly_flu": np.where(np.arange(N) < N // 2, "no", "yes"),
            "few": np.arange(N) % 5,
            "half": np.where(np.arange(N) % 2, "yes", "no"),
            "text": [*map(str, rng.integers(0, 90, N - 1)), "?"],
            "name": [f"name {row}" for row in range(N)],
            "home": rng.integers(0, N // 2, N),
            "some": [*["x"] * (N - 1), None],
            "net": rng.normal(size=N),
            "gross": rng.normal(size=N),
            "infinite": np.append(rng.normal(size=N - 1), np.inf),
        }
    )
    path = tmp_path_factory.mktemp("refusals") / "in.parquet"
    pq.write_table(table, path, row_group_size=60)
    return path


def plan_for(wrong: dict) -> Plan:
    settings = {"k": 5, "columns": ["age", "pay", "edu"], "effort": "fast", **wrong}
    blocks = [Block(columns=tuple(names), k=5) for names in settings.pop("blocks", ())]
    used = [settings.get("weight"), *settings["columns"], *settings.get("strata", ())]
    used += settings.get("renumber", [])
    odd = ("bad_weight", "infinite", "some", "home", "few", "name", "text")
    plan = Plan.of(drop=[name for name in odd if name not in used], **settings)
    return replace(plan, blocks=tuple(blocks)) if blocks else plan


def refusal(source, wrong: str, engine: str) -> tuple[str, str]:
    target = source.with_name("out" if engine == "spark" else "out.parquet")
    with pytest.raises(MicroaggError) as raised:
        run(Job(source, target, plan_for(WRONG[wrong]), engine=engine))
    assert sorted(path.name for path in source.parent.iterdir()) == ["in.parquet"]
    return type(raised.value).__name__, str(raised.value)


@pytest.mark.parametrize("wrong", WRONG)
def test_disk_refuses_as_memory_does(source, wrong):
    assert refusal(source, wrong, "disk") == refusal(source, wrong, "memory")


@pytest.mark.parametrize(
    "wrong", [pytest.param(w, marks=[pytest.mark.long] * (w not in ON_SPARK)) for w in WRONG]
)
def test_spark_refuses_as_memory_does(spark, source, wrong):
    """Rows of Spark have no numbers."""
    kind, words = refusal(source, wrong, "memory")
    assert refusal(source, wrong, "spark") == (kind, ROW.sub("some row", words))


# What the table breaks even as one group, where groups cannot cross strata.
TOO_MUCH = {
    "entropy": {"strata": ["half"], "require": {"entropy": {"ill": 2.0}}},
    "dominance": {"strata": ["half"], "require": {"n_k": {"age": {"n": 1, "k": 0.1}}}},
    "dominance of units": {
        "strata": ["half"],
        "require": {"p_percent": {"age": 1e6}},
        "unit": "home",
    },
    "in one stratum": {
        "strata": ["mostly_flu"],
        "require": {"entropy": {"ill": 1.8}},
    },
    "in one stratum, and many values to blank": {
        "strata": ["mostly_flu"],
        "require": {"entropy": {"ill": 1.8}},
        "missing": {"policy": "pattern", "most": 0.0},
        "k": 15,
    },
}


# The numbers of records of a chunk.
EACH = [("disk", records, asked) for records in (60, 1000) for asked in TOO_MUCH]
ON_SPARK_TOO = [
    pytest.param("spark", *case, marks=[pytest.mark.long] * (case != [60, "in one stratum"]))
    for _, *case in EACH
]


@pytest.mark.parametrize(
    ("engine", "records", "asked"), [*EACH, *ON_SPARK_TOO], indirect=["engine"]
)
def test_what_no_groups_can_satisfy_is_said_alike(engine, source, records, asked, monkeypatch):
    for module in ("disk", "spark.on_spark"):
        monkeypatch.setattr(f"microagg.engines.{module}.LEAF", records)
    monkeypatch.setitem(WRONG, asked, TOO_MUCH[asked])
    found, expected = (refusal(source, asked, one) for one in (engine, "memory"))
    assert [STRATUM.sub("some", words) for words in found] == [
        STRATUM.sub("some", words) for words in expected
    ]


def test_every_lack_is_declared_with_the_way_out():
    assert list(LACKS) == list(_IN_PARTS)
    for rule, settings in LACKS.items():
        with pytest.raises(
            InputError, match=rf"{rule}, since .*; .* say engine = memory"
        ) as raised:
            check_plan_in_parts(plan_for(settings))
        assert str(raised.value).count(". ") == 1


def _lacking(engine: str):
    """Not done on an engine: the test of it fails once it is."""
    return pytest.param(engine, marks=pytest.mark.xfail(raises=InputError, strict=True))


@pytest.mark.parametrize("engine", ["memory", _lacking("disk"), _lacking("spark")])
@pytest.mark.parametrize("lack", LACKS)
def test_what_only_memory_does(source, tmp_path, engine, lack, monkeypatch):
    monkeypatch.setattr("microagg.job.engine_in_parts.session_on", _no_session)
    target = tmp_path / ("out" if engine == "spark" else "out.parquet")
    run(Job(source, target, plan_for(LACKS[lack]), engine=engine))
    assert target.exists()


def _no_session(*_):
    raise AssertionError("Spark was started for a plan that it cannot carry out")


def test_in_a_later_batch_the_row_is_that_of_the_table(source, monkeypatch):
    from microagg.engines import disk

    monkeypatch.setattr(disk, "AT_ONCE", 100)
    _, words = refusal(source, "a missing stratum", "disk")
    assert "is missing in row 40 (row 1 is here row 201 of the table" in words
