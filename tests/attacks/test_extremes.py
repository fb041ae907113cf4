"""Extreme numbers and dates: no foreign warning or error, k holds, totals hold as far as doubles do."""

import datetime as dt
import itertools
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from microagg.drafting.infer import guess
from microagg.engines.memory.protect import protect_table
from microagg.errors import InputError, MicroaggError
from microagg.job.run import protect_file
from microagg.plan.plan import Plan
from microagg.report.html import render
from microagg.tables.frame import Frame

N = 40


def columns() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    half = rng.random(N) < 0.5
    return {
        "tiny": rng.normal(size=N) * 1e-300,
        "subnormal": rng.integers(0, 50, N) * 5e-324,
        "huge": rng.normal(size=N) * 1e307,
        "both ends": np.where(half, 1.7e308, -1.7e308),
        "far apart": np.where(half, 1e-310, 1e300) * rng.random(N),
        "beyond doubles": rng.integers(2**53, 2**62, N),
        "unsigned": rng.integers(2**63, 2**64 - 1, N, dtype=np.uint64),
        "one far out": np.r_[np.zeros(N - 1), 1e308],
        "equal and huge": np.full(N, 1.5e308),
        "nearly equal": 1e16 + rng.integers(0, 3, N).astype(float),
        "gaps": np.where(half, np.nan, rng.normal(size=N) * 1e200),
        "single precision": (rng.normal(size=N) * 1e38).astype(np.float32),
        "usual": rng.normal(size=N),
    }


SETTINGS: list[dict[str, Any]] = [
    {},
    {"round": "totals"},
    {"digits": 2},
    {"kinds": {"a": "spiked"}},
    {"columns": ["a"], "weight": "b", "known": ["z"]},
]


def try_all(cases: list[tuple[str, str, dict[str, Any]]]) -> Counter[str]:
    """Protect each table and make all that is said of it; return how often it was done or refused."""
    found: Counter[str] = Counter()
    values = columns()
    for one, other, settings in cases:
        table = pa.table({"a": values[one], "b": values[other], "z": np.arange(N) % 3})
        plan = Plan.of(**{"k": 3, "columns": ["a", "b"], **settings})
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                guess(Frame(table))
                release = protect_table(Frame(table), plan)
                release.evidence.as_dict()
                render(release.report_model())
                release.report_model(public=True)
            except MicroaggError:
                found["refused"] += 1
                continue
        rows = zip(*(release.data[name].to_pylist() for name in release.columns), strict=True)
        assert min(Counter(rows).values()) >= 3
        found["done"] += 1
    return found


def all_cases() -> list[tuple[str, str, dict[str, Any]]]:
    pairs = itertools.combinations(columns(), 2)
    return [(one, other, settings) for one, other in pairs for settings in SETTINGS]


# A few of each kind, among them all that have ever failed.
QUICK = [
    ("tiny", "subnormal", SETTINGS[0]),
    ("tiny", "subnormal", SETTINGS[4]),
    ("tiny", "both ends", SETTINGS[0]),
    ("one far out", "usual", SETTINGS[3]),
    ("beyond doubles", "unsigned", SETTINGS[1]),
    ("gaps", "single precision", SETTINGS[0]),
]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("cases", [QUICK, pytest.param(all_cases(), marks=pytest.mark.long)])
def test_extreme_numbers_are_protected_or_refused_in_words(cases):
    found = try_all(cases)
    print(found)
    assert found["done"] > found["refused"]


def test_a_spiked_column_of_huge_values_keeps_its_distances():
    """Squares of 1e308 overflow: then all records would look alike."""
    values = np.r_[np.zeros(6), [1e307, 1.1e307, 1.2e307, 9e307, 9.1e307, 9.2e307]]
    plan = Plan.of(k=3, columns=["a"], kinds={"a": "spiked"})
    release = protect_table(Frame(pa.table({"a": values})), plan)
    small = protect_table(Frame(pa.table({"a": values / 2.0**1000})), plan)
    assert release.parts[0].partition.labels.tolist() == small.parts[0].partition.labels.tolist()
    assert len(set(release.data["a"].to_pylist())) >= 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_extreme_dates(unit):
    """Means of the first and the last moments that a type holds lie within it."""
    least, most = np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max
    moments = [least, least + 5, least + 9, most - 9, most - 5, most] * 2
    table = pa.table({"t": pa.array(moments, pa.timestamp(unit))})
    release = protect_table(Frame(table), Plan.of(k=3, columns=["t"]))
    found = release.data["t"].cast(pa.int64()).to_pylist()
    assert min(Counter(found).values()) >= 3
    assert [value < 0 for value in found] == [value < 0 for value in moments]


def test_the_first_and_last_days():
    days = [dt.date.min, dt.date(1, 1, 9), dt.date(1, 1, 20), dt.date(9999, 12, 1), dt.date.max]
    table = pa.table({"day": [*days, dt.date(9999, 12, 9)]})
    release = protect_table(Frame(table), Plan.of(k=3, columns=["day"]))
    found = release.data["day"].to_pylist()
    assert len(set(found)) == 2
    assert dt.date.min <= found[0] <= dt.date(1, 1, 20)
    assert dt.date(9999, 12, 1) <= found[-1] <= dt.date.max


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tiny", "differ by 1e-150 or more"),
        ("subnormal", "differ by 1e-150 or more"),
        ("huge", r"up to 1e\+150"),
        ("far apart", r"up to 1e\+150"),
        ("beyond doubles", None),
        ("nearly equal", None),
        ("single precision", None),
    ],
)
def test_disk_protects_or_says_which_numbers_it_cannot_hold(tmp_path, name, words):
    """Numbers whose squares are no doubles are refused as such, not as infinite or missing ones."""
    table = pa.table({"a": columns()[name], "b": columns()["usual"]})
    pq.write_table(table, tmp_path / "in.parquet")

    files = tmp_path / "in.parquet", tmp_path / "out.parquet"
    chosen = {"k": 3, "columns": ["a", "b"], "engine": "disk"}
    if words is None:
        assert protect_file(*files, **chosen).counted.holds
    else:
        with pytest.raises(InputError, match=f"read in parts hold numbers .*{words}"):
            protect_file(*files, **chosen)
